/*
 * init.c - MPI_Init and MPI_Finalize, constructors of communicators, and MPI_Alloc_mem, which
 * returns memory that is registered with every rail.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/bypass.h"
#include "mpi/abi/native.h"
#include "mpi/abi/endpoints_stay.h"
#include "mpi/coll/coll_agree.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/job/launched.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "mpi/job/world.h"
#include "mpi/p2p/request.h"
#include "mpi/railmpi.h"
#include "rail/rail.h"
#include "util/err.h"
#include "util/opt.h"

/* ---- Init and Finalize ---------------------------------------------------------------------- */

/* Called by all ranks; no receive of another rank waits when it returns. */
static void end_together(void)
{
	MPI_Group all;
	MPI_Comm comm;		/* free of the program's receives and attributes */

	if (!ENDPOINTS_STAY)
		return;
	native.Comm_group(MPI_COMM_WORLD, &all);
	native.Comm_create(MPI_COMM_WORLD, all, &comm);
	native.Group_free(&all);
	native.Barrier(comm);
	native.Comm_free(&comm);
	endpoints_stay();
}

static void layer_end(void)
{
	world_stop();
	end_together();
}

/*
 * MPI_Finalize first deletes the attributes of MPI_COMM_SELF, the last one set first, and all of MPI
 * works in their callbacks.  The layer's attribute is set in MPI_Init, before any of the program's: it
 * goes last, and the layer with it.
 */
static bool ends_by_attribute;

static int end_on_delete(MPI_Comm self, int keyval, void *value, void *extra)
{
	layer_end();
	return MPI_SUCCESS;
}

static void end_with_self(void)
{
	int keyval;

	if (ends_by_attribute ||
	    native.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_on_delete, &keyval, NULL))
		return;
	ends_by_attribute = !native.Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
	native.Comm_free_keyval(&keyval);
}

/*
 * Rails that were asked for and cannot be had end the program: on every rank, with one line.  So does
 * a launcher that has made a job of each rank.
 */
static void start_or_exit(void)
{
	const bool alone = launched_alone();

	if (!alone)
		bypass_seen();
	if (!alone && !world_start()) {
		end_with_self();
		return;
	}
	if (!alone)
		end_together();
	native.Finalize();
	if (alone)
		rg_let_rank_0_speak();
	exit(RG_EXIT_USAGE);
}

int MPI_Init(int *argc, char ***argv)
{
	int rc;

	bypass_check();
	launched_check();
	rc = native.Init(argc, argv);
	if (rc == MPI_SUCCESS)
		start_or_exit();
	return rc;
}
BOTH(Init);

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc;

	bypass_check();
	launched_check();
	rc = native.Init_thread(argc, argv, required, provided);
	if (rc == MPI_SUCCESS)
		start_or_exit();
	return rc;
}
BOTH(Init_thread);

int MPI_Finalize(void)
{
	if (!ends_by_attribute)
		layer_end();
	return native.Finalize();
}
BOTH(Finalize);

/* ---- Communicators ---------------------------------------------------------------------------- */

/* Route the new communicator in the way of its parent.  Collective over the new one. */
static int inherit(int rc, const struct comm *parent, MPI_Comm *made)
{
	int inter = 0;

	if (rc != MPI_SUCCESS || !parent || *made == MPI_COMM_NULL)
		return rc;
	native.Comm_test_inter(*made, &inter);
	if (inter)
		return rc;
	return comm_adopt(*made, &parent->way) ? req_raise(*made, MPI_ERR_OTHER) : MPI_SUCCESS;
}

/* The same for a communicator of the same ranks. */
static int inherit_all(int rc, const struct comm *parent, MPI_Comm *made)
{
	struct comm *c;

	rc = inherit(rc, parent, made);
	if (rc != MPI_SUCCESS || !parent || !parent->collective->learned)
		return rc;
	c = comm_lookup(*made);
	layer_enter();
	if (c)
		coll_inherit(c, parent);
	layer_leave();
	return rc;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit_all(native.Comm_dup(comm, made), c, made);
}
BOTH(Comm_dup);

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Comm_create(comm, group, made), c, made);
}
BOTH(Comm_create);

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Comm_create_group(comm, group, tag, made), c, made);
}
BOTH(Comm_create_group);

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Comm_split(comm, color, key, made), c, made);
}
BOTH(Comm_split);

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Comm_split_type(comm, type, key, info, made), c, made);
}
BOTH(Comm_split_type);

int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
		    MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Cart_create(comm, ndims, dims, periods, reorder, made), c, made);
}
BOTH(Cart_create);

int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Cart_sub(comm, remain, made), c, made);
}
BOTH(Cart_sub);

int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,
		     MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Graph_create(comm, nnodes, index, edges, reorder, made), c, made);
}
BOTH(Graph_create);

int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
			  const int destinations[], const int weights[], MPI_Info info, int reorder,
			  MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Dist_graph_create(comm, n, sources, degrees, destinations, weights, info,
						reorder, made), c, made);
}
BOTH(Dist_graph_create);

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
				   const int source_weights[], int outdegree,
				   const int destinations[], const int dest_weights[], MPI_Info info,
				   int reorder, MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);

	return inherit(native.Dist_graph_create_adjacent(comm, indegree, sources, source_weights,
							 outdegree, destinations, dest_weights, info,
							 reorder, made), c, made);
}
BOTH(Dist_graph_create_adjacent);

/*
 * A rank with a wrong key finds that alone.  The error may end the job, so rank 0's line comes
 * first.
 */
static int refuse_way(MPI_Comm comm, const char *why)
{
	MPI_Errhandler handler;
	int rank = 0;

	native.Comm_rank(comm, &rank);
	if (rank == 0) {
		rg_error("%s", why);
	} else if (native.Comm_get_errhandler(comm, &handler) == MPI_SUCCESS) {
		if (handler == MPI_ERRORS_ARE_FATAL)
			rg_let_rank_0_speak();
		native.Errhandler_free(&handler);
	}
	return req_raise(comm, MPI_ERR_INFO_VALUE);
}

/* The info key decides; without it the parent does. */
static int dup_with_way(MPI_Comm comm, MPI_Info info, MPI_Comm *made, const char *text)
{
	int size = 0, world = 0, inter = 0, rc;
	bool native_way = true;
	char why[OPT_WHY_BYTES];
	struct rail_way way;

	if (world_options())
		return req_raise(comm, MPI_ERR_INFO_VALUE);
	if (comm_parse_way(text, &native_way, &way, why, sizeof(why)))
		return refuse_way(comm, why);
	rc = native.Comm_dup_with_info(comm, info, made);
	if (rc != MPI_SUCCESS || native_way)
		return rc;
	native.Comm_test_inter(*made, &inter);
	if (inter)
		return rc;
	if (!layer.rails) {
		native.Comm_size(comm, &size);
		native.Comm_size(MPI_COMM_WORLD, &world);
		if (size != world) {
			rg_error("info key " RAILMPI_INFO_KEY ": the first routed communicator must span "
				 "MPI_COMM_WORLD (or call railmpi_open first)");
			return req_raise(comm, MPI_ERR_COMM);
		}
		if (railmpi_open())
			return req_raise(comm, MPI_ERR_OTHER);
		end_with_self();	/* MPI_Init was called before the layer was there */
	}
	return comm_adopt(*made, &way) ? req_raise(comm, MPI_ERR_OTHER) : MPI_SUCCESS;
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
	struct comm *c = comm_lookup(comm);
	char text[256];
	int found = 0, rc = MPI_SUCCESS;

	if (info != MPI_INFO_NULL)
		rc = native.Info_get(info, RAILMPI_INFO_KEY, sizeof(text) - 1, text, &found);
	if (rc)
		return rc;
	if (found)
		return dup_with_way(comm, info, made, text);
	return inherit_all(native.Comm_dup_with_info(comm, info, made), c, made);
}
BOTH(Comm_dup_with_info);

/* Requests that are complete may stay: the program may ask for them afterwards. */
static void comm_wait(const struct comm *c)
{
	const struct req *r;
	unsigned idle = 0;
	uint64_t serial;

	layer_enter();
	while ((r = req_pending(c))) {
		serial = r->serial;
		while (!r->done && r->serial == serial)
			layer_poll(&idle);
	}
	layer_leave();
}

/* Returns when all communication on it has completed, ours too. */
int MPI_Comm_disconnect(MPI_Comm *comm)
{
	struct comm *c = comm_lookup(*comm);

	if (c)
		comm_wait(c);
	return native.Comm_disconnect(comm);
}
BOTH(Comm_disconnect);

/* ---- Memory -------------------------------------------------------------------------------------- */

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	void *p = NULL;

	if (layer.rails && size > 0) {
		layer_enter();
		p = rail_alloc(layer.rails, (size_t)size);
		layer_leave();
	}
	if (!p)
		return native.Alloc_mem(size, info, baseptr);
	*(void **)baseptr = p;
	return MPI_SUCCESS;
}
BOTH(Alloc_mem);

int MPI_Free_mem(void *base)
{
	bool ours = false;

	if (layer.rails) {
		layer_enter();
		ours = rail_mem_kind_of(layer.rails, base) == RAIL_MEM_ARENA;
		if (ours)
			rail_free(layer.rails, base);
		layer_leave();
	}
	return ours ? MPI_SUCCESS : native.Free_mem(base);
}
BOTH(Free_mem);
