/* segment.h - sealed memfds, and how one process opens another's. */
#ifndef HCA_SEGMENT_H
#define HCA_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Give a file this size, with (`reserve`) or without blocks behind it.  Beyond
 * RLIMIT_FSIZE the kernel would raise SIGXFSZ, whose default ends the program:
 * here it is -EFBIG.  0 or -errno (silent).
 */
int hca_file_size(int fd, uint64_t bytes, bool reserve);

/*
 * A sparse memfd of this size that can neither shrink nor grow, nor be sealed
 * otherwise by anybody.  The file descriptor, or -errno with the line set
 * (RLIMIT_FSIZE, no memory...).
 */
int hca_segment_create(const char *name, uint64_t bytes);

/* What protects a segment that its owner alone may write to. */
enum hca_guards {
	HCA_SEALED = 1,		/* no mapping but its creator's is writable */
	HCA_SIGNED = 2,		/* the kernel tells which process created it */
};

/*
 * The same, mapped, for everybody else to read, and empty: nobody was quick
 * enough to map or write it before it was sealed.  *guards: enum hca_guards, as
 * far as this kernel has them (all since Linux 5.1); the same can be demanded of
 * those of others.
 */
int hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards);

/*
 * Have memory behind a piece of a segment now, where the system would not
 * promise it (vm.overcommit_memory=2) and touching it later could be a SIGBUS.
 * Elsewhere nothing is done.  0 or -errno (silent).
 */
int hca_segment_reserve(int fd, uint64_t offset, uint64_t bytes);

/*
 * Descriptor `fd` of process `pid`, if it is a sealed memfd of this size that
 * belongs to this user.  A new descriptor or -errno (silent).
 */
int hca_segment_open(pid_t pid, int fd, uint64_t bytes);
/* The same of one that only `pid` itself writes to, with these guards: to be read. */
int hca_segment_open_own(pid_t pid, int fd, uint64_t bytes, unsigned guards);

/* Shared mapping, kept out of core dumps and of children of fork; NULL with errno. */
void *hca_segment_map(int fd, uint64_t offset, uint64_t bytes);
const void *hca_segment_view(int fd, uint64_t bytes);

/*
 * Field 22 of /proc/<pid>/stat; or 0 with errno: ENOENT or ESRCH when there is no
 * such process or only the zombie of one whose threads have all ended, else it
 * could not be read.
 */
uint64_t hca_process_start_time(pid_t pid);

/* Is that very process stopped, by a signal or a debugger?  False if that cannot be told. */
bool hca_process_stopped(pid_t pid, uint64_t start_time);

/* A descriptor that polls readable when the process ends, or -1. */
int hca_process_watch(pid_t pid, uint64_t start_time);

/*
 * Is that very process there?  `watch` (-1: none) is quicker and cannot be
 * fooled by a reused pid.
 */
bool hca_process_alive(pid_t pid, uint64_t start_time, int watch);

#endif
