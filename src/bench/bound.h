/*
 * bound.h - what the hardware, or the model, lets several rails bring: arithmetic.
 *
 * Rails have nominal rates, and sets of them share something with a rate of its
 * own: a PCIe link, the bus of an adapter.  Sets are nested or disjoint, smaller ones
 * first, so the most that all rails bring is found from the inside out: a set
 * brings what its parts bring, or what it shares, whichever is less.
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
	double shared;		/* the same, with what is shared: never more than link */
	int share;		/* index of the share that takes most of it away; -1: none */
	int sets;		/* disjoint sets of rails from which something is taken */
};

/*
 * Of data that flow one way, from one node to another one like it; or both ways at
 * once, which is counted together.  rate: of each rail, bytes per second and direction; 0:
 * not known.
 */
void bound_find(const double rate[], int rails, const struct bound_share share[], int shares,
		bool both_ways, struct bound *out);

#endif
