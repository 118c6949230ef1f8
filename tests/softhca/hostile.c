/*
 * hostile.c - a peer that writes garbage into everything it shares.
 *
 * Two processes are connected.  One keeps using its queue pairs in the usual
 * way; the other flips bits in its own segment, in the victim's, and in the
 * fabric's.  Data and connections may suffer; the victim may neither crash nor
 * hang.  Usage: hostile [ROUNDS [SEED]]
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "qp.h"

enum { BYTES = 16384, VERBS = 20000 };

static struct options options = { .port = 1, .gid_index = -2 };
static uint64_t state;

static uint64_t dice(uint64_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % sides;
}

/* ---- The attacker -------------------------------------------------------- */

static void flip(void *base, size_t bytes)
{
	uint64_t *word = (uint64_t *)base + dice(bytes / 8);

	switch (dice(4)) {
	case 0:
		*(volatile uint64_t *)word = dice(UINT64_MAX);
		break;
	case 1:
		*(volatile uint64_t *)word = 0;
		break;
	case 2:
		*(volatile uint64_t *)word ^= 1ull << dice(64);
		break;
	default:
		((volatile uint32_t *)word)[dice(2)] = (uint32_t)dice(70000);
	}
}

static void scribble(struct hca_fabric *f, struct hca_shm_process *victim, int times)
{
	while (times--) {
		struct hca_shm_process *p = dice(2) ? victim : f->self;

		switch (dice(6)) {
		case 0:
			flip(p->qp, 4 * sizeof(p->qp[0]));
			break;
		case 1:
			flip(p->mr, 8 * sizeof(p->mr[0]));
			break;
		case 2:
		case 3:
			flip(p->heap, 65536);		/* rings and mailboxes */
			break;
		case 4:
			flip(f->shm->qp, 64 * sizeof(f->shm->qp[0]));
			break;
		default:
			flip(f->shm->adapter, 8 * sizeof(f->shm->adapter[0]));
		}
	}
}

/* What no process may do to another, however hard it tries. */
static void try_to_cut(struct hca_fabric *f)
{
	struct hca_peer *p = NULL;
	int i;

	for (i = 0; i < 8 && !p; i++)
		p = (uint32_t)i != f->slot ? f->peer[i] : NULL;
	require(p != NULL);
	require(ftruncate(f->shm_fd, 0) != 0);
	require(ftruncate(f->self_fd, 0) != 0);
	if (p->memory_fd >= 0)
		require(ftruncate(p->memory_fd, 0) != 0);
}

static void attack(struct side *s, struct end *e)
{
	struct hca_qp *qp = hca_qp_of(e->qp);
	struct pollfd done = { .fd = s->sock, .events = POLLIN };
	struct hca_shm_process *victim;
	struct hca_peer *peer;

	/* Held for good: what happens to our queue pair does not matter. */
	require_equal(hca_conn_resolve(qp), 0);
	require_equal(hca_peer_get(qp->fabric, qp->conn.peer->slot, &peer), 0);
	victim = peer->shm;
	try_to_cut(qp->fabric);
	barrier(s);
	while (poll(&done, 1, 0) == 0)
		scribble(qp->fabric, victim, 1 + (int)dice(20));
	_exit(0);
}

/* ---- The victim ---------------------------------------------------------- */

static void use(struct end *e, struct buffer *b)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_RDMA_WRITE_WITH_IMM };
	size_t bytes = (size_t)dice(3) * dice(2000), at = (size_t)dice(BYTES - bytes);
	struct ibv_sge sge = sge_of(b, at, bytes);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = ops[dice(4)], .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { b->addr + at, b->rkey } }, *bad;
	struct ibv_recv_wr rwr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct ibv_wc wc[8];

	ibv_post_send(e->qp, &wr, &bad);
	ibv_post_recv(e->qp, &rwr, &rbad);
	ibv_poll_cq(e->cq, 8, wc);
}

/* Queue pairs that have failed are made anew, as a program would. */
static void suffer(struct side *s, struct end *e, struct buffer *b, const struct peer_address *to)
{
	int i;

	for (i = 0; i < VERBS; i++) {
		use(e, b);
		if (i % 500 == 499) {
			struct ibv_mr *mr = ibv_reg_mr(s->pd, b->at, b->bytes, ACCESS_ALL);

			require(mr != NULL);
			require_equal(ibv_dereg_mr(mr), 0);
		}
		if (end_state(e) == IBV_QPS_ERR) {
			require_equal(end_to(e, IBV_QPS_RESET), 0);
			require_equal(end_to_init(s, e), 0);
			require_equal(end_to_rtr(s, e, to), 0);
			require_equal(end_to_rts(e), 0);
		}
	}
	require_equal(write(s->sock, "d", 1), 1);
	end_free(e);
	buffer_free(s, b);
	require_equal(ibv_dealloc_pd(s->pd), 0);
	require_equal(ibv_close_device(s->ctx), 0);
	exit(0);
}

/* ---- Both ---------------------------------------------------------------- */

static void run(int me, int sock, unsigned seed)
{
	struct side s = { .me = me, .sock = sock, .options = &options, .port_num = 1,
			  .gid_index = -1 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end_config c = end_defaults;
	struct peer_address mine, theirs;
	struct buffer b;
	struct end e;

	alarm(60);
	state = seed * 2654435761u + (unsigned)me + 1;
	require(list != NULL && list[0] != NULL);
	s.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	require_equal(ibv_query_port(s.ctx, 1, &s.port), 0);
	s.pd = ibv_alloc_pd(s.ctx);
	b = buffer_new(&s, BYTES, ACCESS_ALL);
	c.timeout = 1;
	c.rnr_retry = 1;
	e = end_new(&s, &c);
	mine = end_address(&s, &e);
	swap(&s, &mine, &theirs, sizeof(mine));
	require_equal(end_to_init(&s, &e), 0);
	require_equal(end_to_rtr(&s, &e, &theirs), 0);
	require_equal(end_to_rts(&e), 0);
	buffer_swap(&s, &b);
	if (me)
		attack(&s, &e);
	barrier(&s);
	suffer(&s, &e, &b, &theirs);
}

static void round_trip(unsigned seed)
{
	int pair[2], me, status;
	pid_t pid[2];

	require_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (me = 0; me < 2; me++) {
		fflush(NULL);
		pid[me] = fork();
		require(pid[me] >= 0);
		if (pid[me] == 0) {
			close(pair[!me]);
			run(me, pair[me], seed);
		}
	}
	close(pair[0]);
	close(pair[1]);
	for (me = 0; me < 2; me++) {
		require_equal(waitpid(pid[me], &status, 0), pid[me]);
		/* The attacker may well hurt itself. */
		if (me == 0 && (!WIFEXITED(status) || WEXITSTATUS(status)))
			fail("seed %u: the victim ended with status 0x%x", seed, (unsigned)status);
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20, i;
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)getpid();
	char name[32], path[80];

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < rounds; i++) {
		printf("round %u of %u, seed %u\n", i + 1, rounds, seed + i);
		fflush(stdout);
		snprintf(name, sizeof(name), "hostile.%d.%u", (int)getpid(), i);
		snprintf(path, sizeof(path), "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), name);
		setenv("SOFTHCA_EXPOSE", "1", 1);
		setenv("SOFTHCA_FABRIC", name, 1);
		round_trip(seed + i);
		unlink(path);		/* the attacker does not leave in good order */
	}
	return 0;
}
