/* test_places.c - hosts that are made up: the fabric that joins them, and who shares a node. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "mpi/job/places.h"

enum { RANKS = 6 };

static struct hello all[RANKS];

/* A rank on a host of this name: a kernel, and one of its networks. */
static void rank_on(int rank, const char *name, int kernel, unsigned network, int ports)
{
	struct hello *h = &all[rank];

	memset(h, 0, sizeof(*h));
	snprintf(h->host, sizeof(h->host), "%s", name);
	h->at.boot[0] = (unsigned char)('a' + kernel);
	h->at.net_inode = network;
	h->cpus[0] = 3;
	h->ports = ports;
}

/* Ranks in pairs on hosts of their own. */
static void hosts_apart(int ports)
{
	for (int i = 0; i < RANKS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "node%d", i / 2);
		rank_on(i, name, i / 2, 1, ports);
	}
}

static void net_everywhere(int net)
{
	for (int i = 0; i < RANKS; i++)
		all[i].net = net;
}

static void is_fabric(bool asked, enum places_fabric expected)
{
	enum places_fabric found = (enum places_fabric)-1;

	assert_int_equal(places_fabric(all, RANKS, asked, &found), 0);
	assert_int_equal(found, expected);
}

static void is_refused(bool asked, int rc, const char *words)
{
	enum places_fabric found;
	const char *text;
	int got;

	capture_begin(2);
	got = places_fabric(all, RANKS, asked, &found);
	text = capture_end();
	assert_int_equal(got, rc);
	assert_non_null(strstr(text, words));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_devices(void **state)
{
	(void)state;
	hosts_apart(2);
	is_fabric(false, PLACES_DEVICES);
	all[3].ports = 0;
	is_refused(false, -ENODEV, "no ACTIVE RDMA port on host node1 (rank 3), others have one: the kernel "
		   "shows no device; fix");
	strcpy(all[3].no_ports, "mlx5_0:1: INIT");
	is_refused(false, -ENODEV, "host node1 (rank 3), others have one: mlx5_0:1: INIT; fix");
	/* A rank that is out of descriptors has not looked. */
	all[2].ports = -EMFILE;
	is_refused(false, -EMFILE, "the RDMA devices of host node1 cannot be listed and opened by rank 2: Too many open "
		   "files (ulimit -n)");
	/* What was asked for needs no device. */
	net_everywhere(1);
	is_fabric(true, PLACES_NET);
}

/* The first rank of a host tells, the others do not. */
static void test_no_ports(void **state)
{
	(void)state;
	hosts_apart(0);
	for (int i = 0; i < 4; i++)
		strcpy(all[i].no_ports, "mlx5_0:1: INIT");
	capture_begin(2);
	for (int i = 0; i < RANKS; i++)
		places_tell_no_ports(all, i);
	assert_string_equal(capture_end(),
		"railgauge: warning: host node0 has no ACTIVE RDMA port, the software HCA takes its place: "
		"mlx5_0:1: INIT\n"
		"railgauge: warning: host node1 has no ACTIVE RDMA port, the software HCA takes its place: "
		"mlx5_0:1: INIT\n");
}

static void test_hosts(void **state)
{
	(void)state;
	hosts_apart(0);
	is_fabric(false, PLACES_NET_FOUND);
	is_refused(true, -EINVAL, "rank 0 is on node0 and rank 2 on node1 (accepted: network interfaces");
	net_everywhere(1);
	is_fabric(true, PLACES_NET);
	/* SOFTHCA_SPEC, where no rank has a device. */
	is_fabric(false, PLACES_NET);
	all[4].net = 0;
	is_refused(false, -EINVAL, "SOFTHCA_SPEC: rank 4 and rank 0 differ in net=");
}

static void test_one_host(void **state)
{
	(void)state;
	for (int i = 0; i < RANKS; i++)
		rank_on(i, "node0", 0, 1, 0);
	is_fabric(false, PLACES_MEMORY);
	is_fabric(true, PLACES_MEMORY);
	/* Two machines of one name are two. */
	rank_on(5, "node0", 1, 1, 0);
	is_refused(true, -EINVAL, "rank 5 on node0");
	is_fabric(false, PLACES_NET_FOUND);
	/* Containers of one machine, each with a network of its own, may share memory. */
	rank_on(5, "node0", 0, 2, 0);
	is_fabric(true, PLACES_MEMORY);
	is_fabric(false, PLACES_MEMORY);
	/* ... unless their IPC namespaces are their own as well: hosts as namespaces often have one name. */
	all[5].at.ipc_inode = 7;
	is_fabric(false, PLACES_NET_FOUND);
	is_refused(true, -EINVAL, "rank 5 on node0");
	/* A name of their own says nothing: the namespaces do. */
	rank_on(5, "container", 0, 1, 0);
	all[5].at.ipc_inode = 7;
	is_fabric(true, PLACES_MEMORY);
	is_fabric(false, PLACES_MEMORY);
	rank_on(5, "container", 0, 2, 0);
	is_fabric(true, PLACES_MEMORY);
	is_fabric(false, PLACES_MEMORY);
	all[5].at.ipc_inode = 7;
	is_fabric(false, PLACES_NET_FOUND);
	is_refused(true, -EINVAL, "rank 0 is on node0 and rank 5 on container");
}

static void are_nodes(enum places_fabric fabric, unsigned virtual_nodes, const unsigned expected[RANKS])
{
	unsigned node_of[RANKS];

	places_nodes(all, RANKS, fabric, virtual_nodes, node_of);
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(node_of[i], expected[i]);
}

static void test_nodes(void **state)
{
	(void)state;
	hosts_apart(0);
	are_nodes(PLACES_NET, 0, (const unsigned[]){ 0, 0, 2, 2, 4, 4 });
	are_nodes(PLACES_DEVICES, 0, (const unsigned[]){ 0, 0, 2, 2, 4, 4 });
	are_nodes(PLACES_MEMORY, 2, (const unsigned[]){ 0, 0, 0, 1, 1, 1 });
	/* Over TCP, namespaces of one kernel and one name are hosts ... */
	for (int i = 0; i < RANKS; i++)
		rank_on(i, "localhost", 0, (unsigned)i % 2, 0);
	are_nodes(PLACES_NET, 0, (const unsigned[]){ 0, 1, 0, 1, 0, 1 });
	/* ... and containers of other names that have their host's network are none. */
	for (int i = 0; i < RANKS; i++)
		rank_on(i, i % 2 ? "container" : "node0", 0, 1, 0);
	are_nodes(PLACES_NET, 0, (const unsigned[]){ 0, 0, 0, 0, 0, 0 });
	are_nodes(PLACES_DEVICES, 0, (const unsigned[]){ 0, 0, 0, 0, 0, 0 });
	/* ... but those of an IPC namespace of their own, of one name or not, share no memory. */
	for (int i = 0; i < RANKS; i++)
		all[i].at.ipc_inode = (uint64_t)i / 2;
	are_nodes(PLACES_DEVICES, 0, (const unsigned[]){ 0, 0, 2, 2, 4, 4 });
	/* Hosts of a model. */
	for (int i = 0; i < RANKS; i++) {
		rank_on(i, "node0", 0, 1, 0);
		all[i].model_node = i % 2;
	}
	are_nodes(PLACES_DEVICES, 0, (const unsigned[]){ 0, 1, 0, 1, 0, 1 });
	/* Machines of one name. */
	for (int i = 0; i < RANKS; i++)
		rank_on(i, "localhost", i / 3, 1, 0);
	are_nodes(PLACES_NET, 0, (const unsigned[]){ 0, 0, 0, 3, 3, 3 });
	are_nodes(PLACES_DEVICES, 0, (const unsigned[]){ 0, 0, 0, 3, 3, 3 });
}

/* Processors belong to machines, whatever the hosts on them. */
static void test_oversubscribed(void **state)
{
	(void)state;
	hosts_apart(0);
	assert_false(places_oversubscribed(all, RANKS, 0));
	rank_on(2, "node1", 0, 2, 0);
	assert_true(places_oversubscribed(all, RANKS, 0));
	assert_true(places_oversubscribed(all, RANKS, 2));
	assert_false(places_oversubscribed(all, RANKS, 3));
	all[1].cpus[15] = 1;
	assert_false(places_oversubscribed(all, RANKS, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices), cmocka_unit_test(test_no_ports),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_one_host),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_oversubscribed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
