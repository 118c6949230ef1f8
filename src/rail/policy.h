/*
 * policy.h - policies lay large messages over rails; a row holds all that differs between them.
 *
 * --over takes name and help from the row; rail_way_check and the check of an RTS take the
 * exclusions; the eager limit, the table of chunks and collectives ask how it spreads.
 *
 * To add a policy: an enumerator before RAIL_POLICIES (rail.h), a row in policy.c with its
 * function (choose or weigh), a row in README.md; tests/rail/test_policy.c holds the table.  The
 * number crosses the wire in an RTS, so a policy keeps it.
 */
#ifndef RAIL_POLICY_H
#define RAIL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"

struct rail_cut;

/* The fate of a message above the threshold. */
enum rail_spread {
	RAIL_SPREADS_NOTHING,		/* the message goes over one rail, as a smaller one */
	RAIL_SPREADS_PIECES,		/* each rail has a piece of its own */
	RAIL_SPREADS_CHUNKS,		/* each chunk goes over any rail that is free */
};

/* The facts about a large message that goes whole; rails are numbered as the peer's. */
struct rail_choice {
	int rail_count;
	int bound, named;		/* the bound rail, rail_way.rail */
	unsigned message;		/* number among the large messages to the peer, modulo 256 */
};

struct rail_policy_row {
	const char *name, *help;	/* the choice of --over */
	enum rail_spread spreads;
	/*
	 * rail_way.rail may name a rail; small messages and control go over the first rail.  Otherwise
	 * they go over the bound rail.
	 */
	bool names_rail;
	bool measures;			/* pieces follow the rails' rates, which the RTS carries */
	/* The reason to exclude completion by control, rendezvous by both; NULL: the two agree. */
	const char *not_control, *not_both;
	/* The rail of a large message that is not spread; NULL: the bound rail. */
	int (*choose)(const struct rail_choice *choice);
	/* The part of each rail of a message that is spread, in any unit; NULL: nothing is spread. */
	void (*weigh)(uint32_t weight[RAIL_MAX], int rail_count, const uint8_t rate[RAIL_MAX]);
};

extern const struct rail_policy_row rail_policies[RAIL_POLICIES];

/* Is a message of that many bytes spread over all rails? */
static inline bool rail_policy_cuts(unsigned policy, uint64_t bytes, uint64_t threshold)
{
	return rail_policies[policy].spreads && bytes > threshold;
}

/*
 * A message of that many bytes as a cut: spread over all rails, or all of it on bound_rail.
 * rail_count and chunk_bytes of the cut are the caller's; rate is read by a policy that measures.
 */
void rail_policy_cut(struct rail_cut *cut, enum rail_policy policy, uint64_t threshold,
		     uint64_t bytes, int bound_rail, const uint8_t rate[RAIL_MAX]);

#endif
