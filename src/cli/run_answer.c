/* run_answer.c - do several rails make a program faster?  Yes or no, and why not. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch.h"
#include "cli/run_answer.h"
#include "cli/run_why.h"
#include "stats/stats.h"
#include "util/err.h"
#include "util/text.h"

/* ---- Values ------------------------------------------------------------------------------ */

struct value { double median, low, high; int n; };	/* low, high: NaN below 6 values */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct value value_of(double *x, int n)
{
	struct value v = { NAN, NAN, NAN, n };
	size_t low, high;

	if (!n)
		return v;
	qsort(x, (size_t)n, sizeof(x[0]), ascending);
	v.median = stats_median_of(x, (size_t)n);
	if (stats_interval_ranks((size_t)n, &low, &high)) {
		v.low = x[low - 1];
		v.high = x[high - 1];
	}
	return v;
}

static int way_find(const struct run_plan *p, const char *name)
{
	for (int b = 0; b < p->builds; b++)
		if (strcmp(p->build[b].over, name) == 0)
			return b;
	return -1;
}

/* The wall times of a way by launch; NaN: not finished. */
static double *times_of(const struct run_launches *r, int way)
{
	double *x = malloc((size_t)r->plan->launches * sizeof(x[0]));

	for (int i = 0; x && i < r->plan->launches; i++)
		x[i] = NAN;
	for (int i = 0; x && i < r->plan->count; i++)
		if (r->plan->item[i].build == way && r->seconds[i] >= 0)
			x[r->plan->item[i].launch] = r->seconds[i];
	return x;
}

/* Drop what is not finished; the number of values left. */
static int known_only(double *x, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (!isnan(x[i]))
			x[kept++] = x[i];
	return kept;
}

/* The share of `than`'s time that `way` saves, launch by launch, in percent. */
static struct value saving(const struct run_launches *r, int way, int than)
{
	double *a = times_of(r, way), *b = times_of(r, than);
	struct value v = { NAN, NAN, NAN, 0 };

	if (a && b) {
		for (int i = 0; i < r->plan->launches; i++)
			a[i] = 100 * (1 - a[i] / b[i]);
		v = value_of(a, known_only(a, r->plan->launches));
	}
	free(a);
	free(b);
	return v;
}

/* ---- The table --------------------------------------------------------------------------- */

static void way_print(const struct run_launches *r, int way, FILE *out)
{
	double *x = times_of(r, way);
	struct value v = { NAN, NAN, NAN, 0 };

	if (x)
		v = value_of(x, known_only(x, r->plan->launches));
	free(x);
	fprintf(out, "%-10s %8d", r->plan->build[way].over, v.n);
	if (v.n)
		fprintf(out, " %12.4g", v.median);
	if (!isnan(v.low))
		fprintf(out, " %12.4g %12.4g", v.low, v.high);
	fputc('\n', out);
}

static char *saving_text(const struct value *v, char *buf, size_t size)
{
	snprintf(buf, size, "%.3g %% [%.3g, %.3g]", v->median, v->low, v->high);
	return buf;
}

/* ---- The answer -------------------------------------------------------------------------- */

static void answer_print(const struct run_launches *r, FILE *out)
{
	int stripe = way_find(r->plan, "stripe"), single = way_find(r->plan, "single");
	struct value v;
	char text[96];

	if (stripe < 0 || single < 0)
		return;
	v = saving(r, stripe, single);
	if (isnan(v.low))
		fprintf(out, "striping: not known from %d launches (6 or more have an interval)\n", v.n);
	else
		fprintf(out, "striping %s: %s less time than over one rail\n",
			v.low > 0 ? "helps" : v.high < 0 ? "harms" : "does not help",
			saving_text(&v, text, sizeof(text)));
}

static void native_print(const struct run_launches *r, FILE *out)
{
	int native = way_find(r->plan, "native");
	char text[96];

	for (int b = 0; b < r->plan->builds && native >= 0; b++) {
		struct value v = saving(r, b, native);

		if (b != native && !isnan(v.low))
			fprintf(out, "# %s: %s less time than native\n", r->plan->build[b].over,
				saving_text(&v, text, sizeof(text)));
	}
}

static char *ledger_path(const struct run_launches *r)
{
	char *path;

	return asprintf(&path, "%s/" RUN_LEDGER_FILE, r->journal->dir) < 0 ? NULL : path;
}

static void traffic_print(const struct run_ledger *l, FILE *out)
{
	uint64_t bytes = 0, messages = 0, chunks = 0;

	for (int i = 0; i < l->rails; i++) {
		bytes += l->rail[i].bytes;
		messages += l->rail[i].messages;
		chunks += l->rail[i].chunks;
	}
	fprintf(out, "# a launch over stripe: %.4g MB over %d rail%s, %llu messages sent at once, %llu "
		"chunks of large ones\n", (double)bytes / 1e6, l->rails, l->rails == 1 ? "" : "s",
		(unsigned long long)messages, (unsigned long long)chunks);
}

static void why_print(const struct run_launches *r, FILE *out)
{
	char why[RUN_WHY_TEXT], threshold[32], *path = ledger_path(r);
	char *text = path ? rg_file_read(path, RUN_LEDGER_BYTES, NULL) : NULL;
	struct run_ledger l;

	if (text && run_ledger_read(text, &l)) {
		run_why(&l, run_why_threshold(threshold, sizeof(threshold)), why);
		if (*why)
			fprintf(out, "why striping cannot help: %s\n", why);
		traffic_print(&l, out);
	}
	free(text);
	free(path);
}

int run_answer(const struct run_launches *r, FILE *out)
{
	fprintf(out, "# %s: wall time of a launch in s, %d ranks; Low and High: 95 %% interval of the "
		"median over launches\n", r->plan->program[0].name, r->plan->ranks);
	fprintf(out, "# %-8s %8s %12s %12s %12s\n", "Way", "Launches", "Median", "Low", "High");
	for (int b = 0; b < r->plan->builds; b++)
		way_print(r, b, out);
	native_print(r, out);
	answer_print(r, out);
	why_print(r, out);
	return 0;
}
