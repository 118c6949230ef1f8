/* match.h - a receive is posted: what nearly all receives do of match.c. */
#ifndef RAILMPI_MATCH_H
#define RAILMPI_MATCH_H

#include "layer.h"
#include "queue.h"

/* For an operation of this communicator; sets all that does not depend on a message. */
static inline void recv_init(struct comm *c, struct req *r, const struct message_args *m,
			     bool posted)
{
	r->kind = REQ_RECV;
	r->done = false;
	r->posted = posted;
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

/* In a queue of posted receives: behind all before it. */
static inline void recv_post(struct comm *c, struct req *r, struct link *posted)
{
	r->stamp = c->stamp++;
	queue_push(posted, &r->link);
}

/* r is initialised by the call; complete or posted on return. */
static inline void recv_start(struct comm *c, struct req *r, const struct message_args *m)
{
	const bool any = m->rank == MPI_ANY_SOURCE;
	struct source *s = &c->source[any ? 0 : m->rank];
	struct unexpected *u = NULL;

	if (unlikely(!queue_empty(any ? &c->unexpected_any : &s->unexpected)))
		u = match_probe(c, m->rank, m->tag);
	recv_init(c, r, m, !u);
	if (unlikely(u)) {
		recv_queued(c, r, u);
		return;
	}
	recv_post(c, r, any ? &c->posted_any : &s->posted);
}

#endif
