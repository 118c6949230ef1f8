/*
 * continued.c - --continue.  Sizes are measured in their order, and the rows of a size come in the
 * order of ways: a file that has no end has the first sizes whole, and perhaps a part of the next.
 */
#include "bench/continued.h"
#include "bench/acceptance.h"
#include "bench/app.h"
#include "bench/options.h"
#include "bench/samples.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is it a program whose rows go by size, or by an axis? */
static bool goes_by_size(const struct bench_job *job)
{
	return !app_is(job) && !acceptance_is(job) && !job->def->tune &&
	       job->def->layout != BENCH_TOURNAMENT;
}

/* The coordinate number n, after `x`, that of the one before. */
static bool coordinate_next(const struct bench_job *job, uint64_t n, double *x)
{
	uint64_t bytes = n ? options_next_size((uint64_t)*x) : job->opt.sizes.min;

	if (job->opt.axis)
		return job->opt.axis->value((int)n, x);
	*x = (double)bytes;
	return bytes <= job->opt.sizes.max;
}

static bool has_all_ways(const struct bench_job *job, const struct report_file *f, size_t first,
			 double x)
{
	size_t ways = (size_t)job->where.way_count;

	for (size_t w = 0; w < ways; w++)
		if (first + w >= f->row_count || f->row[first + w].x != x ||
		    strcmp(f->row[first + w].way, job->where.way[w].name))
			return false;
	return true;
}

static uint64_t sizes_count(const struct bench_job *job, const struct report_file *f)
{
	uint64_t n = 0;
	double x = 0;

	while (coordinate_next(job, n, &x) &&
	       has_all_ways(job, f, n * (size_t)job->where.way_count, x))
		n++;
	return n;
}

/* A file that is none of ours, or damaged, is replaced as without --continue. */
static bool unfinished_read(const struct bench_job *job, struct report_file *f)
{
	int rc;

	if (!job->opt.json || access(job->opt.json, R_OK))
		return false;
	rg_set_quiet(true);
	rc = report_read(job->opt.json, f);
	rg_set_quiet(false);
	if (!rc && !f->end)
		return true;
	if (!rc)
		report_file_free(f);
	return false;
}

static void note(json_t *run, const char *text)
{
	json_t *notes = json_object_get(run, "notes");

	if (notes)
		json_array_append_new(notes, report_string(text));
}

static void kept_note(const struct bench_job *job, json_t *run)
{
	const json_t *old = json_object_get(job->got.kept.run, "continued");
	size_t rows = job->got.kept_sizes * (size_t)job->where.way_count;
	char text[96];

	snprintf(text, sizeof(text), "continued: %zu rows are of a run that was ended", rows);
	note(run, text);
	json_object_set_new(run, "continued", json_pack("{s:I, s:I}", "rows", (json_int_t)rows,
		"times", 1 + json_integer_value(json_object_get(old, "times"))));
}

void continued_find(struct bench_job *job, struct report_table *table, json_t *run)
{
	struct report_file *f = &job->got.kept;
	const char *why = "options";
	char text[128];

	if (!goes_by_size(job) || !unfinished_read(job, f))
		return;
	if (!report_is_of(f, table, run, &why)) {
		snprintf(text, sizeof(text), "measured from the start: another job's rows were "
			 "there (%s)", why);
		note(run, text);
		report_file_free(f);
		return;
	}
	job->got.kept_sizes = sizes_count(job, f);
	if (!job->got.kept_sizes)
		return;
	table->kept = f;
	table->kept_rows = job->got.kept_sizes * (size_t)job->where.way_count;
	kept_note(job, run);
}

/* ---- Samples ----------------------------------------------------------------------------- */

/* "launch,way,bytes,x,...": is it a sample of a row that is kept? */
static bool is_kept(const struct bench_job *job, const char *line)
{
	const char *way = strchr(line, ','), *bytes = way ? strchr(way + 1, ',') : NULL;
	const char *x = bytes ? strchr(bytes + 1, ',') : NULL;
	char *end;
	double value;

	if (!x || !strchr(x, '\n'))
		return false;
	value = strtod(job->opt.axis ? x + 1 : bytes + 1, &end);
	for (size_t i = 0; *end == ',' && i < job->got.kept_sizes; i++)
		if (job->got.kept.row[i * (size_t)job->where.way_count].x == value)
			return true;
	return false;
}

void continued_samples(const struct bench_job *job, FILE *to)
{
	FILE *from = job->got.kept_sizes ? fopen(job->opt.samples, "re") : NULL;
	char *line = NULL;
	size_t room = 0;

	if (!from)
		return;
	while (getline(&line, &room, from) > 0)
		if (is_kept(job, line))
			fputs(line, to);
	free(line);
	fclose(from);
}
