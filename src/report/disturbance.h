/*
 * disturbance.h - rows that the machine disturbed: the member `noise` of row records.
 *
 * `noise`: wait_ns (ranks were ready to run and had no core, all ranks), wait_ns_most and rank (the
 * rank that waited most), slices (times that ranks got a core after a wait or a sleep, all ranks),
 * wall_ns (duration of the row's batches), switches (involuntary),
 * steal_ticks (of 10 ms, taken by a hypervisor in span_ns).  null: not known.
 */
#ifndef REPORT_DISTURBANCE_H
#define REPORT_DISTURBANCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * A row is disturbed if waits for a core can have moved its median: a rank had no core for this share
 * of the time,
 */
#define DISTURBANCE_WAIT_SHARE 0.02
/* and for as long as another program's slice, a millisecond or more; a wake-up takes less; */
#define DISTURBANCE_WAIT_NS_MIN 500000
/*
 * and the samples that met a wait, as many as `slices` at most, are more than this times sqrt(n), what
 * the 95 % interval of n independent samples reaches over: k long samples of n move the median by k / 2
 * ranks.  Threads of the kernel and of the MPI library touch a few samples of a row on an idle machine.
 */
#define DISTURBANCE_TOUCHED 1.96
/*
 * With this share the core is another program's too, whose data are in the caches: the row is disturbed
 * however few its samples are.  (Files without `slices`: from DISTURBANCE_WAIT_SHARE on.)
 */
#define DISTURBANCE_SHARED_SHARE 0.25
/* A row is disturbed if a hypervisor took this share of one core. */
#define DISTURBANCE_STEAL_SHARE 0.02
/* A single tick may round up any shorter time. */
#define DISTURBANCE_STEAL_TICKS_MIN 2
#define DISTURBANCE_TICK_NS 10000000	/* USER_HZ is 100 */

enum { DISTURBANCE_ROW_TEXT = 96 };

/* The rows disturbed in one of the two ways, and the row with the largest share. */
struct disturbance_kind {
	size_t rows;
	double share;
	int rank;
	char row[DISTURBANCE_ROW_TEXT];		/* "stripe, 8 bytes" */
};

/* All zero: no row was added. */
struct disturbance {
	size_t rows, disturbed;
	size_t unrecorded;		/* rows without the member */
	size_t unknown;			/* rows whose wait is not known */
	struct disturbance_kind waited, stolen;
};

/* Is the row, a record, disturbed? */
bool disturbance_of_row(const json_t *row);

void disturbance_add(struct disturbance *d, const json_t *row);

/* Add the rows of another launch of the same job. */
void disturbance_merge(struct disturbance *d, const struct disturbance *launch);

/* '#' lines for people: none if no row was disturbed and all waits are known. */
void disturbance_print(const struct disturbance *d, FILE *out);

#endif
