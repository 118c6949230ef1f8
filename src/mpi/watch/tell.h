/*
 * tell.h - the lines that `railgauge exec` prints of a job: one at the start, one at the end.
 *
 * Rank 0 prints them on stderr; rank 0's --quiet decides for all.  The end is told in MPI_Finalize
 * from counts that rails and rendezvous keep anyway.  A job that ends in another way (MPI_Abort,
 * exit, a signal) has no line at the end.
 */
#ifndef RAILMPI_TELL_H
#define RAILMPI_TELL_H

#include <stdbool.h>

#include "rail/rail.h"

struct railmpi_fabric;

#pragma GCC visibility push(hidden)

/* The rails are open.  quiet: rank 0's, the same on all ranks. */
void tell_open(bool quiet);
/* After tell_open: are lines wanted?  The same on all ranks. */
bool tell_is_wanted(void);
/* Wanted, and collective over MPI_COMM_WORLD: fabric, rails, the way of MPI_COMM_WORLD; warnings. */
void tell_start(const struct railmpi_fabric *f, int way, const struct rail_way *w);
/* MPI_COMM_WORLD is native. */
void tell_native(void);
/*
 * If wanted, collective over MPI_COMM_WORLD, all messages being sent.  Not together: some ranks are lost, and
 * rank 0 tells of its own messages.
 */
void tell_end(bool together);

#pragma GCC visibility pop

#endif
