/* test_launcher.c - the launcher of a process, by what each one sets; who is alone, and who is not. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "util/launcher.h"

/* Variables of a rank of 4, as the launchers set them: Open MPI 4.1, MPICH 4.0, Slurm 22.05. */
#define OMPI "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=1"
#define HYDRA "PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALNRANKS=2"
#define STEP "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=1", "SLURM_NTASKS=4"
/* The daemons of a launcher in a job of two nodes. */
#define DAEMON "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1", "SLURM_NTASKS=4"

static const struct known {
	const char *set[12];
	const char *name[2];		/* for each MPI library; NULL: no launcher */
	bool serves[2];
	int ranks[2];
} known[] = {
	{ { NULL }, { NULL, NULL }, { false, false }, { 0, 0 } },
	{ { OMPI }, { "Open MPI's mpirun", "Open MPI's mpirun" }, { true, false }, { 4, 4 } },
	{ { OMPI, DAEMON }, { "Open MPI's mpirun", "Open MPI's mpirun" }, { true, false }, { 4, 4 } },
	{ { HYDRA }, { "Hydra", "Hydra" }, { false, true }, { 4, 4 } },
	{ { HYDRA, DAEMON }, { "Hydra", "Hydra" }, { false, true }, { 4, 4 } },
	{ { STEP }, { "srun without --mpi", "srun without --mpi" }, { false, false }, { 4, 4 } },
	{ { STEP, "PMI_RANK=1", "PMI_SIZE=4", "SLURM_MPI_TYPE=pmi2" },
	  { "srun --mpi=pmi2", "srun --mpi=pmi2" }, { false, true }, { 4, 4 } },
	{ { STEP, "PMIX_RANK=1", "SLURM_MPI_TYPE=pmix" },
	  { "srun --mpi=pmix", "srun --mpi=pmix" }, { true, false }, { 4, 4 } },
	{ { "PMI_RANK=1", "PMI_SIZE=4" },
	  { "a launcher with PMI", "a launcher with PMI" }, { false, true }, { 4, 4 } },
	{ { "PMI_RANK=1", "PMI_SIZE=4", "FLUX_JOB_ID=f1" }, { "Flux", "Flux" }, { true, true }, { 4, 4 } },
	/* A batch script starts a program without a launcher. */
	{ { "SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=7" }, { NULL, NULL }, { false, false },
	  { 0, 0 } },
	/* A rank of one library starts a job of the other. */
	{ { OMPI, "PMI_RANK=0", "PMI_SIZE=1", "MPI_LOCALNRANKS=1" },
	  { "Open MPI's mpirun", "Hydra" }, { true, true }, { 4, 1 } },
	{ { "PMI_RANK=0", "PMI_SIZE=four" }, { NULL, NULL }, { false, false }, { 0, 0 } },
	{ { "PMI_RANK=0", "PMI_SIZE=0" }, { NULL, NULL }, { false, false }, { 0, 0 } },
};

static void set(const char *const *variables)
{
	assert_int_equal(clearenv(), 0);
	for (; *variables; variables++)
		assert_int_equal(putenv((char *)(size_t)*variables), 0);
}

static void test_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (int mpi = 0; mpi < 2; mpi++) {
			struct rg_launcher got = { "as before", NULL, 0, false };

			set(known[i].set);
			if (!known[i].name[mpi]) {
				assert_false(rg_launcher_find((enum rg_mpi)mpi, &got));
				assert_string_equal(got.name, "as before");
				continue;
			}
			assert_true(rg_launcher_find((enum rg_mpi)mpi, &got));
			assert_string_equal(got.name, known[i].name[mpi]);
			assert_int_equal(got.serves, known[i].serves[mpi]);
			assert_int_equal(got.ranks, known[i].ranks[mpi]);
		}
}

static void refused(enum rg_mpi mpi, const char *const *variables, const char *text)
{
	char buf[RG_LAUNCHER_TEXT_BYTES];
	const char *got;

	set(variables);
	got = rg_launcher_refusal(mpi, buf);
	if (text)
		assert_string_equal(got, text);
	else
		assert_null(got);
}

static void test_refusal(void **state)
{
	static const char *const none[] = { NULL }, *const hydra[] = { HYDRA, NULL },
		*const ompi[] = { OMPI, NULL }, *const step[] = { STEP, NULL },
		*const one[] = { "PMI_RANK=0", "PMI_SIZE=1", "MPI_LOCALNRANKS=1", NULL },
		*const step_of_one[] = { "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", NULL };

	(void)state;
	refused(RG_MPI_OPENMPI, hydra, "started by Hydra (PMI_SIZE=4), built for Open MPI: 4 jobs "
		"of 1 rank (accepted: Open MPI's mpirun, or srun --mpi=pmix)");
	refused(RG_MPI_MPICH, ompi, "started by Open MPI's mpirun (OMPI_COMM_WORLD_SIZE=4), built "
		"for MPICH: 4 jobs of 1 rank (accepted: MPICH's mpiexec, or srun --mpi=pmi2)");
	refused(RG_MPI_MPICH, step, "started by srun without --mpi (SLURM_STEP_NUM_TASKS=4), built "
		"for MPICH: 4 jobs of 1 rank (accepted: MPICH's mpiexec, or srun --mpi=pmi2)");
	refused(RG_MPI_MPICH, hydra, "started by Hydra (PMI_SIZE=4), and MPI_Init has joined no "
		"ranks: 4 jobs of 1 rank (accepted: the launcher of the MPICH that this program loads)");
	/* A job of one rank that is meant. */
	refused(RG_MPI_OPENMPI, one, NULL);
	refused(RG_MPI_MPICH, step_of_one, NULL);
	refused(RG_MPI_OPENMPI, none, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
