/*
 * cli.h - the railgauge command: a table of subcommands, one file each.
 *
 * A subcommand gets its own arguments (argv[0] is its name), has its own option tables, and
 * returns the exit code.
 */
#ifndef RG_CLI_H
#define RG_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_command {
	const char *name;
	const char *summary;		/* for railgauge --help */
	int (*run)(int argc, char **argv);
};

int cli_exec(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_reproduce(int argc, char **argv);
int cli_topo(int argc, char **argv);

/* ---- program.c: the kind of a program ---- */

enum cli_program_kind {
	CLI_PROGRAM_SCRIPT,		/* not ELF: unknown */
	CLI_PROGRAM_STATIC,
	CLI_PROGRAM_FOREIGN,		/* ELF of another machine */
	CLI_PROGRAM_NO_MPI,		/* dynamic, but no MPI library among its libraries */
	CLI_PROGRAM_OPENMPI,
	CLI_PROGRAM_MPICH,
};

/* Find name as execvp would.  0 or -errno. */
int cli_program_find(const char *name, char *path, size_t size);
/* 0 or -errno; *kind only on success. */
int cli_program_kind(const char *path, enum cli_program_kind *kind);

/* ---- watch.c ---- */

/* Of the process that the program `name` will replace: at its end rank 0 tells if the layer saw nothing. */
void cli_watch(const char *name);

/* ---- launch.c: programs of the suite, by a launcher ---- */

struct cli_launch {
	const char *launcher;		/* "mpirun", with its options, blanks between */
	int ranks;			/* its -np */
	const char *const *argv;	/* the program and its arguments; ends with NULL */
	const char *log;		/* a file that gets what is printed */
	unsigned limit_s;
};

/* "rg_bw" -> its path, in the build tree or installed.  0 or -ENOENT. */
int cli_suite_find(const char *name, char *path, size_t size);
/*
 * Run it to its end.  The exit code of the launcher (127: there is no such command), 128 + signal,
 * -ETIMEDOUT (it has been ended) or another -errno.
 */
int cli_launch(const struct cli_launch *launch);

/* ---- reproduce_run.c ---- */

struct experiment_paper;

struct cli_reproduction {
	const char *launcher, *out;	/* out: directory of records and texts, which exists */
	uint64_t time_ns;		/* for all launches */
};

/* Run a paper's experiments and print their values beside the paper's.  An exit code. */
int cli_reproduction_run(const struct experiment_paper *p, const struct cli_reproduction *r);

/* ---- library.c: Railgauge's shared libraries, in the build tree or installed ---- */

/* The directory of this command, where it really is.  0 or -ENOENT. */
int cli_directory(char *path, size_t size);
/* "librailmpi-openmpi" -> its path.  0 or -ENOENT. */
int cli_library_find(const char *name, char *path, size_t size);

#endif
