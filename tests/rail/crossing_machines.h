/* crossing_machines.h - of test_crossing.c: processors of a few lines of arithmetic that copy for both directions. */
#ifndef TESTS_RAIL_CROSSING_MACHINES_H
#define TESTS_RAIL_CROSSING_MACHINES_H

#include <stdint.h>

#include "rail/message/scheme.h"

/* Nanoseconds, and bytes per ns, of a copy while the other end copies as well. */
struct machine {
	const char *name;
	double fixed, rate;		/* whole messages of which each is read */
	double half_fixed, half_rate;	/* halves */
	double turn_fixed, turn_rate;	/* whole messages, read and written in turn */
	double ring_rate;		/* whole messages, into a ring or out of it */
	double short_rate, long_rate;	/* the same in slices of other lengths */
	/* The schemes by class from 64 KiB on, in letters: r(ead), h(alves), t(urns), s(lices through the ring),
	   short ones '-', long ones '+'. */
	const char *chosen;
};

/*
 * Two caches hold halves of two buffers, and whole ones not; a kernel's copy that is dear to begin;
 * a memory that two copies fill; cores that write to foreign memory slowly, or faster than they read, or
 * so fast that two copies through a ring are best, of short slices, or of long ones.
 */
static const struct machine machines[] = {
	{ "2 MiB of L2", 700, 8, 800, 13, 900, 10, 16, 15, 15, "hhhhhhh" },
	{ "1 MiB of L2", 500, 9, 520, 9, 500, 9.5, 14, 15, 13, "trrrrhh" },
	{ "kernel", 4000, 1, 4100, 0.95, 4100, 0.9, 3, 2.8, 2.8, "sssssss" },
	{ "memcpy", 400, 2, 500, 2.1, 500, 2.1, 2, 2.1, 1.9, "thhhhhh" },
	{ "rivals", 500, 9, 600, 5, 2000, 3, 9, 8, 8, "rrrrrrr" },
	{ "writers", 900, 6, 900, 8, 900, 9, 14, 13, 14, "thhhhhh" },
	{ "stores", 900, 8, 1000, 8, 1000, 8, 20, 19, 18.5, "sssssss" },
	{ "small", 900, 8, 1000, 8, 1000, 8, 20, 21.5, 19.5, "-------" },
	{ "records", 900, 8, 1000, 8, 1000, 8, 20, 19.5, 21.5, "+++++++" },
};

enum { MACHINES = sizeof(machines) / sizeof(*machines) };

static double copy_ns(const struct machine *m, enum rail_scheme scheme, uint64_t bytes)
{
	double b = (double)bytes;

	switch (scheme) {
	case SCHEME_HALVES:
		return m->half_fixed + b / 2 / m->half_rate;
	case SCHEME_TURNS:
		return m->turn_fixed + b / m->turn_rate;
	case SCHEME_RING:
		return b / m->ring_rate;
	case SCHEME_RING_SHORT:
		return b / m->short_rate;
	case SCHEME_RING_LONG:
		return b / m->long_rate;
	default:
		return m->fixed + b / m->rate;
	}
}

#endif
