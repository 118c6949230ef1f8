/* unlike.h - differences between the settings of two launches of a program. */
#ifndef REPORT_UNLIKE_H
#define REPORT_UNLIKE_H

#include <jansson.h>

enum unlike_kind {
	UNLIKE_SETTING,		/* options, fabric, ranks, machine: other values may follow from it */
	UNLIKE_SOFTWARE,	/* version of Railgauge: what a comparison is made for */
	UNLIKE_HOSTS,		/* other hosts, of the same kind */
	UNLIKE_KINDS
};

/* `what`: "window"; a, b: the values as text, "none" where a launch has none. */
typedef void unlike_fn(void *user, enum unlike_kind kind, const char *what, const char *a,
		       const char *b);

/* Calls `each` for every difference between two run records; options of output do not count. */
void report_unlike(const json_t *a, const json_t *b, unlike_fn *each, void *user);

#endif
