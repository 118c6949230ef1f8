/* launch.h - programs of the suite, by a launcher. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/cli.h"

struct cli_launch {
	const char *launcher;		/* "mpirun", with its options, blanks between */
	int ranks;			/* its -np */
	const char *const *argv;	/* the program and its arguments; ends with NULL */
	const char *log;		/* a file that gets what is printed */
	unsigned limit_s;
};

/* "rg_bw" -> its path, in the build tree or installed.  0 or -ENOENT. */
int cli_suite_find(const char *name, char *path, size_t size);
/*
 * Run it to its end.  The exit code of the launcher (127: there is no such command), 128 + signal,
 * -ETIMEDOUT (it has been ended) or another -errno.
 */
int cli_launch(const struct cli_launch *launch);

#endif
