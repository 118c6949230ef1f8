/*
 * roundtime.h - collectives by a common start time: from the first rank's start to the last one's
 * end.
 *
 * A round: all ranks wait for a time of the synchronised clocks (clocks.h) and start, and the latest
 * end less the earliest start is the sample.  All ranks agree on both, and with them on the next
 * start: the latest end, and the time that an agreement takes.  A rank that knows the start too
 * late, or that starts long after it, voids the round.  The round is then repeated, with more time
 * ahead.  What a rank does before its start is no part of the sample, so voiding a round selects no
 * samples.
 *
 * Source: the round-time scheme of Hunold and Carpen-Amarie, Hierarchical Clock Synchronization in
 * MPI, CLUSTER 2018, and of ReproMPI, where rank 0 broadcasts each start, 3 mean times of a broadcast
 * ahead, and a round is void if the start has passed at the first look.  The agreement at the end
 * takes the place of the broadcast here: it waits for the slowest rank, whose end rank 0 does not
 * know.  The window scheme (NBCBench: Hoefler, Schneider
 * and Lumsdaine, PMEO 2008; SKaMPI) has start times of fixed distance; there a long round voids the
 * next ones.
 */
#ifndef BENCH_ROUNDTIME_H
#define BENCH_ROUNDTIME_H

#include "bench/clocks.h"

struct roundtime {
	const struct clocks *clocks;
	uint64_t reading_ns;		/* cost of reading the clock */
	uint64_t least_ahead_ns;	/* of a start time */
	/* State of a row, the same on all ranks. */
	uint64_t ahead_ns;
	uint64_t rounds, voided;	/* voided ones are not rounds */
	uint64_t rounds_ns, voided_ns;	/* their times on the slowest rank */
	uint64_t voided_in_turn;
	uint64_t start_ns;		/* of the next round, by rank 0's clock */
	bool is_agreed;			/* start_ns is */
	/* The round: this rank's. */
	uint64_t entered_ns, due_ns;
	bool late;
};

/* A round, the same on all ranks. */
struct roundtime_sample {
	uint64_t duration_ns;		/* latest end less earliest start, less reading_ns */
	uint64_t local_ns;		/* the largest time of a rank, less reading_ns */
	uint64_t skew_ns;		/* latest start less earliest start */
};

/* Measure the time of an agreement.  Collective. */
void roundtime_open(struct roundtime *r, const struct clocks *clocks, uint64_t reading_ns);
/* A new row: its counts begin at 0. */
void roundtime_begin(struct roundtime *r);
/* The next round follows after other work: its start is agreed on anew. */
void roundtime_pause(struct roundtime *r);
/* Wait for the start of a round, which the first one agrees on; returns it, as read from this rank's clock.  Collective. */
uint64_t roundtime_start(struct roundtime *r);
/*
 * End a round that began and ended at these times of this rank's clock.  False: the round is void.
 * Collective.
 */
bool roundtime_end(struct roundtime *r, uint64_t begin_ns, uint64_t end_ns,
		   struct roundtime_sample *out);
/*
 * Are so many rounds void, or for so long, that ranks cannot start together here?  The same on all
 * ranks.
 */
bool roundtime_is_vain(const struct roundtime *r);

#endif
