/*
 * exec.c - railgauge exec: run an unmodified MPI program over rails.
 *
 *	mpirun -np 4 railgauge exec --over stripe -- ./program
 *
 * Options become RAILGAUGE_ variables.  The two libraries are added to LD_PRELOAD, after existing
 * entries, because a profiling tool must come first, but before an MPI library.  Then the program
 * replaces this process.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exec.h"
#include "cli/library.h"
#include "cli/program.h"
#include "cli/watch.h"
#include "util/err.h"
#include "util/opt.h"
#include "mpi/railmpi.h"
#include "util/told.h"

struct exec_values { bool force; };

static const struct opt rows[] = {
	{ .name = "force", .type = OPT_FLAG, .offset = offsetof(struct exec_values, force),
	  .help = "also start a statically linked program, which the layer cannot reach" },
	{ .name = NULL },
};

/* Export the values of the command line; the program gets defaults and the environment anyway. */
static int table_export(const struct opt_table *t)
{
	opt_each(row, t) {
		char name[64], text[1024];

		if (t->origin[row - t->rows] != OPT_FROM_COMMAND_LINE)
			continue;
		if (setenv(opt_variable(row, name, sizeof(name)),
			   opt_text(t, row, text, sizeof(text)), 1))
			return -errno;
	}
	return 0;
}

/* The program's rank 0 tells of the job, unless the user wants it quiet. */
static int speak(const struct opt_table *t)
{
	char name[64];

	opt_each(row, t)
		if (opt_is_named(row, "quiet") &&
		    t->origin[row - t->rows] == OPT_FROM_DEFAULT &&
		    setenv(opt_variable(row, name, sizeof(name)), "no", 1))
			return -errno;
	return 0;
}

/* ---- Is it a program for us? ---------------------------------------------------------- */

static const char *flavor_name(const char *flavor)
{
	return strcmp(flavor, "openmpi") == 0 ? "Open MPI" : "MPICH";
}

/*
 * The MPI library of a program that links none (an interpreter, a shell, a debugger) and loads or
 * starts it later: the launcher's, if a layer for it exists.  The layer checks again in MPI_Init.
 */
static const char *launcher_flavor(void)
{
	char path[PATH_MAX];

	if (getenv("OMPI_COMM_WORLD_RANK") &&
	    !cli_library_find("librailmpi-openmpi", path, sizeof(path)))
		return "openmpi";
	if (getenv("PMI_RANK") && !cli_library_find("librailmpi-mpich", path, sizeof(path)))
		return "mpich";
	return RG_MPI_FLAVOR;
}

static int program_check(const char *name, const char *path, bool force, const char **flavor)
{
	enum cli_program_kind kind;
	int rc = cli_program_kind(path, &kind);

	*flavor = RG_MPI_FLAVOR;
	if (rc) {
		rg_error("%s: %s", name, strerror(-rc));
		return rc;
	}
	switch (kind) {
	case CLI_PROGRAM_NO_MPI:
	case CLI_PROGRAM_SCRIPT:
		*flavor = launcher_flavor();
		return 0;
	case CLI_PROGRAM_OPENMPI:
		*flavor = "openmpi";
		return 0;
	case CLI_PROGRAM_MPICH:
		*flavor = "mpich";
		return 0;
	case CLI_PROGRAM_STATIC:
		if (force)
			return 0;
		rg_error("%s: statically linked: nothing can be put before its MPI library "
			 "(accepted: a dynamically linked program)", name);
		return -EINVAL;
	default:
		rg_error("%s: not a program of this machine", name);
		return -EINVAL;
	}
}

/* The bytes of the list that precede the first MPI library in it, which the layer must precede. */
static int tools_of(const char *list)
{
	static const char *const stems[] = { "libmpi.so", "libmpich.so" };
	const char *at = list, *name;
	size_t length, stem;

	while (*at) {
		length = strcspn(at, ": ");
		name = memrchr(at, '/', length);
		name = name ? name + 1 : at;
		for (size_t i = 0; i < sizeof(stems) / sizeof(stems[0]); i++) {
			stem = strlen(stems[i]);
			if (!strncmp(name, stems[i], stem) && strchr(": .", name[stem]))
				return (int)(at - list);
		}
		at += length + (at[length] != '\0');
	}
	return (int)(at - list);
}

static int preload_set(const char *flavor)
{
	char layer_name[64], layer[PATH_MAX], softhca[PATH_MAX], *list;
	const char *before = getenv("LD_PRELOAD");
	int rc, tools;

	snprintf(layer_name, sizeof(layer_name), "librailmpi-%s", flavor);
	if (cli_library_find(layer_name, layer, sizeof(layer))) {
		rg_error("the program's MPI library is %s, and %s is not installed (configure "
			 "--with-mpi=%s builds it; this railgauge was built for %s)",
			 flavor_name(flavor), layer_name, flavor, flavor_name(RG_MPI_FLAVOR));
		return -ENOENT;
	}
	if (cli_library_find("libsofthca", softhca, sizeof(softhca))) {
		rg_error("libsofthca is not next to this command: the installation is "
			 "incomplete");
		return -ENOENT;
	}
	before = before ? before : "";
	tools = tools_of(before);
	if (asprintf(&list, "%.*s%s%s:%s%s%s", tools, before,
		     tools && !strchr(": ", before[tools - 1]) ? ":" : "", layer, softhca,
		     before[tools] ? ":" : "", before + tools) < 0)
		return -ENOMEM;
	rc = setenv("LD_PRELOAD", list, 1) ? -errno : 0;
	free(list);
	return rc;
}

int cli_exec(int argc, char **argv)
{
	static unsigned char origins[3][OPT_ROWS_MAX];
	static struct exec_values values;
	struct opt_table tables[] = {
		{ "Program", rows, &values, origins[0] },
		{ "Messages", railmpi_program_options(), NULL, origins[1] },
		{ "Transport", railmpi_options(), NULL, origins[2] },
	};
	struct opt_program program = {
		.name = "railgauge exec", .summary = "Run an MPI program, unmodified, over rails.",
		.operands = "[--] PROGRAM [ARGUMENT]...", .first_operand_ends = true,
		.tables = tables, .table_count = 3,
		.notes = "Example: mpirun -np 4 railgauge exec --over stripe -- ./program",
	};
	const char *flavor;
	char path[PATH_MAX];
	int rc, first;

	rg_set_quiet(rg_launch_rank() > 0);
	rc = -ENOMEM;
	for (int t = 1; t < 3; t++)
		tables[t].values = opt_values_alloc(tables[t].rows);
	if (!tables[1].values || !tables[2].values)
		goto out;
	rc = opt_parse(&program, argc, argv, &first);
	if (rc)
		goto out;
	rc = -EINVAL;
	if (first == argc) {
		rg_error("exec: no program (accepted: railgauge exec [OPTION]... PROGRAM)");
		goto out;
	}
	if (cli_program_find(argv[first], path, sizeof(path))) {
		rg_error("%s: no such program", argv[first]);
		goto out;
	}
	rc = program_check(argv[first], path, values.force, &flavor);
	for (int t = 1; t < 3 && !rc; t++)
		rc = table_export(&tables[t]);
	if (!rc)
		rc = speak(&tables[1]);
	if (!rc)
		rc = preload_set(flavor);
	if (rc)
		goto out;
	cli_watch(argv[first]);
	execv(path, argv + first);
	rc = -errno;
	told_say();		/* the watcher ends without a warning */
	rg_error("%s: %s", argv[first], strerror(-rc));
out:
	if (rc && rc != 1)
		rg_let_rank_0_speak();
	free(tables[1].values);
	free(tables[2].values);
	return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
}
