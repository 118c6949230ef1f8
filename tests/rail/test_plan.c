/*
 * test_plan.c - the numbers of plan.h: of large jobs, and those of a peer that is connected, by a
 * count of its queue pairs, receives, completion queue entries and registered bytes.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <string.h>

#include "rail/lane/cq.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/plan.h"
#include "traffic.h"

static void test_large(void **state)
{
	struct rail_plan_peer p = { .ranks = 1024, .rails = 2, .qps = 1, .polled = true,
				    .eager = rail_plan_eager(1024, false) };
	const uint64_t peers = 128 * (1024 - 128);
	struct rail_plan_need need = rail_plan_most(&p);

	(void)state;
	assert_int_equal(need.queue_pairs, 4);
	assert_int_equal(need.pinned_bytes, 256 + 2 * (64 * 64 + 16384));
	assert_true(peers * need.pinned_bytes < UINT64_C(5) << 30);
	p.polled = false;
	need = rail_plan_most(&p);
	assert_int_equal(need.srq_receives, 2 * 16);
	assert_true(peers * need.pinned_bytes < UINT64_C(16) << 30);
	/* Narrow: one rail, one lane for small messages, one share. */
	p.polled = true;
	need = rail_plan_narrow(&p);
	assert_int_equal(need.queue_pairs, 2);
	assert_int_equal(need.pinned_bytes, 256 + 64 * 64 + 16384);
	assert_int_equal(rail_plan_pairs(&p, 2, 128, 896, true, false), 128 * (896 * 4 + 1));
	assert_int_equal(rail_plan_pairs(&p, 2, 128, 896, true, true), 128 * (896 * 2 + 1));
	assert_int_equal(rail_plan_pairs(&p, 1, 1, 3, true, false), 3 * 2 + 1);
	assert_int_equal(rail_plan_pairs(&p, 1, 1, 3, true, true), 2 * 2 + 1);
	assert_int_equal(rail_plan_pairs(&p, 1, 1, 3, false, false), 3 * 2);
	/* A process reaches itself over the rails if it is alone on its node, or as those of its node do. */
	assert_int_equal(rail_plan_reached(8, 1, false), 8);
	assert_int_equal(rail_plan_reached(8, 2, false), 6);
	assert_int_equal(rail_plan_reached(8, 2, true), 8);
	assert_int_equal(rail_plan_reached(2, 4, false), 0);
	p.ranks = 4;
	need = rail_plan_narrow(&p);
	assert_int_equal(need.pinned_bytes, 256 + 64 * 64 + 16384);
	assert_int_equal(rail_plan_qps(RAIL_AUTO, false), 1);
	assert_int_equal(rail_plan_qps(RAIL_AUTO, true), 2);
	assert_int_equal(rail_plan_qps(0, true), 1);
	assert_int_equal(rail_plan_qps(4, true), 4);
	/* Three of eight rails have eager lanes, two of them in jobs of many ranks. */
	p = (struct rail_plan_peer){ .ranks = 16, .rails = 8, .qps = 1, .eager = 8192 };
	assert_int_equal(rail_plan_most(&p).queue_pairs, 8 + 3);
	p.ranks = RAIL_PLAN_MANY;
	assert_int_equal(rail_plan_most(&p).queue_pairs, 8 + 2);
	/* The shares shrink at one bound, which all ranks know. */
	assert_int_equal(rail_plan_eager(RAIL_PLAN_MANY - 1, false), 8192);
	assert_int_equal(rail_plan_eager(RAIL_PLAN_MANY, false), 4088);
	assert_int_equal(rail_plan_ring(RAIL_PLAN_MANY - 1, 8192, true).units * 64, 128 * 1024);
	assert_int_equal(rail_plan_ring(64, 8192, false).units * 64, 128 * 1024);
	assert_int_equal(rail_plan_ring(64, 8192, true).units * 64, 256 * 1024);
	assert_int_equal(rail_plan_ring(RAIL_PLAN_MANY, 4088, true).units * 64, 16 * 1024);
	assert_int_equal(rail_plan_ring(RAIL_PLAN_MANY, 65536, false).units * 64, 512 * 1024);
}

/* The most peers on other nodes that a rank has on one rail, above an even share. */
static uint32_t most_over(uint32_t nodes, uint32_t each, uint32_t rails)
{
	const uint32_t peers = (nodes - 1) * each, share = (peers + rails - 1) / rails;
	uint32_t over = 0;

	for (uint32_t i = 0; i < nodes * each; i++) {
		const struct rail_plan_place a = { i % nodes, i / nodes };
		uint32_t on[4] = { 0 };

		for (uint32_t j = 0; j < nodes * each; j++) {
			const struct rail_plan_place b = { j % nodes, j / nodes };

			assert_int_equal(rail_plan_rail(a, b, rails), rail_plan_rail(b, a, rails));
			on[rail_plan_rail(a, b, rails)] += a.node != b.node;
		}
		for (uint32_t r = 0; r < rails; r++)
			if (on[r] > share + over)
				over = on[r] - share;
	}
	return over;
}

/* Nodes with many ranks, or few: no rail of a narrow job has much more than its share. */
static void test_narrow_rails(void **state)
{
	(void)state;
	for (uint32_t nodes = 2; nodes <= 8; nodes++)
		for (uint32_t each = 1; each <= 8; each++)
			for (uint32_t rails = 1; rails <= 4; rails++)
				assert_in_range(most_over(nodes, each, rails), 0, 2);
	assert_int_equal(most_over(2, 64, 2), 0);
}

/* ---- A peer ---------------------------------------------------------------- */

/* The resources that the peer of a connected job has taken.  Each number of a lane counts once, made or dropped. */
static struct rail_plan_need taken(struct job *job, const struct rail_peer *peer)
{
	struct rail_plan_need n = { .pinned_bytes = peer->block_bytes };
	const struct rail_geometry *g = &peer->geometry;

	for (uint32_t i = 0; i < job->ctx->lane_count; i++) {
		const struct rail_lane *lane = job->ctx->lane[i];

		CHECK(lane != NULL);		/* none was made to be dropped */
		if (lane->peer != peer)
			continue;
		n.queue_pairs++;
		n.cq_entries += lane->cq_entries;
	}
	for (int i = 0; i < peer->rx_count && !peer->polled; i++) {
		n.srq_receives += g->slots;
		n.pinned_bytes += (uint64_t)g->slots * g->slot_bytes;
	}
	return n;
}

/* The ranks of the job: its processes, or many that are never met. */
static void count_body(struct job *job)
{
	const unsigned ranks = *(const unsigned *)job->arg;
	static const size_t sizes[] = { 8 };
	const struct traffic t = { .seed = 3, .count = 4, .sizes = sizes, .size_count = 1,
				   .ways = traffic_ways, .way_count = 3, .window = 4 };
	struct rail_plan_peer p = { .ranks = ranks, .qps = 1, .eager = 8192 };
	struct rail_plan_need is, should;
	const struct rail_peer *peer;

	job->rail.on_message = traffic_on_message;
	job->rail.peer_count = ranks;
	job_connect(job);
	traffic_run(job, &t);
	peer = job->peer[!job->rank];
	p.rails = (uint32_t)peer->rail_count;
	p.polled = peer->polled;
	p.copied = peer->copies;
	p.bulk_depth = job->ctx->bulk_depth;
	is = taken(job, peer);
	/*
	 * Two processes of two nodes: 0 sends on the first rail, 1 on the second one; of many ranks
	 * both on the second one.
	 */
	p.eager_lanes = p.rails > 1 ? 2 : 1;
	p.inboxes = p.rails > 1 && (job->rank == 0 || ranks >= RAIL_PLAN_MANY) ? 2 : 1;
	should = rail_plan_need(&p);
	CHECK_EQUAL(is.queue_pairs, should.queue_pairs);
	CHECK_EQUAL(is.cq_entries, should.cq_entries);
	CHECK_EQUAL(is.srq_receives, should.srq_receives);
	CHECK_EQUAL(is.pinned_bytes, should.pinned_bytes);
	should = rail_plan_most(&p);
	CHECK(is.queue_pairs == should.queue_pairs || (p.rails > 2 && is.queue_pairs < should.queue_pairs));
	CHECK(is.pinned_bytes <= should.pinned_bytes);
	CHECK(job->rank || is.pinned_bytes == should.pinned_bytes);
	job_close(job);
}

static void test_count(void **state)
{
	static const char *const soft[] = {
		"ports=1", "ports=2", "ports=8", "ports=2,rate=20GB/s,latency=1us",
		"ports=5,rate=20GB/s,latency=1us", "ports=2,order=never",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(soft) / sizeof(*soft); i++)
		for (unsigned ranks = 2; ranks <= 1024; ranks *= 512)
			assert_int_equal(job_run(&(struct job_config){
					.soft = soft[i], .on_demand = true }, count_body, &ranks, 0), 0);
}

/* ---- Shared receive queues ------------------------------------------------- */

/* An SRQ that is full is followed by another one. */
static void srqs_body(struct job *job)
{
	static const size_t sizes[] = { 8, 5000 };
	const struct traffic t = { .seed = 3, .count = 40, .sizes = sizes, .size_count = 2,
				   .ways = traffic_ways, .way_count = 3, .window = 8 };

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	traffic_run(job, &t);
	CHECK(job->ctx->pool_count >= *(const uint32_t *)job->arg);
	for (int r = 0; r < job->count; r++)
		CHECK(r == job->rank || !job->peer[r]->polled);
	job_close(job);
}

static void test_srqs(void **state)
{
	static const struct { const char *soft; uint32_t srqs; } cases[] = {
		{ "ports=1,order=never", 1 },
		{ "ports=1,order=never,srqwr=128", 4 },
		{ "ports=2,order=never,srqwr=100", 4 },
		{ "ports=2,order=never,srqwr=1000,rate=20GB/s,latency=1us", 1 },
		{ "ports=2,order=never,srqwr=128,srq=3", 4 },	/* the fourth is none */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(job_run(&(struct job_config){
				.soft = cases[i].soft, .count = 5, .on_demand = true },
				srqs_body, &cases[i].srqs, 0), 0);
}

/* ---- Polling ----------------------------------------------------------------- */

/* Every call polls for the messages of a peer that sends; the other end may poll memory alone. */
static void polled_body(struct job *job)
{
	static const size_t sizes[] = { 8, 5000 };
	const struct traffic t = { .seed = 3, .count = 40, .sizes = sizes, .size_count = 2,
				   .ways = traffic_ways, .way_count = 3, .window = 8 };
	const bool *polled = job->arg;

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	traffic_run(job, &t);
	CHECK_EQUAL(job->peer[!job->rank]->polled, polled[job->rank]);
	CHECK_EQUAL(job->ctx->polled, polled[job->rank]);
	job_close(job);
}

static void test_polled(void **state)
{
	static const struct { const char *soft; bool polled[2]; } cases[] = {
		{ "ports=1", { true, true } },
		{ "ports=2,order=never", { false, false } },
		{ "ports=2,order=memory/never", { true, false } },
		{ "ports=2,inline=none/0", { false, false } },	/* 1 cannot write a slot */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(job_run(&(struct job_config){ .soft = cases[i].soft, .on_demand = true },
					 polled_body, (void *)cases[i].polled, 0), 0);
}

/* ---- Credit by SEND --------------------------------------------------------- */

enum { ROUNDS = 4000, PROBES = 60 };	/* a probe of an idle lane: one a second */

static int arrived;

static void count_message(void *user, const struct rail_message *msg)
{
	(void)user;
	(void)msg;
	arrived++;
}

static void send_empty(struct job *job)
{
	const struct rail_way way = { .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192 };
	const struct rail_header header = { { 1, 2 } };
	struct rail_buf buf = { .addr = NULL, .kind = RAIL_MEM_HOST };
	struct rail_op op = { .done = job_count_done };
	const int before = job_seen.done, rc = rail_send(job->peer[!job->rank], &way, &header, &buf, 0, &op);

	CHECK(rc >= 0);
	while (!rc && job_seen.done == before)
		job_progress(job);
}

/* Answers carry credit: ROUNDS of them leave no grants. */
static void credit_body(struct job *job)
{
	const struct rail_lane *lane;

	job->rail.on_message = count_message;
	job_connect(job);
	lane = job->peer[!job->rank]->rx[0].lane;
	CHECK(!job->peer[!job->rank]->polled);
	for (int round = 1; round <= ROUNDS; round++) {
		if (job->rank == 0)
			send_empty(job);
		while (arrived < round)
			job_progress(job);
		if (job->rank == 1)
			send_empty(job);
	}
	CHECK(lane->sq_posted < ROUNDS + PROBES);
	job_barrier(job);
	job_close(job);
}

static void test_credit(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "rate=20GB/s,latency=1us" }, credit_body,
				 NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large), cmocka_unit_test(test_narrow_rails), cmocka_unit_test(test_count),
		cmocka_unit_test(test_srqs), cmocka_unit_test(test_polled),
		cmocka_unit_test(test_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
