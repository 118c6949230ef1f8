/*
 * app.c - programs timed as a whole: the text view of their rows.
 *
 * Each way has first the lines that NAS benchmarks print, which their users and parsers know, then
 * '#' lines with the division of each rank's time.  The savings of each way over the first follow
 * after all ways.  All values come from the records, both when the program prints and when
 * `railgauge report` does.
 */
#include <math.h>
#include <stdarg.h>

#include "report/app.h"

enum { RANKS_SHOWN = 16 };

/* ---- Checks ------------------------------------------------------------------- */

static const json_t *problem_of(const json_t *run)
{
	return json_object_get(run, "app");
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static json_int_t integer_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

const char *app_run_check(const json_t *run)
{
	const json_t *p = problem_of(run);
	json_int_t ranks = integer_of(p, "ranks");

	if (!p)
		return NULL;
	if (!json_is_string(json_object_get(p, "class")) ||
	    !json_is_string(json_object_get(p, "size")) ||
	    !json_is_string(json_object_get(p, "operation")) ||
	    !json_is_number(json_object_get(p, "operations")) ||
	    !json_is_integer(json_object_get(p, "iterations")))
		return "the run record's app lacks class, size, iterations or operations";
	return ranks > 0 && ranks <= INT32_MAX ? NULL : "the run record's app lacks its ranks";
}

static bool all_numbers(const json_t *list, size_t count)
{
	const json_t *value;
	size_t i;

	if (json_array_size(list) != count)
		return false;
	json_array_foreach(list, i, value)
		if (!json_is_number(value))
			return false;
	return true;
}

const char *app_row_check(const json_t *run, const json_t *row)
{
	static const char *const lists[] = { "total_s", "communication_s", "sent_bytes" };
	const json_t *times = json_object_get(row, "app");

	for (size_t i = 0; problem_of(run) && i < sizeof(lists) / sizeof(lists[0]); i++)
		if (!all_numbers(json_object_get(times, lists[i]),
				 (size_t)integer_of(problem_of(run), "ranks")))
			return "a row without the times of all ranks";
	return NULL;
}

/* ---- Numbers ---------------------------------------------------------------------- */

static double at(const json_t *times, const char *name, size_t rank)
{
	return json_number_value(json_array_get(json_object_get(times, name), rank));
}

static size_t ranks_of(const json_t *times)
{
	return json_array_size(json_object_get(times, "total_s"));
}

static double sum_of(const json_t *times, const char *name)
{
	double sum = 0;

	for (size_t i = 0; i < ranks_of(times); i++)
		sum += at(times, name, i);
	return sum;
}

static double longest_of(const json_t *times)
{
	double most = 0;

	for (size_t i = 0; i < ranks_of(times); i++)
		most = fmax(most, at(times, "total_s", i));
	return most;
}

/* ---- One way ------------------------------------------------------------------------- */

static void line(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %-16s=%25s\n", name, value);
}

__attribute__((format(printf, 3, 4)))
static void line_number(FILE *out, const char *name, const char *fmt, ...)
{
	char text[64];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	line(out, name, text);
}

static void lines_known(const struct app_table *t, const json_t *row)
{
	const json_t *p = t->problem, *times = json_object_get(row, "app");
	double seconds = longest_of(times);
	double mops = json_number_value(json_object_get(p, "operations")) / fmax(seconds, 1e-9) / 1e6;
	int ranks = (int)ranks_of(times);

	line(t->out, "Class", text_of(p, "class"));
	line(t->out, "Size", text_of(p, "size"));
	line_number(t->out, "Iterations", "%d", (int)integer_of(p, "iterations"));
	line_number(t->out, "Time in seconds", seconds < 1 ? "%.6f" : "%.2f", seconds);
	line_number(t->out, "Total processes", "%d", ranks);
	line_number(t->out, "Mop/s total", "%.2f", mops);
	line_number(t->out, "Mop/s/process", "%.2f", mops / ranks);
	line(t->out, "Operation type", text_of(p, "operation"));
	line(t->out, "Verification", json_is_true(json_object_get(row, "valid")) ? "SUCCESSFUL" :
	     "UNSUCCESSFUL");
}

static void rank_line(FILE *out, const char *who, double total, double communication, double bytes)
{
	fprintf(out, "# %-8s%16.6f%16.6f%16.6f%20.0f\n", who, total, communication,
		total - communication, bytes);
}

static double member(const json_t *row, const char *name)
{
	return json_number_value(json_object_get(row, name));
}

static void lines_of_runs(const struct app_table *t, const json_t *row)
{
	char interval[96] = "none below 6 runs";

	if (json_is_number(json_object_get(row, "ci_low")))
		snprintf(interval, sizeof(interval), "%.2f to %.2f", member(row, "ci_low"),
			 member(row, "ci_high"));
	fprintf(t->out, "# %d runs, Mop/s: mean %.2f, median %.2f, 95 %% interval %s, min %.2f, max "
		"%.2f; shown: the one of median time\n", (int)integer_of(row, "n"),
		member(row, "mean"), member(row, "median"), interval, member(row, "min"),
		member(row, "max"));
}

static void lines_of_ranks(const struct app_table *t, const json_t *row)
{
	const json_t *times = json_object_get(row, "app");
	size_t ranks = ranks_of(times), shown = ranks <= RANKS_SHOWN ? ranks : 0;

	fprintf(t->out, "# %s: seconds; communication includes waiting for others; bytes to other "
		"ranks\n", text_of(row, "way"));
	fprintf(t->out, "# %-8s%16s%16s%16s%20s\n", "rank", "total", "communication", "computation",
		"bytes sent");
	for (size_t i = 0; i < shown; i++) {
		char who[24];

		snprintf(who, sizeof(who), "%zu", i);
		rank_line(t->out, who, at(times, "total_s", i), at(times, "communication_s", i),
			  at(times, "sent_bytes", i));
	}
	rank_line(t->out, "sum", sum_of(times, "total_s"), sum_of(times, "communication_s"),
		  sum_of(times, "sent_bytes"));
	if (ranks > shown)
		fprintf(t->out, "# (of each of %zu ranks: in the file of --json)\n", ranks);
	if (integer_of(row, "n") > 1)
		lines_of_runs(t, row);
}

/* ---- All ways ------------------------------------------------------------------------- */

/* The saving, "12.3 %"; negative: an increase. */
static void less(char *text, size_t size, double was, double is)
{
	if (was > 0)
		snprintf(text, size, "%.1f %%", 100 * (1 - is / was));
	else
		snprintf(text, size, "-");
}

static void lines_compared(const struct app_table *t)
{
	const json_t *first = json_array_get(t->rows, 0), *row;
	const json_t *base = json_object_get(first, "app");
	size_t i;

	fprintf(t->out, "# against %s: less communication (summed up over ranks), less time in "
		"all (of the slowest)\n", text_of(first, "way"));
	fprintf(t->out, "# %-12s%16s%10s%16s%10s%16s\n", "way", "communication", "less", "total",
		"less", "Mop/s");
	json_array_foreach(t->rows, i, row) {
		const json_t *times = json_object_get(row, "app");
		double talk = sum_of(times, "communication_s"), total = longest_of(times);
		char talk_less[24], total_less[24];

		less(talk_less, sizeof(talk_less), sum_of(base, "communication_s"), talk);
		less(total_less, sizeof(total_less), longest_of(base), total);
		fprintf(t->out, "# %-12s%16.6f%10s%16.6f%10s%16.2f\n", text_of(row, "way"), talk,
			talk_less, total, total_less,
			json_number_value(json_object_get(t->problem, "operations")) /
			fmax(total, 1e-9) / 1e6);
	}
}

void app_table_open(struct app_table *t, FILE *out, const json_t *run)
{
	*t = (struct app_table){ .out = out, .problem = json_incref((json_t *)problem_of(run)) };
	if (t->problem)
		t->rows = json_array();
}

void app_table_row(struct app_table *t, json_t *row)
{
	if (!t->rows || !t->out)
		return;
	fprintf(t->out, "# over %s\n", text_of(row, "way"));
	lines_known(t, row);
	lines_of_ranks(t, row);
	fflush(t->out);
	json_array_append(t->rows, row);
}

void app_table_close(struct app_table *t)
{
	if (t->out && json_array_size(t->rows) > 1)
		lines_compared(t);
	json_decref(t->rows);
	json_decref(t->problem);
	*t = (struct app_table){ .out = NULL };
}
