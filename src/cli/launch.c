/*
 * launch.c - programs of the suite, started by a launcher as a user would.  Their text goes into a
 * file; a launch that exceeds its limit is ended.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/launch.h"
#include "cli/library.h"
#include "util/clock.h"

enum { WORDS_MAX = 256, GRACE_S = 10 };

/* ---- Where programs are ------------------------------------------------------------- */

static int find_at(const char *dir, const char *const places[], const char *name, char *path,
		   size_t size)
{
	char there[PATH_MAX * 2], *real;

	for (int i = 0; places[i]; i++) {
		snprintf(there, sizeof(there), "%s/%s%s", dir, places[i], name);
		real = access(there, X_OK) ? NULL : realpath(there, NULL);
		if (!real)
			continue;
		snprintf(path, size, "%s", real);
		free(real);
		return 0;
	}
	return -ENOENT;
}

int cli_suite_find(const char *name, char *path, size_t size)
{
	/*
	 * The directory of this command, if installed; or seen from <build>/src/cli/.libs, or from
	 * <build>/src/cli.
	 */
	static const char *const places[] = {
		"", "../../pt2pt/", "../../collective/", "../../apps/", "../../../pt2pt/",
		"../../../collective/", "../../../apps/", "../../../", "../../", NULL,
	};
	char self[PATH_MAX];

	return cli_directory(self, sizeof(self)) ? -ENOENT : find_at(self, places, name, path, size);
}

int cli_suite_find_in(const char *dir, const char *name, char *path, size_t size)
{
	static const char *const places[] = {
		"bin/", "pt2pt/", "collective/", "apps/", "", NULL,
	};

	return find_at(dir, places, name, path, size);
}

/* ---- A launch ------------------------------------------------------------------------- */

char *cli_launcher_text(const char *launcher, int ranks)
{
	const char *place = strstr(launcher, "{n}");
	char *text = NULL;
	int length;

	if (place)
		length = asprintf(&text, "%.*s%d%s", (int)(place - launcher), launcher, ranks,
				  place + strlen("{n}"));
	else
		length = asprintf(&text, "%s -np %d", launcher, ranks);
	return length < 0 ? NULL : text;
}

/* The child reads nothing and prints into the log.  Its parent's death ends it. */
static bool child_prepare(const struct cli_launch *l)
{
	int log = open(l->log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	int nothing = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (l->held)
		fcntl(l->held, F_SETFD, 0);
	return log >= 0 && nothing >= 0 && dup2(nothing, 0) == 0 && dup2(log, 1) == 1 &&
	       dup2(log, 2) == 2;
}

/* Replace the child by the launcher. */
static void become(const struct cli_launch *l)
{
	if (!child_prepare(l))
		_exit(126);
	_exit(cli_become(l->launcher, l->ranks, l->argv) == -ENOMEM ? 126 : 127);
}

int cli_become(const char *launcher, int ranks, const char *const *program)
{
	char *words = cli_launcher_text(launcher, ranks), *rest = words, *word;
	const char *argv[WORDS_MAX + 1];
	int count = 0;

	if (!words)
		return -ENOMEM;
	while ((word = strsep(&rest, " ")) && count < WORDS_MAX / 2)
		if (*word)
			argv[count++] = word;
	for (int i = 0; program[i] && count < WORDS_MAX; i++)
		argv[count++] = program[i];
	argv[count] = NULL;
	/*
	 * Open MPI refuses more ranks than cores; versions 4 and 5 have different variables for it.
	 */
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
	setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
	execvp(argv[0], (char *const *)argv);
	count = -errno;
	free(words);
	return count;
}

static bool is_stopped(const struct cli_launch *l)
{
	return l->stop && *l->stop;
}

/* Has it ended, within the time and (stops) before a stop? */
static bool ended(const struct cli_launch *l, pid_t child, unsigned seconds, bool stops,
		  int *status)
{
	const uint64_t end_ns = rg_now_ns() + seconds * UINT64_C(1000000000);
	const struct timespec look = { .tv_sec = 1 };
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	while (waitpid(child, status, WNOHANG) != child) {
		if (rg_now_ns() >= end_ns || (stops && is_stopped(l)))
			return false;
		sigtimedwait(&children, NULL, &look);
	}
	return true;
}

int cli_launch(const struct cli_launch *l)
{
	sigset_t children, before;
	int status = 0, rc;
	pid_t child;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, &before);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		become(l);
	}
	rc = child < 0 ? -errno : 0;
	if (!rc && !ended(l, child, l->limit_s, true, &status)) {
		rc = is_stopped(l) ? -EINTR : -ETIMEDOUT;
		kill(child, SIGTERM);
		if (!ended(l, child, GRACE_S, false, &status)) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return rc;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
