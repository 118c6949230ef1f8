/*
 * test_rail_choice.c - the rails of hosts with given interfaces and given results of probes.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "mpi/job/rail_choice.h"

enum { HOSTS_MAX = 40, MBIT = 1000000 / 8, LINES_BYTES = 32768 };

/* ---- Tables -------------------------------------------------------------- */

static struct choice_host host[HOSTS_MAX];
static struct choice_probes found[HOSTS_MAX];
static unsigned hosts;
static bool with_down;
static char lines[LINES_BYTES];

/* Do packets of `from` reach `to`?  The answer is softhca_probe_code. */
typedef enum softhca_probe_code reach_fn(unsigned a, const struct softhca_net *from, unsigned b,
					 const struct softhca_net *to);

static void hosts_make(unsigned n)
{
	memset(host, 0, sizeof(host));
	memset(found, 0, sizeof(found));
	hosts = n;
	for (unsigned h = 0; h < n; h++)
		snprintf(host[h].name, sizeof(host[h].name), "node%u", h);
}

/* An interface is named by its name: another address of it has its number and wire. */
static struct softhca_net *add(unsigned h, const char *name, const char *address, unsigned prefix,
			       unsigned mbit)
{
	struct choice_host *at = &host[h];
	struct softhca_net *n = &at->net[at->count];
	unsigned char four[4];

	assert_true(at->count < SOFTHCA_NETS_MAX);
	snprintf(n->name, sizeof(n->name), "%s", name);
	if (inet_pton(AF_INET, address, four) == 1) {
		memset(n->gid.raw + 10, 0xff, 2);
		memcpy(n->gid.raw + 12, four, 4);
		prefix += 96;
	} else {
		assert_int_equal(inet_pton(AF_INET6, address, n->gid.raw), 1);
	}
	n->prefix = (uint8_t)prefix;
	n->rate = (uint64_t)mbit * MBIT;
	n->mtu = 1500;
	n->index = n->wire = at->count + 1;
	for (unsigned i = 0; i < at->count; i++)
		if (strcmp(at->net[i].name, name) == 0)
			n->index = n->wire = at->net[i].index;
	at->count++;
	return n;
}

/* NAME on all hosts, "10.0.1.%u" with host numbers from 1 on. */
static void add_all(const char *name, const char *pattern, unsigned prefix, unsigned mbit)
{
	char address[64];
	const char *at = strchr(pattern, '%');

	for (unsigned h = 0; h < hosts; h++) {
		if (at)
			snprintf(address, sizeof(address), "%.*s%u%s", (int)(at - pattern), pattern, h + 1,
				 at + 1);
		else
			snprintf(address, sizeof(address), "%s", pattern);
		add(h, name, address, prefix, mbit);
	}
}

static struct softhca_net *named(unsigned h, const char *name)
{
	for (unsigned i = 0; i < host[h].count; i++)
		if (strcmp(host[h].net[i].name, name) == 0)
			return &host[h].net[i];
	fail_msg("no interface %s", name);
	return NULL;
}

static void why_all(const char *name, enum softhca_net_why why)
{
	for (unsigned h = 0; h < hosts; h++)
		named(h, name)->why = (uint8_t)why;
}

/* ---- Reachability -------------------------------------------------------- */

static bool same_subnet(const struct softhca_net *a, const struct softhca_net *b)
{
	for (unsigned i = 0; i < a->prefix; i++)
		if ((a->gid.raw[i / 8] ^ b->gid.raw[i / 8]) & 0x80 >> i % 8)
			return false;
	return true;
}

static enum softhca_probe_code within_subnets(unsigned a, const struct softhca_net *from, unsigned b,
					      const struct softhca_net *to)
{
	(void)a;
	(void)b;
	return same_subnet(from, to) ? SOFTHCA_PROBE_PASSED : SOFTHCA_PROBE_SILENT;
}

static enum softhca_probe_code anywhere(unsigned a, const struct softhca_net *from, unsigned b,
					const struct softhca_net *to)
{
	(void)a;
	(void)from;
	(void)b;
	(void)to;
	return SOFTHCA_PROBE_PASSED;
}

static enum softhca_probe_code unless_down(unsigned a, const struct softhca_net *from, unsigned b,
					   const struct softhca_net *to)
{
	return from->why || to->why ? SOFTHCA_PROBE_NONE : within_subnets(a, from, b, to);
}

static void probe(const struct choice *c, reach_fn *reach)
{
	for (unsigned h = 0; h < hosts; h++)
		for (unsigned s = 0; s < c->steps; s++) {
			unsigned p = choice_peer(c, h, s);

			for (unsigned k = 0; k < c->columns; k++)
				found[h].column[s][k].code = (uint8_t)reach(h,
					&host[h].net[c->column[k].at[h]], p,
					&host[p].net[c->column[k].at[p]]);
			for (unsigned i = 0; i < CHOICE_REST && c->rest[h][i] != CHOICE_NONE; i++)
				for (unsigned k = 0; k < CHOICE_REST && c->rest[p][k] != CHOICE_NONE; k++)
					found[h].rest[s][i][k].code = (uint8_t)reach(h,
						&host[h].net[c->rest[h][i]], p,
						&host[p].net[c->rest[p][k]]);
		}
}

/* ---- What is chosen ------------------------------------------------------ */

static void line_add(void *arg, const char *text)
{
	size_t used = strlen(lines);

	(void)arg;
	snprintf(lines + used, sizeof(lines) - used, "%s\n", text);
}

/* The rails as each host names them, and the lines, in order. */
static void expect(reach_fn *reach, const char *spec, const char *expected)
{
	char text[CHOICE_SPEC_BYTES];
	struct choice c;

	assert_int_equal(choice_begin(&c, host, hosts, with_down), 0);
	probe(&c, reach);
	choice_finish(&c, found);
	choice_spec(&c, 0, text);
	assert_string_equal(text, spec);
	*lines = '\0';
	choice_lines(&c, line_add, NULL);
	assert_string_equal(lines, expected);
	choice_end(&c);
}

static void expect_spec_of(reach_fn *reach, unsigned h, const char *spec)
{
	char text[CHOICE_SPEC_BYTES];
	struct choice c;

	assert_int_equal(choice_begin(&c, host, hosts, with_down), 0);
	probe(&c, reach);
	choice_finish(&c, found);
	choice_spec(&c, h, text);
	assert_string_equal(text, spec);
	choice_end(&c);
}

/* ---- Cases --------------------------------------------------------------- */

static void test_two_rails(void **state)
{
	for (unsigned n = 2; n <= HOSTS_MAX; n = n < 5 ? n + 1 : n * 2) {
		hosts_make(n);
		add_all("lo", "127.0.0.1", 8, 0);
		why_all("lo", SOFTHCA_NET_LOOPBACK);
		add_all("eth0", "10.0.1.%", 24, 1000);
		add_all("eth1", "10.0.2.%", 24, 1000);
		expect(within_subnets, "net=10.0.1.0/24+10.0.2.0/24",
		       "no rail: lo 127.0.0.1 (all hosts): loopback\n");
	}
}

static void test_bridges(void **state)
{
	hosts_make(3);
	add_all("eth0", "192.168.7.%", 24, 1000);
	add_all("docker0", "172.17.0.1", 16, 10000);
	add(0, "virbr0", "192.168.122.1", 24, 0);
	add(2, "virbr0", "192.168.122.1", 24, 0);
	/* On one host, with an address of its own. */
	add(1, "br-1f2e", "172.18.0.1", 16, 10000);
	expect(within_subnets, "net=192.168.7.0/24",
	       "no rail: docker0 172.17.0.1 (all hosts): node1 has the same address\n"
	       "no rail: virbr0 192.168.122.1 (node0 and 1 more): node2 has the same address\n"
	       "no rail: br-1f2e 172.18.0.1 (node1): not all hosts have an interface that reaches it\n");
}

static void test_rates(void **state)
{
	hosts_make(2);
	add_all("mgmt", "10.0.0.%", 24, 1000);
	add_all("eth0", "10.0.1.%", 24, 10000);
	add_all("eth1", "10.0.2.%", 24, 2500);
	expect(within_subnets, "net=10.0.1.0/24+10.0.2.0/24",
	       "no rail: mgmt 10.0.0.1 (all hosts): 125MB/s, less than a quarter of the 1250MB/s of "
	       "eth0\n");
	/* Unknown is not low; the slower end is the rail's rate. */
	named(0, "mgmt")->rate = named(1, "mgmt")->rate = 0;
	named(1, "eth1")->rate = 100 * MBIT;
	expect(within_subnets, "net=10.0.0.0/24+10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (all hosts): 12.5MB/s, less than a quarter of the 1250MB/s of "
	       "eth0\n");
}

static enum softhca_probe_code fast_is_cut(unsigned a, const struct softhca_net *from, unsigned b,
					   const struct softhca_net *to)
{
	return strcmp(from->name, "eth0") ? within_subnets(a, from, b, to) : SOFTHCA_PROBE_REFUSED;
}

static void test_best_rate_is_a_rails(void **state)
{
	hosts_make(2);
	add_all("mgmt", "10.0.0.%", 24, 1000);
	add_all("eth0", "10.0.1.%", 24, 10000);
	expect(fast_is_cut, "net=10.0.0.0/24",
	       "no rail: eth0 10.0.1.1 (all hosts): node0: a refusal (a firewall?) from node1 10.0.1.2\n");
}

static enum softhca_probe_code vlan_is_cut(unsigned a, const struct softhca_net *from, unsigned b,
					   const struct softhca_net *to)
{
	return strcmp(from->name, "vlan5") ? within_subnets(a, from, b, to) : SOFTHCA_PROBE_CROSSED;
}

static void test_vlan(void **state)
{
	hosts_make(2);
	add_all("vlan5", "10.0.5.%", 24, 1000);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add_all("eth1", "10.0.2.%", 24, 1000);
	for (unsigned h = 0; h < 2; h++) {
		named(h, "vlan5")->layers = 1;
		named(h, "vlan5")->wire = named(h, "eth0")->wire;
	}
	expect(within_subnets, "net=10.0.1.0/24+10.0.2.0/24",
	       "no rail: vlan5 10.0.5.1 (all hosts): its packets go over the same wire as those of "
	       "eth0\n");
	expect(vlan_is_cut, "net=10.0.1.0/24+10.0.2.0/24",
	       "no rail: vlan5 10.0.5.1 (all hosts): its packets go over the same wire as those of "
	       "eth0\n");
	/* Where its lower interface is none, a VLAN is a rail. */
	why_all("eth0", SOFTHCA_NET_PUBLIC);
	expect(within_subnets, "net=10.0.5.0/24+10.0.2.0/24",
	       "no rail: eth0 10.0.1.1 (all hosts): a public address; --soft net=10.0.1.0/24 names it\n");
}

static void test_left_out_by_themselves(void **state)
{
	hosts_make(2);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add_all("eth1", "10.0.2.%", 24, 1000);
	add_all("wg0", "10.9.0.%", 24, 0);
	add_all("eth2", "192.0.2.%", 25, 1000);
	why_all("eth1", SOFTHCA_NET_DOWN);
	why_all("wg0", SOFTHCA_NET_TUNNEL);
	why_all("eth2", SOFTHCA_NET_PUBLIC);
	named(1, "eth1")->why = SOFTHCA_NET_USABLE;
	expect(within_subnets, "net=10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (node0): down, or without carrier\n"
	       "no rail: wg0 10.9.0.1 (all hosts): a tunnel\n"
	       "no rail: eth2 192.0.2.1 (all hosts): a public address; --soft net=192.0.2.0/25 names it\n"
	       "no rail: eth1 10.0.2.2 (node1): not all hosts have an interface that reaches it\n");
}

/* A program that accuses has the rails of the hosts that are up. */
static void test_down_is_a_port(void **state)
{
	hosts_make(3);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add_all("eth1", "10.0.2.%", 24, 1000);
	add_all("eth2", "10.0.3.%", 24, 1000);
	named(0, "eth1")->why = SOFTHCA_NET_DOWN;
	named(2, "eth1")->why = SOFTHCA_NET_DOWN;
	why_all("eth2", SOFTHCA_NET_DOWN);
	add(0, "eth3", "10.0.4.1", 24, 1000)->why = SOFTHCA_NET_DOWN;
	add(1, "eth3", "10.0.4.2", 24, 1000);
	with_down = true;
	expect(unless_down, "net=10.0.1.0/24+10.0.2.0/24",
	       "no rail: eth2 10.0.3.1 (all hosts): down, or without carrier\n"
	       "no rail: eth3 10.0.4.1 (node0): down, or without carrier\n"
	       "no rail: eth3 10.0.4.2 (node1): not all hosts have an interface that reaches it\n");
	expect_spec_of(unless_down, 2, "net=10.0.1.0/24+10.0.2.0/24");
	with_down = false;
	expect(unless_down, "net=10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (node0 and 1 more): down, or without carrier\n"
	       "no rail: eth2 10.0.3.1 (all hosts): down, or without carrier\n"
	       "no rail: eth3 10.0.4.1 (node0): down, or without carrier\n"
	       "no rail: eth1 10.0.2.2 (node1): not all hosts have an interface that reaches it\n"
	       "no rail: eth3 10.0.4.2 (node1): not all hosts have an interface that reaches it\n");
}

/* The bridge of containers is up on one host alone; the others' have the same address, so none is a rail. */
static void test_down_twins(void **state)
{
	hosts_make(3);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add_all("docker0", "172.17.0.1", 16, 10000);
	named(0, "docker0")->why = SOFTHCA_NET_DOWN;
	named(2, "docker0")->why = SOFTHCA_NET_DOWN;
	with_down = true;
	expect_spec_of(unless_down, 0, "net=10.0.1.0/24");
	with_down = false;
}

/* Two interfaces in one subnet, and no name that all hosts have: the one that is up. */
static void test_down_beside_up(void **state)
{
	hosts_make(2);
	add(0, "eth0", "10.0.1.1", 24, 1000);
	add(1, "ens1", "10.0.1.2", 24, 1000)->why = SOFTHCA_NET_DOWN;
	add(1, "ens2", "10.0.1.3", 24, 1000);
	with_down = true;
	expect_spec_of(unless_down, 1, "net=10.0.1.3");
	with_down = false;
}

static void test_other_names(void **state)
{
	hosts_make(2);
	add(0, "eth0", "10.0.1.1", 24, 1000);
	add(0, "eth1", "10.0.2.1", 24, 1000);
	add(1, "ens2", "10.0.2.2", 24, 1000);
	add(1, "ens1", "10.0.1.2", 24, 1000);
	expect(within_subnets, "net=10.0.1.0/24+10.0.2.0/24", "");
	expect_spec_of(within_subnets, 1, "net=10.0.1.0/24+10.0.2.0/24");
	named(1, "ens2")->rate = 10 * MBIT;
	expect(within_subnets, "net=10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (node0; ens2 on node1): 1250kB/s, less than a quarter of the "
	       "125MB/s of eth0\n");
}

/* Two interfaces of a host in one subnet: matched by name, named by address. */
static void test_one_subnet(void **state)
{
	hosts_make(2);
	add_all("eth10", "10.0.0.1%", 24, 1000);
	add_all("eth9", "10.0.0.9%", 24, 1000);
	expect(within_subnets, "net=10.0.0.11+10.0.0.91", "");
	expect_spec_of(within_subnets, 1, "net=10.0.0.12+10.0.0.92");
	/* Other names, and one more at one end. */
	hosts_make(2);
	add(0, "eth2", "10.0.0.3", 24, 1000);
	add(0, "eth10", "10.0.0.1", 24, 1000);
	add(1, "ens9", "10.0.0.4", 24, 1000);
	expect_spec_of(within_subnets, 0, "net=10.0.0.3");
	expect_spec_of(within_subnets, 1, "net=10.0.0.4");
	add(1, "eth10", "10.0.0.2", 24, 1000);
	expect_spec_of(within_subnets, 0, "net=10.0.0.3+10.0.0.1");
	expect_spec_of(within_subnets, 1, "net=10.0.0.4+10.0.0.2");
}

static void test_ipv6(void **state)
{
	hosts_make(2);
	add_all("eth0", "fd00:0:0:1::%", 64, 1000);
	/* Global, with the prefix of DHCPv6, on one link; in two subnets. */
	add_all("eth1", "2001:db8:0:2::%", 128, 1000);
	add_all("eth2", "2001:db8:0:3%::1", 64, 1000);
	expect(within_subnets, "net=fd00:0:0:1::/64",
	       "no rail: eth1 2001:db8:0:2::1 (all hosts): node0: no answer within 3 s from node1 "
	       "2001:db8:0:2::2: no path, or a firewall\n"
	       "no rail: eth2 2001:db8:0:31::1 (all hosts): a public address; --soft "
	       "net=2001:db8:0:31::/64 names it\n");
	expect_spec_of(anywhere, 1, "net=fd00:0:0:1::/64+2001:db8:0:2::/64");
}

/* IPv4 and IPv6 of an interface are one rail; IPv6 is it where not all hosts have IPv4. */
static void test_both_families(void **state)
{
	hosts_make(2);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add(0, "eth1", "10.0.2.1", 24, 1000);
	add_all("eth0", "fd00:0:0:1::%", 64, 1000);
	add_all("eth1", "fd00:0:0:2::%", 64, 1000);
	expect(within_subnets, "net=10.0.1.0/24+fd00:0:0:2::/64", "");
	expect_spec_of(within_subnets, 1, "net=10.0.1.0/24+fd00:0:0:2::/64");
}

/* ---- Routers ------------------------------------------------------------- */

/* Each rail is a plane of subnets, one for each host, by their third byte's tens. */
static enum softhca_probe_code planes(unsigned a, const struct softhca_net *from, unsigned b,
				      const struct softhca_net *to)
{
	(void)a;
	(void)b;
	return from->gid.raw[14] / 10 == to->gid.raw[14] / 10 ? SOFTHCA_PROBE_PASSED :
								SOFTHCA_PROBE_NO_ROUTE;
}

static void test_routed_planes(void **state)
{
	for (unsigned n = 2; n <= 9; n++) {
		char spec[64];

		hosts_make(n);
		for (unsigned h = 0; h < n; h++) {
			char one[32], two[32];

			snprintf(one, sizeof(one), "10.0.1%u.1", h);
			snprintf(two, sizeof(two), "10.0.2%u.1", h);
			/* The order differs by host, and some names. */
			add(h, h % 2 ? "ens1" : "eth0", h % 3 ? one : two, 24, 1000);
			add(h, h % 2 ? "ens2" : "eth1", h % 3 ? two : one, 24, 1000);
		}
		expect(planes, "net=10.0.20.1+10.0.10.1", "");
		for (unsigned h = 0; h < n; h++) {
			snprintf(spec, sizeof(spec), "net=10.0.2%u.1+10.0.1%u.1", h, h);
			expect_spec_of(planes, h, spec);
		}
	}
}

/* Where all reach all, names and likeness of addresses match. */
static void test_routed_all(void **state)
{
	hosts_make(3);
	for (unsigned h = 0; h < 3; h++) {
		char one[32], two[32];

		snprintf(one, sizeof(one), "10.1.%u.1", h);
		snprintf(two, sizeof(two), "10.2.%u.1", h);
		add(h, "eth0", h == 1 ? two : one, 24, 1000);
		add(h, "eth1", h == 1 ? one : two, 24, 1000);
	}
	expect(anywhere, "net=10.1.0.1+10.2.0.1", "");
	expect_spec_of(anywhere, 1, "net=10.1.1.1+10.2.1.1");
	expect_spec_of(anywhere, 2, "net=10.1.2.1+10.2.2.1");
}

static void test_no_match(void **state)
{
	hosts_make(3);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add(0, "eth1", "10.0.2.1", 24, 1000);
	add(1, "eth1", "10.0.3.1", 24, 1000);
	add(2, "eth1", "10.0.4.1", 24, 1000);
	expect(within_subnets, "net=10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (all hosts): node1 has no interface that reaches it\n");
}

/* ---- Probes -------------------------------------------------------------- */

static enum softhca_probe_code one_way_is_cut(unsigned a, const struct softhca_net *from, unsigned b,
					      const struct softhca_net *to)
{
	if (a == 4 && b == 6 && strcmp(from->name, "eth1") == 0)
		return SOFTHCA_PROBE_SILENT;
	return within_subnets(a, from, b, to);
}

static void test_one_pair_is_cut(void **state)
{
	hosts_make(7);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add_all("eth1", "10.0.2.%", 24, 1000);
	expect(one_way_is_cut, "net=10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (all hosts): node4: no answer within 3 s from node6 10.0.2.7: no "
	       "path, or a firewall\n");
}

static enum softhca_probe_code full_packets_vanish(unsigned a, const struct softhca_net *from,
						   unsigned b, const struct softhca_net *to)
{
	return strcmp(from->name, "eth1") ? within_subnets(a, from, b, to) : SOFTHCA_PROBE_MTU;
}

static void test_mtu(void **state)
{
	hosts_make(2);
	add_all("eth0", "10.0.1.%", 24, 1000);
	add_all("eth1", "10.0.2.%", 24, 1000);
	named(0, "eth1")->mtu = named(1, "eth1")->mtu = 9000;
	expect(full_packets_vanish, "net=10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (all hosts): node0: packets of the full MTU do not pass to or from "
	       "node1 10.0.2.2 (MTU 9000 and 9000 bytes)\n");
	/* A probe passes between unlike MTUs; connections do not. */
	named(1, "eth1")->mtu = 1400;
	expect(within_subnets, "net=10.0.1.0/24",
	       "no rail: eth1 10.0.2.1 (all hosts): node0: another MTU than node1 10.0.2.2 "
	       "(MTU 9000 and 1400 bytes)\n");
}

static enum softhca_probe_code eth1_crosses(unsigned a, const struct softhca_net *from, unsigned b,
					    const struct softhca_net *to)
{
	return strcmp(from->name, "eth1") ? within_subnets(a, from, b, to) : SOFTHCA_PROBE_CROSSED;
}

static enum softhca_probe_code eth1_is_silent(unsigned a, const struct softhca_net *from, unsigned b,
					      const struct softhca_net *to)
{
	return strcmp(from->name, "eth1") ? within_subnets(a, from, b, to) : SOFTHCA_PROBE_SILENT;
}

static void test_settings(void **state)
{
	static const char silent[] =
		"no rail: eth1 10.0.0.21 (all hosts): node0: no answer within 3 s from node1 10.0.0.22";
	char expected[512];

	hosts_make(2);
	add_all("eth0", "10.0.0.1%", 24, 1000);
	add_all("eth1", "10.0.0.2%", 24, 1000);
	expect(eth1_crosses, "net=10.0.0.11",
	       "no rail: eth1 10.0.0.21 (all hosts): on node1 its packets arrive on eth0: "
	       "net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2 there change that\n");
	snprintf(expected, sizeof(expected), "%s; eth0 is in this subnet, too, and answers ARP for eth1: "
		 "net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2 on node1 change that\n",
		 silent);
	expect(eth1_is_silent, "net=10.0.0.11", expected);
	for (unsigned h = 0; h < 2; h++)
		named(h, "eth0")->arp_ignore = named(h, "eth1")->arp_ignore = 1;
	snprintf(expected, sizeof(expected), "%s: no path, or a firewall\n", silent);
	expect(eth1_is_silent, "net=10.0.0.11", expected);
	named(0, "eth1")->rp_filter = 1;
	snprintf(expected, sizeof(expected), "%s; eth0 is in this subnet, too, and eth1 drops what would "
		 "go back there: net.ipv4.conf.eth1.rp_filter=2 on node0 changes that\n", silent);
	expect(eth1_is_silent, "net=10.0.0.11", expected);
}

/* ---- Limits -------------------------------------------------------------- */

static void test_many(void **state)
{
	hosts_make(2);
	for (unsigned i = 0; i < CHOICE_RAILS + 1; i++) {
		char name[16], pattern[32];

		snprintf(name, sizeof(name), "eth%u", i);
		snprintf(pattern, sizeof(pattern), "10.0.%u.%%", i);
		add_all(name, pattern, 24, 1000);
	}
	expect(within_subnets, "net=10.0.0.0/24+10.0.1.0/24+10.0.2.0/24+10.0.3.0/24+10.0.4.0/24+"
	       "10.0.5.0/24+10.0.6.0/24+10.0.7.0/24",
	       "no rail: eth8 10.0.8.1 (all hosts): 8 rails are in use\n");
}

static enum softhca_probe_code narrow_router(unsigned a, const struct softhca_net *from, unsigned b,
					      const struct softhca_net *to)
{
	if (same_subnet(from, to) || strcmp(from->name, to->name) != 0)
		return within_subnets(a, from, b, to);
	return strcmp(from->name, "eth1") ? SOFTHCA_PROBE_PASSED : SOFTHCA_PROBE_MTU;
}

/* Subnets that routers join, one of them with a smaller MTU. */
static void test_routers(void **state)
{
	hosts_make(3);
	add_all("eth0", "10.1.%.1", 24, 1000);
	add_all("eth1", "10.2.%.1", 24, 1000);
	expect(narrow_router, "net=10.1.1.1",
	       "no rail: eth1 10.2.1.1 (all hosts): packets of the full MTU (1500 bytes) do not pass to or "
	       "from node1\n");
}

static void test_nothing(void **state)
{
	hosts_make(2);
	expect(within_subnets, "net=", "");
	add(0, "eth0", "10.0.1.1", 24, 1000);
	snprintf(host[1].error, sizeof(host[1].error), "interfaces: netlink: Operation not permitted");
	expect(within_subnets, "net=",
	       "node1: interfaces: netlink: Operation not permitted\n"
	       "no rail: eth0 10.0.1.1 (node0): node1 has no interface that reaches it\n");
}

static void test_full_tables(void **state)
{
	char spec[CHOICE_SPEC_BYTES];
	struct choice c;

	hosts_make(HOSTS_MAX);
	for (unsigned h = 0; h < hosts; h++)
		host[h].more = h == 7 ? 1 : 3;
	for (unsigned i = 0; i < SOFTHCA_NETS_MAX; i++) {
		char name[16], pattern[32];

		snprintf(name, sizeof(name), "eth%u", i);
		snprintf(pattern, sizeof(pattern), i % 2 ? "10.0.%u.%%" : "10.%%.%u.1", i);
		if (i % 2)
			add_all(name, pattern, 24, 1000);
		else
			for (unsigned h = 0; h < hosts; h++) {
				char address[32];

				snprintf(address, sizeof(address), "10.%u.%u.1", h + 1, i);
				add(h, name, address, 24, 1000);
			}
	}
	assert_int_equal(choice_begin(&c, host, hosts, with_down), 0);
	assert_int_equal(c.columns, SOFTHCA_NETS_MAX / 2);
	probe(&c, anywhere);
	choice_finish(&c, found);
	assert_int_equal(c.columns, SOFTHCA_NETS_MAX / 2 + CHOICE_REST);
	assert_int_equal(c.rails, CHOICE_RAILS);
	for (unsigned h = 0; h < hosts; h++)
		choice_spec(&c, h, spec);
	*lines = '\0';
	choice_lines(&c, line_add, NULL);
	for (unsigned i = 0; i < CHOICE_REST; i++) {
		char line[160];

		snprintf(line, sizeof(line), "no rail: eth%u 10.1.%u.1 (all hosts): 8 others of node0 without a "
			 "common subnet are probed, and no more (--soft net= names rails)\n", 16 + 2 * i, 16 + 2 * i);
		assert_non_null(strstr(lines, line));
	}
	assert_null(strstr(lines, "not all hosts"));
	assert_non_null(strstr(lines, "no rail: 3 more interfaces (node0 and 38 more): not looked at, since a host has "
			       "at most 32 addresses (--soft net= names rails)\n"
			       "no rail: 1 more interface (node7): not looked at, since a host has"));
	choice_end(&c);
}

/* The address that reaches it may be one that is not probed. */
static void test_beyond(void **state)
{
	struct choice c;

	hosts_make(2);
	for (unsigned i = 0; i <= CHOICE_REST; i++) {
		char name[16], address[32];

		snprintf(name, sizeof(name), "eth%u", i);
		snprintf(address, sizeof(address), "10.%u.1.1", i);
		add(1, name, address, 24, 1000);
	}
	add(0, "ens1", "10.8.2.1", 24, 1000);
	assert_int_equal(choice_begin(&c, host, hosts, with_down), 0);
	probe(&c, within_subnets);
	choice_finish(&c, found);
	*lines = '\0';
	choice_lines(&c, line_add, NULL);
	choice_end(&c);
	assert_non_null(strstr(lines, "no rail: ens1 10.8.2.1 (node0): node1 has no interface that reaches it, of those "
			       "that are probed\n"));
	assert_non_null(strstr(lines, "no rail: eth0 10.0.1.1 (node1): not all hosts have an interface that reaches it, "
			       "of those that are probed\n"));
	assert_non_null(strstr(lines, "no rail: eth8 10.8.1.1 (node1): 8 others of node1 without"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_rails),
		cmocka_unit_test(test_bridges),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_best_rate_is_a_rails),
		cmocka_unit_test(test_vlan),
		cmocka_unit_test(test_left_out_by_themselves),
		cmocka_unit_test(test_down_is_a_port),
		cmocka_unit_test(test_down_beside_up),
		cmocka_unit_test(test_down_twins),
		cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_one_subnet),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_both_families),
		cmocka_unit_test(test_routed_planes),
		cmocka_unit_test(test_routed_all),
		cmocka_unit_test(test_no_match),
		cmocka_unit_test(test_one_pair_is_cut),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_routers), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_full_tables), cmocka_unit_test(test_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
