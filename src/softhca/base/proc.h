/*
 * proc.h - /proc, and other processes as it shows them.
 *
 * Paths begin with "/proc/".  hca_proc_keep keeps a descriptor of the directory, so that these
 * functions find the files after chroot, too.  None allocates.
 */
#ifndef HCA_PROC_H
#define HCA_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

void hca_proc_keep(void);

/*
 * Does another program stand in for the kernel (qemu-user)?  It shows a process another /proc of
 * itself than others see, and reserves large address spaces page by page.
 */
bool hca_proc_emulated(void);

/* Like open, readlink and stat. */
int hca_proc_open(const char *path, int flags);
ssize_t hca_proc_link(const char *path, char *text, size_t size);
int hca_proc_stat(const char *path, struct stat *st);

/* Another open file of the same file as `fd`, by its name in /proc; or -1 and errno. */
int hca_proc_reopen(int fd, int flags);

/* The pid namespace of this process; 0: unknown, or /proc shows another one. */
uint32_t hca_proc_namespace(void);

/*
 * Field 22 of /proc/<pid>/stat, + 1; or 0 with errno: ENOENT or ESRCH when no such
 * process exists, or only a zombie, all of whose threads have ended; else the file
 * could not be read.  EACCES: a process of that number exists, and /proc hides it.
 */
uint64_t hca_process_start_time(pid_t pid);

/* Is that very process stopped, by a signal or a debugger?  False if unknown. */
bool hca_process_stopped(pid_t pid, uint64_t start_time);

/* A descriptor that polls readable when the process ends, or -1. */
int hca_process_watch(pid_t pid, uint64_t start_time);

/*
 * Does that very process still run?  `watch` (-1: none) is faster and immune to a
 * reused pid.
 */
bool hca_process_alive(pid_t pid, uint64_t start_time, int watch);

#endif
