/* start_coll.c - see start_coll.h. */
#include "mpi/job/start_coll.h"

#include "mpi/job/progress.h"
#include "util/clock.h"

enum {
	YIELDS = 1000,			/* before naps */
	NAP_NS = 100000,
};

void start_pause(unsigned round)
{
	if (round < YIELDS)
		rg_yield();
	else
		rg_sleep_ns(NAP_NS);
}

/*
 * A thread that gets the core meanwhile begins a call of its own.  Of threads that make communicators at a
 * time MPICH lets one go on, and all others repeat their collectives until it has.
 */
static bool keeps_core(void)
{
	return layer.multiple && !layer.oversubscribed;
}

bool start_await(MPI_Request *request, uint64_t limit_ns)
{
	const uint64_t now = rg_now_ns(), until = limit_ns < UINT64_MAX - now ? now + limit_ns : UINT64_MAX;
	int done = 0;

	if (keeps_core() && limit_ns == UINT64_MAX) {
		native.Wait(request, MPI_STATUS_IGNORE);
		return true;
	}
	for (unsigned round = 0; ; round++) {
		native.Test(request, &done, MPI_STATUS_IGNORE);
		if (done || rg_reached(until, rg_now_ns()))
			return done;
		start_pause(round);
	}
}

void start_allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op)
{
	MPI_Request request;

	native.Iallreduce(mine, all, count, type, op, MPI_COMM_WORLD, &request);
	start_await(&request, UINT64_MAX);
}

void start_reduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op)
{
	MPI_Request request;

	native.Ireduce(mine, all, count, type, op, 0, MPI_COMM_WORLD, &request);
	start_await(&request, UINT64_MAX);
}

void start_allgather(const void *mine, int bytes, void *all)
{
	MPI_Request request;

	native.Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
	start_await(&request, UINT64_MAX);
}

void start_iallgatherv(const void *mine, int bytes, void *all, const int counts[], const int at[],
		       MPI_Request *request)
{
	native.Iallgatherv(mine, bytes, MPI_BYTE, all, counts, at, MPI_BYTE, MPI_COMM_WORLD, request);
}

void start_allgatherv(const void *mine, int bytes, void *all, const int counts[], const int at[])
{
	MPI_Request request;

	start_iallgatherv(mine, bytes, all, counts, at, &request);
	start_await(&request, UINT64_MAX);
}

void start_bcast(void *buffer, int count, MPI_Datatype type, int from)
{
	MPI_Request request;

	native.Ibcast(buffer, count, type, from, MPI_COMM_WORLD, &request);
	start_await(&request, UINT64_MAX);
}
