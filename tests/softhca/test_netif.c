/*
 * test_netif.c - network interfaces by name and subnet: the address that is chosen, MTU, speed,
 * state, and what is refused, in a network namespace of this test's own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "namespace.h"
#include "softhca/base/gid.h"
#include "softhca/base/netif.h"
#include "softhca/softhca.h"

/* ---- Names --------------------------------------------------------------- */

static void test_canonical(void **state)
{
	static const struct {
		const char *text, *canonical;
	} good[] = {
		{ "eth0", "eth0" }, { "0123456789abcde", "0123456789abcde" }, { "10", "10" },
		{ "10.0.1.7/24", "10.0.1.0/24" }, { "10.0.1.7/32", "10.0.1.7" },
		{ "10.0.1.7", "10.0.1.7" }, { "10.0.1.7/25", "10.0.1.0/25" },
		{ "10.0.1.255/31", "10.0.1.254/31" }, { "255.255.255.255/1", "128.0.0.0/1" },
		{ "1.2.3.4/0", "0.0.0.0/0" }, { "FD00::1:2/112", "fd00::1:0/112" },
		{ "fd00:0:0:1:ffff::/65", "fd00:0:0:1:8000::/65" }, { "fe80::1/128", "fe80::1" },
		{ "::/0", "::/0" }, { "1::/3", "::/3" },
	};
	static const char *const bad[] = {
		"", ".", "..", "a/b", "a b", "a:1", "a\tb", "0123456789abcdef", "10.0.0.1/", "10.0.0.1/33",
		"10.0.0.1/a", "10.0.0.1/+8", "10.0.0.1/0008", "10.0.0/8", "fd00::/129", "fd00::1/1/1",
		"fd00::1::1", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "/8", "fe80::1%lo",
	};
	char text[48];
	unsigned i;

	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(hca_netif_canonical(good[i].text, text, sizeof(text)), 0);
		assert_string_equal(text, good[i].canonical);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (hca_netif_canonical(bad[i], text, sizeof(text)) != -EINVAL)
			fail_msg("'%s' was accepted", bad[i]);
	assert_int_equal(hca_netif_canonical("eth0", text, 4), -EINVAL);
	assert_int_equal(hca_netif_canonical("10.0.0.0/8", text, 10), -EINVAL);
	assert_int_equal(hca_netif_canonical("10.0.0.0/8", text, 11), 0);
}

/* ---- A namespace --------------------------------------------------------- */

/* Two pairs, all four ends here: each end is up while the other is. */
static int make_interfaces(void)
{
	return ip("link set lo up") || make_pair("a0", "b0") || make_pair("a1", "b1") ||
	       ip("link set a0 mtu 9000");
}

static int forget_addresses(void **state)
{
	static const char *const names[] = { "a0", "b0", "a1", "b1" };
	int rc = 0;

	for (unsigned i = 0; i < 4; i++)
		rc |= ip("link set %s up", names[i]) || ip("addr flush dev %s", names[i]);
	for (unsigned i = 0; i < 4; i++)
		rc |= await_running(names[i]);
	return rc;
}

static void assert_address(const char *text, const char *name, const char *address)
{
	char its[INET6_ADDRSTRLEN];
	struct hca_netif n;

	if (hca_netif_find(text, &n))
		fail_msg("%s: %s", text, softhca_last_error());
	assert_string_equal(n.name, name);
	assert_int_equal(n.index, if_nametoindex(name));
	assert_string_equal(hca_gid_format(&n.gid, its, sizeof(its)), address);
	assert_true(n.up);
	assert_true(hca_netif_is_up(&n));
}

static void assert_refused(const char *text, int error, const char *words)
{
	struct hca_netif n = { .mtu = 7 };
	char start[64];
	const char *why;

	assert_int_equal(hca_netif_find(text, &n), -error);
	why = softhca_last_error();
	snprintf(start, sizeof(start), "net=%s: ", text);
	if (strncmp(why, start, strlen(start)) != 0 || !strstr(why, words) ||
	    !strstr(why, "accepted: ") || strchr(why, '\n'))
		fail_msg("'%s': the line is: %s", text, why);
	assert_int_equal(n.mtu, 7);
}

/* ---- What is found ------------------------------------------------------- */

static void test_attributes(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 0, 1, 1 };
	static const uint8_t mac[6] = { 2, 0, 0, 1, 2, 3 };
	const struct sockaddr_in *four;
	struct hca_netif n;

	assert_int_equal(ip("link set a0 address 02:00:00:01:02:03"), 0);
	assert_int_equal(ip("addr add 10.0.1.1/24 dev a0"), 0);
	assert_int_equal(hca_netif_find("a0", &n), 0);
	assert_memory_equal(n.gid.raw, gid, sizeof(gid));
	assert_memory_equal(n.mac, mac, sizeof(mac));
	assert_int_equal(n.mtu, 9000);
	four = (const void *)&n.address;
	assert_int_equal(four->sin_family, AF_INET);
	assert_int_equal(four->sin_port, 0);
	assert_int_equal(four->sin_addr.s_addr, inet_addr("10.0.1.1"));
	/* veth reports 10 Gbit/s; lo knows no speed. */
	assert_int_equal(n.rate, 1250000000);
	assert_int_equal(hca_netif_find("lo", &n), 0);
	assert_int_equal(n.rate, 0);
}

/* The first IPv4 address that is no secondary one; of IPv6 the permanent one. */
static void test_choice(void **state)
{
	ip("addr add fd00:1::1/64 dev a0 nodad");
	assert_address("a0", "a0", "fd00:1::1");
	ip("addr add 10.0.1.1/24 dev a0");
	ip("addr add 10.0.1.2/24 dev a0");
	ip("addr add 172.16.0.1/16 dev a0");
	assert_address("a0", "a0", "10.0.1.1");
	assert_address("10.0.1.0/24", "a0", "10.0.1.1");
	assert_address("172.16.0.0/12", "a0", "172.16.0.1");
	assert_address("fd00::/8", "a0", "fd00:1::1");
	assert_address("10.0.1.1", "a0", "10.0.1.1");
	ip("addr add 10.0.2.1/24 dev a1");
	assert_address("10.0.2.0/24", "a1", "10.0.2.1");
}

static void test_ipv6(void **state)
{
	const struct sockaddr_in6 *six;
	struct hca_netif n;

	ip("addr add fd00:1::1/64 dev a0 nodad preferred_lft 0");
	ip("addr add fd00:1::2/64 dev a0 nodad");
	assert_address("a0", "a0", "fd00:1::2");
	assert_address("fd00:1::/64", "a0", "fd00:1::2");
	assert_refused("fd00:1::1", EADDRNOTAVAIL, "temporary, deprecated");
	assert_int_equal(hca_netif_find("a0", &n), 0);
	six = (const void *)&n.address;
	assert_int_equal(six->sin6_family, AF_INET6);
	assert_int_equal(six->sin6_scope_id, 0);
}

/* Every interface has one, so a name or a subnet does not mean it. */
static void test_link_local(void **state)
{
	const struct sockaddr_in6 *six;
	struct hca_netif n;

	ip("addr add fe80::7/64 dev a1 nodad");
	ip("addr add 169.254.1.1/16 dev b1");
	assert_refused("a1", EADDRNOTAVAIL, "only a link-local address");
	assert_refused("fe80::/64", EADDRNOTAVAIL, "only a link-local address");
	assert_refused("b1", EADDRNOTAVAIL, "only a link-local address");
	assert_address("fe80::7", "a1", "fe80::7");
	assert_address("169.254.1.1", "b1", "169.254.1.1");
	assert_int_equal(hca_netif_find("fe80::7", &n), 0);
	six = (const void *)&n.address;
	assert_int_equal(six->sin6_scope_id, if_nametoindex("a1"));
}

/* ---- What is refused ----------------------------------------------------- */

static void test_refused(void **state)
{
	ip("addr add 10.0.1.1/24 dev a0");
	assert_refused("eth7", ENODEV, "no such interface (accepted: lo 127.0.0.1, a0 10.0.1.1");
	assert_refused("10.9.0.0/16", ENODEV, "no interface has an address there");
	assert_refused("fd09::/16", ENODEV, "no interface has an address there");
	assert_refused("a1", EADDRNOTAVAIL, "has no address (accepted: lo 127.0.0.1, a0 10.0.1.1");
	assert_refused("a/b", EINVAL, "neither an interface nor a subnet");
	assert_refused("10.0.0.0/33", EINVAL, "neither an interface nor a subnet");
}

static void test_down(void **state)
{
	ip("addr add 10.0.1.1/24 dev a0");
	ip("link set a0 down");
	assert_refused("a0", ENETDOWN, "interface a0 is down (accepted: one that is up: lo");
	assert_refused("10.0.1.0/24", ENETDOWN, "interface a0 is down");
	ip("link set a0 up");
	ip("link set b0 down");
	assert_refused("a0", ENETDOWN, "interface a0 has no carrier");
	assert_refused("b0", ENETDOWN, "interface b0 is down");
}

static void test_two(void **state)
{
	ip("addr add 10.0.1.1/24 dev a0");
	ip("addr add 10.0.2.1/24 dev a1");
	assert_refused("10.0.0.0/8", ENOTUNIQ, " are in this subnet");
	assert_refused("10.0.0.0/8", ENOTUNIQ, "a0 10.0.1.1");
	assert_refused("10.0.0.0/8", ENOTUNIQ, "a1 10.0.2.1");
	ip("addr add 10.0.1.2/24 dev b0");
	assert_refused("10.0.1.0/24", ENOTUNIQ, "b0 10.0.1.2");
	assert_address("10.0.1.2/31", "b0", "10.0.1.2");
}

/* ---- Changes ------------------------------------------------------------- */

/* Each change of the state is reported. */
static void await_state(int fd, const struct hca_netif *n, bool up)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	do {
		assert_int_equal(poll(&p, 1, 60000), 1);
		assert_true(hca_netif_watch_changed(fd));
	} while (hca_netif_is_up(n) != up);
}

static void test_watch(void **state)
{
	struct hca_netif n;
	int fd;

	ip("addr add 10.0.1.1/24 dev a0");
	fd = hca_netif_watch();
	assert_true(fd >= 0);
	assert_false(hca_netif_watch_changed(fd));
	assert_int_equal(hca_netif_find("a0", &n), 0);
	ip("link set a0 down");
	await_state(fd, &n, false);
	ip("link set a0 up");
	await_state(fd, &n, true);
	/* By its index: another name is the same interface. */
	ip("link set a0 down");
	ip("link set a0 name c0");
	ip("link set c0 up");
	await_state(fd, &n, true);
	ip("link set c0 down");
	ip("link set c0 name a0");
	ip("link set a0 up");
	await_state(fd, &n, true);
	/* Its address belongs to it. */
	ip("addr del 10.0.1.1/24 dev a0");
	await_state(fd, &n, false);
	close(fd);
	assert_false(hca_netif_watch_changed(-1));
}

/* Equal in one namespace, another one elsewhere. */
static void test_host(void **state)
{
	uint8_t here[16], again[16], there[16];

	assert_int_equal(hca_netif_host(here), 0);
	assert_int_equal(hca_netif_host(again), 0);
	assert_memory_equal(here, again, sizeof(here));
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(hca_netif_host(there), 0);
	assert_memory_not_equal(here, there, sizeof(here));
}

int main(void)
{
	const struct CMUnitTest names[] = { cmocka_unit_test(test_canonical) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_attributes, forget_addresses),
		cmocka_unit_test_setup(test_choice, forget_addresses),
		cmocka_unit_test_setup(test_ipv6, forget_addresses),
		cmocka_unit_test_setup(test_link_local, forget_addresses),
		cmocka_unit_test_setup(test_refused, forget_addresses),
		cmocka_unit_test_setup(test_down, forget_addresses),
		cmocka_unit_test_setup(test_two, forget_addresses),
		cmocka_unit_test_setup(test_watch, forget_addresses),
		cmocka_unit_test(test_host),
	};
	int rc = cmocka_run_group_tests(names, NULL, NULL), error = enter_namespace();

	if (rc)
		return rc;
	if (error || make_interfaces()) {
		printf("skipped: no network namespace with veth (%s)\n",
		       error ? strerror(-error) : "ip link");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
