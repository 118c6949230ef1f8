/* scheme_look.c - see scheme_look.h. */
#include <string.h>

#include "rail/message/scheme_look.h"
#include "rail/message/scheme_race.h"

static struct rail_look *present(struct rail_scheme_cell *cell)
{
	return &cell->look[cell->scheme];
}

void rail_look_take(struct rail_scheme_cell *cell, uint32_t pieces, uint64_t now_ns)
{
	struct rail_look *look = present(cell);

	if (!look->taken) {
		*look = (struct rail_look){ .begun_ns = now_ns, .batch = ++cell->batch };
		cell->looking |= (uint8_t)(1u << cell->scheme);
	}
	look->taken++;
	look->timed = look->pieces;
	look->taken_ns = now_ns;
	look->pieces += pieces;
}

bool rail_look_is_open(const struct rail_scheme_cell *cell)
{
	const struct rail_look *look = &cell->look[cell->scheme];

	return look->taken && !look->closed;
}

static bool is_ring(int scheme)
{
	return SCHEMES_RING >> scheme & 1;
}

bool rail_look_is_full(const struct rail_scheme_cell *cell)
{
	const unsigned most = is_ring(cell->scheme) ? LOOK_RING : LOOK_MESSAGES;

	return rail_look_is_open(cell) && cell->look[cell->scheme].taken >= most;
}

static void end(struct rail_scheme_cell *cell, int scheme)
{
	cell->look[scheme].taken = 0;
	cell->looking &= (uint8_t)~(1u << scheme);
}

/*
 * Add what a look has shown.  In short bursts that is the time of all its messages, or nothing: it is not taken again
 * and again for want of a better one.
 */
static void show(struct rail_scheme_cell *cell, int scheme)
{
	const struct rail_look *look = &cell->look[scheme];

	if (is_ring(scheme) && look->done >= LOOK_ENDS)
		rail_race_glance(cell, scheme, (look->last_ns - look->first_ns) / (look->pieces - look->first_pieces));
	else if (!is_ring(scheme) && look->timed >= (scheme == SCHEME_TURNS ? 2 : 1))
		rail_race_glance(cell, scheme, (look->taken_ns - look->begun_ns) / look->timed);
	else if (look->done && look->done == look->taken)
		rail_race_glance(cell, scheme, (look->last_ns - look->begun_ns) / look->pieces);
	else
		cell->glances[scheme]++;
}

static bool finish(struct rail_scheme_cell *cell, int scheme)
{
	const struct rail_look *look = &cell->look[scheme];

	if (!look->closed || (is_ring(scheme) && look->done < look->taken))
		return false;
	show(cell, scheme);
	end(cell, scheme);
	return true;
}

void rail_look_close(struct rail_scheme_cell *cell, uint64_t now_ns)
{
	struct rail_look *look = present(cell);

	if (now_ns) {
		look->taken_ns = now_ns;
		look->timed = look->pieces;
	}
	look->closed = true;
	finish(cell, cell->scheme);
}

static bool done(struct rail_scheme_cell *cell, int scheme, uint32_t pieces, uint64_t now_ns)
{
	struct rail_look *look = &cell->look[scheme];

	if (!look->done++) {
		look->first_ns = now_ns;
		look->first_pieces = pieces;
	}
	look->last_ns = now_ns;
	return finish(cell, scheme);
}

bool rail_look_done(struct rail_scheme_cell *cell, uint8_t batch, uint32_t pieces, uint64_t now_ns)
{
	for (int s = 0; s < RAIL_SCHEMES; s++)
		if (cell->looking >> s & 1 && cell->look[s].batch == batch)
			return done(cell, s, pieces, now_ns);
	return false;
}

void rail_look_forget(struct rail_scheme_cell *cell)
{
	cell->looking = 0;
	memset(cell->look, 0, sizeof(cell->look));
}
