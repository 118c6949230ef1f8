/* coll_types.h - which operations the MPI library has for a type. */
#ifndef RAILMPI_COLL_TYPES_H
#define RAILMPI_COLL_TYPES_H

#include <stdbool.h>

#include "mpi/abi/native.h"
#include "mpi/type/dtype.h"

/*
 * True: the library has this operation, the n-th of up to COLL_OPERATIONS, for the type.  False for
 * all types that are not predefined.
 */
enum { COLL_OPERATIONS = 16 };
bool coll_type_has(struct dtype *t, MPI_Datatype handle, MPI_Op op, unsigned n);

#endif
