/*
 * match.c - a message and its receive meet: the data, the status, the rendezvous.
 *
 * match_order.h says which message belongs to which receive.
 */
#include "mpi/p2p/match.h"

#include <errno.h>
#include <string.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/lost.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/queue.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/unexpected.h"
#include "mpi/type/dtype.h"
#include "rail/rail.h"
#include "util/compiler.h"
#include "util/copy.h"

/* ---- A message in hand, a receive in hand ---------------------------------------- */

static void recv_status(struct req *r, int source, int tag, size_t bytes)
{
	r->source = source;
	r->tag = tag;
	r->error = bytes > r->bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
	if (bytes < r->bytes)
		r->bytes = bytes;
}

/* Scatter the bytes of a copy into the buffer of a datatype that is not in one piece. */
static void recv_unpack(struct req *r, const void *bytes)
{
	if (!r->type)
		rg_copy_blocks(r->buf, bytes, r->bytes);
	else if (r->bytes)
		dtype_unpack(r->type, bytes, r->bytes, r->buf, 0);
}

static inline void recv_eager(struct req *r, const void *payload)
{
	if (unlikely(r->type))
		recv_unpack(r, payload);
	else if (likely(r->bytes))
		rg_copy_short(r->buf, payload, r->bytes);
	req_complete(r, r->error);
}

static void recv_rendezvous_done(struct rail_op *op, int status)
{
	struct req *r = (struct req *)op;

	if (status)
		r->error = lost_error_of(rail_op_peer(op), status);
	else if (r->packed && !r->scattered)
		recv_unpack(r, r->packed);
	req_complete(r, r->error);
}

void (*recv_done)(struct rail_op *op, int status) = recv_rendezvous_done;

/* Receive into a copy, or in parts if the copy would be large.  0 or -ENOMEM. */
static int recv_apart(struct req *r, struct rail_buf *b)
{
	b->frame = NULL;
	b->addr = NULL;
	r->scattered = false;
	b->kind = r->bytes > RAIL_PART_BYTES ? RAIL_MEM_PARTS : RAIL_MEM_HOST;
	if (b->kind == RAIL_MEM_PARTS)
		return 0;
	b->addr = req_copy_get(r, r->bytes);
	b->in_slices = true;
	return b->addr ? 0 : -ENOMEM;
}

static void recv_rendezvous(struct req *r, struct rail_peer *peer, uint64_t handle)
{
	struct rail_buf b = {.addr = r->buf, .bytes = r->bytes, .frame = r->frame};
	int rc = 0;

	b.kind = rail_mem_kind_of(layer.rails, b.addr);
	if (r->type && r->bytes)
		rc = recv_apart(r, &b);
	r->op.done = recv_done;
	rc = rc ? rc : rail_accept(peer, handle, &b, &r->op);
	/* Adapters refuse some memory, such as a file's; they take a copy. */
	if (unlikely(rc == -EFAULT && b.addr == r->buf)) {
		rc = recv_apart(r, &b);
		rc = rc ? rc : rail_accept(peer, handle, &b, &r->op);
	}
	/* Accept nothing, so that the sender is not left waiting. */
	if (unlikely(rc && rc != -ECONNRESET && b.bytes)) {
		r->error = rc == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
		b = (struct rail_buf){.bytes = 0};
		r->bytes = 0;
		req_copy_put(r);
		rc = rail_accept(peer, handle, &b, &r->op);
	}
	if (unlikely(rc))
		recv_lost(r, r->source, lost_error_of(peer, rc));
}

void recv_lost(struct req *r, int source, int error)
{
	r->source = source;
	r->tag = MPI_ANY_TAG;
	r->bytes = 0;
	req_complete(r, error);
}

/* ---- A message has come ------------------------------------------------------------- */

void match_on_message(void *user, const struct rail_message *msg)
{
	struct comm *c = comm_by_context(msg->header->word[0]);
	int source = (int)(msg->header->word[1] >> 32);
	int tag = (int)(uint32_t)msg->header->word[1];
	struct req *r;

	if (unlikely(!c)) {
		queue_push(&unexpected_early, &unexpected_make(msg)->by_comm);
		return;
	}
	r = match_message(c, source, tag);
	if (unlikely(!r)) {
		if (c->collectives)
			unexpected_drop_past(c, source);
		unexpected_queue(c, unexpected_make(msg));
		return;
	}
	recv_status(r, source, tag, msg->bytes);
	if (unlikely(!msg->payload))
		recv_rendezvous(r, msg->peer, msg->rendezvous);
	else
		recv_eager(r, msg->payload);
}

/* ---- A receive is posted ---------------------------------------------------------------- */

static void recv_take(struct req *r, struct unexpected *u)
{
	recv_status(r, u->source, u->tag, u->bytes);
	if (u->rendezvous)
		recv_rendezvous(r, u->peer, u->rendezvous);
	else
		recv_eager(r, u->payload);
	unexpected_free(u);
}

void recv_waiting(struct req *r, struct unexpected *u)
{
	if (unlikely(u->lost))
		recv_lost(r, u->source, u->lost);
	else
		recv_take(r, u);
}

void recv_unexpected(struct comm *c, struct req *r, const struct message_args *m,
		     struct unexpected *u)
{
	recv_init(c, r, m);
	recv_take(r, u);
}

/* ---- A send is cancelled ------------------------------------------------------------------- */

static struct unexpected *offer_among(const struct queue_link *messages, uint64_t rendezvous)
{
	struct queue_link *l;

	queue_each(l, messages) {
		struct unexpected *u = queue_entry(l, struct unexpected, by_comm);

		if (u->rendezvous == rendezvous)
			return u;
	}
	return NULL;
}

static bool offer_forget_early(struct queue_link *messages, uint64_t rendezvous)
{
	struct unexpected *u = offer_among(messages, rendezvous);

	if (!u)
		return false;
	queue_remove(&u->by_comm);
	unexpected_free(u);
	return true;
}

static bool offer_forget(struct comm *c, uint64_t rendezvous)
{
	struct unexpected *u = offer_among(&c->unexpected_any, rendezvous);

	if (!u)
		return false;
	unexpected_free(unexpected_take(c, u));
	return true;
}

/* A message that MPI_Mprobe has taken out is in no queue: it will be received. */
bool match_on_cancel(void *user, uint64_t rendezvous)
{
	return comm_some(offer_forget, rendezvous) ||
	       offer_forget_early(&unexpected_early, rendezvous) ||
	       offer_forget_early(&unexpected_dropped, rendezvous);
}

/* ---- Probes -------------------------------------------------------------------------------- */

void match_unexpected_status(const struct unexpected *u, MPI_Status *status)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = u->source;
	status->MPI_TAG = u->tag;
	abi_status_set_count(status, u->bytes, false);
}

/* ---- Beginnings and ends ------------------------------------------------------------------- */

/* A message of the early queue meets its communicator, as if it came now. */
static void unexpected_replay(struct comm *c, struct unexpected *u)
{
	struct req *r = match_message(c, u->source, u->tag);

	if (r)
		recv_take(r, u);
	else
		unexpected_queue(c, u);
}

void match_replay_early(struct comm *c)
{
	struct queue_link *l, *next;

	for (l = unexpected_early.next; l != &unexpected_early; l = next) {
		struct unexpected *u = queue_entry(l, struct unexpected, by_comm);

		next = l->next;
		if (u->context != c->context)
			continue;
		queue_remove(l);
		unexpected_replay(c, u);
	}
}
