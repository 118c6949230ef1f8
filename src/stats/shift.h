/*
 * shift.h - by how much do two groups of launches differ, in all their rows at once?  Pure functions.
 *
 * A launch gives one value of each row, the logarithm of its median.  The rows of a program are
 * measured in the same launches and share their noise; programs are independent of each other.
 *
 * The shift of a row is the difference of the groups' trimmed means, without the SHIFT_TRIM-th part
 * of the launches at either end, and its error follows from the winsorised deviations: Yuen,
 * Biometrika 61, 1974; Wilcox, Introduction to Robust Estimation, section 5.3.  A launch is the unit:
 * Kalibera and Jones, ISMM 2013.
 *
 * The intervals hold all true shifts together in 95 %: shift +- critical * error, with one critical
 * value for all rows, a quantile of the largest |t| of all rows (Hothorn, Bretz, Westfall, Biometrical
 * Journal 50, 2008; Romano and Wolf, Econometrica 73, 2005).  Its distribution comes from draws: the
 * deviations of a launch from its group's means, of all rows, change their sign together or stay, and
 * each row's t is computed anew, error included (wild bootstrap by signs: Davidson and Flachaire,
 * Journal of Econometrics 146, 2008; exact for symmetric deviations from a known centre).  So launches
 * are resampled whole, groups may differ in spread and number, and small groups have wide intervals:
 * a bootstrap that draws launches repeatedly needs 15 and more.
 * tests/stats/test_shift, 1,000 campaigns of each kind, has 94 % and more from 5 launches on; 92 % where
 * launches have two modes and groups of 8 and 20 are compared, whose trimmed parts differ.
 */
#ifndef RG_SHIFT_H
#define RG_SHIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SHIFT_LAUNCHES_MIN = 5,		/* of each group; pairs need SHIFT_PAIRS_MIN */
	SHIFT_PAIRS_MIN = 8,
	SHIFT_LAUNCHES_MAX = 4096,
	SHIFT_NEEDED_MAX = 1000000,
	SHIFT_TRIM = 8,
	SHIFT_DRAWS = 999,
};

/* A program: the values of its rows in the launches of both groups. */
struct shift_block {
	int rows;
	int launches[2];		/* 0 to SHIFT_LAUNCHES_MAX */
	const double *value[2];		/* [row * launches + launch]; NaN: not measured */
	/*
	 * Launch i of one group is the neighbour in time of launch i of the other, and their noise
	 * is shared: the differences count.  As many launches in both.
	 */
	bool paired;
};

struct shift_row {
	double shift;		/* of the second group from the first; NaN: too few launches */
	double error;		/* its standard error */
	double low, high;	/* the interval; -INFINITY and INFINITY: too few launches */
	double spread;		/* deviation of a launch, or of a pair's difference */
	int launches[2];	/* that have the row */
};

/* Working memory: a launch of a row, or a pair of it. */
struct shift_cell {
	double deviation;
	int launch;
};

/* Cells of working memory for these blocks. */
size_t shift_work(const struct shift_block *block, int count);
/*
 * Fill `row` for the rows of all blocks, one after another.  Returns the critical value, NaN if no row
 * has enough launches.  The seed decides the draws: the same input gives the same result.
 */
double shift_intervals(const struct shift_block *block, int count, uint64_t seed,
		       struct shift_cell *work, struct shift_row *row);

/*
 * Do pairs narrow the intervals?  The squared error of the median row is at most two thirds of that
 * without pairs; fewer degrees of freedom cost about as much.
 */
bool shift_pairs_help(const struct shift_block *block, struct shift_cell *work);

enum shift_verdict { SHIFT_SAME, SHIFT_BETTER, SHIFT_WORSE, SHIFT_UNDECIDED, SHIFT_VERDICTS };

/*
 * same: the interval lies within +-margin, the logarithm of 1 + effect; else worse or better: it
 * excludes 0.  An interval that reaches the margin, as a shift of exactly the effect does, is not
 * within.  `up_is_worse`: a latency.
 */
enum shift_verdict shift_judge(const struct shift_row *row, double margin, bool up_is_worse);

/*
 * Launches of each group, or pairs, that would decide a row: the half width of its interval is at
 * most margin / 2 then, so that any shift is either within +-margin or not 0.  The spread and the
 * number of rows, which decides the critical value, are those of this comparison.
 * SHIFT_NEEDED_MAX: as many or more.
 */
int shift_launches(const struct shift_row *row, bool paired, double critical, double margin);

/* The smallest shift that the row's interval excludes from 0 in 95 % of all cases. */
double shift_found(const struct shift_row *row, double critical);

/* The exit code of so many rows of each verdict: 1: one is worse; 0: each is same or better; 2: otherwise. */
int shift_exit(const int count[SHIFT_VERDICTS]);

#endif
