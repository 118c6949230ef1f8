/* sheet.c - medians of one or more jobs as one table. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "report/axis.h"
#include "report/merge.h"
#include "report/sheet.h"

enum { NUMBER = 40, WIDTH = 16, NAME = 48 };

/* ---- The table ------------------------------------------------------------------ */

static bool same(const json_t *a, const json_t *b)
{
	return a && b ? json_equal(a, b) : a == b;
}

bool sheet_fits(const struct report_file *a, const struct report_file *b)
{
	return a->metric == b->metric && !json_object_get(a->run, "matrix") &&
	       !json_object_get(b->run, "matrix") &&
	       same(json_object_get(a->run, "quantity"), json_object_get(b->run, "quantity")) &&
	       same(json_object_get(a->run, "x"), json_object_get(b->run, "x"));
}

/* "results/bw.jsonl" -> "bw" */
static void base_name(const char *path, char *buf, size_t size)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	int length = dot && dot > base ? (int)(dot - base) : (int)strlen(base);

	snprintf(buf, size, "%.*s", length, base);
}

/* The name of a job in a table: that of its file, or its number where files have one name. */
static const char *job_name(const struct sheet *s, int job, char buf[NAME])
{
	char other[NAME];

	base_name(s->job[job]->path, buf, NAME);
	for (int i = 0; i < s->job_count; i++) {
		base_name(s->job[i]->path, other, NAME);
		if (i != job && strcmp(buf, other) == 0) {
			snprintf(buf, NAME, "%d", job + 1);
			break;
		}
	}
	return buf;
}

static void columns_add(struct sheet *s, int job)
{
	const struct report_file *f = s->job[job];
	const json_t *way;
	char base[NAME];
	size_t i;

	job_name(s, job, base);
	json_array_foreach(json_object_get(f->run, "ways"), i, way) {
		struct sheet_column *c = &s->column[s->column_count++];

		*c = (struct sheet_column){ .file = f, .way = json_string_value(way) };
		snprintf(c->label, sizeof(c->label), "%s%s%.40s", s->job_count > 1 ? base : "",
			 s->job_count > 1 ? ":" : "", c->way);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The coordinates of all jobs, each once. */
static void coordinates_take(struct sheet *s)
{
	size_t n = 0, kept = 0;

	for (int i = 0; i < s->job_count; i++)
		report_each(row, s->job[i])
			s->x[n++] = row->x;
	qsort(s->x, n, sizeof(s->x[0]), ascending);
	for (size_t i = 0; i < n; i++)
		if (!kept || s->x[i] != s->x[kept - 1])
			s->x[kept++] = s->x[i];
	s->x_count = kept;
}

int sheet_make(const struct report_file *const *job, int count, struct sheet *out)
{
	struct sheet s = { .job = job, .job_count = count };
	size_t columns = 0, rows = 0;

	for (int i = 0; i < count; i++) {
		columns += json_array_size(json_object_get(job[i]->run, "ways"));
		rows += job[i]->row_count;
	}
	s.column = calloc(columns + 1, sizeof(s.column[0]));
	s.x = calloc(rows + 1, sizeof(s.x[0]));
	if (!s.column || !s.x) {
		rg_error("no memory for a table of %zu rows", rows);
		sheet_free(&s);
		return -ENOMEM;
	}
	for (int i = 0; i < count; i++)
		columns_add(&s, i);
	coordinates_take(&s);
	*out = s;
	return 0;
}

void sheet_free(struct sheet *s)
{
	free(s->column);
	free(s->x);
	*s = (struct sheet){0};
}

/* ---- Values --------------------------------------------------------------------- */

/* Five digits and no exponent; "-": not known. */
static const char *number(double value, char buf[NUMBER])
{
	double size = fabs(value);
	int places = size < 10 ? 4 : size < 100 ? 3 : size < 1000 ? 2 : size < 10000 ? 1 : 0;

	if (isfinite(value) && size < 1e15)
		snprintf(buf, NUMBER, "%.*f", places, value);
	else
		snprintf(buf, NUMBER, isfinite(value) ? "%.5g" : "-", value);
	return buf;
}

/* NaN: no row, or a file without the statistic. */
static double statistic(const struct report_row *row, enum stats_id id)
{
	return row ? row->stat[id] : NAN;
}

static const struct report_row *row_at(const struct sheet_column *c, double x)
{
	return report_file_row(c->file, c->way, x);
}

static const char *unit_of(const struct report_file *f)
{
	return report_metric_unit(f->metric);
}

static const char *x_name(const struct report_file *f)
{
	struct report_axis axis;

	return axis_load(&axis, f->run) ? axis.name : "Size";
}

/* The kind of interval of a job's rows: "launches", "batches", or "" without one. */
static const char *interval_of(const struct report_file *f)
{
	if (f->launches > 1)
		return f->launches >= MERGE_LAUNCHES_MIN ? "launches" : "";
	report_each(row, f)
		if (isfinite(statistic(row, STATS_CI_LOW)))
			return "batches";
	return "";
}

/* ---- Text ----------------------------------------------------------------------- */

static const enum stats_id shown[] = {
	STATS_MEDIAN, STATS_CI_LOW, STATS_CI_HIGH, STATS_MEAN, STATS_MIN, STATS_MAX, STATS_N
};
static const char *const heads[] = { "Median", "Low", "High", "Mean", "Min", "Max", "N" };
enum { SHOWN_BRIEF = 3, SHOWN_FULL = sizeof(shown) / sizeof(shown[0]) };

/* `interval`: its name where it is shown, else NULL. */
static void job_line(const struct sheet *s, int job, const char *mark, const char *interval,
		     FILE *out)
{
	const struct report_file *f = s->job[job];
	const char *program = json_string_value(json_object_get(f->run, "program"));
	const char *of = interval_of(f);
	char base[NAME];

	job_name(s, job, base);
	fprintf(out, "%s %s: %s of %s, %d launch%s", mark, base, program, f->path, f->launches,
		f->launches == 1 ? "" : "es");
	if (*of && interval)
		fprintf(out, "; %s: 95 %% interval of the median over %s%s", interval, of,
			f->launches == 1 ? " of this launch" : "");
	fputs(*of || !interval ? "\n" : "; no interval\n", out);
	if (json_integer_value(json_object_get(f->end, "status")))
		fprintf(out, "%s %s: ended with exit code %" JSON_INTEGER_FORMAT "\n", mark, base,
			json_integer_value(json_object_get(f->end, "status")));
	if (!f->end)
		fprintf(out, "%s %s: did not finish\n", mark, base);
}

static int width_of(const struct sheet_column *c)
{
	int length = (int)strlen(c->label) + 2;

	return length > WIDTH ? length : WIDTH;
}

static void text_head(const struct sheet *s, FILE *out, int values)
{
	const struct report_file *f = s->job[0];
	const char *quantity = json_string_value(json_object_get(f->run, "quantity"));

	fprintf(out, "# %s: %s\n# medians of %s in %s\n",
		json_string_value(json_object_get(f->run, "program")),
		json_string_value(json_object_get(f->run, "title")),
		quantity ? quantity : report_metric_name(f->metric), unit_of(f));
	for (int i = 0; i < s->job_count; i++)
		job_line(s, i, "#", values > 1 ? "Low and High" : NULL, out);
	fprintf(out, "# %-8s", x_name(f));
	for (int c = 0; c < s->column_count && values == 1; c++)
		fprintf(out, "%*s", width_of(&s->column[c]), s->column[c].label);
	for (int v = 0; v < values && values > 1; v++)
		fprintf(out, "%*s", WIDTH, heads[v]);
	if (values > 1 && s->column_count > 1)
		fprintf(out, "  Way");
	fputc('\n', out);
}

/* A line with several values of one column. */
static void text_values(const struct sheet *s, int c, double x, FILE *out, int values)
{
	const struct report_row *row = row_at(&s->column[c], x);
	char text[NUMBER], at[AXIS_TEXT];

	if (!row)
		return;
	fprintf(out, "%-10s", axis_text(x, at, sizeof(at)));
	for (int v = 0; v < values; v++) {
		double value = statistic(row, shown[v]);

		if (shown[v] == STATS_N)
			fprintf(out, "%*.0f", WIDTH, value);
		else
			fprintf(out, "%*s", WIDTH, number(value, text));
	}
	fprintf(out, "%s%s%s\n", s->column_count > 1 ? "  " : "",
		s->column_count > 1 ? s->column[c].label : "", row->cut ? "  cut" : "");
}

static void text_medians(const struct sheet *s, double x, FILE *out)
{
	char text[NUMBER], at[AXIS_TEXT];
	bool cut = false;

	fprintf(out, "%-10s", axis_text(x, at, sizeof(at)));
	for (int c = 0; c < s->column_count; c++) {
		const struct report_row *row = row_at(&s->column[c], x);

		fprintf(out, "%*s", width_of(&s->column[c]),
			number(statistic(row, STATS_MEDIAN), text));
		cut = cut || (row && row->cut);
	}
	fprintf(out, "%s\n", cut ? "  cut" : "");
}

void sheet_text(const struct sheet *s, FILE *out, bool full)
{
	int values = full ? SHOWN_FULL : s->column_count == 1 ? SHOWN_BRIEF : 1;

	text_head(s, out, values);
	for (size_t i = 0; i < s->x_count; i++) {
		if (values == 1)
			text_medians(s, s->x[i], out);
		for (int c = 0; c < s->column_count && values > 1; c++)
			text_values(s, c, s->x[i], out, values);
	}
}

/* ---- CSV ------------------------------------------------------------------------ */

static void csv_text(const char *text, FILE *out)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', out);
}

void sheet_csv_head(FILE *out)
{
	fputs("file,program,way,axis,x,bytes,from,to,unit,launches,ci_of", out);
	for (int i = 0; i < STATS_ROWS; i++)
		fprintf(out, ",%s", statistics[i].name);
	fputs(",valid,cut\n", out);
}

void sheet_csv(const struct report_file *job, FILE *out)
{
	const char *of = interval_of(job), *axis = x_name(job);
	bool matrix = json_object_get(job->run, "matrix");
	char at[AXIS_TEXT];

	report_each(row, job) {
		csv_text(job->path, out);
		fputc(',', out);
		csv_text(json_string_value(json_object_get(job->run, "program")), out);
		fputc(',', out);
		csv_text(row->way, out);
		fputc(',', out);
		csv_text(axis, out);
		fprintf(out, ",%s,%" PRIu64, axis_text(row->x, at, sizeof(at)), row->bytes);
		if (matrix)
			fprintf(out, ",%d,%d", row->from, row->to);
		fprintf(out, "%s,%s,%d,%s", matrix ? "" : ",,", unit_of(job), job->launches, of);
		for (int i = 0; i < STATS_ROWS; i++)
			if (isfinite(row->stat[i]))
				fprintf(out, ",%.9g", row->stat[i]);
			else
				fputc(',', out);
		fprintf(out, ",%s,%d\n", row->valid < 0 ? "" : row->valid ? "1" : "0", row->cut);
	}
}

/* ---- LaTeX ---------------------------------------------------------------------- */

static void latex_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (strchr("&%$#_{}", *text))
			fprintf(out, "\\%c", *text);
		else if (*text == '\\')
			fputs("\\textbackslash{}", out);
		else if (*text == '~' || *text == '^')
			fprintf(out, "\\%c{}", *text);
		else
			fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
}

static void latex_cell(const struct report_row *row, FILE *out)
{
	double low = statistic(row, STATS_CI_LOW), high = statistic(row, STATS_CI_HIGH);
	char text[3][NUMBER];

	fprintf(out, " & %s", row ? number(row->stat[STATS_MEDIAN], text[0]) : "--");
	if (isfinite(low) && isfinite(high))
		fprintf(out, " [%s, %s]", number(low, text[1]), number(high, text[2]));
}

void sheet_latex(const struct sheet *s, FILE *out)
{
	char at[AXIS_TEXT];

	for (int i = 0; i < s->job_count; i++)
		job_line(s, i, "%", "in brackets", out);
	fputs("\\begin{tabular}{r", out);
	for (int c = 0; c < s->column_count; c++)
		fputc('r', out);
	fputs("}\n\\hline\n", out);
	latex_text(x_name(s->job[0]), out);
	for (int c = 0; c < s->column_count; c++) {
		fputs(" & ", out);
		latex_text(s->column[c].label, out);
		fputs(" (", out);
		latex_text(unit_of(s->column[c].file), out);
		fputc(')', out);
	}
	fputs(" \\\\\n\\hline\n", out);
	for (size_t i = 0; i < s->x_count; i++) {
		fputs(axis_text(s->x[i], at, sizeof(at)), out);
		for (int c = 0; c < s->column_count; c++)
			latex_cell(row_at(&s->column[c], s->x[i]), out);
		fputs(" \\\\\n", out);
	}
	fputs("\\hline\n\\end{tabular}\n", out);
}
