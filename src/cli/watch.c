/*
 * watch.c - a warning at the end of a job in which the layer never saw MPI_Init.
 *
 * A started program may silently drop the layer: a script that starts a static program, env with
 * another LD_PRELOAD, a setuid program.  exec is replaced by the program, so a separate process
 * watches.  The watcher is no child of the program, so it does not disturb wait() and SIGCHLD.
 * The watcher ends when the layer reports MPI_Init, or else when the program ends.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/watch.h"
#include "util/err.h"
#include "util/told.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
	LOOK_MS = 200,			/* where the kernel has no descriptors of processes */
	FDS_MAX = 65536,
};

static void close_from(unsigned first, unsigned last)
{
	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	for (unsigned fd = first; fd <= last && fd < FDS_MAX; fd++)
		close((int)fd);
}

/*
 * Close other descriptors: a launcher waits until all writers of its pipes have ended.  `end` may
 * be -1.
 */
static void close_others(int word, int end)
{
	unsigned low = (unsigned)(word < end || end < 0 ? word : end);
	unsigned high = (unsigned)(word > end ? word : end);

	close_from(0, STDERR_FILENO - 1);
	close_from(STDERR_FILENO + 1, low - 1);
	close_from(low + 1, high - 1);
	close_from(high + 1, ~0u);
}

/* Wait until the layer reports or the program ends.  Did the layer report? */
static bool await(pid_t program, int word, int end)
{
	struct pollfd at[2] = { { .fd = word, .events = POLLIN }, { .fd = end, .events = POLLIN } };

	for (;;) {
		poll(at, 2, end < 0 ? LOOK_MS : -1);
		if (at[0].revents)
			return true;
		if (at[1].revents || (end < 0 && kill(program, 0) && errno == ESRCH))
			break;
	}
	/* A report before the end may be seen after it. */
	return poll(at, 1, 0) > 0;
}

/* Standard error may be closed: keep its number unused. */
static int above_standard(int fd)
{
	int high = fd < 0 || fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (high != fd)
		close(fd);
	return high;
}

static _Noreturn void watch(pid_t program, const char *name, int word, int end)
{
	/* Leave the process group that a launcher ends when a rank has failed. */
	setsid();
	close_others(word, end);
	if (chdir("/") || !await(program, word, end))
		rg_warn("%s has ended and the layer has seen no MPI_Init: no message went over rails "
			"(beyond its reach: programs that are statically linked or setuid, set "
			"LD_PRELOAD themselves, open a second MPI library by its path, or have "
			"sessions of MPI in place of MPI_Init)", name);
	_exit(0);
}

void cli_watch(const char *name)
{
	const pid_t program = getpid();
	int word, end;
	pid_t child;

	/* A job gets a single line; the programs that a watched program starts are watched, too. */
	if (rg_launch_rank() > 0 || told_listens())
		return;
	word = above_standard(told_listen());
	if (word < 0)
		return;
	end = above_standard((int)syscall(SYS_pidfd_open, program, 0));
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			watch(program, name, word, end);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	close(word);
	if (end >= 0)
		close(end);
}
