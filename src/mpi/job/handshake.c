/*
 * handshake.c - the handshake of all ranks of the job at the start.
 *
 * The start of the layer is collective over MPI_COMM_WORLD.  A rank whose executable does not carry
 * the layer (one of an MPMD job, started without railgauge exec), or whose --over is native, takes
 * no part in it: the others would wait for ever, or meet collectives of its program.  So word first
 * goes up a binomial tree and down again, by messages of no bytes under the highest tag, and a wait
 * for such a message has a limit.  Rank r's parent is r without its lowest bit.
 */
#include "mpi/job/handshake.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "mpi/abi/native.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "mpi/job/start_coll.h"
#include "util/err.h"

enum {
	LATER_NS = 1000000000,		/* a parent's own wait ends first: one rank tells */
	RANKS_TOLD = 64,
};

/* A message of no bytes from that rank. */
static bool hear(int from, uint64_t limit_ns)
{
	MPI_Request request;

	native.Irecv(NULL, 0, MPI_BYTE, from, layer.tag_ub, MPI_COMM_WORLD, &request);
	return start_await(&request, limit_ns);
}

/* End the job with a line; the launcher ends the other ranks. */
static void end_without(int rank)
{
	rg_errors_release(true);
	rg_set_quiet(false);
	rg_error("rank %d did not take part within %" PRIu64 " s (--start-limit) of its start "
		 "(accepted: every executable of the job under railgauge exec or linked with the "
		 "layer, with the same --over)", rank, world_settings.start_limit_ns / 1000000000);
	native_abort(RG_EXIT_USAGE);
}

void handshake(void)
{
	const uint64_t limit_ns = world_settings.start_limit_ns;
	const int rank = layer.world_rank, size = layer.world_size;
	int bit, child;

	for (bit = 1; bit < size && !(rank & bit); bit *= 2) {
		child = rank + bit;
		if (child < size && !hear(child, limit_ns))
			end_without(child);
	}
	if (rank) {
		native.Send(NULL, 0, MPI_BYTE, rank - bit, layer.tag_ub, MPI_COMM_WORLD);
		if (!hear(rank - bit, limit_ns + (1 + (uint64_t)(rank % RANKS_TOLD)) * LATER_NS))
			end_without(rank - bit);
	}
	for (bit /= 2; bit; bit /= 2) {
		child = rank + bit;
		if (child < size)
			native.Send(NULL, 0, MPI_BYTE, child, layer.tag_ub, MPI_COMM_WORLD);
	}
}
