/*
 * text.c - the table as text, for people and parsers: the size is in column 0, the mean in
 * column 1.  Lines that are not rows begin with '#'.
 *
 *	one way				# Size          Bandwidth (MB/s)
 *					8                          12.34
 *	several				# Size            native          stripe
 *					8                12.3400         11.2800
 *	with an axis			its name in place of Size, its value in place of the size
 *	several, with more columns: a line per way, with its name at the end
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

/* The name of a column of means: "Avg Latency(us)". */
static const char *value_name(const struct text_table *t, char *buf, size_t size)
{
	if (t->table.quantity)
		snprintf(buf, size, "Avg %s(%s)", t->table.quantity,
			 report_metric_unit(t->table.metric));
	else
		snprintf(buf, size, "%s", value_names[t->table.metric]);
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

/* More than one value per way: each way gets a line of its own. */
static bool text_by_line(const struct report_table *table)
{
	return table->full || table->percentile_count;
}

static void text_head(struct text_table *t)
{
	const struct report_table *table = &t->table;
	bool one = table->way_count == 1, by_line = text_by_line(table);
	char name[64];

	if (!one)
		fprintf(t->out, "# %s, one column per way\n", value_name(t, name, sizeof(name)));
	fprintf(t->out, "# %-8s", table->axis ? table->axis->name : "Size");
	if (one)
		fprintf(t->out, "%20s", value_name(t, name, sizeof(name)));
	else if (by_line)
		fprintf(t->out, "%16s", statistics[STATS_MEAN].column);
	for (int i = 0; i < table->way_count && !one && !by_line; i++)
		fprintf(t->out, "%16s", table->ways[i]);
	for (int i = STATS_MEAN + 1; i < STATS_ROWS && table->full; i++)
		fprintf(t->out, "%16s", statistics[i].column);
	for (int i = 0; i < table->percentile_count; i++) {
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

static void text_line(struct text_table *t, const struct report_row *rows, int count)
{
	const struct report_table *table = &t->table;
	bool one = table->way_count == 1, cut = false;
	char x[AXIS_TEXT];

	if (table->axis)
		fprintf(t->out, "%-10s", axis_text(rows[0].x, x, sizeof(x)));
	else
		fprintf(t->out, "%-10" PRIu64, rows[0].bytes);
	for (int i = 0; i < count; i++) {
		text_number(t->out, one ? 20 : 16, one ? 2 : 4, rows[i].stat[STATS_MEAN]);
		cut = cut || rows[i].cut;
	}
	for (int i = STATS_MEAN + 1; i < STATS_ROWS && table->full; i++)
		text_number(t->out, 16, statistics[i].kind == STATS_COUNT ? 0 : one ? 2 : 4,
			    rows->stat[i]);
	for (int i = 0; i < table->percentile_count; i++)
		text_number(t->out, 16, one ? 2 : 4, rows->percentile[i]);
	if (table->validate)
		fprintf(t->out, "%12s", text_verdict(rows, count));
	if (!one && text_by_line(table))
		fprintf(t->out, "  %s", rows->way);
	if (cut)
		fprintf(t->out, "  cut");
	fputc('\n', t->out);
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
	if (t->out)
		fflush(t->out);
}
