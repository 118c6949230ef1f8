/*
 * test_probe.c - probes between network namespaces as hosts: what they find, and callers that are
 * none.  Time is the test's own.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "cmocka_all.h"
#include "namespace.h"
#include "softhca/base/gid.h"
#include "softhca/softhca.h"
#include "util/clock.h"

enum { JOB = 0x4711, HOSTS = 2, SILENT = 300, ROUNDS = 20000 };

/* A host: interfaces rail0 (10.98.0.HOST) and rail1 (fd98::HOST). */
struct host {
	int net;
	uint8_t id[16];
	struct softhca_net list[SOFTHCA_NETS_MAX];
	int count;
	struct softhca_probe *probe;
};
static struct host host[HOSTS], second[HOSTS];	/* of another job, on the same hosts */

/* ---- Time ---------------------------------------------------------------- */

static uint64_t skipped_ns, stopped_ns;	/* stopped_ns: time stands still there */
uint64_t __real_rg_now_ns(void);
uint64_t __wrap_rg_now_ns(void);

uint64_t __wrap_rg_now_ns(void)
{
	return (stopped_ns ? stopped_ns : __real_rg_now_ns()) + skipped_ns;
}

/* ---- Hosts --------------------------------------------------------------- */

static int net_of_this_process(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static void enter(unsigned h)
{
	assert_int_equal(setns(host[h].net, CLONE_NEWNET), 0);
}

static int interfaces_up(unsigned h)
{
	int rc = setns(host[h].net, CLONE_NEWNET) || ip("link set lo up") ||
		 ip("link set rail0 up") || ip("link set rail1 up") ||
		 ip("addr add 10.98.0.%u/24 dev rail0", h + 1) ||
		 ip("addr add fd98::%u/64 dev rail1 nodad", h + 1);

	return rc || softhca_net_host(host[h].id);
}

static int hosts_make(void)
{
	int rc = 0;

	host[1].net = net_of_this_process();
	if (unshare(CLONE_NEWNET))
		return -1;
	host[0].net = net_of_this_process();
	if (setns(host[1].net, CLONE_NEWNET))
		return -1;
	for (unsigned rail = 0; rail < 2 && !rc; rail++)
		rc = ip("link add rail%u type veth peer name rail%u netns /proc/%d/fd/%d", rail, rail,
			(int)getpid(), host[0].net);
	rc = rc || interfaces_up(0) || interfaces_up(1);
	for (unsigned h = 0; h < HOSTS && !rc; h++)
		rc = setns(host[h].net, CLONE_NEWNET) || await_running("rail0") ||
		     await_running("rail1");
	return rc;
}

static void open_probe(struct host *of, unsigned h, uint64_t job)
{
	enter(h);
	of->count = softhca_net_list(of->list, SOFTHCA_NETS_MAX, NULL);
	assert_true(of->count > 0);
	assert_int_equal(softhca_probe_open(&of->probe, of->list, (unsigned)of->count, job), 0);
}

static void open_host(unsigned h, uint64_t job)
{
	open_probe(&host[h], h, job);
}

static int open_both(void **state)
{
	(void)state;
	skipped_ns = 0;
	open_host(0, JOB);
	open_host(1, JOB);
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	for (unsigned h = 0; h < HOSTS; h++) {
		softhca_probe_close(host[h].probe);
		softhca_probe_close(second[h].probe);
		host[h].probe = second[h].probe = NULL;
	}
	return 0;
}

static unsigned net_of(unsigned h, const char *name)
{
	for (int i = 0; i < host[h].count; i++)
		if (strcmp(host[h].list[i].name, name) == 0 &&
		    host[h].list[i].why == SOFTHCA_NET_USABLE)
			return (unsigned)i;
	fail_msg("no %s", name);
	return 0;
}

/* ---- Calls --------------------------------------------------------------- */

static void call(unsigned h, const char *name, struct softhca_probed *result)
{
	enter(h);
	softhca_probe_call(host[h].probe, net_of(h, name), &host[!h].list[net_of(!h, name)],
			   host[!h].id, result);
}

/* Calls under way. */
static unsigned progress(void)
{
	unsigned count = 0;

	for (unsigned h = 0; h < HOSTS; h++) {
		enter(h);
		count += softhca_probe_progress(host[h].probe);
		count += second[h].probe ? softhca_probe_progress(second[h].probe) : 0;
	}
	return count;
}

/* All are served until no call is under way. */
static void serve(void)
{
	unsigned under_way = 1;

	for (unsigned i = 0; under_way; i++) {
		under_way = progress();
		if (i == ROUNDS)
			fail_msg("a call does not end");
		usleep(under_way ? 500 : 0);
	}
}

static void serve_some(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		progress();
		usleep(500);
	}
}

static void expect_call(unsigned h, const char *name, enum softhca_probe_code code)
{
	struct softhca_probed result;

	call(h, name, &result);
	serve();
	assert_int_equal(result.code, code);
}

static void test_passes(void **state)
{
	struct softhca_probed result[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		call(i % 2, i < 2 ? "rail0" : "rail1", &result[i]);
	serve();
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(result[i].code, SOFTHCA_PROBE_PASSED);
}

/* An MTU that differs is no fault: each end sends what the other takes. */
static void test_mtus(void **state)
{
	enter(0);
	assert_int_equal(ip("link set rail0 mtu 9000"), 0);
	close_both(state);
	open_both(state);
	expect_call(0, "rail0", SOFTHCA_PROBE_PASSED);
	expect_call(1, "rail0", SOFTHCA_PROBE_PASSED);
	enter(1);
	assert_int_equal(ip("link set rail0 mtu 9000"), 0);
	close_both(state);
	open_both(state);
	expect_call(0, "rail0", SOFTHCA_PROBE_PASSED);
}

/*
 * Packets of more than 1,500 bytes to host h are lost on the way: its interface drops them, although it
 * announces to TCP that it takes them.
 */
static void lose_long_packets_to(unsigned h)
{
	enter(h);
	assert_int_equal(ip("link set rail0 mtu 1500"), 0);
	assert_int_equal(ip("route change 10.98.0.0/24 dev rail0 src 10.98.0.%u advmss 8960", h + 1), 0);
}

static void lose_none(unsigned h)
{
	enter(h);
	assert_int_equal(ip("route change 10.98.0.0/24 dev rail0 src 10.98.0.%u", h + 1), 0);
	assert_int_equal(ip("link set rail0 mtu 9000"), 0);
}

/* Host 0 alone calls: it finds what is lost on the way to it, too. */
static void test_long_packets_of_one_direction(void **state)
{
	struct softhca_probed result;

	for (unsigned h = 0; h < HOSTS; h++) {
		enter(h);
		assert_int_equal(ip("link set rail0 mtu 9000"), 0);
	}
	for (unsigned h = 0; h < HOSTS; h++) {
		close_both(state);
		open_both(state);
		expect_call(0, "rail0", SOFTHCA_PROBE_PASSED);
		lose_long_packets_to(h);
		stopped_ns = __real_rg_now_ns();
		call(0, "rail0", &result);
		serve_some(200);
		assert_int_equal(result.code, SOFTHCA_PROBE_NONE);
		stopped_ns = 0;
		skipped_ns = 3000000000u;
		serve();
		assert_int_equal(result.code, SOFTHCA_PROBE_MTU);
		lose_none(h);
	}
}

static void test_other_job(void **state)
{
	softhca_probe_close(host[1].probe);
	open_host(1, JOB + 1);
	expect_call(0, "rail0", SOFTHCA_PROBE_REFUSED);
}

static void test_other_host(void **state)
{
	host[1].id[3] ^= 1;
	expect_call(0, "rail1", SOFTHCA_PROBE_OTHER);
	host[1].id[3] ^= 1;
	/* An address of the caller's own. */
	host[1].list[net_of(1, "rail0")].gid.raw[15] = 1;
	expect_call(0, "rail0", SOFTHCA_PROBE_SELF);
}

static void test_no_route(void **state)
{
	struct softhca_net *to = &host[1].list[net_of(1, "rail0")];

	to->gid.raw[13] = 55;
	expect_call(0, "rail0", SOFTHCA_PROBE_NO_ROUTE);
}

static void test_nobody(void **state)
{
	host[1].list[net_of(1, "rail0")].port = 9;
	host[1].list[net_of(1, "rail1")].port = 9;
	expect_call(0, "rail0", SOFTHCA_PROBE_REFUSED);
	expect_call(0, "rail1", SOFTHCA_PROBE_REFUSED);
}

/* The other process does not answer; its kernel does. */
static void test_silence(void **state)
{
	struct softhca_probed result;

	call(0, "rail0", &result);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(softhca_probe_progress(host[0].probe), 1);
		usleep(500);
	}
	assert_int_equal(result.code, SOFTHCA_PROBE_NONE);
	skipped_ns = 3000000000u;
	assert_int_equal(softhca_probe_progress(host[0].probe), 0);
	assert_int_equal(result.code, SOFTHCA_PROBE_SILENT);
}

/* ---- Others that call ---------------------------------------------------- */

static int connect_to(const struct softhca_net *n)
{
	struct sockaddr_storage at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	hca_gid_address(&n->gid, &at);
	((struct sockaddr_in *)(void *)&at)->sin_port = htons(n->port);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)(const void *)&at,
			       sizeof(struct sockaddr_in)) == 0)
		return fd;
	fail_msg("no connection");
	return -1;
}

static void test_garbage(void **state)
{
	static const char garbage[200] = "GET / HTTP/1.0\r\n\r\n";
	char answer[8];
	int fd;

	enter(0);
	fd = connect_to(&host[1].list[net_of(1, "rail0")]);
	assert_int_equal(send(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	serve_some(20);
	/* Closed without an answer. */
	assert_true(recv(fd, answer, sizeof(answer), 0) <= 0);
	close(fd);
	expect_call(0, "rail0", SOFTHCA_PROBE_PASSED);
}

/* Many that say nothing, and parts of a greeting. */
static void test_crowd(void **state)
{
	const struct softhca_net *to = &host[1].list[net_of(1, "rail0")];
	int fd[SILENT];

	enter(0);
	for (unsigned i = 0; i < SILENT; i++) {
		fd[i] = connect_to(to);
		if (i % 2)
			assert_int_equal(send(fd[i], "softhca?", 4, MSG_NOSIGNAL), 4);
		serve_some(i % 50 == 49);
	}
	expect_call(0, "rail0", SOFTHCA_PROBE_PASSED);
	skipped_ns = 3000000000u;
	serve_some(1);
	expect_call(0, "rail0", SOFTHCA_PROBE_PASSED);
	for (unsigned i = 0; i < SILENT; i++)
		close(fd[i]);
}

/* ---- Opening ------------------------------------------------------------- */

static int listen_everywhere(uint16_t port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void test_ports(void **state)
{
	int fd;
	struct softhca_probe *probe;

	close_both(state);
	setenv("SOFTHCA_PORTS", "18999", 1);
	open_both(state);
	assert_int_equal(host[0].list[net_of(0, "rail0")].port, 18999);
	expect_call(0, "rail0", SOFTHCA_PROBE_PASSED);
	/* All are in use. */
	enter(0);
	fd = listen_everywhere(18998);
	setenv("SOFTHCA_PORTS", "18998", 1);
	assert_int_equal(softhca_probe_open(&probe, host[0].list, (unsigned)host[0].count, JOB),
			 -EADDRINUSE);
	assert_non_null(strstr(softhca_last_error(), "18998"));
	close(fd);
	setenv("SOFTHCA_PORTS", "no", 1);
	assert_int_equal(softhca_probe_open(&probe, host[0].list, (unsigned)host[0].count, JOB),
			 -EINVAL);
	unsetenv("SOFTHCA_PORTS");
}

/* Two jobs of a user probe at the same time, over one port. */
static void test_shared_port(void **state)
{
	struct softhca_probed result[40][2][HOSTS];

	close_both(state);
	setenv("SOFTHCA_PORTS", "18999", 1);
	open_both(state);
	for (unsigned h = 0; h < HOSTS; h++) {
		open_probe(&second[h], h, JOB + 1);
		assert_int_equal(second[h].list[net_of(h, "rail0")].port, 18999);
	}
	unsetenv("SOFTHCA_PORTS");
	for (unsigned i = 0; i < 40; i++) {
		for (unsigned h = 0; h < HOSTS; h++) {
			call(h, "rail0", &result[i][0][h]);
			softhca_probe_call(second[h].probe, net_of(h, "rail0"),
					   &second[!h].list[net_of(!h, "rail0")], host[!h].id, &result[i][1][h]);
		}
		serve();
	}
	for (unsigned i = 0; i < 40; i++)
		for (unsigned j = 0; j < 2 * HOSTS; j++)
			assert_int_equal(result[i][j / HOSTS][j % HOSTS].code, SOFTHCA_PROBE_PASSED);
	/* A job that is not there. */
	softhca_probe_close(second[1].probe);
	second[1].probe = NULL;
	enter(0);
	softhca_probe_call(second[0].probe, net_of(0, "rail0"), &second[1].list[net_of(1, "rail0")], host[1].id,
			   &result[0][0][0]);
	serve();
	assert_int_equal(result[0][0][0].code, SOFTHCA_PROBE_REFUSED);
}

/* Another program has the ports of one address alone. */
static void test_busy(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(18999) };
	const unsigned rail0 = net_of(1, "rail0");
	int fd;

	close_both(state);
	enter(1);
	memcpy(&at.sin_addr, host[1].list[rail0].gid.raw + 12, sizeof(at.sin_addr));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	setenv("SOFTHCA_PORTS", "18999", 1);
	open_both(state);
	unsetenv("SOFTHCA_PORTS");
	assert_int_equal(host[1].list[rail0].why, SOFTHCA_NET_BUSY);
	expect_call(0, "rail1", SOFTHCA_PROBE_PASSED);
	close(fd);
}

/* A process that shares the port is stopped: it is asked no more than its share. */
static void test_stopped(void **state)
{
	struct softhca_probed result;
	unsigned later = 0;

	close_both(state);
	setenv("SOFTHCA_PORTS", "18999", 1);
	open_both(state);
	open_probe(&second[1], 1, JOB + 1);
	unsetenv("SOFTHCA_PORTS");
	for (unsigned i = 0; i < 40; i++) {
		call(0, "rail0", &result);
		for (unsigned turn = 0; turn < 6 && result.code == SOFTHCA_PROBE_NONE; turn++) {
			for (unsigned h = 0; h < 200 && result.code == SOFTHCA_PROBE_NONE; h++) {
				enter(h % 2);
				softhca_probe_progress(host[h % 2].probe);
				usleep(100);
			}
			if (result.code == SOFTHCA_PROBE_PASSED)
				later += turn > 0;
			else
				skipped_ns += 800000000;
		}
		assert_true(result.code == SOFTHCA_PROBE_PASSED || result.code == SOFTHCA_PROBE_SILENT);
	}
	/* All but one of 10^8 runs, since the kernel draws. */
	assert_true(later > 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, open_both, close_both)
	const struct CMUnitTest tests[] = {
		CASE(passes), CASE(mtus), CASE(long_packets_of_one_direction), CASE(other_job), CASE(other_host), CASE(no_route), CASE(nobody),
		CASE(silence), CASE(garbage), CASE(crowd), CASE(ports), CASE(busy), CASE(shared_port), CASE(stopped),
	};

	if (enter_namespace() || hosts_make()) {
		printf("skipped: no network namespaces with veth\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
