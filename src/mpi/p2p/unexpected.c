/* unexpected.c - memory of unexpected messages, and messages that no receive takes. */
#include "mpi/p2p/unexpected.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/pool.h"
#include "mpi/p2p/queue.h"
#include "rail/rail.h"
#include "util/copy.h"
#include "util/err.h"

size_t unexpected_bytes;
struct pool unexpected_pool = { .get = pool_heap_get, .put = free };
struct queue_link unexpected_early = {&unexpected_early, &unexpected_early};
struct queue_link unexpected_dropped = {&unexpected_dropped, &unexpected_dropped};

static struct unexpected *unexpected_get(size_t bytes)
{
	struct unexpected *u = pool_get(&unexpected_pool, sizeof(*u) + bytes);

	if (!u)
		native_end("out of memory for an unexpected message of %zu bytes", bytes);
	return u;
}

struct unexpected *unexpected_notice(int source, int error)
{
	struct unexpected *u = unexpected_get(0);

	*u = (struct unexpected){.source = source, .tag = MPI_ANY_TAG, .lost = error};
	return u;
}

struct unexpected *unexpected_make(const struct rail_message *msg)
{
	size_t payload = msg->payload ? msg->bytes : 0;
	struct unexpected *u = unexpected_get(payload);

	u->lost = 0;
	u->context = msg->header->word[0];
	u->source = (int)(msg->header->word[1] >> 32);
	u->tag = (int)(uint32_t)msg->header->word[1];
	u->bytes = msg->bytes;
	u->peer = msg->peer;
	u->rendezvous = msg->rendezvous;
	if (payload)
		rg_copy_blocks(u->payload, msg->payload, payload);
	unexpected_bytes += payload;
	if (!msg->payload)
		layer_pending_add(1);	/* the sender may cancel it, and waits for our answer */
	return u;
}

void unexpected_drop_past(struct comm *c, int source)
{
	struct queue_link *head = &c->source[source].unexpected;

	while (!queue_empty(head)) {
		struct unexpected *u = queue_entry(head->next, struct unexpected, by_source);

		if (u->lost || u->rendezvous || !comm_call_is_before(c->collectives - 1, u->tag))
			return;
		unexpected_free(unexpected_take(c, u));
	}
}

void unexpected_drop(struct comm *c)
{
	while (!queue_empty(&c->unexpected_any)) {
		struct unexpected *u = queue_entry(c->unexpected_any.next, struct unexpected,
						   by_comm);

		unexpected_take(c, u);
		if (u->rendezvous)
			queue_push(&unexpected_dropped, &u->by_comm);
		else
			unexpected_free(u);
	}
}

static void drop_all(struct queue_link *messages)
{
	while (!queue_empty(messages)) {
		struct unexpected *u = queue_entry(messages->next, struct unexpected, by_comm);

		queue_remove(&u->by_comm);
		unexpected_free(u);
	}
}

void unexpected_stop(void)
{
	drop_all(&unexpected_early);
	drop_all(&unexpected_dropped);
	pool_stop(&unexpected_pool);
}
