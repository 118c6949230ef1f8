/* report.c - a report: passes each row to every view. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/err.h"
#include "report/acceptance.h"
#include "report/app.h"
#include "report/axis.h"
#include "report/learned.h"
#include "report/matrix.h"
#include "report/merge.h"
#include "report/print.h"
#include "report/record.h"
#include "report/redact.h"
#include "report/text.h"

struct report {
	struct record_file json;
	struct text_table text;
	struct matrix matrix;	/* used instead if the table has one */
	struct app_table app;	/* used instead if the run record has one */
	struct report_table table;
	struct citable citable;
	uint64_t opened_ns;
	int row_count, error;
};

json_t *report_string(const char *text)
{
	json_t *string = json_string(text);
	char *copy;

	if (string)
		return string;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	string = json_string(copy);
	free(copy);
	return string;
}

static json_t *matrix_record(const struct report_table *t)
{
	json_t *names = json_array(), *labels = json_array();

	for (int i = 0; i < t->matrix->count; i++)
		json_array_append_new(names, report_string(t->matrix->names[i]));
	for (int i = 0; i < t->way_count; i++)
		json_array_append_new(labels, report_string(t->matrix->labels[i]));
	return json_pack("{s:o, s:o, s:f, s:b, s:b}", "names", names, "labels", labels, "slow",
			 t->matrix->slow, "alike", (int)t->matrix->alike, "sparse",
			 (int)t->matrix->sparse);
}

/* The record as it is written; takes the reference over. */
static json_t *redacted(const struct report_table *t, json_t *record)
{
	json_t *written = redact_record(t->redact, record);

	json_decref(record);
	record_round(written);
	return written;
}

static json_t *run_record(const struct report_table *t, json_t *run)
{
	json_t *record = record_new("run"), *ways = json_array();

	for (int i = 0; i < t->way_count; i++)
		json_array_append_new(ways, json_string(t->ways[i]));
	json_object_set_new(record, "program", json_string(t->program));
	json_object_set_new(record, "title", json_string(t->title));
	json_object_set_new(record, "metric", json_string(report_metric_name(t->metric)));
	json_object_set_new(record, "unit", json_string(report_metric_unit(t->metric)));
	json_object_set_new(record, "ways", ways);
	if (t->quantity)
		json_object_set_new(record, "quantity", json_string(t->quantity));
	if (t->axis)
		json_object_set_new(record, "x", axis_record(t->axis));
	if (t->matrix)
		json_object_set_new(record, "matrix", matrix_record(t));
	if (run)
		json_object_update(record, run);
	return redacted(t, record);
}

bool report_is_of(const struct report_file *old, const struct report_table *table, json_t *run,
		  const char **why)
{
	const struct report_file now = { .run = run_record(table, run) };
	bool same = now.run && report_same_job(old, &now, why);

	json_decref(now.run);
	return same;
}

/* All views but that of records. */
static void views_row(struct report *r, const struct report_row *row, json_t *record)
{
	app_table_row(&r->app, record);
	citable_row(&r->citable, record);
	if (r->table.matrix)
		matrix_row(&r->matrix, row);
	else if (!r->app.problem)
		text_row(&r->text, row);
	r->row_count++;
}

/* The records of the rows that are kept; NULL: an error line, or none. */
static json_t *kept_records(const struct report_table *t)
{
	json_t *all = t->kept_rows ? json_array() : NULL;

	for (size_t i = 0; i < t->kept_rows; i++) {
		json_t *record = report_file_record(t->kept, &t->kept->row[i]);

		if (!record || json_array_append_new(all, record)) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static void kept_show(struct report *r, const json_t *records)
{
	json_t *record;
	size_t i;

	json_array_foreach(records, i, record)
		views_row(r, &r->table.kept->row[i], record);
}

int report_open(const struct report_table *table, json_t *run, struct report **out)
{
	struct report *r = calloc(1, sizeof(*r));
	json_t *record = run_record(table, run), *kept = kept_records(table);
	int rc = -ENOMEM;

	if (!r || !record || (table->kept_rows && !kept)) {
		rg_error("no memory for a report");
		goto out;
	}
	r->table = *table;
	rc = table->matrix ? matrix_open(&r->matrix, &r->table) : 0;
	if (rc)
		goto out;
	rc = record_open(&r->json, table->json_path, record, kept);
	if (rc) {
		matrix_free(&r->matrix);
		goto out;
	}
	citable_run(&r->citable, record);
	text_open(&r->text, table);
	app_table_open(&r->app, table->text, record);
	r->opened_ns = rg_now_ns();
	if (table->text) {
		fprintf(table->text, "# Railgauge %s: %s\n", table->program, table->title);
		report_print_notes(table->text, record);
	}
	kept_show(r, kept);
	*out = r;
	r = NULL;
out:
	free(r);
	json_decref(record);
	json_decref(kept);
	json_decref(run);
	return rc;
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *percentiles(const struct report_table *table, const struct report_row *row)
{
	json_t *all = json_object();

	for (int i = 0; i < table->percentile_count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%g", table->percentiles[i]);
		json_object_set_new(all, name, number(row->percentile[i]));
	}
	return all;
}

static json_t *row_record(const struct report_table *table, const struct report_row *row)
{
	json_t *record = record_new("row");

	json_object_set_new(record, "way", json_string(row->way));
	json_object_set_new(record, "bytes", json_integer((json_int_t)row->bytes));
	if (table->axis)
		json_object_set_new(record, "x", axis_row_record(table->axis, row->x));
	for (int i = 0; i < STATS_ROWS; i++)
		json_object_set_new(record, statistics[i].name,
				    statistics[i].kind == STATS_COUNT && isfinite(row->stat[i]) ?
					    json_integer((json_int_t)row->stat[i]) :
					    number(row->stat[i]));
	if (table->matrix) {
		json_object_set_new(record, "from", json_integer(row->from));
		json_object_set_new(record, "to", json_integer(row->to));
	}
	if (table->percentile_count)
		json_object_set_new(record, "percentiles", percentiles(table, row));
	json_object_set_new(record, "valid", row->valid < 0 ? json_null() :
			    json_boolean(row->valid));
	json_object_set_new(record, "cut", json_boolean(row->cut));
	json_object_set_new(record, "converged", row->converged == REPORT_COUNTED ? json_null() :
			    json_boolean(row->converged == REPORT_CONVERGED));
	if (row->slowest.rank[0] != row->slowest.rank[1])
		json_object_set_new(record, "slowest_pair",
				    json_pack("{s:[i, i], s:f}", "ranks", row->slowest.rank[0],
					      row->slowest.rank[1], "median", row->slowest.median));
	if (row->extra)
		json_object_update(record, row->extra);
	return redacted(table, record);
}

/* The row as its record has it, so that the table can be printed again to the last digit. */
static struct report_row row_recorded(const struct report_row *row)
{
	struct report_row as = *row;

	for (int i = 0; i < STATS_ROWS; i++)
		as.stat[i] = record_number(row->stat[i]);
	for (int i = 0; i < REPORT_PERCENTILES_MAX; i++)
		as.percentile[i] = record_number(row->percentile[i]);
	return as;
}

int report_row(struct report *r, const struct report_row *row)
{
	const struct report_row as = row_recorded(row);
	json_t *record = row_record(&r->table, row);
	int rc = record_write(&r->json, record);

	views_row(r, &as, record);
	json_decref(record);
	if (rc && !r->error)
		r->error = rc;
	return rc;
}

void report_note(struct report *r, const char *fmt, ...)
{
	va_list args;

	if (!r->text.out)
		return;
	/* A note after the rows follows the views that print late. */
	if (r->row_count) {
		matrix_close(&r->matrix);
		app_table_close(&r->app);
	}
	fprintf(r->text.out, "# ");
	va_start(args, fmt);
	vfprintf(r->text.out, fmt, args);
	va_end(args);
	fputc('\n', r->text.out);
}

int report_close(struct report *r, int status, json_t *extra)
{
	json_t *record = record_new("end"), *why;
	unsigned reasons;
	int rc;

	citable_end(&r->citable, status);
	why = citable_why(&r->citable, &reasons);

	json_object_set_new(record, "status", json_integer(status));
	json_object_set_new(record, "rows", json_integer(r->row_count));
	json_object_set_new(record, "seconds", number((double)(rg_now_ns() - r->opened_ns) / 1e9));
	json_object_set_new(record, "citable", json_boolean(!reasons));
	json_object_set_new(record, "why", why);
	if (extra)
		json_object_update(record, extra);
	record = redacted(&r->table, record);
	record_write(&r->json, record);
	json_decref(extra);
	matrix_close(&r->matrix);
	app_table_close(&r->app);
	text_close(&r->text);
	if (r->text.out) {
		learned_line(record, 1, r->text.out);
		acceptance_print_map(record, r->text.out);
		citable_print(&r->citable, r->text.out);
		acceptance_print_faults(record, r->text.out);
	}
	json_decref(record);
	rc = record_close(&r->json);
	/* A table that cannot be written (full disk, closed pipe) is a failure. */
	if (r->text.out && (fflush(r->text.out) || ferror(r->text.out)) && !rc) {
		rc = -EIO;
		rg_error("the table could not be written: %s", strerror(errno));
	}
	if (!rc)
		rc = r->error;
	free(r);
	return rc;
}
