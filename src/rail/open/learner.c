/* learner.c - the tables of learned choices, as one list of cells. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rail/rail.h"
#include "rail/memory/map_learner.h"
#include "rail/message/copy_learner.h"
#include "rail/message/eager_learner.h"
#include "rail/message/scheme_learner.h"
#include "rail/open/learner.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/programs.h"

static const struct rail_learner *const learners[] = {
	&rail_scheme_learner,
	&rail_eager_learner,
	&rail_copy_learner,
	&rail_map_learner,
};

enum { LEARNERS = sizeof(learners) / sizeof(*learners) };

static const char *const places[RAIL_PLACES] = {
	[RAIL_PLACE_HOST] = "host", [RAIL_PLACE_CACHE] = "cache", [RAIL_PLACE_PACKAGE] = "package",
	[RAIL_PLACE_APART] = "apart", [RAIL_PLACE_UNBOUND] = "unbound",
};

const char *rail_place_name(const struct rail_peer *peer)
{
	return places[peer->crossing.place];
}

/* The index of a name; -1: none. */
static int find(const char *const *names, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return (int)i;
	return -1;
}

static uint64_t class_bytes(const struct rail_learner *l, unsigned class)
{
	return l->open && class == l->classes - 1 ? 0 : l->first_bytes << class;
}

static int class_of(const struct rail_learner *l, uint64_t bytes)
{
	for (unsigned c = 0; c < l->classes; c++)
		if (class_bytes(l, c) == bytes)
			return (int)c;
	return -1;
}

/* Has the process such choices, and a peer there?  Cells of other places have learned nothing. */
static bool is_used(const struct rail_ctx *ctx, const struct rail_learner *l, int place)
{
	if (l->is_used && !l->is_used(ctx))
		return false;
	return ctx->places >> place & 1 || (place == RAIL_PLACE_HOST && !ctx->places);
}

/* The cells of a place. */
static unsigned cells_of(const struct rail_learner *l)
{
	return l->loads * l->classes;
}

static void cell_get(const struct rail_ctx *ctx, const struct rail_learner *l, int place, unsigned cell,
		     struct rail_learned *out)
{
	const struct rail_cell_at at = { (enum rail_place)place, cell / l->classes, cell % l->classes };

	memset(out, 0, sizeof(*out));
	snprintf(out->table, sizeof(out->table), "%s", l->table);
	snprintf(out->place, sizeof(out->place), "%s", places[place]);
	snprintf(out->load, sizeof(out->load), "%s", l->load[at.load]);
	out->bytes = class_bytes(l, at.class);
	l->get(ctx, &at, out);
}

bool rail_learned(const struct rail_ctx *ctx, unsigned cell, struct rail_learned *out)
{
	for (int l = 0; l < LEARNERS; l++)
		for (int place = 0; place < RAIL_PLACES; place++) {
			if (!is_used(ctx, learners[l], place))
				continue;
			if (cell < cells_of(learners[l])) {
				cell_get(ctx, learners[l], place, cell, out);
				return true;
			}
			cell -= cells_of(learners[l]);
		}
	return false;
}

uint64_t rail_reads_of_late(const struct rail_ctx *ctx)
{
	return ctx->late_reads;
}

/* Costs by scheme; false: the table has no such scheme. */
static bool costs_take(const struct rail_learner *l, const struct rail_learned *cell,
		       uint32_t cost_ns[RAIL_LEARNED_SCHEMES])
{
	for (unsigned i = 0; i < cell->schemes; i++) {
		int s = find(l->scheme, l->schemes, cell->scheme[i].name);

		if (s < 0)
			return false;
		cost_ns[s] = cell->scheme[i].cost_ns;
	}
	return true;
}

static bool is_given(const struct rail_ctx *ctx, const struct rail_learner *l, const struct rail_cell_at *at)
{
	struct rail_learned now = { .schemes = 0 };

	if (l->is_used && !l->is_used(ctx))
		return false;
	l->get(ctx, at, &now);
	return now.why == RAIL_LEARNED_GIVEN;
}

static bool cell_give(struct rail_ctx *ctx, const struct rail_learner *l, const struct rail_learned *cell)
{
	const int place = find(places, RAIL_PLACES, cell->place), class = class_of(l, cell->bytes);
	const int load = find(l->load, l->loads, cell->load);
	uint32_t cost_ns[RAIL_LEARNED_SCHEMES] = { 0 };
	struct rail_cell_at at;
	int scheme;

	if (place < 0 || load < 0 || class < 0 || !costs_take(l, cell, cost_ns))
		return false;
	at = (struct rail_cell_at){ (enum rail_place)place, (unsigned)load, (unsigned)class };
	scheme = find(l->scheme, l->schemes, cell->scheme[cell->chosen].name);
	if (!l->give(ctx, &at, (unsigned)scheme, cost_ns))
		return false;
	for (at.place = RAIL_PLACE_HOST + 1; place == RAIL_PLACE_HOST && at.place < RAIL_PLACES; at.place++)
		if (!is_given(ctx, l, &at))
			l->give(ctx, &at, (unsigned)scheme, cost_ns);
	return true;
}

int rail_learner_give(struct rail_ctx *ctx, const struct rail_learned *cell)
{
	for (int l = 0; l < LEARNERS; l++)
		if (strcmp(learners[l]->table, cell->table) == 0)
			return cell_give(ctx, learners[l], cell) ? 0 : -EINVAL;
	return 0;
}
