/* rate_estimate.c - estimates of the rates of rails. */
#include <math.h>
#include <string.h>

#include "rail/message/rate_estimate.h"

/* The gain of a decaying sum that is worth n periods: n = (2 - gain) / gain. */
#define GAIN(n) (2.0 / ((n) + 1))

/* The spread before any measurement. */
#define SPREAD 0.25

/* Rails that differed do so still if their rates, over the assumed ones, differ by more than this. */
#define STILL_DIFFERS 0.1

/*
 * Is that relative difference of two means of n periods within two standard errors?
 * A standard deviation is 1.25 mean deviations; the difference has sqrt(2) of them.
 */
static bool is_chance(double difference, double spread, double n)
{
	return difference * difference * n <= 2 * 2 * 1.25 * 1.25 * 2 * spread * spread;
}

/* How far a period is from the estimate, 0 to 1: bunched acknowledgements may give it any rate. */
static double deviation(double rate, double estimate)
{
	return rate > estimate ? 1 - estimate / rate : 1 - rate / estimate;
}

/*
 * Do the rails differ from the assumed rates by no more than noise?  Once they differ, a noisy
 * period is no reason to doubt it as long as the estimates differ.
 */
static bool as_assumed(const struct rail_estimate *e)
{
	double least = INFINITY, most = 0, spread = 0;
	uint32_t periods = RAIL_PERIODS_MAX;

	for (int r = 0; r < e->rail_count; r++) {
		const struct rail_estimate_rail *rail = &e->rail[r];
		double times = rail->rate / rail->assumed;

		least = times < least ? times : least;
		most = times > most ? times : most;
		spread += rail->spread / e->rail_count;
		periods = rail->periods < periods ? rail->periods : periods;
	}
	return is_chance(1 - least / most, spread, periods) &&
	       !(e->differs && 1 - least / most > STILL_DIFFERS);
}

static void weights_settle(struct rail_estimate *e)
{
	bool assumed = as_assumed(e);
	double rate[RAIL_MAX], most = 0;

	e->differs = !assumed;
	for (int r = 0; r < e->rail_count; r++) {
		rate[r] = assumed ? e->rail[r].assumed : e->rail[r].rate;
		most = rate[r] > most ? rate[r] : most;
	}
	for (int r = 0; r < e->rail_count; r++)
		/* Rounded down: a slow rail with too much makes all others wait. */
		e->weight[r] = (uint8_t)(rate[r] == most ? RAIL_SHARE_MAX :
							   rate[r] / most * RAIL_SHARE_MAX);
}

void rail_estimate_init(struct rail_estimate *e, int rail_count, const uint64_t nominal[])
{
	bool known = true;

	memset(e, 0, sizeof(*e));
	e->rail_count = rail_count;
	e->unlimited = true;
	for (int r = 0; r < rail_count; r++) {
		known &= nominal[r] != 0;
		e->unlimited &= nominal[r] == 0;
	}
	for (int r = 0; r < rail_count; r++) {
		e->rail[r].assumed = e->rail[r].rate = known ? (double)nominal[r] * 1e-9 : 1;
		e->rail[r].spread = SPREAD;
	}
	weights_settle(e);
}

void rail_estimate_posted(struct rail_estimate *e, int rail, uint64_t now_ns)
{
	struct rail_estimate_rail *r = &e->rail[rail];

	if (r->in_flight++)
		return;
	r->since_ns = now_ns;
	r->unsure_ns = r->waiting = 0;
	r->sure = false;
}

static void carried_add(struct rail_carried *c, double gain, double bytes, double busy_ns)
{
	c->bytes += bytes - c->bytes * gain;
	c->busy_ns += busy_ns - c->busy_ns * gain;
}

static double carried_rate(const struct rail_carried *c)
{
	return c->bytes / c->busy_ns;
}

static void learn(struct rail_estimate_rail *r)
{
	double bytes = (double)r->bytes, busy_ns = (double)r->busy_ns;
	double gain = 1.0 / (r->periods + 1);

	gain = gain > GAIN(RAIL_PERIODS_LATELY) ? gain : GAIN(RAIL_PERIODS_LATELY);
	/* The first period says nothing about the variation. */
	if (r->periods)
		r->spread += (deviation(bytes / busy_ns, r->rate) - r->spread) * gain;
	carried_add(&r->lately, GAIN(RAIL_PERIODS_LATELY), bytes, busy_ns);
	carried_add(&r->always, GAIN(RAIL_PERIODS_MAX), bytes, busy_ns);
	r->periods += r->periods < RAIL_PERIODS_MAX;
	/* The rail has changed: only the newest periods count. */
	if (!is_chance(carried_rate(&r->lately) / carried_rate(&r->always) - 1, r->spread,
		       RAIL_PERIODS_LATELY)) {
		r->always = r->lately;
		r->periods = r->periods < RAIL_PERIODS_LATELY ? r->periods : RAIL_PERIODS_LATELY;
	}
	r->rate = carried_rate(&r->always);
	r->bytes = r->busy_ns = 0;
}

static bool period_ended(const struct rail_estimate *e)
{
	if (e->period_bytes < RAIL_PERIOD_BYTES)
		return false;
	for (int r = 0; r < e->rail_count; r++)
		if (!e->rail[r].busy_ns)
			return e->period_bytes >= RAIL_PERIOD_BYTES_MAX;
	return true;
}

/*
 * Count the bytes since the completion that was counted last, or since the rail was idle, once
 * that span is well known.  Completions found by the same poll belong to the same period.
 */
static bool counted(struct rail_estimate_rail *r, uint64_t now_ns, uint64_t unsure_ns,
		    uint64_t bytes)
{
	uint64_t span = now_ns - r->since_ns;

	r->waiting += bytes;
	if (span ? span < RAIL_SURE * (r->unsure_ns + unsure_ns) : !r->sure)
		return false;
	r->bytes += r->waiting;
	r->busy_ns += span;
	r->waiting = 0;
	r->since_ns = now_ns;
	r->unsure_ns = unsure_ns;
	r->sure = true;
	return true;
}

void rail_estimate_done(struct rail_estimate *e, int rail, uint64_t now_ns, uint64_t unsure_ns,
			uint64_t bytes)
{
	struct rail_estimate_rail *r = &e->rail[rail];
	uint64_t before = r->bytes;

	r->in_flight--;
	if (e->unlimited || !counted(r, now_ns, unsure_ns, bytes))
		return;
	e->period_bytes += r->bytes - before;
	if (!period_ended(e))
		return;
	e->period_bytes = 0;
	for (int k = 0; k < e->rail_count; k++)
		if (e->rail[k].busy_ns)
			learn(&e->rail[k]);
	weights_settle(e);
}

void rail_estimate_weights(const struct rail_estimate *e, uint8_t weight[RAIL_MAX])
{
	memcpy(weight, e->weight, RAIL_MAX);
	if (e->messages % RAIL_SHARE_PROBE_EVERY)
		return;
	for (int r = 0; r < e->rail_count; r++)
		if (weight[r] < RAIL_SHARE_PROBE)
			weight[r] = RAIL_SHARE_PROBE;
}
