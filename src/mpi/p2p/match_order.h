/*
 * match_order.h - the order of matching: queues, sources, tags and stamps alone, no data.
 *
 * Per communicator and source there are two queues: receives in post order, and unexpected
 * messages in order of arrival (unexpected.h).  Receives from MPI_ANY_SOURCE have a queue of
 * their own; of two candidates the smaller stamp was posted first.
 *
 * Every receive comes through match_receive, every message through match_message.
 * tests/mpi/test_match.c holds both against lists.
 */
#ifndef RAILMPI_MATCH_ORDER_H
#define RAILMPI_MATCH_ORDER_H

#include <stdbool.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/p2p/queue.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/unexpected.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

void match_comm_init(struct comm *c);
/* A message, else the notice of a rank that is lost (u->lost), else NULL; still queued. */
struct unexpected *match_probe(struct comm *c, int source, int tag);
void match_unpost(struct req *r);

static inline bool tag_matches(int wanted, int tag)
{
	return wanted == tag || wanted == MPI_ANY_TAG;
}

/* True: a message waits that a receive from this source may have to take. */
static inline bool match_waits(const struct comm *c, int source)
{
	return !queue_empty(source == MPI_ANY_SOURCE ? &c->unexpected_any :
						       &c->source[source].unexpected);
}

/*
 * A receive with its source and tag meets the messages that wait.  The result is the first message
 * that it matches, taken out of both queues, or a notice (unexpected.h), still queued.  NULL: the
 * receive is posted, after all earlier receives.  `quiet`: match_waits was false.
 */
static inline struct unexpected *match_receive(struct comm *c, struct req *r, bool quiet)
{
	if (!quiet && unlikely(match_waits(c, r->source))) {
		struct unexpected *u = match_probe(c, r->source, r->tag);

		if (u)
			return u->lost ? u : unexpected_take(c, u);
	}
	r->posted = true;
	r->stamp = c->stamp++;
	queue_push(r->source == MPI_ANY_SOURCE ? &c->posted_any : &c->source[r->source].posted,
		   &r->link);
	return NULL;
}

static inline struct req *match_first_posted(const struct queue_link *head, int tag)
{
	struct queue_link *l;

	queue_each(l, head) {
		struct req *r = queue_entry(l, struct req, link);

		if (tag_matches(r->tag, tag))
			return r;
	}
	return NULL;
}

static inline struct req *match_posted(struct comm *c, int source, int tag)
{
	struct req *named = match_first_posted(&c->source[source].posted, tag);
	struct req *any;

	if (likely(queue_empty(&c->posted_any)))
		return named;
	any = match_first_posted(&c->posted_any, tag);
	return !any || (named && named->stamp < any->stamp) ? named : any;
}

/* A message meets the posted receives: the first that it matches, taken out; NULL: none. */
static inline struct req *match_message(struct comm *c, int source, int tag)
{
	struct req *r = match_posted(c, source, tag);

	if (likely(r)) {
		queue_remove(&r->link);
		r->posted = false;
	}
	return r;
}

#pragma GCC visibility pop

#endif
