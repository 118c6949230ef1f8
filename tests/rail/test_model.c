/*
 * test_model.c - librail on a modelled fabric takes the time that the model says:
 * never less, and hardly more in the best of many rounds.  Two equal rails carry a
 * large message in half the time of one.
 *
 * Less is a failure.  A little more may be the machine, slow or busy: told as skipped, exit
 * code 77.  Half as much again is none of a machine with nothing else to do: rails that work
 * in turns need twice the time.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "traffic.h"

#define LATENCY_NS 2000.0
#define BYTES_PER_NS 1.0
#define SPEC "ports=2,rate=1GB/s,latency=2us"
#define LATE 1.5

enum { LARGE = 4 << 20, SECONDS = 6 };

struct target {
	const struct rail_way *way;
	size_t bytes;
	double least_ns, most_ns;
	int rounds;			/* between looks at what has been reached */
};

static struct {
	unsigned char *data;
	int rounds, got, done;
	struct rail_op in;
} ping;

static void landed(struct rail_op *op, int status)
{
	(void)op;
	CHECK_EQUAL(status, 0);
	ping.got++;
}

static void sent(struct rail_op *op, int status)
{
	(void)op;
	CHECK_EQUAL(status, 0);
	ping.done++;
}

static void on_message(void *user, const struct rail_message *msg)
{
	struct rail_buf buf = { ping.data, msg->bytes, RAIL_MEM_ARENA };

	(void)user;
	if (msg->payload) {
		memcpy(ping.data, msg->payload, msg->bytes);
		ping.got++;
		return;
	}
	ping.in.done = landed;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous, &buf, &ping.in), 0);
}

static void send_and_wait(struct job *job, const struct target *t)
{
	const struct rail_header header = { { 0 } };
	struct rail_buf buf = { ping.data + LARGE, t->bytes, RAIL_MEM_ARENA };
	struct rail_op op = { .done = sent };

	ping.done = rail_send(job->peer[!job->rank], t->way, &header, &buf, 0, &op);
	CHECK(ping.done >= 0);
	while (!ping.done)
		rail_progress(job->ctx);
}

static double round_trip(struct job *job, const struct target *t)
{
	uint64_t begin = rg_now_ns();

	/* The next round's message may come while process 1 still waits for its own to be done. */
	ping.rounds++;
	if (job->rank == 0)
		send_and_wait(job, t);
	while (ping.got < ping.rounds)
		rail_progress(job->ctx);
	if (job->rank == 1)
		send_and_wait(job, t);
	return (double)(rg_now_ns() - begin) / 2;
}

static enum job_verdict judge(const struct target *t, double best, uint64_t until_ns)
{
	if (best <= t->most_ns)
		return JOB_REACHED;
	if (rg_now_ns() < until_ns)
		return JOB_GO_ON;
	if (best > LATE * t->most_ns && !job_machine_busy())
		job_fail(__FILE__, __LINE__, "%zu bytes take %.0f ns, should be %.0f to %.0f",
			 t->bytes, best, t->least_ns, t->most_ns);
	return JOB_TOO_BUSY;
}

static void body(struct job *job)
{
	const struct target *t = job->arg;
	uint64_t until_ns = rg_now_ns() + SECONDS * 1000000000ull;
	double best = 1e18;

	job->rail.on_message = on_message;
	job_connect(job);
	ping.data = rail_alloc(job->ctx, 2 * LARGE);
	CHECK(ping.data != NULL);
	memset(ping.data, 1, 2 * LARGE);
	while (!atomic_load(job->verdict)) {
		for (int i = 0; i < t->rounds; i++) {
			double ns = round_trip(job, t);

			/* Half of what lies between two instants at one end: never early. */
			if (job->rank == 0 && ns < t->least_ns)
				job_fail(__FILE__, __LINE__, "%zu bytes in %.0f ns, the model says "
					 "%.0f", t->bytes, ns, t->least_ns);
			best = ns < best ? ns : best;
		}
		job_barrier(job);
		if (job->rank == 0)
			atomic_store(job->verdict, judge(t, best, until_ns));
		job_barrier(job);
	}
	if (job->rank == 0)
		printf("# %zu bytes, policy %d: best %.0f ns, model %.0f, should be at most %.0f\n",
		       t->bytes, t->way->policy, best, t->least_ns, t->most_ns);
	while (rail_busy(job->ctx))
		job_progress(job);
	rail_free(job->ctx, ping.data);
	job_close(job);
}

static int skipped;

static void check(struct target t)
{
	int verdict = job_run_judged(&(struct job_config){ .soft = SPEC }, body, &t);

	assert_true(verdict > JOB_GO_ON);
	skipped += verdict == JOB_TOO_BUSY;
}

/* Small messages: latency and the bytes on the wire, at most 0.5 us more. */
static void test_small(void **state)
{
	(void)state;
	for (size_t bytes = 8; bytes <= 1024; bytes *= 128)
		for (int w = 0; w < 3; w++)
			check((struct target){
				.way = &traffic_ways[w], .bytes = bytes, .rounds = 5,
				.least_ns = LATENCY_NS + (double)bytes / BYTES_PER_NS,
				.most_ns = LATENCY_NS + (double)bytes / BYTES_PER_NS + 500,
			});
}

/* RTS, CTS, and the bytes on one rail or on two: 1 % and 1 us more. */
static void test_large(void **state)
{
	(void)state;
	for (int w = 0; w < 3; w++) {
		double rails = traffic_ways[w].policy == RAIL_STRIPE ? 2 : 1;
		double ns = 3 * LATENCY_NS + LARGE / BYTES_PER_NS / rails;

		check((struct target){
			.way = &traffic_ways[w], .bytes = LARGE, .rounds = 5,
			.least_ns = ns, .most_ns = ns * 1.01 + 1000,
		});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_large),
	};
	int rc;

	if (job_has_no_times())
		return 77;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (!rc && skipped) {
		printf("skipped: %d measurements took longer than they should, this machine is "
		       "busy or slow\n", skipped);
		return 77;
	}
	return rc;
}
