/* sbatch.c - railgauge sbatch: print a batch script for Slurm. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/batch_launcher.h"
#include "cli/batch_script.h"
#include "cli/library.h"
#include "cli/sbatch.h"
#include "util/err.h"
#include "util/opt.h"

struct sbatch_values {
	uint64_t nodes, ranks_per_node, repeats, launches;
	int preset;
	const char *time, *partition, *account, *out, *launcher, *run;
};

/* The time limit of a preset is well above its budget. */
static const char *const preset_times[] = { "0:15:00", "2:00:00", "12:00:00" };
static const struct opt_choice presets[] = {
	{ "quick", 0, "about 2 minutes" },
	{ "standard", 1, "about an hour" },
	{ "paper", 2, "about 8 hours" },
	{ NULL },
};

static int time_check(const char *text, char *why, size_t size)
{
	if (*text >= '0' && *text <= '9' && !text[strspn(text, "0123456789:-")])
		return 0;
	snprintf(why, size, "no time limit of Slurm's (accepted: MINUTES, H:MM:SS or D-HH:MM:SS)");
	return -EINVAL;
}

/* Words of Slurm's go into comments, which end with their line. */
static int name_check(const char *text, char *why, size_t size)
{
	if (*text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_.,+-")])
		return 0;
	snprintf(why, size, "no name of Slurm's (accepted: letters, digits and _.,+-)");
	return -EINVAL;
}

static int line_check(const char *text, char *why, size_t size)
{
	if (*text && !strchr(text, '\n'))
		return 0;
	snprintf(why, size, "empty, or several lines (accepted: a line)");
	return -EINVAL;
}

static int launcher_check(const char *text, char *why, size_t size)
{
	if (!strcmp(text, "mpirun") || !strcmp(text, "srun") ||
	    (strstr(text, "{n}") && !strchr(text, '\n') && strlen(text) < PATH_MAX))
		return 0;
	snprintf(why, size, "no place for the number of ranks (accepted: mpirun, srun, or a command "
		 "with {n}, such as 'mpiexec -n {n}')");
	return -EINVAL;
}

#define AT(member) .offset = offsetof(struct sbatch_values, member)
static const struct opt rows[] = {
	{ .name = "nodes", .letter = 'N', .type = OPT_COUNT, AT(nodes), .arg = "N", .standard = "2",
	  .min = 1, .max = 100000, .help = "nodes of the job" },
	{ .name = "ranks-per-node", .type = OPT_COUNT, AT(ranks_per_node), .arg = "N",
	  .standard = "1", .min = 1, .max = 4096, .help = "ranks on each node" },
	{ .name = "time", .letter = 't', .type = OPT_TEXT, AT(time), .arg = "LIMIT",
	  .check = time_check,
	  .help = "time limit in Slurm's form; default: 15 minutes, 2 hours or 12 hours, by the preset" },
	{ .name = "repeats", .type = OPT_COUNT, AT(repeats), .arg = "N", .standard = "1", .min = 1,
	  .max = 1000, .help = "campaigns, as the tasks of an array, one at a time" },
	{ .name = "partition", .letter = 'p', .type = OPT_TEXT, AT(partition), .arg = "NAME",
	  .check = name_check, .help = "partition of the job" },
	{ .name = "account", .letter = 'A', .type = OPT_TEXT, AT(account), .arg = "NAME",
	  .check = name_check, .help = "account that the job is charged to" },
	{ .name = "preset", .type = OPT_CHOICE, AT(preset), .arg = "NAME", .standard = "quick",
	  .choices = presets, .help = "campaign of railgauge run" },
	{ .name = "launches", .type = OPT_COUNT, AT(launches), .arg = "N", .min = 1,
	  .max = 1000000, .help = "launches of each program; default: the preset's" },
	{ .name = "out", .letter = 'o', .type = OPT_TEXT, AT(out), .arg = "DIR",
	  .standard = "railgauge-campaign", .check = line_check,
	  .help = "directory of the campaign, of repeats one in it for each" },
	{ .name = "launcher", .type = OPT_TEXT, AT(launcher), .arg = "COMMAND",
	  .check = launcher_check,
	  .help = "mpirun, srun (with the MPI library's --mpi), or a command with {n}; default: what "
		  "serves the MPI library here" },
	{ .name = "run", .type = OPT_TEXT, AT(run), .arg = "WORDS", .check = line_check,
	  .help = "further options of railgauge run, blanks between: '--over native,stripe'" },
	{ .name = NULL },
};

/* Where users call it: in the build tree one directory above what libtool links. */
static int own_path(char *path, size_t size)
{
	char dir[PATH_MAX], *end;

	if (cli_directory(dir, sizeof(dir)))
		return -ENOENT;
	end = strrchr(dir, '/');
	if (end && !strcmp(end, "/.libs"))
		*end = '\0';
	return snprintf(path, size, "%s/railgauge", dir) < (int)size ? 0 : -ENOENT;
}

static int print_script(const struct sbatch_values *v, int words, char **word, char **program)
{
	struct batch_launcher launcher = { .why = "As --launcher says." };
	char self[PATH_MAX + 16];
	struct batch_job job = {
		.argc = words, .argv = word, .railgauge = self, .launcher = launcher.command,
		.launcher_why = launcher.why, .out = v->out, .partition = v->partition,
		.account = v->account, .time = v->time ? v->time : preset_times[v->preset],
		.preset = presets[v->preset].name, .run_words = v->run,
		.program = program, .nodes = (unsigned)v->nodes,
		.ranks_per_node = (unsigned)v->ranks_per_node, .repeats = (unsigned)v->repeats,
		.launches = (unsigned)v->launches,
	};

	if (own_path(self, sizeof(self))) {
		rg_error("sbatch: the path of this command is not known");
		return RG_EXIT_FAULT;
	}
	batch_launcher_find(v->launcher, &launcher);
	batch_script_write(&job, stdout);
	return RG_EXIT_OK;
}

int cli_sbatch(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct sbatch_values values;
	struct opt_table table = { "Job", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge sbatch", .operands = "[--] [PROGRAM [ARGUMENT]...]",
		.first_operand_ends = true,
		.summary = "Print a batch script for Slurm that runs a campaign, or launches a program "
			   "natively and over rails.",
		.tables = &table, .table_count = 1,
		.notes = "Example: railgauge sbatch --nodes 4 --time 0:30:00 >job.sh && sbatch job.sh\n\n"
			 "The script can be read and edited.  It calls railgauge run, which keeps each "
			 "launch that\nhas ended and resumes: after the time limit, preemption, scancel or "
			 "the end of a node\nthe same job, or the script submitted again, measures what is "
			 "missing.",
	};
	char **words = malloc((size_t)argc * sizeof(*words));
	int first, rc;

	if (!words)
		return RG_EXIT_FAULT;
	memcpy(words, argv, (size_t)argc * sizeof(*words));	/* in the user's order */
	rc = opt_parse(&program, argc, argv, &first);
	if (rc)
		rc = rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	else
		rc = print_script(&values, argc, words, first < argc ? argv + first : NULL);
	free(words);
	return rc;
}
