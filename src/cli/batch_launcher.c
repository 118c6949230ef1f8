/*
 * batch_launcher.c - see batch_launcher.h.
 *
 * Open MPI's own launcher knows the nodes of a Slurm job and comes first; of srun's types of --mpi it
 * has PMIx.  MPICH comes with PMI-2 to srun, which accounts for each launch and ends it with the job;
 * its own launcher starts its daemons by srun anyway.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/batch_launcher.h"

#define SRUN_WORDS "--kill-on-bad-exit=1 -n {n}"

#if RG_OPENMPI
#define LIBRARY "Open MPI"
#define SRUN_TYPE "pmix"
#define PREFERS_SRUN false
#define RANKS_WORD "-np"
#else
#define LIBRARY "MPICH"
#define SRUN_TYPE "pmi2"
#define PREFERS_SRUN true
#define RANKS_WORD "-n"
#endif

static bool line_has_word(const char *line, const char *word)
{
	const char *at = line;
	size_t length = strlen(word);

	while ((at = strstr(at, word))) {
		if ((at == line || strchr(" \t", at[-1])) && strchr(" \t\n", at[length]))
			return true;
		at += length;
	}
	return false;
}

/* Does srun know this library's type?  -ENOENT: it cannot be asked here. */
static int srun_knows_type(void)
{
	FILE *in = popen("timeout 20 srun --mpi=list </dev/null 2>&1", "r");
	char line[256];
	bool knows = false;
	int status;

	if (!in)
		return -ENOENT;
	while (fgets(line, sizeof(line), in))
		knows = knows || line_has_word(line, SRUN_TYPE);
	status = pclose(in);
	return knows ? 1 : status ? -ENOENT : 0;
}

static void take_mpirun(struct batch_launcher *out, const char *why)
{
	snprintf(out->command, sizeof(out->command), "%s " RANKS_WORD " {n}", RG_MPIRUN);
	snprintf(out->why, sizeof(out->why), "%s", why);
}

static void take_srun(struct batch_launcher *out, const char *why)
{
	snprintf(out->command, sizeof(out->command), "srun --mpi=" SRUN_TYPE " " SRUN_WORDS);
	snprintf(out->why, sizeof(out->why), "%s", why);
}

static void choose(struct batch_launcher *out)
{
	const bool has_mpirun = access(RG_MPIRUN, X_OK) == 0;
	int knows;

	if (has_mpirun && !PREFERS_SRUN) {
		take_mpirun(out, "Built for " LIBRARY ", whose launcher knows the nodes of the job.");
		return;
	}
	knows = srun_knows_type();
	if (knows > 0)
		take_srun(out, "Built for " LIBRARY "; srun has --mpi=" SRUN_TYPE " here.");
	else if (knows < 0)
		take_mpirun(out, "Built for " LIBRARY "; srun could not be asked for its types of --mpi.");
	else
		take_mpirun(out, "Built for " LIBRARY "; srun has no --mpi=" SRUN_TYPE " here.");
}

void batch_launcher_find(const char *wanted, struct batch_launcher *out)
{
	if (!wanted)
		choose(out);
	else if (!strcmp(wanted, "mpirun"))
		take_mpirun(out, "Built for " LIBRARY ": its own launcher.");
	else if (!strcmp(wanted, "srun"))
		take_srun(out, "Built for " LIBRARY ": its type of --mpi.");
	else
		snprintf(out->command, sizeof(out->command), "%s", wanted);
}
