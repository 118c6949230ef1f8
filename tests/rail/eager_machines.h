/* eager_machines.h - of test_eager_choice.c and test_eager_crossing.c: machines of a few lines of arithmetic. */
#ifndef TESTS_RAIL_EAGER_MACHINES_H
#define TESTS_RAIL_EAGER_MACHINES_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/message/eager_choice.h"

#define KIB ((uint64_t)1 << 10)

/*
 * Nanoseconds and bytes per ns: the records of an offer, alone and in a row, and its copy; a copy into
 * the ring or out of it.  In a row both copies run at once.  The first two are measured: on their
 * kind the kernel copies faster than memory is shared, or both are near; `kernel` has a slow
 * copy by the kernel, such as one that is emulated, `memcpy` a slow memory, `records` a slow way of them.
 */
struct machine {
	const char *name;
	double offer, offer_row, kernel_rate;
	double eager, ring_rate;
	const char *alone, *row, *crossing;	/* by class: o(ffered), e(ager) */
};

static const struct machine machines[] = {
	{ "2 MiB of L2", 900, 1000, 19, 300, 13, "ooo", "eoo", "ooo" },
	{ "1 MiB of L2", 1200, 900, 10, 300, 10, "ooo", "eee", "ooo" },
	{ "kernel", 4000, 4000, 2, 300, 9, "eee", "eee", "eee" },
	{ "memcpy", 900, 800, 12, 300, 4, "ooo", "ooo", "ooo" },
	{ "records", 3000, 3000, 8, 300, 11, "eeo", "eee", "eeo" },
};

enum { MACHINES = sizeof(machines) / sizeof(*machines), RING_BYTES = 256 << 10 };

struct world {
	const struct machine *machine;
	struct rail_eager_choice choice;
	struct rail_row row;
	uint64_t heard;
	double sent_ns, done_ns;	/* the sender's clock; the end of the last message */
	double told_ns;			/* the end of a sample's last message; 0: none is under way */
	uint64_t dice;
	double noise;
	unsigned bad, messages;		/* every so many messages one takes long; 0: none */
	double drift;			/* of the processor's clock, which noise changes; 0: it has none */
	double rival;			/* another pair slows this one by so much, now and then */
	bool slowed;
	int phase;			/* messages left of that, or of the opposite */
	bool shares;			/* both processes have one core */
};

static double random_of(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(*dice >> 11) / (double)(UINT64_C(1) << 53);
}

/* Another pair's messages come and go in phases. */
static double rival_slows(struct world *w)
{
	if (w->rival <= 0)
		return 1;
	if (--w->phase < 0) {
		w->slowed = !w->slowed;
		w->phase = 10 + (int)(400 * random_of(&w->dice));
	}
	return w->slowed ? 1 + w->rival : 1;
}

static struct world world_make(const struct machine *machine, uint64_t seed)
{
	struct world w = { .machine = machine, .sent_ns = 1e6, .dice = seed };

	rail_eager_choice_init(&w.choice);
	return w;
}

/* A launch that another pair slows now and then. */
static struct world world_beside_rival(const struct machine *machine, uint64_t launch)
{
	struct world w = world_make(machine, 7919 * launch + 1);

	w.noise = .1;
	w.rival = .5;
	w.bad = 97;
	return w;
}

#endif
