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
#include "random.h"
#include "traffic.h"

static void test_large(void **state)
{
	struct rail_plan_peer p = { .ranks = 1024, .rails = 2, .qps = 1, .polled = true,
				    .eager = rail_plan_eager(1024, false) };
	const uint64_t peers = 128 * (1024 - 128);
	const struct rail_plan_node big = { .ranks = 1024, .first = 256, .processes = 128 };
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
	assert_int_equal(rail_plan_pairs(&p, &big, 3, false), 128 * (896 * 4 + 1));
	assert_int_equal(rail_plan_pairs(&p, &big, 3, true), 128 * (896 * 2 + 1));
	assert_int_equal(rail_plan_pairs(&p, &(struct rail_plan_node){ 3, 0, 1, false }, 1, false), 3 * 2 + 1);
	assert_int_equal(rail_plan_pairs(&p, &(struct rail_plan_node){ 3, 0, 1, false }, 1, true), 2 * 2 + 1);
	assert_int_equal(rail_plan_pairs(&p, &(struct rail_plan_node){ 3, 1, 1, false }, 1, true), 1 * 2 + 1);
	assert_int_equal(rail_plan_pairs(&p, &(struct rail_plan_node){ 3, 0, 1, false }, 2, false), 3 * 2);
	/* A process reaches itself over the rails if it is alone on its node, or as those of its node do. */
	assert_int_equal(rail_plan_reached(&(struct rail_plan_node){ 8, 0, 1, false }), 8);
	assert_int_equal(rail_plan_reached(&(struct rail_plan_node){ 8, 0, 2, false }), 6);
	assert_int_equal(rail_plan_reached(&(struct rail_plan_node){ 8, 0, 2, true }), 8);
	assert_int_equal(rail_plan_reached(&(struct rail_plan_node){ 2, 0, 4, false }), 0);
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

/* ---- Narrow jobs ----------------------------------------------------------- */

enum { NODES = 6 };

/* A job: nodes with so many ranks.  Ranks are numbered node by node, however the launcher places them. */
struct placed {
	uint32_t nodes, ranks[NODES], all;
	bool meets;
};

static uint32_t first_of(const struct placed *job, uint32_t node)
{
	uint32_t first = 0;

	for (uint32_t n = 0; n < node; n++)
		first += job->ranks[n];
	return first;
}

/* The peers of a rank over each rail, one by one. */
static void counted(const struct placed *job, uint32_t node, uint32_t rank, uint32_t rails, uint64_t *on)
{
	memset(on, 0, rails * sizeof(*on));
	for (uint32_t other = 0; other < job->nodes; other++)
		for (uint32_t b = first_of(job, other); b < first_of(job, other + 1); b++) {
			assert_int_equal(rail_plan_rail(rank, b, rails), rail_plan_rail(b, rank, rails));
			on[rail_plan_rail(rank, b, rails)] += other != node || job->meets || job->ranks[node] == 1;
		}
}

/* No rail has much more than its share, and the arithmetic of each set of rails is that count. */
static void node_is_exact(const struct placed *job, uint32_t node, uint32_t rails)
{
	const struct rail_plan_node of = { job->all, first_of(job, node), job->ranks[node], job->meets };
	const struct rail_plan_peer p = { .ranks = job->all, .rails = rails, .qps = 1, .eager = 8192 };
	const struct rail_plan_need need = rail_plan_narrow(&p);
	uint64_t sum[1 << 4] = { 0 }, most[1 << 4] = { 0 };

	for (uint32_t rank = 0; rank < of.processes; rank++) {
		uint64_t on[4], peers = 0;

		counted(job, node, (uint32_t)of.first + rank, rails, on);
		for (uint32_t r = 0; r < rails; r++)
			peers += on[r];
		assert_int_equal(peers, rail_plan_reached(&of));
		for (uint32_t r = 0; r < rails; r++)
			assert_in_range(on[r], 0, (peers + rails - 1) / rails + 1);
		for (uint32_t set = 1; set < 1u << rails; set++) {
			uint64_t n = 0;

			for (uint32_t r = 0; r < rails; r++)
				n += set >> r & 1 ? on[r] : 0;
			assert_int_equal(rail_plan_connections(&of, of.first + rank, 1, rails, set, true), n);
			assert_int_equal(rail_plan_entries(&p, &of, (int64_t)of.first + rank, set, true),
					 n * need.cq_entries);
			sum[set] += n;
			most[set] = n > most[set] ? n : most[set];
		}
	}
	for (uint32_t set = 1; set < 1u << rails; set++) {
		assert_int_equal(rail_plan_pairs(&p, &of, set, true),
				 sum[set] * need.queue_pairs + (set & 1) * of.processes);
		assert_int_equal(rail_plan_entries(&p, &of, -1, set, true), most[set] * need.cq_entries);
	}
}

/* Nodes with many ranks, or few, or unlike numbers. */
static void test_narrow_rails(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		struct placed job = { .nodes = 2 + (uint32_t)random_below(&random, NODES - 1), .meets = i % 3 == 0 };

		for (uint32_t n = 0; n < job.nodes; n++)
			job.all += job.ranks[n] = 1 + (i % 2 ? i % 9 : (uint32_t)random_below(&random, 9));
		for (uint32_t rails = 1; rails <= 4; rails++)
			for (uint32_t n = 0; n < job.nodes; n++)
				node_is_exact(&job, n, rails);
	}
}

/* Objects of three ranks on nodes of their own, each of which reaches itself as well. */
static void test_objects(void **state)
{
	const struct rail_plan_peer p = { .ranks = 3, .rails = 2, .qps = 1, .eager = 8192 };
	const struct rail_plan_node node = { .ranks = 3, .processes = 1 }, four = { .ranks = 12, .processes = 4 };

	(void)state;
	/* Of 3 peers 4 queue pairs, a block, receives of 2 inboxes, an address handle; one queue pair for datagrams. */
	assert_int_equal(rail_plan_objects(&p, &node, 3, false), 3 * (4 + 1 + 2 + 1) + 1 + RAIL_PLAN_OBJECTS);
	/* The second rail has no datagrams. */
	assert_int_equal(rail_plan_objects(&p, &node, 2, false), 3 * (2 + 1 + 1) + RAIL_PLAN_OBJECTS);
	/* Ranks 0 and 2 have the first rail. */
	assert_int_equal(rail_plan_objects(&p, &node, 1, true), 2 * (2 + 1 + 1) + 3 + 1 + RAIL_PLAN_OBJECTS);
	assert_int_equal(rail_plan_objects(&p, &four, 3, false), 4 * (8 * (4 + 1 + 2 + 1) + 1 + RAIL_PLAN_OBJECTS));
}

/* ---- Completion queues ------------------------------------------------------- */

static void test_queues(void **state)
{
	(void)state;
	/* All of few peers fit in one; locked memory is rounded up to a power of two. */
	assert_int_equal(rail_plan_cq_size(1542, 514, 1 << 20), 4095);
	assert_int_equal(rail_plan_cq_size(1534, 514, 1 << 20), 2047);
	assert_int_equal(rail_plan_cq_size(1534, 514, 1000), 1000);
	assert_int_equal(rail_plan_cq_size(0, 514, 1 << 20), 1023);
	assert_int_equal(rail_plan_cq_size(1 << 20, 514, 1 << 20), 65535);
	assert_int_equal(rail_plan_cq_bytes(1542, 514, 1 << 22, UINT64_MAX), 4096 * 64);
	/* A bound makes them smaller, while a lane fits: 2048 and 1024. */
	assert_int_equal(rail_plan_cq_bytes(1542, 514, 1 << 22, 4096 * 64 - 1), 3072 * 64);
	assert_int_equal(rail_plan_cq_bytes(1542, 514, 1 << 22, 3072 * 64 - 1), 0);
	assert_int_equal(rail_plan_cq_bytes(1 << 20, 514, 1 << 22, UINT64_MAX), UINT64_C(16) * 65536 * 64 + 16384 * 64);
	assert_int_equal(rail_plan_cq_bytes(0, 514, 1 << 22, UINT64_MAX), 0);
	/* A device has smaller ones: of 1000 entries, as 1024 are locked, lanes have 487 for certain. */
	assert_int_equal(rail_plan_cq_holds(1000, 514), 487);
	assert_int_equal(rail_plan_cq_holds(513, 514), 0);
	assert_int_equal(rail_plan_cq_bytes(1542, 514, 1000, UINT64_MAX), 4 * 1024 * 64);
	assert_int_equal(rail_plan_cq_bytes(1542, 514, 1024, UINT64_MAX), 3 * 2048 * 64 + 1024 * 64);
	assert_int_equal(rail_plan_cq_bytes(1 << 20, 514, 4095, UINT64_MAX), (((1 << 20) + 3581) / 3582) * 4096 * 64);
	assert_int_equal(rail_plan_cq_bytes(1542, 514, 500, UINT64_MAX), 0);
	/* Large messages are fewer at once where the device has less. */
	assert_int_equal(rail_plan_depth_fits(256, 0, 0), 256);
	assert_int_equal(rail_plan_depth_fits(256, 257, 514), 256);
	assert_int_equal(rail_plan_depth_fits(256, 256, 514), 128);
	assert_int_equal(rail_plan_depth_fits(256, 257, 513), 128);
	assert_int_equal(rail_plan_depth_fits(256, 1, 1), 64);
	/* Receives of SENDs are fewer, too: 128 sends, the receives, and 2. */
	assert_int_equal(rail_plan_send(2, 8192, 0).slots, 128);
	assert_int_equal(rail_plan_send(2, 8192, 258).slots, 128);
	assert_int_equal(rail_plan_send(2, 8192, 257).slots, 64);
	assert_int_equal(rail_plan_send(2, 8192, 193).slots, 32);
	assert_int_equal(rail_plan_send(2, 8192, 160).slots, 16);
	assert_int_equal(rail_plan_cq_least(rail_plan_cq_least(0, 300), 200), 200);
	assert_int_equal(rail_plan_cq_least(rail_plan_cq_least(200, 300), 0), 200);
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
	p.cq_most = job->ctx->cq_most;
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
		"ports=5,rate=20GB/s,latency=1us", "ports=2,order=never", "ports=2,order=never,maxcqe=200",
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
		cmocka_unit_test(test_large), cmocka_unit_test(test_narrow_rails),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_queues), cmocka_unit_test(test_count),
		cmocka_unit_test(test_srqs), cmocka_unit_test(test_polled),
		cmocka_unit_test(test_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
