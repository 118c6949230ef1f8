/* plot_rows.c - the rows of a file as values to draw, each with its interval and its doubts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "report/plot_rows.h"

static double number(const json_t *row, const char *name)
{
	const json_t *value = json_object_get(row, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

/* A file of an old version may lack the medians. */
static bool has_medians(const struct report_file *file)
{
	report_each(row, file)
		if (!isnan(row->stat[STATS_MEDIAN]))
			return true;
	return false;
}

static int way_of(const struct plot *p, const char *name)
{
	int way = 0;

	while (way < p->way_count - 1 && strcmp(p->way[way], name))
		way++;
	return way;
}

static unsigned doubts_of(const json_t *record)
{
	return (json_is_true(json_object_get(record, "cut")) ? PLOT_CUT : 0) |
	       (json_is_false(json_object_get(record, "converged")) ? PLOT_UNCONVERGED : 0) |
	       (disturbance_of_row(record) ? PLOT_DISTURBED : 0);
}

static double mean_of(const json_t *list)
{
	const json_t *value;
	double sum = 0;
	size_t i;

	json_array_foreach(list, i, value)
		sum += json_number_value(value);
	return json_array_size(list) ? sum / (double)json_array_size(list) : NAN;
}

static void row_load(struct plot *p, struct plot_row *out, const struct report_row *row,
		     const json_t *record)
{
	const json_t *app = json_object_get(record, "app");

	*out = (struct plot_row){
		.way = way_of(p, row->way), .x = row->x,
		.value = row->stat[p->mean ? STATS_MEAN : STATS_MEDIAN],
		.low = p->mean ? NAN : number(record, "ci_low"),
		.high = p->mean ? NAN : number(record, "ci_high"),
		.doubts = doubts_of(record),
		.from = row->from, .to = row->to,
		.total_s = mean_of(json_object_get(app, "total_s")),
		.talk_s = mean_of(json_object_get(app, "communication_s")),
	};
	if (isnan(out->low) || isnan(out->high) || out->low > out->high)
		out->low = out->high = NAN;
	out->mark = row->valid == 0 ? PLOT_FAILED : out->doubts ? PLOT_DOUBTFUL : PLOT_GOOD;
}

/* Facts of a row that concern the whole figure. */
static void plot_gather(struct plot *p, const struct plot_row *row)
{
	p->doubts |= row->doubts;
	p->failed = p->failed || row->mark == PLOT_FAILED;
	if (row->x > 0 && (p->x_min == 0 || row->x < p->x_min))
		p->x_min = row->x;
	p->x_max = fmax(p->x_max, row->x);
	p->x_zero = p->x_zero || row->x <= 0;
	if (!isnan(row->value))
		p->value_max = fmax(p->value_max, row->value);
	p->has_interval = p->has_interval || !isnan(row->low);
}

int plot_load(struct plot *p, const struct report_file *file)
{
	json_t *name;
	size_t i;

	p->file = file;
	p->has_axis = axis_load(&p->axis, file->run);
	json_array_foreach(json_object_get(file->run, "ways"), i, name)
		p->way[p->way_count++] = json_string_value(name);
	p->mean = !has_medians(file);
	p->over_launches = file->launches > 1;
	p->row = calloc(file->row_count + 1, sizeof(p->row[0]));
	if (!p->row) {
		rg_error("%s: no memory for %zu rows", file->path, file->row_count);
		return -ENOMEM;
	}
	for (; p->row_count < file->row_count; p->row_count++) {
		struct plot_row *row = &p->row[p->row_count];
		json_t *record = report_file_record(file, &file->row[p->row_count]);

		if (!record) {
			plot_unload(p);
			return -EIO;
		}
		row_load(p, row, &file->row[p->row_count], record);
		plot_gather(p, row);
		json_decref(record);
	}
	return 0;
}

void plot_unload(struct plot *p)
{
	free(p->row);
	p->row = NULL;
}

bool plot_way_foreign(const struct plot *p, int way)
{
	const json_t *foreign = json_object_get(p->file->run, "foreign_ways"), *name;
	size_t i;

	json_array_foreach(foreign, i, name)
		if (json_is_string(name) && !strcmp(json_string_value(name), p->way[way]))
			return true;
	return false;
}

const char *plot_statistic(const struct plot *p)
{
	return p->mean ? "mean" : "median";
}

char *plot_quantity(const struct plot *p, char *buf, size_t size)
{
	static const char *const labels[REPORT_METRIC_COUNT] = {
		[REPORT_LATENCY] = "Latency (us)",
		[REPORT_BANDWIDTH] = "Bandwidth (MB/s)",
		[REPORT_RATE] = "Messages per second",
		[REPORT_MOPS] = "Mop/s",
	};
	const char *quantity = json_string_value(json_object_get(p->file->run, "quantity"));

	if (quantity)
		snprintf(buf, size, "%.60s (%s)", quantity, report_metric_unit(p->file->metric));
	else
		snprintf(buf, size, "%s", labels[p->file->metric]);
	return buf;
}
