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

enum { WORDS_MAX = 64, GRACE_S = 10 };

/* ---- Where programs are ------------------------------------------------------------- */

int cli_suite_find(const char *name, char *path, size_t size)
{
	/*
	 * The directory of this command, if installed; or seen from <build>/src/cli/.libs, or from
	 * <build>/src/cli.
	 */
	static const char *const places[] = {
		"", "../../pt2pt/", "../../collective/", "../../apps/", "../../../pt2pt/",
		"../../../collective/", "../../../apps/",
	};
	char self[PATH_MAX], there[PATH_MAX * 2], *real;

	if (cli_directory(self, sizeof(self)))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(there, sizeof(there), "%s/%s%s", self, places[i], name);
		real = access(there, X_OK) ? NULL : realpath(there, NULL);
		if (!real)
			continue;
		snprintf(path, size, "%s", real);
		free(real);
		return 0;
	}
	return -ENOENT;
}

/* ---- A launch ------------------------------------------------------------------------- */

/* Replace the child by the launcher: its words, -np N, the program's words. */
static void become(const struct cli_launch *l)
{
	char *words = strdup(l->launcher), *rest = words, *word, ranks[16];
	const char *argv[WORDS_MAX + 1];
	int count = 0, log;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	log = open(l->log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (!words || log < 0)
		_exit(126);
	dup2(log, 1);
	dup2(log, 2);
	while ((word = strsep(&rest, " ")) && count < WORDS_MAX / 2)
		if (*word)
			argv[count++] = word;
	snprintf(ranks, sizeof(ranks), "%d", l->ranks);
	argv[count++] = "-np";
	argv[count++] = ranks;
	for (int i = 0; l->argv[i] && count < WORDS_MAX; i++)
		argv[count++] = l->argv[i];
	argv[count] = NULL;
	/*
	 * Open MPI refuses more ranks than cores; versions 4 and 5 have different variables for it.
	 */
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
	setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

/* Has it ended within the time? */
static bool ended(pid_t child, unsigned seconds, int *status)
{
	const uint64_t end_ns = rg_now_ns() + seconds * UINT64_C(1000000000);
	const struct timespec look = { .tv_sec = 1 };
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	while (waitpid(child, status, WNOHANG) != child) {
		if (rg_now_ns() >= end_ns)
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
	if (!rc && !ended(child, l->limit_s, &status)) {
		rc = -ETIMEDOUT;
		kill(child, SIGTERM);
		if (!ended(child, GRACE_S, &status)) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return rc;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
