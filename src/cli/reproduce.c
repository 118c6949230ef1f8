/* reproduce.c - railgauge reproduce: measurements of papers, and the commands that repeat them. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "err.h"
#include "experiment.h"
#include "opt.h"
#include "text.h"

struct reproduce_values { bool list; };

static const struct opt rows[] = {
	{ .name = "list", .letter = 'l', .type = OPT_FLAG,
	  .offset = offsetof(struct reproduce_values, list),
	  .help = "print one line per experiment: its id, figure and command, and what it shows" },
	{ .name = NULL },
};

static void list(const struct experiment_paper *p)
{
	char command[EXPERIMENT_TEXT];

	for (int i = 0; i < p->count; i++) {
		const struct experiment *e = &p->list[i];

		printf("%-16s figure %-3d %-55s # %s; %s", e->id, e->figure,
		       experiment_command(e, 0, command, sizeof(command)), e->adapter, e->shows);
		for (int k = 1; k < e->rank_counts; k++)
			printf("%s-np %d", k == 1 ? "; also " : ", ", e->ranks[k]);
		putchar('\n');
	}
}

static void details(const struct experiment *e)
{
	char text[EXPERIMENT_TEXT];
	const char *name;
	json_t *value;

	printf("%s: %s\n", e->id, experiment_text(e, text, sizeof(text)));
	printf("paper: %s (%s)\n", e->paper->title, e->paper->source);
	for (int i = 0; i < e->rank_counts; i++)
		printf("command: %s\n", experiment_command(e, i, text, sizeof(text)));
	json_object_foreach(e->options, name, value)
		printf("option: --%s %s\n", name, json_string_value(value));
	printf("quoted: %s\n", experiment_quoted(e, text, sizeof(text)));
}

/* "p1, p2" */
static void papers_text(const struct experiment_papers *papers, char *buf, size_t size)
{
	*buf = '\0';
	for (int i = 0; i < papers->count; i++)
		rg_text_add(buf, size, "%s%s", *buf ? ", " : "",
			 papers->list[i].name);
}

static int show(const struct experiment_papers *papers, bool wants_list, int count, char **words)
{
	const struct experiment_paper *p = count ? experiment_paper_find(papers, words[0]) : NULL;
	const struct experiment *e = count > 1 ? experiment_find(papers, words[1]) : NULL;
	char accepted[EXPERIMENT_TEXT];

	papers_text(papers, accepted, sizeof(accepted));
	if (!count)
		rg_error("reproduce: no paper (accepted: %s)", accepted);
	else if (!p)
		rg_error("reproduce %s: unknown paper (accepted: %s)", words[0], accepted);
	else if (count > 2 || (count == 2 && wants_list))
		rg_error("reproduce: %s: unexpected (accepted: PAPER --list, or PAPER ID)",
			 words[count - 1]);
	else if (wants_list)
		list(p);
	else if (e && e->paper == p)
		details(e);
	else
		rg_error("reproduce %s%s%s: %s experiment (accepted: --list, or %s)", words[0],
			 count > 1 ? " " : "", count > 1 ? words[1] : "",
			 count > 1 ? "unknown" : "no",
			 experiment_ids(papers, p, NULL, accepted, sizeof(accepted)));
	return p && count <= 2 && (wants_list ? count == 1 : e && e->paper == p) ? RG_EXIT_OK :
		RG_EXIT_USAGE;
}

int cli_reproduce(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct reproduce_values values;
	struct opt_table table = { "Reproduce", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge reproduce", .operands = "PAPER [ID]",
		.summary = "List the experiments of a paper, or print one with its options and the "
			   "paper's values.",
		.tables = &table, .table_count = 1,
		.notes = "Each is run by --experiment ID of its program; what the command line "
			 "says\nwins over the paper's options.  Quoted values are of the paper's "
			 "hardware.\n\nThe data are read from where they were installed, or from "
			 "the\ndirectory that RAILGAUGE_DATA names.",
	};
	struct experiment_papers papers;
	int first, rc = opt_parse(&program, argc, argv, &first);

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (experiment_load(&papers))
		return RG_EXIT_USAGE;
	rc = show(&papers, values.list, argc - first, argv + first);
	experiment_free(&papers);
	return fflush(stdout) || ferror(stdout) ? RG_EXIT_FAULT : rc;
}
