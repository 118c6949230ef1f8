/* coll_file.h - files of rules: which algorithm for so many ranks and bytes. */
#ifndef RAILMPI_COLL_FILE_H
#define RAILMPI_COLL_FILE_H

#include <stddef.h>

#include "mpi/coll/coll.h"

/* Add the rules of a file.  0, or -EINVAL with why: "@FILE: line 3: ...". */
int coll_file_read(const char *path, struct coll_rules *rules, char *why, size_t why_size);

#endif
