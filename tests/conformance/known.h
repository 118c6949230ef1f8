/*
 * known.h - where a device is known to differ from the specification.
 *
 * A file of rows; # begins a comment:
 *
 *	CASE: TEXT that the case's message contains when it fails as it is known to
 *		why the device does this (one line or more, indented)
 *
 * Such a case *must* fail, with that text: one that passes, is skipped or fails
 * in another way is news.  With "sometimes: " before TEXT it may pass as well.
 * TEXT that begins with "no ", or the signal Alarm clock, tells of what never
 * comes; nobody waits long for that.
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
