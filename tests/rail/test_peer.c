/*
 * test_peer.c - all but messages: selection, agreement, the ledger, the end of a
 * synchronous send, memory kinds.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "util/opt.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/open/options.h"
#include "rail/peer/connect.h"
#include "rail/peer/endpoint_info.h"
#include "rail/peer/peer.h"
#include "traffic.h"
#include "verbs/vrb.h"

#define MODELLED "rate=20GB/s,latency=1us"

/* ---- Ledger ------------------------------------------------------------- */

static void ledger_body(struct job *job)
{
	static const struct rail_way stripe[] = { { RAIL_STRIPE, 8192, 8192 } };
	static const size_t size[] = { 1 << 20 };
	const struct traffic t = { .seed = 3, .count = 64, .sizes = size, .size_count = 1,
				   .ways = stripe, .way_count = 1, .window = 8, .one_way = true };
	struct rail_ledger l[2];

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	traffic_run(job, &t);
	for (int r = 0; r < 2; r++) {
		uint64_t bytes, chunks;

		rail_ledger(job->ctx, r, &l[r]);
		bytes = job->rank == 0 ? l[r].tx_bytes : l[r].rx_bytes;
		chunks = job->rank == 0 ? l[r].tx_chunks : l[r].rx_chunks;
		/* 50 % +- 2 of all bytes on either rail, and not one more or less in all. */
		CHECK(bytes > 64u * (1 << 20) * 48 / 100 && bytes < 64u * (1 << 20) * 52 / 100);
		CHECK_EQUAL(chunks, 64 * 8);		/* chunks have 64 KiB */
		CHECK_EQUAL(job->rank == 0 ? l[r].rx_bytes : l[r].tx_bytes, 0);
		CHECK_EQUAL(l[r].tx_messages + l[r].rx_messages, 0);
	}
	CHECK_EQUAL(l[0].tx_bytes + l[0].rx_bytes + l[1].tx_bytes + l[1].rx_bytes, 64u << 20);
	job_close(job);
}

static void test_ledger_stripe(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, ledger_body, NULL, 0), 0);
	assert_int_equal(job_run(&(struct job_config){ .soft = "ports=2," MODELLED }, ledger_body,
				 NULL, 0), 0);
}

/* ---- Probes ------------------------------------------------------------- */

static struct ibv_send_wr posted;

static int keep_request(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	posted = *wr;
	return 0;
}

/* An empty write names the peer's block by its key, on each lane. */
static void probe_check(struct rail_lane *lane)
{
	struct ibv_context_ops *ops = &lane->qp.qp->context->ops;
	const struct ibv_context_ops before = *ops;
	const struct rail_peer *self = lane->peer;

	ops->post_send = keep_request;
	CHECK_EQUAL(rail_lane_probe(lane), 1);
	*ops = before;
	lane->sq_posted--;
	lane->sq_signalled = lane->sq_posted;
	lane->ctx->cq_wanted--;
	CHECK_EQUAL(posted.num_sge, 0);
	CHECK_EQUAL(posted.wr.rdma.rkey, self->block_mr[peer_adapter(self, lane->k)]->rkey);
	CHECK_EQUAL(posted.wr.rdma.remote_addr, (uintptr_t)rail_block_grant_in(self, LANE_SINGLE));
}

/* The peer is this process itself, so that its keys are known. */
static void probe_body(struct job *job)
{
	static const size_t sizes[] = { 8 };
	const struct traffic t = { .seed = 3, .count = 4, .sizes = sizes, .size_count = 1,
				   .ways = traffic_ways, .way_count = 3, .window = 4,
				   .with_self = true };
	struct rail_peer *self;

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	traffic_run(job, &t);
	self = job->peer[job->rank];
	for (int k = 0; k < self->rail_count; k++) {
		if (self->eager[k].qp.qp)
			probe_check(&self->eager[k]);
		probe_check(peer_bulk(self, k, 0));
	}
	job_close(job);
}

static void test_probe(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, probe_body, NULL, 0), 0);
}

/* P1's binding: one process per node, each sends on one rail and receives on the other. */
static void bind_body(struct job *job)
{
	static const struct rail_way bind[] = { { RAIL_BIND, 8192, 8192 } };
	static const size_t sizes[] = { 8, 100, 100000 };
	const struct traffic t = { .seed = 3, .count = 30, .sizes = sizes, .size_count = 3,
				   .ways = bind, .way_count = 1, .window = 4 };

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	traffic_run(job, &t);
	for (int r = 0; r < 2; r++) {
		struct rail_ledger l;
		bool out = (r == 0) == (job->rank == 0);

		rail_ledger(job->ctx, r, &l);
		CHECK_EQUAL(l.tx_messages, out ? 20 : 0);
		CHECK_EQUAL(l.tx_chunks, out ? 10 : 0);	/* each of 100,000 bytes, in one call */
		CHECK_EQUAL(l.tx_bytes, out ? 10 * (8 + 100 + 100000) : 0);
		CHECK_EQUAL(l.rx_messages, out ? 0 : 20);
		CHECK_EQUAL(l.rx_bytes, out ? 0 : 10 * (8 + 100 + 100000));
	}
	job_close(job);
}

static void test_ledger_bind(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, bind_body, NULL, 0), 0);
}

/* ---- Peers on one node -------------------------------------------------- */

/* Four processes on two nodes with modelled rails: neighbours talk through memory. */
static void local_body(struct job *job)
{
	static const unsigned node_of[] = { 0, 0, 1, 1 };
	static const size_t sizes[] = { 8, 5000, 100000 };
	const struct traffic t = { .seed = 5, .count = 36, .sizes = sizes, .size_count = 3,
				   .ways = traffic_ways, .way_count = 3, .window = 4,
				   .with_self = true };
	const uint64_t all = 12 * (8 + 5000 + 100000);
	bool soft = job->settings.intranode == RAIL_INTRANODE_SOFT;
	struct rail_ledger l, sum = { 0 };
	struct rail_info info;
	char name[64];

	snprintf(name, sizeof(name), "%s-%u", job->rail.fabric, node_of[job->rank]);
	job->rail.local_fabric = name;
	job->rail.node_of = node_of;
	job->rail.on_message = traffic_on_message;
	job_connect(job);
	traffic_run(job, &t);
	CHECK_EQUAL(rail_count(job->ctx), 2);
	CHECK_EQUAL(rail_local(job->ctx), soft ? 2 : -1);
	/* Each adapter's completion queue has room for all peers. */
	CHECK_EQUAL(job->ctx->cq_count, job->ctx->adapter_count);
	for (int r = 0; r < 2; r++) {
		rail_info(job->ctx, r, &info);
		CHECK(!info.local && !info.polls_memory);
		rail_ledger(job->ctx, r, &l);
		sum.tx_bytes += l.tx_bytes;
		sum.rx_bytes += l.rx_bytes;
	}
	/* Two peers on the other node; here a neighbour and this process. */
	CHECK_EQUAL(sum.tx_bytes, (soft ? 2 : 4) * all);
	CHECK_EQUAL(sum.rx_bytes, (soft ? 2 : 4) * all);
	if (soft) {
		rail_info(job->ctx, 2, &info);
		CHECK(info.local && info.polls_memory && !strcmp(info.name, "local"));
		rail_ledger(job->ctx, 2, &l);
		CHECK_EQUAL(l.tx_bytes, 2 * all);
		CHECK_EQUAL(l.rx_bytes, 2 * all);
		CHECK(strstr(rail_fabric_text(job->ctx), "by memory") != NULL);
	}
	job_close(job);
}

static void test_local(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .count = 4, .nodes = 2,
				 .soft = "ports=2," MODELLED }, local_body, NULL, 0), 0);
	assert_int_equal(job_run(&(struct job_config){ .count = 4, .nodes = 2, .over_hca = true,
				 .soft = "ports=2," MODELLED }, local_body, NULL, 0), 0);
}

/* ---- Synchronous sends -------------------------------------------------- */

static void sync_body(struct job *job)
{
	const size_t bytes = *(const size_t *)job->arg;
	const struct rail_way way = traffic_ways[RAIL_STRIPE];
	static unsigned char data[64];
	struct rail_buf buf = { data, bytes, RAIL_MEM_HOST };
	struct rail_op op = { .done = job_count_done };
	uint64_t until;

	job->rail.on_message = job_keep_handle;
	job_connect(job);
	if (job->rank == 0) {
		struct rail_header header = { { 1, 2 } };

		CHECK_EQUAL(rail_send(job->peer[1], &way, &header, &buf, RAIL_SEND_SYNC, &op), 0);
		CHECK(rail_busy(job->ctx));
		/* Time enough for everything that could complete it too early. */
		for (until = rg_now_ns() + 50000000; rg_now_ns() < until; )
			job_progress(job);
		CHECK_EQUAL(job_seen.done, 0);
		job_barrier(job);
	} else {
		while (!job_seen.handle)
			job_progress(job);
		job_barrier(job);
		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle, &buf, &op), 0);
	}
	while (!job_seen.done)
		job_progress(job);
	CHECK_EQUAL(job_seen.status, 0);
	while (rail_busy(job->ctx))
		job_progress(job);
	CHECK_EQUAL(job_seen.done, 1);
	if (job->rank == 1) {
		/* A handle is good for once. */
		capture_begin(2);
		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle, &buf, &op), -EINVAL);
		CHECK(strstr(capture_end(), "no message waits") != NULL);
	}
	job_close(job);
}

static void test_sync(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes <= 64; bytes += 32)
		for (int modelled = 0; modelled < 2; modelled++)
			assert_int_equal(job_run(&(struct job_config){
					.soft = modelled ? "ports=2," MODELLED : "ideal" },
					sync_body, &bytes, 0), 0);
}

/* ---- Agreement ---------------------------------------------------------- */

static void mismatch_body(struct job *job)
{
	int rc;

	job_open_mismatch(job);
	job_offer(job);
	capture_begin(2);
	rc = job_accept_offers(job);
	job_check_mismatch(job, rc, capture_end());
	job_close(job);
}

static void test_mismatch(void **state)
{
	(void)state;
	assert_int_equal(job_run_mismatches(mismatch_body), 0);
}

/* Offers that no librail would make. */
static void garbage_body(struct job *job)
{
	unsigned char offer[ENDPOINT_INFO_BYTES];
	const char *text;

	job->rail.on_message = job_no_message;
	job_open(job);
	CHECK_EQUAL(rail_peer_new(job->ctx, 0, &job->ctx->peer[0]), 0);
	job->peer[0] = job->ctx->peer[0];
	CHECK_EQUAL(rail_peer_prepare(job->peer[0], offer), 0);
	/* Sender, receiver, number of rails, limits; the local rank may be anything. */
	for (size_t at = 0; at < 40; at = at == 15 ? 20 : at + 1) {
		unsigned char wrong[ENDPOINT_INFO_BYTES];
		int rc;

		memcpy(wrong, offer, sizeof(wrong));
		wrong[at] ^= 0x15;
		capture_begin(2);
		rc = rail_peer_link(job->peer[0], wrong);
		text = capture_end();
		if (!rc || !*text || strchr(text, '\n') != strrchr(text, '\n'))
			job_fail(__FILE__, __LINE__, "byte %zu of the offer: %d, %s", at, rc, text);
	}
	memset(offer, 0, sizeof(offer));
	capture_begin(2);
	CHECK(rail_peer_link(job->peer[0], offer) < 0);
	CHECK(strstr(capture_end(), "another version") != NULL);
	job_close(job);
}

static void test_garbage(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .count = 1 }, garbage_body, NULL, 0), 0);
}

/* ---- Selection ---------------------------------------------------------- */

struct selection {
	const char *rails, *soft;
	int rc;
	const char *first, *says;
	int count;
};

static void selection_body(struct job *job)
{
	const struct selection *s = job->arg;
	const char *text;
	int rc;

	job->rail.on_message = job_no_message;
	job->settings.rails = s->rails;
	capture_begin(2);
	rc = rail_open(&job->rail, &job->ctx);
	text = capture_end();
	if (s->rc) {
		CHECK_EQUAL(rc, s->rc);
		if (!strstr(text, s->says) || !strstr(text, "--rails") ||
		    strchr(text, '\n') != strrchr(text, '\n'))
			job_fail(__FILE__, __LINE__, "not one line with '%s': %s", s->says, text);
	} else {
		struct rail_info info;

		CHECK_EQUAL(rc, 0);
		CHECK_EQUAL(rail_count(job->ctx), s->count);
		rail_info(job->ctx, 0, &info);
		CHECK(!strcmp(info.name, s->first));
		CHECK(info.fabric == RAIL_FABRIC_SOFTHCA);
		rail_close(job->ctx);
	}
}

static void test_selection(void **state)
{
	static const struct selection cases[] = {
		{ "all", "ideal", 0, "soft0:1", NULL, 2 },
		{ NULL, "ideal,hcas=2,ports=4", 0, "soft0:1", NULL, 8 },
		{ "soft0:2", "ideal", 0, "soft0:2", NULL, 1 },
		{ "soft0:2,soft0:1", "ideal", 0, "soft0:2", NULL, 2 },
		{ "soft1:1,soft0:2", "ideal,hcas=2", 0, "soft1:1", NULL, 2 },
		{ "soft0:2;nowhere=x:1", "ideal", 0, "soft0:2", NULL, 1 },
		{ "all;nowhere=x:1,y:1", "ideal", 0, "soft0:1", NULL, 2 },
		{ "nowhere=x:1", "ideal", 0, "soft0:1", NULL, 2 },
		{ "all;x:1", "ideal", -EINVAL, NULL, "'x:1' names no host", 0 },
		{ "all;nowhere=x", "ideal", -EINVAL, NULL, "'x' is not DEVICE:PORT", 0 },
		{ "all;", "ideal", -EINVAL, NULL, "'' names no host", 0 },
		{ "soft0:3", "ideal", -ENODEV, NULL, "accepted: all, soft0:1, soft0:2", 0 },
		{ "mlx5_0:1", "ideal", -ENODEV, NULL, "mlx5_0:1: there is no such port", 0 },
		{ "soft0:1,soft0:1", "ideal", -EINVAL, NULL, "soft0:1 is listed twice", 0 },
		{ "soft0", "ideal", -EINVAL, NULL, "'soft0' is not DEVICE:PORT", 0 },
		{ "", "ideal", -EINVAL, NULL, "'' is not DEVICE:PORT", 0 },
		{ "soft0:1,", "ideal", -EINVAL, NULL, "'' is not DEVICE:PORT", 0 },
		{ ":1", "ideal", -EINVAL, NULL, "':1' is not DEVICE:PORT", 0 },
		{ "soft0:x", "ideal", -EINVAL, NULL, "'soft0:x' is not DEVICE:PORT", 0 },
		{ "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1", "ideal", -EINVAL, NULL, "up to 8", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(job_run(&(struct job_config){ .count = 1, .soft = cases[i].soft },
					 selection_body, &cases[i], 0), 0);
}

static void test_host_list(void **state)
{
	static const char text[] = "a:1,b:1;n1=c:1;n2.domain=d:1,e:1";

	(void)state;
	assert_string_equal(rail_list_of_host(text, "other"), text);
	assert_string_equal(rail_list_of_host(text, "n1"), strstr(text, "c:1"));
	assert_string_equal(rail_list_of_host(text, "n1.cluster"), strstr(text, "c:1"));
	assert_string_equal(rail_list_of_host(text, "n11"), text);
	assert_string_equal(rail_list_of_host(text, "n2.domain"), "d:1,e:1");
	assert_string_equal(rail_list_of_host(text, "n2"), text);
	assert_string_equal(rail_list_of_host("n1=c:1", "n2"), "all");
}

/* Every port gets the wished settings, or one line tells the accepted ones. */
static void wish_body(struct job *job)
{
	const struct rail_settings *wish = job->arg;
	const char *text;
	int rc;

	job->rail.on_message = job_no_message;
	job->settings.gid_index = wish->gid_index;
	job->settings.mtu = wish->mtu;
	job->settings.pkey = wish->pkey;
	capture_begin(2);
	rc = rail_open(&job->rail, &job->ctx);
	text = capture_end();
	if (wish->rails) {
		CHECK_EQUAL(rc, -EINVAL);
		if (!strstr(text, wish->rails) || !strstr(text, "accepted") ||
		    strchr(text, '\n') != strrchr(text, '\n'))
			job_fail(__FILE__, __LINE__, "not one line with '%s': %s", wish->rails, text);
		return;
	}
	CHECK_EQUAL(rc, 0);
	if (wish->mtu < 4096)
		CHECK_EQUAL(vrb_mtu_bytes(job->ctx->rail[1].port->mtu), wish->mtu);
	CHECK_EQUAL(job->ctx->rail[0].port->pkey_index, 0);
	rail_close(job->ctx);
}

/*
 * The eager limit: --eager, the way's own limit, and the threshold of a way that stripes.
 */
static void eager_body(struct job *job)
{
	const uint64_t *eager = job->arg;
	const struct rail_way ways[] = {
		{ .policy = RAIL_BIND, .threshold = 8192, .eager = 65536 },
		{ .policy = RAIL_BIND, .threshold = 8192, .eager = 100 },
		{ .policy = RAIL_STRIPE, .threshold = 8192, .eager = 65536 },
	};
	const uint64_t most[] = { 65536, 100, 8192 };

	job->rail.on_message = job_no_message;
	job->settings.eager = *eager;
	CHECK_EQUAL(rail_open(&job->rail, &job->ctx), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(rail_eager_limit(job->ctx, &ways[i]),
			    most[i] < *eager ? most[i] : *eager);
	rail_close(job->ctx);
}

static void test_eager_limit(void **state)
{
	static const uint64_t cases[] = { 0, 50, 8192, 20000, 65536 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(job_run(&(struct job_config){ .count = 1 }, eager_body, &cases[i], 0),
				 0);
}

static void test_wishes(void **state)
{
	static const struct rail_settings cases[] = {
		{ .gid_index = "auto", .mtu = 1024 },
		{ .gid_index = "0", .mtu = OPT_SPECIAL, .pkey = "0xffff" },
		{ .gid_index = "auto", .mtu = 256, .pkey = "0x7fff" },
		{ .gid_index = "200", .rails = "--gid-index 200" },
		{ .gid_index = "auto", .pkey = "0x1234", .rails = "--pkey 0x1234" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(job_run(&(struct job_config){ .count = 1 }, wish_body, &cases[i],
					 0), 0);
}

/* The same checks by the option row, before anything is opened. */
static void test_options(void **state)
{
	struct rail_settings set = { 0 };
	struct opt_table table = { .rows = rail_options(), .values = &set };
	static const struct { const char *name, *text, *says; } bad[] = {
		{ "rails", "soft0:1,soft0:1", "listed twice" },
		{ "rails", "soft0", "DEVICE:PORT" },
		{ "soft", "ports=0", "ports" },
		{ "soft", "nonsense", "nonsense" },
		{ "threshold", "0", "accepted" },
		{ "threshold", "2T", "accepted" },
		{ "eager", "1M", "accepted" },
		{ "qps", "9", "accepted: 1 to 8" },
		{ "bind", "far", "rank or near" },
		{ "intranode", "shm", "memory or rails" },
		{ "gid-index", "256", "auto" },
		{ "mtu", "64", "active" },
		{ "sl", "16", "accepted: 0 to 15" },
		{ "tclass", "256", "accepted: 0 to 255" },
		{ "pkey", "0", "0x8001" },
		{ "pkey", "0x10000", "0x8001" },
		{ "pkey", "key", "0x8001" },
	};
	char why[512];

	(void)state;
	assert_int_equal(opt_defaults(&table), 0);
	assert_string_equal(set.rails, "all");
	assert_null(set.soft);
	assert_int_equal(set.threshold, 8192);
	assert_true(set.eager == RAIL_AUTO);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		*why = 0;
		assert_int_equal(opt_set(&table, bad[i].name, bad[i].text, OPT_FROM_COMMAND_LINE,
					 why, sizeof(why)), -EINVAL);
		if (!strstr(why, bad[i].says) || !strstr(why, bad[i].name))
			fail_msg("--%s %s: %s", bad[i].name, bad[i].text, why);
	}
}

/* ---- Memory ------------------------------------------------------------- */

static void memory_body(struct job *job)
{
	static unsigned char host[16];
	struct rail_header header = { { 0 } };
	struct rail_buf gpu = { host, sizeof(host), RAIL_MEM_CUDA };
	struct rail_op op = { .done = job_count_done };
	unsigned char *a, *b;
	const char *text;

	job->rail.on_message = job_keep_handle;
	job_connect(job);
	a = rail_alloc(job->ctx, 3 << 20);
	b = rail_alloc(job->ctx, 1);
	CHECK(a && b);
	for (size_t i = 0; i < 3 << 20; i++)
		CHECK(a[i] == 0);
	CHECK(rail_mem_kind_of(job->ctx, a + (3 << 20) - 1) == RAIL_MEM_ARENA);
	CHECK(rail_mem_kind_of(job->ctx, b) == RAIL_MEM_ARENA);
	CHECK(rail_mem_kind_of(job->ctx, host) == RAIL_MEM_HOST);
	capture_begin(2);
	rail_free(job->ctx, a + 4096);
	text = capture_end();
	CHECK(strstr(text, "not from rail_alloc") != NULL);
	rail_free(job->ctx, NULL);
	rail_free(job->ctx, a);
	CHECK(rail_mem_kind_of(job->ctx, a) == RAIL_MEM_HOST);
	rail_free(job->ctx, b);

	capture_begin(2);
	CHECK_EQUAL(rail_send(job->peer[0], &traffic_ways[0], &header, &gpu, 0, &op), -EOPNOTSUPP);
	CHECK_EQUAL(rail_send(job->peer[0], &traffic_ways[0], &header, &gpu, RAIL_SEND_SYNC, &op),
		    -EOPNOTSUPP);
	text = capture_end();
	CHECK(strstr(text, "RAIL_MEM_CUDA") != NULL);
	CHECK(!rail_busy(job->ctx));
	job_close(job);
}

static void test_memory(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .count = 1 }, memory_body, NULL, 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_selection),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_ledger_stripe),
		cmocka_unit_test(test_ledger_bind),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_host_list),
		cmocka_unit_test(test_wishes),
		cmocka_unit_test(test_eager_limit),
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_mismatch),
		cmocka_unit_test(test_garbage),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
