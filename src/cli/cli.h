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

/* ---- library.c: Railgauge's shared libraries, in the build tree or installed ---- */

/* "librailmpi-openmpi" -> its path.  0 or -ENOENT. */
int cli_library_find(const char *name, char *path, size_t size);

#endif
