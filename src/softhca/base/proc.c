/* proc.c - see proc.h. */
#include "softhca/base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Files ----------------------------------------------------------------- */

static const char root[] = "/proc/";

static _Atomic int kept = -1;

void hca_proc_keep(void)
{
	int none = -1, fd;

	if (atomic_load(&kept) >= 0)
		return;
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !atomic_compare_exchange_strong(&kept, &none, fd))
		close(fd);
}

/* Emulators have no robust mutexes: the kernel would not know the list of their threads. */
bool hca_proc_emulated(void)
{
	void *head;
	size_t bytes;

	return syscall(SYS_get_robust_list, 0, &head, &bytes) && errno == ENOSYS;
}

/* Absent by its path, as after chroot; *at: the directory where it may be all the same. */
static bool elsewhere(int *at)
{
	*at = atomic_load(&kept);
	return errno == ENOENT && *at >= 0;
}

int hca_proc_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC), at;

	return fd < 0 && elsewhere(&at) ? openat(at, path + sizeof(root) - 1, flags | O_CLOEXEC)
					: fd;
}

ssize_t hca_proc_link(const char *path, char *text, size_t size)
{
	ssize_t n = readlink(path, text, size);
	int at;

	return n < 0 && elsewhere(&at) ? readlinkat(at, path + sizeof(root) - 1, text, size) : n;
}

int hca_proc_stat(const char *path, struct stat *st)
{
	int rc = stat(path, st), at;

	return rc && elsewhere(&at) ? fstatat(at, path + sizeof(root) - 1, st, 0) : rc;
}

int hca_proc_reopen(int fd, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return hca_proc_open(path, flags);
}

/* /proc shows the processes of the namespace in which it was mounted. */
uint32_t hca_proc_namespace(void)
{
	char text[16];
	ssize_t n = hca_proc_link("/proc/self", text, sizeof(text) - 1);
	struct stat st;

	text[n > 0 ? n : 0] = '\0';
	if (atoi(text) != (int)getpid() || hca_proc_stat("/proc/self/ns/pid", &st))
		return 0;
	return (uint32_t)st.st_ino;
}

/* ---- Processes ------------------------------------------------------------- */

/* Fields of /proc/<pid>/stat. */
struct process {
	char state;
	long threads;		/* a zombie's: itself, and threads that have not ended yet */
	uint64_t start_time;
};

/* 0, or -1 with errno as hca_process_start_time. */
static int check_process(pid_t pid, struct process *p)
{
	char path[32], text[1024], *at;
	ssize_t n;
	int fd, field;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = hca_proc_open(path, O_RDONLY);
	if (fd < 0) {
		/* hidepid= hides processes of other users, and such as others may not trace. */
		if (errno == ENOENT && pid > 0 && (!kill(pid, 0) || errno == EPERM))
			errno = EACCES;
		return -1;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	errno = ESRCH;
	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strrchr(text, ')');	/* the name may hold anything */
	if (!at || at[1] != ' ')
		return -1;
	at += 2;
	*p = (struct process){ .state = *at };
	for (field = 3; field < 22; field++) {
		if (field == 20)
			p->threads = strtol(at, NULL, 10);
		at = strchr(at, ' ');
		if (!at++)
			return -1;
	}
	p->start_time = strtoull(at, NULL, 10) + 1;	/* the first of a machine starts at 0 */
	return 0;
}

/*
 * The state is the first thread's.  After its end, other threads may still be
 * leaving a system call, even if all were killed; or run on for long.
 */
uint64_t hca_process_start_time(pid_t pid)
{
	struct process p;

	if (check_process(pid, &p) || ((p.state == 'Z' || p.state == 'X') && p.threads <= 1))
		return 0;
	return p.start_time;
}

bool hca_process_stopped(pid_t pid, uint64_t start_time)
{
	struct process p;

	return !check_process(pid, &p) && p.start_time == start_time &&
	       (p.state == 'T' || p.state == 't');
}

int hca_process_watch(pid_t pid, uint64_t start_time)
{
#ifdef SYS_pidfd_open
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 && hca_process_start_time(pid) != start_time) {
		close(fd);
		return -1;
	}
	return fd;
#else
	return -1;
#endif
}

bool hca_process_alive(pid_t pid, uint64_t start_time, int watch)
{
	struct pollfd p = { .fd = watch, .events = POLLIN };
	uint64_t now;

	if (watch >= 0)
		return poll(&p, 1, 0) != 1;
	if (!start_time)
		return false;
	now = hca_process_start_time(pid);
	/* A failed look-up (no descriptor is free, say) must not report a process dead. */
	return now == start_time || (!now && errno != ENOENT && errno != ESRCH);
}
