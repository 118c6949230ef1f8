/*
 * known.h - known differences of a device from the specification.
 *
 * A file of rows; # begins a comment:
 *
 *	CASE: TEXT that the case's message contains when it fails as known
 *		why the device does this (one line or more, indented)
 *
 * Such a case *must* fail, with that text: passing, being skipped or failing with
 * another text is reported.  With "sometimes: " before TEXT it may pass as well.
 * TEXT that begins with "no ", or the signal Alarm clock, names something that
 * never comes; the time to wait for it is short.
 */
#ifndef CONFORMANCE_KNOWN_H
#define CONFORMANCE_KNOWN_H

#include <stdbool.h>
#include <string.h>

struct known {
	char *name, *text, *reason;
	bool sometimes;
	bool met;			/* the case was run */
};

/* -EINVAL: not in this form; -EEXIST: two rows of one case; or what fopen said. */
int known_load(const char *path);
struct known *known_find(const char *name);
bool known_not_to_come(const struct known *known);
/* Rows whose case was not run, printed; their number. */
int known_unmet(void);
void known_free(void);

#endif
