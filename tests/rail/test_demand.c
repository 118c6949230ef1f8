/*
 * test_demand.c - connections that the first message makes: no message is lost or out of
 * order, whoever begins and whatever datagram is lost; a peer without messages costs
 * nothing; differing settings are reported before.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "traffic.h"

#define MODELLED "rate=20GB/s,latency=1us"

static const size_t sizes[] = { 0, 8, 5000, 8193, 300001 };

static void everybody(struct job *job)
{
	const struct traffic t = { .seed = 7, .count = 60, .sizes = sizes, .size_count = 5,
				   .ways = traffic_ways, .way_count = 3, .window = 8,
				   .sync_every = 4, .accept = ACCEPT_RANDOM, .with_self = true };

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	for (int p = 0; p < job->count; p++)
		CHECK(!job->peer[p]->connected && !job->peer[p]->bulk);
	CHECK_EQUAL(job->ctx->lane_count, 0);
	traffic_run(job, &t);
	for (int p = 0; p < job->count; p++) {
		CHECK(job->peer[p]->connected);
		CHECK_EQUAL(job->peer[p]->error, 0);
	}
	job_barrier(job);
	CHECK_EQUAL(job->ctx->unlinked, 0);
	CHECK(!rail_busy(job->ctx));
	job_close(job);
}

static void on(struct job_config config, void (*run)(struct job *))
{
	config.on_demand = true;
	assert_int_equal(job_run(&config, run, NULL, 0), 0);
}

static void test_everybody(void **state)
{
	(void)state;
	on((struct job_config){ .soft = "ideal" }, everybody);
	on((struct job_config){ .soft = "ideal,ports=1", .count = 4 }, everybody);
	on((struct job_config){ .soft = "ports=2," MODELLED, .count = 4 }, everybody);
	on((struct job_config){ .soft = "ideal,ports=4,hcas=2", .count = 3, .qps = 8 }, everybody);
}

/* Lose a fifth of the datagrams and of all other packets. */
static void test_loss(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		on((struct job_config){ .soft = "ports=2,loss=0.2,mtu=4096," MODELLED, .count = 3 },
		   everybody);
}

/* The lower rank sends to its partner; no other pair connects. */
static void one_pair(struct job *job)
{
	static const struct rail_way stripe = { RAIL_STRIPE, 8192, 8192 };
	static unsigned char data[64];
	const struct rail_header header = { { 1, 2 } };
	struct rail_buf buf = { data, sizeof(data), RAIL_MEM_HOST };
	struct rail_op op = { .done = job_count_done };
	int rc;

	job->rail.on_message = job_keep_handle;
	job_connect(job);
	if (job->rank == 0) {
		memset(data, 0x5a, sizeof(data));
		/* rail_send returns before the message has left; done tells when buf is free. */
		rc = rail_send(job->peer[1], &stripe, &header, &buf, RAIL_SEND_SYNC, &op);
		CHECK_EQUAL(rc, 0);
		CHECK(rail_busy(job->ctx));
		while (!job_seen.done)
			job_progress(job);
	} else if (job->rank == 1) {
		while (!job_seen.handle)
			job_progress(job);
		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle, &buf, &op), 0);
		while (!job_seen.done)
			job_progress(job);
		for (size_t i = 0; i < sizeof(data); i++)
			CHECK_EQUAL(data[i], 0x5a);
	}
	job_barrier(job);
	for (int p = 0; p < job->count; p++) {
		bool pair = job->rank < 2 && p == 1 - job->rank;

		CHECK_EQUAL(job->peer[p]->connected, pair);
		CHECK_EQUAL(job->peer[p]->bulk != NULL, pair);
		CHECK_EQUAL(job->peer[p]->block != NULL, pair);
	}
	job_close(job);
}

static void test_one_pair(void **state)
{
	(void)state;
	on((struct job_config){ .soft = "ideal", .count = 4 }, one_pair);
	on((struct job_config){ .soft = "ports=3," MODELLED, .count = 4 }, one_pair);
}

enum { HELD_BYTES = 100000 };

/* Messages that wait for the connection leave the receiver the same choice as later ones. */
static void held_offer(struct job *job)
{
	static const struct rail_way ring = { RAIL_SINGLE, 8192, 8192, .rendezvous = RAIL_BY_RING };
	static unsigned char data[HELD_BYTES];
	const struct rail_header header = { { 1, 2 } };
	struct rail_buf buf = { data, sizeof(data), RAIL_MEM_HOST };
	struct rail_op op = { .done = job_count_done };
	struct rail_traced t;

	job->rail.on_message = job_keep_handle;
	job_connect(job);
	if (job->rank == 0) {
		memset(data, 0x5a, sizeof(data));
		CHECK(!job->peer[1]->connected);
		CHECK_EQUAL(rail_send(job->peer[1], &ring, &header, &buf, 0, &op), 0);
	} else {
		while (!job_seen.handle)
			job_progress(job);
		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle, &buf, &op), 0);
	}
	while (!job_seen.done)
		job_progress(job);
	rail_op_traced(&op, job->rank == 0, &t);
	CHECK(t.ring);
	for (size_t i = 0; i < sizeof(data); i++)
		CHECK_EQUAL(data[i], 0x5a);
	job_barrier(job);
	job_close(job);
}

static void test_held_offer(void **state)
{
	(void)state;
	on((struct job_config){ .soft = "ideal,ports=1" }, held_offer);
}

/* ---- Leaving ---------------------------------------------------------- */

static bool heard;

static void hear(void *user, const struct rail_message *msg)
{
	(void)user;
	(void)msg;
	heard = true;
}

/* Process 1 leaves with the first message, before it has polled for the last datagram. */
static void leave_at_once(struct job *job)
{
	static const struct rail_way bind = { RAIL_BIND, 8192, 8192 };
	static unsigned char data[64];
	const struct rail_header header = { { 1, 2 } };
	struct rail_buf buf = { data, sizeof(data), RAIL_MEM_HOST };
	struct rail_op op = { .done = job_count_done };

	job->rail.on_message = hear;
	job_connect(job);
	if (job->rank == 1) {
		while (!heard)
			job_progress(job);
		rail_close(job->ctx);
		return;
	}
	CHECK(rail_send(job->peer[1], &bind, &header, &buf, 0, &op) >= 0);
	/* A BYE of process 1 keeps this one from sending in vain until retries are exhausted. */
	while (!job->peer[1]->gone && !job->peer[1]->error)
		job_progress(job);
	CHECK_EQUAL(job->peer[1]->error, 0);
	rail_close(job->ctx);
}

static void test_leave_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		on((struct job_config){ .soft = "ideal" }, leave_at_once);
}

/* ---- Agreement ---------------------------------------------------------- */

static void disagree(struct job *job)
{
	unsigned char mine[RAIL_ADDRESS_BYTES];
	int rc;

	job_open_mismatch(job);
	CHECK_EQUAL(rail_address(job->ctx, mine), 0);
	memcpy(job_address(job, job->rank), mine, sizeof(mine));
	job_barrier(job);
	capture_begin(2);
	rc = rail_peer_add(job->ctx, (unsigned)(1 - job->rank), job_address(job, 1 - job->rank),
			   &job->peer[1 - job->rank]);
	job_check_mismatch(job, rc, capture_end());
	/* Any byte of what identifies an address, turned. */
	for (size_t at = 0; at < 8; at++) {
		unsigned char wrong[RAIL_ADDRESS_BYTES];

		memcpy(wrong, mine, sizeof(wrong));
		wrong[at] ^= 0x15;
		capture_begin(2);
		rc = rail_peer_add(job->ctx, (unsigned)job->rank, wrong, &job->peer[job->rank]);
		CHECK(strstr(capture_end(), "another version") && rc < 0);
	}
	job_close(job);
}

static void test_disagreement(void **state)
{
	(void)state;
	assert_int_equal(job_run_mismatches(disagree), 0);
}

/* ---- Whose rail --------------------------------------------------------- */

/* Two nodes with three processes each; the test sets their near rails in place of hwloc. */
static void near_body(struct job *job)
{
	static const unsigned node_of[] = { 0, 0, 0, 1, 1, 1 };
	static const uint32_t near[] = { 7, 4, 7, 1, 1, 6 };
	static const unsigned bound[] = { 0, 2, 1, 0, 0, 1 };
	const struct traffic t = { .seed = 9, .count = 20, .sizes = sizes, .size_count = 2,
				   .ways = &traffic_ways[RAIL_BIND], .way_count = 1, .window = 4 };
	struct rail_ledger l;
	char name[64];

	snprintf(name, sizeof(name), "%s-%u", job->rail.fabric, node_of[job->rank]);
	job->rail.local_fabric = name;
	job->rail.node_of = node_of;
	job->rail.on_message = traffic_on_message;
	job->settings.bind = RAIL_BIND_NEAR;
	job_open(job);
	CHECK_EQUAL(job->ctx->near, 7);		/* nowhere in the machine: none is nearer */
	job->ctx->near = near[job->rank];
	job_connect(job);
	CHECK_EQUAL(job->ctx->bound, bound[job->rank]);
	traffic_run(job, &t);
	/* Each process sends on its own rail, whoever the peer is. */
	for (unsigned r = 0; r < 3; r++) {
		rail_ledger(job->ctx, (int)r, &l);
		CHECK_EQUAL(l.tx_messages, r == bound[job->rank] ? 3 * 20 : 0);
	}
	job_close(job);
}

static void test_near(void **state)
{
	(void)state;
	on((struct job_config){ .soft = "ports=3," MODELLED, .count = 6, .nodes = 2 }, near_body);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_pair),
		cmocka_unit_test(test_held_offer),
		cmocka_unit_test(test_everybody),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_leave_at_once),
		cmocka_unit_test(test_disagreement),
		cmocka_unit_test(test_near),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
