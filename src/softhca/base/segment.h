/*
 * segment.h - memory that processes share: sealed memfds, and opening those of other processes.
 *
 * Where the system denies memfd_create (a seccomp filter), or with SOFTHCA_MEMORY=file, segments are
 * files without a name (place.h).  Files cannot be sealed: a peer can shrink its own, and so end the
 * processes that have them mapped.  A process accepts only segments of its own kind.
 */
#ifndef HCA_SEGMENT_H
#define HCA_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Set the size of a file, with (`reserve`) or without allocated blocks.  Beyond
 * RLIMIT_FSIZE the kernel would raise SIGXFSZ, whose default ends the program;
 * this function returns -EFBIG instead.  0 or -errno (silent).
 */
int hca_file_size(int fd, uint64_t bytes, bool reserve);

/* Are the segments of this process files? */
bool hca_segments_are_files(void);
/* Is uid the user of this process, now or when it made its first segment? */
bool hca_segment_of_user(uid_t uid);

/* memfd_create, close-on-exec, and not executable where the kernel has that. */
int hca_memfd(const char *name, unsigned flags);

/*
 * A sparse memfd of this size that can neither shrink nor grow, and to which no
 * process can add seals.  The file descriptor, or -errno with the line set
 * (RLIMIT_FSIZE, no memory...).
 */
int hca_segment_create(const char *name, uint64_t bytes);

/* Protection of a segment that only its owner may write to. */
enum hca_guards {
	HCA_SEALED = 1,		/* no mapping but its creator's is writable */
	HCA_SIGNED = 2,		/* the kernel reports which process created it */
};

/*
 * hca_segment_create, mapped, read-only for all other processes, and empty: no
 * process mapped or wrote it before it was sealed.  *guards: enum hca_guards, as far
 * as this kernel supports them (all since Linux 5.1); hca_segment_open_own can
 * require the same of a peer's segment.
 */
int hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards);

/*
 * Allocate memory for a piece of a segment now, where the system does not
 * guarantee it (vm.overcommit_memory=2, a file) and touching it later could raise SIGBUS.
 * Elsewhere this does nothing.  0 or -errno (silent).
 */
int hca_segment_reserve(int fd, uint64_t offset, uint64_t bytes);

/*
 * Descriptor `fd` of process `pid`, if it is a sealed memfd of this size that
 * belongs to this user.  A new descriptor or -errno (silent); -EMEDIUMTYPE: `fd` is
 * a file, or where files are expected a memfd.
 */
int hca_segment_open(pid_t pid, int fd, uint64_t bytes);
/* hca_segment_open of a segment that only `pid` itself writes to, with these guards; read-only. */
int hca_segment_open_own(pid_t pid, int fd, uint64_t bytes, unsigned guards);

/* Check a descriptor that a member has handed over, as open does: 0, -EPERM or -EMEDIUMTYPE. */
int hca_segment_check(int fd, uint64_t bytes, unsigned guards);

/* Shared mapping, excluded from core dumps and from children of fork; NULL with errno. */
void *hca_segment_map(int fd, uint64_t offset, uint64_t bytes);
const void *hca_segment_view(int fd, uint64_t bytes);

#endif
