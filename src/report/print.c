/* print.c - the table of a program, printed again from its records. */
#include <math.h>

#include "report/print.h"
#include "report/acceptance.h"
#include "report/app.h"
#include "report/axis.h"
#include "report/learned.h"
#include "report/matrix.h"
#include "report/text.h"

/* The last size of a killed job may lack some of its ways. */
static struct report_row row_of(const struct report_file *f, const char *way, double x)
{
	const struct report_row *row = report_file_row(f, way, x);
	struct report_row none = {.way = way, .bytes = (uint64_t)x, .x = x, .valid = -1};

	for (int i = 0; i < STATS_ROWS; i++)
		none.stat[i] = NAN;
	return row ? *row : none;
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
	int rc = matrix_load(&shape, f->run);

	if (rc)
		return rc;
	table->matrix = &shape;
	rc = matrix_open(&m, table);
	if (!rc) {
		report_each(row, f)
			matrix_row(&m, row);
		matrix_close(&m);
	}
	matrix_unload(&shape);
	return rc;
}

static void print_app(const struct report_file *f, FILE *text)
{
	struct app_table t;

	app_table_open(&t, text, f->run);
	report_each(row, f) {
		json_t *record = report_file_record(f, row);

		if (record)
			app_table_row(&t, record);
		json_decref(record);
	}
	app_table_close(&t);
}

static int verdict_print(const struct report_file *f, FILE *text)
{
	learned_line(f->end, f->launches, text);
	acceptance_print_map(f->end, text);
	citable_print(&f->citable, text);
	acceptance_print_faults(f->end, text);
	return ferror(text) ? -1 : 0;
}

int report_print(const struct report_file *f, FILE *text, bool full)
{
	const char *ways[REPORT_WAYS_MAX], *first;
	struct report_table table = { .text = text, .metric = f->metric, .full = full };
	struct report_axis axis;
	struct text_table t;
	json_t *way;
	size_t i;

	table.ways = ways;
	table.quantity = json_string_value(json_object_get(f->run, "quantity"));
	if (axis_load(&axis, f->run))
		table.axis = &axis;
	json_array_foreach(json_object_get(f->run, "ways"), i, way)
		ways[table.way_count++] = json_string_value(way);
	if (f->launches > 1)
		table.ci_of = "launches";
	report_each(row, f)
		table.validate = table.validate || row->valid >= 0;
	fprintf(text, "# Railgauge %s: %s\n", json_string_value(json_object_get(f->run, "program")),
		json_string_value(json_object_get(f->run, "title")));
	report_print_notes(text, f->run);
	acceptance_print_estimate(f->end, text);
	if (json_object_get(f->run, "matrix")) {
		if (print_matrix(f, &table))
			return -1;
		return verdict_print(f, text);
	}
	if (json_object_get(f->run, "app")) {
		print_app(f, text);
		return verdict_print(f, text);
	}
	text_open(&t, &table);
	first = ways[0];
	/* Coordinates in the order of the first way, which comes first in each. */
	report_each(row, f) {
		if (row->way != first)
			continue;
		for (int w = 0; w < table.way_count; w++) {
			struct report_row r = row_of(f, ways[w], row->x);

			text_row(&t, &r);
		}
	}
	text_close(&t);
	return verdict_print(f, text);
}
