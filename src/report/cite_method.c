/* cite_method.c - the method sentence: launches, counts, interval, timing, clock, units. */
#include <math.h>
#include <string.h>

#include "report/cite_method.h"

struct span { double least, most; };

/* The range of a member over the cited rows; false: a row lacks it. */
static bool span_of(const struct cite_rows *rows, const char *name, struct span *out)
{
	*out = (struct span){ INFINITY, -INFINITY };
	for (int i = 0; i < rows->count; i++) {
		const json_t *value = json_object_get(rows->row[i].record, name);

		if (!json_is_number(value))
			return false;
		out->least = fmin(out->least, json_number_value(value));
		out->most = fmax(out->most, json_number_value(value));
	}
	return rows->count > 0;
}

/* "20 batches", "1 batch": unit is a noun without its plural. */
static void count(FILE *out, const struct cite_rows *rows, const char *name, const char *unit,
		  const char *plural)
{
	struct span s;

	if (!span_of(rows, name, &s))
		fprintf(out, "%s%s (number %s)", unit, plural, CITE_UNKNOWN);
	else if (s.least == s.most)
		fprintf(out, "%.0f %s%s", s.least, unit, s.least == 1 ? "" : plural);
	else
		fprintf(out, "%.0f to %.0f %s%s", s.least, s.most, unit, plural);
}

static void counts(const struct report_file *f, const struct cite_rows *rows, FILE *out)
{
	struct span s;

	if (f->launches > 1)
		fprintf(out, "%d launches, whose medians count as one value each; ", f->launches);
	else
		fprintf(out, "1 launch; ");
	count(out, rows, "n", "sample", "s");
	fprintf(out, f->launches > 1 ? " of all launches a value" : " a value");
	if (f->launches == 1 && span_of(rows, "batches", &s)) {
		fprintf(out, " in ");
		count(out, rows, "batches", "batch", "es");
	}
	if (json_array_size(json_object_get(f->run, "ways")) > 1)
		fprintf(out, "; the ways take turns");
}

static void interval(const struct report_file *f, const struct cite_rows *rows, FILE *out)
{
	bool any = false;

	for (int i = 0; i < rows->count; i++)
		any = any || !isnan(rows->row[i].low);
	if (!any) {
		fprintf(out, "Interval: none is recorded. ");
		return;
	}
	fprintf(out, "Interval: 95 %%, nonparametric, of the median, from order statistics of ");
	count(out, rows, "ci_n", f->launches > 1 ? "launch" : "batch", "es");
	fprintf(out, f->launches > 1 ? ". " : " of the launch. ");
}

/* Text of a row's timing; NULL: not recorded. */
static const char *timing_text(const char *method)
{
	static const struct { const char *name, *text; } known[] = {
		{ "local", "each pair of ranks times itself" },
		{ "sync", "ranks start at one time of synchronised clocks; the time ends with the last "
			  "rank" },
		{ "barrier", "ranks start after a barrier; the time is the largest of all ranks" },
		{ "osu", "ranks start after a barrier; the time is the mean of all ranks" },
	};

	for (size_t i = 0; method && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, method) == 0)
			return known[i].text;
	return method;
}

static void timing(const struct cite_rows *rows, FILE *out)
{
	const char *last = NULL;
	bool any = false;

	fprintf(out, "Timing: ");
	for (int i = 0; i < rows->count; i++) {
		const json_t *t = json_object_get(rows->row[i].record, "timing");
		const char *method = json_string_value(json_object_get(t, "method"));
		const char *why = json_string_value(json_object_get(t, "why"));

		if (!method || (last && strcmp(last, method) == 0))
			continue;
		fprintf(out, any ? "; " : "");
		cite_text(out, method);
		fprintf(out, " (");
		cite_text(out, timing_text(method));
		if (why) {
			fprintf(out, "; ");
			cite_text(out, why);
		}
		fprintf(out, ")");
		last = method;
		any = true;
	}
	fprintf(out, "%s. ", any ? "" : CITE_UNKNOWN);
}

/* Options that say where the output goes. */
static bool is_output(const char *name)
{
	static const char *const names[] = { "json", "samples", "launch", "overwrite", "continue", "redact",
					     "full", "layout", "percentiles" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void options(const json_t *run, FILE *out)
{
	const char *name, *between = "Options given: ";
	json_t *option;

	json_object_foreach(json_object_get(run, "options"), name, option) {
		bool given;
		const char *value = cite_option(run, name, &given);

		if (!given || !value || is_output(name))
			continue;
		fputs(between, out);
		cite_text(out, name);
		fputc('=', out);
		cite_text(out, value);
		between = ", ";
	}
	fprintf(out, *between == ',' ? "; all others have their defaults. " :
		"All options have their defaults. ");
	(void)option;
}

static void units(const struct report_file *f, FILE *out)
{
	static const char *const text[REPORT_METRIC_COUNT] = {
		[REPORT_LATENCY] = "us are microseconds",
		[REPORT_BANDWIDTH] = "MB/s are 10^6 bytes per second, of all pairs together",
		[REPORT_RATE] = "messages per second are those of all pairs together",
		[REPORT_MOPS] = "Mop/s are 10^6 operations per second of the slowest rank's time",
	};

	fprintf(out, "Units: %s; K, M, G in sizes are powers of 1024.", text[f->metric]);
}

void cite_method(const struct report_file *f, const struct cite_facts *c,
		 const struct cite_rows *rows, FILE *out)
{
	fprintf(out, "Method: ");
	counts(f, rows, out);
	fprintf(out, ". ");
	if (c->placement) {
		fprintf(out, "Ranks: ");
		cite_text(out, c->placement);
		fprintf(out, ". ");
	}
	interval(f, rows, out);
	timing(rows, out);
	fprintf(out, "Clock: CLOCK_MONOTONIC, clock source ");
	cite_text(out, c->clock_source);
	fprintf(out, "; each sample is corrected for the cost of reading the clock. MPI library: ");
	cite_text(out, c->mpi);
	fprintf(out, ". ");
	options(f->run, out);
	if (c->oversubscribed)
		fprintf(out, "The ranks outnumbered the cores. ");
	units(f, out);
	fputc('\n', out);
}
