/* policy.c - policies: the table, and the part that each gives to a rail. */
#include "rail/policy.h"

#include <string.h>

#include "rail/message/stripe.h"

static void weigh_evenly(uint32_t weight[RAIL_MAX], int rail_count, const uint8_t rate[RAIL_MAX])
{
	(void)rate;
	for (int r = 0; r < rail_count; r++)
		weight[r] = 1;
}

static void weigh_by_rate(uint32_t weight[RAIL_MAX], int rail_count, const uint8_t rate[RAIL_MAX])
{
	for (int r = 0; r < rail_count; r++)
		weight[r] = rate[r];
}

static int choose_named(const struct rail_choice *choice)
{
	return choice->named;
}

#define MEASURED "whose rails are measured at one end"

const struct rail_policy_row rail_policies[RAIL_POLICIES] = {
	[RAIL_SINGLE] = {
		.name = "single", .help = "one rail: the first, or for large messages rail N",
		.names_rail = true, .choose = choose_named,
	},
	[RAIL_BIND] = {
		.name = "bind", .help = "whole messages, on the rail bound to the pair of ranks",
	},
	[RAIL_STRIPE] = {
		.name = "stripe",
		.help = "even pieces over all rails above the threshold, else as bind",
		.spreads = RAIL_SPREADS_PIECES, .weigh = weigh_evenly,
	},
	[RAIL_WEIGHTED] = {
		.name = "weighted",
		.help = "as stripe, pieces in proportion to each rail's measured rate",
		.spreads = RAIL_SPREADS_PIECES, .measures = true, .weigh = weigh_by_rate,
		.not_both = MEASURED,
	},
	[RAIL_PULL] = {
		.name = "pull",
		.help = "as stripe, small chunks, each for the next rail that is free",
		.spreads = RAIL_SPREADS_CHUNKS, .weigh = weigh_evenly, .not_both = MEASURED,
		.not_control = "no rail knows which of its chunks is the last",
	},
};

void rail_policy_cut(struct rail_cut *cut, enum rail_policy policy, uint64_t threshold,
		     uint64_t bytes, int bound_rail, const uint8_t rate[RAIL_MAX])
{
	const struct rail_policy_row *row = &rail_policies[policy];

	memset(cut->weight, 0, sizeof(cut->weight));
	cut->pull = false;
	if (rail_policy_cuts(policy, bytes, threshold)) {
		cut->pull = row->spreads == RAIL_SPREADS_CHUNKS;
		row->weigh(cut->weight, cut->rail_count, rate);
	} else {
		cut->weight[bound_rail] = 1;
	}
}
