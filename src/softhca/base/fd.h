/*
 * fd.h - descriptors of a wire have numbers from 1024 on: programs that call select keep the low
 * ones.
 *
 * The kernel gives numbers below the soft limit (RLIMIT_NOFILE), which is 1024 on most hosts.  The
 * limit is the hard one while such a descriptor is made, and the program's at all other times: so the
 * program and its children, however they are started, find the limit that they were given.
 */
#ifndef HCA_FD_H
#define HCA_FD_H

#include <stddef.h>

/*
 * Around calls that make descriptors: the limit is raised, also for a program that has used up its
 * own.  One thread at a time is between the two; errno is kept.
 */
void hca_fd_begin(void);
void hca_fd_end(void);
/*
 * The same open file at a number from 1024 on, close-on-exec; the old number is closed.  Where the
 * hard limit is too low, or fd < 0: fd.
 */
int hca_fd_raise(int fd);
/* The text of an error; where no descriptor is left it has the limit. */
const char *hca_fd_error(int error, char *text, size_t size);
/* In a child of fork: another thread of the parent may have been between begin and end. */
void hca_fd_after_fork(void);

#endif
