/*
 * call_time.h - the time that a program spends in MPI, for --ledger.
 *
 * In MPI_Init, if the ledger is wanted, functions that take the time come before those of
 * timed_calls.h (loaded_replace).  Nothing on the path of a call knows of it, and without --ledger
 * nothing is replaced.  A call within a call, by the MPI library or an error handler, is part of the
 * outer one.  Times of all threads add up.
 */
#ifndef RAILMPI_CALL_TIME_H
#define RAILMPI_CALL_TIME_H

#include <stdint.h>
#include <stdio.h>

#include "mpi/watch/timed_calls.h"

#pragma GCC visibility push(hidden)

enum timed {
#define X(name) TIMED_##name,
	TIMED_CALLS(X, X)
#undef X
	TIMED_COUNT,
};

/* Nanoseconds of a rank, or sums over ranks. */
struct call_times {
	uint64_t whole;			/* from call_time_start to call_time_stop; 0: not known */
	uint64_t in[TIMED_COUNT];	/* of that, by function */
};

/* From here on times are taken.  NULL, or the reason why they cannot be. */
const char *call_time_start(void);
void call_time_stop(void);
/* This rank's, after call_time_stop. */
void call_time_read(struct call_times *out);
/* The part of the whole that is in MPI, in 1/1000. */
uint64_t call_time_part(const struct call_times *t);
/* Prints the sums of all ranks; least and most: call_time_part of the ranks. */
void call_time_print(FILE *f, const struct call_times *sum, int ranks, uint64_t least, uint64_t most);

#pragma GCC visibility pop

#endif
