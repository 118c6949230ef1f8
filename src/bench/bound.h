/*
 * bound.h - the upper bound of the bandwidth of several rails, of the hardware or the model.
 *
 * Rails have nominal rates.  Sets of rails share a limit with a rate of its own: a PCIe
 * link, the bus of an adapter.  Sets are nested or disjoint, smaller ones first.  So the
 * bound is computed from the innermost sets outwards: that of a set is the sum of its parts
 * or its shared limit, whichever is less.
 */
#ifndef BENCH_BOUND_H
#define BENCH_BOUND_H

#include <stdbool.h>
#include <stdint.h>

enum { BOUND_RAILS_MAX = 8 };

struct bound_share {
	uint32_t rails;		/* bit i: rail i */
	double out, in;		/* bytes per second; 0: not known */
	bool half;		/* both directions share it, each at its own rate */
};

struct bound {
	double link;		/* bytes per second of all ports; INFINITY: not known */
	double shared;		/* the same, with shared limits: never more than link */
	int share;		/* index of the share that reduces it most; -1: none */
	int sets;		/* disjoint sets of rails that a share reduces */
};

/*
 * The bound of data between two nodes that are alike.  both_ways: both directions at once, counted
 * together.  rate: each rail's bytes per second and direction; 0: not known.
 */
void bound_find(const double rate[], int rails, const struct bound_share share[], int shares,
		bool both_ways, struct bound *out);

#endif
