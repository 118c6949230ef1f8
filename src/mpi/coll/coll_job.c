/* coll_job.c - see coll_job.h; the races for railmpi.h. */
#include "mpi/coll/coll_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_kept.h"
#include "mpi/coll/coll_learn.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/peers.h"
#include "mpi/job/progress.h"
#include "mpi/job/start_coll.h"
#include "mpi/railmpi.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "util/opt.h"
#include "util/text.h"

/* ---- Kinds of communicators ------------------------------------------------------------------- */

static unsigned node_of(const struct comm *c, int rank)
{
	return world_node_of[rail_peer_index(c->peer[rank])];
}

static bool is_beside(const struct comm *c, int rank)
{
	return rank != c->rank && strcmp(world_host_of[rail_peer_index(c->peer[rank])],
					 world_host_of[layer.world_rank]) == 0;
}

/* The number of nodes that its ranks are on. */
static int nodes_count(const struct comm *c)
{
	bool *seen = coll_must(calloc((size_t)layer.world_size, sizeof(*seen)));
	int nodes = 0;

	for (int r = 0; r < c->size; r++) {
		nodes += !seen[node_of(c, r)];
		seen[node_of(c, r)] = true;
	}
	free(seen);
	return nodes;
}

static struct coll_kind kind_of(const struct comm *c, const char *over)
{
	struct coll_kind kind = { .ranks = c->size, .nodes = nodes_count(c) };

	snprintf(kind.over, sizeof(kind.over), "%s", over);
	kind.way = opt_digest(over);
	for (int r = 0; r < c->size; r++) {
		const char *place = rail_place_name(c->peer[r]);

		kind.where = coll_mixed(kind.where, node_of(c, r) + 1);
		if (!is_beside(c, r))
			continue;
		kind.where = coll_mixed(kind.where, opt_digest(place));
		if (!strstr(kind.places, place))
			rg_text_add(kind.places, sizeof(kind.places), "%s%s", *kind.places ? "+" : "", place);
	}
	return kind;
}

/* ---- A new communicator ----------------------------------------------------------------------- */

/*
 * The communicator begins with a copy, since another thread's communicator may change what is kept before
 * the ranks have answered.
 */
void coll_job_ask(struct comm *c, const char *over, uint64_t mine[COLL_JOB_FIELDS])
{
	const struct coll_kind kind = kind_of(c, over);
	uint64_t settled;

	layer_enter();
	c->kept = coll_kept_of(&kind);
	c->learned = c->kept ? coll_must(coll_learned_copy(&c->kept->learned)) : NULL;
	layer_leave();
	settled = c->learned ? (uint64_t)coll_learned_settled(c->learned) : 0;
	mine[COLL_JOB_DIGEST] = c->learned ? coll_learned_digest(c->learned) : 0;
	mine[COLL_JOB_NOT_DIGEST] = ~mine[COLL_JOB_DIGEST];
	mine[COLL_JOB_TELLS] = settled ? settled << 32 | (uint32_t)c->rank : 0;
}

static struct coll_learned *told_by(struct comm *c, int rank, int count)
{
	struct coll_told *told = coll_must(malloc((size_t)count * sizeof(*told)));
	struct coll_learned *learned;
	MPI_Request request;

	if (c->rank == rank)
		coll_learned_tell(c->learned, told);
	native.Ibcast(told, count * (int)sizeof(*told), MPI_BYTE, rank, c->handle, &request);
	start_await(&request, UINT64_MAX);
	learned = coll_must(coll_learned_of_told(told, count));
	free(told);
	return learned;
}

void coll_job_begin(struct comm *c, const uint64_t all[COLL_JOB_FIELDS])
{
	const uint64_t tells = all[COLL_JOB_TELLS];
	struct coll_learned *told = NULL;

	if (all[COLL_JOB_DIGEST] != ~all[COLL_JOB_NOT_DIGEST]) {
		if (tells)
			told = told_by(c, (int)(uint32_t)tells, (int)(tells >> 32));
		coll_learned_free(c->learned);
		c->learned = told;
	}
	if (!all[COLL_JOB_DIGEST]) {
		coll_learned_free(c->learned);
		c->learned = NULL;
	}
	layer_enter();
	if (c->kept && c->rank == 0)
		c->kept->leads = true;
	layer_leave();
}

/* ---- What it has learned ---------------------------------------------------------------------- */

void coll_job_settled(struct comm *c, enum coll_id id, int class)
{
	if (c->kept)
		coll_keep_race(c->kept, id, class, c->learned->race[id][class]);
}

void coll_job_freed(struct comm *c)
{
	if (c->kept && c->learned)
		coll_keep(c->kept, c->learned);
}

void coll_job_stop(void)
{
	coll_kept_free();
}

static void live_keep(struct comm *c, uint64_t arg)
{
	(void)arg;
	coll_job_freed(c);
}

/* ---- For railmpi.h ----------------------------------------------------------------------------- */

static const char *const ends[COLL_LEARN_ENDS] = {
	[COLL_LEARN_GOES_ON] = "racing", [COLL_LEARN_CROWDED] = "crowded", [COLL_LEARN_UNLIKE] = "unlike",
};

struct search {
	unsigned left;			/* races before the one that is asked for */
	bool found;
	struct railmpi_race *out;
};

static void row_take(void *user, const struct coll_learned_row *row)
{
	struct search *s = user;
	struct railmpi_race *out = s->out;

	if (s->found || s->left--)
		return;
	s->found = true;
	out->collective = row->collective;
	out->bytes = row->most_bytes;
	out->algorithm = row->choice;
	out->why = row->settled ? "measured" : ends[row->end];
	out->candidates = row->candidates;
	for (int i = 0; i < row->candidates; i++) {
		out->candidate[i].name = row->candidate[i];
		out->candidate[i].cost_ns = row->cost_ns[i];
	}
}

static void kind_tell(const struct coll_kind *kind, struct railmpi_race *out)
{
	out->ranks = kind->ranks;
	out->nodes = kind->nodes;
	memcpy(out->over, kind->over, sizeof(out->over));
	memcpy(out->places, kind->places, sizeof(out->places));
}

bool railmpi_race(unsigned race, struct railmpi_race *out)
{
	struct search s = { .left = race, .out = out };
	const struct coll_kept *kept;

	_Static_assert(RAILMPI_RACERS == (int)COLL_LEARN_CANDIDATES, "room for all");
	_Static_assert(sizeof(out->over) == sizeof(kept->kind.over) &&
		       sizeof(out->places) == sizeof(kept->kind.places), "the same texts");
	memset(out, 0, sizeof(*out));
	layer_enter();
	if (race == 0)
		comm_table_each(live_keep, 0);
	for (unsigned i = 0; !s.found && (kept = coll_kept_at(i)); i++) {
		if (kept->leads)
			coll_learned_each(&kept->learned, row_take, &s);
		if (s.found)
			kind_tell(&kept->kind, out);
	}
	layer_leave();
	return s.found;
}
