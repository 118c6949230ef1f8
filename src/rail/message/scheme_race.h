/*
 * scheme_race.h - the race of schemes in a cell of scheme.h: samples and costs, visits, debt, the decision.
 * Of scheme.c, and of map_choice.c, whose schemes are others.
 */
#ifndef RAIL_SCHEME_RACE_H
#define RAIL_SCHEME_RACE_H

#include "rail/message/scheme.h"

/* How a load is raced. */
struct rail_race_plan {
	uint8_t glance;			/* messages of a scheme's first batches, no samples; 0: none */
	uint8_t batch, least;		/* messages of a batch; of one that ends early */
	uint8_t first_pass, pass;	/* messages before the first batch of all; of a visit */
	uint8_t visit;			/* samples before the next scheme's turn */
	uint8_t samples, most;		/* per scheme, for a clear decision; for any */
};

/* The cost of a message as far as it is known, by samples or glances, nanoseconds; 0: it is not. */
static inline uint32_t rail_race_cost(const struct rail_scheme_cell *cell, int scheme)
{
	return cell->cost_ns[scheme];
}

/* A cell without a batch expects the ratios of costs that another one has found. */
void rail_race_expect(struct rail_scheme_cell *cell, const struct rail_scheme_cell *found);
/* The same of one scheme that a peer has found to be the best: others cost more, it is not known how much. */
void rail_race_expect_told(struct rail_scheme_cell *cell, int scheme);
/* The quickest scheme so far, or the expected one; has each one been tried, or is slow as expected? */
int rail_race_best(const struct rail_scheme_cell *cell);
bool rail_race_has_all(const struct rail_scheme_cell *cell);
/* Add a sample of the present scheme; a short one of any. */
void rail_race_sample(struct rail_scheme_cell *cell, uint64_t ns);
void rail_race_glance(struct rail_scheme_cell *cell, int scheme, uint64_t ns);
/* So many pieces of a scheme have been taken; a message of the present scheme has taken so long. */
void rail_race_count(struct rail_scheme_cell *cell, int scheme, uint32_t pieces);
void rail_race_message(struct rail_scheme_cell *cell, uint64_t ns, uint32_t pieces);
/* Is the debt small enough for a visit?  Has the present one cost too much? */
bool rail_race_may_visit(const struct rail_scheme_cell *cell);
bool rail_race_is_dear(const struct rail_scheme_cell *cell);
/*
 * Between visits, too, samples are taken, until the best so far has enough of them: what made it the best may have
 * been chance.  Is one wanted?  It has been added: the best so far may be another one.
 */
bool rail_race_takes_samples(const struct rail_scheme_cell *cell);
void rail_race_rest(struct rail_scheme_cell *cell);
/* Bursts, or windows, that are counted so far for a sample of several are left out. */
static inline void rail_race_uncount(struct rail_scheme_cell *cell)
{
	cell->counted = cell->counted_pieces = 0;
	cell->counted_ns = 0;
}

/* The next visit; the end of one, which is the decision when each scheme has one sample more. */
void rail_race_visit(struct rail_scheme_cell *cell);
/* A message of the visit has shown nothing: the visit is put off. */
void rail_race_put_off(struct rail_scheme_cell *cell);
void rail_race_visit_end(struct rail_scheme_cell *cell, const struct rail_race_plan *p);

#endif
