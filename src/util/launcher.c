/* launcher.c - see launcher.h. */
#include "util/launcher.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPENMPI = 1 << RG_MPI_OPENMPI, MPICH = 1 << RG_MPI_MPICH };

/*
 * A rank of a launcher has both variables.  srun comes last, because other launchers start their
 * daemons by it.  Its job steps alone have SLURM_STEP_NUM_TASKS, not the batch script.
 */
static const struct launcher_row {
	const char *name, *mark, *size;
	int serves;
} rows[] = {
	{ "Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", OPENMPI },
	{ "Hydra", "MPI_LOCALNRANKS", "PMI_SIZE", MPICH },
	{ "srun --mpi=pmi2", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", MPICH },
	{ "Flux", "FLUX_JOB_ID", "PMI_SIZE", OPENMPI | MPICH },
	{ "a launcher with PMI", "PMI_RANK", "PMI_SIZE", MPICH },
	{ "srun --mpi=pmix", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", OPENMPI },
	{ "srun without --mpi", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", 0 },
};

static const struct {
	const char *name, *launchers;
} libraries[] = {
	[RG_MPI_OPENMPI] = { "Open MPI", "Open MPI's mpirun, or srun --mpi=pmix" },
	[RG_MPI_MPICH] = { "MPICH", "MPICH's mpiexec, or srun --mpi=pmi2" },
};

/* Ranks of the job that this launcher has started; 0: it has not. */
static int ranks_by(const struct launcher_row *row)
{
	const char *text = getenv(row->size);
	char *end;
	long ranks;

	if (!text || !*text || !getenv(row->mark))
		return 0;
	ranks = strtol(text, &end, 10);
	return *end || ranks < 1 || ranks > 0x7fffffff ? 0 : (int)ranks;
}

bool rg_launcher_find(enum rg_mpi mpi, struct rg_launcher *out)
{
	bool found = false;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int ranks = ranks_by(&rows[i]);
		const bool serves = rows[i].serves & 1 << mpi;

		if (!ranks || (found && !serves))
			continue;
		*out = (struct rg_launcher){ rows[i].name, rows[i].size, ranks, serves };
		found = true;
		if (serves)
			break;
	}
	return found;
}

const char *rg_launcher_refusal(enum rg_mpi mpi, char text[RG_LAUNCHER_TEXT_BYTES])
{
	const size_t size = RG_LAUNCHER_TEXT_BYTES;
	struct rg_launcher by;

	if (!rg_launcher_find(mpi, &by) || by.ranks == 1)
		return NULL;
	if (!by.serves)
		snprintf(text, size, "started by %s (%s=%d), built for %s: %d jobs of 1 rank "
			 "(accepted: %s)", by.name, by.variable, by.ranks, libraries[mpi].name,
			 by.ranks, libraries[mpi].launchers);
	else
		snprintf(text, size, "started by %s (%s=%d), and MPI_Init has joined no ranks: %d "
			 "jobs of 1 rank (accepted: the launcher of the %s that this program loads)",
			 by.name, by.variable, by.ranks, by.ranks, libraries[mpi].name);
	return text;
}
