/* main.c - railgauge: selection of the subcommand. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/check.h"
#include "cli/cite.h"
#include "cli/compare.h"
#include "cli/exec.h"
#include "cli/report.h"
#include "cli/reproduce.h"
#include "cli/run.h"
#include "cli/sbatch.h"
#include "cli/show.h"
#include "cli/topo.h"
#include "cli/tune.h"
#include "util/err.h"
#include "util/text.h"

static const struct cli_command commands[] = {
	{ "check", "check nodes, a node's health, or records, by rules", cli_check },
	{ "cite", "print results as text for a paper: sentence, method, BibTeX", cli_cite },
	{ "compare", "compare two campaigns and judge each row", cli_compare },
	{ "exec", "run an MPI program, unmodified, over rails", cli_exec },
	{ "report", "print results again and draw them", cli_report },
	{ "reproduce", "repeat experiments of papers and compare the values", cli_reproduce },
	{ "run", "run a campaign of launches, or tell whether rails speed up a program", cli_run },
	{ "sbatch", "print a batch script for Slurm that runs a campaign", cli_sbatch },
	{ "show", "print the medians of result files as a table, CSV or LaTeX", cli_show },
	{ "topo", "show rails, the devices near them and their limits, of one node or a job's", cli_topo },
	{ "tune", "measure collectives and costs within a host, and save the table", cli_tune },
	{ NULL },
};

static void help(void)
{
	printf("Usage: railgauge COMMAND [OPTION]...\n"
	       "Measure several network rails in MPI programs.\n\nCommands:\n");
	for (const struct cli_command *c = commands; c->name; c++)
		printf("  %-12s %s\n", c->name, c->summary);
	printf("\nOther options:\n"
	       "  --help       print this and exit "
	       "(railgauge COMMAND --help: options of the command)\n"
	       "  --version    print the version and exit\n\n"
	       "The benchmarks are programs of their own: rg_latency, rg_bw, rg_bcast, rg_is, ...\n\n"
	       "Exit status: 0 well, 1 a check failed, 2 undecided (compare), 3 wrong use or damaged input, 4 a fault.\n");
}

static void unknown(const char *name)
{
	char list[256] = "";

	for (const struct cli_command *c = commands; c->name; c++)
		rg_text_add(list, sizeof(list), "%s%s",
			 *list ? ", " : "", c->name);
	rg_error("%s: unknown command (accepted: %s)", name, list);
}

static int command(int argc, char **argv)
{
	if (argc < 2) {
		rg_error("no command (accepted: see railgauge --help)");
		return RG_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		help();
		return RG_EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("railgauge (railgauge) %s\n", PACKAGE_VERSION);
		return RG_EXIT_OK;
	}
	for (const struct cli_command *c = commands; c->name; c++)
		if (strcmp(argv[1], c->name) == 0)
			return c->run(argc - 1, argv + 1);
	unknown(argv[1]);
	return RG_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	rg_set_program("railgauge");
	return rg_end(command(argc, argv));
}
