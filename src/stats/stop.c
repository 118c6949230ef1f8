/* stop.c - are there enough samples? */
#include <math.h>

#include "stats/stop.h"

#define DEPENDENCE_MAX 0.2

/* Counted from 1; equal values share the mean of their ranks. */
static double rank_of(const double *values, size_t n, double x)
{
	size_t below = 0, equal = 0;

	for (size_t i = 0; i < n; i++) {
		below += values[i] < x;
		equal += values[i] == x;
	}
	return (double)below + (double)(equal + 1) / 2;
}

double stop_dependence(const double *values, size_t n)
{
	double middle = (double)(n + 1) / 2, before = NAN, square = 0, steps = 0;

	for (size_t i = 0; i < n; i++) {
		double rank = rank_of(values, n, values[i]);

		square += (rank - middle) * (rank - middle);
		if (i)
			steps += (rank - before) * (rank - before);
		before = rank;
	}
	return square > 0 ? 1 - steps / square / 2 : 0;
}

static bool is_settled(const uint64_t *in_order, size_t n, double half_width, uint64_t *work)
{
	double batch[STATS_BATCHES_MAX], widest, dependence;
	size_t count = stats_batch_medians(in_order, n, work, batch), low, high;

	if (!stats_interval_ranks(count, &low, &high))
		return false;
	dependence = stop_dependence(batch, count);
	widest = 2 * half_width * stats_median_of(batch, count);	/* sorts */
	if (batch[count - 1] - batch[0] <= widest)
		return true;
	return dependence <= DEPENDENCE_MAX && batch[high - 1] - batch[low - 1] <= widest;
}

bool stop_has_converged(const uint64_t *in_order, size_t n, double half_width, uint64_t *work)
{
	return n >= STATS_BATCHES_MIN && is_settled(in_order, n / 2, half_width, work) &&
	       is_settled(in_order, n, half_width, work);
}
