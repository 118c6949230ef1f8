/*
 * conformance.c - the conformance list with both sides of a case in one process, on a virtual
 * clock (main.c of tests/conformance).  Cases that cannot run this way are rows of aside.txt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "../conformance/known.h"

/* CASE: REASON */
static const char *reason_of(const char *name)
{
	static char line[256];
	const char *srcdir = getenv("srcdir");
	char path[4096], *colon;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/virtual/aside.txt", srcdir ? srcdir : "..");
	f = fopen(path, "re");
	if (!f)
		fail("%s: cannot be read", path);
	while (fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		if (*line == '#' || !colon)
			continue;
		*colon = '\0';
		line[strcspn(line + strlen(line) + 1, "\n") + strlen(line) + 1] = '\0';
		if (strcmp(line, name) == 0) {
			fclose(f);
			return colon + 2;
		}
	}
	fclose(f);
	return NULL;
}

int case_start(const struct test *t, int log, pid_t pid[2])
{
	const char *reason;

	pid[0] = case_fork(log);
	if (pid[0])
		return pid[0] > 0;
	reason = reason_of(t->name);
	if (reason)
		skip("%s", reason);
	two_sides(case_side, t);
	exit(0);
}
