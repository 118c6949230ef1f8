/*
 * coll_learn.h - algorithms of collectives that follow from what their calls cost.
 *
 * The table of coll.c is right on the machines where it was tuned; where two algorithms cross depends
 * on the memory, the caches and the links of a machine, and on ranks that share cores.  Tables by
 * cluster (MVAPICH) and by file (Open MPI's tuned, rg_tune) need a run beforehand; STAR-MPI [Faraj,
 * Yuan, Lowenthal 2006] measures calls of the running program, as this does, with three differences:
 * a decision is a race whose losers leave early, it changes no result, and ranks decide on the same
 * numbers.
 *
 * A communicator has one race for each collective and class of sizes, which may have begun in others of
 * its kind (coll_kept.h).  Its first calls take the
 * candidates in turn: the algorithm of coll.c, and others that are within reach of it.  Every rank
 * times its calls; at the end of a round, inside the call that ends it, the ranks exchange the largest
 * time of each call, and all decide by these numbers.
 *
 * Each call of a race begins with a meeting: ranks compare where they are.  A call that is refused on
 * one rank for its arguments may go on among the others; it counts on none, so all stay at the same
 * point, and take the same algorithm.  A rank at another point, after calls whose sizes
 * differ among ranks, ends all races of the communicator that are not settled, on all ranks.  So does
 * a rank on a host with more ranks than cores: what its calls take is its share of a core.  A settled
 * race has no meetings.
 *
 *  - A race counts calls of one size: that of its first call, or of a later one that comes again and
 *    again.  Its result is for the whole class, a power of two of bytes.
 *  - A round has visits: some calls in a row by one candidate.  The first one counts for little, since
 *    the algorithm before has left the bytes in other caches.  After a round, candidates much above the
 *    best leave.  Lower quartiles are compared, so calls that an interrupt or a rank that came late
 *    made longer do not decide.
 *  - The algorithm of coll.c stays unless another is COLL_LEARN_MARGIN percent below it, and beyond the
 *    spread of the samples.  So ties change nothing, such as on a clock that does not advance during a
 *    call, nor do the samples of a rank that shares its core, which are far apart; a median far below
 *    all that the algorithm of coll.c has reached decides all the same.
 *  - Reductions take only algorithms that give the same bits, see COLL_SAME_BITS: the result of a
 *    call is the same before, during and after the race.
 *  - Only blocking collectives whose number of bytes is the same on all ranks take part: not those
 *    with an array of counts.  Gather and scatter do not, either: most ranks leave them early, and
 *    what they cost is not in the times of these calls.
 *  - What --coll gives, by name or by a file, is not learned; `--coll table` gives all.
 *
 * Pure: no clock, no MPI.  The caller serializes.
 */
#ifndef RAILMPI_COLL_LEARN_H
#define RAILMPI_COLL_LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/coll/coll.h"

enum {
	COLL_LEARN_MARGIN = 1,		/* percent */
	COLL_LEARN_CANDIDATES = 4,
	COLL_LEARN_VISITS = 3, COLL_LEARN_TIMED = 10,	/* at most: of a candidate, calls of a visit */
	COLL_LEARN_SAMPLES = COLL_LEARN_CANDIDATES * COLL_LEARN_VISITS * COLL_LEARN_TIMED,
	COLL_LEARN_MEETINGS = 1000,	/* in a race; then the usual algorithm stays */
	COLL_LEARN_CLASSES = 14,	/* above 1 KiB: to 2 KiB, to 4 KiB, ... to 16 MiB */
};

/* A call: the same on all ranks. */
struct coll_call {
	enum coll_id id;
	int ranks;
	size_t bytes;			/* m of coll.h */
	unsigned holds;			/* as for coll_choose */
	enum coll_algorithm usual;	/* the answer of coll_choose */
};

struct coll_race {
	enum coll_algorithm candidate[COLL_LEARN_CANDIDATES];	/* the usual one first */
	uint32_t cost_ns[COLL_LEARN_CANDIDATES];	/* in the last round that it was in; 0: none */
	uint32_t least_ns[COLL_LEARN_CANDIDATES];	/* in all rounds; 0: none */
	size_t bytes;			/* of the calls that count */
	unsigned holds;
	uint8_t candidates;
	uint8_t choice;			/* one of them: the best so far, and in the end */
	bool decided, settled;		/* settled: decided, and confirmed by the next call's meeting */
	bool abandoned;
	uint16_t met;			/* meetings */
	uint8_t racing;			/* bits */
	uint8_t round;
	uint8_t strangers;		/* calls of other sizes in a row */
	uint16_t calls;			/* in this round, or before the first */
	uint16_t samples;		/* of this round, in the order of calls */
	uint32_t sample_ns[COLL_LEARN_SAMPLES];
};

/* Why races that are not settled have ended. */
enum coll_learn_end { COLL_LEARN_GOES_ON, COLL_LEARN_CROWDED, COLL_LEARN_UNLIKE, COLL_LEARN_ENDS };

/* The table of a communicator. */
struct coll_learned {
	enum coll_learn_end end;
	struct coll_race *race[COLL_COUNT][COLL_LEARN_CLASSES];	/* malloc'ed; NULL: none yet */
};

/* The class of a size; -1: sizes that are not learned. */
int coll_learn_class(size_t bytes);
/* Are there algorithms to choose from?  False: the call takes the usual one. */
bool coll_learn_may(const struct coll_call *call);
/* The race of a call for which coll_learn_may; zeroed before the first one. */
void coll_race_begin(struct coll_race *race, const struct coll_call *call);
/* Where this rank is in the race that is not settled, before such a call: for comparison among ranks. */
uint64_t coll_race_place(struct coll_race *race, const struct coll_call *call);
/* The algorithm of the call, which all ranks make.  *timed: coll_race_add after it. */
enum coll_algorithm coll_race_take(struct coll_race *race, const struct coll_call *call, bool *timed);
/*
 * Add what the call took on this rank.  True: a round is over.  Then each of the `samples` of
 * `sample_ns` becomes the largest one of all ranks, and coll_race_decide follows.
 */
bool coll_race_add(struct coll_race *race, uint64_t ns);
/* Candidates leave, or the race is settled. */
void coll_race_decide(struct coll_race *race);
/* The ranks could not agree: the next meeting ends the races. */
void coll_race_abandon(struct coll_race *race);

/* Can a race go on in another communicator?  One without a meeting, or that has ended early, cannot; nor NULL. */
bool coll_race_goes_on(const struct coll_race *race);
/* A copy of such races, for a communicator of the same kind (coll_kept.h).  NULL: no memory. */
struct coll_learned *coll_learned_copy(const struct coll_learned *from);
/* Free the races. */
void coll_learned_clear(struct coll_learned *learned);
void coll_learned_free(struct coll_learned *learned);
/* A digest of `digest` and a value. */
uint64_t coll_mixed(uint64_t digest, uint64_t value);

/* A race as tables show it. */
struct coll_learned_row {
	const char *collective;
	size_t most_bytes;		/* the class: up to so many, and more than half of it */
	const char *choice;		/* now */
	bool settled;
	enum coll_learn_end end;	/* if not settled */
	int candidates;
	const char *candidate[COLL_LEARN_CANDIDATES];
	uint32_t cost_ns[COLL_LEARN_CANDIDATES];	/* 0: not known */
};
typedef void coll_learned_fn(void *user, const struct coll_learned_row *row);
/* Visit the races of a communicator; NULL has none. */
void coll_learned_each(const struct coll_learned *learned, coll_learned_fn *visit, void *user);

#endif
