/*
 * test_lost.c - how librail finds that a peer is lost, on a virtual clock: this host's knowledge of
 * a path or a process decides, and silence never does; each rail in use is probed, and no other.
 */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "../rail/traffic.h"
#include "counted.h"
#include "rail/rail.h"
#include "rail/peer/peer.h"
#include "rail/peer/reach.h"

#define MS 1000000ull
#define S 1000000000ull

static struct {
	int errors, error;
	unsigned index;
	uint64_t ns;			/* when */
	int messages;
} seen[2];

static void on_lost(void *user, unsigned index, int error)
{
	const struct job *job = user;

	CHECK(error < 0);
	/* A rank's own port may be down, and messages to itself go through it. */
	if (index == (unsigned)job->rank)
		return;
	seen[job->rank].errors++;
	seen[job->rank].index = index;
	seen[job->rank].error = error;
	seen[job->rank].ns = rg_now_ns();
}

static void on_message(void *user, const struct rail_message *msg)
{
	CHECK(msg->payload != NULL);
	seen[((const struct job *)user)->rank].messages++;
}

/* ---- A peer that is not connected --------------------------------------------------------- */

enum how {
	SENDS,			/* process 0 sends to process 1 */
	WATCHES_NAMED,		/* ... waits for a message of process 1 */
	WATCHES_AMONG,		/* ... of any */
	WATCHES_END,		/* ... only cares for its end */
};

struct silence {
	enum how how;
	const char *soft;
	uint64_t silent_ns;	/* process 1 makes no call meanwhile */
	bool leaves;		/* process 1 has closed its rails before anything is sent */
	/* The time at which process 0 hears that process 1 is lost; 0: never. */
	uint64_t from_ns, to_ns;
	const char *says;
};

static const struct silence *now_tested;

static void on_watch(void *user)
{
	static const enum rail_watch what[] = {
		[WATCHES_NAMED] = RAIL_WATCH_NAMED, [WATCHES_AMONG] = RAIL_WATCH_AMONG,
		[WATCHES_END] = RAIL_WATCH_END,
	};
	struct job *job = user;

	if (job->rank == 0 && now_tested->how != SENDS && job->peer[1])
		rail_peer_watch(job->peer[1], what[now_tested->how]);
}

static void send_8(struct job *job, int to, struct rail_op *op)
{
	static unsigned char data[8];
	const struct rail_header header = { { 1, 2 } };
	struct rail_buf buf = { data, sizeof(data), RAIL_MEM_HOST };

	*op = (struct rail_op){ .done = job_count_done };
	CHECK(rail_send(job->peer[to], &traffic_ways[RAIL_BIND], &header, &buf, 0, op) >= 0);
}

static void process_0(struct job *job, const struct silence *c)
{
	uint64_t begin, until, took;
	static struct rail_op op;
	const char *text;

	capture_begin(2);
	if (c->leaves)
		rg_sleep_ns(10 * MS);		/* no answer from now on */
	begin = rg_now_ns();
	until = begin + c->silent_ns;
	if (c->how == SENDS)
		send_8(job, 1, &op);
	while (!rg_reached(until, rg_now_ns()) && !seen[0].errors)
		job_progress(job);
	text = capture_end();
	if (!c->to_ns) {
		if (*text)
			job_fail(__FILE__, __LINE__, "said something: %s", text);
		CHECK_EQUAL(seen[0].errors, 0);
		CHECK_EQUAL(job->peer[1]->connected, false);
		return;
	}
	CHECK_EQUAL(seen[0].errors, 1);
	CHECK_EQUAL(seen[0].index, 1);
	CHECK_EQUAL(seen[0].error, c->leaves ? -ESHUTDOWN : -ENETUNREACH);
	took = seen[0].ns - begin;
	if (took < c->from_ns || took > c->to_ns)
		job_fail(__FILE__, __LINE__, "lost after %llu ns, should be %llu to %llu",
			 (unsigned long long)took, (unsigned long long)c->from_ns,
			 (unsigned long long)c->to_ns);
	if (!strstr(text, c->says) || strchr(text, '\n') != strrchr(text, '\n'))
		job_fail(__FILE__, __LINE__, "not one line with '%s': %s", c->says, text);
	CHECK(strstr(rail_peer_failure(job->peer[1]), c->says) != NULL);
	CHECK(!rail_busy(job->ctx));
	if (c->how == SENDS)
		CHECK_EQUAL(job_seen.status, -ECONNRESET);
}

/* No process is lost: messages from and to process 1 arrive. */
static void go_on(struct job *job, const struct silence *c)
{
	static struct rail_op op[2];
	int receiver = c->how == SENDS;

	if (job->rank == 1 && !receiver)
		send_8(job, 0, &op[1]);
	while (!seen[receiver].messages)
		job_progress(job);
	while (rail_busy(job->ctx))
		job_progress(job);
	CHECK_EQUAL(seen[job->rank].errors, 0);
}

static void silence_body(struct job *job)
{
	const struct silence *c = job->arg;

	now_tested = c;
	memset(&seen[job->rank], 0, sizeof(seen[0]));
	memset(&job_seen, 0, sizeof(job_seen));
	job->rail.on_message = on_message;
	job->rail.on_peer_error = on_lost;
	job->rail.on_watch = on_watch;
	job_connect(job);
	if (job->rank == 1 && c->leaves) {
		job_lost(job, 1);
		rail_close(job->ctx);
		return;
	}
	if (job->rank == 0)
		process_0(job, c);
	else
		rg_sleep_ns(c->silent_ns);
	if (!c->to_ns && !c->leaves)
		go_on(job, c);
	job_close(job);
}

/* The first check is late; a repetition, at most 256 ms away, makes it and the last one. */
#define CUT_FROM (REACH_LIMIT_NS + REACH_FIRST_NS)
#define CUT_TO (CUT_FROM + 512 * MS)

static void test_silence(void **state)
{
	static const struct silence cases[] = {
		/* Every packet is lost, or a port is down, at either end. */
		{ SENDS, "ports=2,loss=1", 20 * S, false, CUT_FROM, CUT_TO, "no connection over soft0:1" },
		{ SENDS, "ports=2,loss=0.9", 20 * S, false, CUT_FROM, CUT_TO, "packets are lost" },
		{ SENDS, "ports=2,down=0/soft0:1@1us", 20 * S, false, CUT_FROM, CUT_TO, "is DOWN" },
		{ SENDS, "ports=2,down=1/soft0:1@1us", 20 * S, false, CUT_FROM, CUT_TO, "is DOWN" },
		/* The fault is on another rail than the connections. */
		{ SENDS, "ports=2,down=1/soft0:2@1us,up=1/soft0:2@9s", 8 * S },
		/* Back in time, and again. */
		{ SENDS, "ports=2,down=1/soft0:1@1us+1/soft0:1@4s,up=1/soft0:1@3s+1/soft0:1@7s", 9 * S },
		/* A receiver checks once a second. */
		{ WATCHES_NAMED, "ports=2,loss=1", 20 * S, false, REACH_LIMIT_NS, 5 * S + 200 * MS, "soft0:1" },
		{ WATCHES_AMONG, "ports=2,loss=1", 20 * S, false, REACH_LIMIT_NS, 5 * S + 200 * MS, "soft0:1" },
		{ WATCHES_END, "ports=2,down=1/soft0:1@1us,up=1/soft0:1@19s", 20 * S },
		/* A process that is gone is lost at once; a departure in good order is no loss. */
		{ SENDS, "ports=2", 20 * S, true, 0, 1 * S, "its process has closed its rails" },
		{ WATCHES_NAMED, "ports=2", 20 * S, true, 0, 3 * S, "its process has closed its rails" },
		{ WATCHES_AMONG, "ports=2", 20 * S, true, 0, 3 * S, "its process has closed its rails" },
		{ WATCHES_END, "ports=2", 20 * S, true },
		/* Stopped, or computing without a call, for minutes. */
		{ SENDS, "ports=2", 600 * S },
		{ WATCHES_NAMED, "ports=2", 60 * S },
		{ WATCHES_AMONG, "ports=2", 60 * S },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		printf("# %s, %d, %d s\n", cases[i].soft, cases[i].how,
		       (int)(cases[i].silent_ns / S));
		assert_int_equal(job_run(&(struct job_config){ .soft = cases[i].soft,
							       .on_demand = true, .seconds = 700 },
					 silence_body, &cases[i], 0), 0);
	}
}

/* A receiver that names a peer is connected with it; a receiver from any is not. */
static void watch_body(struct job *job)
{
	const struct silence *c = job->arg;

	now_tested = c;
	memset(&seen[job->rank], 0, sizeof(seen[0]));
	job->rail.on_message = on_message;
	job->rail.on_peer_error = on_lost;
	job->rail.on_watch = on_watch;
	job_connect(job);
	for (uint64_t until = rg_now_ns() + 5 * S; !rg_reached(until, rg_now_ns()); )
		job_progress(job);
	CHECK_EQUAL(job->peer[!job->rank]->bulk != NULL, c->how == WATCHES_NAMED);
	CHECK_EQUAL(seen[job->rank].errors, 0);
	CHECK(!rail_busy(job->ctx));
	job_close(job);
}

static void test_watch(void **state)
{
	(void)state;
	for (enum how how = WATCHES_NAMED; how <= WATCHES_END; how++)
		assert_int_equal(job_run(&(struct job_config){ .on_demand = true }, watch_body,
					 &(struct silence){ how }, 0), 0);
}

/* ---- A rail in use, and one that is not ----------------------------------------------------- */

enum { LARGE = 200000, CUT_S = 3, WAIT_S = 10 };

struct use {
	const char *soft;
	const struct rail_way *way;
	int qps;
	bool lost;
};

static struct traffic_end {
	struct counted out, in;
	unsigned char data[2][LARGE];
} end[2];

static void on_large(void *user, const struct rail_message *msg)
{
	struct traffic_end *e = &end[((const struct job *)user)->rank];
	struct rail_buf buf = { e->data[1], LARGE, RAIL_MEM_HOST };

	e->in.op.done = counted_done;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous, &buf, &e->in.op), 0);
}

/* A message in each direction; each rail has its share of a striped one. */
static void both_ways(struct job *job, const struct rail_way *way)
{
	const struct rail_header header = { { 0 } };
	struct traffic_end *e = &end[job->rank];
	struct rail_buf buf = { e->data[0], LARGE, RAIL_MEM_HOST };

	e->out.count = e->in.count = 0;
	e->out.op.done = counted_done;
	CHECK_EQUAL(rail_send(job->peer[!job->rank], way, &header, &buf, 0, &e->out.op), 0);
	while (!e->out.count || !e->in.count)
		job_progress(job);
}

static void use_body(struct job *job)
{
	const struct use *c = job->arg;
	uint64_t begin = rg_now_ns(), until = begin + WAIT_S * S;

	memset(&seen[job->rank], 0, sizeof(seen[0]));
	job->rail.on_message = on_large;
	job->rail.on_peer_error = on_lost;
	job_connect(job);
	both_ways(job, c->way);
	/* Both are members of one process, with one stderr. */
	if (job->rank == 0)
		capture_begin(2);
	job_barrier(job);
	/* No message is sent now: each waits for the other. */
	while (!rg_reached(until, rg_now_ns()) && !seen[job->rank].errors)
		job_progress(job);
	job_barrier(job);
	if (job->rank == 0)
		capture_end();
	CHECK_EQUAL(seen[job->rank].errors, c->lost);
	/* A second until the next probe, and 7 times 0.27 s. */
	if (c->lost)
		CHECK(seen[job->rank].ns - begin > CUT_S * S &&
		      seen[job->rank].ns - begin < (CUT_S + 4) * S);
	job_close(job);
}

static void test_use(void **state)
{
	static const struct use cases[] = {
		/* The third rail carries only chunks. */
		{ "ports=3,down=0/soft0:3@3s", &traffic_ways[RAIL_STRIPE], 1, true },
		{ "ports=3,rate=20GB/s,latency=1us,down=0/soft0:3@3s", &traffic_ways[RAIL_STRIPE], 3,
		  true },
		{ "ports=3,down=1/soft0:1@3s", &traffic_ways[RAIL_STRIPE], 1, true },
		/* Process 1 sends on the second one. */
		{ "ports=3,down=0/soft0:2@3s", &traffic_ways[RAIL_BIND], 1, true },
		/* The fault is on an unused rail. */
		{ "ports=3,down=0/soft0:3@3s", &traffic_ways[RAIL_BIND], 1, false },
		/* Back before its retries are over. */
		{ "ports=3,down=0/soft0:3@3s,up=0/soft0:3@4s", &traffic_ways[RAIL_STRIPE], 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int on_demand = 0; on_demand < 2; on_demand++)
			assert_int_equal(job_run(&(struct job_config){ .soft = cases[i].soft,
					.qps = cases[i].qps, .on_demand = on_demand }, use_body,
						 &cases[i], 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_use),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
