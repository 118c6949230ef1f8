/* fd.c - see fd.h. */
#include "softhca/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LOWEST_NUMBER = 1024 };

static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rlimit program_limit;	/* while `raised` */
static bool raised;

static void limit_restore(void)
{
	if (raised)
		setrlimit(RLIMIT_NOFILE, &program_limit);
	raised = false;
}

void hca_fd_begin(void)
{
	struct rlimit hard;
	int before = errno;

	pthread_mutex_lock(&limit_lock);
	if (!getrlimit(RLIMIT_NOFILE, &program_limit) &&
	    program_limit.rlim_cur < program_limit.rlim_max) {
		hard = (struct rlimit){ program_limit.rlim_max, program_limit.rlim_max };
		raised = true;		/* first: a child of fork restores it */
		if (setrlimit(RLIMIT_NOFILE, &hard))
			raised = false;
	}
	errno = before;
}

void hca_fd_end(void)
{
	int before = errno;

	limit_restore();
	pthread_mutex_unlock(&limit_lock);
	errno = before;
}

int hca_fd_raise(int fd)
{
	int high;

	if (fd < 0 || fd >= LOWEST_NUMBER)
		return fd;
	hca_fd_begin();
	high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_NUMBER);
	hca_fd_end();
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

const char *hca_fd_error(int error, char *text, size_t size)
{
	struct rlimit limit;

	if (error == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		snprintf(text, size, "this process has no descriptor left (RLIMIT_NOFILE is %llu; "
			 "accepted: more, ulimit -Hn)", (unsigned long long)limit.rlim_max);
	else
		snprintf(text, size, "%s", strerror(error));
	return text;
}

/*
 * The kernel's table of descriptors grows to such numbers once.  A process with several threads waits
 * for a grace period of RCU then, a process with one thread does not: so it grows at
 * load, before the program starts threads.
 */
__attribute__((constructor)) static void table_grow_early(void)
{
	int before = errno, fd;

	hca_fd_begin();
	fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, LOWEST_NUMBER);
	hca_fd_end();
	if (fd >= 0)
		close(fd);
	errno = before;
}

void hca_fd_after_fork(void)
{
	limit_restore();
	pthread_mutex_init(&limit_lock, NULL);
}
