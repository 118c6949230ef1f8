/*
 * test_ledger.c - the part of the ledger that comes from the adapter: retries and the state
 * of the port.  The counts of librail: test_peer.c.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <stdlib.h>

#include "rail/rail.h"
#include "traffic.h"
#include "verbs/vrb.h"

static void count_any(void *user, const char *name, const uint64_t *value)
{
	(void)name;
	(void)value;
	++*(int *)user;
}

/* arg: must a packet have been sent again? */
static void retries_body(struct job *job)
{
	static const struct rail_way way[] = { { .policy = RAIL_STRIPE, .threshold = 8192,
						 .eager = 8192 } };
	static const size_t size[] = { 1 << 20 };
	const struct traffic t = { .seed = 5, .count = 16, .sizes = size, .size_count = 1,
				   .ways = way, .way_count = 1, .window = 4, .one_way = true };
	const bool lossy = *(const bool *)job->arg;
	uint64_t retries = 0;
	int counters = 0;

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	traffic_run(job, &t);
	for (int r = 0; r < rail_count(job->ctx); r++) {
		struct rail_ledger l;

		CHECK(rail_ledger(job->ctx, r, &l));
		retries += l.retries;
		/* Some of 4,096 packets with a loss of 2 %: 2^-119 that none was lost. */
		if (job->rank == 0)
			CHECK_EQUAL(l.retries > 0, lossy);
		CHECK_EQUAL(rail_port_counters(job->ctx, r, count_any, &counters), 0);
	}
	if (!lossy)
		CHECK_EQUAL(retries, 0);
	CHECK_EQUAL(counters, 0);
	job_close(job);
}

static void test_retries(void **state)
{
	static const bool lossy = true, clean = false;

	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal,loss=0.02" }, retries_body,
				 &lossy, 0), 0);
	assert_int_equal(job_run(&(struct job_config){
				 .soft = "ports=2,rate=1GB/s,latency=2us,loss=0.02" }, retries_body,
				 &lossy, 0), 0);
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, retries_body,
				 &clean, 0), 0);
}

/* Names that the kernel's drivers use; tests/verbs/test_counters.c has all of them. */
static void test_counter_names(void **state)
{
	(void)state;
	assert_true(rail_counter_is_retry("local_ack_timeout_err"));
	assert_true(rail_counter_is_retry("completer_retry_err"));
	assert_false(rail_counter_is_retry("out_of_sequence"));
	assert_false(rail_counter_is_retry("port_xmit_data"));
}

static void state_body(struct job *job)
{
	job->rail.on_message = traffic_on_message;
	job_open(job);
	for (int r = 0; r < 2; r++)
		CHECK_EQUAL(rail_port_state(job->ctx, r), IBV_PORT_ACTIVE);
	/* The clock of the schedule starts with the first connection. */
	job_connect(job);
	while (job->rank == 0 && rail_port_state(job->ctx, 1) == IBV_PORT_ACTIVE)
		rail_progress(job->ctx);
	CHECK_EQUAL(rail_port_state(job->ctx, 0), IBV_PORT_ACTIVE);
	CHECK(job->rank || rail_port_state(job->ctx, 1) == IBV_PORT_DOWN);
	/* The port comes back, so that both processes can leave. */
	while (job->rank == 0 && rail_port_state(job->ctx, 1) != IBV_PORT_ACTIVE)
		rail_progress(job->ctx);
	job_close(job);
}

static void test_state(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){
				 .soft = "ports=2,down=0/soft0:2@20ms,up=0/soft0:2@2s" },
				 state_body, NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_counter_names),
		cmocka_unit_test(test_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
