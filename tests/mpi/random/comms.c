/* comms.c - makes the communicators of a plan. */
#include "programs.h"

#include <string.h>

MPI_Comm comm_of[COMMS_MAX];
bool routed[COMMS_MAX];

MPI_Comm dup_with_info(MPI_Comm parent, const char *way)
{
	MPI_Info info;
	MPI_Comm comm;

	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", way);
	DO(MPI_Comm_dup_with_info(parent, info, &comm));
	MPI_Info_free(&info);
	return comm;
}

static MPI_Group group(const struct plan *p, const struct comm_plan *c, MPI_Comm parent)
{
	int list[RANKS_MAX], i;
	MPI_Group all, some;

	for (i = 0; i < c->size; i++)
		list[i] = member_of(p, c->parent, c->member[i]);
	MPI_Comm_group(parent, &all);
	MPI_Group_incl(all, c->size, list, &some);
	MPI_Group_free(&all);
	return some;
}

static MPI_Comm create(const struct plan *p, const struct comm_plan *c, MPI_Comm parent, int me)
{
	MPI_Group some = group(p, c, parent);
	MPI_Comm comm = MPI_COMM_NULL;

	if (c->maker == COMM_CREATE)
		DO(MPI_Comm_create(parent, some, &comm));
	else if (me >= 0)
		DO(MPI_Comm_create_group(parent, some, 17, &comm));
	MPI_Group_free(&some);
	return comm;
}

/* The halves talk through their first members. */
static MPI_Comm join(const struct comm_plan *c, MPI_Comm parent, int me)
{
	bool left = me < c->left;
	MPI_Comm half, comm;

	DO(MPI_Comm_split(parent, left, me, &half));
	DO(MPI_Intercomm_create(half, 0, parent, left ? c->left : 0, 18, &comm));
	MPI_Comm_free(&half);
	return comm;
}

static const char *way_of(const struct plan *p, int index, bool native)
{
	static const char *const ways[] = {"stripe", "native", "single",
					   "pull",   "bind",   "weighted"};

	const char *way = native ? "native" : ways[((unsigned)index + p->seed) % 6];

	return LIBRARY_LOSES_ORDER && !native && !strcmp(way, "native") ? "stripe" : way;
}

/* True: messages of the communicator go over rails. */
static bool is_routed(const struct plan *p, int index, bool native)
{
	switch (p->comm[index].maker) {
	case COMM_BASE:
		return !native;
	case COMM_DUP_INFO:
		return strcmp(way_of(p, index, native), "native");
	case COMM_IDUP:
	case COMM_INTER:
		return false;
	default:
		return routed[p->comm[index].parent];
	}
}

static MPI_Comm make(const struct plan *p, int index, bool native)
{
	const struct comm_plan *c = &p->comm[index];
	int me = member_of(p, index, world_rank), wraps = 1;
	MPI_Comm parent = comm_of[c->parent], comm = MPI_COMM_NULL;
	MPI_Request q;

	if (parent == MPI_COMM_NULL)
		return MPI_COMM_NULL;
	switch (c->maker) {
	case COMM_DUP_INFO:
		return dup_with_info(parent, way_of(p, index, native));
	case COMM_SPLIT:
		DO(MPI_Comm_split(parent, me < 0 ? MPI_UNDEFINED : 5, me < 0 ? 0 : me, &comm));
		return comm;
	case COMM_CREATE:
	case COMM_CREATE_GROUP:
		return create(p, c, parent, me);
	case COMM_CART:
		DO(MPI_Cart_create(parent, 1, &c->size, &wraps, 0, &comm));
		return comm;
	case COMM_IDUP:
		DO(MPI_Comm_idup(parent, &comm, &q));
		DO(MPI_Wait(&q, MPI_STATUS_IGNORE));
		return comm;
	case COMM_INTER:
		return join(c, parent, me);
	default:
		DO(MPI_Comm_dup(parent, &comm));
		return comm;
	}
}

void comms_make(const struct plan *p, MPI_Comm base, bool native)
{
	int i, rank, size;

	comm_of[0] = base;
	routed[0] = !native;
	for (i = 1; i < p->comms; i++) {
		routed[i] = is_routed(p, i, native);
		comm_of[i] = make(p, i, native);
		if (comm_of[i] == MPI_COMM_NULL)
			continue;
		MPI_Comm_set_errhandler(comm_of[i], MPI_ERRORS_RETURN);
		MPI_Comm_rank(comm_of[i], &rank);
		MPI_Comm_size(comm_of[i], &size);
		CHECK(rank == rank_of(p, i, member_of(p, i, world_rank)),
		      "rank %d of communicator %d", rank, i);
		CHECK(size == p->comm[i].size || p->comm[i].maker == COMM_INTER,
		      "size %d of communicator %d", size, i);
	}
}

void comms_free(const struct plan *p)
{
	int i;

	for (i = 1; i < p->comms; i++)
		if (comm_of[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comm_of[i]);
}
