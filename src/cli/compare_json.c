/* compare_json.c - a comparison as one JSON object. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cli/compare_judge.h"
#include "report/metric.h"
#include "util/err.h"

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* A shift of logarithms as a fraction: 0.03 */
static json_t *fraction(double shift)
{
	return number(expm1(shift));
}

static json_t *launches_needed(const struct compare_row *row)
{
	return isnan(row->shift.shift) || row->needed >= SHIFT_NEEDED_MAX ? json_null() :
		json_integer(row->needed);
}

static json_t *row_json(const struct compare_program *p, const struct compare_row *row)
{
	json_t *j = json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:[i, i], s:s, s:o, s:o}",
		"way", row->row->way, "bytes", (json_int_t)row->row->bytes, "x",
		number(row->row->x), "a", number(row->median[0]), "b", number(row->median[1]),
		"change", fraction(row->shift.shift), "low", fraction(row->shift.low), "high",
		fraction(row->shift.high), "launches", row->shift.launches[0],
		row->shift.launches[1], "verdict", comparison_verdict(row->verdict),
		"launches_to_decide", launches_needed(row), "found", fraction(row->found));

	if (p->side[0]->is_matrix) {
		json_object_set_new(j, "from", json_integer(row->row->from));
		json_object_set_new(j, "to", json_integer(row->row->to));
	}
	return j;
}

static json_t *program_json(const struct compare_program *p)
{
	json_t *rows = json_array();
	enum report_metric metric = p->side[0]->metric;

	for (int i = 0; i < p->row_count; i++)
		json_array_append_new(rows, row_json(p, &p->row[i]));
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "program", p->side[0]->name, "metric",
			 report_metric_name(metric), "unit", report_metric_unit(metric), "paired",
			 p->paired, "rows", rows);
}

static json_t *side_json(const struct comparison *c, int side)
{
	const struct launches *l = c->side[side];

	return json_pack("{s:o, s:o, s:i, s:i, s:i, s:i}", "operand", report_string(l->operand), "build",
			 l->build ? report_string(l->build) : json_null(), "launches_left_out",
			 l->failed, "values_left_out", l->invalid, "copies", l->copies, "rows_alone", c->alone[side]);
}

static json_t *unlike_json(const struct comparison *c)
{
	static const char *const kinds[UNLIKE_KINDS] = {
		[UNLIKE_SETTING] = "setting", [UNLIKE_SOFTWARE] = "software",
		[UNLIKE_HOSTS] = "hosts",
	};
	json_t *list = json_array();

	for (int i = 0; i < c->unlike_count; i++) {
		const struct compare_unlike *u = &c->unlike[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "program",
			u->program, "kind", kinds[u->kind], "what", u->what, "a",
			report_string(u->value[0]), "b", report_string(u->value[1])));
	}
	return list;
}

static json_t *comparison_object(const struct comparison *c)
{
	json_t *programs = json_array(), *verdicts = json_object();

	for (int i = 0; i < c->program_count; i++)
		json_array_append_new(programs, program_json(&c->program[i]));
	for (int v = 0; v < SHIFT_VERDICTS; v++)
		json_object_set_new(verdicts, comparison_verdict((enum shift_verdict)v),
				    json_integer(c->count[v]));
	return json_pack("{s:s, s:i, s:i, s:f, s:f, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
		"type", "comparison", "version", 1, "exit", shift_exit(c->count), "effect", c->effect,
		"confidence", 0.95, "interleaved", c->interleaved, "critical", number(c->critical),
		"a", side_json(c, 0), "b", side_json(c, 1), "unlike", unlike_json(c),
		"verdicts", verdicts, "programs", programs);
}

int comparison_json(const struct comparison *c, FILE *out)
{
	json_t *object = comparison_object(c);
	char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;

	json_decref(object);
	if (!text) {
		rg_error("no memory for %d rows", c->row_count);
		return -ENOMEM;
	}
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}
