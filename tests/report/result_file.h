/* result_file.h - the result file of a test of src/report, in a directory of its own. */
#ifndef TESTS_RESULT_FILE_H
#define TESTS_RESULT_FILE_H

#include "scratch.h"
#include "util/err.h"

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];

/* `test` is the name in error lines.  As a cmocka set-up returns. */
static inline int result_file_make(const char *test)
{
	rg_set_program(test);
	if (scratch_make(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/r.jsonl", dir);
	return 0;
}

/* A cmocka tear-down. */
static inline int teardown(void **state)
{
	(void)state;
	return scratch_remove(dir);
}

#endif
