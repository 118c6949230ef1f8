/* learner.c - the tables of learned choices, as one list of cells. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rail/rail.h"
#include "rail/message/eager_learner.h"
#include "rail/message/scheme_learner.h"
#include "rail/open/learner.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/programs.h"

static const struct rail_learner *const learners[] = {
	&rail_scheme_learner,
	&rail_eager_learner,
};

enum { LEARNERS = sizeof(learners) / sizeof(*learners) };

static const char *const places[RAIL_PLACES] = {
	[RAIL_PLACE_HOST] = "host", [RAIL_PLACE_CACHE] = "cache", [RAIL_PLACE_PACKAGE] = "package",
	[RAIL_PLACE_APART] = "apart",
};

const char *rail_place_name(const struct rail_peer *peer)
{
	return places[peer->crossing.place];
}

static int place_named(const char *name)
{
	for (int i = 0; i < RAIL_PLACES; i++)
		if (strcmp(name, places[i]) == 0)
			return i;
	return -1;
}

/* Has the process a peer there?  Cells of other places have learned nothing. */
static bool is_used(const struct rail_ctx *ctx, int place)
{
	return ctx->places >> place & 1 || (place == RAIL_PLACE_HOST && !ctx->places);
}

static void cell_get(const struct rail_ctx *ctx, const struct rail_learner *l, int place, unsigned cell,
		     struct rail_learned *out)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->table, sizeof(out->table), "%s", l->table);
	snprintf(out->place, sizeof(out->place), "%s", places[place]);
	l->get(ctx, (enum rail_place)place, cell, out);
}

bool rail_learned(const struct rail_ctx *ctx, unsigned cell, struct rail_learned *out)
{
	for (int l = 0; l < LEARNERS; l++)
		for (int place = 0; place < RAIL_PLACES; place++) {
			if (!is_used(ctx, place))
				continue;
			if (cell < learners[l]->cells) {
				cell_get(ctx, learners[l], place, cell, out);
				return true;
			}
			cell -= learners[l]->cells;
		}
	return false;
}

static bool cell_give(struct rail_ctx *ctx, const struct rail_learner *l, const struct rail_learned *cell)
{
	const int place = place_named(cell->place);
	bool taken = place >= 0;

	if (place != RAIL_PLACE_HOST)
		return taken && l->give(ctx, (enum rail_place)place, cell, true);
	for (int p = 0; taken && p < RAIL_PLACES; p++)
		taken = l->give(ctx, (enum rail_place)p, cell, p == RAIL_PLACE_HOST);
	return taken;
}

int rail_learner_give(struct rail_ctx *ctx, const struct rail_learned *cell)
{
	for (int l = 0; l < LEARNERS; l++)
		if (strcmp(learners[l]->table, cell->table) == 0)
			return cell_give(ctx, learners[l], cell) ? 0 : -EINVAL;
	return 0;
}
