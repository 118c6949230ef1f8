/*
 * rate_estimate.h - the rates of the rails to a peer, estimated from chunks that were carried.
 *
 * The rate of a rail is bytes over the time in which it had something to carry, so a rail
 * that idles is not slow.  A message of b bytes on a rail of latency L and rate R shows the
 * rate b / (L + b / R).  Shares in proportion to such rates change until all rails end at
 * the same time, which is what is wanted, and stay there.
 *
 * A completion is found by a poll.  The span between two completions is used only if their
 * times are well known: if the times since the polls before them are an eighth of the span
 * at most.  While the rail stays busy a span grows until that is so.  A span that ends
 * before, since the rail is idle, is left out: it would measure the process (which lost its
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
 * Measurements count where they are significant: if rails differ from what was assumed of
 * them by no more than two standard errors, shares are as assumed.  So equal rails are cut
 * evenly or nearly so, however noisy they are.
 *
 * Arithmetic only: the caller passes the time.
 */
#ifndef RAIL_RATE_ESTIMATE_H
#define RAIL_RATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"

enum {
	RAIL_SHARE_MAX = 255,			/* of the fastest rail */
	RAIL_SHARE_PROBE = 4,			/* given to a slower one ... */
	RAIL_SHARE_PROBE_EVERY = 16,		/* ... in one message of so many */
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
	uint32_t messages;		/* that were given shares */
	uint8_t weight[RAIL_MAX];	/* shares as of the last period */
	uint64_t period_bytes;
	struct rail_estimate_rail {
		double assumed, rate;		/* bytes per nanosecond; their proportions matter */
		double spread;			/* mean deviation of a period's, relative */
		struct rail_carried lately, always;	/* decaying sums over periods */
		uint32_t periods;		/* that `always` is worth, up to RAIL_PERIODS_MAX */
		uint32_t in_flight;		/* chunks */
		uint64_t since_ns;		/* busy, not yet counted: a span */
		uint64_t unsure_ns;		/* ... that may have begun so much earlier */
		uint64_t waiting;		/* ... its bytes so far */
		bool sure;			/* it began when the one before was counted */
		uint64_t busy_ns, bytes;	/* of this period */
	} rail[RAIL_MAX];
};

/*
 * nominal: bytes per second of each rail, 0: not known, or without limit.  If that is
 * so of all, the poster copies the bytes and there is nothing to measure.
 */
void rail_estimate_init(struct rail_estimate *e, int rail_count, const uint64_t nominal[]);
/* A chunk begins its way. */
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
