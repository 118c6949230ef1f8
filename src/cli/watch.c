/*
 * watch.c - a job in which the layer never saw MPI_Init is told so at its end.
 *
 * What starts may drop the layer without a word: a script that starts a static program, env with
 * another LD_PRELOAD, a setuid program.  exec is replaced by the program, so a process of its own
 * watches.  It is no child of the program's, whose wait() and SIGCHLD are its own, and it ends when the
 * layer says that MPI_Init has been called, or else when the program ends.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "err.h"
#include "told.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { LOOK_MS = 200 };			/* where the kernel has no descriptors of processes */

static void close_all_but(int word, int end)
{
	long most = sysconf(_SC_OPEN_MAX);

	if (most < 0 || most > 65536)
		most = 65536;
	for (int fd = 0; fd < most; fd++)
		if (fd != STDERR_FILENO && fd != word && fd != end)
			close(fd);
}

/* Until the layer has given its word or the program has ended: has it given it? */
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
	/* Said before the end, and seen after it. */
	return poll(at, 1, 0) > 0;
}

static _Noreturn void watch(pid_t program, const char *name, int word, int end)
{
	/* Not of the process group that a launcher ends when one rank has failed. */
	setsid();
	close_all_but(word, end);
	if (chdir("/") || !await(program, word, end))
		rg_warn("%s has ended and the layer has seen no MPI_Init: no message went over rails "
			"(beyond its reach: programs that are statically linked or setuid, set "
			"LD_PRELOAD themselves, or open a second MPI library by its path)", name);
	_exit(0);
}

void cli_watch(const char *name)
{
	const pid_t program = getpid();
	int word, end;
	pid_t child;

	/* One line a job. */
	if (rg_launch_rank() > 0)
		return;
	word = told_listen();
	if (word < 0)
		return;
	end = (int)syscall(SYS_pidfd_open, program, 0);
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
