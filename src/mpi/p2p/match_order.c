/* match_order.c - the order of matching: the messages that wait. */
#include "mpi/p2p/match_order.h"

void match_comm_init(struct comm *c)
{
	queue_init(&c->posted_any);
	queue_init(&c->unexpected_any);
	for (int i = 0; i < c->size; i++) {
		queue_init(&c->source[i].posted);
		queue_init(&c->source[i].unexpected);
	}
}

static struct unexpected *unexpected_entry(struct queue_link *l, bool any)
{
	return any ? queue_entry(l, struct unexpected, by_comm) :
		     queue_entry(l, struct unexpected, by_source);
}

struct unexpected *match_probe(struct comm *c, int source, int tag)
{
	const bool any = source == MPI_ANY_SOURCE;
	struct queue_link *head = any ? &c->unexpected_any : &c->source[source].unexpected, *l;
	struct unexpected *notice = NULL;

	queue_each(l, head) {
		struct unexpected *u = unexpected_entry(l, any);

		if (unlikely(u->lost))
			notice = u;
		else if (tag_matches(tag, u->tag))
			return u;
	}
	return notice;
}

void match_unpost(struct req *r)
{
	queue_remove(&r->link);
	r->posted = false;
}
