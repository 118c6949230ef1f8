/* fortran.h - handles of requests and messages in Fortran, with Open MPI. */
#ifndef RAILMPI_FORTRAN_H
#define RAILMPI_FORTRAN_H

#include "mpi/abi/native.h"

#pragma GCC visibility push(hidden)

/* The index of a slot; bytes from a native request to its own, or -1. */
MPI_Fint fortran_of(const void *slot);
int fortran_distance(void);

#pragma GCC visibility pop

#endif
