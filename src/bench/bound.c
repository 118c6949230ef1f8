/* bound.c - bounds of several rails, from the innermost set outwards (bound.h). */
#include "bench/bound.h"

#include <math.h>
#include <stddef.h>

struct set {
	uint32_t rails;		/* 0: joined with another set */
	double ports, brings;	/* rate of the ports alone; after limits */
	int share;		/* index of the last share that reduced it */
};

/* Bytes per second through a share; INFINITY: not known. */
static double share_limit(const struct bound_share *s, bool both_ways)
{
	double one = fmin(s->out, s->in);

	if (s->out <= 0 || s->in <= 0)
		return INFINITY;
	if (!both_ways)
		return one;
	/* Half: in a second, x bytes out and as many in: x / out + x / in = 1. */
	return s->half ? 2 / (1 / s->out + 1 / s->in) : 2 * one;
}

/* Join all sets that contain rails of the share; NULL: no set does. */
static struct set *sets_join(struct set set[], int sets, uint32_t rails)
{
	struct set *into = NULL;

	for (int i = 0; i < sets; i++) {
		if (!(set[i].rails & rails))
			continue;
		if (!into) {
			into = &set[i];
			continue;
		}
		into->rails |= set[i].rails;
		into->ports += set[i].ports;
		into->brings += set[i].brings;
		if (into->share < 0)
			into->share = set[i].share;
		set[i].rails = 0;
	}
	return into;
}

void bound_find(const double rate[], int rails, const struct bound_share share[], int shares,
		bool both_ways, struct bound *out)
{
	struct set set[BOUND_RAILS_MAX], *into;
	double most = 0;

	*out = (struct bound){ .share = -1 };
	for (int r = 0; r < rails; r++) {
		double brings = rate[r] > 0 ? rate[r] * (both_ways ? 2 : 1) : INFINITY;

		set[r] = (struct set){ 1u << r, brings, brings, -1 };
		out->link += brings;
	}
	for (int s = 0; s < shares; s++) {
		double limit = share_limit(&share[s], both_ways);

		into = sets_join(set, rails, share[s].rails);
		if (!into || limit >= into->brings)
			continue;
		into->brings = limit;
		into->share = s;
	}
	for (int r = 0; r < rails; r++) {
		if (!set[r].rails)
			continue;
		out->shared += set[r].brings;
		if (set[r].share < 0)
			continue;
		out->sets++;
		if (set[r].ports - set[r].brings <= most)
			continue;
		most = set[r].ports - set[r].brings;
		out->share = set[r].share;
	}
}
