/*
 * stream.h - one TCP connection: frames that wait to leave, bytes that have arrived.
 *
 * Short frames are copied into the output buffer and leave together.  The payload of a long frame
 * leaves from the program's memory: the frame is the last one in the buffer until all of it has
 * left, so that other traffic of the queue pair waits for one frame at most.  The short frame that ends
 * its message may follow it there.  A payload whose memory is withdrawn goes on as zeros, without the
 * end: the other end counts bytes, and learns from the next frame what the message is worth.
 *
 * A read for a header takes what has come after it, and payload that it takes is copied: up to
 * HCA_STREAM_BYTES once, then, after a message of 16 KiB or more, none, since a header is read alone.
 * Shorter payload is copied, since a second system call costs more than the copy.
 *
 * No function blocks.  The caller serializes all calls.
 */
#ifndef HCA_WIRE_STREAM_H
#define HCA_WIRE_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "softhca/base/layout.h"
#include "softhca/link/wire/frame.h"
#include "softhca/link/wire/socket.h"

enum {
	HCA_STREAM_BYTES = 1 << 15,	/* of each buffer */
	HCA_STREAM_COPIED = 8192,	/* payload: the longest that is copied */
	HCA_STREAM_FRAME = 1 << 20,	/* payload of one frame, at most */
	HCA_STREAM_TAIL = 8,		/* the end of a write, which programs poll: its reader stores it */
	HCA_STREAM_END = HCA_FRAME_BYTES + HCA_STREAM_TAIL,	/* the frame after a payload in place */
};

struct hca_stream {
	int fd;				/* -1: none */
	bool blocked;			/* the kernel takes no more: wait for EPOLLOUT */
	bool more;			/* set by the caller: frames follow at once, and share the last segment */
	bool held;			/* the kernel holds that segment back until they come */
	bool ended;			/* the peer sends no more, perhaps: epoll has told */
	bool drained;			/* the last read found less than there was room for */
	bool empty;			/* the last read found nothing */
	uint64_t flushed_ns;		/* the last time that bytes left */
	uint64_t drained_ns;		/* a read for a long payload last found less, and little */
	unsigned singles;		/* packets of long payloads have come one by one, so many reads ago at most */
	uint64_t bound_ns;		/* the next time to bound what the kernel takes ahead */
	struct hca_socket_bounds bounds;
	uint64_t out_total, in_total;	/* bytes so far */

	unsigned char *out;		/* bytes [out_at, out_end) wait */
	uint32_t out_at, out_end;
	struct iovec piece[HCA_SGE_MAX];	/* payload that follows them, from memory */
	unsigned piece_at, piece_count;
	size_t piece_left;
	uint32_t after;			/* bytes from out_end on, which follow that payload */
	bool zeros;			/* instead of the rest of that payload */

	/*
	 * Payloads are long lately: a read for a header takes nothing else, so that the payload after it
	 * need not be copied out of the buffer.
	 */
	bool headers_alone;
	bool asks_first;		/* payloads of several packets: a read that finds nothing is dear */
	unsigned char *in;		/* bytes [in_at, in_end) have arrived */
	uint32_t in_at, in_end;
};

/* Take over a connected, non-blocking socket: 0 or -ENOMEM. */
int hca_stream_open(struct hca_stream *s, int fd);
/* Close the socket, with what waits; may be called again. */
void hca_stream_close(struct hca_stream *s);
/* Does the error of an operation tell that a program has closed a descriptor which it has not opened? */
static inline bool hca_stream_is_taken(int error)
{
	return error == -EBADF || error == -ENOTSOCK;
}
/* The descriptor is closed, and perhaps another file's: it stays as it is. */
void hca_stream_forget(struct hca_stream *s);

/* ---- Output -------------------------------------------------------------- */

static inline bool hca_stream_waits(const struct hca_stream *s)
{
	return s->out_at != s->out_end || s->piece_left;
}

/* Is there room for a frame with so many copied bytes of payload? */
static inline bool hca_stream_has_room(const struct hca_stream *s, uint32_t bytes)
{
	return !s->piece_left && HCA_STREAM_BYTES - s->out_end >= HCA_FRAME_BYTES + bytes;
}

/* Add a frame; its payload is copied: f->bytes of the pieces.  There is room. */
void hca_stream_put(struct hca_stream *s, const struct hca_frame *f, const struct iovec *piece,
		    unsigned count);
/*
 * Add a frame whose payload, f->bytes of the pieces, stays in place until it has left.  There is room
 * for HCA_STREAM_END bytes: a frame may be put after it.
 */
void hca_stream_put_in_place(struct hca_stream *s, const struct hca_frame *f,
			     const struct iovec *piece, unsigned count);
/* The payload in place is followed by a frame of HCA_STREAM_TAIL bytes at most, which hca_stream_place copies. */
void hca_stream_put_after(struct hca_stream *s, const struct hca_frame *f);
/* Bytes of payload in place that have not left, and of the frame after it. */
static inline uint32_t hca_stream_rest(const struct hca_stream *s)
{
	return (uint32_t)s->piece_left + (s->after ? s->after - HCA_FRAME_BYTES : 0);
}
/* The memory of that rest is at these pieces now. */
void hca_stream_place(struct hca_stream *s, const struct iovec *piece, unsigned count);
/* The memory of the rest is withdrawn: so many zeros leave, and nothing after them. */
void hca_stream_void(struct hca_stream *s);
/*
 * Send what waits: 0 when nothing waits any more, -EAGAIN, or another -errno.  Where nothing waits and
 * no frames follow any more, the segment that is held back leaves.
 */
int hca_stream_flush(struct hca_stream *s);

/* ---- Input --------------------------------------------------------------- */

static inline uint32_t hca_stream_arrived(const struct hca_stream *s)
{
	return s->in_end - s->in_at;
}

/*
 * Read into the buffer, which has fewer than the `need` bytes that the caller waits for: the bytes
 * read, 0 at the end of the stream, -EAGAIN or another -errno.
 */
int hca_stream_fill(struct hca_stream *s, size_t need);
/* The payload of this frame follows.  The short end of a longer message tells nothing of what comes. */
void hca_stream_expect(struct hca_stream *s, const struct hca_frame *f);
/*
 * Move up to `bytes` bytes of payload into the pieces, from the buffer or from the socket, whose
 * further bytes go into the buffer.  Results as above.
 */
int hca_stream_take(struct hca_stream *s, const struct iovec *piece, unsigned count, size_t bytes);
/* Pass over bytes that have arrived. */
static inline void hca_stream_skip(struct hca_stream *s, uint32_t bytes)
{
	s->in_at += bytes;
}

/* ---- Pieces -------------------------------------------------------------- */

/* Bytes [skip, skip + bytes) of a list of pieces, as another list: its length. */
unsigned hca_pieces_cut(const struct iovec *piece, unsigned count, size_t skip, size_t bytes,
			struct iovec *out);

#endif
