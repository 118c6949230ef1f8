/* test_peer_failure.c - adapters that fail; peers that die, and that leave. */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "rail/lane/cq.h"
#include "rail/lane/lane.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/message/rndv.h"
#include "rail/lane/staging.h"
#include "traffic.h"

#define MODELLED "rate=20GB/s,latency=1us"

/* ---- Staging buffers --------------------------------------------------- */

static void on_any(void *user, const struct rail_message *msg)
{
	(void)user;
	CHECK(msg->payload != NULL);
}

/*
 * A request that is flushed has a completion even if it is not signalled: it gives back no buffer
 * of the staged one before it.
 */
static void staged_body(struct job *job)
{
	const struct rail_header header = { { 1, 2 } };
	struct rail_op op = { .done = job_count_done };
	unsigned char data[1000] = { 0 };
	struct rail_staging *s;
	struct rail_lane *lane;

	job->rail.on_message = on_any;
	job_connect(job);
	s = &job->ctx->staging;
	CHECK_EQUAL(rail_staging_make(job->ctx), 0);
	job_barrier(job);
	capture_begin(2);
	if (job->rank == 0) {
		lane = job->peer[1]->route[RAIL_SINGLE]->lane;
		lane->qp.granted.inline_bytes = 64;
		CHECK_EQUAL(rail_send(job->peer[1], &traffic_ways[0], &header,
				      &(struct rail_buf){ data, sizeof(data), RAIL_MEM_HOST }, 0,
				      &op), 1);
		CHECK_EQUAL(s->free_count, STAGING - 1);
		while (s->free_count < STAGING)
			job_progress(job);
		s->free_count--;		/* another lane has the same buffer now */
		vrb_qp_stop(&lane->qp);
		CHECK_EQUAL(rail_send(job->peer[1], &traffic_ways[0], &header,
				      &(struct rail_buf){ data, 8, RAIL_MEM_HOST }, 0, &op), 1);
		while (!job->peer[1]->error)
			job_progress(job);
		CHECK_EQUAL(s->free_count, STAGING - 1);
	}
	job_barrier(job);
	job_close(job);
	capture_end();
}

static void test_staged(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, staged_body, NULL, 0), 0);
}

/* ---- Adapters that fail ------------------------------------------------- */

/*
 * An adapter that has failed completes nothing more: operations with chunks under way end all the
 * same, and completions that come later find no lane.
 */
static void dead_body(struct job *job)
{
	struct rail_header header = { { 1, 2 } };
	struct rail_op op = { .done = job_count_done };
	const struct rail_buf buf = { calloc(1, 1 << 24), 1 << 24, RAIL_MEM_HOST };

	job->rail.on_message = job_keep_handle;
	job->rail.on_peer_error = job_count_error;
	job_connect(job);
	capture_begin(2);
	if (job->rank == 0) {
		CHECK_EQUAL(rail_send(job->peer[1], &traffic_ways[RAIL_STRIPE], &header, &buf, 0, &op), 0);
		while (!op_of(&op)->chunks_out)
			job_progress(job);
		rail_peer_lose(job->peer[1], -ECONNRESET, "the adapter has failed");
		rail_cq_abandon(job->peer[1], 0);
		CHECK_EQUAL(op_of(&op)->chunks_out, 0);
		CHECK_EQUAL(job->ctx->cq_wanted, 0);
	} else {
		while (!job_seen.handle)
			job_progress(job);
		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle, &buf, &op), 0);
	}
	while (!job_seen.errors || !job_seen.done)
		job_progress(job);
	CHECK_EQUAL(job_seen.status, -ECONNRESET);
	for (int i = 0; i < 1000; i++)
		rail_progress(job->ctx);
	CHECK_EQUAL(job_seen.errors, 1);
	CHECK_EQUAL(job_seen.done, 1);
	CHECK(!rail_busy(job->ctx));
	job_barrier(job);
	job_close(job);
	capture_end();
	free(buf.addr);
}

static void test_dead_adapter(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "rate=10MB/s,latency=1us" }, dead_body,
				 NULL, 0), 0);
}

/* ---- Peers that die ----------------------------------------------------- */

enum when {
	BEFORE_ACCEPTING,	/* process 0 has offered messages, never to be accepted */
	BEFORE_CHUNKS,		/* process 0 has accepted messages, never to be sent */
	IN_THE_MIDDLE,		/* traffic in both directions */
};

struct death {
	struct rail_way way;
	const char *soft;
	enum when when;
	useconds_t pause;	/* between two calls of rail_progress of a survivor */
	bool parts;		/* messages move in parts; most of them also have memory that does */
};

enum { DEATH_OPS = 200, DEATH_BYTES = 100000 };

static struct {
	struct rail_op op[2 * DEATH_OPS];
	int used, messages;
	unsigned char *data;
	const struct rail_way *way;
	bool parts;
} death;

static struct rail_buf death_buf(void)
{
	struct rail_buf buf = { death.data, DEATH_BYTES, RAIL_MEM_HOST };

	if (death.parts && death.used % 3)
		buf = (struct rail_buf){ NULL, DEATH_BYTES, RAIL_MEM_PARTS };
	return buf;
}

static void death_on_part(void *user, struct rail_op *op, uint64_t from, void *part, size_t bytes,
			  bool gather)
{
	(void)user;
	(void)op;
	if (gather)
		memcpy(part, death.data + from, bytes);
	else
		memcpy(death.data + from, part, bytes);
}

static void accept_all(void *user, const struct rail_message *msg)
{
	struct rail_op *op = &death.op[death.used];
	struct rail_buf buf = death_buf();
	int rc;

	(void)user;
	death.messages++;
	if (msg->payload)
		return;
	CHECK(death.used < 2 * DEATH_OPS);
	op->done = job_count_done;
	/* The peer may have failed already when its message is found. */
	rc = rail_accept(msg->peer, msg->rendezvous, &buf, op);
	CHECK(rc == 0 || rc == -ECONNRESET);
	death.used += rc == 0;
}

static void offer_one(struct job *job, int to)
{
	struct rail_op *op = &death.op[death.used];
	struct rail_header header = { { 0 } };
	struct rail_buf buf = death_buf();
	int rc;

	CHECK(death.used < 2 * DEATH_OPS);
	op->done = job_count_done;
	rc = rail_send(job->peer[to], death.way, &header, &buf, 0, op);
	CHECK(rc == 0 || rc == -ECONNRESET);
	death.used += rc == 0;
}

/* Process 1: as far as it gets. */
static void die(struct job *job, enum when when)
{
	if (when == BEFORE_ACCEPTING) {
		/* No progress: the offers stay unread. */
		usleep(20000);
	} else if (when == BEFORE_CHUNKS) {
		for (int i = 0; i < DEATH_OPS; i++)
			offer_one(job, 0);
		usleep(20000);
	} else {
		for (int i = 0; i < DEATH_OPS / 4; i++) {
			offer_one(job, 0);
			rail_progress(job->ctx);
		}
	}
	raise(SIGKILL);
}

static void outlive(struct job *job, enum when when, useconds_t pause)
{
	uint64_t begin = rg_now_ns(), limit = 60000000000u;
	int messages;

	for (int i = 0; i < DEATH_OPS && job->rank == 0 && when != BEFORE_CHUNKS; i++) {
		offer_one(job, 1);
		if (when == IN_THE_MIDDLE)
			rail_progress(job->ctx);
	}
	while (!job_seen.errors && rg_now_ns() - begin < limit) {
		job_progress(job);
		if (pause)
			usleep(pause);
	}
	if (job_seen.errors != 1)
		job_fail(__FILE__, __LINE__, "case %d: %d losses told, peer 1 in error %d, %u "
			 "operations with it, %u ticks", when, job_seen.errors, job->peer[1]->error,
			 job->peer[1]->ops, job->ctx->tick);
	CHECK_EQUAL(job_seen.lost, 1);
	CHECK_EQUAL(job_seen.done, death.used);
	CHECK(!rail_busy(job->ctx));
	/* A reader may have read all before; an operation with a lost peer does not begin. */
	if (job->rank == 0 && when != IN_THE_MIDDLE && death.used &&
	    (when != BEFORE_CHUNKS || death.way->rendezvous != RAIL_BY_READ))
		CHECK_EQUAL(job_seen.status, -ECONNRESET);
	/* The others have not noticed. */
	job_barrier(job);
	death.used = job_seen.done = 0;
	messages = death.messages;
	job_barrier(job);
	for (int i = 0; i < 10; i++)
		offer_one(job, 2 - job->rank);
	while (job_seen.done < 20)
		job_progress(job);
	CHECK_EQUAL(job_seen.status, 0);
	CHECK_EQUAL(death.messages - messages, 10);
}

static void death_body(struct job *job)
{
	const struct death *d = job->arg;

	death.data = calloc(1, DEATH_BYTES);
	death.way = &d->way;
	death.parts = d->parts;
	job->rail.on_message = accept_all;
	job->rail.on_part = death_on_part;
	job->rail.on_peer_error = job_count_error;
	/* Process 1 may have gone before this one has left job_connect. */
	if (job->rank != 1)
		capture_begin(2);
	job_connect(job);
	for (int p = 0; p < job->count && d->parts; p++) {
		job->ctx->part_bytes = 16384;
		job->peer[p]->table_bytes = 32768;
	}
	if (job->rank == 1) {
		job_lost(job, 1);
		die(job, d->when);
	}
	outlive(job, d->when, d->pause);
	CHECK(strstr(capture_end(), "peer 1 is lost") != NULL);
	free(death.data);
	job_close(job);
}

static void deaths_of(struct rail_way way, bool parts)
{
	static const char *const soft[] = { "ideal", "ports=2," MODELLED };

	for (int s = 0; s < 2; s++)
		for (int when = BEFORE_ACCEPTING; when <= IN_THE_MIDDLE; when++) {
			const struct death d = { way, soft[s], when, 0, parts };

			assert_int_equal(job_run(&(struct job_config){
					.soft = d.soft, .count = 3, .nodes = 3 },
					death_body, &d, 1 << 1), 0);
		}
}

static void deaths(struct rail_way way)
{
	deaths_of(way, false);
}

static void test_death(void **state)
{
	(void)state;
	deaths(traffic_ways[RAIL_STRIPE]);
}

static void test_death_in_parts(void **state)
{
	struct rail_way way = traffic_ways[RAIL_STRIPE];

	(void)state;
	deaths_of(way, true);
	way.rendezvous = RAIL_BY_READ;
	deaths_of(way, true);
}

static void test_death_of_other_ways(void **state)
{
	struct rail_way way = { RAIL_PULL, 8192, 8192 };

	(void)state;
	deaths(way);
	way.rendezvous = RAIL_BY_READ;
	deaths(way);
	way.policy = RAIL_WEIGHTED;
	deaths(way);
	way.rendezvous = RAIL_BY_WRITE;
	way.completion = RAIL_BY_CONTROL;
	deaths(way);
}

static void test_death_by_both(void **state)
{
	struct rail_way way = { RAIL_STRIPE, 8192, 8192, .rendezvous = RAIL_BY_BOTH };

	(void)state;
	deaths(way);
	way.policy = RAIL_SINGLE;
	deaths(way);
}

static void test_death_by_slices(void **state)
{
	struct death d = { { RAIL_SINGLE, 8192, 8192, .rendezvous = RAIL_BY_RING }, "ideal,ports=1",
			   BEFORE_ACCEPTING, 0, false };

	(void)state;
	for (; d.when <= IN_THE_MIDDLE; d.when++)
		assert_int_equal(job_run(&(struct job_config){ .soft = d.soft, .count = 3, .nodes = 3 },
					 death_body, &d, 1 << 1), 0);
}

/* Every call takes a time slice, because other processes want the core. */
static void test_slow_death(void **state)
{
	const struct death d = { traffic_ways[RAIL_STRIPE], "ideal", BEFORE_ACCEPTING, 4000 };

	(void)state;
	assert_int_equal(job_run(&(struct job_config){
			.soft = d.soft, .count = 3, .nodes = 3 }, death_body, &d, 1 << 1), 0);
}

/* A peer that closes while the other has nothing in flight is no loss. */
static void leave_body(struct job *job)
{
	const char *text;

	job->rail.on_message = job_no_message;
	job->rail.on_peer_error = job_count_error;
	job_connect(job);
	if (job->rank == 1) {
		job_lost(job, 1);
		rail_close(job->ctx);
		return;
	}
	capture_begin(2);
	for (uint64_t until = rg_now_ns() + 2500000000u; rg_now_ns() < until; )
		job_progress(job);
	rail_close(job->ctx);
	text = capture_end();
	CHECK_EQUAL(job_seen.errors, 0);
	if (*text)
		job_fail(__FILE__, __LINE__, "said something: %s", text);
}

static void test_leave(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, leave_body, NULL, 0), 0);
	assert_int_equal(job_run(&(struct job_config){ .soft = "ports=2," MODELLED }, leave_body,
				 NULL, 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_staged), cmocka_unit_test(test_dead_adapter),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_death_in_parts),
		cmocka_unit_test(test_death_of_other_ways),
		cmocka_unit_test(test_death_by_both),
		cmocka_unit_test(test_death_by_slices),
		cmocka_unit_test(test_slow_death),
		cmocka_unit_test(test_leave),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
