/*
 * stop.h - are there enough samples?  Pure functions.
 *
 * A row has converged if, for its n samples and for the first half of them:
 *	- the 95 % interval of the median, from the medians of the batches (stats.h), is within
 *	  +- half_width of the median, as a fraction;
 *	- the medians of the batches, in the order of time, do not depend on each other: 1 - R / 2 is
 *	  at most 0.2, with R the ratio of von Neumann on ranks (Bartels, JASA 77, 1982); or all of
 *	  them are as near the median as that.
 * The caller looks when the number of samples has doubled.  Half-widths that end a measurement:
 * Georges, Buytaert, Eeckhout, OOPSLA 2007; Hoefler and Belli, SC15, rule 5.  Looking until an
 * interval is narrow makes it too narrow (Law, section 9.5.3): hence the test of dependence, the
 * two successive halves, and the doubling.
 *
 * On simulated streams (tests/stats/test_stop, 2,000 runs each, from 1,000 samples on) the interval
 * holds the true median in 93 % or more: lognormal, two modes, an autocorrelation of 0.9, the same
 * with spikes, ticks of 20 ns.  A machine that changes its level is seen if the samples reach over
 * several changes; a level that outlasts the row is seen by launches alone.
 */
#ifndef RG_STOP_H
#define RG_STOP_H

#include "stats/stats.h"

/* `work` has room for n samples.  False below 20 samples. */
bool stop_has_converged(const uint64_t *in_order, size_t n, double half_width, uint64_t *work);

/* 1 - R / 2 of n values, 1 to STATS_BATCHES_MAX: the autocorrelation of their ranks, about. */
double stop_dependence(const double *values, size_t n);

#endif
