/* cite.c - a measurement as a sentence of a paper. */
#include <math.h>
#include <string.h>

#include "report/cite.h"
#include "report/cite_bibtex.h"
#include "report/cite_facts.h"
#include "report/cite_method.h"
#include "util/units.h"

enum { DIGITS_LEAST = 4, DIGITS_MOST = 9, COMMIT_DIGITS = 12 };

/* ---- Numbers ------------------------------------------------------------------------------- */

/* Digits after the point of a number with so many digits in all. */
static int places(double value, int digits)
{
	int before = value == 0 ? 1 : (int)floor(log10(fabs(value))) + 1;

	return before >= digits ? 0 : digits - before > 12 ? 12 : digits - before;
}

/* A value and its interval have as many digits as tell them apart. */
static int digits_of(const struct cite_row *row)
{
	int digits = DIGITS_LEAST;

	for (; digits < DIGITS_MOST; digits++) {
		double unit = pow(10, -places(row->value, digits));

		if (isnan(row->low) ||
		    ((row->low == row->value || row->value - row->low >= unit) &&
		     (row->high == row->value || row->high - row->value >= unit)))
			break;
	}
	return digits;
}

static void value_write(const struct report_file *f, const struct cite_row *row, FILE *out)
{
	if (isnan(row->value))
		fprintf(out, "no value");
	else
		fprintf(out, "%.*f %s", places(row->value, digits_of(row)), row->value,
			report_metric_unit(f->metric));
}

static void interval_write(const struct cite_row *row, FILE *out)
{
	int after = places(row->value, digits_of(row));

	if (!isnan(row->low) && !isnan(row->high))
		fprintf(out, "95 %% interval %.*f to %.*f", after, row->low, after, row->high);
	else
		fprintf(out, "no interval");
}

/* ---- Parts of the sentence ------------------------------------------------------------------- */

static bool is_foreign(const struct report_file *f, const char *way)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(f->run, "foreign_ways"), i, name)
		if (json_is_string(name) && strcmp(json_string_value(name), way) == 0)
			return true;
	return false;
}

/* "Latency", "CPU time" */
static void quantity_write(const struct report_file *f, FILE *out)
{
	const char *quantity = json_string_value(json_object_get(f->run, "quantity"));

	cite_text(out, quantity ? quantity : f->metric == REPORT_RATE ? "message rate" :
		  f->metric == REPORT_MOPS ? "rate of operations" : report_metric_name(f->metric));
}

static void doubts_write(const struct cite_row *row, FILE *out)
{
	if (row->row->valid == 0)
		fprintf(out, "; validation failed");
	if (json_is_false(json_object_get(row->record, "converged")))
		fprintf(out, "; not converged");
	if (json_is_true(json_object_get(row->record, "cut")))
		fprintf(out, "; cut short");
}

static void nodes_write(const struct report_file *f, const struct report_row *row, FILE *out)
{
	const json_t *names = json_object_get(json_object_get(f->run, "matrix"), "names");

	if (!names)
		return;
	fprintf(out, " from ");
	cite_text(out, json_string_value(json_array_get(names, (size_t)row->from)));
	fprintf(out, " to ");
	cite_text(out, json_string_value(json_array_get(names, (size_t)row->to)));
}

static void values_write(const struct report_file *f, const struct cite_rows *rows, FILE *out)
{
	for (int i = 0; i < rows->count; i++) {
		const struct cite_row *row = &rows->row[i];

		fputs(i == 0 ? "" : i == rows->count - 1 ? " and " : ", ", out);
		value_write(f, row, out);
		nodes_write(f, row->row, out);
		fprintf(out, " over ");
		cite_text(out, row->row->way);
		fprintf(out, " (");
		interval_write(row, out);
		doubts_write(row, out);
		fprintf(out, is_foreign(f, row->row->way) ? "; another fabric, such as shared memory)" :
			")");
	}
}

/* "for messages of 4194304 bytes (4 MiB)" */
static void size_write(const struct report_file *f, const struct cite_rows *rows, FILE *out)
{
	const json_t *x = json_object_get(f->run, "x"), *app = json_object_get(f->run, "app");
	const char *unit = json_string_value(json_object_get(x, "unit"));
	char text[RG_UNIT_TEXT];

	if (app) {
		fprintf(out, ", for class ");
		cite_text(out, json_string_value(json_object_get(app, "class")));
		fprintf(out, " (");
		cite_text(out, json_string_value(json_object_get(app, "size")));
		fprintf(out, ")");
		return;
	}
	if (x) {
		fprintf(out, ", at ");
		cite_text(out, json_string_value(json_object_get(x, "name")));
		fprintf(out, " = %.15g%s", rows->x, unit && *unit ? " " : "");
		cite_text(out, unit ? unit : "");
		return;
	}
	fprintf(out, ", for messages of %llu byte%s", (unsigned long long)rows->row[0].row->bytes,
		rows->row[0].row->bytes == 1 ? "" : "s");
	rg_format_size(rows->row[0].row->bytes, text, sizeof(text));
	if (strpbrk(text, "KMGT"))
		fprintf(out, " (%.*s %ciB)", (int)strlen(text) - 1, text, text[strlen(text) - 1]);
}

static void place_write(const struct cite_facts *c, FILE *out)
{
	char ranks[128];

	if (c->placement) {
		snprintf(ranks, sizeof(ranks), "%.*s", (int)strcspn(c->placement, ";"), c->placement);
		fprintf(out, ", with ");
		cite_text(out, ranks);
	} else if (c->ranks)
		fprintf(out, ", with %d rank%s on %d host%s", c->ranks, c->ranks == 1 ? "" : "s",
			c->hosts, c->hosts == 1 ? "" : "s");
	else
		fprintf(out, ", with ranks not recorded");
	fprintf(out, " (fabric: ");
	cite_text(out, c->fabric);
	fprintf(out, "), %s %s.\n", c->year ? "on" : "date", c->date);
}

/* Reasons why not, and the fabric; *yes: the values can be cited.  json_decref the array. */
static json_t *verdict(const struct report_file *f, bool *yes)
{
	const json_t *citable = json_object_get(f->end, "citable");
	unsigned reasons;
	json_t *why;

	/* The end record knows one launch; a killed job has none. */
	if (f->launches == 1 && json_is_boolean(citable)) {
		*yes = json_is_true(citable);
		return json_incref(json_object_get(f->end, "why"));
	}
	why = citable_why(&f->citable, &reasons);
	*yes = !reasons;
	return why;
}

static void warning_write(const struct report_file *f, FILE *out)
{
	const char *between = "WARNING: not citable as it is: ";
	json_t *why, *reason;
	bool yes;
	size_t i;

	why = verdict(f, &yes);
	json_array_foreach(why, i, reason)
		if (!yes && json_is_string(reason)) {
			fputs(between, out);
			cite_text(out, json_string_value(reason));
			between = "; ";
		}
	if (!yes)
		fprintf(out, *between == ';' ? ".\n" : "WARNING: not citable as it is.\n");
	json_decref(why);
}

static void sentence_write(const struct report_file *f, const struct cite_facts *c,
			   const struct cite_rows *rows, FILE *out)
{
	char commit[COMMIT_DIGITS + 1];

	cite_text(out, c->program);
	fprintf(out, " (Railgauge ");
	cite_text(out, c->version);
	fprintf(out, ", commit ");
	snprintf(commit, sizeof(commit), "%s", c->commit);
	cite_text(out, commit);
	fprintf(out, "%s) measured a %s ", c->dirty ? " with local changes" : "",
		rows->mean ? "mean" : "median");
	quantity_write(f, out);
	size_write(f, rows, out);
	fprintf(out, ", of ");
	values_write(f, rows, out);
	place_write(c, out);
}

int report_cite(const struct report_file *f, const char *size, FILE *out)
{
	struct cite_facts c;
	struct cite_rows rows;
	int rc = cite_rows_load(&rows, f, size);

	if (rc)
		return rc;
	cite_facts_load(&c, f->run);
	warning_write(f, out);
	sentence_write(f, &c, &rows, out);
	cite_method(f, &c, &rows, out);
	fputc('\n', out);
	cite_bibtex_run(f, &c, out);
	cite_rows_unload(&rows);
	return 0;
}
