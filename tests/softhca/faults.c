/*
 * faults.c - ports that go down and come back, packets that are lost: by the
 * softhca command while traffic flows, and by the spec.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

enum { MS = 1000000 };

struct fault_case {
	const char *name, *spec;
	void (*run)(struct side *s);
};

/* ---- Tools --------------------------------------------------------------- */

/* The softhca command on this test's fabric. */
static void command(const char *what)
{
	char line[128];

	snprintf(line, sizeof(line), "./softhca %s", what);
	require_equal(system(line), 0);
}

static enum ibv_port_state port_state(struct side *s, int port)
{
	struct ibv_port_attr a;

	require_equal(ibv_query_port(s->ctx, (uint8_t)port, &a), 0);
	require_equal(a.phys_state, a.state == IBV_PORT_ACTIVE ? 5 : 3);
	return a.state;
}

static void expect_event(struct side *s, enum ibv_event_type type, int port)
{
	struct ibv_async_event event;

	wait_async(s, type);
	require_equal(ibv_get_async_event(s->ctx, &event), 0);
	require_equal(event.event_type, type);
	require_equal(event.element.port_num, port);
	ibv_ack_async_event(&event);
}

static void expect_no_event(struct side *s)
{
	require(!readable(s->ctx->async_fd, 20));
}

static struct end connected(struct side *s, enum ibv_qp_type type, int timeout, int retry_cnt)
{
	struct end_config c = end_defaults;
	struct end e;

	c.type = type;
	c.timeout = timeout;
	c.retry_cnt = retry_cnt;
	c.send_wr = c.recv_wr = 128;
	c.cqe = 512;
	e = end_new(s, &c);
	end_connect(s, &e);
	return e;
}

/* UD: a ready queue pair, and the address of the other side's. */
static struct end datagram(struct side *s, struct ibv_ah **ah)
{
	struct end_config c = end_defaults;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5 };
	struct peer_address mine, theirs;
	struct ibv_ah_attr way = { .port_num = 1 };
	struct end e;

	c.type = IBV_QPT_UD;
	c.send_wr = c.recv_wr = 128;
	c.cqe = 512;
	e = end_new(s, &c);
	require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY), 0);
	require_equal(end_to(&e, IBV_QPS_RTR), 0);
	a.qp_state = IBV_QPS_RTS;
	require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	mine = end_address(s, &e);
	swap(s, &mine, &theirs, sizeof(mine));
	way.dlid = theirs.lid;
	e.remote_qpn = theirs.qpn;
	*ah = ibv_create_ah(s->pd, &way);
	require(*ah != NULL);
	return e;
}

/* ---- Ports --------------------------------------------------------------- */

/* A process that has the adapter open learns it, also while asleep; others do not. */
static void events(struct side *s)
{
	require_equal(port_state(s, 2), IBV_PORT_ACTIVE);
	barrier(s);
	if (s->me == 1)
		command("port 0/soft0:2 down");
	else
		expect_event(s, IBV_EVENT_PORT_ERR, 2);
	barrier(s);
	require_equal(port_state(s, 1), IBV_PORT_ACTIVE);
	require_equal(port_state(s, 2), s->me == 0 ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
	barrier(s);
	if (s->me == 1) {
		command("port 0/soft0:2 down");		/* again: nothing happens */
		command("port 0/soft0:2 up");
	} else {
		expect_event(s, IBV_EVENT_PORT_ACTIVE, 2);
	}
	require(port_state(s, 1) == IBV_PORT_ACTIVE && (s->me || port_state(s, 2) ==
							IBV_PORT_ACTIVE));
	expect_no_event(s);
}

/* RC waits for a path that comes back in time, at either end; nothing is lost. */
static void resume(struct side *s, const char *port)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = connected(s, IBV_QPT_RC, 14, 7);
	struct ibv_sge sge = sge_of(&b, 0, 4096);
	char text[40];

	buffer_swap(s, &b);
	if (s->me == 0) {
		fill(b.at, 1, 4096);
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
		snprintf(text, sizeof(text), "port %s down", port);
		command(text);
		fill(b.at, 2, 4096);
		post(&e, write_wr(&b, &sge, 2));
		expect_nothing(e.cq, 20);
	}
	barrier(s);
	if (s->me == 1) {
		check(b.at, 1, 4096, "what came before");
		snprintf(text, sizeof(text), "port %s up", port);
		command(text);
	} else {
		expect(e.cq, 2, IBV_WC_SUCCESS);
		require_equal(end_state(&e), IBV_QPS_RTS);
	}
	barrier(s);
	if (s->me == 1)
		check(b.at, 2, 4096, "what came after");
	end_free(&e);
	buffer_free(s, &b);
}

static void resume_here(struct side *s)
{
	resume(s, "0/soft0:1");
}

static void resume_there(struct side *s)
{
	resume(s, "1/soft0:1");
}

/* Down for too long: three tries of 4.2 ms each, then the error. */
static void give_up(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = connected(s, IBV_QPT_RC, 10, 2);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	uint64_t start;

	buffer_swap(s, &b);
	if (s->me == 0) {
		command("port 1/soft0:1 down");
		start = now_ns();
		post(&e, write_wr(&b, &sge, 1));
		post(&e, write_wr(&b, &sge, 2));
		expect(e.cq, 1, IBV_WC_RETRY_EXC_ERR);
		require(now_ns() - start >= 3 * (4096ull << 10));
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		require_equal(end_state(&e), IBV_QPS_ERR);
	}
	barrier(s);
	if (s->me == 1) {
		require_equal(end_state(&e), IBV_QPS_RTS);
		check_untouched(b.at, 0xee, 4096, "the peer's memory");
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* The other port's queue pairs go on, and are as they were. */
static void other_port(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = connected(s, IBV_QPT_RC, 8, 1);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	int i;

	buffer_swap(s, &b);
	if (s->me == 0) {
		command("port 0/soft0:2 down");
		for (i = 0; i < 100; i++) {
			post(&e, write_wr(&b, &sge, (uint64_t)i));
			expect(e.cq, (uint64_t)i, IBV_WC_SUCCESS);
		}
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* UC: the sender does not notice, nothing arrives, later messages do. */
static void unreliable(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = connected(s, IBV_QPT_UC, 0, 0);
	struct ibv_sge sge = sge_of(&b, 0, 4096);

	buffer_swap(s, &b);
	if (s->me == 1)
		post_receive(&e, 7, &sge, 1);
	barrier(s);
	if (s->me == 0) {
		command("port 0/soft0:1 down");
		fill(b.at, 1, 4096);
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 2, IBV_WC_SUCCESS);
	}
	barrier(s);
	if (s->me == 1) {
		expect_nothing(e.cq, 20);
		check_untouched(b.at, 0xee, 4096, "the peer's memory");
		command("port 0/soft0:1 up");
	}
	barrier(s);
	if (s->me == 0) {
		post(&e, send_wr(&sge, 3));
		expect(e.cq, 3, IBV_WC_SUCCESS);
	} else {
		expect(e.cq, 7, IBV_WC_SUCCESS);
		check(b.at, 1, 4096, "the message");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* The spec says down at 30 ms, up at 90 ms; a program that sleeps hears of it, too. */
static void schedule(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 4096);
	uint64_t start = now_ns();
	struct end e = connected(s, IBV_QPT_RC, 14, 7);

	buffer_swap(s, &b);
	if (s->me == 1) {
		expect_event(s, IBV_EVENT_PORT_ERR, 1);
		require(now_ns() - start >= 30 * MS);
		require_equal(port_state(s, 1), IBV_PORT_DOWN);
	}
	barrier(s);
	if (s->me == 0) {
		fill(b.at, 3, 4096);
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
		require(now_ns() - start >= 90 * MS);
	} else {
		expect_event(s, IBV_EVENT_PORT_ACTIVE, 1);
		require_equal(port_state(s, 1), IBV_PORT_ACTIVE);
	}
	barrier(s);
	if (s->me == 1)
		check(b.at, 3, 4096, "the message");
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Loss ---------------------------------------------------------------- */

enum { ROUNDS = 40, BURST = 100 };

/*
 * Has a message arrived by `end`?  Only a poll that began after `end` says no:
 * with an earlier poll, and a clock read late because the process was not running,
 * a message that had long arrived would be missed.
 */
static bool next_arrival(struct ibv_cq *cq, uint64_t end, struct ibv_wc *wc)
{
	unsigned turns = 0;
	bool last;

	do {
		last = now_ns() >= end;
		if (ibv_poll_cq(cq, 1, wc)) {
			virtual_found();
			return true;
		}
		turn(&turns, end);
	} while (!last);
	return false;
}

/* The count of messages, of 4000, that arrive; their numbers, in order of arrival, in `hash`. */
static int arrivals(struct side *s, enum ibv_qp_type type, size_t bytes, uint64_t *hash)
{
	const uint32_t grh = type == IBV_QPT_UD ? 40 : 0;
	struct buffer b = buffer_new(s, bytes + grh, ACCESS_ALL);
	struct ibv_ah *ah = NULL;
	struct end e = type == IBV_QPT_UD ? datagram(s, &ah) : connected(s, type, 0, 0);
	struct ibv_sge sge = sge_of(&b, 0, bytes + (s->me == 1 ? grh : 0));
	int round, i, posted = 0, arrived = 0;
	struct ibv_wc wc;
	uint64_t end;

	*hash = 0;
	for (round = 0; round < ROUNDS; round++) {
		for (; s->me == 1 && posted < BURST; posted++)
			post_receive(&e, 7, &sge, 1);
		barrier(s);
		for (i = 0; s->me == 0 && i < BURST; i++) {
			struct ibv_send_wr wr = send_wr(&sge, (uint64_t)i);

			wr.opcode = IBV_WR_SEND_WITH_IMM;
			wr.imm_data = (uint32_t)(round * BURST + i);
			if (ah) {
				wr.wr.ud.ah = ah;
				wr.wr.ud.remote_qpn = e.remote_qpn;
				wr.wr.ud.remote_qkey = 5;
			}
			post(&e, wr);
			expect(e.cq, (uint64_t)i, IBV_WC_SUCCESS);
		}
		barrier(s);
		/* All have left; messages under way arrive in 20 us. */
		for (end = now_ns() + MS; s->me == 1 && next_arrival(e.cq, end, &wc);) {
			require_equal(wc.status, IBV_WC_SUCCESS);
			require_equal(wc.byte_len, bytes + grh);
			*hash = *hash * 31 + wc.imm_data;
			posted--;
			arrived++;
		}
	}
	barrier(s);
	end_free(&e);
	if (ah)
		require_equal(ibv_destroy_ah(ah), 0);
	buffer_free(s, &b);
	return arrived;
}

/* Five deviations of a binomial distribution are never exceeded in practice. */
static void share(struct side *s, enum ibv_qp_type type, int packets, double loss)
{
	double kept = 1, deviation;
	uint64_t hash;
	int i, n;

	for (i = 0; i < packets; i++)
		kept *= 1 - loss;
	deviation = 5 * 0.5 * 63.25;		/* sqrt(4000 / 4) and less */
	n = arrivals(s, type, (size_t)packets * 1024, &hash);
	if (s->me == 1 && (n < ROUNDS * BURST * kept - deviation ||
			   n > ROUNDS * BURST * kept + deviation))
		fail("%d of %d messages arrived, not about %.0f", n, ROUNDS * BURST,
		     ROUNDS * BURST * kept);
}

static void share_1(struct side *s)
{
	share(s, IBV_QPT_UC, 1, 0.3);
}

static void share_ud(struct side *s)
{
	share(s, IBV_QPT_UD, 1, 0.3);
}

/* UD over a port that is down, and then up again. */
static void datagrams_down(struct side *s)
{
	uint64_t hash;

	if (s->me == 0)
		command("port 1/soft0:1 down");
	barrier(s);
	require_equal(arrivals(s, IBV_QPT_UD, 64, &hash), 0);
	if (s->me == 1)
		command("port 1/soft0:1 up");
	barrier(s);
	require_equal(arrivals(s, IBV_QPT_UD, 64, &hash), s->me ? ROUNDS * BURST : 0);
}

static void share_4(struct side *s)
{
	share(s, IBV_QPT_UC, 4, 0.1);
}

/* Set by command, at both ports: 1 - 0.8 * 0.75 */
static void share_ports(struct side *s)
{
	uint64_t hash;

	if (s->me == 0) {
		command("loss 0/soft0:1 0.2");
		command("loss 1/soft0:1 0.25");
	}
	barrier(s);
	share(s, IBV_QPT_UC, 1, 0.4);
	if (s->me == 0) {
		command("loss 0/soft0:1 off");
		command("loss 1/soft0:1 off");
	}
	barrier(s);
	require_equal(arrivals(s, IBV_QPT_UC, 64, &hash), s->me ? ROUNDS * BURST : 0);
}

/* The set of lost messages depends only on the seed. */
static void seeded(struct side *s)
{
	static uint64_t first;		/* the first run's, in the parent: see main */
	uint64_t hash;
	int fd = open(getenv("SEEDED"), O_RDWR | O_CREAT, 0600);

	arrivals(s, IBV_QPT_UC, 64, &hash);
	if (s->me == 1) {
		if (pread(fd, &first, sizeof(first), 0) == sizeof(first))
			require(first == hash);
		require_equal(pwrite(fd, &hash, sizeof(hash), 0), sizeof(hash));
	}
	close(fd);
}

/* RC: every byte arrives, in order, in spite of losses. */
static void reliable(struct side *s)
{
	const size_t bytes = 20000;
	struct buffer b = buffer_new(s, bytes, ACCESS_ALL);
	struct end e = connected(s, IBV_QPT_RC, 8, 7);
	struct ibv_sge sge = sge_of(&b, 0, bytes);
	uint64_t i;

	buffer_swap(s, &b);
	for (i = 0; i < 200; i++) {
		if (s->me == 1)
			post_receive(&e, i, &sge, 1);
		barrier(s);
		if (s->me == 0)
			fill(b.at, i, bytes);
		if (s->me == 0)
			post(&e, send_wr(&sge, i));
		expect(e.cq, i, IBV_WC_SUCCESS);
		if (s->me == 1)
			check(b.at, i, bytes, "a message");
	}
	for (i = 0; i < 50; i++) {
		if (s->me == 1)
			fill(b.at, 1000 + i, bytes);
		barrier(s);
		if (s->me == 0) {
			struct ibv_send_wr wr = write_wr(&b, &sge, i);

			wr.opcode = IBV_WR_RDMA_READ;
			post(&e, wr);
			expect(e.cq, i, IBV_WC_SUCCESS);
			check(b.at, 1000 + i, bytes, "what was read");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* Every packet lost: retry_cnt + 1 tries. */
static void exhausted(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = connected(s, IBV_QPT_RC, 8, 3);
	struct ibv_sge sge = sge_of(&b, 0, 4096);

	buffer_swap(s, &b);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_RETRY_EXC_ERR);
	}
	barrier(s);
	if (s->me == 1)
		check_untouched(b.at, 0xee, 4096, "the peer's memory");
	end_free(&e);
	buffer_free(s, &b);
}

#define TIMED "rate=1GB/s,latency=20us,mtu=1024"

static const struct fault_case cases[] = {
	{ "port events", "", events },
	{ "RC resumes, own port", "", resume_here },
	{ "RC resumes, peer's port", "", resume_there },
	{ "RC resumes, own port, timed", TIMED, resume_here },
	{ "RC resumes, peer's port, timed", TIMED, resume_there },
	{ "RC gives up", "", give_up },
	{ "RC gives up, timed", TIMED, give_up },
	{ "the other port", "", other_port },
	{ "UC, port down", "", unreliable },
	{ "UC, port down, timed", TIMED, unreliable },
	{ "schedule", "down=1/soft0:1@30ms,up=1/soft0:1@90ms", schedule },
	{ "schedule, timed", TIMED ",down=1/soft0:1@30ms,up=1/soft0:1@90ms", schedule },
	{ "UC, share of messages lost", "loss=0.3,mtu=1024", share_1 },
	{ "UC, messages of 4 packets", "loss=0.1,mtu=1024", share_4 },
	{ "UC, loss at ports", "mtu=1024", share_ports },
	{ "UD, port down", "", datagrams_down },
	{ "UD, port down, timed", TIMED, datagrams_down },
	{ "UD, share of messages lost", "loss=0.3,mtu=1024", share_ud },
	{ "UD, share of messages lost, timed", TIMED ",loss=0.3", share_ud },
	{ "UC, share of messages lost, timed", TIMED ",loss=0.3", share_1 },
	{ "seed", "loss=0.5,seed=11", seeded },
	{ "seed, again", "loss=0.5,seed=11", seeded },
	{ "RC under loss", "loss=0.1,mtu=1024", reliable },
	{ "RC under loss, timed", TIMED ",loss=0.1", reliable },
	{ "RC under loss, jitter", TIMED ",jitter=30us,loss=0.05", reliable },
	{ "RC, all lost", "loss=1", exhausted },
	{ "RC, all lost, timed", TIMED ",loss=1", exhausted },
};

/* ---- Running ------------------------------------------------------------- */

static void run_side(int me, int sock, const void *arg)
{
	const struct fault_case *c = arg;
	struct side s;

	alarm(600);
	setenv("SOFTHCA_SPEC", c->spec, 1);
	s = side_open(me, me, sock);
	barrier(&s);
	c->run(&s);
	barrier(&s);
	side_close(&s);
}

int main(int argc, char **argv)
{
	char seeded_path[64];
	int failed = 0;
	unsigned i;

	fabric_new("faults");
	side_options.arena = true;
	snprintf(seeded_path, sizeof(seeded_path), "/tmp/softhca-faults.%d", (int)getpid());
	setenv("SEEDED", seeded_path, 1);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc < 2 || strstr(cases[i].name, argv[1]))
			failed |= run_case(cases[i].name, run_side, &cases[i]);
	unlink(seeded_path);
	return fabric_is_left() || failed;
}
