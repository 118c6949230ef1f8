/* launch.h - programs of the suite, started by a launcher. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <signal.h>

#include "cli/cli.h"

struct cli_launch {
	/*
	 * "mpirun", with its options, blanks between; its first {n} is the number of ranks.  Without
	 * one -np N follows.
	 */
	const char *launcher;
	int ranks;
	const char *const *argv;	/* the program and its arguments; ends with NULL */
	const char *log;		/* a file that gets all printed text */
	unsigned limit_s;
	int held;			/* a descriptor that the launcher keeps open; 0: none */
	const volatile sig_atomic_t *stop;	/* a signal's handler sets it; NULL: no such end */
};

/* "rg_bw" -> its path, in the build tree or installed.  0 or -ENOENT. */
int cli_suite_find(const char *name, char *path, size_t size);
/* The same in a build directory, an installation's prefix or a directory of programs. */
int cli_suite_find_in(const char *dir, const char *name, char *path, size_t size);
/* The launcher's words, with the number of ranks; NULL: no memory; free() it. */
char *cli_launcher_text(const char *launcher, int ranks);
/* Replace this process by the launcher: its words, then the program's.  Returns -errno, if at all. */
int cli_become(const char *launcher, int ranks, const char *const *program);
/*
 * Run the launcher to its end.  Returns its exit code (127: the command does not exist), 128 +
 * signal, -ETIMEDOUT (it was ended), -EINTR (it was ended because of a stop) or another -errno.
 */
int cli_launch(const struct cli_launch *launch);

#endif
