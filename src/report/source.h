/* source.h - the origin of the records of a report_file: a stream, or merged launches. */
#ifndef REPORT_SOURCE_H
#define REPORT_SOURCE_H

#include "report/lookup.h"
#include "report/report.h"

struct report_source {
	FILE *in;		/* NULL: merged */
	char *line;
	size_t room, length;
	bool torn;		/* the last line lacks its newline */
	size_t number;		/* of the line, from 1 */
	size_t row_room;
	struct lookup lookup;
	/* Merged: the record of a row, and by row the launch in the middle (merge.c). */
	json_t *(*record)(const struct report_file *f, const struct report_row *row);
	struct merge_middle *middle;
};

#endif
