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
 * A sparse memfd of this size that can neither shrink nor grow.  The file
 * descriptor, or -errno with the line set (RLIMIT_FSIZE, no memory...).
 */
int hca_segment_create(const char *name, uint64_t bytes);

/*
 * Descriptor `fd` of process `pid`, if it is a sealed memfd of this size that
 * belongs to this user.  A new descriptor or -errno (silent).
 */
int hca_segment_open(pid_t pid, int fd, uint64_t bytes);

/* Shared mapping, kept out of core dumps; NULL with errno. */
void *hca_segment_map(int fd, uint64_t offset, uint64_t bytes);

/* Field 22 of /proc/<pid>/stat, or 0 when there is no such process or only its zombie. */
uint64_t hca_process_start_time(pid_t pid);

/* A descriptor that polls readable when the process ends, or -1. */
int hca_process_watch(pid_t pid, uint64_t start_time);

/*
 * Is that very process there?  `watch` (-1: none) is quicker and cannot be
 * fooled by a reused pid.
 */
bool hca_process_alive(pid_t pid, uint64_t start_time, int watch);

#endif
