/*
 * threads.h - the cases of thread_suite, in three rooms: thread_suite.c (several threads in the same
 * calls, the table), thread_allowed.c (what MPI allows, and is easily wrong) and thread_forbidden.c
 * (what MPI forbids and libraries endure).
 */
#ifndef THREADS_H
#define THREADS_H

#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>

static inline int threads_right(void)
{
	return (suite_rank + 1) % suite_size;
}

static inline int threads_left(void)
{
	return (suite_rank + suite_size - 1) % suite_size;
}

/* body(0) to body(n - 1), a thread each; returns when all have ended. */
void threads_run(int n, void *(*body)(void *number));

void threads_disjoint_lists(MPI_Comm comm);
void threads_get_status(MPI_Comm comm);
void threads_matched_probes(MPI_Comm comm);
void threads_freed_beside_ssend(MPI_Comm comm);
void threads_freed_beside_scatter(MPI_Comm comm);
void threads_callbacks(MPI_Comm comm);
void threads_error_handlers(MPI_Comm comm);
void threads_memory(MPI_Comm comm);
void threads_mixture(MPI_Comm comm);

void threads_completed_twice(MPI_Comm comm);
void threads_posted_anew(MPI_Comm comm);
void threads_ended_otherwise(MPI_Comm comm);
void threads_message_received_twice(MPI_Comm comm);

#endif
