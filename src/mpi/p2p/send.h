/* send.h - sending a message: the part of send.c that nearly all short messages take. */
#ifndef RAILMPI_SEND_H
#define RAILMPI_SEND_H

#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/request.h"
#include "rail/rail.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

/* The end of an operation of librail: a pointer, so that trace.c can put its own function first. */
extern void (*send_done)(struct rail_op *op, int status);
/* r is initialised by the call.  Return: 1 complete (r not in use), 0 in flight, or -errno. */
int send_start(struct comm *c, struct req *r, const struct message_args *m, enum req_mode mode);
/* The end of send_start.  rc: result of rail_send of a message of eager size. */
int send_begun(struct comm *c, struct req *r, const struct message_args *m, int rc);
/* A nonblocking send is in flight: may poll, so that earlier messages make progress. */
void poll_between_sends(const struct comm *c, const struct message_args *m);

/* send_start with a short cut for short messages of plain bytes. */
static inline int send_short(struct comm *c, struct req *r, const struct message_args *m,
			     enum req_mode mode)
{
	const size_t bytes = m->count * m->type->size;
	struct rail_header header;
	struct rail_buf b;
	int rc;

	if (unlikely(mode != MODE_STANDARD || !m->type->contiguous || !bytes ||
		     bytes > c->eager))
		return send_start(c, r, m, mode);
	layer.call->bytes += bytes;
	header = (struct rail_header){
		{c->context, (uint64_t)(uint32_t)c->rank << 32 | (uint32_t)m->tag}
	};
	b = (struct rail_buf){
		.addr = (char *)m->buf + m->type->true_lb,
		.bytes = bytes,
		.kind = RAIL_MEM_HOST,
	};
	r->packed = NULL;
	r->op.done = send_done;
	rc = rail_send(c->peer[m->rank], &c->way, &header, &b, RAIL_SEND_NOW, &r->op);
	return likely(rc > 0) ? rc : send_begun(c, r, m, rc);
}

/* The same for a nonblocking call, which may poll, so that earlier messages make progress. */
static inline int send_beside(struct comm *c, struct req *r, const struct message_args *m,
			      enum req_mode mode)
{
	int rc = send_short(c, r, m, mode);

	if (unlikely(!rc))
		poll_between_sends(c, m);
	return rc;
}

#pragma GCC visibility pop

#endif
