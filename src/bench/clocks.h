/*
 * clocks.h - synchronised clocks: the time of rank 0's clock, at every rank.
 *
 * Sources.  Offset: the ping-pong of the least round trip (Cristian, Probabilistic clock
 * synchronization, Distributed Computing 3, 1989).  Hierarchy, tree, linear drift: Hunold and
 * Carpen-Amarie, Hierarchical Clock Synchronization in MPI, CLUSTER 2018 (HCA3; as in ReproMPI, a
 * parent answers with its own synchronised time, so that log2(clocks) steps suffice).  The early
 * end of ping-pongs, at a known round trip: ReproMPI's SKaMPI offsets.  The tree in place of a
 * star: also Hoefler, Schneider and Lumsdaine, Accurately Measuring Collective Operations at
 * Massive Scale, PMEO 2008.
 *
 * Ranks of one kernel share CLOCK_MONOTONIC: a key tells the kernel.  A time namespace shifts that
 * clock for some processes only, so each rank measures its offset to the first rank of its key.  An
 * offset within half of the round trip is none; otherwise the rank has a clock of its own.  The
 * first rank of each clock, its leader, measures along a binary tree, and tells the others of the
 * clock.
 *
 * A model is linear: its offset is the last measurement, its drift the slope between two
 * measurements 10 to 20 s apart, or as far apart as the job is old.
 *
 * Messages and time come from struct clocks_link, so that a test runs all of it on modelled
 * clocks and networks.
 */
#ifndef BENCH_CLOCKS_H
#define BENCH_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* The means of a rank.  Functions return when they are done, and get `user`. */
struct clocks_link {
	int rank, size;
	void *user;
	uint64_t (*now)(void *user);			/* ns of this rank's clock */
	/* A round of a wait until due_ns of this rank's clock. */
	void (*relax)(void *user, uint64_t now_ns, uint64_t due_ns);
	void (*send)(void *user, int to, const uint64_t *value, int count);
	void (*receive)(void *user, int from, uint64_t *value, int count);
	/* Collective: the largest value of all ranks, at all ranks; element by element. */
	void (*most)(void *user, uint64_t *value, int count);
};

/* ---- Arithmetic (pure) -------------------------------------------------------------- */

/* The result of a ping-pong. */
struct clocks_reading {
	uint64_t at_ns;		/* here */
	int64_t offset_ns;	/* there less here; the error is at most half of the trip */
	uint64_t trip_ns;	/* UINT64_MAX: none yet */
};

/* global = local + offset + drift * (local - at) */
struct clocks_model {
	uint64_t at_ns;
	int64_t offset_ns;
	double drift;
};

/* The other clock showed remote_ns between two times of this clock. */
struct clocks_reading clocks_reading_of(uint64_t sent_ns, uint64_t remote_ns,
					uint64_t received_ns);
/* May both clocks be the same? */
bool clocks_reading_is_same(const struct clocks_reading *r);
/* The model through two readings.  Less than 1 ms apart: without drift. */
struct clocks_model clocks_fit(const struct clocks_reading *first,
			       const struct clocks_reading *last);
uint64_t clocks_to_global(const struct clocks_model *m, uint64_t local_ns);
uint64_t clocks_to_local(const struct clocks_model *m, uint64_t global_ns);

/* Is an error small enough for times such as this one? */
enum { CLOCKS_ERROR_PERCENT = 5 };
bool clocks_suffice(uint64_t error_ns, double time_ns);

/* ---- Clocks of a job ----------------------------------------------------------------- */

struct clocks {
	struct clocks_link link;
	int leader;			/* the rank whose clock this rank shares */
	int *leaders;			/* all leaders, in the order of ranks */
	int *shared;			/* at a leader: the others of its clock */
	int count, shared_count;	/* clocks of the job; entries of `shared` */
	int index;			/* at a leader: its place in `leaders`; else -1 */
	struct clocks_model model;	/* from this rank's clock to rank 0's */
	/* At a leader other than rank 0. */
	struct clocks_reading first, next;	/* older measurements, for the drift */
	uint64_t least_trip_ns;		/* 0: not measured */
	/*
	 * The sum of differences between model and measurement on the way to rank 0, at the last
	 * measurement.
	 */
	uint64_t error_ns;
};

/*
 * Find the clocks of a job and synchronise them; takes 0.1 s with several clocks.  Collective.
 * key: a number of this rank's kernel; 0: unknown, so that the rank has a clock of its own.
 * 0 or -ENOMEM, on this rank, before the first message.
 */
int clocks_open(struct clocks *c, const struct clocks_link *link, uint64_t key);
/*
 * Measure all offsets again and correct the models.  Returns the largest error_ns of all ranks, at
 * all ranks: the error that the models had just before.  Collective; free with a single clock.
 */
uint64_t clocks_check(struct clocks *c);
/*
 * Forget all offsets and measure anew, as clocks_open does: after a clock was set, which a model
 * takes for drift.  Collective.
 */
void clocks_renew(struct clocks *c);
void clocks_close(struct clocks *c);

/* rank 0's time, here. */
static inline uint64_t clocks_now(const struct clocks *c)
{
	return clocks_to_global(&c->model, c->link.now(c->link.user));
}

#endif
