/*
 * disturbance.h - rows that the machine disturbed: the member `noise` of row records.
 *
 * `noise`: wait_ns (ranks were ready to run and had no core, all ranks), wait_ns_most and rank (the
 * rank that waited most), wall_ns (duration of the row's batches), switches (involuntary),
 * steal_ticks (of 10 ms, taken by a hypervisor in span_ns).  null: not known.
 */
#ifndef REPORT_DISTURBANCE_H
#define REPORT_DISTURBANCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * A row is disturbed if a rank had no core for this share of the time.  On an idle machine with a
 * core for each rank, threads of the kernel and of the MPI library take more of few rows, which are
 * short: of 1 to 4 in the 23 rows of a default rg_bw or rg_latency.
 */
#define DISTURBANCE_WAIT_SHARE 0.02
/*
 * A shorter wait is such threads' even if the row is as short: another program takes a core for a
 * slice, which is a millisecond or more.
 */
#define DISTURBANCE_WAIT_NS_MIN 500000
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
