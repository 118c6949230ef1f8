/* check.c - records of a foreign file: types, ranges and names, before other code uses them. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "report/check.h"
#include "report/app.h"
#include "report/axis.h"
#include "report/matrix.h"

static bool has_string(const json_t *record, const char *member)
{
	return json_is_string(json_object_get(record, member));
}

static const char *ways_check(const json_t *ways)
{
	const json_t *way;
	size_t i;

	if (!json_array_size(ways) || json_array_size(ways) > REPORT_WAYS_MAX)
		return "the run record lacks its ways";
	json_array_foreach(ways, i, way)
		if (!json_is_string(way))
			return "the run record lacks its ways";
	return NULL;
}

static const char *schema_check(const json_t *schema, char *why, size_t why_size)
{
	const char *accepted = "accepted: schema 1 and 2";

	if (!json_is_integer(schema) || json_integer_value(schema) < 1) {
		snprintf(why, why_size, "damaged: the run record lacks its schema (%s)", accepted);
		return why;
	}
	if (json_integer_value(schema) <= REPORT_SCHEMA)
		return NULL;
	snprintf(why, why_size, "schema %" JSON_INTEGER_FORMAT " of a newer version of Railgauge "
		 "(%s)", json_integer_value(schema), accepted);
	return why;
}

static const char *run_members_check(const json_t *run, enum report_metric *metric)
{
	const char *wrong;
	int found;

	if (!has_string(run, "program") || !has_string(run, "title") || !has_string(run, "metric"))
		return "the run record lacks program, title or metric";
	found = report_metric_find(json_string_value(json_object_get(run, "metric")));
	if (found < 0)
		return "the run record has an unknown metric";
	*metric = (enum report_metric)found;
	wrong = ways_check(json_object_get(run, "ways"));
	if (!wrong)
		wrong = axis_check(run);
	if (!wrong)
		wrong = matrix_check(run);
	return wrong ? wrong : app_run_check(run);
}

const char *check_run(const json_t *run, struct report_file *f, char *why, size_t why_size)
{
	const json_t *schema = json_object_get(run, "schema");
	const char *wrong = schema_check(schema, why, why_size);

	if (wrong)
		return wrong;
	f->schema = (int)json_integer_value(schema);
	wrong = run_members_check(run, &f->metric);
	if (wrong)
		snprintf(why, why_size, "damaged: %s", wrong);
	return wrong ? why : NULL;
}

/* ---- Rows ----------------------------------------------------------------------- */

/* The run record's own text of a way, so that equal ways are equal pointers; NULL: none. */
static const char *way_of(const json_t *run, const char *name)
{
	const json_t *ways = json_object_get(run, "ways"), *way;
	size_t i;

	json_array_foreach(ways, i, way)
		if (strcmp(json_string_value(way), name) == 0)
			return json_string_value(way);
	return NULL;
}

/* Files of older versions lack statistics that came later: NaN. */
static const char *statistics_take(const json_t *record, double stat[STATS_ROWS])
{
	for (int i = 0; i < STATS_ROWS; i++) {
		const json_t *value = json_object_get(record, statistics[i].name);

		if (value ? !json_is_number(value) && !json_is_null(value) : i == STATS_MEAN)
			return "a row without its statistics";
		stat[i] = json_is_number(value) ? json_number_value(value) : NAN;
	}
	return NULL;
}

static int node_of(const json_t *record, const char *member)
{
	const json_t *node = json_object_get(record, member);
	json_int_t value = json_integer_value(node);

	return value >= 0 && value < REPORT_MATRIX_MAX ? (int)value : 0;
}

static enum report_converged converged_of(const json_t *record)
{
	const json_t *converged = json_object_get(record, "converged");

	if (!json_is_boolean(converged))
		return REPORT_COUNTED;
	return json_is_true(converged) ? REPORT_CONVERGED : REPORT_NOT_CONVERGED;
}

static const char *slowest_take(const json_t *record, struct report_row *row)
{
	const json_t *pair = json_object_get(record, "slowest_pair");
	const json_t *ranks = json_object_get(pair, "ranks"), *median;

	if (!pair)
		return NULL;
	median = json_object_get(pair, "median");
	for (size_t i = 0; i < 2; i++) {
		json_int_t rank = json_integer_value(json_array_get(ranks, i));

		if (!json_is_integer(json_array_get(ranks, i)) || rank < 0 || rank > INT_MAX)
			return "a row with a slowest pair that has no ranks";
		row->slowest.rank[i] = (int)rank;
	}
	if (!json_is_number(median))
		return "a row with a slowest pair that has no median";
	row->slowest.median = json_number_value(median);
	return NULL;
}

const char *check_row(const json_t *run, const json_t *record, struct report_row *out)
{
	const json_t *bytes = json_object_get(record, "bytes");
	const json_t *way = json_object_get(record, "way");
	const json_t *valid = json_object_get(record, "valid");
	struct report_row row = {0};
	const char *wrong;

	if (!json_is_integer(bytes) || json_integer_value(bytes) < 0 || !json_is_string(way) ||
	    !json_is_integer(json_object_get(record, statistics[STATS_N].name)))
		return "a row without way, bytes or n";
	wrong = statistics_take(record, row.stat);
	if (wrong)
		return wrong;
	row.way = way_of(run, json_string_value(way));
	if (!row.way)
		return "a row of a way that the run record does not name";
	wrong = axis_row_check(run, record);
	if (!wrong)
		wrong = matrix_row_check(run, record);
	if (!wrong)
		wrong = app_row_check(run, record);
	if (!wrong)
		wrong = slowest_take(record, &row);
	if (wrong)
		return wrong;
	row.bytes = (uint64_t)json_integer_value(bytes);
	row.x = report_row_x(record);
	row.from = node_of(record, "from");
	row.to = node_of(record, "to");
	row.valid = json_is_boolean(valid) ? json_is_true(valid) : -1;
	row.cut = json_is_true(json_object_get(record, "cut"));
	row.converged = converged_of(record);
	*out = row;
	return NULL;
}

const char *check_end(const json_t *end, size_t row_count, char *why, size_t why_size)
{
	const json_t *rows = json_object_get(end, "rows");

	if (!json_is_integer(json_object_get(end, "status")))
		return "an end record without status";
	if (!rows)
		return NULL;
	if (json_is_integer(rows) && json_integer_value(rows) == (json_int_t)row_count)
		return NULL;
	if (!json_is_integer(rows))
		return "an end record whose rows are no number";
	snprintf(why, why_size, "%zu row%s, and the end record counts %" JSON_INTEGER_FORMAT,
		 row_count, row_count == 1 ? "" : "s", json_integer_value(rows));
	return why;
}
