/*
 * bypass.h - MPI calls that go past the layer: they are brought to it, or the user is told.
 *
 * A look-up of a function in the MPI library alone finds the layer's (loaded.h).  Two cases remain:
 * a library that comes before the layer, and another MPI library than the layer's.
 */
#ifndef RAILMPI_BYPASS_H
#define RAILMPI_BYPASS_H

#pragma GCC visibility push(hidden)

/* Called when this library is loaded, after the look-up of the MPI library's functions. */
void bypass_start(void);
/* Called when MPI_Init begins: refuses a process with another MPI library. */
void bypass_check(void);
/* Called when MPI_Init has returned. */
void bypass_seen(void);
/*
 * Called when rails are wanted.  0, or -EINVAL after one line if the program's calls go past the
 * layer.
 */
int bypass_refuse(void);

#pragma GCC visibility pop

#endif
