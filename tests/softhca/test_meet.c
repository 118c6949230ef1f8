/*
 * test_meet.c - processes of two hosts find each other: at the first port, by way of another
 * process, among those of others, late, both at once.  127.x.y.1 to 3 are hosts.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "meet_end.h"
#include "softhca/softhca.h"

enum { CALLER = 1, THERE = 2, QPN = 0x4711 };
#define SECOND_NS 1000000000u

static struct meet_end caller, a, b;
static char token, other_token;

static struct meet_end *const all[] = { &caller, &a, &b };

static void assert_socket(int fd)
{
	int on = 0;
	socklen_t bytes = sizeof(on);

	assert_true(fd >= 1024);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &bytes), 0);
	assert_int_not_equal(on, 0);
}

static void assert_refused(const struct meet_end *e, int error, const char *word)
{
	assert_int_equal(e->count, 1);
	assert_ptr_equal(e->told[0].token, &token);
	assert_int_equal(e->told[0].error, error);
	if (!strstr(e->told[0].why, word))
		fail_msg("%s: without %s", e->told[0].why, word);
}

static void assert_reached(const struct meet_end *from, const struct meet_end *to)
{
	assert_int_equal(from->count, 1);
	assert_int_equal(from->told[0].error, 0);
	assert_ptr_equal(from->told[0].token, &token);
	assert_int_equal(to->count, 1);
	assert_int_equal(to->arrived, 1);
	meet_assert_connected(from->told[0].fd, to->told[0].fd);
}

static void close_both(void)
{
	meet_end_close(&a);
	meet_end_close(&caller);
}

static void close_all(void)
{
	meet_end_close(&b);
	close_both();
}

static void test_first_port(void **state)
{
	struct hca_hello h;

	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	assert_int_equal(hca_meet_port(a.meet), MEET_FIRST);
	assert_int_equal(hca_meet_port(caller.meet), MEET_FIRST);
	assert_true(hca_meet_fd(a.meet) >= 1024);
	assert_true(hca_meet_next_ns(a.meet) == UINT64_MAX);
	h = meet_hello(&caller, THERE, QPN);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &a, 1);
	assert_reached(&caller, &a);
	assert_socket(caller.told[0].fd);
	assert_socket(a.told[0].fd);
	assert_memory_equal(&a.told[0].h.source, &h.source, 16);
	assert_memory_equal(&a.told[0].h.target, &h.target, 16);
	assert_int_equal(a.told[0].h.target_qpn, QPN);
	assert_int_equal(a.told[0].h.psn, h.psn);
	assert_int_equal(caller.told[0].h.target_qpn, QPN);
	assert_true(hca_meet_next_ns(a.meet) == UINT64_MAX);
	assert_true(hca_meet_next_ns(caller.meet) == UINT64_MAX);
	close_both();
}

/* Frames follow the proof at once, and are none of its bytes. */
static void send_at_once(struct meet_end *e)
{
	assert_int_equal(send(e->told[0].fd, "frames", 6, 0), 6);
}

static void test_frames_follow(void **state)
{
	unsigned char bytes[16];

	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	caller.also = send_at_once;
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &a, 1);
	meet_raw_await(a.told[0].fd, bytes, 6);
	assert_memory_equal(bytes, "frames", 6);
	assert_int_equal(meet_raw_read(a.told[0].fd, bytes, sizeof(bytes)), 0);
	close_both();
}

static void test_redirected(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&b, THERE);
	meet_end_start(&caller, CALLER);
	assert_int_equal(hca_meet_port(b.meet), MEET_FIRST + 1);
	a.answer = HCA_MEET_AT_PORT;
	a.answer_port = hca_meet_port(b.meet);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 3, &b, 1);
	assert_reached(&caller, &b);
	assert_int_equal(a.count, 0);
	assert_int_equal(a.asked, 1);
	/* The next call begins where the last one ended. */
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 3, &b, 2);
	assert_int_equal(a.asked, 1);
	close_all();
}

static void test_redirected_to_none(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	a.answer = HCA_MEET_AT_PORT;
	a.answer_port = MEET_LAST;
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &caller, 1);
	assert_refused(&caller, ECONNREFUSED, "port 18607");
	close_both();
}

static void test_redirected_in_a_circle(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&b, THERE);
	meet_end_start(&caller, CALLER);
	a.answer = b.answer = HCA_MEET_AT_PORT;
	a.answer_port = hca_meet_port(b.meet);
	b.answer_port = hca_meet_port(a.meet);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 3, &caller, 1);
	assert_refused(&caller, ENOENT, "each other");
	close_all();
}

static void refused_with(enum hca_meet_answer answer, int error, const char *word)
{
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	a.answer = answer;
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &caller, 1);
	assert_refused(&caller, error, word);
	meet_wait(all, 2, hca_meet_next_ns(a.meet) == UINT64_MAX);
	assert_int_equal(a.count, 0);
	close_both();
}

static void test_refused(void **state)
{
	refused_with(HCA_MEET_UNKNOWN, ENOENT, "queue pair 0x004711");
	refused_with(HCA_MEET_OTHER_MTU, EINVAL, "MTU");
	/* A port of 0 is none. */
	refused_with(HCA_MEET_AT_PORT, ENOENT, "queue pair");
}

static void test_nothing_there(void **state)
{
	char range[64];

	snprintf(range, sizeof(range), "ports %d to %d: no process listens", MEET_FIRST, MEET_LAST);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	assert_int_equal(caller.count, 0);	/* not before hca_meet_progress */
	meet_until(all, 1, &caller, 1);
	assert_refused(&caller, ECONNREFUSED, range);
	meet_end_close(&caller);
}

/* More ports than one turn tries. */
static void test_wide_range(void **state)
{
	meet_end_prepare(&a, THERE);
	a.config.port_first = a.config.port_last = 19000;
	assert_int_equal(meet_end_open(&a), 0);
	meet_end_prepare(&caller, CALLER);
	caller.config.port_last = 19000;
	assert_int_equal(meet_end_open(&caller), 0);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &a, 1);
	assert_reached(&caller, &a);
	close_both();
}

static void among_others(void (*change)(struct hca_meet_config *c), int error, const char *word)
{
	meet_end_prepare(&a, THERE);
	change(&a.config);
	assert_int_equal(meet_end_open(&a), 0);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &caller, 1);
	assert_refused(&caller, error, word);
	caller.count = 0;
	meet_end_start(&b, THERE);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 3, &b, 1);
	assert_reached(&caller, &b);
	assert_int_equal(a.count, 0);
	close_all();
}

static void other_fabric(struct hca_meet_config *c)
{
	c->fabric = "another";
}

static void other_secret(struct hca_meet_config *c)
{
	c->secret[31] ^= 0x80;
}

static void test_among_others(void **state)
{
	among_others(other_fabric, ECONNREFUSED, "of this fabric");
	assert_int_equal(a.asked, 0);
	among_others(other_secret, EACCES, "another secret");
}

static void test_other_rails(void **state)
{
	struct sockaddr_storage two[2] = { meet_host(CALLER), meet_host(3) };

	meet_end_start(&a, THERE);
	meet_end_prepare(&caller, CALLER);
	caller.config.rails = 2;
	caller.config.local = two;
	assert_int_equal(hca_meet_open(&caller.meet, &caller.config), 0);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 2, &caller, 1);
	assert_refused(&caller, EINVAL, "number of rails");
	close_both();
}

/* The second rail has a listener on the same port, or no rail has. */
static void test_rails(void **state)
{
	struct sockaddr_storage two[2] = { meet_host(THERE), meet_host(3) };
	struct hca_hello h;

	meet_end_start(&b, 3);		/* takes the first port of one of both */
	meet_end_prepare(&a, THERE);
	a.config.rails = 2;
	a.config.local = two;
	assert_int_equal(hca_meet_open(&a.meet, &a.config), 0);
	assert_int_equal(hca_meet_port(a.meet), MEET_FIRST + 1);
	meet_end_close(&b);
	for (unsigned rail = 0; rail < 2; rail++) {
		h = meet_hello(&a, 3, QPN);
		h.rail = (uint8_t)rail;
		assert_int_equal(hca_meet_call(a.meet, &two[1], &h, &token), 0);
	}
	h.rail = 2;
	assert_int_equal(hca_meet_call(a.meet, &two[1], &h, &token), -EINVAL);
	meet_until(&all[1], 1, &a, 4);
	assert_int_equal(a.arrived, 2);
	meet_end_close(&a);
}

static void test_no_port(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_prepare(&b, THERE);
	b.config.port_last = MEET_FIRST;
	assert_int_equal(meet_end_open(&b), -EADDRINUSE);
	assert_non_null(strstr(softhca_last_error(), "SOFTHCA_PORTS"));
	meet_end_close(&a);
	assert_int_equal(meet_end_open(&b), 0);
	meet_end_close(&b);
	((struct sockaddr_in *)(void *)&b.at)->sin_addr.s_addr = htonl(0xc0000201u);
	assert_int_equal(meet_end_open(&b), -EADDRNOTAVAIL);
	assert_non_null(strstr(softhca_last_error(), "192.0.2.1 port 18600"));
}

/* ---- Listeners that do not accept ------------------------------ */

/* A connection is in the listener's queue. */
static void wait_connected(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 60000), 1);
}

static void test_listener_closed(void **state)
{
	int fd = meet_raw_listen(THERE, 16);

	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	wait_connected(fd);
	assert_int_equal(caller.count + a.count, 0);
	close(fd);			/* it never accepted */
	meet_until(all, 2, &a, 1);
	assert_reached(&caller, &a);
	close_both();
}

static void test_listener_closed_alone(void **state)
{
	int fd = meet_raw_listen(THERE, 16);

	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	wait_connected(fd);
	meet_settle(all, 1);
	close(fd);
	meet_until(all, 1, &caller, 1);
	assert_refused(&caller, ECONNRESET, "port 18600");
	meet_end_close(&caller);
}

static void test_listener_silent(void **state)
{
	int fd = meet_raw_listen(THERE, 16);

	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_settle(all, 2);
	assert_int_equal(caller.count, 0);
	meet_time_pass(SECOND_NS);
	meet_until(all, 2, &a, 1);
	assert_reached(&caller, &a);
	close(fd);
	close_both();
}

static void test_listener_silent_alone(void **state)
{
	int fd = meet_raw_listen(THERE, 16);

	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	for (int i = 0; i < 4; i++) {
		meet_settle(all, 1);
		assert_int_equal(caller.count, 0);
		meet_time_pass(SECOND_NS);
	}
	meet_time_pass(2 * (uint64_t)SECOND_NS);
	meet_until(all, 1, &caller, 1);
	assert_refused(&caller, EBUSY, "port 18600: the process there does not answer");
	close(fd);
	meet_end_close(&caller);
}

/* A process that answers after the others were asked. */
static void test_late(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	for (int i = 0; i < 4; i++) {
		meet_settle(all, 1);
		meet_time_pass(SECOND_NS);
	}
	assert_int_equal(caller.count, 0);
	meet_until(all, 2, &a, 1);
	assert_reached(&caller, &a);
	close_both();
}

/* The owner is silent, another process names it: its first connection is used. */
static void test_late_owner(void **state)
{
	meet_end_start(&b, THERE);		/* the first port */
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	a.answer = HCA_MEET_AT_PORT;
	a.answer_port = hca_meet_port(b.meet);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_settle(all, 2);
	meet_time_pass(SECOND_NS);
	meet_wait(all, 2, a.asked == 1);
	meet_settle(all, 2);
	assert_int_equal(caller.count, 0);
	meet_until(all, 3, &b, 1);
	assert_reached(&caller, &b);
	assert_int_equal(b.asked, 1);
	close_all();
}

/* A host whose queue of connections is full answers no more than one behind a firewall, named within 5 s. */
static void test_host_silent(void **state)
{
	int fd = meet_raw_listen(THERE, 0), one = meet_raw_connect(THERE, MEET_FIRST);

	meet_end_prepare(&caller, CALLER);
	caller.config.port_last = MEET_FIRST;
	assert_int_equal(meet_end_open(&caller), 0);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_settle(all, 1);
	assert_int_equal(caller.count, 0);
	meet_time_pass(5 * (uint64_t)SECOND_NS - 1);
	meet_until(all, 1, &caller, 1);
	assert_refused(&caller, ETIMEDOUT, "firewall");
	close(one);
	close(fd);
	meet_end_close(&caller);
}

/* ---- Several calls ------------------------------ */

/* Each call has a connection of its own. */
static void test_both_at_once(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_end_call(&a, CALLER, QPN, &other_token);
	meet_until(all, 2, &a, 2);
	meet_until(all, 2, &caller, 2);
	assert_int_equal(a.arrived, 1);
	assert_int_equal(caller.arrived, 1);
	for (unsigned i = 0; i < 2; i++) {
		const bool here = !a.told[i].token;
		const struct meet_told *t = &caller.told[caller.told[0].token ? !here : here];

		meet_assert_connected(a.told[i].fd, t->fd);
	}
	close_both();
}

static void test_two_calls(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&b, 3);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_end_call(&caller, 3, QPN + 1, &other_token);
	meet_until(all, 3, &caller, 2);
	meet_until(all, 3, &a, 1);
	meet_until(all, 3, &b, 1);
	assert_ptr_not_equal(caller.told[0].token, caller.told[1].token);
	for (unsigned i = 0; i < 2; i++)
		meet_assert_connected(caller.told[i].fd, caller.told[i].token == &token ? a.told[0].fd :
				 b.told[0].fd);
	assert_int_equal(b.told[0].h.target_qpn, QPN + 1);
	close_all();
}

/* More than may be unproven at a time: all succeed, since they are served as they arrive. */
static void test_many(void **state)
{
	enum { MANY = HCA_MEET_UNPROVEN_MAX + 50 };

	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	for (unsigned i = 0; i < MANY; i++)
		meet_end_call(&caller, THERE, i, &token);
	meet_until(all, 2, &a, MANY);
	assert_int_equal(caller.count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(caller.told[i].error, 0);
	close_both();
}

static void cancel_other(struct meet_end *e)
{
	hca_meet_cancel(e->meet, &other_token);
}

static void test_cancel(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	meet_end_call(&caller, THERE, QPN, &other_token);
	meet_end_call(&caller, THERE, QPN, &token);
	hca_meet_cancel(caller.meet, &token);
	meet_until(all, 2, &a, 1);
	assert_int_equal(caller.count, 1);
	assert_ptr_equal(caller.told[0].token, &other_token);
	meet_settle(all, 2);
	/* Before its failure is reported. */
	meet_end_call(&caller, 3, QPN, &token);
	hca_meet_cancel(caller.meet, &token);
	hca_meet_cancel(caller.meet, NULL);
	meet_settle(all, 2);
	assert_int_equal(caller.count, 1);
	assert_true(hca_meet_next_ns(caller.meet) == UINT64_MAX);
	close_both();
}

static void test_cancel_in_callback(void **state)
{
	meet_end_start(&caller, CALLER);
	caller.also = cancel_other;
	for (int i = 0; i < 10; i++)
		meet_end_call(&caller, THERE, QPN, i == 5 ? &token : &other_token);
	/* The first failure cancels all calls with the other token. */
	meet_wait(all, 1, caller.count > 0 && caller.told[caller.count - 1].token == &token);
	meet_settle(all, 1);
	assert_true(caller.count == 1 || caller.count == 2);
	meet_end_close(&caller);
}

static void call_again(struct meet_end *e)
{
	if (e->count < 5)
		meet_end_call(e, THERE, QPN, &token);
}

static void test_call_in_callback(void **state)
{
	meet_end_start(&caller, CALLER);
	caller.also = call_again;
	meet_end_call(&caller, THERE, QPN, &token);
	meet_until(all, 1, &caller, 5);
	meet_settle(all, 1);
	assert_int_equal(caller.count, 5);
	meet_end_close(&caller);
}

static void test_close_midway(void **state)
{
	meet_end_start(&a, THERE);
	meet_end_start(&caller, CALLER);
	meet_end_call(&caller, THERE, QPN, &token);
	hca_meet_progress(caller.meet);
	hca_meet_progress(a.meet);
	meet_end_close(&caller);
	meet_settle(&all[1], 1);
	assert_int_equal(a.count, 0);
	meet_end_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_port),
		cmocka_unit_test(test_frames_follow),
		cmocka_unit_test(test_redirected),
		cmocka_unit_test(test_redirected_to_none),
		cmocka_unit_test(test_redirected_in_a_circle),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_wide_range),
		cmocka_unit_test(test_among_others),
		cmocka_unit_test(test_other_rails),
		cmocka_unit_test(test_rails),
		cmocka_unit_test(test_no_port),
		cmocka_unit_test(test_listener_closed),
		cmocka_unit_test(test_listener_closed_alone),
		cmocka_unit_test(test_listener_silent),
		cmocka_unit_test(test_listener_silent_alone),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_late_owner),
		cmocka_unit_test(test_host_silent),
		cmocka_unit_test(test_both_at_once),
		cmocka_unit_test(test_two_calls),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_cancel_in_callback),
		cmocka_unit_test(test_call_in_callback),
		cmocka_unit_test(test_close_midway),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
