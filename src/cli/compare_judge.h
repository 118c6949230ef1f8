/* compare_judge.h - two campaigns, row by row, with the verdict on each. */
#ifndef CLI_COMPARE_JUDGE_H
#define CLI_COMPARE_JUDGE_H

#include <stdio.h>

#include "cli/cli.h"
#include "report/launches.h"
#include "report/unlike.h"
#include "stats/shift.h"

struct compare_row {
	const struct launches_row *row;	/* of the first campaign: way, bytes, x */
	double median[2];		/* over launches; NaN: none */
	struct shift_row shift;		/* of logarithms, with its interval */
	enum shift_verdict verdict;
	int needed;			/* launches of each side that would decide the row */
	double found;			/* the smallest shift of a logarithm that would be found */
};

/* A program that both campaigns have, and the rows that both have. */
struct compare_program {
	const struct launches_program *side[2];
	bool paired;			/* launches with the same number count as pairs */
	int launches[2];		/* that count */
	int row_count;
	struct compare_row *row;
};

struct compare_unlike {
	enum unlike_kind kind;
	char *program, *what, *value[2];
};

struct comparison {
	const struct launches *side[2];
	bool interleaved;		/* two builds of one campaign that took turns */
	double effect;			/* 0.03 */
	int unlike_count;		/* differences of settings, each once */
	struct compare_unlike *unlike;
	int alone[2];			/* rows that one campaign alone has */
	int program_count, row_count;
	struct compare_program *program;
	double critical;		/* NaN: no row has enough launches */
	int count[SHIFT_VERDICTS];
};

/* Match programs and rows; name differences.  0, or -errno after an error line. */
int comparison_match(const struct launches *a, const struct launches *b, struct comparison *out);
/* Fill intervals and verdicts.  0 or -ENOMEM after an error line. */
int comparison_judge(struct comparison *c, double effect);
void comparison_free(struct comparison *c);

/* "worse" */
const char *comparison_verdict(enum shift_verdict verdict);
/* "stripe, 4096 bytes" */
const char *comparison_row_text(const struct compare_program *p, const struct compare_row *row,
				char *buf, size_t size);

/* Views: compare_text.c, compare_json.c.  0 or -ENOMEM after an error line. */
void comparison_print(const struct comparison *c, FILE *out);
int comparison_json(const struct comparison *c, FILE *out);

#endif
