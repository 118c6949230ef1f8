/* send.c - a message from the program's buffer to librail. */
#include "mpi/p2p/send.h"

#include <errno.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/lost.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/request.h"
#include "mpi/type/dtype.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "util/compiler.h"
#include "util/err.h"

static void send_ended(struct rail_op *op, int status)
{
	struct req *r = (struct req *)op;

	r->cancelled = status == -ECANCELED;
	req_complete(r, status && !r->cancelled ? lost_error_of(rail_op_peer(op), status) : MPI_SUCCESS);
}

void (*send_done)(struct rail_op *op, int status) = send_ended;

/* A buffer that is not plain bytes, or that the program wants back at once, is copied. */
static int send_pack(struct req *r, const struct message_args *m, struct rail_buf *b)
{
	b->addr = req_copy_get(r, b->bytes);
	if (!b->addr)
		return -ENOMEM;
	if (!b->bytes)
		return 0;		/* the program's address may be NULL */
	dtype_pack(m->type, m->buf, 0, b->addr, b->bytes);
	return 0;
}

static const unsigned flags_of[] = {
	[MODE_STANDARD] = RAIL_SEND_NOW,
	[MODE_SYNC] = RAIL_SEND_SYNC,
	[MODE_BUFFERED] = 0,
};

/*
 * The peer is not connected yet, and will be only when it calls the layer.  If the peer waits for
 * something else first, a program that relies on small messages being taken at once would wait for
 * ever.  So the message is copied.
 */
static int send_copied(struct comm *c, const struct message_args *m)
{
	struct req *r = req_alloc(REQ_SEND);
	int rc;

	layer.call->bytes -= m->count * m->type->size;	/* send_start counts them again */
	rc = r ? send_start(c, r, m, MODE_BUFFERED) : -ENOMEM;
	if (rc == 0)
		r->detached = true;
	else if (r)
		req_free(r);
	return rc < 0 ? rc : 1;
}

int send_begun(struct comm *c, struct req *r, const struct message_args *m, int rc)
{
	if (!rc) {
		r->kind = REQ_SEND;
		r->comm = c;
		r->type = NULL;
		r->done = r->detached = r->cancelled = r->posted = false;
		c->refs++;
		layer_pending_add(1);
		return 0;
	}
	if (unlikely(rc == -EAGAIN))
		rc = send_copied(c, m);
	req_copy_put(r);
	return rc;
}

static __attribute__((noinline, cold)) int too_long(const struct message_args *m)
{
	rg_error("rank %d: a message of more than %zu bytes cannot be sent: its elements of %zu bytes "
		 "each are too many", layer.world_rank, DTYPE_BYTES_MAX, m->type->size);
	return -EMSGSIZE;
}

/* A message too large for a copy, or one in slices, is gathered in parts, as the receiver asks for them. */
static __attribute__((noinline, cold)) int send_parts(struct comm *c, struct req *r,
						      const struct message_args *m,
						      const struct rail_header *header,
						      enum req_mode mode, bool in_slices)
{
	const struct rail_buf b = {
		.bytes = m->count * m->type->size, .kind = RAIL_MEM_PARTS, .in_slices = in_slices,
	};
	int rc = rail_send(c->peer[m->rank], &c->way, header, &b, flags_of[mode], &r->op);

	rc = send_begun(c, r, m, rc);
	if (rc)
		return rc;
	r->buf = m->buf;
	r->type = m->type;
	r->type->refs++;
	return 0;
}

int send_start(struct comm *c, struct req *r, const struct message_args *m, enum req_mode mode)
{
	struct rail_header header = {{c->context, (uint64_t)(uint32_t)c->rank << 32 | (uint32_t)m->tag}};
	struct rail_buf b = {.bytes = m->count * m->type->size};
	int rc;

	if (unlikely(b.bytes > DTYPE_BYTES_MAX))
		return too_long(m);
	layer.call->bytes += b.bytes;
	/* A message of no bytes may come from no buffer. */
	b.addr = b.bytes ? (char *)m->buf + m->type->true_lb : (char *)&header;

	r->packed = NULL;
	r->op.done = send_done;
	if (unlikely(!dtype_is_plain(m->type, m->count) || mode == MODE_BUFFERED)) {
		const bool in_slices = rail_slices(c->peer[m->rank], &c->way, b.bytes);

		if ((in_slices || b.bytes > RAIL_PART_BYTES) && mode != MODE_BUFFERED)
			return send_parts(c, r, m, &header, mode, in_slices);
		rc = send_pack(r, m, &b);
		if (rc)
			return send_begun(c, r, m, rc);
	}
	/* The kind of memory matters only to a message that is not copied. */
	b.kind = b.bytes <= c->eager ? RAIL_MEM_HOST : rail_mem_kind_of(layer.rails, b.addr);
	rc = rail_send(c->peer[m->rank], &c->way, &header, &b, flags_of[mode], &r->op);
	/* Memory that may only be read is not registered; its copy is. */
	if (unlikely(rc == -EFAULT && !r->packed)) {
		if (b.bytes > RAIL_PART_BYTES)
			return send_parts(c, r, m, &header, mode, false);
		rc = send_pack(r, m, &b);
		if (!rc)
			rc = rail_send(c->peer[m->rank], &c->way, &header, &b, flags_of[mode],
				       &r->op);
	}
	return send_begun(c, r, m, rc);
}

/*
 * A rendezvous needs its sender once more, when it is answered.  If the sender polled only while
 * the program waits, the answers to a window of messages, and with them the first byte, would wait
 * until the last of them is begun.  If the sender polled at each send, data of the first message
 * would queue on a slow rail before the requests of the rest, and before our answers to the other
 * side's: up to 512 KiB per rail on Soft-RoCE, 0.17 s at 25 Mbit/s.  So the first poll is early, to
 * give rails something to carry, and further polls are rare.
 *
 * Where processors copy, a poll moves all that the peer has offered, while the peer has no more to do
 * than was offered to it before.  An early poll makes two windows that cross move one after the other.
 */
enum { SENDS_BEFORE_LOOK = 4, SENDS_BETWEEN_LOOKS = 16, COPIES_BETWEEN_LOOKS = 64 };

/* True: poll at the nth large message since the program last waited. */
static bool poll_is_due(const struct rail_peer *peer, unsigned nth)
{
	if (rail_peer_copies(peer))
		return nth % COPIES_BETWEEN_LOOKS == 0;
	return nth == SENDS_BEFORE_LOOK || nth % SENDS_BETWEEN_LOOKS == 0;
}

void poll_between_sends(const struct comm *c, const struct message_args *m)
{
	if (m->count * m->type->size > c->eager && poll_is_due(c->peer[m->rank], ++layer.large))
		rail_progress(layer.rails);
}
