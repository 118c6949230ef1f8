/* tune.c - railgauge tune: rg_tune, by a launcher. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cli/launch.h"
#include "cli/tune.h"
#include "util/err.h"
#include "util/opt.h"

enum { WORDS_MAX = 128 };

struct tune_values {
	uint64_t ranks;
	const char *output, *launcher;
};

#define AT(member) .offset = offsetof(struct tune_values, member)
static const struct opt rows[] = {
	{ .name = "output", .alias = "out", .letter = 'o', .type = OPT_TEXT, AT(output), .arg = "FILE",
	  .help = "write the table, for --coll @FILE and RAILGAUGE_COSTS=FILE; default: only print it" },
	{ .name = "ranks", .letter = 'n', .type = OPT_COUNT, AT(ranks), .arg = "N", .standard = "2",
	  .min = 2, .max = 1 << 20, .help = "ranks of the launch" },
	{ .name = "launcher", .type = OPT_TEXT, AT(launcher), .arg = "COMMAND", .standard = "mpirun",
	  .help = "command that starts a job; it gets -np N, or N in place of {n}: 'srun -n {n}'" },
	{ .name = NULL },
};

/* Returns an exit code, if at all. */
static int launch(const struct tune_values *v, char **word)
{
	const char *argv[WORDS_MAX + 4];
	char program[PATH_MAX];
	int count = 0, rc;

	if (cli_suite_find("rg_tune", program, sizeof(program))) {
		rg_error("tune: rg_tune is neither in the directory of this command nor in its build tree");
		return RG_EXIT_FAULT;
	}
	argv[count++] = program;
	if (v->output) {
		argv[count++] = "--out";
		argv[count++] = v->output;
	}
	for (; *word; word++) {
		if (count == WORDS_MAX) {
			rg_error("tune: too many words for rg_tune (accepted: up to %d)", WORDS_MAX);
			return RG_EXIT_USAGE;
		}
		argv[count++] = *word;
	}
	argv[count] = NULL;
	rc = cli_become(v->launcher, (int)v->ranks, argv);
	rg_error("tune: --launcher %s: %s", v->launcher, strerror(-rc));
	return RG_EXIT_USAGE;
}

int cli_tune(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct tune_values values;
	struct opt_table table = { "Launch", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge tune", .operands = "[--] [OPTION OF rg_tune]...",
		.summary = "Measure the algorithms of collectives and the costs of messages within a "
			   "host, and save the table.",
		.tables = &table, .table_count = 1,
		.notes = "Example: railgauge tune --output table -- --over stripe; then "
			 "RAILGAUGE_COSTS=table; --coll @table takes\nthe algorithms alone\n\n"
			 "Lines of the table are \"COLLECTIVE RANKS BYTES ALGORITHM\", for --coll, and "
			 "for RAILGAUGE_COSTS\n\"costs 1 PROCESSOR\" (1: the version), then \"cell TABLE "
			 "PLACE LOAD BYTES SCHEME NAME=COST...\" for each\nclass of messages up to BYTES (0: "
			 "any more), costs in nanoseconds of a message (0: not measured),\nand \"costs-end "
			 "CELLS\".  A table of another processor is refused.\n\n"
			 "TABLE: receive, who copies an offered message; send, "
			 "whether one of 8 to 64 KiB is offered or sent\n"
			 "eagerly; copy, how a message of 1 to 16 KiB is copied to "
			 "another core; map, with --map-buffers,\n"
			 "whether peers map a receive buffer (move: the cost of "
			 "mapping one).  PLACE of the peer, by the CPUs\n"
			 "that both processes are bound to: cache (the last one is "
			 "shared), package, apart (another package);\n"
			 "unbound: one of them may run at several of these; host: not "
			 "known.  A cell of host is for each place\n"
			 "that has none.  LOAD: alone, queued, crossing, "
			 "queued-mixed, crossing-mixed (of unlike sizes); of send: alone, row,\n"
			 "row-mixed, crossing, crossing-mixed; of copy: far, near, as "
			 "both ends are in their pages; of map: all.",
	};
	int first, rc = opt_parse(&program, argc, argv, &first);

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	return launch(&values, argv + first);
}
