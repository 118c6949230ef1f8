/* print.c - the table of a program, printed again from its records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"
#include "report/app.h"
#include "report/axis.h"
#include "report/matrix.h"
#include "report/text.h"

static double member(const json_t *row, const char *name)
{
	const json_t *value = json_object_get(row, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static enum report_converged converged_from(const json_t *row)
{
	const json_t *converged = json_object_get(row, "converged");

	if (!json_is_boolean(converged))
		return REPORT_COUNTED;
	return json_is_true(converged) ? REPORT_CONVERGED : REPORT_NOT_CONVERGED;
}

static void slowest_from(const json_t *row, struct report_row *r)
{
	const json_t *pair = json_object_get(row, "slowest_pair");
	const json_t *ranks = json_object_get(pair, "ranks");

	for (size_t i = 0; i < 2; i++)
		r->slowest.rank[i] = (int)json_integer_value(json_array_get(ranks, i));
	r->slowest.median = member(pair, "median");
}

static struct report_row row_from(const json_t *row)
{
	const json_t *valid = json_object_get(row, "valid");
	struct report_row r = {
		.way = json_string_value(json_object_get(row, "way")),
		.bytes = (uint64_t)json_integer_value(json_object_get(row, "bytes")),
		.x = report_row_x(row),
		.from = (int)json_integer_value(json_object_get(row, "from")),
		.to = (int)json_integer_value(json_object_get(row, "to")),
		.valid = json_is_boolean(valid) ? json_is_true(valid) : -1,
		.cut = json_is_true(json_object_get(row, "cut")),
		.converged = converged_from(row),
	};

	for (int i = 0; i < STATS_ROWS; i++)
		r.stat[i] = member(row, statistics[i].name);
	slowest_from(row, &r);
	return r;
}

/* The last size of a killed job may lack some of its ways. */
static struct report_row row_of(const struct report_file *f, const char *way, double x)
{
	const json_t *row = report_file_row(f, way, x);
	struct report_row none = {.way = way, .bytes = (uint64_t)x, .x = x, .valid = -1};

	for (int i = 0; i < STATS_ROWS; i++)
		none.stat[i] = NAN;
	return row ? row_from(row) : none;
}

void report_print_notes(FILE *text, const json_t *run)
{
	const json_t *notes = json_object_get(run, "notes"), *note;
	size_t i;

	json_array_foreach(notes, i, note)
		if (json_is_string(note))
			fprintf(text, "# %s\n", json_string_value(note));
}

static int print_matrix(const struct report_file *f, struct report_table *table)
{
	struct report_matrix shape;
	struct matrix m;
	json_t *row;
	size_t i;
	int rc = matrix_load(&shape, f->run);

	if (rc)
		return rc;
	table->matrix = &shape;
	rc = matrix_open(&m, table);
	if (!rc) {
		json_array_foreach(f->rows, i, row) {
			struct report_row r = row_from(row);

			matrix_row(&m, &r);
		}
		matrix_close(&m);
	}
	matrix_unload(&shape);
	return rc;
}

static void print_app(const struct report_file *f, FILE *text)
{
	struct app_table t;
	json_t *row;
	size_t i;

	app_table_open(&t, text, f->run);
	json_array_foreach(f->rows, i, row)
		app_table_row(&t, row);
	app_table_close(&t);
}

int report_print(const struct report_file *f, FILE *text, bool full)
{
	const char *ways[REPORT_WAYS_MAX], *first;
	struct report_table table = { .text = text, .metric = f->metric, .full = full };
	struct report_axis axis;
	struct text_table t;
	json_t *row;
	size_t i;

	table.ways = ways;
	table.quantity = json_string_value(json_object_get(f->run, "quantity"));
	if (axis_load(&axis, f->run))
		table.axis = &axis;
	json_array_foreach(json_object_get(f->run, "ways"), i, row)
		ways[table.way_count++] = json_string_value(row);
	json_array_foreach(f->rows, i, row) {
		const char *of = json_string_value(json_object_get(row, "ci_of"));

		if (of && strcmp(of, "batches"))
			table.ci_of = of;
	}
	json_array_foreach(f->rows, i, row)
		table.validate = table.validate || json_is_boolean(json_object_get(row, "valid"));
	fprintf(text, "# Railgauge %s: %s\n", json_string_value(json_object_get(f->run, "program")),
		json_string_value(json_object_get(f->run, "title")));
	report_print_notes(text, f->run);
	if (json_object_get(f->run, "matrix")) {
		if (print_matrix(f, &table))
			return -1;
		return ferror(text) ? -1 : 0;
	}
	if (json_object_get(f->run, "app")) {
		print_app(f, text);
		return ferror(text) ? -1 : 0;
	}
	text_open(&t, &table);
	first = ways[0];
	/* Coordinates in the order of the first way, which comes first in each. */
	json_array_foreach(f->rows, i, row) {
		if (strcmp(json_string_value(json_object_get(row, "way")), first))
			continue;
		for (int w = 0; w < table.way_count; w++) {
			struct report_row r = row_of(f, ways[w], report_row_x(row));

			text_row(&t, &r);
		}
	}
	text_close(&t);
	return ferror(text) ? -1 : 0;
}
