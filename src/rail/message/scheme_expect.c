/* scheme_expect.c - what a cell without a sample expects of schemes: see scheme.h. */
#include "rail/message/scheme.h"
#include "rail/message/scheme_race.h"

/* Has a cell found anything that helps this one? */
static bool is_related(const struct rail_scheme_cell *cell, const struct rail_scheme_cell *other)
{
	bool tried;

	if (other == cell || ((other->possible ^ cell->possible) & SCHEMES_RING))
		return false;
	rail_scheme_best(other, &tried);
	return tried;
}

/* Of one place, messages that do not cross others: the same class under any load, or one nearby. */
static const struct rail_scheme_cell *related_cell(const struct rail_schemes *schemes,
						   const struct rail_scheme_cell *cell)
{
	static const enum rail_load loads[] = { LOAD_ALONE, LOAD_QUEUED };
	const int at = (int)(cell - schemes->cell[0]), class = at % SCHEME_CLASSES;
	const int row = at / SCHEME_CLASSES, load = row % RAIL_LOADS, place = row - load;

	for (int away = 0; away < SCHEME_CLASSES; away++)
		for (int c = class + away; ; c = class - away) {
			for (unsigned l = 0; l < 2 && c >= 0 && c < SCHEME_CLASSES; l++) {
				const enum rail_load as = load == LOAD_QUEUED ? loads[!l] : loads[l];

				if (is_related(cell, &schemes->cell[place + (int)as][c]))
					return &schemes->cell[place + (int)as][c];
			}
			if (c <= class)
				break;
		}
	return NULL;
}

uint8_t rail_scheme_found(const struct rail_schemes *schemes, unsigned place, uint64_t bytes)
{
	static const enum rail_load loads[] = { LOAD_QUEUED, LOAD_ALONE, LOAD_QUEUED_MIXED };

	for (int l = 0; l < 3; l++) {
		const unsigned row = rail_load_at(place, loads[l]);
		const unsigned c = rail_load_is_mixed(row) ? SCHEME_CLASSES - 1 : rail_scheme_class(bytes);
		const struct rail_scheme_cell *cell = &schemes->cell[row][c];
		bool tried;
		const enum rail_scheme best = rail_scheme_best(cell, &tried);

		if (tried && (cell->settled || rail_scheme_cost(cell, best)))
			return (uint8_t)(SCHEME_TOLD + best);
	}
	return SCHEME_NONE_TOLD;
}

/* A cell without a batch expects what a related one has found, or else the peer. */
void rail_scheme_expect(struct rail_schemes *schemes, struct rail_scheme_cell *cell, uint8_t found)
{
	const struct rail_scheme_cell *related;
	int best;

	if (!cell->fresh || cell->settled || cell->looking || rail_load_crosses(rail_cell_load(schemes, cell)))
		return;
	related = related_cell(schemes, cell);
	if (related)
		rail_race_expect(cell, related);
	else if (found != SCHEME_NONE_TOLD)
		rail_race_expect_told(cell, found - SCHEME_TOLD);
	best = rail_race_best(cell);
	if (best == cell->scheme)
		return;
	cell->scheme = (uint8_t)best;
	cell->begun_ns = 0;
}
