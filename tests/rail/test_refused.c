/* test_refused.c - requests that a device refuses, and completions of no lane. */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "rail/lane/lane.h"
#include "rail/lane/pool.h"
#include "rail/lane/staging.h"
#include "rail/lane/wr_id.h"
#include "rail/message/eager.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "traffic.h"

#define MODELLED "rate=20GB/s,latency=1us"

/* ---- Requests ----------------------------------------------------------- */

enum refused {
	REFUSED_EAGER, REFUSED_SIGNALLED, REFUSED_STAGED, REFUSED_PROBE, REFUSED_CHUNK, REFUSALS
};

/* A message of process 0 whose lane's queue pair takes no request. */
static int refused_send(struct job *job, enum refused what, struct rail_op *op, unsigned char *data)
{
	const struct rail_header header = { { 1, 2 } };
	struct rail_lane *lane = job->peer[1]->route[RAIL_SINGLE]->lane;
	const size_t bytes = what == REFUSED_CHUNK ? 65536 : what == REFUSED_STAGED ? 1000 : 8;

	if (what == REFUSED_CHUNK)
		lane = &job->peer[1]->bulk[0];
	if (what == REFUSED_SIGNALLED)
		lane->sq_signalled -= EAGER_SIGNAL;
	if (what == REFUSED_STAGED)
		lane->qp.granted.inline_bytes = 64;
	CHECK_EQUAL(vrb_qp_reset(&lane->qp, job->ctx->rail[lane->rail].port), 0);
	if (what == REFUSED_PROBE)
		return rail_lane_probe(lane);
	return rail_send(job->peer[1], &traffic_ways[0], &header,
			 &(struct rail_buf){ data, bytes, RAIL_MEM_HOST }, 0, op);
}

/* The peer is lost at the first refusal, with the reason in one line; no buffer is lost. */
static void refused_body(struct job *job)
{
	const enum refused what = *(const enum refused *)job->arg;
	struct rail_op op = { .done = job_count_done };
	unsigned char *data = calloc(1, 65536);
	const char *text;
	int rc;

	job->rail.on_message = job_keep_handle;
	job->rail.on_peer_error = job_count_error;
	job_connect(job);
	CHECK_EQUAL(rail_staging_make(job->ctx), 0);
	job_barrier(job);
	capture_begin(2);
	if (job->rank == 0) {
		rc = refused_send(job, what, &op, data);
		CHECK_EQUAL(rc, what == REFUSED_CHUNK ? 0 : -ECONNRESET);
		while (!job_seen.errors)
			job_progress(job);
		CHECK_EQUAL(job_seen.error, -ECONNRESET);
		CHECK_EQUAL(job->ctx->staging.free_count, STAGING);
		CHECK_EQUAL(job_seen.done, what == REFUSED_CHUNK);
	} else if (what == REFUSED_CHUNK) {
		while (!job_seen.handle)
			job_progress(job);
		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle,
					&(struct rail_buf){ data, 65536, RAIL_MEM_HOST }, &op), 0);
	}
	job_barrier(job);
	if (job->rank == 1) {
		rail_peer_fail(job->peer[0], -EPROTO, "to save time");
		while (!job_seen.errors)
			job_progress(job);
	}
	CHECK_EQUAL(job_seen.errors, 1);
	CHECK(!rail_busy(job->ctx));
	job_barrier(job);
	text = capture_end();
	if (strchr(text, '\n') != strrchr(text, '\n') ||
	    (!job->rank && !strstr(text, "peer 1 is lost: soft0:1 refuses a request: Invalid argument")))
		job_fail(__FILE__, __LINE__, "case %d: %s", what, text);
	free(data);
	job_close(job);
}

static void test_refused(void **state)
{
	(void)state;
	for (int what = 0; what < REFUSALS; what++)
		assert_int_equal(job_run(&(struct job_config){
				.soft = what == REFUSED_STAGED ? "ports=1," MODELLED : "ideal,ports=1" },
				refused_body, &what, 0), 0);
}

/* ---- Completions -------------------------------------------------------- */

enum no_lane { NO_SUCH_LANE, RECEIVE_FAILED, NO_QUEUE_PAIR, NO_LANES };

static const char *const no_lane_says[] = {
	[NO_SUCH_LANE] = "peer 0 is lost: soft0:1: receive request: a message for no lane",
	[RECEIVE_FAILED] = "peer 0 is lost: soft0:1: receive request: local length error",
};

static int no_lane_messages;

/* The payload of process 0 has come whole. */
static void take_seven(void *user, const struct rail_message *msg)
{
	uint64_t data;

	(void)user;
	CHECK_EQUAL(msg->bytes, sizeof(data));
	memcpy(&data, msg->payload, sizeof(data));
	CHECK_EQUAL(data, 7);
	no_lane_messages++;
}

/* Process 1: a receive completes that belongs to no lane. */
static void no_lane_body(struct job *job)
{
	const enum no_lane what = *(const enum no_lane *)job->arg;
	const struct rail_header header = { { 1, 2 } };
	struct rail_op op = { .done = job_count_done };
	uint64_t data = 7;
	const char *text;

	job->rail.on_message = take_seven;
	job->rail.on_peer_error = job_count_error;
	job_connect(job);
	capture_begin(2);
	if (job->rank == 0) {
		if (what == NO_SUCH_LANE)
			job->peer[1]->route[RAIL_SINGLE]->wr[0].imm_data = htonl(job->ctx->lane_count);
		if (what != RECEIVE_FAILED)
			CHECK_EQUAL(rail_send(job->peer[1], &traffic_ways[0], &header,
					      &(struct rail_buf){ &data, 8, RAIL_MEM_HOST }, 0, &op), 1);
	} else {
		const struct rail_lane *lane = job->peer[0]->route[RAIL_SINGLE]->lane;
		const struct ibv_wc wc = {
			.wr_id = wr_id(0, WR_RECEIVE, 0, 0), .status = IBV_WC_LOC_LEN_ERR,
			.qp_num = what == RECEIVE_FAILED ? lane->qp.qp->qp_num : 0xffffff,
		};

		if (what != NO_SUCH_LANE)
			rail_pool_arrived(job->ctx, &wc);
		while (!job_seen.errors && !no_lane_messages)
			job_progress(job);
		CHECK_EQUAL(no_lane_messages, what == NO_QUEUE_PAIR);
	}
	job_barrier(job);
	if (job->rank == 0 && what != NO_QUEUE_PAIR) {
		rail_peer_fail(job->peer[1], -EPROTO, "to save time");
		while (!job_seen.errors)
			job_progress(job);
	}
	CHECK_EQUAL(job_seen.errors, what != NO_QUEUE_PAIR);
	CHECK(what == NO_QUEUE_PAIR || job_seen.error == -EPROTO);
	job_barrier(job);
	text = capture_end();
	if (strchr(text, '\n') != strrchr(text, '\n') || (what == NO_QUEUE_PAIR && *text) ||
	    (job->rank && what != NO_QUEUE_PAIR && !strstr(text, no_lane_says[what])))
		job_fail(__FILE__, __LINE__, "case %d: %s", what, text);
	job_close(job);
}

static void test_no_lane(void **state)
{
	(void)state;
	for (int what = 0; what < NO_LANES; what++)
		assert_int_equal(job_run(&(struct job_config){ .soft = "ports=1," MODELLED },
					 no_lane_body, &what, 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_lane),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
