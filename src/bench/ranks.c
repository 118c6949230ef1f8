/*
 * ranks.c - operations of all ranks together, used by every step: one number for all, and the
 * end of the job when a rank cannot go on.
 */
#include "bench/ranks.h"

#include <string.h>
#include <time.h>

#include "util/clock.h"

/* ---- The end of the job ------------------------------------------------------------- */

void *bench_must(void *memory)
{
	if (!memory) {
		rg_error("no memory for results (use fewer --iterations or ranks)");
		rg_let_launcher_read();
		MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
	}
	return memory;
}

static void on_mpi_error(MPI_Comm *comm, int *code, ...)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length, rank = -1;

	MPI_Error_string(*code, text, &length);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	rg_set_quiet(false);
	/* The transport has reported a lost rank. */
	if (!railmpi_error_is_lost(*code))
		rg_error("rank %d: MPI: %s", rank, text);
	rg_let_launcher_read();
	MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
}

void ranks_guard(MPI_Comm comm)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(on_mpi_error, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
}

/* ---- Agreement ------------------------------------------------------------------------ */

bool ranks_failed(const struct bench_job *job, int rc)
{
	int mine[2] = { rc ? job->b.rank : job->b.size, rc != 0 }, all[2];

	MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, job->where.comm);
	if (rc && !all[1] && job->where.host_count > 1)
		rg_errors_place(job->where.place[job->b.rank].host);
	rg_errors_release(all[0] == job->b.rank);
	return all[0] < job->b.size;
}

/* A rank without work sleeps, so that ranks with work have the cores. */
static void wait_for(const struct bench_job *job, MPI_Request *request)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	int done = 0;

	if (place_runs(job) && !job->where.oversubscribed) {
		MPI_Wait(request, MPI_STATUS_IGNORE);
		return;
	}
	while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
		nanosleep(&nap, NULL);
}

uint64_t ranks_max(const struct bench_job *job, uint64_t mine)
{
	uint64_t all;
	MPI_Request request;

	MPI_Iallreduce(&mine, &all, 1, MPI_UINT64_T, MPI_MAX, job->where.comm, &request);
	wait_for(job, &request);
	return all;
}

void ranks_reduce(const struct bench_job *job, uint64_t *values, int count, MPI_Op op)
{
	MPI_Request request;

	MPI_Ireduce(job->b.rank ? values : MPI_IN_PLACE, values, count, MPI_UINT64_T, op, 0, job->where.comm,
		    &request);
	wait_for(job, &request);
}

void ranks_barrier(const struct bench_job *job)
{
	MPI_Request request;
	int done = 0;

	if (!job->where.oversubscribed) {
		MPI_Barrier(job->where.comm);
		return;
	}
	MPI_Ibarrier(job->where.comm, &request);
	while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
		rg_yield();
}

void ranks_meet(const struct bench_job *job)
{
	MPI_Request request;

	MPI_Ibarrier(job->where.comm, &request);
	wait_for(job, &request);
}

char *ranks_texts(const struct bench_job *job, const char *mine)
{
	int length = (int)strlen(mine) + 1, *lengths = NULL, *at = NULL, total = 0;
	char *all = NULL;

	if (job->b.rank == 0) {
		lengths = bench_must(calloc((size_t)job->b.size, 2 * sizeof(lengths[0])));
		at = lengths + job->b.size;
	}
	MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, job->where.comm);
	for (int i = 0; lengths && i < job->b.size; i++) {
		at[i] = total;
		total += lengths[i];
	}
	if (lengths)
		all = bench_must(malloc((size_t)total));
	MPI_Gatherv(mine, length, MPI_CHAR, all, lengths, at, MPI_CHAR, 0, job->where.comm);
	free(lengths);
	return all;
}
