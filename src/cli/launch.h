/* launch.h - programs of the suite, started by a launcher. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/cli.h"

struct cli_launch {
	const char *launcher;		/* "mpirun", with its options, blanks between */
	int ranks;			/* the value of -np */
	const char *const *argv;	/* the program and its arguments; ends with NULL */
	const char *log;		/* a file that gets all printed text */
	unsigned limit_s;
};

/* "rg_bw" -> its path, in the build tree or installed.  0 or -ENOENT. */
int cli_suite_find(const char *name, char *path, size_t size);
/*
 * Run the launcher to its end.  Returns its exit code (127: the command does not exist), 128 +
 * signal, -ETIMEDOUT (it was ended) or another -errno.
 */
int cli_launch(const struct cli_launch *launch);

#endif
