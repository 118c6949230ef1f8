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
	/* The schemes by class from 64 KiB on, in letters: r(ead), h(alves), t(urns), s(lices through the ring). */
	const char *chosen;
};

/*
 * Two caches hold halves of two buffers, and whole ones not; a kernel's copy that is dear to begin;
 * a memory that two copies fill; cores that write to foreign memory slowly, or faster than they read, or
 * so fast that two copies through a ring are best.
 */
static const struct machine machines[] = {
	{ "2 MiB of L2", 700, 8, 800, 13, 900, 10, 16, "hhhhhhh" },
	{ "1 MiB of L2", 500, 9, 520, 9, 500, 9.5, 14, "trrrrhh" },
	{ "kernel", 4000, 1, 4100, 0.95, 4100, 0.9, 3, "sssssss" },
	{ "memcpy", 400, 2, 500, 2.1, 500, 2.1, 2, "thhhhhh" },
	{ "rivals", 500, 9, 600, 5, 2000, 3, 9, "rrrrrrr" },
	{ "writers", 900, 6, 900, 8, 900, 9, 14, "thhhhhh" },
	{ "stores", 900, 8, 1000, 8, 1000, 8, 20, "sssssss" },
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
	default:
		return m->fixed + b / m->rate;
	}
}

#endif
