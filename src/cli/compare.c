/* compare.c - railgauge compare: is a campaign as good as another? */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare.h"
#include "cli/compare_judge.h"
#include "util/err.h"
#include "util/opt.h"
#include "util/text.h"

struct compare_values { const char *effect; bool json, force; };

/* "3%" -> 0.03; 0 or -EINVAL */
static int effect_parse(const char *text, double *effect)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || strcmp(end, "%") || !(value >= 0.01 && value <= 100))
		return -EINVAL;
	*effect = value / 100;
	return 0;
}

static int effect_check(const char *text, char *why, size_t why_size)
{
	double effect;

	if (effect_parse(text, &effect) == 0)
		return 0;
	snprintf(why, why_size, "not a percentage (accepted: 0.01%% to 100%%, such as 3%%)");
	return -EINVAL;
}

#define AT(member) .offset = offsetof(struct compare_values, member)
static const struct opt rows[] = {
	{ .name = "effect", .letter = 'e', .type = OPT_TEXT, AT(effect), .arg = "PERCENT",
	  .standard = "3%", .check = effect_check,
	  .help = "a change below this one is none" },
	{ .name = "json", .type = OPT_FLAG, AT(json), .help = "print one JSON object" },
	{ .name = "force", .type = OPT_FLAG, AT(force),
	  .help = "compare campaigns with unlike settings, by the rows of both" },
	{ .name = NULL },
};

/* ---- Unlike campaigns --------------------------------------------------------------- */

/* Builds of one campaign may have settings of their own; others are of one setting. */
static bool is_refused(const struct comparison *c, const struct compare_unlike *u)
{
	return u->kind == UNLIKE_SETTING && !c->interleaved;
}

/* A list of differences, as far as it fits; `more` counts the others. */
struct list { char text[800]; int more; };

__attribute__((format(printf, 2, 3)))
static void list_add(struct list *l, const char *format, ...)
{
	char item[256];
	va_list args;

	va_start(args, format);
	vsnprintf(item, sizeof(item), format, args);
	va_end(args);
	if (strlen(l->text) + strlen(item) + 3 > sizeof(l->text))
		l->more++;
	else
		rg_text_add(l->text, sizeof(l->text), "%s%s", *l->text ? "; " : "", item);
}

/* 0, or -EINVAL after an error line that names the differences. */
static int settings_check(const struct comparison *c)
{
	struct list l = { .more = 0 };
	char more[32] = "";

	for (int i = 0; i < c->unlike_count; i++) {
		const struct compare_unlike *u = &c->unlike[i];

		if (is_refused(c, u))
			list_add(&l, "%s of %s: %s, %s", u->what, u->program, u->value[0],
				 u->value[1]);
	}
	for (int side = 0; side < 2; side++)
		if (c->alone[side])
			list_add(&l, "%d rows in %s alone", c->alone[side], c->side[side]->operand);
	if (l.more)
		snprintf(more, sizeof(more), "; and %d more", l.more);
	if (!*l.text && !l.more)
		return 0;
	rg_error("unlike settings: %s%s (accepted: --force)", l.text, more);
	return -EINVAL;
}

/* ---- The command -------------------------------------------------------------------- */

static int launches_compare(const struct launches *a, const struct launches *b,
			    const struct compare_values *v, int *status)
{
	struct comparison c;
	double effect;
	int rc = comparison_match(a, b, &c);

	if (rc)
		return rc;
	if (!v->force)
		rc = settings_check(&c);
	if (!rc)
		rc = effect_parse(v->effect, &effect);
	if (!rc)
		rc = comparison_judge(&c, effect);
	if (!rc && v->json)
		rc = comparison_json(&c, stdout);
	else if (!rc)
		comparison_print(&c, stdout);
	if (!rc)
		*status = shift_exit(c.count);
	comparison_free(&c);
	return rc;
}

static int operands_compare(const char *first, const char *second, const struct compare_values *v,
			    int *status)
{
	struct launches a, b;
	int rc = launches_read(first, &a);

	if (rc)
		return rc;
	rc = launches_read(second, &b);
	if (!rc) {
		rc = launches_compare(&a, &b, v, status);
		launches_free(&b);
	}
	launches_free(&a);
	return rc;
}

int cli_compare(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct compare_values values;
	struct opt_table table = { "Compare", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge compare", .operands = "A B",
		.summary = "Compare campaign B with campaign A, and judge each row.",
		.tables = &table, .table_count = 1,
		.notes = "A and B are directories of railgauge run, DIR:NAME (one build of a campaign "
			 "with\nseveral), or directories of result files (--json).\n\n"
			 "The unit is the launch, which gives one value of each row, its median.  The "
			 "intervals\nhold for all rows together in 95 % of all comparisons.  A row is "
			 "`same` if its interval\nlies within the effect, else `worse` or `better` if it "
			 "excludes no change, else\n`undecided`: the output says how many launches would "
			 "decide.  The highest and the\nlowest eighth of "
			 "the launches do not count (from 8 launches on).\n\n"
			 "Exit status: 0 each row is same or better, 1 a row is worse, 2 neither, 3 wrong "
			 "use,\ndamaged or unlike campaigns, 4 a fault.",
	};
	int first, status = RG_EXIT_FAULT, rc = opt_parse(&program, argc, argv, &first);

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (argc - first != 2) {
		rg_error("compare: %d campaigns (accepted: railgauge compare A B)", argc - first);
		return RG_EXIT_USAGE;
	}
	rc = operands_compare(argv[first], argv[first + 1], &values, &status);
	if (rc)
		return rc == -ENOMEM || rc == -EIO ? RG_EXIT_FAULT : RG_EXIT_USAGE;
	return status;
}
