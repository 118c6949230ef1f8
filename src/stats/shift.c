/* shift.c - simultaneous intervals of shifts between two groups of launches. */
#include <math.h>
#include <stdlib.h>

#include "stats/shift.h"
#include "stats/stats.h"

#define CONFIDENCE 0.95
/* Records have 9 digits: smaller deviations are rounding. */
#define ROUNDING 1e-9

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* ---- One group of launches ------------------------------------------------------- */

static int kept(int n)
{
	return n - 2 * (n / SHIFT_TRIM);
}

/*
 * Small trimmed groups get a wider error: without it the draws, whose deviations are from an estimated
 * mean, hold in 92 to 94 % with groups of 8 in tests/stats/test_shift.
 */
static double widening2(int n)
{
	double factor = n < SHIFT_TRIM ? 1 : 1 + 0.3 / (kept(n) - 1);

	return factor * factor;
}

/* The trimmed mean of ascending values, and its squared error, from the winsorised deviations. */
static double trimmed_mean(const double *sorted, int n, double *error2)
{
	int cut = n / SHIFT_TRIM, last = n - cut - 1, inner = kept(n);
	double sum = 0, mean, winsorised, square;

	for (int i = cut; i <= last; i++)
		sum += sorted[i];
	mean = sum / inner;
	winsorised = (sum + cut * (sorted[cut] + sorted[last])) / n;
	square = cut * ((sorted[cut] - winsorised) * (sorted[cut] - winsorised) +
			(sorted[last] - winsorised) * (sorted[last] - winsorised));
	for (int i = cut; i <= last; i++)
		square += (sorted[i] - winsorised) * (sorted[i] - winsorised);
	*error2 = square / ((double)inner * (inner - 1));
	return mean;
}

static int by_size(const void *a, const void *b)
{
	const struct shift_cell *x = a, *y = b;

	if (fabs(x->deviation) != fabs(y->deviation))
		return fabs(x->deviation) < fabs(y->deviation) ? 1 : -1;
	return x->launch - y->launch;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Replace the values of n cells by their deviations, the largest first; returns the mean. */
static double deviations_set(struct shift_cell *cell, int n, double *error2)
{
	double sorted[SHIFT_LAUNCHES_MAX], mean;

	for (int i = 0; i < n; i++)
		sorted[i] = cell[i].deviation;
	qsort(sorted, (size_t)n, sizeof(sorted[0]), ascending);
	mean = trimmed_mean(sorted, n, error2);
	if (*error2 < ROUNDING * ROUNDING)
		*error2 = 0;
	*error2 *= widening2(n);
	for (int i = 0; i < n; i++) {
		cell[i].deviation -= mean;
		if (fabs(cell[i].deviation) < ROUNDING)
			cell[i].deviation = 0;
	}
	qsort(cell, (size_t)n, sizeof(cell[0]), by_size);
	return mean;
}

/* The same moments after the deviations of some launches have changed their sign. */
static double drawn_mean(const struct shift_cell *cell, int n, const signed char *sign,
			 double *error2)
{
	double sorted[SHIFT_LAUNCHES_MAX];
	int low = 0, high = n - 1;

	/* The largest deviations are at the ends. */
	for (int i = 0; i < n; i++) {
		double x = cell[i].deviation * sign[cell[i].launch];

		sorted[x < 0 ? low++ : high--] = x;
	}
	return trimmed_mean(sorted, n, error2);
}

/* ---- One row ---------------------------------------------------------------------- */

/* Cells of a row: the first group's, then the second's; or differences alone, as the second's. */
struct row_cells { struct shift_cell *cell; int n[2]; };

static struct row_cells cells_gather(const struct shift_block *b, int row, bool paired,
				     struct shift_cell *cell)
{
	struct row_cells c = { .cell = cell };

	for (int side = paired; side < 2; side++)
		for (int i = 0; i < b->launches[side]; i++) {
			double x = b->value[side][(size_t)row * (size_t)b->launches[side] + (size_t)i];

			if (paired)
				x -= b->value[0][(size_t)row * (size_t)b->launches[0] + (size_t)i];
			if (isnan(x))
				continue;
			*cell++ = (struct shift_cell){ x, i };
			c.n[side]++;
		}
	return c;
}

static void row_estimate(const struct row_cells *c, bool paired, struct shift_row *row)
{
	int a = paired ? c->n[1] : c->n[0], b = c->n[1];
	int least = paired ? SHIFT_PAIRS_MIN : SHIFT_LAUNCHES_MIN;
	double mean[2] = { 0 }, error2[2] = { 0 };

	*row = (struct shift_row){ .shift = NAN, .error = NAN, .low = -INFINITY, .high = INFINITY,
				   .spread = NAN, .launches = { a, b } };
	if (a < least || b < least)
		return;
	for (int side = paired; side < 2; side++)
		mean[side] = deviations_set(c->cell + (side ? c->n[0] : 0), c->n[side],
					    &error2[side]);
	row->shift = mean[1] - mean[0];
	row->error = sqrt(error2[0] + error2[1]);
	row->spread = row->error / sqrt(1 / (double)b + (paired ? 0 : 1 / (double)a));
}

/* |t| of a draw */
static double row_draw(const struct row_cells *c, const signed char *const sign[2])
{
	double mean[2] = { 0 }, error2[2] = { 0 }, shift;

	for (int side = !c->n[0]; side < 2; side++)
		mean[side] = drawn_mean(c->cell + (side ? c->n[0] : 0), c->n[side], sign[side],
					&error2[side]);
	shift = fabs(mean[1] - mean[0]);
	if (shift <= 0)
		return 0;
	return error2[0] + error2[1] > 0 ? shift / sqrt(error2[0] + error2[1]) : INFINITY;
}

/* ---- All rows --------------------------------------------------------------------- */

static size_t block_cells(const struct shift_block *b)
{
	return (size_t)b->rows * ((size_t)b->launches[0] + (size_t)b->launches[1]);
}

size_t shift_work(const struct shift_block *block, int count)
{
	size_t cells = 1;

	for (int i = 0; i < count; i++)
		cells += block_cells(&block[i]);
	return cells;
}

static void signs_draw(signed char sign[SHIFT_LAUNCHES_MAX], int n, uint64_t *state)
{
	uint64_t bits = 0;

	for (int i = 0; i < n; i++, bits >>= 1) {
		if (i % 64 == 0)
			bits = draw(state);
		sign[i] = bits & 1 ? 1 : -1;
	}
}

/* Raise largest[] to the largest |t| of the block's rows in each draw. */
static void block_draw(const struct shift_block *b, const struct shift_cell *cell,
		       const struct shift_row *row, uint64_t *state, double largest[SHIFT_DRAWS])
{
	signed char first[SHIFT_LAUNCHES_MAX], second[SHIFT_LAUNCHES_MAX];
	size_t stride = (size_t)b->launches[0] + (size_t)b->launches[1];

	for (int d = 0; d < SHIFT_DRAWS; d++) {
		signs_draw(first, b->launches[0], state);
		signs_draw(second, b->launches[1], state);
		for (int r = 0; r < b->rows; r++) {
			struct row_cells c = {
				.cell = (struct shift_cell *)(uintptr_t)cell + (size_t)r * stride,
				.n = { b->paired ? 0 : row[r].launches[0], row[r].launches[1] },
			};

			if (row[r].error > 0)
				largest[d] = fmax(largest[d],
						  row_draw(&c, (const signed char *[]){ first, second }));
		}
	}
}

static double critical_of(double largest[SHIFT_DRAWS])
{
	qsort(largest, SHIFT_DRAWS, sizeof(largest[0]), ascending);
	return largest[(int)ceil(CONFIDENCE * (SHIFT_DRAWS + 1)) - 1];
}

double shift_intervals(const struct shift_block *block, int count, uint64_t seed,
		       struct shift_cell *work, struct shift_row *row)
{
	double largest[SHIFT_DRAWS] = { 0 }, critical;
	struct shift_row *begin = row;
	bool enough = false;

	for (int i = 0; i < count; i++) {
		const struct shift_block *b = &block[i];

		for (int r = 0; r < b->rows; r++) {
			size_t stride = (size_t)b->launches[0] + (size_t)b->launches[1];
			struct row_cells c = cells_gather(b, r, b->paired, work + (size_t)r * stride);

			row_estimate(&c, b->paired, &row[r]);
			enough = enough || !isnan(row[r].shift);
		}
		block_draw(b, work, row, &seed, largest);
		work += block_cells(b);
		row += b->rows;
	}
	critical = critical_of(largest);
	for (; begin < row; begin++) {
		if (isnan(begin->shift))
			continue;
		begin->low = begin->shift - (begin->error > 0 ? critical * begin->error : 0);
		begin->high = begin->shift + (begin->error > 0 ? critical * begin->error : 0);
	}
	return enough ? critical : NAN;
}

bool shift_pairs_help(const struct shift_block *b, struct shift_cell *work)
{
	double ratio[SHIFT_LAUNCHES_MAX];
	size_t count = 0;

	if (b->launches[0] != b->launches[1] || b->launches[0] < SHIFT_PAIRS_MIN)
		return false;
	for (int r = 0; r < b->rows && count < SHIFT_LAUNCHES_MAX; r++) {
		struct shift_row pairs, groups;
		struct row_cells c = cells_gather(b, r, true, work);

		row_estimate(&c, true, &pairs);
		c = cells_gather(b, r, false, work);
		row_estimate(&c, false, &groups);
		if (pairs.error >= 0 && groups.error > 0)
			ratio[count++] = pairs.error * pairs.error / (groups.error * groups.error);
	}
	return count && stats_median_of(ratio, count) <= 2.0 / 3;
}

/* ---- Verdicts --------------------------------------------------------------------- */

enum shift_verdict shift_judge(const struct shift_row *row, double margin, bool up_is_worse)
{
	double within = margin * (1 - 1e-6);	/* records have 9 digits */

	if (row->low > -within && row->high < within)
		return SHIFT_SAME;
	if (row->low > 0)
		return up_is_worse ? SHIFT_WORSE : SHIFT_BETTER;
	if (row->high < 0)
		return up_is_worse ? SHIFT_BETTER : SHIFT_WORSE;
	return SHIFT_UNDECIDED;
}

/* ---- Other numbers of launches ------------------------------------------------------ */

/* The continued fraction of the incomplete beta function (Numerical Recipes, section 6.4). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m <= 300; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 / (1 + even * d);
		c = 1 + even / c;
		h *= d * c;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		h *= d * c;
		if (fabs(d * c - 1) < 1e-14)
			break;
	}
	return h;
}

/* P(|t| > x) with f degrees of freedom: the incomplete beta function of f / (f + x^2). */
static double t_outside(double x, double f)
{
	double a = f / 2, b = 0.5, y = f / (f + x * x), z = x * x / (f + x * x);
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(y) + b * log(z));

	if (x <= 0)
		return 1;
	return y < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, y) / a :
		1 - front * beta_fraction(b, a, z) / b;
}

static double t_quantile(double outside, double f)
{
	double low = 0, high = 1e4;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		*(t_outside(middle, f) > outside ? &low : &high) = middle;
	}
	return high;
}

static double freedom(int a, int b, bool paired)
{
	return kept(b) - 1 + (paired ? 0 : kept(a) - 1);
}

/* The half width of a row's interval with n launches, or pairs; `outside`: the chance beyond it. */
static double half_width(const struct shift_row *row, bool paired, double outside, int n)
{
	return t_quantile(outside, freedom(n, n, paired)) * row->spread *
		sqrt((paired ? 1 : 2) / (double)n);
}

int shift_launches(const struct shift_row *row, bool paired, double critical, double margin)
{
	int n = paired ? SHIFT_PAIRS_MIN : SHIFT_LAUNCHES_MIN;
	double outside, least;

	if (!(row->spread >= 0) || !(critical < INFINITY))
		return SHIFT_NEEDED_MAX;
	outside = t_outside(critical, freedom(row->launches[0], row->launches[1], paired));
	/* With the normal distribution it would be so many. */
	least = half_width(row, paired, outside, SHIFT_NEEDED_MAX) / (margin / 2);
	least *= least * SHIFT_NEEDED_MAX;
	if (least >= SHIFT_NEEDED_MAX)
		return SHIFT_NEEDED_MAX;
	n = least > n ? (int)least : n;
	while (n < SHIFT_NEEDED_MAX && half_width(row, paired, outside, n) > margin / 2)
		n++;
	return n;
}

double shift_found(const struct shift_row *row, double critical)
{
	return row->error > 0 ? (critical + 1.645) * row->error : 0;
}

int shift_exit(const int count[SHIFT_VERDICTS])
{
	if (count[SHIFT_WORSE])
		return 1;
	return count[SHIFT_UNDECIDED] || !(count[SHIFT_SAME] + count[SHIFT_BETTER]) ? 2 : 0;
}
