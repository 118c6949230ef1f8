/* reproduce.c - railgauge reproduce: experiments of papers, listed, explained or repeated. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/reproduce.h"
#include "cli/reproduce_run.h"
#include "util/err.h"
#include "report/experiment.h"
#include "util/opt.h"
#include "util/text.h"

struct reproduce_values {
	bool list;
	const char *out, *launcher;
	uint64_t time_ns;
};

#define AT(member) .offset = offsetof(struct reproduce_values, member)
static const struct opt rows[] = {
	{ .name = "list", .letter = 'l', .type = OPT_FLAG, AT(list),
	  .help = "print one line per experiment: id, figure, command and subject" },
	{ .name = "time", .letter = 't', .type = OPT_TIME, AT(time_ns), .arg = "SECONDS",
	  .standard = "600s", .min = 1000000000, .max = UINT64_C(86400000000000), .bare = "s",
	  .help = "time for all experiments together" },
	{ .name = "out", .letter = 'o', .type = OPT_TEXT, AT(out), .arg = "DIR",
	  .help = "directory of records (ID.jsonl) and tables (ID.txt); default: reproduce-PAPER" },
	{ .name = "launcher", .type = OPT_TEXT, AT(launcher), .arg = "COMMAND",
	  .standard = "mpirun", .help = "command that starts a job; it gets -np N, or N in place of {n}" },
	{ .name = NULL },
};

static void list(const struct experiment_paper *p)
{
	char command[EXPERIMENT_TEXT], figure[EXPERIMENT_FIGURE];

	for (int i = 0; i < p->count; i++) {
		const struct experiment *e = &p->list[i];

		printf("%-20s figure %-3s %-60s # %s; %s", e->id, experiment_figure(e, figure),
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
	if (e->differs)
		printf("differs: %s\n", e->differs);
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

/* Repeat all experiments of a paper. */
static int repeat(const struct experiment_paper *p, const struct reproduce_values *v)
{
	struct cli_reproduction r = { .launcher = v->launcher, .time_ns = v->time_ns };
	char out[64], inside[PATH_MAX];

	snprintf(out, sizeof(out), "reproduce-%s", p->name);
	r.out = v->out ? v->out : out;
	snprintf(inside, sizeof(inside), "%s/.", r.out);
	if ((mkdir(r.out, 0777) && errno != EEXIST) || access(inside, W_OK | X_OK)) {
		rg_error("--out %s: %s (accepted: a directory, or the name of a new one)", r.out,
			 strerror(errno));
		return RG_EXIT_USAGE;
	}
	return cli_reproduction_run(p, &r);
}

static int show(const struct experiment_papers *papers, const struct reproduce_values *v, int count,
		char **words)
{
	const struct experiment_paper *p = count ? experiment_paper_find(papers, words[0]) : NULL;
	const struct experiment *e = count > 1 ? experiment_find(papers, words[1]) : NULL;
	const bool wants_list = v->list;
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
	else if (count == 1)
		return repeat(p, v);
	else if (e && e->paper == p)
		details(e);
	else
		rg_error("reproduce %s %s: unknown experiment (accepted: --list, or %s)", words[0],
			 words[1], experiment_ids(papers, p, NULL, accepted, sizeof(accepted)));
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
		.summary = "Repeat the experiments of a paper and compare their values with the "
			   "paper's; list them; or print one with its options.",
		.tables = &table, .table_count = 1,
		.notes = "The option --experiment ID of a program runs one experiment; options on "
			 "the command\nline win over the paper's options.  Quoted values come from "
			 "the paper's hardware,\nmeasured values from models of that hardware on "
			 "the software HCA.  Rows are cut so\nthat all experiments keep to --time; "
			 "a value is the median of its row.  railgauge\nreport draws the records, "
			 "with the paper's values as open circles.\n\nThe data come from the "
			 "installation, or from the directory that RAILGAUGE_DATA\nnames.",
	};
	struct experiment_papers papers;
	int first, rc = opt_parse(&program, argc, argv, &first);

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (experiment_load(&papers))
		return RG_EXIT_USAGE;
	rc = show(&papers, &values, argc - first, argv + first);
	experiment_free(&papers);
	return rc;
}
