/*
 * test_handover_hostile.c - processes of the same host that hand over anything, or nothing, and another
 * user's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "giver.h"
#include "handover_end.h"
#include "softhca/link/wire/handover.h"

static unsigned char group[HCA_HASH_BYTES];

static void group_of(const char *fabric)
{
	static const unsigned char secret[HCA_SECRET_BYTES];
	struct hca_credentials of;

	hca_credentials_make(&of, fabric, secret);
	memcpy(group, of.fabric, sizeof(group));
}

/* A connection to the socket of `one`, as any process of this host can make it. */
static int giver(unsigned number)
{
	struct sockaddr_un at;
	const socklen_t bytes = giver_name(&at, group, number);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)(const void *)&at, bytes), 0);
	return fd;
}

static void give(int to, const void *message, size_t bytes, const int *fd, size_t fds)
{
	assert_true(giver_send(to, message, bytes, fd, fds) >= 0);
}

static void hello_of(struct hca_handover *h)
{
	h->times = 1;
	h->bytes = HCA_HELLO_BYTES;
	memset(h->begin, 0, sizeof(h->begin));
	memcpy(h->begin, "softhca", 8);
	h->begin[8] = HCA_WIRE_VERSION;
}

static unsigned descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void start_for_strangers(void)
{
	start_there(&a, "strange");
	start_caller("strange");
	group_of("strange");
}

/* Garbage, no descriptor, too many, and such as are no connection of a rail: all closed, and the next one is served. */
static void test_garbage(void **state)
{
	unsigned char out[HCA_HANDOVER_BYTES + 1] = { 0 };
	struct hca_handover h;
	int pair[2], several[8];
	unsigned before;
	size_t bytes;

	start_for_strangers();
	hello_of(&h);
	bytes = hca_handover_write(out, &h);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	several[0] = pair[0];
	several[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	several[2] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	several[3] = meet_raw_connect(THERE, MEET_FIRST);
	for (unsigned i = 4; i < 8; i++)
		several[i] = several[1];
	meet_settle(ALL);
	before = descriptors();
	for (unsigned turn = 0; turn < 16; turn++) {
		const int to = giver((unsigned)hca_meet_shared(a.meet));

		if (turn < 4)
			give(to, out, bytes, &several[turn], 1);
		else if (turn < 8)
			give(to, out, bytes, several, turn);	/* more than one */
		else if (turn < 10)
			give(to, out, bytes, NULL, 0);
		else if (turn < 12)
			give(to, out, turn == 10 ? 3 : bytes + 1, several, 1);
		else if (turn == 12)
			give(to, "", 0, several, 1);
		else if (turn == 13)
			give(to, "softhca", 7, several, 1);
		close(to);
		meet_settle(ALL);
	}
	assert_int_equal(descriptors(), before);
	assert_int_equal(a.asked, 0);
	for (unsigned i = 0; i < 4; i++)
		close(several[i]);
	close(pair[1]);
	calls_reach(&a);
}

/* A giver that says nothing has 250 ms; the next ones wait. */
static void test_silent_giver(void **state)
{
	int first, second, one = 0;
	unsigned before;

	start_for_strangers();
	start_there(&b, "strange");
	owner_is(&b, &a);
	meet_settle(ALL);
	before = descriptors();
	first = giver((unsigned)hca_meet_shared(a.meet));
	second = giver((unsigned)hca_meet_shared(a.meet));
	meet_settle(ALL);
	assert_true(hca_meet_next_ns(a.meet) != UINT64_MAX);
	/* Its first one alone is open. */
	assert_int_equal(descriptors(), before + 3);
	meet_time_pass(SECOND_NS / 4);
	meet_settle(ALL);
	assert_int_equal(recv(first, &one, 1, MSG_DONTWAIT), 0);
	meet_time_pass(SECOND_NS / 4);
	meet_settle(ALL);
	assert_int_equal(recv(second, &one, 1, MSG_DONTWAIT), 0);
	assert_true(hca_meet_next_ns(a.meet) == UINT64_MAX);
	close(first);
	close(second);
	assert_int_equal(descriptors(), before);
	calls_reach(&a);
}

static void test_giver_of_another_user(void **state)
{
	socklen_t bytes;
	struct sockaddr_un at;
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	start_for_strangers();
	bytes = giver_name(&at, group, (unsigned)hca_meet_shared(a.meet));
	pid = fork();
	if (pid == 0) {
		int fd;

		be_another_user();
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(fd, (const struct sockaddr *)(const void *)&at, bytes))
			_exit(1);
		/* It is closed at once, not after a patience. */
		_exit(recv(fd, &status, 1, 0) != 0 && errno != ECONNRESET);
	}
	meet_wait(all, open_ends(), waitpid(pid, &status, WNOHANG) == pid);
	assert_int_equal(status, 0);
	calls_reach(&a);
}

/* A name that another user has taken gets no connection; those after it do. */
static void test_name_of_another_user(void **state)
{
	socklen_t bytes;
	struct sockaddr_un at;
	int status, ready[2], end_of[2];
	pid_t pid;
	char byte;

	if (geteuid())
		skip();
	group_of("strange");
	bytes = giver_name(&at, group, 0);
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(end_of), 0);
	pid = fork();
	if (pid == 0) {
		int fd;

		be_another_user();
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (bind(fd, (const struct sockaddr *)(const void *)&at, bytes) || listen(fd, 100))
			_exit(1);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		close(end_of[1]);
		if (read(end_of[0], &byte, 1))
			_exit(1);
		/* Whoever asked it has said nothing. */
		for (int from; (from = accept(fd, NULL, NULL)) >= 0; close(from))
			if (recv(from, &byte, 1, 0))
				_exit(2);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	start_there(&a, "strange");
	assert_int_equal(hca_meet_shared(a.meet), 1);
	start_there(&b, "another");
	start_caller("strange");
	calls_reach(&a);
	close(end_of[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(end_of[0]);
	close(ready[0]);
	close(ready[1]);
}

/* A connection from an address of `a`, to this test. */
static int connection(void)
{
	struct sockaddr_storage from = meet_host(THERE), to = meet_host(THIRD);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	((struct sockaddr_in *)(void *)&to)->sin_port = htons(MEET_FIRST);
	assert_int_equal(bind(fd, (struct sockaddr *)(void *)&from, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)(void *)&to, sizeof(struct sockaddr_in)), 0);
	return fd;
}

static void hand_over(const struct hca_handover *h)
{
	const int fd = connection(), to = giver((unsigned)hca_meet_shared(a.meet));
	unsigned char out[HCA_HANDOVER_BYTES];

	give(to, out, hca_handover_write(out, h), &fd, 1);
	close(to);
	close(fd);
}

/* Connections that are handed over count as those that are accepted; beyond the bound they wait. */
static void test_too_many(void **state)
{
	enum { MORE = 20 };
	const int listener = meet_raw_listen(THIRD, 4096);
	const unsigned before = (start_for_strangers(), descriptors());
	struct hca_handover h;

	hello_of(&h);
	h.bytes = 12;
	for (unsigned i = 0; i < HCA_MEET_UNPROVEN_MAX + MORE; i++) {
		hand_over(&h);
		meet_settle(ALL);
	}
	assert_int_equal(descriptors(), before + HCA_MEET_UNPROVEN_MAX);
	/* The oldest go for them when they had the time to prove what they know. */
	meet_time_pass(SECOND_NS / 4);
	meet_settle(ALL);
	assert_int_equal(descriptors(), before + HCA_MEET_UNPROVEN_MAX);
	meet_time_pass(5 * (uint64_t)SECOND_NS);
	meet_wait(all, open_ends(), hca_meet_next_ns(a.meet) == UINT64_MAX);
	assert_int_equal(descriptors(), before);
	close(listener);
	calls_reach(&a);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(garbage), CASE(silent_giver), CASE(giver_of_another_user), CASE(name_of_another_user),
		CASE(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
