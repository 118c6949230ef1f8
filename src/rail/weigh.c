/* weigh.c - rates of rails, learned. */
#include <string.h>

#include "weigh.h"

#define GAIN 0.25

void rail_gauge_init(struct rail_gauge *g, int rail_count, const uint64_t nominal[])
{
	bool known = true;

	memset(g, 0, sizeof(*g));
	g->rail_count = rail_count;
	g->unlimited = true;
	for (int r = 0; r < rail_count; r++) {
		known &= nominal[r] != 0;
		g->unlimited &= nominal[r] == 0;
	}
	for (int r = 0; r < rail_count; r++)
		g->rail[r].rate = known ? (double)nominal[r] * 1e-9 : 1;
}

void rail_gauge_posted(struct rail_gauge *g, int rail, uint64_t now_ns)
{
	struct rail_gauge_rail *r = &g->rail[rail];

	if (r->in_flight++)
		return;
	r->since_ns = now_ns;
	r->unsure_ns = 0;
}

/* The first period replaces what was assumed, the next ones weigh 1/2, 1/3, and then 1/4. */
static void learn(struct rail_gauge_rail *r)
{
	double rate = (double)r->bytes / (double)r->busy_ns;
	double gain = 1.0 / (r->periods + 1);

	r->rate += (rate - r->rate) * (gain > GAIN ? gain : GAIN);
	r->periods += r->periods < 4;
	r->bytes = r->busy_ns = 0;
}

static bool period_ended(const struct rail_gauge *g)
{
	if (g->period_bytes < RAIL_PERIOD_BYTES)
		return false;
	for (int r = 0; r < g->rail_count; r++)
		if (!g->rail[r].bytes)
			return g->period_bytes >= RAIL_PERIOD_BYTES_MAX;
	return true;
}

/* From the last completion, or from when the rail was idle, to this one: is it well known? */
static bool slice_says(struct rail_gauge_rail *r, uint64_t now_ns, uint64_t unsure_ns,
		       uint64_t *slice_ns)
{
	uint64_t slice = now_ns - r->since_ns;
	uint64_t unsure = r->unsure_ns + unsure_ns;

	r->since_ns = now_ns;
	r->unsure_ns = unsure_ns;
	*slice_ns = slice;
	return slice && slice >= RAIL_SURE * unsure;
}

void rail_gauge_done(struct rail_gauge *g, int rail, uint64_t now_ns, uint64_t unsure_ns,
		     uint64_t bytes)
{
	struct rail_gauge_rail *r = &g->rail[rail];
	uint64_t slice_ns;

	r->in_flight--;
	if (g->unlimited || !slice_says(r, now_ns, unsure_ns, &slice_ns))
		return;
	r->busy_ns += slice_ns;
	r->bytes += bytes;
	g->period_bytes += bytes;
	if (!period_ended(g))
		return;
	g->period_bytes = 0;
	for (int k = 0; k < g->rail_count; k++)
		if (g->rail[k].bytes)
			learn(&g->rail[k]);
}

void rail_gauge_weights(struct rail_gauge *g, uint8_t weight[RAIL_MAX])
{
	bool probe = g->messages++ % RAIL_SHARE_PROBE_EVERY == 0;
	double most = 0;

	for (int r = 0; r < g->rail_count; r++)
		most = g->rail[r].rate > most ? g->rail[r].rate : most;
	memset(weight, 0, RAIL_MAX);
	for (int r = 0; r < g->rail_count; r++) {
		/* Down: a slow rail that has too much makes all others wait. */
		weight[r] = (uint8_t)(g->rail[r].rate / most * RAIL_SHARE_MAX);
		if (g->rail[r].rate == most)
			weight[r] = RAIL_SHARE_MAX;
		if (probe && weight[r] < RAIL_SHARE_PROBE)
			weight[r] = RAIL_SHARE_PROBE;
	}
}
