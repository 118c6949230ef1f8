/* run_record.c - the record of a launch. */
#include "config.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_record.h"
#include "report/report.h"
#include "util/err.h"

bool run_record_is_whole(const char *path, const char *program)
{
	struct report_file f;
	const char *of;
	bool whole;

	rg_set_quiet(true);
	whole = access(path, R_OK) == 0 && report_read(path, &f) == 0;
	rg_set_quiet(false);
	if (!whole)
		return false;
	of = json_string_value(json_object_get(f.run, "program"));
	whole = f.end && json_integer_value(json_object_get(f.end, "status")) == 0 && f.row_count &&
		strcmp(of, program) == 0;
	report_file_free(&f);
	return whole;
}

double run_record_seconds(const char *path)
{
	struct report_file f;
	double seconds;

	if (report_read(path, &f))
		return 0;
	seconds = f.row[0].stat[STATS_MEDIAN] / 1e6;
	report_file_free(&f);
	return seconds;
}

static void row_fill(struct report_row *row, double us)
{
	for (int i = 0; i < STATS_ROWS; i++)
		row->stat[i] = NAN;
	row->stat[STATS_MEAN] = row->stat[STATS_MEDIAN] = us;
	row->stat[STATS_MIN] = row->stat[STATS_MAX] = us;
	row->stat[STATS_N] = 1;
	row->stat[STATS_CI_N] = 0;
	row->stat[STATS_OUTLIERS] = 0;
}

int run_record_write(const char *path, const char *program, char *const *words, double seconds)
{
	static const char *const ways[] = { RUN_RECORD_WAY };
	const struct report_table table = {
		.json_path = path, .program = program, .title = "wall time of a launch",
		.metric = REPORT_LATENCY, .quantity = "wall time", .ways = ways, .way_count = 1,
	};
	struct report_row row = { .way = ways[0], .valid = -1, .converged = REPORT_COUNTED };
	json_t *run = json_object();
	struct report *r;
	int count = 0, rc, closed;

	while (words[count])
		count++;
	json_object_set_new(run, "provenance", report_provenance(count, words));
	rc = report_open(&table, run, &r);
	if (rc)
		return rc;
	row_fill(&row, seconds * 1e6);
	rc = report_row(r, &row);
	closed = report_close(r, 0, NULL);
	return rc ? rc : closed;
}
