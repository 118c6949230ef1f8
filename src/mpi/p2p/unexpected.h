/*
 * unexpected.h - unexpected messages, which arrive before a matching receive is posted.
 *
 * Each is in two queues, its source's and its communicator's, in order of arrival.  A message whose
 * communicator is unknown yet, or has been freed, is in one of two lists instead.
 */
#ifndef RAILMPI_UNEXPECTED_H
#define RAILMPI_UNEXPECTED_H

#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/pool.h"
#include "mpi/p2p/queue.h"
#include "rail/rail.h"

struct unexpected {
	struct queue_link by_source, by_comm;
	struct comm *comm;		/* NULL while the communicator is not known yet */
	uint64_t context;
	struct rail_peer *peer;
	uint64_t rendezvous;
	size_t bytes;
	int source, tag;
	int lost;			/* the error of a notice, after all messages; lost.h */
	unsigned char payload[];	/* eager: the message */
};

extern struct pool unexpected_pool;
extern size_t unexpected_bytes;		/* in all unexpected messages; inside layer_enter */
/* Messages on communicators whose constructor has not returned here; linked by by_comm. */
extern struct queue_link unexpected_early;
/* Offers (RTS) on communicators freed here: their senders may still cancel them. */
extern struct queue_link unexpected_dropped;

/* A copy of the message, in no queue.  Without memory the job ends. */
struct unexpected *unexpected_make(const struct rail_message *msg);

/* A notice: this rank of its communicator is lost. */
struct unexpected *unexpected_notice(int source, int error);

static inline void unexpected_free(struct unexpected *u)
{
	if (u->rendezvous)
		layer_pending_add(-1);
	else
		unexpected_bytes -= u->bytes;
	pool_put(&unexpected_pool, u);
}

static inline void unexpected_queue(struct comm *c, struct unexpected *u)
{
	u->comm = c;
	queue_push(&c->source[u->source].unexpected, &u->by_source);
	queue_push(&c->unexpected_any, &u->by_comm);
}

/* Remove it from both queues. */
static inline struct unexpected *unexpected_take(struct comm *c, struct unexpected *u)
{
	queue_remove(&u->by_source);
	queue_remove(&u->by_comm);
	return u;
}

/*
 * Eager messages of collectives that have ended here, as far as they came first: no receive takes what
 * a refused call leaves (coll_skip of coll_data.h).
 */
void unexpected_drop_past(struct comm *c, int source);
/* The messages of a communicator that the program freed without receiving them. */
void unexpected_drop(struct comm *c);
void unexpected_stop(void);

#endif
