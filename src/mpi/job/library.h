/* library.h - the progress of the MPI library.  progress.c decides when. */
#ifndef RAILMPI_LIBRARY_H
#define RAILMPI_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/*
 * From now on the library's progress calls `look`, in any thread that is in it.  `look` returns the
 * number of events, and calls no MPI.  Inside layer_enter.
 */
void library_start(int (*look)(void));
void library_stop(void);
/* True: the library calls `look`.  Libraries differ. */
bool library_calls(void);

/* A round of the library's progress. */
void library_turn(void);
/* Rounds in a row, of which none gives the core away. */
void library_turns(unsigned rounds);
uint64_t library_turn_count(void);

#pragma GCC visibility pop

#endif
