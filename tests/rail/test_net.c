/*
 * test_net.c - librail on ports that say that they are network interfaces: a kind of their own,
 * neither memory nor a model.  The ports are those of a software HCA in memory, which is told to say so.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "softhca/softhca.h"
#include "traffic.h"
#include "verbs/vrb.h"

static bool net;
static uint64_t rate[2];

int __real_softhca_query_model(const struct ibv_device *device, struct softhca_model *model);
int __wrap_softhca_query_model(const struct ibv_device *device, struct softhca_model *model);

/* The local rail has one port, and stays what it is. */
int __wrap_softhca_query_model(const struct ibv_device *device, struct softhca_model *model)
{
	int rc = __real_softhca_query_model(device, model);

	if (rc || !net || model->ports != 2)
		return rc;
	model->net = true;
	memcpy(model->port_rate, rate, sizeof(rate));
	snprintf(model->text, sizeof(model->text), "2 ports over TCP: eth0 10.0.1.1, eth1 10.0.2.1");
	return 0;
}

static struct ibv_qp_attr attributes(struct rail_peer *peer)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQUAL(ibv_query_qp(peer->eager[0].qp.qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				 IBV_QP_RNR_RETRY, &init), 0);
	return attr;
}

static void check_kind(struct job *job)
{
	struct rail_info info;

	CHECK_EQUAL(rail_fabric_kind(job->ctx), RAIL_FABRIC_SOFTHCA_TCP);
	CHECK(strstr(rail_fabric_text(job->ctx), "software HCA over TCP (libsofthca), 2 ports over TCP: eth0"));
	CHECK(!rail_copied(job->ctx));
	for (int r = 0; r < 2; r++) {
		rail_info(job->ctx, r, &info);
		CHECK_EQUAL(info.fabric, RAIL_FABRIC_SOFTHCA_TCP);
		CHECK_EQUAL(info.rate, rate[r]);
		CHECK(!info.polls_memory);
	}
}

/* Every message byte by byte, eager and striped; both ends of a rail count the same. */
static void traffic_body(struct job *job)
{
	static const struct rail_way way[] = { { .policy = RAIL_WEIGHTED, .threshold = 8192, .eager = 8192 } };
	static const size_t size[] = { 0, 8, 8192, 8193, 65536, 1 << 20 };
	const struct traffic t = { .seed = 7, .count = 60, .sizes = size, .size_count = 6,
				   .ways = way, .way_count = 1, .window = 4 };
	struct rail_ledger ledger[2];
	struct ibv_qp_attr attr;

	job->rail.on_message = traffic_on_message;
	job_connect(job);
	check_kind(job);
	CHECK(!job->peer[!job->rank]->copies);
	CHECK(!job->peer[!job->rank]->writing.unlimited);
	traffic_run(job, &t);
	for (int r = 0; r < 2; r++) {
		rail_ledger(job->ctx, r, &ledger[r]);
		CHECK(ledger[r].tx_chunks > 0);
	}
	attr = attributes(job->peer[!job->rank]);
	/* 4.096 us x 2^timeout for each try: 5 s at least. */
	CHECK(4.096e-6 * (double)(1u << attr.timeout) * (1 + attr.retry_cnt) >= 5);
	CHECK(attr.rnr_retry > 0);
	job_close(job);
}

/* Requests cost system calls: what is sent at once, and chunks, are larger than with other rails. */
static void limits_body(struct job *job)
{
	static const struct rail_way whole = { .policy = RAIL_SINGLE, .eager = RAIL_AUTO },
		spread = { .policy = RAIL_STRIPE, .threshold = 8192, .eager = RAIL_AUTO },
		less = { .policy = RAIL_SINGLE, .eager = 100 };
	char why[256];

	job->rail.on_message = traffic_on_message;
	job->settings.eager = job->settings.chunk = RAIL_AUTO;
	job_connect(job);
	CHECK_EQUAL(rail_way_check(job->ctx, &whole, why, sizeof(why)), 0);
	CHECK_EQUAL(rail_eager_limit(job->ctx, &whole), net ? 65536 : 8192);
	CHECK_EQUAL(rail_eager_limit(job->ctx, &spread), 8192);
	CHECK_EQUAL(rail_eager_limit(job->ctx, &less), 100);
	CHECK_EQUAL(job->peer[!job->rank]->chunk, net ? 262144 : 65536);
	job_close(job);
}

static int run(struct job_config config, void (*body)(struct job *))
{
	int rc;

	config.soft = config.soft ? config.soft : "ideal,ports=2";
	net = true;
	rc = job_run(&config, body, NULL, 0);
	net = false;
	return rc;
}

static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(run((struct job_config){ .count = 2 }, limits_body), 0);
	assert_int_equal(job_run(&(struct job_config){ .count = 2, .soft = "ideal,ports=2" },
				 limits_body, NULL, 0), 0);
}

static void test_traffic(void **state)
{
	(void)state;
	rate[0] = rate[1] = 125000000;
	assert_int_equal(run((struct job_config){ .count = 2 }, traffic_body), 0);
	/* An unknown speed is measured, too. */
	rate[0] = 0;
	assert_int_equal(run((struct job_config){ .count = 2, .on_demand = true }, traffic_body), 0);
	rate[1] = 0;
	assert_int_equal(run((struct job_config){ .count = 2 }, traffic_body), 0);
}

/* Two ranks on each of two nodes: neighbours meet in memory, which copies. */
static void local_body(struct job *job)
{
	static const unsigned node_of[] = { 0, 0, 1, 1 };
	char local[96];

	snprintf(local, sizeof(local), "%s-node%u", job->rail.fabric, node_of[job->rank]);
	job->rail.on_message = traffic_on_message;
	job->rail.node_of = node_of;
	job->rail.local_fabric = local;
	job_connect(job);
	CHECK_EQUAL(rail_local(job->ctx), 2);
	check_kind(job);
	CHECK(strstr(rail_fabric_text(job->ctx), "ranks of one node by memory"));
	for (int r = 0; r < job->count; r++)
		CHECK_EQUAL(job->peer[r]->copies, node_of[r] == node_of[job->rank]);
	job_close(job);
}

static void test_local(void **state)
{
	(void)state;
	assert_int_equal(run((struct job_config){ .count = 4, .nodes = 2, .on_demand = true }, local_body), 0);
}

static void mapped_body(struct job *job)
{
	const char *text;

	job->rail.on_message = traffic_on_message;
	job->settings.map_buffers = true;
	capture_begin(2);
	job_open(job);
	text = capture_end();
	CHECK_EQUAL(strstr(text, "--map-buffers: receive buffers are not mapped, since their data come over "
			   "TCP") != NULL, job->rank == 0);
	CHECK(!job->ctx->mapped);
	rail_close(job->ctx);
}

static void test_mapped(void **state)
{
	(void)state;
	assert_int_equal(run((struct job_config){ .count = 2 }, mapped_body), 0);
}

/* Hosts have a fabric in memory each: numbers that differ say nothing.  Nor do subnets. */
static void test_ports(void **state)
{
	const struct softhca_config soft = { .spec = "ideal,ports=2", .fabric = "rail-test-net-ports" };
	static const unsigned char zero[VRB_GID_BYTES];
	struct vrb_ports ports;

	(void)state;
	net = true;
	rate[0] = 125000000;
	rate[1] = 31250000;
	assert_int_equal(vrb_ports_scan(softhca_get_device_list(&soft, NULL), &ports), 0);
	assert_int_equal(softhca_fabric_close(&soft), 0);
	net = false;
	assert_int_equal(ports.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(ports.port[i].net);
		assert_int_equal(ports.port[i].kind, VRB_SOFTHCA);
		assert_int_equal(ports.port[i].rate_bytes_per_s, rate[i]);
		assert_memory_equal(ports.port[i].subnet, zero, sizeof(zero));
	}
	/* The order of the spec. */
	assert_true(vrb_port_order(&ports.port[0], &ports.port[1]) < 0);
	vrb_ports_free(&ports);
}

static void are_terms(const char *spec, const char *expected)
{
	char terms[128];

	rail_soft_terms(spec, terms, sizeof(terms));
	assert_string_equal(terms, expected);
}

static void test_spec(void **state)
{
	struct rail_settings set = { .soft = "ideal,ports=2" };

	(void)state;
	are_terms("", "");
	are_terms("rate=1GB/s,latency=2us", "rate=1GB/s,latency=2us");
	are_terms("net=eth0", "net=1");
	are_terms("net=eth0+eth1", "net=2");
	are_terms("ideal,net=10.0.1.0/24+fd00::/64,reads=4", "ideal,net=2,reads=4");
	/* Another key that ends so. */
	are_terms("fabnet=a+b", "fabnet=a+b");
	unsetenv("SOFTHCA_SPEC");
	assert_false(rail_soft_is_net(&set));
	set.soft = "ideal,net=eth0";
	assert_true(rail_soft_is_net(&set));
	set.soft = NULL;
	assert_false(rail_soft_is_net(&set));
	setenv("SOFTHCA_SPEC", "net=eth0+eth1", 1);
	assert_true(rail_soft_is_net(&set));
	set.soft = "ideal";
	assert_false(rail_soft_is_net(&set));
	unsetenv("SOFTHCA_SPEC");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_spec),
		cmocka_unit_test(test_traffic),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
