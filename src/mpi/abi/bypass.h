/*
 * bypass.h - MPI calls that go past the layer: brought to it where that can be, and told where not.
 *
 * Who looks a function up in the MPI library alone gets the layer's (loaded.h).  What remains: a
 * library that stands before the layer, another MPI library than the layer's.
 */
#ifndef RAILMPI_BYPASS_H
#define RAILMPI_BYPASS_H

#pragma GCC visibility push(hidden)

/* When this library is loaded, behind the look-up of the library's functions. */
void bypass_start(void);
/* MPI_Init begins: refuse a process with another MPI library. */
void bypass_check(void);
/* MPI_Init has returned. */
void bypass_seen(void);
/* Rails are wanted: 0, or -EINVAL with the line if the program's calls do not come here. */
int bypass_refuse(void);

#pragma GCC visibility pop

#endif
