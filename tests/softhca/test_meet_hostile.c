/*
 * test_meet_hostile.c - connections of processes that know no secret, or want no connection: what
 * they cost, how long they stay, what they learn.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "meet_end.h"
#include "../random.h"
#include "softhca/link/wire/handshake.h"
#include "softhca/link/wire/socket.h"

enum { CALLER = 1, THERE = 2, QPN = 0x4711, HOSTILE = 2000 };
#define SECOND_NS 1000000000u

static struct meet_end caller, a;
static char token;

static struct meet_end *const all[] = { &caller, &a };

static int start_both(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	return 0;
}

static int close_both(void **state)
{
	meet_end_close(&a);
	meet_end_close(&caller);
	return 0;
}

static void assert_still_meets(void)
{
	const unsigned before = a.arrived;

	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &a, a.count + 1);
	assert_int_equal(a.arrived, before + 1);
	assert_int_equal(caller.told[caller.count - 1].error, 0);
}

static bool is_closed(int fd)
{
	unsigned char byte;

	return meet_raw_read(fd, &byte, 1) < 0;
}

static void closes(int fd)
{
	meet_wait(all, 2, is_closed(fd));
}

static void is_sent(int fd, unsigned char *to, size_t bytes)
{
	size_t have = 0;
	ssize_t n = 0;

	meet_wait(all, 2, (n = meet_raw_read(fd, to + have, bytes - have)) < 0 ||
		  (have += (size_t)n) == bytes);
	assert_true(n > 0);
}

/* All connections of others have gone. */
static void forgets(void)
{
	meet_wait(all, 2, hca_meet_next_ns(a.meet) == UINT64_MAX);
}

/* ---- Messages ------------------------------ */

static struct hca_credentials credentials_of(const struct meet_end *e)
{
	struct hca_credentials c;

	hca_credentials_make(&c, e->config.fabric, e->config.secret);
	return c;
}

/* The hello of a process that knows all but the secret, to the first port. */
static void write_hello(unsigned char hello[HCA_HELLO_BYTES])
{
	const struct hca_hello h = meet_hello(&caller, THERE, QPN);
	const struct hca_credentials c = credentials_of(&a);
	static const unsigned char drawn[HCA_RANDOM_BYTES] = "not that random";
	struct sockaddr_storage to = meet_host(THERE);
	struct hca_endpoint called;

	hca_address_port_set(&to, MEET_FIRST);
	hca_address_endpoint(&to, &called);
	hca_hello_write(hello, &h, &called, &c, drawn);
}

/* Words of why the callee turned the connection's caller away, for those that expect a call of that host. */
static void is_told(int fd, const char *words)
{
	struct sockaddr_storage own;
	socklen_t bytes = sizeof(own);
	struct hca_endpoint e;
	const char *why;

	assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&own, &bytes), 0);
	hca_address_endpoint(&own, &e);
	why = hca_meet_turned_away(a.meet, 0, e.address);
	assert_non_null(why);
	assert_non_null(strstr(why, words));
	e.address[15] ^= 64;
	assert_null(hca_meet_turned_away(a.meet, 0, e.address));
}

/* The reason of a host is over when a process there has proven itself. */
static void test_reason_ends(void **state)
{
	struct sockaddr_storage from = meet_host(CALLER), to = meet_host(THERE);
	const unsigned char hello[12] = "softhca\0\2\0\0";
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct hca_endpoint e;

	hca_address_port_set(&from, 0);
	hca_address_port_set(&to, MEET_FIRST);
	assert_int_equal(bind(fd, (struct sockaddr *)(void *)&from, sizeof(struct sockaddr_in)), 0);
	connect(fd, (struct sockaddr *)(void *)&to, sizeof(struct sockaddr_in));
	assert_int_equal(send(fd, hello, sizeof(hello), 0), sizeof(hello));
	closes(fd);
	is_told(fd, "another version");
	close(fd);
	assert_still_meets();
	hca_address_endpoint(&from, &e);
	assert_null(hca_meet_turned_away(a.meet, 0, e.address));
}

static void test_garbage(void **state)
{
	int fd = meet_raw_connect(THERE, MEET_FIRST);

	assert_int_equal(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
	closes(fd);
	close(fd);
	assert_int_equal(a.asked, 0);
	assert_still_meets();
}

/* Each byte a packet of its own; the last one is answered. */
static void test_byte_by_byte(void **state)
{
	unsigned char hello[HCA_HELLO_BYTES], reply[HCA_REPLY_BYTES + 1];
	int fd = meet_raw_connect(THERE, MEET_FIRST);

	write_hello(hello);
	for (unsigned i = 0; i < sizeof(hello); i++) {
		assert_int_equal(meet_raw_read(fd, reply, sizeof(reply)), 0);
		assert_int_equal(a.asked, 0);
		assert_int_equal(send(fd, &hello[i], 1, 0), 1);
		meet_settle(all, 2);
	}
	is_sent(fd, reply, HCA_REPLY_BYTES);
	assert_int_equal(a.asked, 1);
	close(fd);
	forgets();
	assert_int_equal(a.count, 0);
}

/* It ends after each number of bytes. */
static void test_ends_midway(void **state)
{
	unsigned char hello[HCA_HELLO_BYTES];

	write_hello(hello);
	for (size_t bytes = 0; bytes <= sizeof(hello); bytes++) {
		int fd = meet_raw_connect(THERE, MEET_FIRST);

		assert_int_equal(send(fd, hello, bytes, 0), bytes);
		meet_settle(all, 2);
		close(fd);
		meet_settle(all, 2);
	}
	forgets();
	assert_int_equal(a.count, 0);
	assert_still_meets();
}

static void test_false_proof(void **state)
{
	unsigned char hello[HCA_HELLO_BYTES], reply[HCA_REPLY_BYTES];

	write_hello(hello);
	for (unsigned i = 0; i < 2; i++) {
		int fd = meet_raw_connect(THERE, MEET_FIRST);

		assert_int_equal(send(fd, hello, sizeof(hello), 0), sizeof(hello));
		is_sent(fd, reply, sizeof(reply));
		/* The callee's own HMAC, or the hello again. */
		assert_int_equal(send(fd, i ? hello : reply + 48, HCA_PROOF_BYTES, 0), HCA_PROOF_BYTES);
		closes(fd);
		is_told(fd, "another secret");
		close(fd);
	}
	assert_int_equal(a.count, 0);
	assert_still_meets();
}

static void test_other_version(void **state)
{
	unsigned char hello[12], reply[HCA_REPLY_BYTES];
	int fd = meet_raw_connect(THERE, MEET_FIRST);

	memcpy(hello, "softhca\0\2\0\0\0", sizeof(hello));
	assert_int_equal(send(fd, hello, sizeof(hello), 0), sizeof(hello));
	is_sent(fd, reply, sizeof(reply));
	assert_memory_equal(reply, "softhca\0\1\0\0\0", sizeof(hello));
	closes(fd);
	is_told(fd, "another version");
	close(fd);
	assert_int_equal(a.asked, 0);
}

/* A refused one that goes on sending. */
static void test_refused_sends_on(void **state)
{
	static unsigned char bytes[65536];
	int fd = meet_raw_connect(THERE, MEET_FIRST);

	memcpy(bytes, "softhca\0\2\0\0\0", 12);
	for (unsigned i = 0; i < 10 && send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) > 0; i++)
		meet_settle(all, 2);
	forgets();
	close(fd);
	assert_still_meets();
}

static void serve_as_other_version(int listener)
{
	unsigned char reply[HCA_REPLY_BYTES] = "softhca\0\2";
	int fd = accept(listener, NULL, NULL);

	assert_true(fd >= 0);
	assert_int_equal(send(fd, reply, sizeof(reply), 0), sizeof(reply));
	close(fd);
}

static void test_listener_of_other_version(void **state)
{
	int listener = meet_raw_listen(3, 4);

	meet_end_call(&caller, 3, QPN, &token);
	meet_settle(all, 1);
	serve_as_other_version(listener);
	meet_until(all, 1, &caller, 1);
	assert_int_equal(caller.told[0].error, EPROTONOSUPPORT);
	assert_non_null(strstr(caller.told[0].why, "another version"));
	close(listener);
}

static void test_listener_of_other_protocol(void **state)
{
	int fd, listener = meet_raw_listen(3, 4);

	meet_end_call(&caller, 3, QPN, &token);
	meet_settle(all, 1);
	fd = accept(listener, NULL, NULL);
	assert_int_equal(send(fd, "SSH-2.0-OpenSSH\r\n", 17, 0), 17);
	meet_until(all, 1, &caller, 1);
	assert_int_equal(caller.told[0].error, ECONNREFUSED);
	close(fd);
	close(listener);
}

/* ---- A process between both ends ------------------------------ */

static void pass_on(int from, int to)
{
	unsigned char bytes[4096];
	ssize_t n = meet_raw_read(from, bytes, sizeof(bytes));

	if (n > 0)
		assert_int_equal(send(to, bytes, (size_t)n, MSG_NOSIGNAL), n);
}

/* On the host of the callee, at a port before it, a process passes on all that it is sent. */
static void test_relay(void **state)
{
	int listener, from, to;

	hca_meet_close(a.meet);
	listener = meet_raw_listen(THERE, 4);
	assert_int_equal(meet_end_open(&a), 0);
	assert_int_equal(hca_meet_port(a.meet), MEET_FIRST + 1);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_settle(all, 1);
	from = accept(listener, NULL, NULL);
	to = meet_raw_connect(THERE, MEET_FIRST + 1);
	while (caller.count == 0) {
		pass_on(from, to);
		meet_settle(all, 2);
		pass_on(to, from);
		meet_settle(all, 2);
	}
	/* Only the caller's own connection was proven, at the next port. */
	meet_until(all, 2, &a, 1);
	assert_int_equal(caller.told[0].error, 0);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.asked, 1);
	meet_assert_connected(caller.told[0].fd, a.told[0].fd);
	close(from);
	close(to);
	close(listener);
}

/* A process whom an end calls sends it back to it, as a call of its own. */
static void test_reflected_call(void **state)
{
	unsigned char hello[HCA_HELLO_BYTES], reply[HCA_REPLY_BYTES];
	int listener = meet_raw_listen(3, 4), from, to;

	meet_end_call(&a, 3, QPN, &token);
	meet_settle(all, 2);
	from = accept(listener, NULL, NULL);
	is_sent(from, hello, sizeof(hello));
	to = meet_raw_connect(THERE, MEET_FIRST);
	assert_int_equal(send(to, hello, sizeof(hello), 0), sizeof(hello));
	is_sent(to, reply, sizeof(reply));
	assert_int_equal(send(from, reply, sizeof(reply), 0), sizeof(reply));
	meet_settle(all, 2);
	assert_int_equal(a.arrived, 0);
	assert_int_equal(a.asked, 0);
	assert_true(a.count == 0 || a.told[0].error);
	close(from);
	close(to);
	close(listener);
}

/* ---- Bounds ------------------------------ */

static void test_five_seconds(void **state)
{
	unsigned char hello[HCA_HELLO_BYTES];
	int idle = meet_raw_connect(THERE, MEET_FIRST), unproven = meet_raw_connect(THERE, MEET_FIRST);

	write_hello(hello);
	assert_int_equal(send(unproven, hello, sizeof(hello), 0), sizeof(hello));
	is_sent(unproven, hello, HCA_REPLY_BYTES);
	meet_time_pass(4 * (uint64_t)SECOND_NS);
	meet_settle(all, 2);
	assert_false(is_closed(idle));
	assert_false(is_closed(unproven));
	assert_true(hca_meet_next_ns(a.meet) != UINT64_MAX);
	meet_time_pass(2 * (uint64_t)SECOND_NS);
	closes(idle);
	closes(unproven);
	forgets();
	close(idle);
	close(unproven);
}

/* The oldest go for new ones, not before they had the time to prove what they know. */
static void test_too_many(void **state)
{
	enum { MORE = 10, MANY = HCA_MEET_UNPROVEN_MAX + MORE };
	int fd[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		fd[i] = meet_raw_connect(THERE, MEET_FIRST);
		meet_settle(all, 2);
	}
	for (unsigned i = 0; i < MANY; i++)
		assert_false(is_closed(fd[i]));
	meet_end_call(&caller, THERE, QPN, &token);
	meet_settle(all, 2);
	assert_int_equal(a.count, 0);
	meet_time_pass(SECOND_NS);
	meet_until(all, 2, &a, 1);
	assert_int_equal(a.arrived, 1);
	for (unsigned i = 0; i <= MORE; i++)
		closes(fd[i]);
	for (unsigned i = MORE + 1; i < MANY; i++)
		assert_false(is_closed(fd[i]));
	for (unsigned i = 0; i < MANY; i++)
		close(fd[i]);
	meet_settle(all, 2);
	assert_still_meets();
}

/* Neither descriptor nor connection is lost where there are no more descriptors. */
static void test_no_descriptors(void **state)
{
	struct rlimit before, few;
	int one = meet_raw_connect(THERE, MEET_FIRST), two, lowest;

	/* The next free number is the limit. */
	lowest = dup(one);
	close(lowest);
	two = meet_raw_connect(THERE, MEET_FIRST);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)lowest + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned i = 0; i < 5; i++) {
		hca_meet_progress(a.meet);
		meet_settle(all, 2);	/* ends: the listener is not reported on and on */
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(is_closed(one));
	assert_false(is_closed(two));
	meet_time_pass(SECOND_NS);
	meet_wait(all, 2, hca_meet_next_ns(a.meet) != UINT64_MAX);
	assert_still_meets();
	close(one);
	close(two);
}

/* Changed hellos, proofs of nothing, any bytes at any time: an end that survives meets others. */
static void random_connection(uint64_t *random)
{
	unsigned char bytes[2 * HCA_HELLO_BYTES];
	int fd = meet_raw_connect(THERE, MEET_FIRST);
	unsigned pieces = (unsigned)random_below(random, 4);

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)random_next(random);
	if (random_below(random, 4))
		write_hello(bytes);
	if (random_below(random, 2))
		bytes[random_below(random, HCA_HELLO_BYTES)] ^= (unsigned char)(1 << random_below(random, 8));
	for (unsigned i = 0, at = 0; i < pieces; i++) {
		const unsigned n = (unsigned)random_below(random, sizeof(bytes) - at + 1);

		if (send(fd, bytes + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		at += n;
		hca_meet_progress(a.meet);
	}
	close(fd);
}

static void test_random(void **state)
{
	const char *seed = getenv("RG_SEED");
	uint64_t random = seed ? strtoull(seed, NULL, 10) : 1;

	printf("RG_SEED=%s\n", seed ? seed : "1");
	for (unsigned i = 0; i < HOSTILE; i++)
		random_connection(&random);
	meet_settle(all, 2);
	forgets();
	assert_int_equal(a.count, 0);
	assert_still_meets();
}

/* ---- Children of fork: they have copies of all descriptors ------------------------------ */

static int fork_and_close(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		hca_meet_close(a.meet);
		hca_meet_close(caller.meet);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* A child that closes its copies leaves the parent's connections as they are. */
static void test_child_closes(void **state)
{
	meet_end_call(&caller, THERE, QPN, &token);
	hca_meet_progress(caller.meet);
	hca_meet_progress(a.meet);
	assert_int_equal(fork_and_close(), 0);
	meet_until(all, 2, &a, 1);
	assert_int_equal(caller.told[0].error, 0);
	assert_still_meets();
}

/* A child that keeps its copies is a listener that never accepts. */
static void test_child_keeps(void **state)
{
	int end[2];
	pid_t pid;

	assert_int_equal(pipe(end), 0);
	pid = fork();
	if (pid == 0) {
		close(end[1]);
		_exit(read(end[0], &token, 1) != 0);
	}
	close(end[0]);
	hca_meet_close(a.meet);
	assert_int_equal(meet_end_open(&a), 0);
	assert_int_equal(hca_meet_port(a.meet), MEET_FIRST + 1);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_settle(all, 2);
	assert_int_equal(caller.count, 0);
	meet_time_pass(SECOND_NS);
	meet_until(all, 2, &a, 1);
	assert_int_equal(caller.told[0].error, 0);
	close(end[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- Interfaces and families ------------------------------ */

/* Loopback is the interface of both ends, where the kernel lets this user bind to it. */
static void test_interface(void **state)
{
	static const char *const loopback[] = { "lo" };
	char name[IFNAMSIZ] = "";
	socklen_t bytes = sizeof(name);
	int probe = socket(AF_INET, SOCK_STREAM, 0);
	const bool may = !setsockopt(probe, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2);

	close(probe);
	hca_meet_close(a.meet);
	a.config.interface = loopback;
	assert_int_equal(meet_end_open(&a), 0);
	hca_meet_close(caller.meet);
	caller.config.interface = loopback;
	assert_int_equal(meet_end_open(&caller), 0);
	assert_still_meets();
	if (!may)
		return;
	assert_int_equal(getsockopt(a.told[0].fd, SOL_SOCKET, SO_BINDTODEVICE, name, &bytes), 0);
	assert_string_equal(name, "lo");
	bytes = sizeof(name);
	assert_int_equal(getsockopt(caller.told[0].fd, SOL_SOCKET, SO_BINDTODEVICE, name, &bytes), 0);
	assert_string_equal(name, "lo");
}

/* One IPv6 address of loopback, two processes on it. */
static void test_ipv6(void **state)
{
	struct sockaddr_in6 one = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct hca_hello h;

	hca_meet_close(a.meet);
	hca_meet_close(caller.meet);
	memset(&a.at, 0, sizeof(a.at));
	memcpy(&a.at, &one, sizeof(one));
	caller.at = a.at;
	/* A range of its own: all processes of the machine share this address. */
	a.config.port_last = caller.config.port_last = 18855;
	if (meet_end_open(&a)) {
		meet_end_start(&a, THERE);
		meet_end_start(&caller, CALLER);
		skip();
	}
	assert_int_equal(meet_end_open(&caller), 0);
	caller.answer = HCA_MEET_AT_PORT;
	caller.answer_port = hca_meet_port(a.meet);
	h = meet_hello(&caller, THERE, QPN);
	assert_int_equal(hca_meet_call(caller.meet, &a.at, &h, &token), 0);
	meet_until(all, 2, &a, 1);
	assert_int_equal(caller.told[0].error, 0);
	assert_int_equal(a.told[0].h.target_qpn, QPN);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_reason_ends),
		CASE(test_garbage),
		CASE(test_byte_by_byte),
		CASE(test_ends_midway),
		CASE(test_false_proof),
		CASE(test_other_version),
		CASE(test_refused_sends_on),
		CASE(test_listener_of_other_version),
		CASE(test_listener_of_other_protocol),
		CASE(test_relay),
		CASE(test_reflected_call),
		CASE(test_five_seconds),
		CASE(test_too_many),
		CASE(test_no_descriptors),
		CASE(test_random),
		CASE(test_child_closes),
		CASE(test_child_keeps),
		CASE(test_interface),
		CASE(test_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
