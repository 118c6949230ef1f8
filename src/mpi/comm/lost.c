/* lost.c - see lost.h. */
#include "mpi/comm/lost.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi/abi/native.h"
#include "mpi/coll/coll_data.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/peers.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/queue.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/unexpected.h"
#include "mpi/railmpi.h"
#include "rail/rail.h"
#include "util/clock.h"

enum { CODES_MAX = 32 };		/* lost ranks beyond them share the last code */

#define LOST_WAIT_NS 3000000000u	/* collectives wait for others of the communicator */

/* ---- Errors --------------------------------------------------------------------------------- */

struct code {
	int mpi;			/* the error code */
	unsigned index;			/* the lost rank's */
	_Atomic bool untold;		/* the text is not attached yet */
};

struct fate {
	int error;			/* the rank's code; 0: none yet */
	bool told;			/* librail has reported it */
};

static struct code code[CODES_MAX];
static int code_count, code_used;	/* made at the start; assigned */
static int elsewhere, several;
static struct fate *fate;		/* indexed by world rank */
bool lost_some;
static bool ended, watching_all;

static int class_make(int *class)
{
#ifdef MPI_ERR_PROC_FAILED
	*class = MPI_ERR_PROC_FAILED;
	return 0;
#else
	if (native.Add_error_class(class))
		return -ENOMEM;
	native.Add_error_string(*class, "rail: a rank is lost");
	return 0;
#endif
}

static int code_make(int class, const char *text, int *made)
{
	if (native.Add_error_code(class, made))
		return -ENOMEM;
	if (text)
		native.Add_error_string(*made, text);
	return 0;
}

/* Error codes outlive the rails, since a program may ask for their texts until the library ends. */
int lost_start(void)
{
	int class, rc = 0;

	fate = calloc((size_t)layer.world_size, sizeof(*fate));
	if (!fate)
		return -ENOMEM;
	code_used = 0;
	lost_some = ended = watching_all = false;
	if (code_count)
		return 0;
	rc = class_make(&class);
	if (!rc)
		rc = code_make(class, "rail: another rank reports an error in this collective: it has "
			       "lost a rank, or could not send", &elsewhere);
	if (!rc)
		rc = code_make(class, "rail: many ranks are lost, each named on stderr", &several);
	for (int i = 0; i < CODES_MAX && i < layer.world_size && !rc; i++) {
		rc = code_make(class, NULL, &code[i].mpi);
		code_count += !rc;
	}
	return rc;
}

void lost_stop(void)
{
	lost_texts();
	free(fate);
	fate = NULL;
}

int lost_error(unsigned index)
{
	struct fate *f = &fate[index];
	struct code *c = &code[code_used];

	if (f->error)
		return f->error;
	if (code_used == code_count) {
		f->error = several;
		return several;
	}
	code_used++;
	c->index = index;
	f->error = c->mpi;
	atomic_store(&c->untold, true);
	return c->mpi;
}

int lost_error_of(const struct rail_peer *peer, int rc)
{
	return rc == -ECONNRESET ? lost_error(rail_peer_index(peer)) :
	       rc == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

int lost_elsewhere(void)
{
	return elsewhere;
}

bool lost_is(int error)
{
	bool is = error == elsewhere || error == several;

	for (int i = 0; i < code_used; i++)
		is = is || error == code[i].mpi;
	return is;
}

bool railmpi_error_is_lost(int error)
{
	return lost_is(error);
}

void lost_texts(void)
{
	char text[MPI_MAX_ERROR_STRING];

	for (int i = 0; layer.rails && i < code_count; i++) {
		unsigned rank;

		if (!atomic_exchange(&code[i].untold, false))
			continue;
		rank = code[i].index;
		snprintf(text, sizeof(text), "rail: rank %u on host %s is lost: %s", rank,
			 world_host_of[rank], rail_peer_failure(world_peer[rank]));
		native.Add_error_string(code[i].mpi, text);
	}
}

/* ---- A rank is lost ------------------------------------------------------------------------- */

static void receives_end(struct queue_link *posted, int source, int error)
{
	while (!queue_empty(posted)) {
		struct req *r = queue_entry(posted->next, struct req, link);

		match_unpost(r);
		recv_lost(r, source, error);
	}
}

void lost_withdraw(struct req *r, int error)
{
	if (r->done || !lost_is(error))
		return;
	if (r->kind == REQ_SEND) {
		rail_cancel(&r->op);
	} else if (r->posted) {
		match_unpost(r);
		recv_lost(r, r->source, error);
	}
}

static bool has_notice(const struct source *s)
{
	struct queue_link *l;

	queue_each(l, &s->unexpected)
		if (queue_entry(l, struct unexpected, by_source)->lost)
			return true;
	return false;
}

/* In this communicator the rank is lost. */
static void rank_lost(struct comm *c, int rank, int error)
{
	struct source *s = &c->source[rank];

	if (!c->lost)
		c->lost_until_ns = rg_now_ns() + LOST_WAIT_NS;
	c->lost = error;
	if (!has_notice(s))
		unexpected_queue(c, unexpected_notice(rank, error));
	receives_end(&s->posted, rank, error);
	receives_end(&c->posted_any, rank, error);
}

static void comm_lose_peer(struct comm *c, uint64_t index)
{
	for (int i = 0; i < c->size; i++)
		if (c->peer[i] == world_peer[index])
			rank_lost(c, i, lost_error((unsigned)index));
}

void lost_peer(void *user, unsigned index, int error)
{
	lost_some = true;
	ended |= error == -ESRCH;
	fate[index].told = true;
	lost_error(index);
	comm_table_each(comm_lose_peer, index);
}

void lost_comm(struct comm *c)
{
	for (int i = 0; lost_some && i < c->size; i++) {
		unsigned index = rail_peer_index(c->peer[i]);

		if (fate[index].told)
			rank_lost(c, i, lost_error(index));
	}
}

bool lost_ended(void)
{
	return ended;
}

/* ---- Who is waited for ---------------------------------------------------------------------- */

/* A message of a collective that this rank has withdrawn from. */
static bool is_late(const struct comm *c, const struct unexpected *u)
{
	return !u->lost && comm_call_is_before(c->withdrawn, u->tag);
}

/* Late messages are received and dropped, since their senders wait for that. */
static void late_drop(struct comm *c)
{
	struct queue_link *l, *next;

	for (l = c->unexpected_any.next; l != &c->unexpected_any; l = next) {
		struct unexpected *u = queue_entry(l, struct unexpected, by_comm);
		const struct message_args nothing = {NULL, 0, &coll_byte_type, u->source, u->tag};
		struct req *r = is_late(c, u) ? req_alloc(REQ_RECV) : NULL;

		next = l->next;
		if (!r)
			continue;
		recv_unexpected(c, r, &nothing, unexpected_take(c, u));
		if (r->done)
			req_discard(r);
		else
			r->detached = true;
	}
}

static void comm_watch(struct comm *c, uint64_t unused)
{
	bool from_any = !queue_empty(&c->posted_any) || c->probed == MPI_ANY_SOURCE;

	for (int i = 0; i < c->size; i++)
		if (!queue_empty(&c->source[i].posted) || i == c->probed)
			rail_peer_watch(c->peer[i], RAIL_WATCH_NAMED);
		else if (from_any)
			rail_peer_watch(c->peer[i], RAIL_WATCH_AMONG);
	c->probed = MPI_PROC_NULL;
	if (c->withdrawn)
		late_drop(c);
}

void lost_watch(void *user)
{
	comm_table_each(comm_watch, 0);
	for (int i = 0; watching_all && i < layer.world_size; i++)
		rail_peer_watch(world_peer[i], RAIL_WATCH_END);
}

void lost_watch_all(void)
{
	watching_all = true;
}
