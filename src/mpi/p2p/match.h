/* match.h - a receive is posted: what nearly all receives do of match.c. */
#ifndef RAILMPI_MATCH_H
#define RAILMPI_MATCH_H

#include "mpi/job/layer.h"
#include "mpi/p2p/match_order.h"

/* For an operation of this communicator; sets all that does not depend on a message. */
static inline void recv_init(struct comm *c, struct req *r, const struct message_args *m)
{
	r->kind = REQ_RECV;
	r->done = false;
	r->posted = false;
	r->cancelled = r->detached = false;
	r->error = MPI_SUCCESS;
	r->comm = c;
	r->bytes = m->count * m->type->size;
	r->source = m->rank;
	r->tag = m->tag;
	r->packed = NULL;
	r->frame = __builtin_frame_address(0);
	c->refs++;
	layer_pending_add(1);
	if (likely(dtype_is_plain(m->type, m->count))) {
		r->buf = r->bytes ? (char *)m->buf + m->type->true_lb : NULL;
		r->type = NULL;
	} else {
		r->buf = m->buf;
		r->type = m->type;
		r->type->refs++;
	}
}

/* r is initialised by the call; complete or posted on return. */
static inline void recv_start(struct comm *c, struct req *r, const struct message_args *m)
{
	struct unexpected *u;

	recv_init(c, r, m);
	u = match_receive(c, r, false);
	if (unlikely(u))
		recv_waiting(r, u);
}

#endif
