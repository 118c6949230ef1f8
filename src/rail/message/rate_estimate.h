/*
 * rate_estimate.h - the rates of the rails to a peer, estimated from chunks that were carried.
 *
 * The rate of a rail is bytes over the time in which it had something to carry, so a rail
 * that idles is not slow.  A message of b bytes on a rail of latency L and rate R shows the
 * rate b / (L + b / R).  Shares in proportion to such rates change until all rails end at
 * the same time, the aim, and then stay as they are.
 *
 * A poll finds a completion.  The span between two completions is used only if their
 * times are well known: if the times since the polls before them are an eighth of the span
 * at most.  While the rail stays busy a span grows until that is so.  A span that ends
 * earlier, since the rail is idle, is left out: it would measure the process (which lost its
 * core, or computes) and not the rail.
 *
 * Rates are evaluated in *periods*, of all rails together, so that rails are compared over
 * the same time.  A period ends when every rail has carried something, and all together
 * enough to be significant.  The estimate is bytes over time of many periods, with the most
 * weight on the newest.  Acknowledgements that come in bunches give one period what they
 * take from the next; that cancels out of sums and not out of a mean of rates.  Where the
 * newest few periods differ from the estimate by more than chance, the rail has changed, and
 * only they count.  A rail whose share would be small gets some bytes now and then, so that
 * it is noticed when it becomes faster.
 *
 * Measurements count where they are significant: if rails differ from the assumed rates
 * by no more than two standard errors, shares are as assumed.  So equal rails are cut
 * evenly or nearly so, however noisy they are.  Rails that were found to differ are so until their
 * estimates come within a tenth of the assumed proportion.
 *
 * Arithmetic only: the caller passes the time.
 */
#ifndef RAIL_RATE_ESTIMATE_H
#define RAIL_RATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"

enum {
	RAIL_SHARE_MAX = 255,			/* the fastest rail's */
	RAIL_SHARE_PROBE = 4,			/* the least share of a slow rail ... */
	RAIL_SHARE_PROBE_EVERY = 16,		/* ... in each 16th message */
	RAIL_SURE = 8,				/* times the uncertainty of its ends */
	RAIL_PERIOD_BYTES = 4 << 20,	/* shorter, bunched acknowledgements look like noise */
	RAIL_PERIOD_BYTES_MAX = 16 << 20,	/* even if a rail has carried nothing */
	/* Periods that a decaying sum is worth: */
	RAIL_PERIODS_LATELY = 7,		/* each counts 3/4 of the next */
	RAIL_PERIODS_MAX = 63,			/* 31/32 */
};

struct rail_carried {
	double bytes, busy_ns;
};

struct rail_estimate {
	int rail_count;
	bool unlimited;			/* nothing to be measured: even */
	bool differs;			/* the rails from the assumed rates, as of the last period */
	uint32_t messages;		/* messages that were given shares */
	uint8_t weight[RAIL_MAX];	/* shares after the last period */
	uint64_t period_bytes;
	struct rail_estimate_rail {
		double assumed, rate;		/* bytes per nanosecond; their proportions matter */
		double spread;			/* mean deviation of a period's rate, relative */
		struct rail_carried lately, always;	/* decaying sums over periods */
		uint32_t periods;		/* worth of `always`, up to RAIL_PERIODS_MAX */
		uint32_t in_flight;		/* chunks */
		uint64_t since_ns;		/* begin of the span: busy, not yet counted */
		uint64_t unsure_ns;		/* ... which may be so much earlier */
		uint64_t waiting;		/* bytes of the span so far */
		bool sure;			/* the span began where a counted one ended */
		uint64_t busy_ns, bytes;	/* counted in this period */
	} rail[RAIL_MAX];
};

/*
 * nominal: bytes per second of each rail, 0: not known, or without limit.  If all are 0, the
 * poster copies the bytes, and a measurement would show nothing.
 */
void rail_estimate_init(struct rail_estimate *e, int rail_count, const uint64_t nominal[]);
/* A chunk is posted. */
void rail_estimate_posted(struct rail_estimate *e, int rail, uint64_t now_ns);
/* A chunk is done; perhaps for unsure_ns already, since the poll before was so long ago. */
void rail_estimate_done(struct rail_estimate *e, int rail, uint64_t now_ns, uint64_t unsure_ns,
			uint64_t bytes);
/* Shares of the next message, the same until it is sent: at least one is not 0. */
void rail_estimate_weights(const struct rail_estimate *e, uint8_t weight[RAIL_MAX]);

static inline void rail_estimate_sent(struct rail_estimate *e)
{
	e->messages++;
}

#endif
