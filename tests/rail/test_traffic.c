/*
 * test_traffic.c - messages of all sizes, policies and kinds of buffer between
 * processes on the software HCA, untimed (memory polled) and modelled (SEND), on
 * one to eight rails: every byte is compared with what it should be.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rail/lane/lane.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/lane/staging.h"
#include "traffic.h"
#include "verbs/vrb.h"

#define MODELLED "rate=20GB/s,latency=1us"

/* Around every limit: slot, inline, eager, threshold, chunk; the LARGE ones last. */
enum { LARGE = 3 };
static const size_t edges[] = {
	0, 1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 1023, 4096, 8127, 8128, 8160, 8161, 8191,
	8192, 8193, 8320, 10000, 12289, 16384, 16385, 65535, 65536, 100001, 262144, 1048575,
	1048576, 1048577, 2097152, 2097153, 3000001, 4194304, 5 << 20, 20000003,
};

struct how {
	enum { PLAIN, TRAILING, STAGED, UNEQUAL } lanes;
	struct traffic traffic;
	/* Messages above the limit: as an option says; eager, as if it was measured; measured. */
	enum { PINNED, LARGE_EAGER, LEARNED } choice;
};

/*
 * Features of real devices: marks after long payloads, hardly any inline space, or an adapter
 * at one end whose memory cannot be polled.
 */
static void bend(struct job *job, const struct how *how)
{
	struct rail_ctx *ctx = job->ctx;

	if (how->lanes == TRAILING)
		for (int a = 0; a < ctx->adapter_count; a++)
			ctx->adapter[a].in_order_writes = false;
	if (how->lanes == UNEQUAL && job->rank % 2) {
		ctx->polled = false;
		for (int a = 0; a < ctx->adapter_count; a++)
			ctx->adapter[a].in_order = false;
	}
}

static void bend_lanes(struct job *job, const struct how *how)
{
	if (how->lanes != STAGED)
		return;
	CHECK_EQUAL(rail_staging_make(job->ctx), 0);
	for (uint32_t i = 0; i < job->ctx->lane_count; i++)
		job->ctx->lane[i]->qp.granted.inline_bytes = 64;
	for (int p = 0; p < job->count; p++)
		memset(job->peer[p]->slice_bytes, 0, sizeof(job->peer[p]->slice_bytes));
}

static void bend_choice(struct job *job, const struct how *how)
{
	struct rail_eager_cell *cell = &job->ctx->eager_choice.cell[0][0];

	for (int i = 0; i < EAGER_LOADS * EAGER_CLASSES; i++) {
		cell[i].seen = UINT16_MAX;
		cell[i].settled = how->choice == LARGE_EAGER;
		cell[i].scheme = how->choice == LARGE_EAGER ? EAGER_SENT : EAGER_OFFERED;
	}
}

static void bend_parts(struct job *job, const struct how *how)
{
	if (!how->traffic.part_bytes)
		return;
	job->ctx->part_bytes = how->traffic.part_bytes;
	for (int p = 0; p < job->count; p++)
		job->peer[p]->table_bytes = 2 * how->traffic.part_bytes;
}

/* The ledgers of all processes and rails, in memory of all. */
static struct rail_ledger (*ledgers)[RAIL_MAX];

/* Bytes that left on a rail arrived on it, whoever moved them. */
static void check_sums(struct job *job, int r)
{
	struct rail_ledger sum = { 0 };

	for (int p = 0; p < job->count; p++) {
		const struct rail_ledger *l = &ledgers[p][r];

		CHECK(l->tx_bytes == 0 || l->tx_messages + l->tx_chunks > 0);
		sum.tx_messages += l->tx_messages - l->rx_messages;
		sum.tx_chunks += l->tx_chunks - l->rx_chunks;
		sum.tx_bytes += l->tx_bytes - l->rx_bytes;
	}
	CHECK_EQUAL(sum.tx_messages, 0);
	CHECK_EQUAL(sum.tx_chunks, 0);
	CHECK_EQUAL(sum.tx_bytes, 0);
}

/* Every receive was in time, and every queue is empty. */
static void check_ledger(struct job *job)
{
	for (int r = 0; r < rail_count(job->ctx); r++)
		rail_ledger(job->ctx, r, &ledgers[job->rank][r]);
	job_barrier(job);
	for (int r = 0; r < rail_count(job->ctx); r++)
		check_sums(job, r);
	for (int p = 0; p < job->count; p++) {
		CHECK_EQUAL(job->peer[p]->error, 0);
		CHECK_EQUAL(job->peer[p]->ops, 0);
		CHECK_EQUAL(job->peer[p]->landings_used, 0);
		/* Without polled memory, lanes share receives. */
		CHECK_EQUAL(job->peer[p]->eager[0].qp.qp->srq == NULL, job->peer[p]->polled);
		for (int i = 0; i < job->peer[p]->rail_count * job->peer[p]->qps; i++)
			{
			const struct rail_lane *lane = &job->peer[p]->bulk[i];

			/* Every receive is posted or owed, no promise is forgotten. */
			CHECK_EQUAL(lane->rq_free + lane->rq_owed, job->ctx->bulk_depth);
			CHECK_EQUAL(lane->pulled, 0);
		}
	}
}

static void body(struct job *job)
{
	const struct how *how = job->arg;

	job->rail.on_message = traffic_on_message;
	job->rail.on_part = traffic_on_part;
	if (how->choice)
		job->settings.eager = RAIL_AUTO;
	job_open(job);
	bend_choice(job, how);
	bend(job, how);
	job_offer(job);
	bend_lanes(job, how);
	CHECK_EQUAL(job_accept_offers(job), 0);
	bend_parts(job, how);
	job_barrier(job);
	rail_all_attached(job->ctx);
	traffic_run(job, &how->traffic);
	check_ledger(job);
	job_close(job);
}

static void run(struct job_config config, struct how how)
{
	how.traffic.ways = how.traffic.ways ? how.traffic.ways : traffic_ways;
	how.traffic.way_count = how.traffic.way_count ? how.traffic.way_count : 3;
	how.traffic.window = how.traffic.window ? how.traffic.window : 1;
	how.traffic.seed = 1;
	if (!ledgers)
		ledgers = mmap(NULL, JOB_MAX * sizeof(*ledgers), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true((void *)ledgers != MAP_FAILED);
	assert_int_equal(job_run(&config, body, &how, 0), 0);
}

/*
 * The variant of a set-up to run: one in each call, drawn by RG_SEED, the next in the next call;
 * RG_LONG=1: ALL of them (`make check-long`).
 */
enum { ALL = -1 };

static int draw(unsigned variants)
{
	static uint64_t state;
	const char *seed = getenv("RG_SEED");

	if (getenv("RG_LONG"))
		return ALL;
	if (!state)
		state = seed ? strtoull(seed, NULL, 0) : 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % variants);
}

static bool is_drawn(int drawn, int variant)
{
	return drawn == ALL || drawn == variant;
}

static struct how most_edges(void)
{
	struct how how = {
		.traffic = { .sizes = edges, .size_count = sizeof(edges) / sizeof(edges[0]) - LARGE },
	};

	how.traffic.count = how.traffic.size_count * 3;
	return how;
}

/* With the large ones, which take most of the time, in one of three. */
static struct how all_edges(void)
{
	struct how how = most_edges();

	if (is_drawn(draw(3), 0))
		how.traffic.size_count += LARGE;
	how.traffic.count = how.traffic.size_count * 3;
	return how;
}

/* To a sanitizer the code matters, and not how often it runs. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* All edges once, with one kind of memory or each. */
static void edges_on(const char *soft, int lanes)
{
	int drawn = draw(2), order = SANITIZED ? draw(3) : ALL;

	for (int arena = 0; arena < 2; arena++) {
		struct how how = all_edges();

		if (!is_drawn(drawn, arena))
			continue;
		how.lanes = lanes;
		how.traffic.arena = arena;
		if (is_drawn(order, 0))
			run((struct job_config){ .soft = soft }, how);
		how = most_edges();
		how.lanes = lanes;
		how.traffic.arena = arena;
		how.traffic.sync_every = 1;
		if (is_drawn(order, 1))
			run((struct job_config){ .soft = soft }, how);
		how.traffic.sync_every = 5;
		how.traffic.window = 16;
		how.traffic.accept = ACCEPT_RANDOM;
		if (is_drawn(order, 2))
			run((struct job_config){ .soft = soft }, how);
	}
}

static void test_edges_1_rail(void **state)
{
	(void)state;
	edges_on("ideal,ports=1", PLAIN);
}

static void test_edges_2_rails(void **state)
{
	(void)state;
	edges_on("ideal,ports=2", PLAIN);
}

static void test_edges_3_rails(void **state)
{
	(void)state;
	edges_on("ideal,ports=3", PLAIN);
}

static void test_edges_8_rails(void **state)
{
	(void)state;
	edges_on("ideal,ports=4,hcas=2", PLAIN);
}

static void test_edges_modelled(void **state)
{
	(void)state;
	edges_on("ports=1," MODELLED, PLAIN);
	edges_on("ports=2," MODELLED, PLAIN);
}

static void test_edges_modelled_8_rails(void **state)
{
	(void)state;
	edges_on("hcas=4,ports=2," MODELLED, PLAIN);
}

/* Eight adapters: a CTS with eight keys. */
static void test_edges_8_adapters(void **state)
{
	struct how how = all_edges();

	(void)state;
	run((struct job_config){ .soft = "ideal,hcas=8,ports=1" }, how);
}

/* Every policy, rendezvous and completion that go together. */
static int all_ways(struct rail_way ways[TRAFFIC_WAYS_MAX], int rails)
{
	static const uint8_t by[] = {
		RAIL_BY_WRITE, RAIL_BY_WRITE, RAIL_BY_READ, RAIL_BY_BOTH, RAIL_BY_TURNS, RAIL_BY_RING,
		RAIL_BY_RING_SHORT, RAIL_BY_RING_LONG,
	};
	int n = 0;

	for (int policy = 0; policy < RAIL_POLICIES; policy++)
		for (int how = 0; how < 8; how++) {
			if ((rail_policies[policy].not_control && how == 1) ||
			    (rail_policies[policy].not_both && how >= 3))
				continue;
			ways[n++] = (struct rail_way){
				.policy = policy, .threshold = 8192, .eager = 8192,
				.rail = (uint8_t)(how % rails),
				.completion = how == 1 ? RAIL_BY_CONTROL : RAIL_BY_IMMEDIATE,
				.rendezvous = by[how],
			};
		}
	return n;
}

/*
 * All ways, all sizes (the largest once), between processes that accept now, later, or only half
 * of some messages; part_bytes: as in traffic.h.
 */
static void ways_in_parts(const char *soft, int rails, int lanes, int qps, size_t part_bytes)
{
	static const size_t sizes[] = {
		0, 1, 127, 128, 129, 8191, 8192, 8193, 8320, 12289, 16385, 65535, 100001, 262144,
		262145, 1048577, (1 << 20) + 3, 3000001, 9 << 20,
	};
	struct rail_way ways[TRAFFIC_WAYS_MAX];
	struct how how = {
		.lanes = lanes,
		.traffic = { .sizes = sizes, .ways = ways, .way_count = all_ways(ways, rails),
			     .part_bytes = part_bytes },
	};

	int drawn = draw(3);

	for (int i = 0; i < 3; i++) {
		if (!is_drawn(drawn, i))
			continue;
		how.traffic.size_count = sizeof(sizes) / sizeof(sizes[0]) -
					 (drawn == ALL ? i > 0 : i > 0 ? 2 : 1);
		how.traffic.count = how.traffic.size_count * how.traffic.way_count;
		how.traffic.window = i ? 24 : 1;
		how.traffic.sync_every = i == 0 ? 1 : i == 1 ? 0 : 5;
		how.traffic.truncate_every = i == 2 ? 3 : 0;
		how.traffic.accept = i == 2 ? ACCEPT_RANDOM : ACCEPT_NOW;
		how.traffic.arena = i != 1;
		run((struct job_config){ .soft = soft, .qps = qps }, how);
	}
}

static void ways_on(const char *soft, int rails, int lanes, int qps)
{
	ways_in_parts(soft, rails, lanes, qps, 0);
}

static void test_parts(void **state)
{
	(void)state;
	ways_in_parts("ideal,ports=1", 1, PLAIN, 1, 16384);
	ways_in_parts("ideal,ports=3", 3, PLAIN, 2, 100096);
	ways_in_parts("ports=2," MODELLED, 2, PLAIN, 1, 49152);
	ways_in_parts("ports=8," MODELLED, 8, PLAIN, 1, 100096);
}

/* Memory in several pieces goes in slices by ways of one rail that leave the choice, or ask for the ring. */
static void test_slices(void **state)
{
	static const size_t sizes[] = { 8193, 32768, 32769, 65536, 65537, 100001, 262144, 1048577, 3000001 };
	struct rail_way ways[] = {
		{ .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_AUTO },
		{ .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_RING },
		{ .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_READ },
		{ .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_RING_SHORT },
		{ .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_RING_LONG },
	};
	struct how how = {
		.lanes = PLAIN,
		.traffic = { .sizes = sizes, .size_count = sizeof(sizes) / sizeof(*sizes), .ways = ways,
			     .way_count = 5, .count = 300, .slices = true },
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		how.traffic.window = i ? 24 : 1;
		how.traffic.sync_every = i == 2 ? 5 : 0;
		how.traffic.truncate_every = i == 2 ? 3 : 0;
		how.traffic.accept = i == 2 ? ACCEPT_RANDOM : ACCEPT_NOW;
		how.traffic.arena = i == 1;
		run((struct job_config){ .soft = "ideal,ports=1" }, how);
	}
}

static void test_ways_polled(void **state)
{
	(void)state;
	ways_on("ideal,ports=1", 1, PLAIN, 1);
	ways_on("ideal,ports=2", 2, PLAIN, 1);
	ways_on("ideal,ports=3", 3, TRAILING, 2);
	ways_on("ideal,hcas=2,ports=2", 4, STAGED, 1);
	ways_on("ideal,ports=3", 3, UNEQUAL, 3);
}

static void test_ways_sent(void **state)
{
	(void)state;
	ways_on("ports=2," MODELLED, 2, PLAIN, 1);
	ways_on("ports=3,rate=20GB/s+5GB/s+10GB/s,latency=1us", 3, STAGED, 3);
	ways_on("ports=8," MODELLED, 8, PLAIN, 1);
}

static void test_queue_pairs(void **state)
{
	static const char *const soft[] = { "ideal,ports=1", "ports=3," MODELLED };
	struct how how = most_edges();

	(void)state;
	how.traffic.window = 16;
	how.traffic.accept = ACCEPT_RANDOM;
	for (int qps = 2; qps <= RAIL_QPS_MAX; qps += 3)
		for (int i = 0; i < 2; i++)
			run((struct job_config){ .soft = soft[i], .qps = qps }, how);
}

static void test_chunks(void **state)
{
	static const char *const soft[] = { "ideal,ports=2", "ports=3," MODELLED };
	static const uint64_t chunk[] = { 16384, 200000, 1 << 20 };	/* 200000: rounded */
	struct how how = most_edges();

	(void)state;
	how.traffic.window = 16;
	for (int c = 0; c < 3; c++)
		run((struct job_config){ .soft = soft[c % 2], .qps = 1 + c, .chunk = chunk[c] }, how);
}

static void test_trailing_marks(void **state)
{
	(void)state;
	edges_on("ideal", TRAILING);
	edges_on("ideal", UNEQUAL);
}

static void test_staged(void **state)
{
	(void)state;
	edges_on("ideal", STAGED);
	edges_on(MODELLED, STAGED);
}

/* Far more messages than credit, in both directions, without waiting. */
static void flood_on(const char *soft, int lanes, size_t max_bytes, int count)
{
	int drawn = draw(2);

	if (drawn != ALL)
		count /= 2;
	for (int arena = 0; arena < 2; arena++)
		if (is_drawn(drawn, arena))
			run((struct job_config){ .soft = soft }, (struct how){
				.lanes = lanes,
				.traffic = { .count = count, .max_bytes = max_bytes, .window = count,
					     .arena = arena, .accept = ACCEPT_RANDOM },
			});
}

static void test_flood_small(void **state)
{
	(void)state;
	flood_on("ideal", PLAIN, 40, 30000);
	flood_on("ports=2," MODELLED, PLAIN, 40, 30000);
}

static void test_flood_eager(void **state)
{
	(void)state;
	flood_on("ideal", PLAIN, 8192, 6000);
	flood_on("ideal,ports=3", TRAILING, 8192, 6000);
	flood_on("ideal", STAGED, 8192, 6000);
	flood_on("ideal", UNEQUAL, 8192, 6000);
	flood_on("ports=2," MODELLED, PLAIN, 8192, 6000);
	flood_on("ports=2," MODELLED, STAGED, 8192, 6000);
}

/* Slices of many messages, between other records that fill the ring. */
static void test_flood_slices(void **state)
{
	static const struct rail_way ring[] = {
		{ .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_RING },
		{ .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_RING },
		{ .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_RING_SHORT },
		{ .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_RING_LONG },
	};

	(void)state;
	for (int accept = ACCEPT_NOW; accept <= ACCEPT_RANDOM; accept++)
		run((struct job_config){ .soft = "ideal,ports=1" }, (struct how){
			.traffic = { .count = 1000, .max_bytes = 600000, .window = 1000, .sync_every = 3,
				     .truncate_every = 5, .ways = ring, .way_count = 4,
				     .accept = accept },
		});
}

static void test_flood_mixed(void **state)
{
	(void)state;
	flood_on("ideal", PLAIN, 1 << 20, 600);
	flood_on("ideal,ports=3", PLAIN, 100000, 2000);
	flood_on("ports=2," MODELLED, PLAIN, 100000, 2000);
}

static const struct rail_way auto_way[] = {
	{ .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192, .rendezvous = RAIL_BY_AUTO,
	  .eager_auto = true },
};

/* Messages of 8 to 64 KiB, one at a time and in rows that fill the ring. */
static void choices_on(int choice, bool one_way, int window)
{
	run((struct job_config){ .soft = "ideal,ports=1" }, (struct how){
		.choice = choice,
		.traffic = { .count = 2000, .max_bytes = 80000, .window = window, .sync_every = 31,
			     .ways = auto_way, .way_count = 1, .one_way = one_way,
			     .accept = ACCEPT_RANDOM },
	});
}

static void test_large_eager(void **state)
{
	(void)state;
	for (int choice = LARGE_EAGER; choice <= LEARNED; choice++)
		for (int one_way = 0; one_way < 2; one_way++) {
			choices_on(choice, one_way, 1);
			choices_on(choice, one_way, 100);
		}
}

/* Ways with limits above the job's. */
static void test_eager_limits_of_ways(void **state)
{
	static const struct rail_way wide[] = {
		{ .policy = RAIL_SINGLE, .threshold = 8192, .eager = 32768 },
		{ .policy = RAIL_SINGLE, .threshold = 8192, .eager = 65536, .rendezvous = RAIL_BY_READ },
		{ .policy = RAIL_SINGLE, .threshold = 8192, .eager = 4096, .completion = RAIL_BY_CONTROL },
	};

	(void)state;
	for (int one_way = 0; one_way < 2; one_way++)
		run((struct job_config){ .soft = "ideal,ports=1" }, (struct how){
			.traffic = { .count = 2000, .max_bytes = 80000, .window = 100, .sync_every = 31,
				     .ways = wide, .way_count = 3, .one_way = one_way,
				     .accept = ACCEPT_RANDOM },
		});
}

/* More rendezvous messages wait than a peer has landings, and are taken last first. */
static void test_accept_last_first(void **state)
{
	static const struct rail_way large[] = { { RAIL_STRIPE, 8192, 8192 } };
	static const char *const soft[] = { "ideal", "ports=3," MODELLED };

	(void)state;
	for (int i = 0; i < 2; i++)
		run((struct job_config){ .soft = soft[i] }, (struct how){
			.traffic = { .count = 500, .max_bytes = 200000, .window = 400,
				     .ways = large, .way_count = 1, .sync_every = 2,
				     .accept = ACCEPT_LATER },
		});
}

static void test_truncated(void **state)
{
	static const char *const soft[] = { "ideal", "ports=2," MODELLED };
	struct how how = all_edges();

	(void)state;
	how.traffic.truncate_every = 2;
	how.traffic.window = 8;
	for (int i = 0; i < 2; i++)
		run((struct job_config){ .soft = soft[i] }, how);
}

/* Three and four processes, on nodes of their own and sharing, each with itself, too. */
static void test_many(void **state)
{
	const int messages = draw(1) == ALL ? 400 : 150;

	(void)state;
	for (int modelled = 0; modelled < 2; modelled++)
		for (int count = 3; count <= 4; count++)
			for (int nodes = 1; nodes <= count; nodes += count - 2)
				run((struct job_config){
					    .soft = modelled ? "ports=2," MODELLED : "ideal",
					    .count = count, .nodes = nodes },
				    (struct how){ .traffic = { .count = messages, .max_bytes = 50000,
							       .window = 32, .with_self = true,
							       .sync_every = 7,
							       .accept = ACCEPT_RANDOM } });
}

static void test_self(void **state)
{
	struct how how = all_edges();

	(void)state;
	how.traffic.with_self = true;
	how.traffic.window = 4;
	run((struct job_config){ .soft = "ideal", .count = 1 }, how);
	run((struct job_config){ .soft = "ports=3," MODELLED, .count = 1 }, how);
}

/* Other limits than the defaults, and none of a kind. */
static void test_other_limits(void **state)
{
	static const uint64_t eager[] = { JOB_ZERO, 1, 32, 64, 4096, 65536 };
	static const uint64_t threshold[] = { 1, 100, 8192, 1 << 20 };

	(void)state;
	for (size_t e = 0; e < sizeof(eager) / sizeof(eager[0]); e++) {
		struct rail_way ways[4];
		struct how how = most_edges();
		int drawn = draw(2);

		for (int w = 0; w < 4; w++)
			ways[w] = (struct rail_way){ RAIL_STRIPE, threshold[w],
						     eager[e] == JOB_ZERO ? 0 : eager[e] };
		ways[3].policy = RAIL_BIND;
		ways[3].eager = 1 << 20;	/* beyond the process's own: held to that */
		how.traffic.ways = ways;
		how.traffic.way_count = 4;
		how.traffic.count = how.traffic.size_count * 4;
		how.traffic.window = 4;
		if (is_drawn(drawn, 0))
			run((struct job_config){ .eager = eager[e] }, how);
		if (is_drawn(drawn, 1))
			run((struct job_config){ .eager = eager[e], .soft = "ports=2," MODELLED },
			    how);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges_1_rail),
		cmocka_unit_test(test_edges_2_rails),
		cmocka_unit_test(test_edges_3_rails),
		cmocka_unit_test(test_edges_8_rails),
		cmocka_unit_test(test_edges_modelled),
		cmocka_unit_test(test_edges_modelled_8_rails),
		cmocka_unit_test(test_edges_8_adapters),
		cmocka_unit_test(test_ways_polled),
		cmocka_unit_test(test_ways_sent),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_queue_pairs),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_trailing_marks),
		cmocka_unit_test(test_staged),
		cmocka_unit_test(test_flood_small),
		cmocka_unit_test(test_flood_eager),
		cmocka_unit_test(test_flood_mixed),
		cmocka_unit_test(test_flood_slices),
		cmocka_unit_test(test_large_eager),
		cmocka_unit_test(test_eager_limits_of_ways),
		cmocka_unit_test(test_accept_last_first),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_other_limits),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
