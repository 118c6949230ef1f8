/* scratch.h - a directory of a test's own, under TMPDIR. */
#ifndef RG_TESTS_SCRATCH_H
#define RG_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>

enum { SCRATCH_PATH = 128 };	/* bytes of such a path, at most */

/* Its path; as a cmocka set-up returns: 0, or -1 if it cannot be made. */
static inline int scratch_make(char path[SCRATCH_PATH])
{
	const char *under = getenv("TMPDIR");
	int n = snprintf(path, SCRATCH_PATH, "%s/rg-test-XXXXXX", under && *under ? under : "/tmp");

	return n < SCRATCH_PATH && mkdtemp(path) ? 0 : -1;
}

/* With all that is in it; 0, or what is not 0. */
static inline int scratch_remove(const char *path)
{
	char command[SCRATCH_PATH + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	return system(command);
}

#endif
