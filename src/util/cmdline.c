/* cmdline.c - the command line of a program, on popt. */
#include <errno.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "util/err.h"
#include "util/opt.h"
#include "util/text.h"

/* popt's `val`; rows from CMDLINE_ROW on. */
enum { CMDLINE_HELP = 1, CMDLINE_VERSION, CMDLINE_ROW };

struct cmdline {
	const struct opt_program *program;
	int argc;
	char **argv;
	struct poptOption *options;	/* CMDLINE_ROW + i is row i of all tables in sequence */
	int shown;			/* options that --help shows; aliases follow */
	poptContext context;
};

static int cmdline_row_count(const struct opt_program *p)
{
	int count = 0;

	for (int i = 0; i < p->table_count; i++)
		opt_each(row, &p->tables[i])
			count++;
	return count;
}

static const struct opt *cmdline_row(const struct opt_program *p, int index,
				     const struct opt_table **table)
{
	for (int i = 0; i < p->table_count; i++)
		opt_each(row, &p->tables[i])
			if (index-- == 0) {
				*table = &p->tables[i];
				return row;
			}
	*table = NULL;
	return NULL;
}

static int cmdline_open(struct cmdline *c)
{
	static const struct poptOption fixed[] = {
		{ "help", '\0', POPT_ARG_NONE, NULL, CMDLINE_HELP, NULL, NULL },
		{ "version", '\0', POPT_ARG_NONE, NULL, CMDLINE_VERSION, NULL, NULL },
	};
	int rows = cmdline_row_count(c->program), end = rows + 2;

	c->options = calloc(2 * (size_t)rows + 3, sizeof(c->options[0]));
	if (!c->options)
		return -ENOMEM;
	memcpy(c->options, fixed, sizeof(fixed));
	for (int i = 0; i < rows; i++) {
		const struct opt_table *table;
		const struct opt *row = cmdline_row(c->program, i, &table);

		c->options[i + 2] = (struct poptOption){
			.longName = row->name, .shortName = row->letter,
			.argInfo = row->type == OPT_FLAG ? POPT_ARG_NONE : POPT_ARG_STRING,
			.val = CMDLINE_ROW + i,
		};
		if (!row->alias)
			continue;
		c->options[end] = c->options[i + 2];
		c->options[end].longName = row->alias;
		c->options[end++].shortName = '\0';
	}
	c->shown = rows + 2;
	c->context = poptGetContext(c->program->name, c->argc, (const char **)c->argv, c->options,
				    c->program->first_operand_ends ?
				    POPT_CONTEXT_POSIXMEHARDER : 0);
	return c->context ? 0 : -ENOMEM;
}

static void cmdline_close(struct cmdline *c)
{
	if (c->context)
		poptFreeContext(c->context);
	free(c->options);
}

/* popt hands out a copy; the same text lives on at the end of some element of argv. */
static const char *cmdline_in_argv(const struct cmdline *c, const char *text)
{
	size_t length = strlen(text);

	for (int i = 1; i < c->argc; i++) {
		size_t whole = strlen(c->argv[i]);

		if (whole >= length && strcmp(c->argv[i] + whole - length, text) == 0)
			return c->argv[i] + whole - length;
	}
	return "";
}

/* ---- What is wrong with an option ------------------------------------------------- */

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance; names longer than the table are far from anything. */
static int name_distance(const char *a, size_t a_length, const char *b)
{
	int row[64];
	size_t b_length = strlen(b);

	if (b_length >= sizeof(row) / sizeof(row[0]))
		return 1000;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = (int)j;
	for (size_t i = 1; i <= a_length; i++) {
		int diagonal = row[0];

		row[0] = (int)i;
		for (size_t j = 1; j <= b_length; j++) {
			int above = row[j];

			row[j] = min_int(min_int(row[j], row[j - 1]) + 1,
					 diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_length];
}

static const char *name_nearest(const struct cmdline *c, const char *name, size_t length)
{
	const char *best = NULL;
	int least = length < 4 ? 1 : length < 8 ? 2 : 3;

	for (const struct poptOption *o = c->options; o < c->options + c->shown; o++) {
		int distance = name_distance(name, length, o->longName);
		size_t whole = strlen(o->longName);

		/* An abbreviation is near, too. */
		if (distance > 1 && length >= 3 && length < whole &&
		    strncmp(o->longName, name, length) == 0)
			distance = 1;
		if (distance <= least) {
			least = distance - 1;
			best = o->longName;
		}
	}
	return best;
}

static void cmdline_unknown(const struct cmdline *c, const char *option)
{
	const char *nearest = NULL;

	if (strncmp(option, "--", 2) == 0)
		nearest = name_nearest(c, option + 2, strcspn(option + 2, "="));
	if (nearest)
		rg_error("%s: unknown option (nearest: --%s; all: --help)", option, nearest);
	else
		rg_error("%s: unknown option (accepted: see --help)", option);
}

static int cmdline_complain(const struct cmdline *c, int code)
{
	const char *option = poptBadOption(c->context, POPT_BADOPTION_NOALIAS);
	char accepted[OPT_WHY_BYTES];
	const struct opt_table *table;
	const struct opt *row;

	if (code == POPT_ERROR_BADOPT) {
		cmdline_unknown(c, option);
		return -EINVAL;
	}
	for (int i = 0; code == POPT_ERROR_NOARG &&
	     (row = cmdline_row(c->program, i, &table)); i++) {
		char letter[3] = { '-', row->letter, '\0' };

		if ((strncmp(option, "--", 2) || !opt_is_named(row, option + 2)) &&
		    strcmp(option, letter))
			continue;
		opt_accepted(row, accepted, sizeof(accepted));
		rg_error("%s: needs %s%s%s%s", option, row->arg ? row->arg : "a value",
			 *accepted ? " (accepted: " : "", accepted, *accepted ? ")" : "");
		return -EINVAL;
	}
	rg_error("%s: %s", option, code == POPT_ERROR_UNWANTEDARG ? "takes no value" :
		 poptStrerror(code));
	return -EINVAL;
}

/* ---- Reading it -------------------------------------------------------------------- */

/* --help works with any other options and environment. */
static bool cmdline_wants(struct cmdline *c)
{
	bool wants = false;
	int code;

	while (!wants && (code = poptGetNextOpt(c->context)) != -1) {
		if (code < -1 && code != POPT_ERROR_BADOPT)
			break;
		free(poptGetOptArg(c->context));
		wants = code == CMDLINE_HELP || code == CMDLINE_VERSION;
		if (code == CMDLINE_HELP)
			opt_help(c->program, stdout);
		if (code == CMDLINE_VERSION)
			printf("%s (railgauge) %s\n", c->program->name, PACKAGE_VERSION);
	}
	poptResetContext(c->context);
	return wants;
}

static int cmdline_read(struct cmdline *c)
{
	int code;

	while ((code = poptGetNextOpt(c->context)) >= CMDLINE_ROW) {
		char why[OPT_WHY_BYTES], *copy = poptGetOptArg(c->context);
		const struct opt_table *table;
		const struct opt *row = cmdline_row(c->program, code - CMDLINE_ROW, &table);
		int rc = opt_set(table, row->name, copy ? cmdline_in_argv(c, copy) : "yes",
				 OPT_FROM_COMMAND_LINE, why, sizeof(why));

		free(copy);
		if (rc) {
			rg_error("--%s", why);
			return rc;
		}
	}
	return code == -1 ? 0 : cmdline_complain(c, code);
}

/* Move the operands, which popt has found, to the end. */
static int cmdline_operands(struct cmdline *c, int *first_operand)
{
	const char **operands = poptGetArgs(c->context);
	int count = 0, found = 0, kept = 1;
	char **order;

	while (operands && operands[count])
		count++;
	if (count && !c->program->operands) {
		rg_error("%s: unexpected (accepted: options only, see --help)", operands[0]);
		return -EINVAL;
	}
	*first_operand = c->argc - count;
	if (!count || c->program->first_operand_ends)
		return 0;
	order = calloc((size_t)count, sizeof(order[0]));
	if (!order)
		return -ENOMEM;
	for (int i = c->argc - 1, left = count; i > 0 && left; i--)
		if (strcmp(c->argv[i], operands[left - 1]) == 0) {
			order[--left] = c->argv[i];
			c->argv[i] = NULL;
			found++;
		}
	for (int i = 1; i < c->argc; i++)
		if (c->argv[i])
			c->argv[kept++] = c->argv[i];
	for (int i = 0; i < found; i++)
		c->argv[kept++] = order[i];
	free(order);
	return 0;
}

int opt_parse(const struct opt_program *p, int argc, char **argv, int *first_operand)
{
	struct cmdline c = { .program = p, .argc = argc, .argv = argv };
	int rc = cmdline_open(&c);

	if (rc)
		goto out;
	rc = 1;
	if (cmdline_wants(&c))
		goto out;
	for (int i = 0; i < p->table_count; i++) {
		rc = opt_from_environment(&p->tables[i]);
		if (rc)
			goto out;
	}
	rc = cmdline_read(&c);
	if (!rc)
		rc = cmdline_operands(&c, first_operand);
out:
	if (rc == -ENOMEM)
		rg_error("no memory for the command line");
	cmdline_close(&c);
	return rc < 0 ? -EINVAL : rc;
}

/* ---- --help -------------------------------------------------------------------------- */

enum { HELP_COLUMN = 29, HELP_WIDTH = 79 };

/* Words of text in lines that begin at HELP_COLUMN. */
static void help_wrap(FILE *out, int column, const char *text)
{
	if (column > HELP_COLUMN - 2) {
		fputc('\n', out);
		column = 0;
	}
	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > HELP_COLUMN && column + 1 + (int)word > HELP_WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		if (column < HELP_COLUMN)
			column += fprintf(out, "%*s", HELP_COLUMN - column, "");
		else
			column += fprintf(out, " ");
		column += fprintf(out, "%.*s", (int)word, text);
		text += word + strspn(text + word, " ");
	}
	fputc('\n', out);
}

static void help_row(FILE *out, const struct opt *row)
{
	char accepted[OPT_WHY_BYTES] = "", text[OPT_WHY_BYTES * 2];
	const char *mark = " (";
	int column;

	column = row->letter ? fprintf(out, "  -%c, --%s", row->letter, row->name) :
		fprintf(out, "      --%s", row->name);
	if (row->type != OPT_FLAG) {
		column += fprintf(out, "=%s", row->arg ? row->arg : "VALUE");
		opt_accepted(row, accepted, sizeof(accepted));
	}
	snprintf(text, sizeof(text), "%s", row->help);
	for (int i = 0; i < 2; i++) {
		const char *what = i ? row->standard : accepted;

		if (!what || !*what)
			continue;
		rg_text_add(text, sizeof(text), "%s%s%s", mark,
			 i ? "default " : "", what);
		mark = "; ";
	}
	if (*mark == ';')
		rg_text_add(text, sizeof(text), ")");
	help_wrap(out, column, text);
	for (const struct opt_choice *c = row->choices; c && c->name; c++)
		if (c->help && !(c->shown && !*c->shown)) {
			column = fprintf(out, "%*s%s", HELP_COLUMN - 10, "",
					 c->shown ? c->shown : c->name);
			help_wrap(out, column, c->help);
		}
}

void opt_help(const struct opt_program *p, FILE *out)
{
	static const struct opt last[] = {
		{ .name = "help", .type = OPT_FLAG, .help = "print this and exit" },
		{ .name = "version", .type = OPT_FLAG, .help = "print the version and exit" },
	};

	fprintf(out, "Usage: %s [OPTION]...%s%s\n%s\n", p->name, p->operands ? " " : "",
		p->operands ? p->operands : "", p->summary);
	for (int i = 0; i < p->table_count; i++) {
		fprintf(out, "\n%s options:\n", p->tables[i].title);
		opt_each(row, &p->tables[i])
			help_row(out, row);
	}
	fprintf(out, "\nOther options:\n");
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		help_row(out, &last[i]);
	if (p->table_count) {
		const struct opt *row = opt_next(&p->tables[p->table_count - 1], NULL);
		char name[64];

		fprintf(out, "\nEvery option can also be set in the environment, --%s as\n%s; the "
			"command line wins.\n", row->name, opt_variable(row, name, sizeof(name)));
	}
	if (p->notes)
		fprintf(out, "\n%s\n", p->notes);
}
