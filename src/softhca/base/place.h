/*
 * place.h - the directories for files of this library: member registries and, where the system
 * denies memfd_create, the files of shared memory.
 */
#ifndef HCA_PLACE_H
#define HCA_PLACE_H

#include <stddef.h>

/* SOFTHCA_DIR alone; without it /dev/shm, TMPDIR, /tmp.  NULL: there is no such index. */
const char *hca_place(unsigned index);

/*
 * An empty file without a name, in the first directory that takes one, for reading and writing.  Its
 * descriptor, or -1 with the causes in `why`: "/dev/shm: Read-only file system, /tmp: ...".
 */
int hca_place_file(char *why, size_t size);

#endif
