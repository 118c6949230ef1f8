/*
 * test_unequal.c - rails of 3:1: under `weighted` and `pull` they carry 75 and 25 %
 * of the bytes, +- 3, by write and by read, wherever the estimate started from; under
 * `stripe` half each.  By the ledger, and at both ends.
 *
 * Shares follow from times, and those of a model hold only while processes have
 * their cores: rounds are repeated until some in a row are right.  On a machine so
 * busy that they never are it is skipped: exit code 77.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "rail_int.h"
#include "traffic.h"

#define SPEC "ports=2,rate=750MB/s+250MB/s,latency=2us"

enum { BYTES = 1 << 20, WINDOW = 8, MESSAGES = 64, ROUNDS_RIGHT = 3, SECONDS = 20 };

/* What the estimate says at first; the ports' own rates when NULL. */
static const uint64_t even[] = { 1, 1 }, inverse[] = { 1, 1000 }, nothing[] = { 1, 100000 };

struct target {
	struct rail_way way;
	const uint64_t *start;
	double share, off;		/* of the first rail */
};

static struct {
	unsigned char *data;
	struct rail_op out[WINDOW], in[WINDOW];
	bool in_used[WINDOW];
	int sending, landed;
	uint32_t deepest;		/* chunks on a lane that any could have taken, at most */
} run;

static void sent(struct rail_op *op, int status)
{
	CHECK_EQUAL(status, 0);
	op->done = NULL;
	run.sending--;
}

static void landed(struct rail_op *op, int status)
{
	CHECK_EQUAL(status, 0);
	run.in_used[op - run.in] = false;
	run.landed++;
}

static void on_message(void *user, const struct rail_message *msg)
{
	struct rail_buf buf = { .bytes = BYTES, .kind = RAIL_MEM_ARENA };
	int i = 0;

	(void)user;
	while (run.in_used[i])
		i++;
	CHECK(i < WINDOW && msg->rendezvous);
	run.in_used[i] = true;
	run.in[i].done = landed;
	buf.addr = run.data + (size_t)i * BYTES;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous, &buf, &run.in[i]), 0);
}

static void send_all(struct job *job, const struct rail_way *way)
{
	const struct rail_header header = { { 0 } };

	for (int n = 0; n < MESSAGES || run.sending; ) {
		for (int i = 0; i < WINDOW && n < MESSAGES; i++) {
			struct rail_buf buf = { run.data + (size_t)i * BYTES, BYTES,
						RAIL_MEM_ARENA };

			if (run.out[i].done)
				continue;
			run.out[i].done = sent;
			run.sending++;
			n++;
			CHECK_EQUAL(rail_send(job->peer[1], way, &header, &buf, 0, &run.out[i]), 0);
		}
		rail_progress(job->ctx);
		for (int k = 0; k < 2; k++)
			if (peer_bulk(job->peer[1], k, 0)->pulled > run.deepest)
				run.deepest = peer_bulk(job->peer[1], k, 0)->pulled;
	}
}

/* The share of the first rail in this process's bytes since the last call. */
static double share_now(struct job *job)
{
	static uint64_t before[2];
	uint64_t bytes[2];

	for (int r = 0; r < 2; r++) {
		struct rail_ledger l;

		rail_ledger(job->ctx, r, &l);
		bytes[r] = l.tx_bytes + l.rx_bytes - before[r];
		before[r] += bytes[r];
	}
	CHECK_EQUAL(bytes[0] + bytes[1], (uint64_t)MESSAGES * BYTES);
	return (double)bytes[0] / (double)(bytes[0] + bytes[1]);
}

static enum job_verdict judge(const struct target *t, int right, double share, uint64_t until_ns)
{
	if (right == ROUNDS_RIGHT)
		return JOB_REACHED;
	if (rg_now_ns() < until_ns)
		return JOB_GO_ON;
	if (!job_machine_busy())
		job_fail(__FILE__, __LINE__, "policy %d, %s: %.3f of the bytes on the first rail, "
			 "should be %.3f", t->way.policy, t->way.rendezvous ? "read" : "write",
			 share, t->share);
	return JOB_TOO_BUSY;
}

static void body(struct job *job)
{
	const struct target *t = job->arg;
	uint64_t until_ns = rg_now_ns() + SECONDS * 1000000000ull;
	int right = 0, rounds = 0;
	double share = 0;

	job->rail.on_message = on_message;
	job_connect(job);
	for (int p = 0; p < 2 && t->start; p++) {
		rail_gauge_init(&job->peer[p]->writing, 2, t->start);
		rail_gauge_init(&job->peer[p]->reading, 2, t->start);
	}
	run.data = rail_alloc(job->ctx, (size_t)WINDOW * BYTES);
	CHECK(run.data != NULL);
	memset(run.data, 1, (size_t)WINDOW * BYTES);
	job_barrier(job);
	while (!atomic_load(job->verdict)) {
		run.landed = 0;
		if (job->rank == 0)
			send_all(job, &t->way);
		while (job->rank == 1 && run.landed < MESSAGES)
			rail_progress(job->ctx);
		job_barrier(job);
		share = share_now(job);
		right = share >= t->share - t->off && share <= t->share + t->off ? right + 1 : 0;
		rounds++;
		if (job->rank == 0)
			atomic_store(job->verdict, judge(t, right, share, until_ns));
		job_barrier(job);
	}
	if (job->rank == 0)
		printf("# policy %d, %s: %.3f on the first rail in round %d\n", t->way.policy,
		       t->way.rendezvous ? "read" : "write", share, rounds);
	/* Many chunks wait: then two on a lane are not all, or a long wire would run dry. */
	if (job->rank == 0 && t->way.policy == RAIL_PULL && !t->way.rendezvous)
		CHECK(run.deepest > 2 && run.deepest < MESSAGES);
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	rail_free(job->ctx, run.data);
	job_close(job);
}

static int skipped;

static void check(enum rail_policy policy, const uint64_t *start, double share, double off)
{
	for (int how = 0; how < 2; how++) {
		struct target t = {
			.way = { .policy = policy, .threshold = 8192, .eager = 8192,
				 .rendezvous = how ? RAIL_BY_READ : RAIL_BY_WRITE },
			.start = start, .share = share, .off = off,
		};
		int verdict;

		verdict = job_run_judged(&(struct job_config){ .soft = SPEC }, body, &t);
		assert_true(verdict > JOB_GO_ON);
		skipped += verdict == JOB_TOO_BUSY;
	}
}

static void test_stripe(void **state)
{
	(void)state;
	check(RAIL_STRIPE, NULL, 0.5, 0.001);
}

static void test_weighted(void **state)
{
	(void)state;
	check(RAIL_WEIGHTED, NULL, 0.75, 0.03);
	check(RAIL_WEIGHTED, even, 0.75, 0.03);
	check(RAIL_WEIGHTED, inverse, 0.75, 0.03);
	check(RAIL_WEIGHTED, nothing, 0.75, 0.03);
}

static void test_pull(void **state)
{
	(void)state;
	check(RAIL_PULL, NULL, 0.75, 0.03);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stripe),
		cmocka_unit_test(test_weighted),
		cmocka_unit_test(test_pull),
	};
	int rc;

	if (job_has_no_times())
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (!rc && skipped) {
		printf("skipped: %d shares were never right, but this machine is busy\n", skipped);
		return 77;
	}
	return rc;
}
