/* program.h - the kind of a program. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "cli/cli.h"

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

#endif
