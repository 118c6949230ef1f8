/* strides_copy.h - the data of a datatype packed and unpacked. */
#ifndef RAILMPI_STRIDES_COPY_H
#define RAILMPI_STRIDES_COPY_H

#include <stddef.h>

#include "mpi/type/strides.h"

#pragma GCC visibility push(hidden)

/* Copy `bytes` bytes of the data of elements that follow each other, from any byte on. */
void strides_pack(const struct strides *s, const void *buf, size_t from, void *packed, size_t bytes);
void strides_unpack(const struct strides *s, const void *packed, size_t bytes, void *buf,
		    size_t from);

#pragma GCC visibility pop

#endif
