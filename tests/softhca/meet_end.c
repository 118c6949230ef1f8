/* meet_end.c - see meet_end.h. */
#include "meet_end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "util/clock.h"

#define LIMIT_NS 60000000000u

/* ---- The clock: the linker's --wrap ------------------------------ */

/* The time does not depend on the load of this machine. */
static _Atomic uint64_t time_ns = 1000000000;

uint64_t __real_rg_now_ns(void);
uint64_t __wrap_rg_now_ns(void);

uint64_t __wrap_rg_now_ns(void)
{
	return time_ns;
}

void meet_time_pass(uint64_t ns)
{
	time_ns += ns;
}

/* ---- An end ------------------------------ */

struct sockaddr_storage meet_host(unsigned host)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&a;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x7f000000u + (((unsigned)getpid() & 0x3fffff) << 2) + host);
	return a;
}

static enum hca_meet_answer find(void *arg, const struct hca_hello *h, uint16_t *port)
{
	struct meet_end *e = arg;

	e->asked++;
	*port = e->answer_port;
	return e->answer;
}

static struct meet_told *add(struct meet_end *e, void *token, int fd)
{
	struct meet_told *t = &e->told[e->count++];

	assert_true(e->count <= MEET_TOLD_MAX);
	*t = (struct meet_told){ .token = token, .fd = fd };
	return t;
}

static void arrived(void *arg, int fd, const struct hca_hello *h)
{
	struct meet_end *e = arg;

	add(e, NULL, fd)->h = *h;
	e->arrived++;
	if (e->also)
		e->also(e);
}

static void reached(void *arg, void *token, int fd, const struct hca_hello *h)
{
	struct meet_end *e = arg;

	add(e, token, fd)->h = *h;
	if (e->also)
		e->also(e);
}

static void refused(void *arg, void *token, int error, const char *why)
{
	struct meet_end *e = arg;
	struct meet_told *t = add(e, token, -1);

	t->error = error;
	snprintf(t->why, sizeof(t->why), "%s", why);
	assert_true(error > 0 && *why && !strchr(why, '\n'));
	if (e->also)
		e->also(e);
}

void meet_end_prepare(struct meet_end *e, unsigned host)
{
	static char fabric[32];

	snprintf(fabric, sizeof(fabric), "meet.%d", (int)getpid());
	memset(e, 0, sizeof(*e));
	e->at = meet_host(host);
	e->answer = HCA_MEET_MINE;
	e->config = (struct hca_meet_config){
		.fabric = fabric, .secret = "a secret of this test alone ...", .port_first = MEET_FIRST,
		.port_last = MEET_LAST, .rails = 1, .arg = e, .find = find, .arrived = arrived,
		.reached = reached, .refused = refused
	};
}

int meet_end_open(struct meet_end *e)
{
	e->config.local = &e->at;
	return hca_meet_open(&e->meet, &e->config);
}

void meet_end_start(struct meet_end *e, unsigned host)
{
	meet_end_prepare(e, host);
	assert_int_equal(meet_end_open(e), 0);
}

void meet_end_close(struct meet_end *e)
{
	hca_meet_close(e->meet);
	while (e->count > 0)
		if (e->told[--e->count].fd >= 0)
			close(e->told[e->count].fd);
}

struct hca_hello meet_hello(const struct meet_end *from, unsigned to_host, uint32_t qpn)
{
	struct hca_hello h = {
		.kind = HCA_MEET_QP, .source_qpn = 7, .target_qpn = qpn, .psn = 100,
		.mtu = 4096, .rails = from->config.rails
	};
	const struct sockaddr_storage to = meet_host(to_host);

	memcpy(h.source.raw + 12, &((const struct sockaddr_in *)(const void *)&from->at)->sin_addr, 4);
	memcpy(h.target.raw + 12, &((const struct sockaddr_in *)(const void *)&to)->sin_addr, 4);
	return h;
}

void meet_end_call(struct meet_end *e, unsigned host, uint32_t qpn, void *token)
{
	const struct sockaddr_storage to = meet_host(host);
	const struct hca_hello h = meet_hello(e, host, qpn);

	assert_int_equal(hca_meet_call(e->meet, &to, &h, token), 0);
}

/* An end is served as its header says: when its descriptor is readable or its time has come. */
static bool serve(struct meet_end *e)
{
	struct pollfd p = { .fd = hca_meet_fd(e->meet), .events = POLLIN };

	if (poll(&p, 1, 0) == 0 && hca_meet_next_ns(e->meet) > rg_now_ns())
		return false;
	hca_meet_progress(e->meet);
	return true;
}

uint64_t meet_real_ns(void)
{
	return __real_rg_now_ns();
}

static bool serve_all(struct meet_end *const *ends, unsigned ends_count)
{
	bool any = false;

	for (unsigned i = 0; i < ends_count; i++)
		any |= serve(ends[i]);
	return any;
}

void meet_turn(struct meet_end *const *ends, unsigned ends_count, uint64_t begun)
{
	assert_true(meet_real_ns() - begun < LIMIT_NS);
	if (!serve_all(ends, ends_count))
		poll(NULL, 0, 1);
}

void meet_until(struct meet_end *const *ends, unsigned ends_count, const struct meet_end *e,
		unsigned count)
{
	meet_wait(ends, ends_count, e->count >= count);
}

void meet_settle(struct meet_end *const *ends, unsigned ends_count)
{
	const uint64_t begun = meet_real_ns();

	for (unsigned idle = 0; idle < 20; idle++) {
		assert_true(meet_real_ns() - begun < LIMIT_NS);
		if (serve_all(ends, ends_count))
			idle = 0;
	}
}

/* ---- Others ------------------------------ */

static int raw_socket(void)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

int meet_raw_listen(unsigned host, int backlog)
{
	struct sockaddr_storage a = meet_host(host);
	const int fd = raw_socket(), on = 1;

	((struct sockaddr_in *)(void *)&a)->sin_port = htons(MEET_FIRST);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)(void *)&a, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

int meet_raw_connect(unsigned host, uint16_t port)
{
	struct sockaddr_storage a = meet_host(host);
	const int fd = raw_socket();

	((struct sockaddr_in *)(void *)&a)->sin_port = htons(port);
	assert_int_equal(connect(fd, (struct sockaddr *)(void *)&a, sizeof(struct sockaddr_in)), 0);
	return fd;
}

ssize_t meet_raw_read(int fd, unsigned char *to, size_t most)
{
	size_t have = 0;
	ssize_t n = 0;

	while (have < most && (n = recv(fd, to + have, most - have, MSG_DONTWAIT)) > 0)
		have += (size_t)n;
	if (have)
		return (ssize_t)have;
	return n < 0 && errno == EAGAIN ? 0 : -1;
}

void meet_raw_await(int fd, unsigned char *to, size_t bytes)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t have = 0;
	ssize_t n;

	while (have < bytes) {
		assert_int_equal(poll(&p, 1, 60000), 1);
		n = recv(fd, to + have, bytes - have, MSG_DONTWAIT);
		assert_true(n > 0);
		have += (size_t)n;
	}
}

void meet_assert_connected(int x, int y)
{
	unsigned char byte = 0;

	assert_int_equal(send(x, "x", 1, 0), 1);
	meet_raw_await(y, &byte, 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(send(y, "y", 1, 0), 1);
	meet_raw_await(x, &byte, 1);
	assert_int_equal(byte, 'y');
}
