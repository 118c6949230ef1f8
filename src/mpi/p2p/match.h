/* match.h - the start of a receive, inline; its end and the callbacks of librail in match.c. */
#ifndef RAILMPI_MATCH_H
#define RAILMPI_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match_order.h"
#include "mpi/p2p/queue.h"
#include "mpi/p2p/request.h"
#include "mpi/type/dtype.h"
#include "rail/rail.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

struct unexpected;

/* The end of an operation of librail: a pointer, so that trace.c can put its own function first. */
extern void (*recv_done)(struct rail_op *op, int status);
/* Receive a message that MPI_Mprobe removed from the queues. */
void recv_unexpected(struct comm *c, struct req *r, const struct message_args *m,
		     struct unexpected *u);
/* The end of recv_start: r is initialised and meets u, the answer of match_receive. */
void recv_waiting(struct req *r, struct unexpected *u);
void match_unexpected_status(const struct unexpected *u, MPI_Status *status);
/* Complete a receive that is in no queue with this error, since the source is lost. */
void recv_lost(struct req *r, int source, int error);
void match_on_message(void *user, const struct rail_message *msg);
bool match_on_cancel(void *user, uint64_t rendezvous);
/* Match the messages that arrived before their communicator's constructor returned. */
void match_replay_early(struct comm *c);

/* Set all of a receive that does not depend on a message. */
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

#pragma GCC visibility pop

#endif
