/*
 * launcher.h - the launcher of this process, by the variables that it sets for each rank.
 *
 * Ranks that the launcher of another MPI library has started do not find each other: MPI_Init makes
 * each of them a job of its own, with one rank.
 */
#ifndef RG_UTIL_LAUNCHER_H
#define RG_UTIL_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

enum rg_mpi { RG_MPI_OPENMPI, RG_MPI_MPICH };

struct rg_launcher {
	const char *name;		/* "Hydra" */
	const char *variable;		/* of the environment: where the number of ranks is */
	int ranks;			/* 1 or more */
	bool serves;			/* true: a launcher for programs of that MPI library */
};

/*
 * The launcher that has started this process of a program built for `mpi`: one that serves it, if
 * several are nested.  False, and *out unchanged: started by no launcher.
 */
bool rg_launcher_find(enum rg_mpi mpi, struct rg_launcher *out);

enum { RG_LAUNCHER_TEXT_BYTES = 256 };
/*
 * Why a process that is alone in its MPI_COMM_WORLD should not be, for a line.  NULL: no launcher has
 * started it, or as the job's only rank.
 */
const char *rg_launcher_refusal(enum rg_mpi mpi, char text[RG_LAUNCHER_TEXT_BYTES]);

#endif
