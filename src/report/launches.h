/*
 * launches.h - the launches of a campaign as values: the median of each row in each launch.
 *
 * The operand of a command is one of
 *	DIR		a campaign (campaign.h) of one build, or a directory of result files, *.jsonl
 *	DIR:NAME	one build of a campaign
 *	FILE		a result file: one launch
 */
#ifndef REPORT_LAUNCHES_H
#define REPORT_LAUNCHES_H

#include "report/report.h"

struct launches_row {
	char *way;
	uint64_t bytes;
	double x;			/* as in report_row */
	int from, to;			/* of a matrix */
	double *median;			/* by launch, in the metric's unit; NaN: none, or not valid */
};

struct launches_program {
	char *name;			/* "rg_bw" */
	enum report_metric metric;
	bool is_matrix;
	int count;			/* launches, in the order of time as far as it is known */
	json_t **run, **end;		/* by launch: its records of these types */
	long long *number;		/* by launch: its number in the campaign, or its place */
	size_t row_count;
	struct launches_row *row;
};

struct launches {
	char *operand;
	char *dir, *build;		/* of a campaign, the directory's real path; else NULL */
	bool interleaved;		/* builds of the campaign took turns */
	int program_count;
	struct launches_program *program;
	int failed;			/* launches that failed or have no end record: left out */
	int invalid;			/* values whose validation failed: left out */
	int copies;			/* launches equal to an earlier one, which count as well */
};

/*
 * Read an operand.  0, -EINVAL (damaged, foreign or mixed: launches of a program with unlike
 * settings; nothing left) or another -errno, after one error line.
 */
int launches_read(const char *operand, struct launches *out);
void launches_free(struct launches *l);

#endif
