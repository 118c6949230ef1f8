/*
 * test_meet_net.c - meetings over interfaces, in network namespaces as hosts: both ends of a
 * connection are bound to the rail's interface, and the own host is reached all the same.  Where the
 * kernel lets only root bind them, as before Linux 5.7, their addresses keep them there, or nothing does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "meet_end.h"

enum { QPN = 0x4711, RAILS = 2, SKIPPED = 77 };

/* A host: a namespace, with interfaces rail0 and rail1 as 10.99.RAIL.HOST. */
struct host {
	int net;
	struct meet_end end;
	struct sockaddr_storage at[RAILS];
};

static struct host host[2];
static char token;
static bool may_bind;			/* this kernel lets this user bind to interfaces */

static bool root_alone;			/* it lets root alone, as before Linux 5.7 */

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	if (!root_alone || level != SOL_SOCKET || (name != SO_BINDTODEVICE && name != SO_BINDTOIFINDEX))
		return __real_setsockopt(fd, level, name, value, bytes);
	errno = EPERM;
	return -1;
}

static const char *const interface[RAILS] = { "rail0", "rail1" };

static int run(const char *command)
{
	const int rc = system(command);

	if (rc)
		printf("failed: %s\n", command);
	return rc;
}

static bool write_text(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);
	const bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

/* Root of a user namespace, unless root already. */
static bool become_root(void)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1", (unsigned)geteuid());
	return geteuid() == 0 || (!unshare(CLONE_NEWUSER) &&
				  write_text("/proc/self/uid_map", map));
}

static int net_of_this_process(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static struct sockaddr_storage address(unsigned rail, unsigned of_host)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&a;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a630001u + (rail << 8) + of_host);
	return a;
}

static int interfaces_up(unsigned of_host)
{
	char command[256];
	int rc = setns(host[of_host].net, CLONE_NEWNET) | run("ip link set lo up");

	for (unsigned rail = 0; rail < RAILS && !rc; rail++) {
		snprintf(command, sizeof(command), "ip address add 10.99.%u.%u/24 dev rail%u && "
			 "ip link set rail%u up", rail, of_host + 1, rail, rail);
		rc = run(command);
		host[of_host].at[rail] = address(rail, of_host);
	}
	return rc;
}

/* Two namespaces, and two cables between them. */
static int hosts_make(void)
{
	char command[256];
	int rc = 0;

	host[1].net = net_of_this_process();
	if (unshare(CLONE_NEWNET))
		return -1;
	host[0].net = net_of_this_process();
	if (setns(host[1].net, CLONE_NEWNET))
		return -1;
	for (unsigned rail = 0; rail < RAILS && !rc; rail++) {
		snprintf(command, sizeof(command), "ip link add rail%u type veth peer name rail%u "
			 "netns /proc/%d/fd/%d", rail, rail, (int)getpid(), host[0].net);
		rc = run(command);
	}
	return rc || interfaces_up(0) || interfaces_up(1);
}

static void end_open(unsigned of_host)
{
	struct meet_end *e = &host[of_host].end;

	assert_int_equal(setns(host[of_host].net, CLONE_NEWNET), 0);
	meet_end_prepare(e, 1);
	e->config.local = host[of_host].at;
	e->config.interface = interface;
	e->config.rails = RAILS;
	assert_int_equal(hca_meet_open(&e->meet, &e->config), 0);
}

static int ends_open(void **state)
{
	end_open(0);
	end_open(1);
	return 0;
}

static int ends_close(void **state)
{
	root_alone = false;
	meet_end_close(&host[0].end);
	meet_end_close(&host[1].end);
	return 0;
}

static void call(unsigned from, unsigned to, unsigned rail)
{
	struct hca_hello h = { .kind = HCA_MEET_QP, .rail = (uint8_t)rail, .rails = RAILS,
			       .target_qpn = QPN, .mtu = 1024 };

	assert_int_equal(setns(host[from].net, CLONE_NEWNET), 0);
	assert_int_equal(hca_meet_call(host[from].end.meet, &host[to].at[rail], &h, &token), 0);
}

/* Each end is served in its own namespace. */
static void until(const struct meet_end *e, unsigned count)
{
	const uint64_t begun = meet_real_ns();

	while (e->count < count) {
		assert_true(meet_real_ns() - begun < 60000000000u);
		for (unsigned i = 0; i < 2; i++) {
			struct meet_end *one = &host[i].end;

			assert_int_equal(setns(host[i].net, CLONE_NEWNET), 0);
			meet_settle(&one, 1);
		}
	}
}

static void assert_bound(int fd, const char *name)
{
	char bound[IFNAMSIZ] = "";
	socklen_t bytes = sizeof(bound);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, bound, &bytes), 0);
	assert_string_equal(bound, name);
}

static void assert_source(int fd, const struct sockaddr_storage *expected)
{
	struct sockaddr_in seen;
	socklen_t bytes = sizeof(seen);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&seen, &bytes), 0);
	assert_int_equal(seen.sin_addr.s_addr,
			 ((const struct sockaddr_in *)(const void *)expected)->sin_addr.s_addr);
}

static uint64_t bytes_sent(const char *name)
{
	unsigned long long bytes = 0;
	FILE *f = fopen("/proc/thread-self/net/dev", "r");

	assert_non_null(f);
	for (char line[256]; fgets(line, sizeof(line), f);) {
		const char *at = strstr(line, name);

		if (at)
			sscanf(at + strlen(name), ": %*s %*s %*s %*s %*s %*s %*s %*s %llu", &bytes);
	}
	fclose(f);
	return bytes;
}

/* Bytes of this connection of host 0 leave over its rail, and not over the other one. */
static void assert_over(int fd, unsigned rail)
{
	static const char bytes[60000];
	uint64_t before[RAILS];
	unsigned i;

	assert_int_equal(setns(host[0].net, CLONE_NEWNET), 0);
	for (i = 0; i < RAILS; i++)
		before[i] = bytes_sent(interface[i]);
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
	for (int queued = 1; queued;)
		assert_int_equal(ioctl(fd, SIOCOUTQ, &queued), 0);
	for (i = 0; i < RAILS; i++)
		assert_true((bytes_sent(interface[i]) - before[i] > sizeof(bytes)) == (i == rail));
}

static void test_each_rail(void **state)
{
	for (unsigned rail = 0; rail < RAILS; rail++) {
		const struct meet_told *here, *there;

		call(0, 1, rail);
		until(&host[1].end, rail + 1);
		here = &host[0].end.told[rail];
		there = &host[1].end.told[rail];
		assert_int_equal(here->error, 0);
		assert_source(here->fd, &host[0].at[rail]);
		assert_source(there->fd, &host[1].at[rail]);
		if (may_bind || root_alone) {
			assert_bound(here->fd, root_alone ? "" : interface[rail]);
			assert_bound(there->fd, root_alone ? "" : interface[rail]);
		}
		if (root_alone)
			assert_over(here->fd, rail);
	}
}

static void test_each_rail_by_address(void **state)
{
	root_alone = true;
	test_each_rail(state);
}

/* The way from host `of_host` to the other's end of rail 1 is rail 0, or its own again. */
static void astray(unsigned of_host, bool begin)
{
	char command[96];

	assert_int_equal(setns(host[of_host].net, CLONE_NEWNET), 0);
	snprintf(command, sizeof(command), "ip route %s 10.99.1.%u/32 dev rail0", begin ? "add" : "delete",
		 2 - of_host);
	assert_int_equal(run(command), 0);
}

static void test_astray_call(void **state)
{
	root_alone = true;
	astray(0, true);
	call(0, 1, 1);
	call(0, 1, 0);
	until(&host[0].end, 2);
	astray(0, false);
	assert_int_equal(host[0].end.told[0].error, EXDEV);
	assert_int_equal(host[0].end.told[1].error, 0);
}

static void test_astray_arrival(void **state)
{
	root_alone = true;
	astray(1, true);
	call(0, 1, 1);
	until(&host[0].end, 1);
	astray(1, false);
	assert_int_not_equal(host[0].end.told[0].error, 0);
	assert_int_equal(host[1].end.count, 0);
}

/* Bound sockets need no routes. */
static void test_astray_bound(void **state)
{
	if (!may_bind)
		skip();
	astray(0, true);
	call(0, 1, 1);
	until(&host[1].end, 1);
	astray(0, false);
	assert_int_equal(host[0].end.told[0].error, 0);
}

/* A socket that is bound to an interface does not reach an address of its own host. */
static void test_own_host(void **state)
{
	for (unsigned rail = 0; rail < RAILS; rail++) {
		call(0, 0, rail);
		until(&host[0].end, 2 * rail + 2);
		assert_int_equal(host[0].end.told[2 * rail].error, 0);
		assert_int_equal(host[0].end.told[2 * rail + 1].error, 0);
		assert_int_equal(host[0].end.arrived, rail + 1);
		assert_bound(host[0].end.told[2 * rail].fd, "");
		assert_bound(host[0].end.told[2 * rail + 1].fd, "");
	}
}

static void test_no_route(void **state)
{
	struct hca_hello h = { .kind = HCA_MEET_QP, .rails = RAILS, .target_qpn = QPN };
	struct sockaddr_storage nowhere = address(77, 7);

	assert_int_equal(setns(host[0].net, CLONE_NEWNET), 0);
	assert_int_equal(hca_meet_call(host[0].end.meet, &nowhere, &h, &token), 0);
	until(&host[0].end, 1);
	/* A bound socket takes a host without a route for one of its link. */
	assert_true(host[0].end.told[0].error == EHOSTUNREACH ||
		    host[0].end.told[0].error == ENETUNREACH);
	assert_non_null(strstr(host[0].end.told[0].why, "10.99.77.8 port"));
}

/* Bound to the interface, a call finds no way around it. */
static void test_interface_down(void **state)
{
	assert_int_equal(setns(host[0].net, CLONE_NEWNET), 0);
	assert_int_equal(run("ip link set rail1 down"), 0);
	call(0, 1, 1);
	until(&host[0].end, 1);
	assert_true(host[0].end.told[0].error == ENETUNREACH || host[0].end.told[0].error == ENETDOWN ||
		    host[0].end.told[0].error == EHOSTUNREACH);
	assert_int_equal(run("ip link set rail1 up"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_rail, ends_open, ends_close),
		cmocka_unit_test_setup_teardown(test_each_rail_by_address, ends_open, ends_close),
		cmocka_unit_test_setup_teardown(test_astray_call, ends_open, ends_close),
		cmocka_unit_test_setup_teardown(test_astray_arrival, ends_open, ends_close),
		cmocka_unit_test_setup_teardown(test_astray_bound, ends_open, ends_close),
		cmocka_unit_test_setup_teardown(test_own_host, ends_open, ends_close),
		cmocka_unit_test_setup_teardown(test_no_route, ends_open, ends_close),
		cmocka_unit_test_setup_teardown(test_interface_down, ends_open, ends_close),
	};
	int probe;

	if (!become_root() || unshare(CLONE_NEWNET)) {
		printf("no network namespaces here: %s\n", strerror(errno));
		return SKIPPED;
	}
	if (hosts_make()) {
		printf("no interfaces here: ip link add type veth fails\n");
		return SKIPPED;
	}
	probe = socket(AF_INET, SOCK_STREAM, 0);
	may_bind = !setsockopt(probe, SOL_SOCKET, SO_BINDTODEVICE, "rail0", 5);
	close(probe);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
