/*
 * test_handover.c - processes that share a TCP port: a connection reaches its owner, whichever of them
 * the kernel gives it to.  test_handover_hostile.c has what strangers do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "handover_end.h"
#include "softhca/link/wire/handover.h"
#include "softhca/link/wire/ports.h"
#include "softhca/softhca.h"

static void all_fail(int error, const char *word)
{
	caller.count = 0;
	for (unsigned i = 0; i < CALLS; i++) {
		call();
		assert_int_equal(caller.told[i].error, error);
		assert_non_null(strstr(caller.told[i].why, word));
	}
}

/* ---- Owners ------------------------------ */

static void test_one_port(void **state)
{
	start_there(&a, NULL);
	start_there(&b, NULL);
	start_there(&c, NULL);
	start_caller(NULL);
	owner_is(&a, &b);
	owner_is(&c, &b);
	calls_reach(&b);
	assert_true(a.asked > 0 && c.asked > 0);
	assert_int_equal(b.asked, CALLS);
	assert_int_equal(a.count, 0);
	assert_true(hca_meet_next_ns(a.meet) == UINT64_MAX);
	assert_true(hca_meet_next_ns(b.meet) == UINT64_MAX);
}

/* A process with a port of its own hands over as well. */
static void test_own_port(void **state)
{
	struct meet_end *const ends[] = { &a, &b, &c, &caller };

	for (unsigned i = 0; i < 4; i++) {
		meet_end_prepare(ends[i], i < 3 ? THERE : CALLER);
		ends[i]->config.port_last = MEET_FIRST + 31;
		if (i == 1 || i == 2)
			ends[i]->config.port_first = MEET_FIRST + 31;
		assert_int_equal(meet_end_open(ends[i]), 0);
	}
	assert_int_equal(hca_meet_port(a.meet), MEET_FIRST);
	assert_int_equal(hca_meet_port(b.meet), MEET_FIRST + 31);
	assert_int_equal(hca_meet_port(c.meet), MEET_FIRST + 31);
	assert_int_equal(hca_meet_shared(a.meet), -1);
	assert_int_equal(hca_meet_shared(caller.meet), -1);
	owner_is(&a, &c);
	owner_is(&b, &c);
	calls_reach(&c);
	assert_int_equal(a.asked, CALLS);
	assert_int_equal(b.asked, 0);
}

/* Free ports come first; of those that are taken, one of this user's. */
static void test_ports_of_a_range(void **state)
{
	const int other = meet_raw_listen(THERE, 1);

	for (unsigned i = 0; i < 3; i++) {
		struct meet_end *const e = (struct meet_end *const[]){ &a, &b, &c }[i];

		meet_end_prepare(e, THERE);
		e->config.port_first = MEET_FIRST;
		e->config.port_last = MEET_FIRST + 2;
		assert_int_equal(meet_end_open(e), 0);
		assert_int_equal(hca_meet_port(e->meet), MEET_FIRST + (i == 0 ? 1 : 2));
	}
	close(other);
	close_end(&c);
	assert_int_equal(meet_end_open(&c), 0);
	assert_int_equal(hca_meet_port(c.meet), MEET_FIRST);
	assert_true(hca_port_is_shared(7, 7, 7));
	assert_true(hca_port_is_shared(18600, 18600, 18603));
	assert_false(hca_port_is_shared(18600, 18600, 18604));
	assert_false(hca_port_is_shared(18727, 18600, 18855));
	assert_true(hca_port_is_shared(18728, 18600, 18855));
	assert_true(hca_port_is_shared(65535, 1, 65535));
}

static void test_other_fabric(void **state)
{
	start_there(&a, "one");
	start_there(&b, "two");
	start_caller("two");
	calls_reach(&b);
	assert_int_equal(a.asked, 0);
	assert_int_equal(a.count, 0);
}

/* First to a process of the fabric, then to the owner. */
static void test_other_fabric_and_owner(void **state)
{
	start_there(&a, "one");
	start_there(&b, "two");
	start_there(&c, "two");
	start_caller("two");
	owner_is(&b, &c);
	calls_reach(&c);
	assert_true(b.asked > 0);
}

static void test_fabric_is_not_there(void **state)
{
	start_there(&a, "one");
	start_there(&b, "two");
	/* On a host of its own it would not be found either: it shares no port. */
	start_caller_with("three", MEET_FIRST + 31);
	all_fail(ECONNREFUSED, "of this fabric");
	/* A process that comes is found, also soon after a search in vain. */
	call();
	start_there(&c, "three");
	calls_reach(&c);
}

static void test_owner_has_gone(void **state)
{
	start_there(&a, NULL);
	start_there(&b, NULL);
	start_caller(NULL);
	owner_is(&a, &b);
	close_end(&b);
	caller.count = 0;
	for (unsigned i = 0; i < CALLS; i++) {
		call();
		assert_int_equal(caller.told[i].error, ENOENT);
	}
}

static void test_circle(void **state)
{
	start_there(&a, NULL);
	start_there(&b, NULL);
	start_caller(NULL);
	owner_is(&a, &b);
	owner_is(&b, &a);
	caller.count = 0;
	call();
	assert_int_equal(caller.told[0].error, ENOENT);
}

/* A process that is stopped keeps what the kernel gave to it; the caller asks again. */
static void test_stopped(void **state)
{
	struct meet_end *const served[] = { &caller, &b };

	start_there(&a, NULL);
	start_there(&b, NULL);
	start_caller(NULL);
	for (unsigned i = 0; i < 8; i++) {
		meet_end_call(&caller, THERE, QPN, &token);
		/* Twenty attempts, each with one of two: all but one in a million calls. */
		for (unsigned turn = 0; turn < 20 && caller.count <= i; turn++) {
			meet_settle(served, 2);
			meet_time_pass(SECOND_NS / 4 + 1);
		}
		meet_until(served, 2, &caller, i + 1);
		assert_int_equal(caller.told[i].error, 0);
	}
	assert_int_equal(b.arrived, 8);
}

/* Any of them ends, and others are there. */
static void test_one_ends(void **state)
{
	start_there(&a, NULL);
	start_there(&b, NULL);
	start_caller(NULL);
	owner_is(&a, &b);
	calls_reach(&b);
	close_end(&a);
	caller.count = 0;
	for (unsigned i = 0; i < CALLS; i++) {
		call();
		assert_int_equal(caller.told[i].error, 0);
	}
	start_there(&a, NULL);
	assert_int_equal(hca_meet_shared(a.meet), 0);
}

static void test_rails(void **state)
{
	struct sockaddr_storage two[2] = { meet_host(THERE), meet_host(THIRD) };
	struct hca_hello h;

	start_there(&a, "one");
	meet_end_prepare(&b, THERE);
	b.config.rails = 2;
	b.config.local = two;
	b.config.port_last = MEET_FIRST;
	assert_int_equal(hca_meet_open(&b.meet, &b.config), 0);
	for (unsigned i = 0; i < CALLS; i++) {
		h = meet_hello(&b, THERE, QPN);
		h.rail = (uint8_t)(i % 2);
		assert_int_equal(hca_meet_call(b.meet, &two[i % 2], &h, &token), 0);
		meet_until(ALL, &b, 2 * i + 2);
	}
	assert_int_equal(b.arrived, CALLS);
}

/* ---- Probes ------------------------------ */

static struct softhca_net rail;
static struct softhca_probe *probe;

static void probe_open(uint64_t job)
{
	const struct sockaddr_storage at = meet_host(THERE);

	memset(&rail, 0, sizeof(rail));
	memset(rail.gid.raw + 10, 0xff, 2);
	memcpy(rail.gid.raw + 12, &((const struct sockaddr_in *)(const void *)&at)->sin_addr, 4);
	rail.mtu = 1500;
	rail.index = 1;
	setenv("SOFTHCA_PORTS", "18600", 1);
	assert_int_equal(softhca_probe_open(&probe, &rail, 1, job), 0);
	unsetenv("SOFTHCA_PORTS");
	assert_int_equal(rail.port, MEET_FIRST);
}

/* A greeting of this job, and what answers it within a second's turns; 0: it is closed without. */
static ssize_t greeted(uint64_t job, unsigned char answer[HCA_GREETING_BYTES])
{
	unsigned char greeting[HCA_GREETING_BYTES] = { 0 };
	const int fd = meet_raw_connect(THERE, MEET_FIRST);
	const uint64_t begun = meet_real_ns();
	ssize_t n = 0;

	hca_greeting_begin(greeting, job);
	greeting[33] = 5;	/* MTU 1280 */
	/* In two parts: a process waits for the whole. */
	assert_int_equal(send(fd, greeting, 12, 0), 12);
	meet_settle(ALL);
	softhca_probe_progress(probe);
	assert_int_equal(send(fd, greeting + 12, sizeof(greeting) - 12, 0), sizeof(greeting) - 12);
	while (!n) {
		meet_turn(ALL, begun);
		softhca_probe_progress(probe);
		n = meet_raw_read(fd, answer, HCA_GREETING_BYTES);
	}
	close(fd);
	return n;
}

/* A job that looks for rails while another one runs: each gets what is its own. */
static void test_probe_and_fabric(void **state)
{
	unsigned char answer[HCA_GREETING_BYTES];

	start_there(&a, NULL);
	probe_open(0x1234567890);
	start_caller(NULL);
	for (unsigned i = 0; i < CALLS; i++) {
		assert_int_equal(greeted(0x1234567890, answer), HCA_GREETING_BYTES);
		assert_true(hca_greeting_is_likely(answer, HCA_GREETING_BYTES));
	}
	for (unsigned i = 0; i < CALLS; i++) {
		const uint64_t begun = meet_real_ns();

		meet_end_call(&caller, THERE, QPN, &token);
		while (caller.count <= i) {
			meet_turn(ALL, begun);
			softhca_probe_progress(probe);
		}
		assert_int_equal(caller.told[i].error, 0);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(greeted(0x1234567891, answer), -1);
	softhca_probe_close(probe);
	calls_reach(&a);
}

/* ---- The port is another's ------------------------------ */

static void test_no_port(void **state)
{
	const int fd = meet_raw_listen(THERE, 1);

	meet_end_prepare(&a, THERE);
	a.config.port_last = MEET_FIRST;
	assert_int_equal(meet_end_open(&a), -EADDRINUSE);
	assert_non_null(strstr(softhca_last_error(), "from 18600 to 18600"));
	assert_non_null(strstr(softhca_last_error(), "SOFTHCA_PORTS"));
	close(fd);
}

static void test_port_of_another_user(void **state)
{
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	start_there(&a, NULL);
	meet_end_prepare(&b, THERE);
	b.config.port_last = MEET_FIRST;
	pid = fork();
	if (pid == 0) {
		be_another_user();
		_exit(meet_end_open(&b) != -EADDRINUSE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(one_port), CASE(own_port), CASE(ports_of_a_range), CASE(other_fabric), CASE(other_fabric_and_owner),
		CASE(fabric_is_not_there), CASE(owner_has_gone), CASE(circle), CASE(stopped), CASE(one_ends),
		CASE(rails), CASE(probe_and_fabric), CASE(no_port), CASE(port_of_another_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
