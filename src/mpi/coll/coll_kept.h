/*
 * coll_kept.h - races of a job: communicators come and go, what was measured stays.
 *
 * The kind of a communicator is its number of ranks, its way, and the nodes and places of its ranks, in
 * order.  A process keeps a table of races for each kind that it has had: a race that settles is kept at
 * once, one under way when its communicator is freed.  A communicator that is made begins with those of
 * its kind, so duplicates, and splits in a loop, race once.
 *
 * Ranks of a new communicator may have been in different ones before.  They compare digests in the
 * exchange that routes the communicator (comm.c).  Where all are alike, each rank begins with its own
 * races, those under way as well: a digest has all that decides, so ranks decide alike.  Else the rank
 * that has the most settled races tells them to the others, and a race under way begins anew.
 *
 * A kept choice stays: a communicator that was made before it, and settles later, changes nothing.
 *
 * Pure: no clock, no MPI.  The caller serializes.
 */
#ifndef RAILMPI_COLL_KEPT_H
#define RAILMPI_COLL_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi/coll/coll.h"
#include "mpi/coll/coll_learn.h"

enum {
	COLL_KEPT_MOST = 256,		/* kinds; communicators of others keep nothing */
};

struct coll_kind {
	int ranks, nodes;
	uint64_t way, where;		/* digests */
	char over[64];			/* the way, as in --over */
	char places[32];		/* of ranks of this process's host: "cache", "cache+apart"; "": none */
};

struct coll_kept {
	struct coll_kind kind;
	bool leads;			/* this process was rank 0 of such a communicator */
	struct coll_learned learned;
};

/* A settled race, as a rank tells it to others. */
struct coll_told {
	uint64_t bytes;
	uint32_t holds, cost_ns[COLL_LEARN_CANDIDATES];
	uint8_t candidate[COLL_LEARN_CANDIDATES];
	uint8_t id, class, candidates, choice;
};

/* The kept races of a kind, for good; NULL: no memory, or kinds are too many. */
struct coll_kept *coll_kept_of(const struct coll_kind *kind);
/* The i-th kind; NULL: there are no more. */
struct coll_kept *coll_kept_at(unsigned i);
/* A race has settled.  No memory: it is not kept. */
void coll_keep_race(struct coll_kept *kept, enum coll_id id, int class, const struct coll_race *race);
/* The same for all races of a communicator. */
void coll_keep(struct coll_kept *kept, const struct coll_learned *learned);
void coll_kept_free(void);

/* A digest of all that decides the choices of a communicator which begins with these races; 0: there are none. */
uint64_t coll_learned_digest(const struct coll_learned *learned);
/* The number of settled races, and the races themselves. */
int coll_learned_settled(const struct coll_learned *learned);
void coll_learned_tell(const struct coll_learned *learned, struct coll_told *told);
/* A table of the races that another rank has told; NULL: no memory. */
struct coll_learned *coll_learned_of_told(const struct coll_told *told, int count);

#endif
