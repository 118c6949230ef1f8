/* merge.c - several launches of one job as one table. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "report/merge.h"
#include "report/source.h"

/* ---- One job -------------------------------------------------------------------- */

bool report_is_output(const char *option)
{
	static const char *const names[] = { "json", "samples", "launch", "overwrite", "continue",
					     "redact", "full", "layout", "percentiles", "ledger" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], option) == 0)
			return true;
	return false;
}

/* Files of older versions lack members: absent equals absent. */
static bool same(const json_t *a, const json_t *b)
{
	return a && b ? json_equal(a, b) : a == b;
}

static const json_t *option_value(const json_t *run, const char *option)
{
	return json_object_get(json_object_get(json_object_get(run, "options"), option), "value");
}

/* The first option of a whose value differs in b, or NULL. */
static const char *option_differs(const json_t *a, const json_t *b)
{
	const char *name;
	json_t *row;

	json_object_foreach(json_object_get(a, "options"), name, row)
		if (!report_is_output(name) && !same(option_value(a, name), option_value(b, name)))
			return name;
	return NULL;
}

/* Do two lists have the same member in each of their objects? */
static bool same_lists(const json_t *a, const json_t *b, const char *member)
{
	const json_t *item;
	size_t i;

	if (json_array_size(a) != json_array_size(b))
		return false;
	json_array_foreach(a, i, item)
		if (!same(json_object_get(item, member),
			  json_object_get(json_array_get(b, i), member)))
			return false;
	return true;
}

/* A member of the run record, or of an object in an object of it. */
static const json_t *at(const json_t *run, const char *const path[3])
{
	for (int i = 0; i < 3 && path[i]; i++)
		run = json_object_get(run, path[i]);
	return run;
}

bool report_same_job(const struct report_file *a, const struct report_file *b, const char **why)
{
	static const char *const equal[][3] = {
		{ "program" }, { "metric" }, { "ways" }, { "quantity" }, { "x" }, { "app" },
		{ "mpi" }, { "pairs" }, { "oversubscribed" }, { "fabric", "kind" },
		{ "fabric", "spec" }, { "fabric", "nodes" }, { "provenance", "software", "commit" },
		{ "provenance", "software", "dirty" }, { "provenance", "machine", "cpu" },
	};
	const json_t *fabric[] = { json_object_get(a->run, "fabric"),
				   json_object_get(b->run, "fabric") };

	*why = option_differs(a->run, b->run);
	if (!*why)
		*why = option_differs(b->run, a->run);
	for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]) && !*why; i++)
		if (!same(at(a->run, equal[i]), at(b->run, equal[i])))
			*why = equal[i][0];
	if (!*why && !same_lists(json_object_get(fabric[0], "rails"),
				 json_object_get(fabric[1], "rails"), "name"))
		*why = "fabric";
	if (!*why && !same_lists(json_object_get(a->run, "ranks"), json_object_get(b->run, "ranks"),
				 "node"))
		*why = "ranks";
	return !*why;
}

int report_group(const struct report_file *file, int count, int *group)
{
	int jobs = 0;

	for (int i = 0; i < count; i++) {
		const char *why;
		int first = 0;

		while (first < i && !report_same_job(&file[first], &file[i], &why))
			first++;
		group[i] = first < i ? group[first] : jobs++;
	}
	return jobs;
}

/* ---- Numbers -------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- Rows ----------------------------------------------------------------------- */

struct merge_middle {
	const struct report_file *file;
	const struct report_row *row;
};

/* The row of a launch that belongs to row number `index` of the first, or NULL. */
static const struct report_row *partner(const struct report_file *f, const struct report_row *first,
					size_t index)
{
	const struct report_row *row = index < f->row_count ? &f->row[index] : NULL;

	/* Launches of one job mostly have their rows in one order. */
	if (row && row->x == first->x && row->from == first->from && row->to == first->to &&
	    strcmp(row->way, first->way) == 0)
		return row;
	return json_object_get(f->run, "matrix") ? NULL : report_file_row(f, first->way, first->x);
}

/* The sums over launches, and those that worsen a row. */
static void row_gather(struct report_row *out, const struct report_row *row, bool rate,
		       double *sum)
{
	double mean = row->stat[STATS_MEAN];

	*sum += rate ? 1 / mean : mean;
	out->stat[STATS_MIN] = fmin(out->stat[STATS_MIN], row->stat[STATS_MIN]);
	out->stat[STATS_MAX] = fmax(out->stat[STATS_MAX], row->stat[STATS_MAX]);
	out->stat[STATS_N] += row->stat[STATS_N];
	out->valid = out->valid == 0 || row->valid == 0 ? 0 : row->valid < out->valid ?
		row->valid : out->valid;
	out->cut = out->cut || row->cut;
	if (row->converged == REPORT_NOT_CONVERGED)
		out->converged = REPORT_NOT_CONVERGED;
}

/* The spread from launch to launch, of n > 0 medians in ascending order. */
static void spread_set(struct report_row *out, const double *median, int n)
{
	double mean = 0, square = 0;

	for (int i = 0; i < n; i++)
		mean += median[i] / n;
	for (int i = 0; i < n; i++)
		square += (median[i] - mean) * (median[i] - mean);
	if (n > 1)
		out->stat[STATS_SD] = sqrt(square / (n - 1));
	if (n >= MERGE_QUARTILES_MIN)
		out->stat[STATS_IQR] = median[(3 * n + 3) / 4 - 1] - median[(n + 3) / 4 - 1];
}

/* Merge the launches' rows of row number `index`; `median` has room for a value of each. */
static void row_merge(const struct report_file *const *file, int count, size_t index,
		      double *median, struct report_row *out, struct merge_middle *middle)
{
	const struct report_row *first = &file[0]->row[index], *row;
	bool rate = file[0]->metric != REPORT_LATENCY;
	double sum = 0, value;
	size_t low, high;
	int n = 0;

	*out = *first;
	for (int i = 0; i < STATS_ROWS; i++)
		out->stat[i] = NAN;
	out->stat[STATS_N] = 0;
	for (int i = 0; i < count; i++) {
		row = partner(file[i], first, index);
		if (!row || isnan(row->stat[STATS_MEDIAN]))
			continue;
		median[n++] = row->stat[STATS_MEDIAN];
		row_gather(out, row, rate, &sum);
	}
	*middle = (struct merge_middle){ file[0], first };
	if (!n)
		return;
	qsort(median, (size_t)n, sizeof(median[0]), ascending);
	value = n % 2 ? median[n / 2] : (median[n / 2 - 1] + median[n / 2]) / 2;
	for (int i = 0; i < count; i++) {
		row = partner(file[i], first, index);
		if (row && row->stat[STATS_MEDIAN] == median[(n - 1) / 2])
			*middle = (struct merge_middle){ file[i], row };
	}
	out->stat[STATS_MEDIAN] = value;
	out->stat[STATS_MEAN] = rate ? n / sum : sum / n;
	out->stat[STATS_CI_N] = n;
	spread_set(out, median, n);
	if (!stats_interval_ranks((size_t)n, &low, &high))
		return;
	out->stat[STATS_CI_LOW] = median[low - 1];
	out->stat[STATS_CI_HIGH] = median[high - 1];
}

/* ---- Records -------------------------------------------------------------------- */

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *statistic_json(int i, double value)
{
	return statistics[i].kind == STATS_COUNT && isfinite(value) ?
		json_integer((json_int_t)value) : number(value);
}

static json_t *merge_record(const struct report_file *f, const struct report_row *row)
{
	const struct merge_middle *m = &f->source->middle[row - f->row];
	json_t *record = report_file_record(m->file, m->row);

	for (int i = 0; record && i < STATS_ROWS; i++)
		json_object_set_new(record, statistics[i].name,
				    statistic_json(i, row->stat[i]));
	if (!record)
		return NULL;
	json_object_set_new(record, "ci_of", json_string("launches"));
	json_object_set_new(record, "cut", json_boolean(row->cut));
	json_object_set_new(record, "valid", row->valid < 0 ? json_null() : json_boolean(row->valid));
	if (row->converged == REPORT_NOT_CONVERGED)
		json_object_set_new(record, "converged", json_false());
	return record;
}

/* ---- Files ---------------------------------------------------------------------- */

static json_t *run_merge(const struct report_file *first, int count)
{
	json_t *run = json_copy(first->run), *notes = json_copy(json_object_get(run, "notes"));
	char text[128];

	snprintf(text, sizeof(text), "launches: %d; a value is the median over the launches' "
		 "medians", count);
	if (json_is_array(notes)) {
		json_array_append_new(notes, json_string(text));
		json_object_set(run, "notes", notes);
	}
	json_decref(notes);
	json_object_set_new(run, "launches", json_integer(count));
	json_object_set_new(run, "ci_of", json_string("launches"));
	return run;
}

/* The end record, if all launches have one: that of the first which failed, else of the first. */
static json_t *end_merge(const struct report_file *const *file, int count)
{
	const json_t *end = file[0]->end;

	for (int i = 0; i < count; i++) {
		if (!file[i]->end)
			return NULL;
		if (!json_integer_value(json_object_get(end, "status")))
			end = file[i]->end;
	}
	return json_incref((json_t *)(uintptr_t)end);
}

/* Ways are pointers into a run record: those of `out` point into its own. */
static const char *way_in(const json_t *run, const char *name)
{
	const json_t *way;
	size_t i;

	json_array_foreach(json_object_get(run, "ways"), i, way)
		if (strcmp(json_string_value(way), name) == 0)
			return json_string_value(way);
	return name;
}

int report_merge(const struct report_file *const *file, int count, struct report_file *out)
{
	size_t rows = file[0]->row_count;
	double *median = malloc((size_t)count * sizeof(median[0]));
	struct report_file f = {
		.path = strdup(file[0]->path), .schema = file[0]->schema, .launches = count,
		.run = run_merge(file[0], count), .metric = file[0]->metric,
		.row = calloc(rows + 1, sizeof(f.row[0])), .row_count = rows,
		.end = end_merge(file, count), .citable = file[0]->citable,
		.source = calloc(1, sizeof(*f.source)),
	};
	int rc = median && f.path && f.run && f.row && f.source ? 0 : -ENOMEM;

	if (!rc) {
		f.source->middle = calloc(rows + 1, sizeof(f.source->middle[0]));
		f.source->record = merge_record;
		rc = f.source->middle ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < rows && !rc; i++) {
		row_merge(file, count, i, median, &f.row[i], &f.source->middle[i]);
		f.row[i].way = way_in(f.run, f.row[i].way);
	}
	for (int i = 1; i < count; i++)
		citable_merge(&f.citable, &file[i]->citable);
	if (!rc)
		rc = lookup_build(&f.source->lookup, f.row, rows);
	free(median);
	if (rc) {
		rg_error("no memory for %d launches of %zu rows", count, rows);
		report_file_free(&f);
	} else {
		*out = f;
	}
	return rc;
}
