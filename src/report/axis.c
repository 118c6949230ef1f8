/* axis.c - a coordinate of rows other than the message size: in records and as text. */
#include <math.h>
#include <string.h>

#include "report/axis.h"

json_t *axis_record(const struct report_axis *axis)
{
	return json_pack("{s:s, s:s, s:s}", "name", axis->name, "unit", axis->unit, "title",
			 axis->title);
}

json_t *axis_row_record(const struct report_axis *axis, double value)
{
	return json_pack("{s:s, s:f, s:s}", "name", axis->name, "value", value, "unit",
			 axis->unit);
}

bool axis_load(struct report_axis *out, const json_t *run)
{
	const json_t *axis = json_object_get(run, "x");

	if (!axis)
		return false;
	*out = (struct report_axis){
		.name = json_string_value(json_object_get(axis, "name")),
		.unit = json_string_value(json_object_get(axis, "unit")),
		.title = json_string_value(json_object_get(axis, "title")),
	};
	return true;
}

const char *axis_check(const json_t *run)
{
	struct report_axis axis;

	if (axis_load(&axis, run) && (!axis.name || !axis.unit || !axis.title))
		return "an x without name, unit or title";
	return NULL;
}

const char *axis_row_check(const json_t *run, const json_t *row)
{
	const json_t *x = json_object_get(row, "x"), *value = json_object_get(x, "value");
	const char *name = json_string_value(json_object_get(x, "name"));
	struct report_axis axis;

	if (!axis_load(&axis, run))
		return x ? "a row with an x that the run record does not name" : NULL;
	if (!name || strcmp(name, axis.name) || !json_is_number(value) ||
	    !isfinite(json_number_value(value)))
		return "a row without the x that the run record names";
	return NULL;
}

double report_row_x(const json_t *row)
{
	const json_t *x = json_object_get(row, "x");

	return json_number_value(json_object_get(x ? x : row, x ? "value" : "bytes"));
}

char *axis_text(double value, char *buf, size_t size)
{
	snprintf(buf, size, "%.15g", value);
	return buf;
}
