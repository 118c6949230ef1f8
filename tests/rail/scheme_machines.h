/* scheme_machines.h - of test_scheme.c and test_first.c: machines of a few lines of arithmetic, and their noise. */
#ifndef TESTS_RAIL_SCHEME_MACHINES_H
#define TESTS_RAIL_SCHEME_MACHINES_H

#include <stdint.h>

#include "rail/message/scheme.h"

/*
 * Nanoseconds: a copy by one end; by two ends at once of one message, and of two messages whose
 * buffers may be the same; through a ring by both; the way of a CTS to a sender that waits.  Rates in
 * bytes per ns.
 */
struct machine {
	const char *name;
	double fixed, rate;		/* of one copy */
	double half_fixed, half_rate;	/* of each of two halves at once */
	double turn_fixed, turn_rate;	/* of each of two messages at once */
	double ring_rate, answer;
	double short_rate, long_rate;	/* through the ring, in slices of other lengths */
	double begin;			/* until the receiver of a message alone has a short slice */
	/*
	 * The schemes by class, in letters: r(ead), h(alves), t(urns), s(lices through the ring), short ones '-',
	 * long ones '+'.
	 */
	const char *alone, *queued;
};

/*
 * The first two are measured; `kernel` has a slow copy by the kernel, such as one that walks pages
 * one at a time, `memcpy` a slow memory that one processor fills alone, `shared` two processes on one
 * core, which never copy at once, `rivals` caches that make two writers of one buffer wait, `stores` a
 * processor that writes lines of another core without reading them.  Of the last ones, `small` has caches that hold
 * short slices, `records` a hand-over of a slice that is dear, `waits` a receiver that wins by an early begin.
 */
static const struct machine machines[] = {
	{ "2 MiB of L2", 700, 16, 1300, 13, 2600, 9, 8, 600, 7, 9, 0, "rrhhhhhhh", "rrhhhhhhh" },
	{ "1 MiB of L2", 500, 9, 520, 8.5, 520, 8.5, 10, 300, 11, 9, 0, "hhhhhhhhh", "ttthhhhhh" },
	{ "kernel", 4000, 1, 4100, 0.95, 4100, 0.9, 2.5, 300, 2.35, 2.35, 0, "hhsssssss", "ttsssssss" },
	{ "memcpy", 400, 4, 500, 2.1, 500, 2.1, 1.5, 300, 1.6, 1.4, 0, "rhhhhhhhh", "ttthhhhhh" },
	{ "shared", 400, 10, 800, 5, 1600, 5, 6, 3000, 5, 7, 0, "rrrrrrrrr", "rrrrrrrrr" },
	{ "rivals", 500, 9, 600, 8, 2000, 3, 12, 300, 11, 12.2, 0, "hhhhhhhhh", "hhhhhhhhh" },
	{ "stores", 900, 15, 1000, 15, 1000, 12, 45, 400, 42, 43, 0, "hhsssssss", "ttsssssss" },
	{ "small", 900, 12, 1000, 9, 1000, 9, 20, 400, 21, 19, 0, "rh-------", "ttt------" },
	{ "records", 900, 12, 1000, 9, 1000, 9, 20, 400, 19, 21, 500, "rhhhs++++", "ttt++++++" },
	{ "waits", 900, 8, 1000, 8, 1000, 7, 20, 400, 19, 20.5, 900, "hhh--ss++", "tt+++++++" },
};

enum { MACHINES = sizeof(machines) / sizeof(*machines) };

/* Through the ring; a usual slice is twice as long as a short one. */
static double ring_cost(const struct machine *m, double rate, double longer, enum rail_load load, uint64_t bytes)
{
	return m->answer + m->fixed + (double)bytes / rate + (load == LOAD_ALONE ? longer * m->begin : 0);
}

static double cost(const struct machine *m, enum rail_scheme scheme, enum rail_load load, uint64_t bytes)
{
	double b = (double)bytes;

	switch (scheme) {
	case SCHEME_READ:
		return m->fixed + b / m->rate;
	case SCHEME_HALVES:
		return m->answer + m->half_fixed + b / 2 / m->half_rate;
	case SCHEME_TURNS:
		return (m->turn_fixed + b / m->turn_rate) / 2;
	case SCHEME_RING_SHORT:
		return ring_cost(m, m->short_rate, 1, load, bytes);
	case SCHEME_RING_LONG:
		return ring_cost(m, m->long_rate, 4, load, bytes);
	default:
		return ring_cost(m, m->ring_rate, 2, load, bytes);
	}
}

/* From 0 on, below 1. */
static double random_of(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(*dice >> 11) / (double)(UINT64_C(1) << 53);
}

/* A part of a machine's time: launches differ, and messages of a launch. */
struct noise {
	double both, more;		/* either way; only more time; standard deviations */
	double interrupt, off_core;	/* messages that meet one, as a part */
	double rival;			/* another pair slows this one by so much, now and then */
};

static const struct noise silence, usual = { 0.06, 0.06, 0.03, 0.001, 0 };
static const struct noise rivals = { 0.06, 0.06, 0.03, 0.001, 0.5 };

struct world {
	const struct machine *machine;
	struct rail_schemes schemes;
	double now_ns;
	uint64_t dice;
	struct noise noise;
	double drift;			/* of the processor's clock */
	bool slowed;			/* by another pair */
	int phase;			/* messages left of that, or of the opposite */
	double cold;			/* the next message takes so many times as long */
};

static struct world world_make(const struct machine *machine, uint64_t seed, struct noise noise)
{
	struct world w = { .machine = machine, .now_ns = 1e6, .dice = seed * 7919 + 1, .noise = noise,
			   .drift = 1, .cold = 1 };

	rail_scheme_init(&w.schemes);
	return w;
}

/* About normal, of standard deviation 1. */
static double deviation(uint64_t *dice)
{
	return 1.732 * (random_of(dice) + random_of(dice) + random_of(dice) + random_of(dice) - 2);
}

/* Another pair's messages come and go in phases. */
static double rival_slows(struct world *w)
{
	if (w->noise.rival <= 0)
		return 1;
	if (--w->phase < 0) {
		w->slowed = !w->slowed;
		w->phase = 10 + (int)(400 * random_of(&w->dice));
	}
	return w->slowed ? 1 + w->noise.rival : 1;
}

static double disturbed(struct world *w, double ns)
{
	const struct noise *n = &w->noise;
	double more = deviation(&w->dice), chance = random_of(&w->dice);

	ns *= 1 + n->both * deviation(&w->dice) + n->more * (more < 0 ? -more : more);
	w->drift += 0.03 * n->both * deviation(&w->dice) - 0.01 * (w->drift - 1);
	ns *= w->drift * rival_slows(w);
	if (chance < n->off_core)
		return ns + 4e6 * random_of(&w->dice);
	return chance < n->interrupt ? ns + 2e3 + 8e3 * random_of(&w->dice) : ns;
}

/* A message of a cell; its time is that of another load. */
static enum rail_scheme message_as(struct world *w, uint64_t bytes, enum rail_load load, enum rail_load costs_as)
{
	struct rail_scheme_cell *cell = rail_scheme_cell(&w->schemes, bytes, load);
	enum rail_scheme scheme = cell->scheme;
	bool learns = rail_scheme_learns(&w->schemes, cell);

	if (learns)
		scheme = rail_scheme_take(&w->schemes, cell, bytes, load == LOAD_ALONE, (uint64_t)w->now_ns);
	w->now_ns += w->cold * disturbed(w, cost(w->machine, scheme, costs_as, bytes));
	if (learns)
		rail_scheme_done(&w->schemes, cell, bytes, cell->batch, (uint64_t)w->now_ns);
	w->now_ns += 200;
	return scheme;
}

static inline enum rail_scheme message(struct world *w, uint64_t bytes, enum rail_load load)
{
	return message_as(w, bytes, load, load);
}

#endif
