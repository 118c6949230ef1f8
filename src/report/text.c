/*
 * text.c - the table as text, for people and parsers: the size is in column 0.  Lines that are not
 * rows begin with '#'.
 *
 *	one way				# Size          Bandwidth (MB/s)          Median ...
 *					8                          12.34         12.4000 ...
 *	several				# Size            native          stripe
 *					8                12.3400         11.2800
 *	with an axis			its name in place of Size, its value in place of the size
 *	several, with more columns: a line per way, with its name at the end
 *
 * One way: the mean is in column 1, as parsers of other suites expect; the median and its interval
 * follow.  Columns of several ways are medians.  --layout osu: the mean is the only value.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/text.h"
#include "report/axis.h"

static const char *const value_names[REPORT_METRIC_COUNT] = {
	[REPORT_LATENCY] = "Avg Latency(us)",
	[REPORT_BANDWIDTH] = "Bandwidth (MB/s)",
	[REPORT_RATE] = "Messages/s",
	[REPORT_MOPS] = "Mop/s",
};

/* The name of a column: "Avg Latency(us)"; of values that are no means: "Latency(us)". */
static const char *value_name(const struct text_table *t, bool mean, char *buf, size_t size)
{
	const char *name = value_names[t->table.metric];

	if (t->table.quantity)
		snprintf(buf, size, "Avg %s(%s)", t->table.quantity,
			 report_metric_unit(t->table.metric));
	else
		snprintf(buf, size, "%s", name);
	if (!mean && strncmp(buf, "Avg ", 4) == 0)
		memmove(buf, buf + 4, strlen(buf + 4) + 1);
	return buf;
}

void text_open(struct text_table *t, const struct report_table *table)
{
	*t = (struct text_table){ .out = table->text, .table = *table };
}

static void text_number(FILE *out, int width, int places, double value)
{
	if (isnan(value))
		fprintf(out, "%*s", width, "-");
	else
		fprintf(out, "%*.*f", width, places, value);
}

static bool text_is_osu(const struct report_table *table)
{
	return table->layout == REPORT_LAYOUT_OSU;
}

/* More than one value per way: each way gets a line of its own. */
static bool text_by_line(const struct report_table *table)
{
	return !text_is_osu(table) && (table->full || table->percentile_count);
}

/* The statistic in the only column of a way. */
static int text_value(const struct report_table *table)
{
	return table->way_count == 1 || text_by_line(table) || text_is_osu(table) ? STATS_MEAN :
		STATS_MEDIAN;
}

/* Has the statistic a column of its own, next to the value? */
static bool text_has(const struct report_table *table, int i)
{
	if (text_is_osu(table) || i == STATS_MEAN)
		return false;
	return table->full || (table->way_count == 1 && (i == STATS_MEDIAN || i == STATS_CI_LOW ||
							 i == STATS_CI_HIGH));
}

static void text_title(struct text_table *t)
{
	const struct report_table *table = &t->table;
	bool by_line = text_by_line(table), medians = text_value(table) == STATS_MEDIAN;
	char name[64];

	if (table->way_count > 1)
		fprintf(t->out, "# %s, %s\n",
			value_name(t, !medians && !by_line, name, sizeof(name)),
			by_line ? "one line per way" : medians ? "medians, one column per way" :
			"one column per way");
	if (text_has(table, STATS_CI_LOW))
		fprintf(t->out, "# CI-low, CI-high: 95 %% interval of the median, from %s\n",
			table->ci_of ? table->ci_of : "batches of one launch");
}

static void text_head(struct text_table *t)
{
	const struct report_table *table = &t->table;
	bool one = table->way_count == 1, by_line = text_by_line(table);
	char name[64];

	text_title(t);
	fprintf(t->out, "# %-8s", table->axis ? table->axis->name : "Size");
	if (one)
		fprintf(t->out, "%20s", value_name(t, true, name, sizeof(name)));
	else if (by_line)
		fprintf(t->out, "%16s", statistics[STATS_MEAN].column);
	for (int i = 0; i < table->way_count && !one && !by_line; i++)
		fprintf(t->out, " %15s", table->ways[i]);
	for (int i = 0; i < STATS_ROWS; i++)
		if (text_has(table, i))
			fprintf(t->out, "%16s", statistics[i].column);
	for (int i = 0; i < table->percentile_count && !text_is_osu(table); i++) {
		snprintf(name, sizeof(name), "P%g", table->percentiles[i]);
		fprintf(t->out, "%16s", name);
	}
	if (table->validate)
		fprintf(t->out, "%12s", "Validation");
	if (!one && by_line)
		fprintf(t->out, "  %s", "Way");
	fputc('\n', t->out);
	t->head_printed = true;
}

/* Pass only if everything was checked and passed. */
static const char *text_verdict(const struct report_row *rows, int count)
{
	int verdict = 1;

	for (int i = 0; i < count; i++)
		if (rows[i].valid < verdict)
			verdict = rows[i].valid;
	return verdict > 0 ? "Pass" : verdict == 0 ? "Fail" : "-";
}

/* The line of a pair that is slower than the row, which is the median pair's. */
static void text_slowest(struct text_table *t, const struct report_row *row)
{
	const int *rank = row->slowest.rank;

	if (rank[0] != rank[1] && !text_is_osu(&t->table))
		fprintf(t->out, "# slowest pair, %" PRIu64 " bytes over %s: ranks %d and %d, median "
			"%.4f\n", row->bytes, row->way, rank[0], rank[1], row->slowest.median);
}

static void text_values(struct text_table *t, const struct report_row *rows, int count)
{
	const struct report_table *table = &t->table;
	bool one = table->way_count == 1;

	for (int i = 0; i < count; i++)
		text_number(t->out, one ? 20 : 16, one ? 2 : 4, rows[i].stat[text_value(table)]);
	for (int i = 0; i < STATS_ROWS; i++)
		if (text_has(table, i))
			text_number(t->out, 16, statistics[i].kind == STATS_COUNT ? 0 : 4,
				    rows->stat[i]);
	for (int i = 0; i < table->percentile_count && !text_is_osu(table); i++)
		text_number(t->out, 16, 4, rows->percentile[i]);
}

static void text_line(struct text_table *t, const struct report_row *rows, int count)
{
	const struct report_table *table = &t->table;
	bool cut = false;
	char x[AXIS_TEXT];

	if (table->axis)
		fprintf(t->out, "%-10s", axis_text(rows[0].x, x, sizeof(x)));
	else
		fprintf(t->out, "%-10" PRIu64, rows[0].bytes);
	text_values(t, rows, count);
	if (table->validate)
		fprintf(t->out, "%12s", text_verdict(rows, count));
	if (table->way_count > 1 && text_by_line(table))
		fprintf(t->out, "  %s", rows->way);
	for (int i = 0; i < count; i++) {
		cut = cut || rows[i].cut;
		t->open_count += rows[i].converged == REPORT_NOT_CONVERGED;
	}
	if (cut)
		fprintf(t->out, "  cut");
	fputc('\n', t->out);
	for (int i = 0; i < count; i++)
		text_slowest(t, &rows[i]);
	t->row_count += count;
	t->cut_seen = t->cut_seen || cut;
}

void text_row(struct text_table *t, const struct report_row *row)
{
	if (!t->out)
		return;
	if (!t->head_printed)
		text_head(t);
	t->row[t->filled++] = *row;
	if (t->filled < t->table.way_count)
		return;
	if (text_by_line(&t->table))
		for (int i = 0; i < t->filled; i++)
			text_line(t, &t->row[i], 1);
	else
		text_line(t, t->row, t->filled);
	t->filled = 0;
	fflush(t->out);
}

void text_close(struct text_table *t)
{
	if (t->out && t->cut_seen)
		fprintf(t->out, "# cut: fewer iterations than asked for, because of --time-cap\n");
	if (t->out && t->open_count)
		fprintf(t->out, "# not converged: %d of %d rows, whose interval is still wide or whose "
			"samples depend on each other\n", t->open_count, t->row_count);
	if (t->out)
		fflush(t->out);
}
