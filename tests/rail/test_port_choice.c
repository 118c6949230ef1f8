/* test_port_choice.c - hosts that are made up: the rails that their ports make. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "made_hosts.h"
#include "rail/open/common.h"
#include "rail/open/options.h"

/* A DGX: eight ports for messages, four for storage on a fabric of their own or of another kind. */
static void test_eight_and_four(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		begin();
		for (unsigned h = 0; h < 2; h++)
			for (unsigned p = 0; p < 12; p++)
				if (p % 3 != 2)
					ib_add(h, 50 * GB, 1);
				else if (kind == 0)
					ib_add(h, 50 * GB, 2);
				else if (kind == 1)
					ib_add(h, 25 * GB, 1);
				else
					eth_add(h, 50 * GB, "::ffff:10.0.0.1", 120);
		is_rails(2, 8);
		for (unsigned r = 0; r < 8; r++) {
			is_end(r, 0, r / 2 * 3 + r % 2);
			is_end(r, 1, r / 2 * 3 + r % 2);
		}
		says("mlx5_2:1 of node0 and 7 more ports are left out");
	}
}

/* Each port of a card is a device: of nine cards with two, the first ports of eight. */
static void test_cards(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 18; p++)
			ib_add(h, 50 * GB, 1)->card = 1 + p / 2;
	is_rails(2, 8);
	for (unsigned r = 0; r < 8; r++)
		is_end(r, 1, 2 * r);
	says("8 rails are in use");
	/* No ports are of one card without its number. */
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 18; p++)
			host[h].port[p].card = 0;
	is_rails(2, 8);
	is_end(7, 0, 7);
}

static void test_unlike_hosts(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++)
		for (unsigned p = 0; p < 4; p++)
			ib_add(h, 50 * GB, 1);
	host[1].port[1].state = IBV_PORT_DOWN;
	is_rails(3, 3);
	is_end(1, 0, 2);
	is_end(1, 1, 2);
	says("mlx5_1:1 of node0 and another port are left out: mlx5_1:1 of node1 is DOWN");
	/* A port fewer, and none at the places of others: in PCI order. */
	host[1].count = 2;
	host[1].port[1] = host[1].port[0];
	snprintf(host[1].port[0].place, sizeof(host[1].port[0].place), "0001:00:00.0:1");
	snprintf(host[1].port[1].place, sizeof(host[1].port[1].place), "0001:01:00.0:1");
	is_rails(3, 2);
	is_end(1, 1, 1);
	is_end(1, 0, 1);
	says("mlx5_2:1 of node0 and 3 more ports are left out: node1 has no port left for it");
	/* A port that lost half of its lanes. */
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, h + p == 2 ? 25 * GB : 50 * GB, 1);
	is_rails(2, 1);
	says("mlx5_1:1 of node1 is left out: 25GB/s, the rails are of another rate");
	/* Hosts of two generations. */
	host[1].port[0].rate = 25 * GB;
	is_rails(2, 2);
}

static void test_prefixes(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 4; p++)
			ib_add(h, 50 * GB, (unsigned char)(p + 1));
	is_rails(2, 4);
	/* Cables in another order. */
	host[1].port[0].tables.gid[0].raw[7] = 2;
	host[1].port[1].tables.gid[0].raw[7] = 1;
	is_rails(2, 4);
	is_end(0, 1, 1);
	is_end(1, 1, 0);
	for (unsigned p = 0; p < 4; p++)
		host[1].port[p].tables.gid[0].raw[7] = 9;
	assert_int_equal(choose(2), -ENODEV);
	assert_non_null(strstr(choice.why, "router's LID"));
}

static void test_networks(void **state)
{
	(void)state;
	begin();
	eth_add(0, 50 * GB, "::ffff:10.0.1.1", 120);
	eth_add(0, 50 * GB, "::ffff:10.0.2.1", 120);
	eth_add(1, 50 * GB, "::ffff:10.0.2.2", 120);
	eth_add(1, 50 * GB, "::ffff:10.0.1.2", 120);
	is_rails(2, 2);
	is_end(0, 1, 1);
	is_end(1, 1, 0);
	assert_string_equal(lines, "");
	/* Networks of a rail each host: by place, through routers. */
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++) {
			char address[32];

			snprintf(address, sizeof(address), "::ffff:10.%u.0.%u", 2 - p, 2 * h);
			eth_add(h, 50 * GB, address, 127);
		}
	is_rails(2, 2);
	is_end(0, 0, 0);
	is_end(0, 1, 0);
	says("2 of 2 rails: RoCE v2 is routed");
	/* v1 knows no router. */
	for (unsigned p = 0; p < 2; p++)
		host[1].port[p].tables.gid[0].type = host[0].port[p].tables.gid[0].type = IBV_GID_TYPE_ROCE_V1;
	assert_int_equal(choose(2), -ENODEV);
	/* A mask that only one host knows. */
	begin();
	eth_add(0, 50 * GB, "::ffff:10.0.1.1", 112);
	eth_add(1, 50 * GB, "::ffff:10.0.2.1", 0);
	is_rails(2, 1);
	assert_string_equal(lines, "");
}

static void test_gids(void **state)
{
	struct choice_port *a, *b;

	(void)state;
	begin();
	a = eth_add(0, 50 * GB, "::ffff:10.0.1.1", 120);
	gid_add(a, "fd00::1", IBV_GID_TYPE_ROCE_V2, 64);
	gid_add(a, "fe80::1", IBV_GID_TYPE_ROCE_V2, 64);
	b = eth_add(1, 50 * GB, "::ffff:10.0.9.1", 120);
	gid_add(b, "fd00::2", IBV_GID_TYPE_ROCE_V2, 64);
	gid_add(b, "fe80::2", IBV_GID_TYPE_ROCE_V2, 64);
	is_rails(2, 1);
	assert_int_equal(choice.end[0][0].gid, 1);
	assert_int_equal(choice.end[1][0].gid, 1);
	/* No handle: the next one. */
	b->tables.gid[1].dead = EHOSTUNREACH;
	is_rails(2, 1);
	assert_int_equal(choice.end[1][0].gid, 0);
	says("1 of 1 rails: RoCE v2 is routed between IP networks, such as ::ffff:10.0.1.1 of node0 and "
	     "::ffff:10.0.9.1 of node1");
	b->tables.gid[0].dead = EHOSTUNREACH;
	is_rails(2, 1);
	assert_int_equal(choice.end[1][0].gid, 2);
	says("link-local");
	b->tables.gid[2].dead = EHOSTUNREACH;
	assert_int_equal(choose(2), -ENODEV);
	assert_non_null(strstr(choice.why, "no address handle"));
}

/* No GID that all hosts meet: each pair has its own. */
static void test_pairwise(void **state)
{
	static const char *const net[] = { "::ffff:10.0.0.0", "::ffff:10.1.0.0", "::ffff:10.2.0.0" };
	uint8_t a, b, a2, b2;

	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++) {
		struct choice_port *p = port_add(h, IBV_LINK_LAYER_ETHERNET, 50 * GB);

		gid_add(p, net[h], IBV_GID_TYPE_ROCE_V1, 120);
		gid_add(p, net[(h + 2) % 3], IBV_GID_TYPE_ROCE_V1, 120);
	}
	is_rails(3, 1);
	assert_true(choice.pairwise[0]);
	for (unsigned g = 0; g < 3; g++)
		for (unsigned h = 0; h < 3; h++) {
			assert_true(choice_gid_pair(&choice, 0, g, h, &a, &b));
			assert_memory_equal(host[g].port[0].tables.gid[a].raw,
					    host[h].port[0].tables.gid[b].raw, 15);
			assert_true(choice_gid_pair(&choice, 0, h, g, &b2, &a2));
			assert_true(a == a2 && b == b2);
		}
	host[2].port[0].tables.gid[0].dead = EHOSTUNREACH;
	assert_int_equal(choose(3), -ENODEV);
	assert_non_null(strstr(choice.why, "node2"));
	is_rails(2, 1);
	assert_false(choice.pairwise[0]);
}

static void pkeys_set(unsigned h, uint16_t first, uint16_t second)
{
	struct vrb_tables *t = &host[h].port[0].tables;

	t->pkey[0] = (struct vrb_pkey){ .key = first, .index = 3 };
	t->pkey[1] = (struct vrb_pkey){ .key = second, .index = 7 };
	t->pkeys = second ? 2 : 1;
}

static void is_pkey(unsigned h, uint16_t key)
{
	assert_int_equal(host[h].port[0].tables.pkey[choice.end[h][0].pkey].key, key);
}

static void test_pkeys(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++)
		ib_add(h, 50 * GB, 1);
	pkeys_set(0, 0x7fff, 0x8001);
	pkeys_set(1, 0x7fff, 0x8001);
	pkeys_set(2, 0x0001, 0);
	is_rails(3, 1);
	is_pkey(0, 0x8001);
	is_pkey(2, 0x0001);
	pkeys_set(1, 0x7fff, 0x0001);
	assert_int_equal(choose(3), -ENODEV);
	assert_non_null(strstr(choice.why, "mlx5_0:1 of node1 has no partition key in common with node2"));
	/* Both memberships: the full one. */
	pkeys_set(1, 0x0001, 0x8001);
	is_rails(3, 1);
	is_pkey(1, 0x8001);
	pkeys_set(0, 0x7fff, 0x8002);
	is_rails(1, 1);
	is_pkey(0, 0x8002);
	/* Each two have one, but not all three. */
	pkeys_set(0, 0x8001, 0x8002);
	pkeys_set(1, 0x8001, 0x8003);
	pkeys_set(2, 0x8002, 0x8003);
	assert_int_equal(choose(3), -ENODEV);
	assert_non_null(strstr(choice.why, "mlx5_0:1 of node0: no partition key that all hosts have, with"));
	host[1].named = host[0].named = host[2].named = 1;
	assert_int_equal(choose(3), -ENETUNREACH);
	assert_non_null(strstr(choice.why, "rail 0: no partition key that all hosts have"));
	host[1].named = host[0].named = host[2].named = 0;
	/* Processes of a host that meet over its ports are pairs, too. */
	pkeys_set(0, 0x0001, 0x8002);
	pkeys_set(1, 0x8001, 0x8002);
	is_rails(2, 1);
	is_pkey(0, 0x0001);
	host[0].meets = 1;
	is_rails(2, 1);
	is_pkey(0, 0x8002);
	is_pkey(1, 0x8002);
	pkeys_set(0, 0x0001, 0);
	assert_int_equal(choose(2), -ENODEV);
	assert_non_null(strstr(choice.why, "also of ranks of one host (--intranode memory)"));
	host[0].meets = 0;
	host[1].meets = 1;
	is_rails(2, 1);
}

/* Partitions of two ports, crossed at one host, as by cables; and ports of a set that share none. */
static void test_partition_pairs(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++)
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, 50 * GB, 1)->tables.pkey[0].key = h == 2 ? 0x8002 - p : 0x8001 + p;
	is_rails(3, 2);
	is_end(0, 2, 1);
	is_end(1, 2, 0);
	assert_string_equal(lines, "");
	/* Of ten ports, two that share none take the place of none. */
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 10; p++)
			ib_add(h, 50 * GB, 1)->tables.pkey[0].key = p < 2 ? 0x7fff : 0xffff;
	is_rails(2, 8);
	is_end(0, 1, 2);
	says("mlx5_0:1 of node0 and 3 more ports are left out: no partition key in common");
	assert_null(strstr(lines, "8 rails are in use"));
}

/* Where ports of the best rate, or prefix, or address are no rail, those of the next one are. */
static void test_next_set(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, p ? 25 * GB : 50 * GB, 1)->tables.pkey[0].key = p ? 0xffff : 0x7fff;
	is_rails(2, 1);
	is_end(0, 1, 1);
	says("mlx5_0:1 of node0 and another port are left out: no partition key in common");
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, p ? 5 * GB : 50 * GB, (unsigned char)(p ? 7 : h + 1));
	is_rails(2, 1);
	is_end(0, 1, 1);
	says("mlx5_0:1 of node0 and another port are left out: mlx5_0:1 of node1 is on another subnet");
	begin();
	for (unsigned h = 0; h < 2; h++) {
		gid_add(eth_add(h, 50 * GB, "fe80::1", 64), h ? "::ffff:10.0.0.1" : "fd00::1", IBV_GID_TYPE_ROCE_V1, 64);
		host[h].port[0].tables.gid[0] = host[h].port[0].tables.gid[1];
		host[h].port[0].tables.gids = 1;
		eth_add(h, 50 * GB, "fe80::2", 64);
	}
	is_rails(2, 1);
	is_end(0, 1, 1);
	assert_int_equal(choice.rails, 1);
	/* None at all: the reason is that of the best one. */
	host[1].port[1].tables.gid[0].type = IBV_GID_TYPE_ROCE_V1;
	assert_int_equal(choose(2), -ENODEV);
	assert_non_null(strstr(choice.why, "mlx5_0:1 of node0: mlx5_0:1 of node1 has no GID of its kind"));
}

static void test_named(void **state)
{
	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, (p + 1) * 10 * GB, (unsigned char)(h == p));
	host[0].named = host[1].named = 1;
	assert_int_equal(choose(2), -ENETUNREACH);
	assert_non_null(strstr(choice.why, "order the ports"));
	for (unsigned p = 0; p < 2; p++)
		host[1].port[p].tables.gid[0].raw[7] = (unsigned char)!p;
	is_rails(2, 2);
	host[1].count = 1;
	assert_int_equal(choose(2), -EINVAL);
	assert_non_null(strstr(choice.why, "2 ports on node0, 1 on node1"));
	/* The other host has what it has. */
	host[1].count = 2;
	host[1].named = 0;
	is_rails(2, 2);
	host[1].port[1].state = IBV_PORT_DOWN;
	assert_int_equal(choose(2), -ENETUNREACH);
}

static bool is_narrow(unsigned hosts, char *why, size_t size)
{
	struct choice_host *of[HOSTS];
	struct rail_hosts all = { .hosts = hosts, .host = of };

	for (unsigned h = 0; h < hosts; h++)
		of[h] = &host[h];
	is_rails(hosts, 2);
	all.choice = choice;
	return rail_hosts_narrow(&all, why, size);
}

/* A host that tells of a failed port of an adapter loses that port; one of a failed adapter, all its ports. */
static void test_failed(void **state)
{
	struct choice_host *of[HOSTS] = { &host[0], &host[1] };
	struct rail_hosts all = { .hosts = 2, .host = of };
	struct rail_loss loss = { 1, 1, 0, IBV_EVENT_PORT_ERR };
	bool news = false;

	(void)state;
	begin();
	for (unsigned h = 0; h < 2; h++)
		for (unsigned p = 0; p < 3; p++) {
			struct choice_port *port = ib_add(h, p == 1 ? 10 * GB : 50 * GB, 1);

			snprintf(port->name, sizeof(port->name), "mlx5_%u:%u", p / 2, p % 2 + 1);
		}
	is_rails(2, 2);
	all.choice = choice;
	assert_int_equal(rail_hosts_lose(&all, &loss, 1, &news), 0);
	assert_true(news);
	assert_int_equal(host[1].port[0].failed, IBV_EVENT_PORT_ERR);
	assert_int_equal(host[1].port[1].state, IBV_PORT_ACTIVE);
	host[1].port[0].failed = 0;
	host[1].port[0].state = IBV_PORT_ACTIVE;
	loss.rails = IBV_EVENT_DEVICE_FATAL;
	news = false;
	assert_int_equal(rail_hosts_lose(&all, &loss, 1, &news), 0);
	assert_true(news);
	for (unsigned p = 0; p < 3; p++) {
		assert_int_equal(host[0].port[p].state, IBV_PORT_ACTIVE);
		assert_int_equal(host[1].port[p].state, p < 2 ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
	}
	is_rails(2, 1);
	is_end(0, 1, 2);
	free(all.lost.at);
}

/* One host's adapter or memory is too small for all connections; the line has its numbers. */
static void test_narrow(void **state)
{
	char why[320];

	(void)state;
	begin();
	for (unsigned h = 0; h < 3; h++) {
		host[h].processes = 4;
		host[h].eager = host[h].qps = RAIL_AUTO;
		for (unsigned p = 0; p < 2; p++)
			ib_add(h, 50 * GB, 1);
	}
	assert_false(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "");
	/* A rail is on each adapter: 4 x 8 peers x 2, narrow 4 x 4 peers x 2; on the first one 4 x 1 for datagrams. */
	host[1].port[0].queue_pairs = 68;
	host[1].port[1].queue_pairs = 64;
	assert_false(is_narrow(3, why, sizeof(why)));
	host[1].port[0].queue_pairs = 67;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_non_null(strstr(why, "mlx5_0 of node1 has 67 queue pairs; 4 ranks there, each connected with 8 "
			       "peers, take 68: each peer has one rail and smaller shares, which are 36"));
	host[1].port[0].queue_pairs = 0;
	host[1].port[1].queue_pairs = 63;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_non_null(strstr(why, "take 64: each peer has one rail and smaller shares, which are 32"));
	/* Each process says later what it lacks. */
	host[1].port[1].queue_pairs = 31;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "");
	host[1].port[1].queue_pairs = 0;
	/* A control group counts more than queue pairs, of 4 x 8 peers: 3 each, and 16 of each process. */
	host[1].port[0].objects = 68 + 4 * (8 * 3 + 16);
	assert_false(is_narrow(3, why, sizeof(why)));
	host[1].port[0].objects--;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "the control group of node1 has 227 objects of mlx5_0 (rdma.max); 4 ranks there, each "
			    "connected with 8 peers, take 228, of which 68 are queue pairs: each peer has one rail and "
			    "smaller shares, which are 164");
	host[1].port[0].objects = 163;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "");
	host[1].port[0].objects = 0;
	/* Nothing else says it of memory. */
	host[2].pinned = 4 << 20;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_non_null(strstr(why, "a process of node2 may pin 4 MiB"));
	host[2].pinned = 1 << 18;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_non_null(strstr(why, "a process of node2 may pin 0 MiB"));
	/* The job is refused, with a line of its own. */
	host[2].pinned = 1 << 16;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "");
	host[2].pinned = UINT64_C(1) << 40;
	assert_false(is_narrow(3, why, sizeof(why)));
	/*
	 * Completion queues, of an adapter for each rail: of 8 peers 257 entries for small messages and 514 for
	 * large ones, narrow 145 and 130 of 4 peers each; and one for datagrams.  The last part of each is left over.
	 */
	host[0].cq_bytes = 2 * 8192 * 64 + 16384;
	assert_false(is_narrow(3, why, sizeof(why)));
	host[0].cq_bytes = 8192 * 64;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "a process of node0 may lock 512 KiB for completion queues (ulimit -l); those of "
			    "connections with 8 peers take 1040: each peer has one rail and smaller shares, which are 272");
	host[0].cq_bytes = 32768;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "");
	/*
	 * A queue of 1023 entries holds 510 of lanes for certain: 8 peers need 13 queues.  Narrow peers
	 * need one such queue and one of 511.
	 */
	host[0].cq_bytes = 2 * 8192 * 64 + 16384;
	host[0].port[1].cq_entries = 1023;
	assert_true(is_narrow(3, why, sizeof(why)));
	assert_string_equal(why, "a process of node0 may lock 1040 KiB for completion queues (ulimit -l); those of "
			    "connections with 8 peers take 1360: each peer has one rail and smaller shares, which are 240");
}

/* In place of the C library's. */
static bool is_unlimited;
int getrlimit(__rlimit_resource_t resource, struct rlimit *out)
{
	const int rc = prlimit(0, resource, NULL, out);

	if (!rc && is_unlimited && resource == RLIMIT_MEMLOCK)
		out->rlim_cur = out->rlim_max = RLIM_INFINITY;
	return rc;
}

/* Where there is no limit of locked memory, no device is opened for it. */
static void test_unlimited(void **state)
{
	const struct rail_settings set = { .eager = RAIL_AUTO, .qps = RAIL_AUTO };
	const struct vrb_port none = { .device = NULL };

	(void)state;
	is_unlimited = true;
	assert_int_equal(rail_bound_queues(&set, &none, 2, 64), 0);
	is_unlimited = false;
}

static void test_gid_lists(void **state)
{
	static const char *const good[] = { "auto", "0", "255", "mlx5_0:1=3", "mlx5_0:1=3,mlx5_1:2=auto", "3;n1=4",
					    "auto;n1=mlx5_0:1=2,7;n2=1" };
	static const char *const bad[] = { "", "256", "-1", "x", "3,", "mlx5_0:1=", "3;n1=", ";" };
	char why[512];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(rail_gid_lists_check(good[i], why, sizeof(why)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(rail_gid_lists_check(bad[i], why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "accepted: auto, 0 to 255"));
	}
	assert_int_equal(rail_gid_index_of(NULL, "n1", "mlx5_0:1"), -1);
	assert_int_equal(rail_gid_index_of("auto", "n1", "mlx5_0:1"), -1);
	assert_int_equal(rail_gid_index_of("mlx5_0:1=3,5", "n1", "mlx5_0:1"), 3);
	assert_int_equal(rail_gid_index_of("mlx5_0:1=3,5", "n1", "mlx5_0:2"), 5);
	assert_int_equal(rail_gid_index_of("3;n1=mlx5_0:1=4", "n1", "mlx5_0:1"), 4);
	assert_int_equal(rail_gid_index_of("3;n1=mlx5_0:1=4", "n1", "mlx5_1:1"), -1);
	assert_int_equal(rail_gid_index_of("3;n1=mlx5_0:1=4", "n2", "mlx5_1:1"), 3);
	assert_int_equal(rail_gid_index_of("n1=4", "n2", "mlx5_1:1"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_and_four), cmocka_unit_test(test_cards),
		cmocka_unit_test(test_unlike_hosts), cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_networks), cmocka_unit_test(test_gids),
		cmocka_unit_test(test_pairwise), cmocka_unit_test(test_pkeys),
		cmocka_unit_test(test_partition_pairs), cmocka_unit_test(test_next_set),
		cmocka_unit_test(test_named), cmocka_unit_test(test_gid_lists),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_unlimited),
	};

	return cmocka_run_group_tests(tests, NULL, hosts_free);
}
