/*
 * citable.h - can the values of a file be cited as they are?  The verdict follows from the file's
 * records alone: from those that are being written, and equally from those that are read.
 */
#ifndef REPORT_CITABLE_H
#define REPORT_CITABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "report/disturbance.h"

/* Fewer launches give no 95 % interval of a median: 1 - 2 / 2^5 is less. */
enum { CITABLE_LAUNCHES_MIN = 6 };

/* Reasons why not. */
enum citable_reason {
	CITABLE_OVERSUBSCRIBED,	/* more ranks than CPUs */
	CITABLE_UNBOUND,	/* a rank may use several cores */
	CITABLE_SHARED,		/* two ranks are bound to one core */
	CITABLE_GOVERNOR,	/* known, and not "performance" */
	CITABLE_DOUBT,		/* the machine cannot keep the times of the fabric's model */
	CITABLE_NOISE,		/* disturbed rows (disturbance.h) */
	CITABLE_UNCONVERGED,
	CITABLE_CUT,
	CITABLE_INVALID,	/* validation failed */
	CITABLE_LAUNCHES,	/* too few */
	CITABLE_EMPTY,		/* no row */
	CITABLE_STATUS,		/* an exit code other than 0 */
	CITABLE_UNFINISHED,	/* no end record */
	CITABLE_UNRECORDED,	/* facts that the file lacks, or that the machine does not tell */
	CITABLE_REASONS
};
#define CITABLE_BIT(reason) (1u << (reason))
/* Reasons why the values themselves may be off, with any number of launches. */
#define CITABLE_DOUBTFUL (CITABLE_BIT(CITABLE_OVERSUBSCRIBED) | CITABLE_BIT(CITABLE_DOUBT) | \
			  CITABLE_BIT(CITABLE_NOISE))

enum { CITABLE_TEXT = 320 };

/* Facts gathered from records.  All zero: none. */
struct citable {
	char reason[CITABLE_REASONS][CITABLE_TEXT];	/* of the run record; "": none */
	char unrecorded[CITABLE_TEXT];			/* "governor, cores of ranks" */
	char fabric[CITABLE_TEXT];			/* a fabric that is no hardware; or "" */
	bool is_app;
	struct disturbance noise;
	size_t rows, unconverged, cut, invalid;
	size_t no_convergence, no_interval;		/* rows without the member */
	long long launches;				/* least of all rows */
	bool ended;
	long long status;
};

/* The run record; forgets all that was gathered. */
void citable_run(struct citable *c, const json_t *run);
void citable_row(struct citable *c, const json_t *row);
void citable_end(struct citable *c, long long status);

/* Add the facts of another launch of the same job. */
void citable_merge(struct citable *c, const struct citable *launch);

/*
 * The reasons, as texts in the order of enum citable_reason and, unless NULL, as bits; no bit: the
 * values can be cited.  A fabric that is no hardware has a text, the last, and no bit.
 */
json_t *citable_why(const struct citable *c, unsigned *reasons);
/* The texts of the reasons with a bit in `these`, joined by "; "; returns buf, "" if none. */
const char *citable_text(const struct citable *c, unsigned these, char *buf, size_t size);

/* '#' lines for people: noise, then the verdict as the last one.  Nothing without rows. */
void citable_print(const struct citable *c, FILE *out);

#endif
