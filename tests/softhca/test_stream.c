/*
 * test_stream.c - one TCP connection: long frames among short ones, in order; which bytes are copied; the
 * bound of its rate.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "softhca/link/wire/stream.h"

enum { LONGEST = HCA_STREAM_FRAME, FRAMES = 24, MB = 1000000 };

static unsigned char *pattern, *landed;

static int prepare(void **state)
{
	size_t i;

	(void)state;
	pattern = malloc(LONGEST + FRAMES);
	landed = malloc(LONGEST);
	if (!pattern || !landed)
		return -1;
	for (i = 0; i < LONGEST + FRAMES; i++)
		pattern[i] = (unsigned char)(i * 7 + i / 251 + 1);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	free(pattern);
	free(landed);
	return 0;
}

static int without_blocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* Both ends of a connection within this host. */
static void open_ends(struct hca_stream *from, struct hca_stream *to)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *address = (struct sockaddr *)(void *)&at;
	socklen_t bytes = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), near = socket(AF_INET, SOCK_STREAM, 0), far;

	assert_int_equal(bind(listener, address, bytes), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, address, &bytes), 0);
	assert_int_equal(connect(near, address, bytes), 0);
	far = accept(listener, NULL, NULL);
	assert_true(far >= 0);
	close(listener);
	assert_int_equal(hca_stream_open(from, without_blocking(near)), 0);
	assert_int_equal(hca_stream_open(to, without_blocking(far)), 0);
}

/* Long and short ones in turn; the payload of frame k begins at pattern + k. */
static uint32_t bytes_of(uint32_t k)
{
	return k % 3 == 2 ? 8 * k : (uint32_t)LONGEST >> k % 5;
}

/* Give the kernel what there is room for. */
static void send_next(struct hca_stream *s, uint32_t *sent)
{
	const uint32_t bytes = bytes_of(*sent);
	const struct hca_frame f = { .kind = HCA_FRAME_WRITE, .flags = HCA_FRAME_LAST, .bytes = bytes,
				     .total = bytes, .sequence = *sent };
	struct iovec piece = { pattern + *sent, bytes };
	int rc;

	if (*sent < FRAMES && hca_stream_has_room(s, HCA_STREAM_COPIED)) {
		if (bytes <= HCA_STREAM_COPIED)
			hca_stream_put(s, &f, &piece, 1);
		else
			hca_stream_put_in_place(s, &f, &piece, 1);
		++*sent;
	}
	s->bound_ns = 0;		/* each flush looks at the rate */
	rc = hca_stream_flush(s);
	assert_true(rc == 0 || rc == -EAGAIN);
}

/* Bytes of a payload: how many have landed by now. */
static uint32_t land(struct hca_stream *s, uint32_t bytes, uint32_t done)
{
	int n = 1;

	while (done < bytes && n > 0) {
		const struct iovec rest = { landed + done, bytes - done };

		n = hca_stream_take(s, &rest, 1, rest.iov_len);
		assert_true(n > 0 || n == -EAGAIN);
		done += n > 0 ? (uint32_t)n : 0;
	}
	return done;
}

static bool next_header(struct hca_stream *s, struct hca_frame *f)
{
	int n = 1;

	while (hca_stream_arrived(s) < HCA_FRAME_BYTES && n > 0)
		n = hca_stream_fill(s, HCA_FRAME_BYTES);
	assert_true(n > 0 || n == -EAGAIN);
	if (hca_stream_arrived(s) < HCA_FRAME_BYTES)
		return false;
	assert_int_equal(hca_frame_read(s->in + s->in_at, f), 0);
	hca_stream_skip(s, HCA_FRAME_BYTES);
	hca_stream_expect(s, f);
	return true;
}

static void carry(struct hca_stream *from, struct hca_stream *to)
{
	uint32_t sent = 0, come = 0, done = 0;
	struct hca_frame f;
	bool inside = false;

	while (come < FRAMES) {
		send_next(from, &sent);
		if (!inside) {
			inside = next_header(to, &f);
			done = 0;
		}
		if (!inside)
			continue;
		assert_int_equal(f.sequence, come);
		assert_int_equal(f.bytes, bytes_of(come));
		done = land(to, f.bytes, done);
		if (done < f.bytes)
			continue;
		assert_memory_equal(landed, pattern + come, f.bytes);
		inside = false;
		come++;
	}
}

static void test_order(void **state)
{
	struct hca_stream from, to;

	(void)state;
	open_ends(&from, &to);
	carry(&from, &to);
	hca_stream_close(&from);
	hca_stream_close(&to);
}

/* The same where the kernel spaces the bytes. */
static void test_order_with_bound(void **state)
{
	struct hca_stream from, to;
	const int rate = 200 * MB;

	(void)state;
	open_ends(&from, &to);
	assert_int_equal(setsockopt(from.fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)), 0);
	carry(&from, &to);
	hca_stream_close(&from);
	hca_stream_close(&to);
}

/* Four intervals, then twice the most of the last four; fast paths have no bound. */
static void test_bound(void **state)
{
	static const struct {
		uint64_t carried, bound;	/* MB/s */
	} step[] = {
		{ 120, 0 }, { 118, 0 }, { 20, 0 }, { 121, 242 },
		{ 119, 242 }, { 60, 242 }, { 60, 242 }, { 60, 238 }, { 60, 120 },	/* a path that shares */
		{ 118, 236 },							/* alone again */
		{ 1, 236 }, { 1, 236 }, { 1, 236 }, { 1, 50 },			/* hardly used */
		{ 312, 624 }, { 313, 0 }, { 100, 0 }, { 100, 0 }, { 100, 0 }, { 100, 200 },
	};
	struct hca_socket_bounds b = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(step) / sizeof(step[0]); i++)
		assert_int_equal(hca_rate_bound(&b, step[i].carried * MB), step[i].bound * MB);
}

/* A socket that has nothing to send does not show the rate of its path, and keeps what it has. */
static void test_idle(void **state)
{
	struct hca_socket_bounds b = { .rate = 100 * MB };
	struct hca_stream from, to;

	(void)state;
	open_ends(&from, &to);
	assert_false(hca_socket_bound(from.fd, 4000000, &b));
	assert_int_equal(b.rate, 100 * MB);
	assert_int_equal(b.intervals, 0);
	hca_stream_close(&from);
	hca_stream_close(&to);
}

/* All of a write arrives, and one read takes it: has the payload a rest after it? */
static bool rests_after(struct hca_stream *from, struct hca_stream *to, uint32_t bytes)
{
	const struct iovec room = { landed, LONGEST };
	int there = 0;

	assert_int_equal(send(from->fd, pattern, bytes, 0), bytes);
	while (there < (int)bytes)
		assert_int_equal(ioctl(to->fd, FIONREAD, &there), 0);
	to->drained = false;
	to->drained_ns = 0;
	assert_int_equal(hca_stream_take(to, &room, 1, LONGEST), bytes);
	return to->drained_ns;
}

/* Packets that segmentation joins come together after a rest; single ones come without. */
static void test_rest(void **state)
{
	const struct hca_frame f = { .kind = HCA_FRAME_SEND, .bytes = LONGEST, .total = LONGEST };
	struct hca_stream from, to;
	int k, rests = 0;

	(void)state;
	open_ends(&from, &to);
	hca_stream_expect(&to, &f);
	assert_true(rests_after(&from, &to, 32768));
	assert_false(rests_after(&from, &to, 1448));
	for (k = 0; k < 100; k++)
		rests += rests_after(&from, &to, k % 8 ? 32768 : 1448);
	assert_int_equal(rests, 0);
	for (k = 0; k < 100; k++)
		rests = rests_after(&from, &to, 32768);
	assert_true(rests);
	hca_stream_close(&from);
	hca_stream_close(&to);
}

/* ---- Copies ------------------------------ */

/* Payload that the kernel has taken from its place, or has put into it: the rest is copied by the stream. */
static size_t in_place;

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);

/* The bytes within memory, of the first n bytes of a list of pieces. */
static size_t within(const struct msghdr *m, ssize_t n, const unsigned char *memory, size_t bytes)
{
	size_t count = 0, i;

	for (i = 0; n > 0 && i < m->msg_iovlen; i++) {
		const unsigned char *at = m->msg_iov[i].iov_base;
		size_t part = m->msg_iov[i].iov_len < (size_t)n ? m->msg_iov[i].iov_len : (size_t)n;

		count += at >= memory && at < memory + bytes ? part : 0;
		n -= (ssize_t)part;
	}
	return count;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t n = __real_sendmsg(fd, m, flags);

	in_place += within(m, n, pattern, LONGEST + FRAMES);
	return n;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n = __real_recvmsg(fd, m, flags);

	in_place += within(m, n, landed, LONGEST);
	return n;
}

/* A message as the requester makes it: a payload that stays in place, and a short frame that ends it. */
static void put_message(struct hca_stream *s, uint32_t bytes)
{
	struct hca_frame f = { .kind = HCA_FRAME_SEND, .bytes = bytes - HCA_STREAM_TAIL, .total = bytes };
	struct iovec piece = { pattern, f.bytes };

	hca_stream_put_in_place(s, &f, &piece, 1);
	f = (struct hca_frame){ .kind = HCA_FRAME_CONT, .flags = HCA_FRAME_LAST, .bytes = HCA_STREAM_TAIL,
				.total = bytes };
	hca_stream_put_after(s, &f);
	piece.iov_len = bytes;
	hca_stream_place(s, &piece, 1);
}

/* All that the kernel takes of so many messages. */
static void send_messages(struct hca_stream *s, uint32_t bytes, unsigned *count)
{
	int rc = 0;

	while (!rc && (*count || hca_stream_waits(s))) {
		if (!hca_stream_waits(s) && (*count)--)
			put_message(s, bytes);
		rc = hca_stream_flush(s);
		assert_true(rc == 0 || rc == -EAGAIN);
	}
}

/* Bytes that the receiver copies of a message, whose frames arrive while others do. */
static size_t copied_of_next(struct hca_stream *from, struct hca_stream *to, uint32_t bytes, unsigned *count)
{
	uint32_t done = 0, part;
	size_t direct = 0;
	struct hca_frame f;

	for (; done < bytes; done += f.bytes) {
		while (!next_header(to, &f))
			send_messages(from, bytes, count);
		for (part = 0; part < f.bytes;) {
			send_messages(from, bytes, count);
			in_place = 0;
			part = land(to, f.bytes, part);
			direct += in_place;
		}
		assert_memory_equal(landed, pattern + done, f.bytes);
	}
	return bytes - direct;
}

/* Messages of one length in a row. */
static void test_copies(void **state)
{
	static const uint32_t lengths[] = { HCA_STREAM_COPIED + 1, 16384, 65536, LONGEST };
	enum { COUNT = 64 };
	struct hca_stream from, to;
	unsigned i, k, count;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		const uint32_t bytes = lengths[i];
		size_t first = 0, copied;

		open_ends(&from, &to);
		/* The sender's payload leaves from its place, but for the end. */
		count = 1;
		in_place = 0;
		while (count || hca_stream_waits(&from)) {
			send_messages(&from, bytes, &count);
			if (hca_stream_waits(&from))
				break;
		}
		assert_true(hca_stream_waits(&from) || in_place == bytes - HCA_STREAM_TAIL);
		for (k = 0, count = COUNT - 1; k < COUNT; k++) {
			copied = copied_of_next(&from, &to, bytes, &count);
			if (bytes >= 16384 && copied > HCA_STREAM_END + HCA_FRAME_BYTES) {
				first += copied;
				assert_true(k < 2);
			}
		}
		assert_true(first <= HCA_STREAM_BYTES);
		hca_stream_close(&from);
		hca_stream_close(&to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_with_bound),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_rest),
	};

	return cmocka_run_group_tests(tests, prepare, finish);
}
