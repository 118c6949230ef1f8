/* axis.h - a coordinate of rows other than the message size. */
#ifndef REPORT_AXIS_H
#define REPORT_AXIS_H

#include "report/report.h"

json_t *axis_record(const struct report_axis *axis);
json_t *axis_row_record(const struct report_axis *axis, double value);
/* Check records.  Returns NULL or the error; a run without an axis is valid. */
const char *axis_check(const json_t *run);
const char *axis_row_check(const json_t *run, const json_t *row);
/* The coordinate of a row's record: the value of its `x`, else its message size. */
double report_row_x(const json_t *row);
/* True, with strings that belong to the record: the run has an axis. */
bool axis_load(struct report_axis *out, const json_t *run);
/* The value in as few digits as possible: "64", "0.25". */
char *axis_text(double value, char *buf, size_t size);
enum { AXIS_TEXT = 32 };

#endif
