/* agree.h - steps of the start that can fail on some ranks. */
#ifndef RAILMPI_AGREE_H
#define RAILMPI_AGREE_H

#pragma GCC visibility push(hidden)

/*
 * The end of a step that rg_errors_hold began; collective over MPI_COMM_WORLD.  The lowest rank that
 * failed prints its error, with its host where other ranks have not failed; all return a failure.
 */
int agree(int rc);

#pragma GCC visibility pop

#endif
