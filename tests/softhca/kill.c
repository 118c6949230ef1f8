/*
 * kill.c - processes are killed at random under load.
 *
 * A few processes, all connected with each other over shared completion queues,
 * send, write and read as fast as they can, checking every byte.  One of them
 * is killed with SIGKILL at a random moment.  Then
 *	- each survivor sees an error on its queue pair to the dead within seconds,
 *	- traffic among the survivors goes on without a single error,
 *	- a fresh process can join and talk,
 *	- when all have left, the fabric's file is gone.
 * Usage: kill [ROUNDS [SEED]]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../conformance/conformance.h"

enum {
	PROCESSES = 4,
	NODES = 3,
	SLOT = 8192,		/* bytes per message at most */
	WINDOW = 8,		/* messages in flight per peer and direction */
	DETECT_MS = 5000,
};

/* What a message begins with; the rest is pattern(seq). */
struct header {
	uint32_t from, bytes;
	uint64_t seq;
};

struct link {
	struct end e;
	bool alive;
	uint64_t sent, acked, received;
};

struct node {
	struct side side;
	int me;
	struct ibv_cq *cq;
	struct buffer out, in;		/* WINDOW slots per peer */
	struct buffer remote[PROCESSES];
	struct link link[PROCESSES];
	unsigned random;
};

static struct options options = { .port = 1, .gid_index = -2 };

/* ---- Setting up: every process sends its addresses to all, through the parent --- */

struct address {
	struct peer_address qp[PROCESSES];
	uint64_t in_addr;
	uint32_t in_rkey;
	uint16_t lid;
};

static void open_node(struct node *n)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end_config c = end_defaults;
	int i;

	require(list != NULL && list[0] != NULL);
	n->side = (struct side){ .options = &options, .port_num = 1, .gid_index = -1 };
	n->side.ctx = ibv_open_device(list[0]);
	require(n->side.ctx != NULL);
	ibv_free_device_list(list);
	require_equal(ibv_query_port(n->side.ctx, 1, &n->side.port), 0);
	n->side.pd = ibv_alloc_pd(n->side.ctx);
	n->cq = ibv_create_cq(n->side.ctx, 4096, NULL, NULL, 0);
	require(n->side.pd && n->cq);
	n->out = buffer_new(&n->side, PROCESSES * WINDOW * SLOT, ACCESS_ALL);
	n->in = buffer_new(&n->side, PROCESSES * 2 * WINDOW * SLOT, ACCESS_ALL);
	c.cq = n->cq;
	c.recv_wr = 4 * WINDOW;
	c.timeout = 12;		/* 17 ms */
	c.min_rnr_timer = 1;
	for (i = 0; i < PROCESSES; i++)
		n->link[i].e = end_new(&n->side, &c);
}

/* First half of the slots of `from`: sends land there; second half: writes. */
static size_t slot_at(int from, uint64_t slot, bool written)
{
	return (((size_t)from * 2 + written) * WINDOW + slot % WINDOW) * SLOT;
}

static void post_slot(struct node *n, int from, uint64_t slot)
{
	struct ibv_sge sge = sge_of(&n->in, slot_at(from, slot, false), SLOT);

	post_receive(&n->link[from].e, (uint64_t)from << 32 | slot, &sge, 1);
}

static void connect_all(struct node *n, int sock)
{
	struct address mine = { .in_addr = (uintptr_t)n->in.at, .in_rkey = n->in.mr->rkey };
	struct address all[PROCESSES];
	int i, k;

	for (i = 0; i < PROCESSES; i++)
		mine.qp[i] = end_address(&n->side, &n->link[i].e);
	require_equal(write(sock, &mine, sizeof(mine)), sizeof(mine));
	require_equal(recv(sock, all, sizeof(all), MSG_WAITALL), sizeof(all));
	for (i = 0; i < PROCESSES; i++) {
		if (i == n->me)
			continue;
		n->remote[i].addr = all[i].in_addr;
		n->remote[i].rkey = all[i].in_rkey;
		require_equal(end_to_init(&n->side, &n->link[i].e), 0);
		for (k = 0; k < 2 * WINDOW; k++)
			post_slot(n, i, (uint64_t)k);
		require_equal(end_to_rtr(&n->side, &n->link[i].e, &all[i].qp[n->me]), 0);
		require_equal(end_to_rts(&n->link[i].e), 0);
		n->link[i].alive = true;
	}
	/* Ready; wait for all to be. */
	require_equal(write(sock, "r", 1), 1);
	require_equal(read(sock, all, 1), 1);
}

/* ---- Traffic ------------------------------------------------------------- */

static unsigned dice(struct node *n, unsigned sides)
{
	n->random = n->random * 1103515245u + 12345u;
	return (n->random >> 16) % sides;
}

/* In turns: a send, a write with immediate; now and then a read back is mixed in. */
static void send_one(struct node *n, int to)
{
	struct link *l = &n->link[to];
	uint64_t seq = l->sent;
	size_t at = ((size_t)to * WINDOW + seq % WINDOW) * SLOT;
	struct header h = { (uint32_t)n->me, 0, seq };
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	h.bytes = (uint32_t)sizeof(h) + dice(n, dice(n, 4) ? 200 : SLOT - (unsigned)sizeof(h));
	memcpy(n->out.at + at, &h, sizeof(h));
	fill(n->out.at + at + sizeof(h), seq + (uint64_t)n->me * 77, h.bytes - sizeof(h));
	sge = sge_of(&n->out, at, h.bytes);
	wr = (struct ibv_send_wr){ .wr_id = (uint64_t)to << 32 | 0x80000000u, .sg_list = &sge,
				   .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED };
	if (seq % 2) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = (uint32_t)(seq % WINDOW);
		wr.wr.rdma.remote_addr = n->remote[to].addr + slot_at(n->me, seq, true);
		wr.wr.rdma.rkey = n->remote[to].rkey;
	}
	if (ibv_post_send(l->e.qp, &wr, &bad) == 0)
		l->sent++;
}

static void check_message(struct node *n, int from, const struct ibv_wc *wc)
{
	struct link *l = &n->link[from];
	bool written = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	uint64_t slot = written ? wc->imm_data : (uint32_t)wc->wr_id;
	const unsigned char *at = n->in.at + slot_at(from, slot, written);
	struct header h;

	memcpy(&h, at, sizeof(h));
	require_equal(h.from, from);
	require_equal(h.bytes, wc->byte_len);
	require_equal(h.seq, l->received);
	check(at + sizeof(h), h.seq + h.from * 77ull, h.bytes - sizeof(h), "under load");
	l->received++;
	post_slot(n, from, (uint32_t)wc->wr_id % (2 * WINDOW));
}

/* One round over everything; an error is allowed on a queue pair to the dead only. */
static void traffic(struct node *n, int dead)
{
	struct ibv_wc wc[16];
	int i, count;

	for (i = 0; i < PROCESSES; i++)
		if (i != n->me && n->link[i].alive &&
		    n->link[i].sent < n->link[i].acked + WINDOW / 2 &&
		    n->link[i].sent < n->link[i].received + WINDOW / 2)
			send_one(n, i);
	count = ibv_poll_cq(n->cq, 16, wc);
	for (i = 0; i < count; i++) {
		int who = (int)(wc[i].wr_id >> 32);

		require(who >= 0 && who < PROCESSES && who != n->me);
		if (wc[i].status != IBV_WC_SUCCESS) {
			if (dead >= 0 && who != dead)
				fail("process %d: %s on the queue pair to %d, which lives", n->me,
				     ibv_wc_status_str(wc[i].status), who);
			n->link[who].alive = false;
		} else if (wc[i].opcode & IBV_WC_RECV) {
			check_message(n, who, &wc[i]);
		} else {
			n->link[who].acked++;
		}
	}
}

/* ---- A process ----------------------------------------------------------- */

/*
 * From the socket come: 'k', index: that one has been killed; 'q': stop, answer
 * and leave on the next word.
 * To it goes: 'd' when the death was noticed and the others are well.
 */
static void live(struct node *n, int sock)
{
	int dead = -1, i;
	bool told = false;
	uint64_t deadline = 0, mark[PROCESSES];

	fcntl(sock, F_SETFL, O_NONBLOCK);
	for (;;) {
		char word[2];
		ssize_t got;
		int round;

		for (round = 0; round < 200; round++)
			traffic(n, dead);
		got = read(sock, word, 2);
		if (got > 0 && word[0] == 'q') {
			/* Who leaves first would be missed by the others: all together. */
			fcntl(sock, F_SETFL, 0);
			require_equal(write(sock, "q", 1), 1);
			require_equal(read(sock, word, 1), 1);
			return;
		}
		if (got == 0)
			fail("the parent has ended");
		if (got == 2 && word[0] == 'k') {
			dead = word[1];
			deadline = now_ns() + DETECT_MS * 1000000ull;
			for (i = 0; i < PROCESSES; i++) {
				mark[i] = n->link[i].received;
				if (i != dead && i != n->me && !n->link[i].alive)
					fail("process %d: the queue pair to %d, which lives, "
					     "failed", n->me, i);
			}
		}
		if (dead < 0 || told)
			continue;
		if (now_ns() > deadline)
			fail("process %d: after %d ms no error on the queue pair to %d, or others "
			     "stand still (%d)", n->me, DETECT_MS, dead, n->link[dead].alive);
		for (i = 0; i < PROCESSES; i++)
			if (i != n->me && (i == dead ? n->link[i].alive
						     : n->link[i].received < mark[i] + 200))
				break;
		if (i < PROCESSES)
			continue;
		told = true;
		require_equal(write(sock, "d", 1), 1);
	}
}

static void run_process(int me, int sock, unsigned seed)
{
	static struct node n;
	char number[8];
	int i;

	alarm(60);
	snprintf(number, sizeof(number), "%d", me % NODES);	/* the last shares one */
	setenv("SOFTHCA_NODE", number, 1);
	n.me = me;
	n.random = seed + (unsigned)me;
	open_node(&n);
	connect_all(&n, sock);
	live(&n, sock);
	for (i = 0; i < PROCESSES; i++)
		end_free(&n.link[i].e);
	require_equal(ibv_destroy_cq(n.cq), 0);
	buffer_free(&n.side, &n.out);
	buffer_free(&n.side, &n.in);
	require_equal(ibv_dealloc_pd(n.side.pd), 0);
	require_equal(ibv_close_device(n.side.ctx), 0);
	exit(0);
}

/* ---- The parent ---------------------------------------------------------- */

static void read_all(int fd, void *to, size_t bytes)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, 20000) != 1 || recv(fd, to, bytes, MSG_WAITALL) != (ssize_t)bytes)
		fail("a process does not answer");
}

static void round_trip(unsigned seed)
{
	int pair[PROCESSES][2], i, status, victim = (int)(seed % PROCESSES);
	struct address all[PROCESSES];
	pid_t pid[PROCESSES];
	char word[2] = { 'k', (char)victim }, answer;

	for (i = 0; i < PROCESSES; i++) {
		require_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
		fflush(NULL);
		pid[i] = fork();
		require(pid[i] >= 0);
		if (pid[i] == 0)
			run_process(i, pair[i][1], seed);
		close(pair[i][1]);
	}
	for (i = 0; i < PROCESSES; i++)
		read_all(pair[i][0], &all[i], sizeof(all[i]));
	for (i = 0; i < PROCESSES; i++)
		require_equal(write(pair[i][0], all, sizeof(all)), sizeof(all));
	for (i = 0; i < PROCESSES; i++)
		read_all(pair[i][0], &answer, 1);
	for (i = 0; i < PROCESSES; i++)
		require_equal(write(pair[i][0], "g", 1), 1);

	usleep(2000 + seed * 7919 % 60000);
	kill(pid[victim], SIGKILL);
	for (i = 0; i < PROCESSES; i++)
		if (i != victim)
			require_equal(write(pair[i][0], word, 2), 2);
	for (i = 0; i < PROCESSES; i++)
		if (i != victim) {
			read_all(pair[i][0], &answer, 1);
			require_equal(answer, 'd');
		}
	for (i = 0; i < PROCESSES; i++)
		if (i != victim)
			require_equal(write(pair[i][0], "q", 1), 1);
	for (i = 0; i < PROCESSES; i++)
		if (i != victim)
			read_all(pair[i][0], &answer, 1);
	for (i = 0; i < PROCESSES; i++)
		if (i != victim)
			require_equal(write(pair[i][0], "x", 1), 1);
	for (i = 0; i < PROCESSES; i++) {
		require_equal(waitpid(pid[i], &status, 0), pid[i]);
		if (i != victim && (!WIFEXITED(status) || WEXITSTATUS(status)))
			fail("process %d ended with status 0x%x", i, (unsigned)status);
		close(pair[i][0]);
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20, i;
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)getpid();
	char name[32], path[64];

	signal(SIGPIPE, SIG_IGN);
	snprintf(name, sizeof(name), "kill.%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), name);
	setenv("SOFTHCA_EXPOSE", "1", 1);
	setenv("SOFTHCA_FABRIC", name, 1);
	for (i = 0; i < rounds; i++) {
		printf("round %d of %d, seed %u\n", i + 1, rounds, seed + (unsigned)i);
		fflush(stdout);
		round_trip(seed + (unsigned)i);
		if (access(path, F_OK) == 0)
			fail("%s is still there", path);
	}
	return 0;
}
