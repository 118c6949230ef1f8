/*
 * hostile.c - a peer that writes garbage into everything it shares.
 *
 * Two processes are connected, by every kind of queue pair.  The victim keeps
 * using them in the usual way; the attacker scribbles over its own segment, the
 * victim's and the fabric's, or publishes well-formed false data: numbers of
 * other descriptors, the pid of another process, completions without a request,
 * claims that are never published.  Data and connections may be corrupted; the
 * victim must neither crash nor hang, write outside its buffers, nor report
 * impossible receives.  Meanwhile other processes join, and softhca list runs.
 *
 * This file is the victim, which checks, and the frame; attacker.c the attacker.
 *
 * Usage: hostile [ROUNDS [SEED]]
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "softhca/softhca.h"

enum {
	BYTES = 16384,
	VERBS = 8000,
	CANARY = 65536,
	SLOWEST_MS = 60000,	/* a verb, on a busy machine; several waits of a second within */
};

/* ---- The victim ---------------------------------------------------------- */

struct victim {
	struct side *s;
	struct end e[3];		/* RC, UC, RC on a shared receive queue */
	struct peer_address to[3];
	struct buffer b;
	struct ibv_srq *srq;
	struct end ud;
	uint32_t qpn[3];		/* datagrams': the attacker's, ours, a group's */
	struct ibv_ah *ah[3];
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	unsigned char *canary[2];	/* before and after the buffer; not registered */
	uint64_t slowest_ns;
};

enum { RECEIVE = 7000, QKEY = 5 };		/* wr_id + bytes it takes */

static const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 9 } };

static void look_at(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS || !(wc->opcode & IBV_WC_RECV)) {
		require(wc->status >= IBV_WC_SUCCESS && wc->status <= IBV_WC_GENERAL_ERR);
		return;
	}
	require(wc->opcode == IBV_WC_RECV || wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM);
	require(wc->wr_id >= RECEIVE);
	if (wc->opcode == IBV_WC_RECV)
		require(wc->byte_len <= wc->wr_id - RECEIVE);
}

static void use(struct victim *v, struct end *e)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_RDMA_WRITE_WITH_IMM,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	size_t bytes = (size_t)draw(3) * draw(2000), at = (size_t)draw(BYTES - bytes - 8) & ~7ull;
	struct ibv_sge sge = sge_of(&v->b, at, bytes);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = ops[draw(5)], .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { v->b.addr + at, v->b.rkey } }, *bad;
	struct ibv_recv_wr rwr = { .wr_id = RECEIVE + bytes, .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct ibv_wc wc[8];
	int i, n;

	if (e == &v->e[2] && v->srq)
		ibv_post_srq_recv(v->srq, &rwr, &rbad);
	else
		ibv_post_recv(e->qp, &rwr, &rbad);
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = v->b.addr + at;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = v->b.rkey;
	}
	ibv_post_send(e->qp, &wr, &bad);
	n = ibv_poll_cq(v->cq, 8, wc);
	for (i = 0; i < n; i++)
		look_at(&wc[i]);
}

/* Datagrams to the attacker, to ourselves, to a group of both. */
static void use_datagrams(struct victim *v)
{
	unsigned to = (unsigned)draw(3);
	size_t bytes = (size_t)draw(2000);
	struct ibv_sge sge = sge_of(&v->b, 0, bytes), in = sge_of(&v->b, 4096, 2048);
	struct ibv_send_wr wr = send_wr(&sge, 1), *bad;
	struct ibv_recv_wr rwr = { .wr_id = RECEIVE + 2048, .sg_list = &in, .num_sge = 1 }, *rbad;
	struct ibv_wc wc[8];
	int i, n;

	wr.wr.ud.ah = v->ah[to];
	wr.wr.ud.remote_qpn = v->qpn[to];
	wr.wr.ud.remote_qkey = QKEY;
	ibv_post_recv(v->ud.qp, &rwr, &rbad);
	ibv_post_send(v->ud.qp, &wr, &bad);
	n = ibv_poll_cq(v->cq, 8, wc);
	for (i = 0; i < n; i++)
		look_at(&wc[i]);
}

static void start_datagrams(struct end *e)
{
	struct ibv_qp_attr a = { .port_num = 1, .qkey = QKEY };
	int rc;

	do {
		require_equal(end_to(e, IBV_QPS_RESET), 0);
		a.qp_state = IBV_QPS_INIT;
		require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					    IBV_QP_PORT | IBV_QP_QKEY), 0);
		a.qp_state = IBV_QPS_RTR;
		rc = ibv_modify_qp(e->qp, &a, IBV_QP_STATE);
		a.qp_state = IBV_QPS_RTS;
		if (!rc)
			rc = ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	} while (rc);
}

static void make_datagrams(struct victim *v, const struct end_config *config)
{
	struct ibv_ah_attr a = { .port_num = 1 };
	struct end_config c = *config;
	struct peer_address mine, theirs;
	int i;

	c.type = IBV_QPT_UD;
	v->ud = end_new(v->s, &c);
	mine = end_address(v->s, &v->ud);
	swap(v->s, &mine, &theirs, sizeof(mine));
	start_datagrams(&v->ud);
	require_equal(ibv_attach_mcast(v->ud.qp, &group, 0), 0);
	v->qpn[0] = theirs.qpn;
	v->qpn[1] = mine.qpn;
	v->qpn[2] = 0xffffff;
	for (i = 0; i < 3; i++) {
		a.dlid = i ? mine.lid : theirs.lid;
		a.is_global = i == 2;
		a.grh.dgid = group;
		v->ah[i] = ibv_create_ah(v->s->pd, &a);
		require(v->ah[i] != NULL);
	}
}

static void end_datagrams(struct victim *v)
{
	/* The attacker may have removed it from the group, or pose as it. */
	int i, rc = ibv_detach_mcast(v->ud.qp, &group, 0);

	require(rc == 0 || rc == EINVAL);
	for (i = 0; i < 3; i++)
		require_equal(ibv_destroy_ah(v->ah[i]), 0);
	rc = ibv_destroy_qp(v->ud.qp);
	require(rc == 0 || rc == EBUSY);
}

static void take_events(struct victim *v)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_async_event(v->s->ctx, &event) == 0)
		ibv_ack_async_event(&event);
	if (v->channel && ibv_get_cq_event(v->channel, &cq, &context) == 0) {
		require(cq == v->cq);
		ibv_ack_cq_events(cq, 1);
	}
	if (v->channel)
		require_equal(ibv_req_notify_cq(v->cq, (int)draw(2)), 0);
}

/* Make failed queue pairs anew, as a program would. */
static void repair(struct victim *v, int i)
{
	struct end *e = &v->e[i];

	if (end_state(e) != IBV_QPS_ERR && end_state(e) != IBV_QPS_SQE)
		return;
	/* A peer may report faults that it does not have at any moment. */
	do {
		require_equal(end_to(e, IBV_QPS_RESET), 0);
		require_equal(end_to_init(v->s, e), 0);
	} while (end_to_rtr(v->s, e, &v->to[i]) || end_to_rts(e));
}

static void churn(struct victim *v)
{
	struct ibv_mr *mr = ibv_reg_mr(v->s->pd, v->b.at, v->b.bytes, ACCESS_ALL);
	struct end e;

	require(mr != NULL);
	require_equal(ibv_dereg_mr(mr), 0);
	e = end_new(v->s, &v->e[0].config);
	require_equal(end_to_init(v->s, &e), 0);
	end_free(&e);
	ibv_resize_cq(v->cq, draw(2) ? 256 : 512);
}

static void timed(struct victim *v, void (*what)(struct victim *v))
{
	uint64_t began = now_ns();

	what(v);
	if (now_ns() - began > v->slowest_ns)
		v->slowest_ns = now_ns() - began;
}

static void a_turn(struct victim *v)
{
	int i = (int)draw(4);

	if (i == 3) {
		use_datagrams(v);
		if (end_state(&v->ud) == IBV_QPS_ERR || end_state(&v->ud) == IBV_QPS_SQE)
			start_datagrams(&v->ud);
		return;
	}
	if (!v->e[i].qp)
		i = 0;
	use(v, &v->e[i]);
	repair(v, i);
}

static void be_bystander(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
	struct side s = { .ctx = c, .pd = pd, .options = &side_options };

	if (pd) {
		struct end e = end_new(&s, NULL);

		end_free(&e);
	}
	if (c)
		ibv_close_device(c);
	_exit(0);
}

/*
 * Other processes meanwhile may be refused, but not crash or hang.  Each has a program of its own: a child of
 * a process with threads may inherit an allocator that another thread has locked, and a sanitizer's remains so.
 */
static pid_t start_bystander(unsigned which)
{
	const char *program = which % 2 ? "./softhca" : "/proc/self/exe";
	const char *argument = which % 2 ? "list" : "bystander";
	pid_t pid;
	int null;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	alarm(120);
	null = open("/dev/null", O_WRONLY);
	dup2(null, 1);
	if (which % 2)
		dup2(null, 2);
	execl(program, program, argument, (char *)NULL);
	_exit(127);
}

static void reap_bystander(pid_t pid)
{
	int status;

	require_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail("a bystander was ended by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == 127)
		fail("a bystander's program did not start");
}

static void suffer(struct victim *v)
{
	pid_t bystander = 0;
	int i;

	for (i = 0; i < VERBS; i++) {
		timed(v, a_turn);
		if (i % 64 == 63)
			timed(v, take_events);
		if (i % 500 == 499)
			timed(v, churn);
		if (i % 2000 == 1000)
			bystander = start_bystander((unsigned)(i / 2000));
		if (i % 2000 == 1999)
			reap_bystander(bystander);
		if (v->slowest_ns > SLOWEST_MS * 1000000ull)
			fail("turn %d took %.1f s", i, (double)v->slowest_ns / 1e9);
	}
	check_untouched(v->canary[0], 0x5a, CANARY, "memory before the buffer");
	check_untouched(v->canary[1], 0x5a, CANARY, "memory behind the buffer");
}

static void leave(struct victim *v)
{
	int i;

	(void)!write(v->s->sock, "d", 1);	/* the attacker may have hurt itself */
	end_datagrams(v);
	for (i = 0; i < 3; i++)
		if (v->e[i].qp)
			require_equal(ibv_destroy_qp(v->e[i].qp), 0);
	if (v->srq)
		require_equal(ibv_destroy_srq(v->srq), 0);
	require_equal(ibv_destroy_cq(v->cq), 0);
	if (v->channel)
		require_equal(ibv_destroy_comp_channel(v->channel), 0);
	require_equal(ibv_dereg_mr(v->b.mr), 0);
	side_close(v->s);
	exit(0);
}

/* ---- Both ---------------------------------------------------------------- */

static void make_buffer(struct victim *v)
{
	bool arena = draw(2);
	unsigned char *at = arena ? softhca_arena_alloc(BYTES + 2 * CANARY)
				  : aligned_alloc(4096, BYTES + 2 * CANARY);

	require(at != NULL);
	memset(at, 0x5a, BYTES + 2 * CANARY);
	v->canary[0] = at;
	v->canary[1] = at + CANARY + BYTES;
	v->b = (struct buffer){ .at = at + CANARY, .bytes = BYTES };
	v->b.mr = ibv_reg_mr(v->s->pd, v->b.at, BYTES, ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC);
	require(v->b.mr != NULL);
	buffer_swap(v->s, &v->b);
}

static void make_queues(struct victim *v)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 32, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 32, .max_send_sge = 1 } };
	struct end_config c = end_defaults;

	v->channel = ibv_create_comp_channel(v->s->ctx);
	if (v->channel)
		fcntl(v->channel->fd, F_SETFL, O_NONBLOCK);
	fcntl(v->s->ctx->async_fd, F_SETFL, O_NONBLOCK);
	v->cq = ibv_create_cq(v->s->ctx, 256, NULL, v->channel, 0);
	require(v->cq != NULL);
	c.cq = v->cq;
	c.timeout = 1;
	c.rnr_retry = 1;
	c.access = ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC;
	v->e[0] = end_new(v->s, &c);
	v->srq = ibv_create_srq(v->s->pd, &a);
	if (v->srq) {
		init.send_cq = init.recv_cq = v->cq;
		init.srq = v->srq;
		v->e[2] = (struct end){ .config = c, .cq = v->cq };
		v->e[2].qp = ibv_create_qp(v->s->pd, &init);
		require(v->e[2].qp != NULL);
	}
	make_datagrams(v, &c);
	c.type = IBV_QPT_UC;
	v->e[1] = end_new(v->s, &c);
}

static void connect_queues(struct victim *v)
{
	int i;

	for (i = 0; i < 3; i++) {
		struct peer_address mine;

		if (!v->e[i].qp)
			continue;
		mine = end_address(v->s, &v->e[i]);
		swap(v->s, &mine, &v->to[i], sizeof(mine));
		require_equal(end_to_init(v->s, &v->e[i]), 0);
		require_equal(end_to_rtr(v->s, &v->e[i], &v->to[i]), 0);
		require_equal(end_to_rts(&v->e[i]), 0);
	}
	barrier(v->s);
}

static void run(int me, int sock, unsigned seed)
{
	struct side s = side_open(0, me, sock);
	struct victim v = { .s = &s };

	alarm(300);
	draw_from(seed * 2654435761u + (unsigned)me + 1);
	make_buffer(&v);
	make_queues(&v);
	connect_queues(&v);
	if (me)
		attack(&s, &v.e[0]);
	barrier(&s);
	suffer(&v);
	leave(&v);
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
	static const char *const remaps[] = { "never", "auto", "always", "" };
	static const char *const copies[] = { "kernel", "bounce", "" };
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20, i;
	unsigned seed = drawn_seed(argc > 2 ? argv[2] : NULL);
	const char *path;

	if (argc > 1 && strcmp(argv[1], "bystander") == 0)
		be_bystander();
	for (i = 0; i < rounds; i++) {
		printf("round %u of %u, seed %u\n", i + 1, rounds, seed + i);
		fflush(stdout);
		path = fabric_new("hostile");
		setenv("SOFTHCA_REMAP", remaps[(seed + i) % 4], 1);
		setenv("SOFTHCA_COPY", copies[(seed + i) % 3], 1);
		setenv("SOFTHCA_SPEC", (seed + i) % 5 ? "" : "ports=2,rate=1GB/s,latency=5us", 1);
		round_trip(seed + i);
		unlink(path);		/* the attacker does not leave in good order */
	}
	return 0;
}
