/* cite_facts.c - facts of a run record, and the rows that are cited. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/text.h"
#include "util/units.h"
#include "report/cite_facts.h"

void cite_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, out);
}

static const char *text_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && *text ? text : CITE_UNKNOWN;
}

const char *cite_option(const json_t *run, const char *name, bool *given)
{
	const json_t *option = json_object_get(json_object_get(run, "options"), name);
	const char *from = json_string_value(json_object_get(option, "from"));

	*given = from && strcmp(from, "default") != 0;
	return json_string_value(json_object_get(option, "value"));
}

/* ---- The run ---------------------------------------------------------------------------- */

static void date_load(struct cite_facts *c, const json_t *provenance)
{
	int day;

	if (sscanf(text_at(provenance, "utc"), "%4d-%2d-%2d", &c->year, &c->month, &day) == 3 &&
	    c->year > 0 && c->month >= 1 && c->month <= 12 && day >= 1 && day <= 31) {
		snprintf(c->date, sizeof(c->date), "%04d-%02d-%02d", c->year % 10000, c->month % 100,
			 day % 100);
		return;
	}
	snprintf(c->date, sizeof(c->date), "%s", CITE_UNKNOWN);
	c->year = c->month = 0;
}

static int host_count(const json_t *ranks)
{
	const json_t *rank;
	int hosts = 0;
	size_t i, k;

	json_array_foreach(ranks, i, rank) {
		const char *host = text_at(rank, "host");

		for (k = 0; k < i; k++)
			if (strcmp(text_at(json_array_get(ranks, k), "host"), host) == 0)
				break;
		hosts += k == i;
	}
	return hosts;
}

/* The text after `begin` in the lines above the table; NULL: none. */
static const char *note_after(const json_t *run, const char *begin)
{
	const json_t *note;
	size_t i;

	json_array_foreach(json_object_get(run, "notes"), i, note)
		if (json_is_string(note) &&
		    strncmp(json_string_value(note), begin, strlen(begin)) == 0)
			return json_string_value(note) + strlen(begin);
	return NULL;
}

/* Only a record that says so has hardware. */
static void fabric_load(struct cite_facts *c, const json_t *run)
{
	const json_t *fabric = json_object_get(run, "fabric");
	const char *note = note_after(run, "fabric: ");

	if (!json_is_object(fabric))
		snprintf(c->fabric, sizeof(c->fabric), "%s", CITE_UNKNOWN);
	else if (!json_array_size(json_object_get(fabric, "rails")))
		snprintf(c->fabric, sizeof(c->fabric), "%s", note ? note : CITE_UNKNOWN);
	else
		snprintf(c->fabric, sizeof(c->fabric), "%.900s%s", text_at(fabric, "text"),
			 json_is_true(json_object_get(fabric, "hardware")) ? "" :
			 json_is_true(json_object_get(fabric, "modelled")) ?
			 " - a model in software, not hardware" : " - software, not hardware");
}

void cite_facts_load(struct cite_facts *c, const json_t *run)
{
	const json_t *provenance = json_object_get(run, "provenance"),
		     *software = json_object_get(provenance, "software"),
		     *ranks = json_object_get(run, "ranks");

	*c = (struct cite_facts){
		.program = text_at(run, "program"), .title = text_at(run, "title"),
		.version = text_at(software, "railgauge"), .commit = text_at(software, "commit"),
		.dirty = json_is_true(json_object_get(software, "dirty")),
		.ranks = (int)json_array_size(ranks), .hosts = host_count(ranks),
		.placement = note_after(run, "ranks: "), .mpi = text_at(run, "mpi"),
		.clock_source = text_at(json_object_get(provenance, "machine"), "clock_source"),
		.oversubscribed = json_is_true(json_object_get(run, "oversubscribed")),
	};
	date_load(c, provenance);
	fabric_load(c, run);
}

/* ---- Rows ------------------------------------------------------------------------------- */

static bool is_matrix(const struct report_file *f)
{
	return json_object_get(f->run, "matrix") != NULL;
}

static double value_of(const struct cite_rows *c, const struct report_row *row)
{
	return row->stat[c->mean ? STATS_MEAN : STATS_MEDIAN];
}

static void sizes_name(const struct report_file *f, char *list, size_t size)
{
	double last = NAN;
	bool axis = json_object_get(f->run, "x") != NULL;

	report_each(row, f) {
		char text[RG_UNIT_TEXT];

		if (row->x == last)
			continue;
		if (axis)
			snprintf(text, sizeof(text), "%.15g", row->x);
		else
			rg_format_size(row->bytes, text, sizeof(text));
		rg_text_add(list, size, "%s%s", *list ? ", " : "", text);
		last = row->x;
	}
}

/* The coordinate of the rows that are cited; NaN: text is none. */
static double size_parse(const struct report_file *f, const char *text)
{
	uint64_t bytes;
	char *end;
	double x;

	if (!json_object_get(f->run, "x"))
		return rg_parse_size(text, &bytes) ? NAN : (double)bytes;
	x = strtod(text, &end);
	return end == text || *end ? NAN : x;
}

static double size_default(const struct report_file *f)
{
	double x = f->row[0].x;

	report_each(row, f)
		x = f->metric == REPORT_LATENCY ? fmin(x, row->x) : fmax(x, row->x);
	return x;
}

static void row_add(struct cite_rows *c, const struct report_row *row)
{
	if (row && c->count < CITE_ROWS_MAX)
		c->row[c->count++].row = row;
}

/* The slowest pair, then the fastest one. */
static void extremes_add(struct cite_rows *c, const struct report_file *f, const char *way)
{
	const struct report_row *low = NULL, *high = NULL;

	report_each(row, f) {
		if (strcmp(row->way, way) || isnan(value_of(c, row)))
			continue;
		if (!low || value_of(c, row) < value_of(c, low))
			low = row;
		if (!high || value_of(c, row) > value_of(c, high))
			high = row;
	}
	row_add(c, low);
	if (high != low)
		row_add(c, high);
}

static double number(const json_t *record, const char *name)
{
	const json_t *value = json_object_get(record, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static int records_load(struct cite_rows *c, const struct report_file *f)
{
	for (int i = 0; i < c->count; i++) {
		struct cite_row *at = &c->row[i];

		at->record = report_file_record(f, at->row);
		if (!at->record)
			return -EIO;
		at->value = value_of(c, at->row);
		at->low = c->mean ? NAN : number(at->record, "ci_low");
		at->high = c->mean ? NAN : number(at->record, "ci_high");
	}
	return 0;
}

int cite_rows_load(struct cite_rows *c, const struct report_file *f, const char *size)
{
	const json_t *way;
	char sizes[CITE_TEXT] = "";
	size_t i;
	int rc;

	*c = (struct cite_rows){ .mean = true };
	if (f->row_count == 0) {
		rg_error("%s: no rows, nothing to cite", f->path);
		return -EINVAL;
	}
	report_each(row, f)
		c->mean = c->mean && isnan(row->stat[STATS_MEDIAN]);
	c->x = size ? size_parse(f, size) : size_default(f);
	json_array_foreach(json_object_get(f->run, "ways"), i, way)
		if (is_matrix(f) && f->row[0].x == c->x)
			extremes_add(c, f, json_string_value(way));
		else if (!is_matrix(f))
			row_add(c, report_file_row(f, json_string_value(way), c->x));
	if (c->count == 0) {
		sizes_name(f, sizes, sizeof(sizes));
		rg_error("--size %s: %s has no such row (accepted: %s)", size ? size : "", f->path,
			 sizes);
		return -EINVAL;
	}
	rc = records_load(c, f);
	if (rc)
		cite_rows_unload(c);
	return rc;
}

void cite_rows_unload(struct cite_rows *c)
{
	for (int i = 0; i < c->count; i++)
		json_decref(c->row[i].record);
	c->count = 0;
}
