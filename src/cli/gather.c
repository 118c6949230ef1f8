/*
 * gather.c - values of all nodes of a job.
 *
 * The command links no MPI library, so that it runs where none is and under either one.  In a job
 * each rank starts a child, railgauge-gather-openmpi or -mpich (gather_mpi.c), which takes the rank's
 * place in the job: it reads the rank's value, and that of rank 0 writes all of them, a line each.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/gather.h"
#include "cli/gather_mpi.h"
#include "cli/library.h"
#include "util/err.h"

/* ---- What the launcher says --------------------------------------------------------- */

/* A number of the environment, or -1. */
static int variable(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long value;

	if (!text || !*text)
		return -1;
	value = strtol(text, &end, 10);
	return *end || value < 0 || value > INT_MAX ? -1 : (int)value;
}

static int first_variable(const char *const *name)
{
	int value = -1;

	for (; value < 0 && *name; name++)
		value = variable(*name);
	return value;
}

int gather_ranks(void)
{
	/* Slurm's last: mpirun of a batch script inherits variables of its step. */
	static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
					     NULL };
	const int ranks = rg_launch_rank() < 0 ? 1 : first_variable(names);

	return ranks > 1 ? ranks : 1;
}

bool gather_leads(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					     "SLURM_LOCALID", NULL };

	return first_variable(names) <= 0;
}

/* The MPI library of the launcher, if it tells; else the one of this build. */
static const char *flavor(void)
{
	if (variable("OMPI_COMM_WORLD_RANK") >= 0)
		return "openmpi";
	return variable("PMI_RANK") >= 0 && variable("PMIX_RANK") < 0 && variable("SLURM_PROCID") < 0 ?
		"mpich" : RG_MPI_FLAVOR;
}

/* ---- The child ---------------------------------------------------------------------- */

/* A file in memory with the value, to be read from its start. */
static int value_file(const json_t *mine)
{
	int fd = memfd_create("railgauge", MFD_CLOEXEC);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (!out) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	fd = dup(fd);
	if (mine && json_dumpf(mine, out, JSON_COMPACT)) {
		close(fd);
		fd = -1;
	}
	if (fclose(out) || fd < 0 || lseek(fd, 0, SEEK_SET))
		return -ENOMEM;
	return fd;
}

static _Noreturn void become(const char *path, int in, int out)
{
	char ranks[16];

	/* A launcher that ends the rank knows no child. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(ranks, sizeof(ranks), "%d", gather_ranks());
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execl(path, path, ranks, (char *)NULL);
	_exit(GATHER_NO_START);
}

/* All lines of the child, each a value. */
static json_t *values_read(int from)
{
	FILE *in = fdopen(from, "r");
	json_t *all = json_array(), *value;
	char *line = NULL;
	size_t room = 0;

	while (in && getline(&line, &room, in) > 0) {
		value = json_loads(line, 0, NULL);
		json_array_append_new(all, value ? value : json_null());
	}
	free(line);
	if (in)
		fclose(in);
	else
		close(from);
	return all;
}

static int child_judge(int status, const char *path)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	switch (code) {
	case 0:
		return 0;
	case GATHER_OTHER_JOB:
		rg_error("this job has %d ranks, but not for %s: its launcher is of another MPI "
			 "library, or of another version (accepted: the launcher of the MPI library "
			 "that Railgauge was built for)", gather_ranks(), path);
		return -EINVAL;
	case GATHER_NO_START:
		rg_error("%s: cannot be started", path);
		return -ENOENT;
	default:
		rg_error("the nodes' values have not come together: %s ended with exit code %d", path,
			 code);
		return -EIO;
	}
}

static int child_run(const char *path, int in, json_t **all)
{
	int out[2], status = 0;
	pid_t child;

	if (pipe(out))
		return -errno;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		close(out[0]);
		become(path, in, out[1]);
	}
	close(out[1]);
	if (child < 0) {
		int rc = -errno;

		close(out[0]);
		return rc;
	}
	*all = values_read(out[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child_judge(status, path);
}

int gather(const json_t *mine, json_t **all)
{
	char name[64], path[PATH_MAX];
	json_t *values = NULL;
	int rc, in;

	snprintf(name, sizeof(name), "railgauge-gather-%s", flavor());
	if (cli_helper_find(name, path, sizeof(path))) {
		rg_error("%s is not installed: it brings the nodes of a job together (configure "
			 "--with-mpi=%s builds it)", name, flavor());
		return -ENOENT;
	}
	in = value_file(mine);
	if (in < 0) {
		rg_error("no memory");
		return -ENOMEM;
	}
	rc = child_run(path, in, &values);
	close(in);
	if (rc || rg_launch_rank() > 0) {
		json_decref(values);
		values = NULL;
	}
	*all = values;
	return rc;
}
