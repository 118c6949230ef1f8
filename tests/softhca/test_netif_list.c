/*
 * test_netif_list.c - which interfaces can be ports: tables of interfaces, answers of a stand-in for the
 * kernel, and interfaces of a network namespace of this test's own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "namespace.h"
#include "softhca/base/gid.h"
#include "softhca/base/netif_list.h"
#include "softhca/base/rtnetlink.h"
#include "softhca/softhca.h"

enum { UP = IFF_UP | IFF_RUNNING };

/* ---- Tables -------------------------------------------------------------- */

static struct hca_interface table[16];
static unsigned count;

static void begin(void **state)
{
	(void)state;
	memset(table, 0, sizeof(table));
	count = 0;
}

/* Its number is its place in the table, from 1 on. */
static void row(const char *name, const char *kind, unsigned flags, unsigned lower, unsigned master)
{
	struct hca_interface *i = &table[count++];

	snprintf(i->name, sizeof(i->name), "%s", name);
	snprintf(i->kind, sizeof(i->kind), "%s", kind);
	i->index = count;
	i->flags = flags;
	i->lower = lower;
	i->master = master;
}

static void expect(unsigned index, enum softhca_net_why why, unsigned wire, unsigned layers)
{
	const struct hca_interface *i = &table[index - 1];

	if (i->why != why || i->wire != wire || i->layers != layers)
		fail_msg("%s: %s, wire %u, %u layers", i->name, softhca_net_why(i->why), i->wire,
			 i->layers);
}

static void test_alone(void **state)
{
	begin(state);
	row("lo", "", UP | IFF_LOOPBACK, 0, 0);
	row("eth0", "", UP, 0, 0);
	row("eth1", "", IFF_UP, 0, 0);
	row("eth2", "", 0, 0, 0);
	row("dummy0", "dummy", UP, 0, 0);
	row("tun0", "tun", UP, 0, 0);
	row("wg0", "wireguard", UP, 0, 0);
	row("vx0", "vxlan", UP, 2, 0);
	row("gre1", "gretap", 0, 2, 0);
	row("ppp0", "", UP | IFF_POINTOPOINT, 0, 0);
	/* Both ends of a pair in this namespace: two wires' ends, by kind, not stacked. */
	row("v0", "veth", UP, 12, 0);
	row("v1", "veth", UP, 11, 0);
	hca_interfaces_judge(table, count);
	expect(1, SOFTHCA_NET_LOOPBACK, 1, 0);
	expect(2, SOFTHCA_NET_USABLE, 2, 0);
	expect(3, SOFTHCA_NET_DOWN, 3, 0);
	expect(4, SOFTHCA_NET_DOWN, 4, 0);
	expect(5, SOFTHCA_NET_DUMMY, 5, 0);
	expect(6, SOFTHCA_NET_TUNNEL, 6, 0);
	expect(7, SOFTHCA_NET_TUNNEL, 7, 0);
	expect(8, SOFTHCA_NET_TUNNEL, 8, 0);
	expect(9, SOFTHCA_NET_TUNNEL, 9, 0);
	expect(10, SOFTHCA_NET_TUNNEL, 10, 0);
	expect(11, SOFTHCA_NET_USABLE, 11, 0);
	expect(12, SOFTHCA_NET_USABLE, 12, 0);
}

static void test_stacked(void **state)
{
	begin(state);
	/* Upper ones before what is below. */
	row("eth0.5.7", "vlan", UP, 2, 0);
	row("eth0.5", "vlan", UP, 4, 0);
	row("mv0", "macvlan", UP, 4, 0);
	row("eth0", "", UP, 0, 0);
	row("eth1.5", "vlan", UP, 6, 0);
	row("eth1", "", UP, 0, 0);
	hca_interfaces_judge(table, count);
	expect(1, SOFTHCA_NET_USABLE, 1, 2);
	expect(2, SOFTHCA_NET_USABLE, 1, 1);
	expect(3, SOFTHCA_NET_USABLE, 1, 1);
	expect(4, SOFTHCA_NET_USABLE, 1, 0);
	expect(5, SOFTHCA_NET_USABLE, 5, 1);
	expect(6, SOFTHCA_NET_USABLE, 5, 0);
}

static void test_masters(void **state)
{
	begin(state);
	row("eth0", "", UP, 0, 3);
	row("eth1", "", UP, 0, 3);
	row("bond0", "bond", UP, 0, 0);
	row("bond0.9", "vlan", UP, 3, 5);
	row("br9", "bridge", UP, 0, 0);
	row("eth2", "", UP, 0, 7);
	row("vrf-blue", "vrf", UP, 0, 0);
	row("eth3", "", UP, 0, 7);
	hca_interfaces_judge(table, count);
	expect(1, SOFTHCA_NET_MEMBER, 1, 0);
	expect(2, SOFTHCA_NET_MEMBER, 1, 0);
	expect(3, SOFTHCA_NET_USABLE, 1, 0);
	expect(4, SOFTHCA_NET_MEMBER, 1, 1);
	expect(5, SOFTHCA_NET_USABLE, 1, 0);
	/* A VRF is a table of routes: its members have wires of their own. */
	expect(6, SOFTHCA_NET_USABLE, 6, 0);
	expect(8, SOFTHCA_NET_USABLE, 8, 0);
}

/* Numbers that lead nowhere or in circles. */
static void test_odd_tables(void **state)
{
	begin(state);
	row("a", "vlan", UP, 2, 9);
	row("b", "vlan", UP, 1, 0);
	row("c", "vlan", UP, 3, 3);
	row("d", "bridge", UP, 99, 4);
	hca_interfaces_judge(table, count);
	assert_int_equal(table[0].wire, 1);
	assert_int_equal(table[1].wire, 1);
	assert_int_equal(table[2].wire, 3);
	hca_interfaces_judge(NULL, 0);
}

static void test_private(void **state)
{
	static const char *const good[] = {
		"10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.0.1", "100.64.0.1",
		"100.127.255.255", "169.254.0.1", "127.0.0.1",
	};
	static const char *const bad[] = {
		"9.255.255.255", "11.0.0.0", "172.15.0.1", "172.32.0.1", "192.167.0.1", "192.169.0.1",
		"100.63.255.255", "100.128.0.0", "169.253.0.1", "192.0.2.1", "8.8.8.8", "0.0.0.0",
	};
	union ibv_gid gid;
	struct in_addr a;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		inet_pton(AF_INET, good[i], &a);
		hca_gid_map_ipv4(&a, &gid);
		assert_true(hca_gid_is_private_ipv4(&gid));
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		inet_pton(AF_INET, bad[i], &a);
		hca_gid_map_ipv4(&a, &gid);
		assert_false(hca_gid_is_private_ipv4(&gid));
	}
	inet_pton(AF_INET6, "a00::1", &gid);
	assert_false(hca_gid_is_private_ipv4(&gid));
}

/* ---- Dumps that are interrupted ------------------------------------------ */

struct seen {
	int row[16];
	unsigned count;
};

static int see(void *arg, struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	struct seen *s = arg;

	assert_true(s->count < sizeof(s->row) / sizeof(*s->row));
	s->row[s->count++] = m->ifi_index;
	return m->ifi_index == 99 ? 7 : 0;
}

/* A datagram of the kernel's: a row of an interface, or the end of the table. */
static void answer(int kernel, uint16_t type, int index, uint16_t flags)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg m;
	} a = { .h = { .nlmsg_len = sizeof(a), .nlmsg_type = type, .nlmsg_flags = NLM_F_MULTI | flags },
		.m = { .ifi_index = index } };

	assert_int_equal(send(kernel, &a, sizeof(a), 0), sizeof(a));
}

static unsigned requests(int kernel)
{
	char request[256];
	unsigned n = 0;

	while (recv(kernel, request, sizeof(request), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

/* The kernel's mark is on the rows after the change; it may be on the end alone. */
static void test_interrupted(void **state)
{
	struct seen s = { .count = 0 };
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	answer(fd[1], RTM_NEWLINK, 1, 0);
	answer(fd[1], RTM_NEWLINK, 3, NLM_F_DUMP_INTR);
	answer(fd[1], NLMSG_DONE, 0, 0);
	answer(fd[1], RTM_NEWLINK, 1, 0);
	answer(fd[1], NLMSG_DONE, 0, NLM_F_DUMP_INTR);
	answer(fd[1], RTM_NEWLINK, 1, 0);
	answer(fd[1], RTM_NEWLINK, 2, 0);
	answer(fd[1], NLMSG_DONE, 0, 0);
	assert_int_equal(hca_rtnetlink_dump_from(fd[0], RTM_GETLINK, see, &s), 0);
	assert_int_equal(requests(fd[1]), 3);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.row[0], 1);
	assert_int_equal(s.row[1], 2);
	/* A visit that ends leaves nothing for the next request. */
	answer(fd[1], RTM_NEWLINK, 99, 0);
	answer(fd[1], RTM_NEWLINK, 4, 0);
	answer(fd[1], NLMSG_DONE, 0, 0);
	answer(fd[1], NLMSG_ERROR, 0, 0);
	assert_int_equal(hca_rtnetlink_dump_from(fd[0], RTM_GETLINK, see, &s), 7);
	assert_int_equal(s.count, 3);
	assert_int_equal(hca_rtnetlink_dump_from(fd[0], RTM_GETLINK, see, &s), -EPROTO);
	assert_int_equal(s.count, 3);
	close(fd[0]);
	close(fd[1]);
}

/* A table that changes during each dump: an error, and no row. */
static void test_never_whole(void **state)
{
	struct seen s = { .count = 0 };
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	for (int i = 0; i < 64; i++)
		answer(fd[1], NLMSG_DONE, 0, NLM_F_DUMP_INTR);
	assert_int_equal(hca_rtnetlink_dump_from(fd[0], RTM_GETLINK, see, &s), -EAGAIN);
	assert_int_equal(requests(fd[1]), 64);
	assert_int_equal(s.count, 0);
	close(fd[0]);
	close(fd[1]);
}

/* ---- A namespace --------------------------------------------------------- */

/* NULL: it is not in the list. */
static const struct softhca_net *in_list(const struct softhca_net *list, int n, const char *address)
{
	char text[INET6_ADDRSTRLEN];

	for (int i = 0; i < n; i++)
		if (strcmp(hca_gid_format(&list[i].gid, text, sizeof(text)), address) == 0)
			return &list[i];
	return NULL;
}

static const struct softhca_net *expect_net(const struct softhca_net *list, int n, const char *address,
					    const char *name, enum softhca_net_why why)
{
	const struct softhca_net *net = in_list(list, n, address);

	if (!net) {
		fail_msg("%s is not in the list", address);
		return NULL;
	}
	assert_string_equal(net->name, name);
	if (net->why != why)
		fail_msg("%s: %s", name, softhca_net_why(net->why));
	return net;
}

static void test_list(void **state)
{
	struct softhca_net list[SOFTHCA_NETS_MAX];
	const struct softhca_net *a0, *upper;
	unsigned more;
	int n;

	assert_int_equal(ip("addr add 10.1.0.1/24 dev a0") | ip("addr add 10.1.0.9/24 dev a0") |
			 ip("addr add fd00::1/64 dev a0 nodad") | ip("link set a0 mtu 9000") |
			 ip("addr add fe80::1/64 dev a0 nodad") | ip("addr add 192.0.2.1/24 dev b0") |
			 ip("addr add 10.2.0.1/24 dev a1") | ip("link set b1 down") |
			 ip("addr add 10.2.0.2/24 dev b1"), 0);
	assert_int_equal(await_carrier("a1", false), 0);
	write_file("/proc/sys/net/ipv4/conf/a0/rp_filter", "2");
	write_file("/proc/sys/net/ipv4/conf/all/arp_ignore", "1");
	n = softhca_net_list(list, SOFTHCA_NETS_MAX, NULL);
	assert_true(n > 0);
	a0 = expect_net(list, n, "10.1.0.1", "a0", SOFTHCA_NET_USABLE);
	assert_int_equal(a0->prefix, 96 + 24);
	assert_int_equal(a0->mtu, 9000);
	assert_string_equal(a0->kind, "veth");
	assert_string_equal(a0->driver, "veth");
	assert_int_equal(a0->index, if_nametoindex("a0"));
	assert_int_equal(a0->wire, a0->index);
	assert_int_equal(a0->rp_filter, 2);
	assert_int_equal(a0->arp_ignore, 1);
	assert_int_equal(a0->port, 0);
	assert_int_equal(expect_net(list, n, "fd00::1", "a0", SOFTHCA_NET_USABLE)->prefix, 64);
	assert_null(in_list(list, n, "10.1.0.9"));
	assert_null(in_list(list, n, "fe80::1"));
	expect_net(list, n, "192.0.2.1", "b0", SOFTHCA_NET_PUBLIC);
	expect_net(list, n, "10.2.0.1", "a1", SOFTHCA_NET_DOWN);
	expect_net(list, n, "10.2.0.2", "b1", SOFTHCA_NET_DOWN);
	expect_net(list, n, "127.0.0.1", "lo", SOFTHCA_NET_LOOPBACK);
	/* One line an interface that is left out, usable ones before them. */
	assert_null(in_list(list, n, "::1"));
	for (int i = 1; i < n; i++)
		assert_false(list[i].why == SOFTHCA_NET_USABLE && list[i - 1].why);
	/* lo, b0, a1 and b1 have no room. */
	assert_int_equal(softhca_net_list(list, 1, &more), 1);
	assert_int_equal(more, 4);
	assert_int_equal(softhca_net_list(list, (unsigned)n, &more), n);
	assert_int_equal(more, 0);
	if (ip("link add upper link a0 type macvlan") || ip("link set upper up") ||
	    ip("addr add 10.3.0.1/24 dev upper"))
		return;
	assert_int_equal(await_carrier("upper", true), 0);
	n = softhca_net_list(list, SOFTHCA_NETS_MAX, NULL);
	upper = expect_net(list, n, "10.3.0.1", "upper", SOFTHCA_NET_USABLE);
	assert_int_equal(upper->layers, 1);
	assert_int_equal(upper->wire, in_list(list, n, "10.1.0.1")->wire);
}

static int make_interfaces(void)
{
	return ip("link set lo up") || make_pair("a0", "b0") || make_pair("a1", "b1");
}

int main(void)
{
	const struct CMUnitTest tables[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_stacked),
		cmocka_unit_test(test_masters),
		cmocka_unit_test(test_odd_tables),
		cmocka_unit_test(test_private),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_never_whole),
	};
	const struct CMUnitTest interfaces[] = {
		cmocka_unit_test(test_list),
	};
	int rc = cmocka_run_group_tests(tables, NULL, NULL);

	if (rc)
		return rc;
	if (enter_namespace() || make_interfaces()) {
		printf("skipped: no network namespace with veth\n");
		return 77;
	}
	return cmocka_run_group_tests(interfaces, NULL, NULL);
}
