/* stream.c - one TCP connection: see stream.h. */
#include "softhca/link/wire/stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/link/wire/socket.h"

/* Payload from here on is read into its place by the kernel. */
enum { IN_PLACE = 4096 };
/* Longer payloads come in several packets. */
enum { PACKET = 1448 - HCA_FRAME_BYTES };
/* To copy so much costs more than a system call: a message of 16 KiB, whose end has a frame of its own. */
enum { LONG = 16384 - HCA_STREAM_TAIL };
/* The most that segmentation hands over at once; a read that found as much was not too early. */
enum { SEGMENTS = 45 * 1448 };
/* A read that found fewer than LONG bytes counts for so many reads. */
enum { SINGLES = 32 };
/* A read goes so far beyond a long payload: over the end of its message and the next header. */
enum { BEYOND = HCA_STREAM_END + HCA_FRAME_BYTES };
/*
 * Acknowledgements leave after what the kernel has taken: without a bound, megabytes, a tenth of a
 * second at 250 Mbit/s.
 */
#define UNSENT_NS 4000000u
#define BOUND_AGAIN_NS 10000000u
#define BOUND_SOON_NS 200000u

int hca_stream_open(struct hca_stream *s, int fd)
{
	unsigned char *bytes = malloc(2 * HCA_STREAM_BYTES);

	if (!bytes)
		return -ENOMEM;
	*s = (struct hca_stream){ .fd = fd, .out = bytes, .in = bytes + HCA_STREAM_BYTES };
	return 0;
}

void hca_stream_close(struct hca_stream *s)
{
	if (s->fd >= 0)
		hca_socket_close(s->fd);
	free(s->out);
	*s = (struct hca_stream){ .fd = -1 };
}

void hca_stream_forget(struct hca_stream *s)
{
	if (s->fd >= 0)
		hca_socket_forget(s->fd);
	s->fd = -1;
}

/* ---- Pieces -------------------------------------------------------------- */

unsigned hca_pieces_cut(const struct iovec *piece, unsigned count, size_t skip, size_t bytes,
			struct iovec *out)
{
	unsigned i, n = 0;

	for (i = 0; i < count && bytes; i++) {
		size_t length = piece[i].iov_len, part;

		if (skip >= length) {
			skip -= length;
			continue;
		}
		part = length - skip < bytes ? length - skip : bytes;
		out[n++] = (struct iovec){ (unsigned char *)piece[i].iov_base + skip, part };
		bytes -= part;
		skip = 0;
	}
	return n;
}

/* Copy a buffer into pieces, as far as it and they go. */
static size_t scatter(const struct iovec *piece, unsigned count, const unsigned char *from,
		      size_t bytes)
{
	size_t done = 0;
	unsigned i;

	for (i = 0; i < count && done < bytes; i++) {
		size_t part = piece[i].iov_len < bytes - done ? piece[i].iov_len : bytes - done;

		memcpy(piece[i].iov_base, from + done, part);
		done += part;
	}
	return done;
}

/* ---- Output -------------------------------------------------------------- */

static const unsigned char zero_page[4096];

static void put_header(struct hca_stream *s, const struct hca_frame *f)
{
	hca_frame_write(s->out + s->out_end, f);
	s->out_end += HCA_FRAME_BYTES;
}

void hca_stream_put(struct hca_stream *s, const struct hca_frame *f, const struct iovec *piece,
		    unsigned count)
{
	uint32_t left = f->bytes;
	unsigned i;

	put_header(s, f);
	for (i = 0; i < count && left; i++) {
		uint32_t part = piece[i].iov_len < left ? (uint32_t)piece[i].iov_len : left;

		memcpy(s->out + s->out_end, piece[i].iov_base, part);
		s->out_end += part;
		left -= part;
	}
}

void hca_stream_put_in_place(struct hca_stream *s, const struct hca_frame *f,
			     const struct iovec *piece, unsigned count)
{
	put_header(s, f);
	s->piece_left = f->bytes;
	hca_stream_place(s, piece, count);
}

void hca_stream_put_after(struct hca_stream *s, const struct hca_frame *f)
{
	hca_frame_write(s->out + s->out_end, f);
	s->after = HCA_FRAME_BYTES + f->bytes;
}

void hca_stream_place(struct hca_stream *s, const struct iovec *piece, unsigned count)
{
	unsigned char *end = s->out + s->out_end + HCA_FRAME_BYTES;
	struct iovec last[HCA_SGE_MAX];
	unsigned i, n;

	s->piece_count = hca_pieces_cut(piece, count, 0, s->piece_left, s->piece);
	s->piece_at = 0;
	if (!s->after)
		return;
	n = hca_pieces_cut(piece, count, s->piece_left, s->after - HCA_FRAME_BYTES, last);
	for (i = 0; i < n; end += last[i++].iov_len)
		memcpy(end, last[i].iov_base, last[i].iov_len);
}

void hca_stream_void(struct hca_stream *s)
{
	s->zeros = s->piece_left;
	s->after = 0;
}

/* So many bytes of the payload in place have left: the number of bytes after it that have, too. */
static size_t pass_pieces(struct hca_stream *s, size_t bytes)
{
	size_t passed = bytes < s->piece_left ? bytes : s->piece_left, left = passed;

	s->piece_left -= passed;
	while (left && !s->zeros) {
		struct iovec *p = &s->piece[s->piece_at];
		size_t part = p->iov_len < left ? p->iov_len : left;

		p->iov_base = (unsigned char *)p->iov_base + part;
		p->iov_len -= part;
		left -= part;
		if (!p->iov_len)
			s->piece_at++;
	}
	return bytes - passed;
}

/* So many bytes have left. */
static void pass(struct hca_stream *s, size_t bytes)
{
	uint32_t head = s->out_end - s->out_at;

	s->out_total += bytes;
	if (bytes < head) {
		s->out_at += (uint32_t)bytes;
		return;
	}
	bytes = pass_pieces(s, bytes - head);
	s->out_at = s->out_end;
	if (s->piece_left)
		return;
	s->zeros = false;
	s->out_at += (uint32_t)bytes;
	s->out_end += s->after;
	s->after = 0;
	if (s->out_at == s->out_end)
		s->out_at = s->out_end = 0;
}

/* The payload in place, or zeros instead: the number of pieces. */
static unsigned payload(const struct hca_stream *s, struct iovec *list)
{
	size_t left = s->piece_left;
	unsigned n;

	if (!s->zeros) {
		n = s->piece_count - s->piece_at;
		memcpy(list, &s->piece[s->piece_at], n * sizeof(*list));
		return n;
	}
	for (n = 0; left && n < HCA_SGE_MAX; n++) {
		list[n] = (struct iovec){ (void *)(uintptr_t)zero_page,
					  left < sizeof(zero_page) ? left : sizeof(zero_page) };
		left -= list[n].iov_len;
	}
	return n;
}

static ssize_t send_some(struct hca_stream *s)
{
	struct iovec list[2 + HCA_SGE_MAX];
	struct msghdr m = { .msg_iov = list };
	uint32_t head = s->out_end - s->out_at;
	unsigned n = 0;

	if (!s->piece_left)
		return send(s->fd, s->out + s->out_at, head, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (head)
		list[n++] = (struct iovec){ s->out + s->out_at, head };
	n += payload(s, list + n);
	if (s->after)
		list[n++] = (struct iovec){ s->out + s->out_end, s->after };
	m.msg_iovlen = n;
	return sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL | (s->more ? MSG_MORE : 0));
}

/* The kernel would send it 200 ms later. */
static void send_held(struct hca_stream *s)
{
	hca_socket_push(s->fd);
	s->held = false;
}

/* Long payloads leave: the time to ask the kernel for its rate. */
static void bound(struct hca_stream *s, uint64_t now_ns)
{
	if (now_ns < s->bound_ns)
		return;
	s->bound_ns = now_ns + (hca_socket_bound(s->fd, UNSENT_NS, &s->bounds) ? BOUND_AGAIN_NS : BOUND_SOON_NS);
}

int hca_stream_flush(struct hca_stream *s)
{
	const bool is_long = s->piece_left;

	s->blocked = false;
	if (!hca_stream_waits(s)) {
		if (unlikely(s->held && !s->more))
			send_held(s);
		return 0;
	}
	do {
		ssize_t n = send_some(s);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			s->blocked = errno == EAGAIN || errno == EWOULDBLOCK;
			if (!s->blocked)
				return -errno;
			bound(s, rg_now_ns());
			return -EAGAIN;
		}
		pass(s, (size_t)n);
	} while (hca_stream_waits(s));
	s->flushed_ns = rg_now_ns();
	s->held = is_long && s->more;
	if (is_long)
		bound(s, s->flushed_ns);
	return 0;
}

/* ---- Input --------------------------------------------------------------- */

/*
 * A short read has emptied the socket: the next one would only find so.  A read that finds nothing holds
 * the socket meanwhile, and packets that arrive then are this end's work, with the acknowledgement that
 * several of them cause; with long payloads that takes work off the sender.
 */
static bool finds_nothing(struct hca_stream *s)
{
	if (s->ended)
		return false;
	if (s->drained) {
		s->drained = false;
		return true;
	}
	return s->empty && s->asks_first && !hca_socket_is_readable(s->fd);
}

static int receive(struct hca_stream *s, struct iovec *list, unsigned count, size_t room)
{
	struct msghdr m = { .msg_iov = list, .msg_iovlen = count };
	ssize_t n;

	if (finds_nothing(s))
		return -EAGAIN;
	do {
		n = count == 1 ? recv(s->fd, list->iov_base, list->iov_len, MSG_DONTWAIT)
			       : recvmsg(s->fd, &m, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	s->empty = n < 0;
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	s->drained = (size_t)n < room;
	s->in_total += (uint64_t)n;
	return (int)n;
}

void hca_stream_expect(struct hca_stream *s, const struct hca_frame *f)
{
	if (!f->bytes || (f->bytes <= HCA_STREAM_TAIL && f->bytes < f->total))
		return;
	s->headers_alone = f->bytes >= LONG;
	s->asks_first = f->bytes > PACKET && f->bytes < LONG;
}

int hca_stream_fill(struct hca_stream *s, size_t need)
{
	struct iovec room;
	int n;

	if (s->in_at == s->in_end)
		s->in_at = s->in_end = 0;
	if (s->in_at && HCA_STREAM_BYTES - s->in_end < IN_PLACE) {
		memmove(s->in, s->in + s->in_at, s->in_end - s->in_at);
		s->in_end -= s->in_at;
		s->in_at = 0;
	}
	room = (struct iovec){ s->in + s->in_end, HCA_STREAM_BYTES - s->in_end };
	if (!room.iov_len)
		return -EAGAIN;
	need -= hca_stream_arrived(s);
	if (s->headers_alone && need < room.iov_len)
		room.iov_len = need;
	n = receive(s, &room, 1, room.iov_len);
	if (n > 0)
		s->in_end += (uint32_t)n;
	return n;
}

/*
 * Single packets, without segmentation, are this end's work only while it holds the socket: a rest leaves
 * them to the sender, which is the slower end then.
 */
static void found_less(struct hca_stream *s, size_t got)
{
	if (got < LONG)
		s->singles = SINGLES;
	else if (s->singles)
		s->singles--;
	if (got < SEGMENTS && !s->singles)
		s->drained_ns = rg_now_ns();
}

/* The buffer is empty: bytes beyond the payload, the frames after it, go there. */
static int receive_in_place(struct hca_stream *s, const struct iovec *piece, unsigned count,
			    size_t bytes)
{
	struct iovec list[HCA_SGE_MAX + 1];
	unsigned n = hca_pieces_cut(piece, count, 0, bytes, list);
	const size_t beyond = s->headers_alone ? BEYOND : HCA_STREAM_BYTES;
	int got;

	s->in_at = s->in_end = 0;
	list[n] = (struct iovec){ s->in, beyond };
	got = receive(s, list, n + 1, bytes + beyond);
	if (got > 0 && s->drained && bytes >= LONG)
		found_less(s, (size_t)got);
	if (got <= 0 || (size_t)got <= bytes)
		return got;
	s->in_end = (uint32_t)((size_t)got - bytes);
	return (int)bytes;
}

int hca_stream_take(struct hca_stream *s, const struct iovec *piece, unsigned count, size_t bytes)
{
	uint32_t have = hca_stream_arrived(s);
	int n;

	if (!have && (bytes >= IN_PLACE || s->headers_alone))
		return receive_in_place(s, piece, count, bytes);
	if (!have) {
		n = hca_stream_fill(s, bytes);
		if (n <= 0)
			return n;
		have = hca_stream_arrived(s);
	}
	n = (int)scatter(piece, count, s->in + s->in_at, have < bytes ? have : bytes);
	s->in_at += (uint32_t)n;
	return n;
}
