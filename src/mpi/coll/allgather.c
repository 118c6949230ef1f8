/*
 * allgather.c - MPI_Allgather(v).  Ring and doubling send a rank's own block from its buffer and
 * copy it to its place in the result later.  A peer that reads a block just copied, still in this
 * core's cache, takes up to three times as long.  The other algorithms copy the block first.
 */
#include <stdlib.h>

#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_agree.h"
#include "mpi/coll/coll_data.h"
#include "mpi/comm/comm.h"
#include "mpi/type/dtype.h"

struct gather {
	struct coll_blocks to;
	struct coll_block own;		/* if `placed`, the block's place in the result */
	int rank;
	bool placed;
};

static void gather_copy_own(struct coll *k, struct gather *g)
{
	struct coll_block here = coll_block_at(&g->to, k->rank);

	if (!g->placed)
		coll_copy(k, g->own, here);
	g->placed = true;
	g->own = here;
}

static struct coll_block block_at(const void *gather, int i)
{
	const struct gather *g = gather;

	return i == g->rank ? g->own : coll_block_at(&g->to, i);
}

static void allgather_ring(struct coll *k, struct gather *g)
{
	coll_ring(k, (k->rank + 1) % k->size, (k->rank + k->size - 1) % k->size, k->rank, block_at, g);
}

/* Over rail 0 to the right and over rail 1 to the left, at the same time. */
static void both_ways(struct coll *k, struct coll_block right_out, struct coll_block left_in,
		      struct coll_block left_out, struct coll_block right_in)
{
	int n = k->size, right = (k->rank + 1) % n, left = (k->rank + n - 1) % n;
	struct coll_message m[4];

	coll_irecv(k, &m[0], left_in, left);
	coll_irecv(k, &m[1], right_in, right);
	coll_isend_over(k, &m[2], right_out, right, 0);
	coll_isend_over(k, &m[3], left_out, left, 1);
	coll_wait_all(k, m, 4);
}

/* The `bytes` bytes at `from` of a block in plain bytes. */
static struct coll_block piece(struct coll_block plain, size_t from, size_t bytes)
{
	return coll_bytes((char *)plain.buf + from, bytes);
}

/* A block as plain bytes: itself, or a copy. */
static struct coll_block plain_of(struct coll *k, struct coll_block b, bool filled)
{
	struct coll_block copy;

	if (dtype_is_plain(b.type, b.count))
		return coll_bytes((char *)b.buf + b.type->true_lb, coll_size(b));
	copy = coll_bytes(coll_temp(k, coll_size(b)), coll_size(b));
	if (filled)
		coll_copy(k, b, copy);
	return copy;
}

/* The block of the rank so many to the right. */
static struct coll_block block_of(const struct coll *k, const struct coll_blocks *to, int distance)
{
	return coll_block_at(to, (k->rank + distance + k->size) % k->size);
}

/* The block across comes from both sides, half and half. */
static void halves(struct coll *k, const struct coll_blocks *to)
{
	int far = k->size / 2;
	struct coll_block across = block_of(k, to, far);
	struct coll_block in = plain_of(k, across, false);
	struct coll_block right_out = plain_of(k, block_of(k, to, 1 - far), true);
	struct coll_block left_out = plain_of(k, block_of(k, to, far - 1), true);
	size_t half = in.count / 2, rest = in.count - half;

	both_ways(k, piece(right_out, 0, half), piece(in, 0, half), piece(left_out, half, rest),
		  piece(in, half, rest));
	if (!dtype_is_plain(across.type, across.count))
		coll_copy(k, in, across);
}

/* Blocks come from the left and from the right; of an even number of ranks one is left over. */
static void ring_rails(struct coll *k, const struct coll_blocks *to)
{
	int i;

	for (i = 1; i <= (k->size - 1) / 2; i++)
		both_ways(k, block_of(k, to, 1 - i), block_of(k, to, -i), block_of(k, to, i - 1),
			  block_of(k, to, i));
	if (k->size % 2 == 0)
		halves(k, to);
}

/* Neighbours swap their blocks, then neighbouring pairs swap the blocks of both, then fours. */
static void allgather_doubling(struct coll *k, struct gather *g)
{
	const struct coll_blocks *to = &g->to;
	struct coll_message sent, received;
	int have, mine, theirs;

	if (k->size == 1)
		return;
	coll_irecv(k, &received, coll_block_at(to, k->rank ^ 1), k->rank ^ 1);
	coll_isend(k, &sent, g->own, k->rank ^ 1);
	gather_copy_own(k, g);
	coll_wait(k, &received);
	coll_wait(k, &sent);
	for (have = 2; have < k->size; have *= 2) {
		mine = k->rank & ~(have - 1);
		theirs = mine ^ have;
		coll_exchange(k, coll_block_range(to, mine, have), k->rank ^ have,
			      coll_block_range(to, theirs, have), k->rank ^ have);
	}
}

/* Each collects the blocks of itself and the ranks above it, in this order, and turns them. */
static void allgather_bruck(struct coll *k, const struct coll_blocks *to)
{
	struct coll_block own = coll_block_at(to, k->rank);
	size_t bytes = coll_size(own);
	int n = k->size, have, more, i;
	char *turned = coll_temp(k, (size_t)n * bytes);

	coll_copy(k, own, coll_bytes(turned, bytes));
	for (have = 1; have < n; have *= 2) {
		more = have < n - have ? have : n - have;
		coll_exchange(k, coll_bytes(turned, (size_t)more * bytes), (k->rank - have + n) % n,
			      coll_bytes(turned + (size_t)have * bytes, (size_t)more * bytes),
			      (k->rank + have) % n);
	}
	for (i = 1; i < n; i++)
		coll_copy(k, coll_bytes(turned + (size_t)i * bytes, bytes),
			  coll_block_at(to, (k->rank + i) % n));
}

/* ---- The calls ------------------------------------------------------------------------------ */

static void gather_all(struct coll *k, struct gather *g, size_t bytes)
{
	switch (coll_take(k, COLL_ALLGATHER, bytes, coll_rails_hold(k))) {
	case COLL_BRUCK:
		gather_copy_own(k, g);
		allgather_bruck(k, &g->to);
		break;
	case COLL_DOUBLING:
		allgather_doubling(k, g);
		break;
	case COLL_RING_RAILS:
		gather_copy_own(k, g);
		ring_rails(k, &g->to);
		break;
	default:
		allgather_ring(k, g);
	}
}

/* The caller's block, or the block that is in its place already. */
static void gather_own_set(struct gather *g, const struct coll *k, const struct coll_block *from)
{
	struct coll_block here = coll_block_at(&g->to, k->rank);

	g->rank = k->rank;
	g->placed = !from;
	g->own = from ? *from : here;
}

static int allgather(struct comm *c, const void *sbuf, MPI_Count scount, MPI_Datatype stype,
		     void *rbuf, MPI_Count rcount, MPI_Datatype rtype)
{
	struct gather g = {.to = {.list = NULL}};
	struct coll_block own;
	size_t bytes;
	struct coll k;

	if (!coll_is_ours(COLL_ALLGATHER))
		return COLL_BY_OPTION;
	if (rbuf == MPI_IN_PLACE ||
	    !coll_block_set(&g.to.first, rbuf, rcount, rtype) ||
	    (sbuf != MPI_IN_PLACE && !coll_block_set(&own, sbuf, scount, stype)))
		return COLL_BY_ARGUMENTS;
	bytes = coll_size(g.to.first) * (size_t)c->size;
	coll_begin(&k, c);
	gather_own_set(&g, &k, sbuf == MPI_IN_PLACE ? NULL : &own);
	if (bytes)
		gather_all(&k, &g, bytes);
	gather_copy_own(&k, &g);
	return coll_end_taken(&k);
}

static int allgatherv(struct comm *c, const void *sbuf, MPI_Count scount, MPI_Datatype stype,
		      void *rbuf, struct coll_counts rcounts, MPI_Datatype rtype)
{
	struct coll_block own;
	struct gather g;
	struct coll k;

	if (!coll_is_ours(COLL_ALLGATHERV))
		return COLL_BY_OPTION;
	if (rbuf == MPI_IN_PLACE ||
	    (sbuf != MPI_IN_PLACE && !coll_block_set(&own, sbuf, scount, stype)) ||
	    !coll_blocks_set(&g.to, c->size, rbuf, rcounts, rtype))
		return COLL_BY_ARGUMENTS;
	coll_begin(&k, c);
	gather_own_set(&g, &k, sbuf == MPI_IN_PLACE ? NULL : &own);
	allgather_ring(&k, &g);
	gather_copy_own(&k, &g);
	free(g.to.list);
	return coll_end(&k);
}

#define ALLGATHERV_PARAMS(COUNT, DISPL, COMM)                                                      \
	(const void *sbuf, COUNT scount, MPI_Datatype stype, void *rbuf, const COUNT rcounts[],    \
	 const DISPL displs[], MPI_Datatype rtype, COMM)
#define ALLGATHERV_ARGS(COMM) (sbuf, scount, stype, rbuf, rcounts, displs, rtype, COMM)

#define GEN_ALLGATHER(S, COUNT, DISPL)                                                             \
	COLL_CALL(Allgather##S, COUNT, DISPL, COLL_BLOCKS_PARAMS, COLL_BLOCKS_ARGS,                \
		  allgather(c, sbuf, scount, stype, rbuf, rcount, rtype))                          \
	COLL_CALL(Allgatherv##S, COUNT, DISPL, ALLGATHERV_PARAMS, ALLGATHERV_ARGS,                 \
		  allgatherv(c, sbuf, scount, stype, rbuf, COLL_COUNTS(COUNT, rcounts, displs),    \
			     rtype))

EACH_COUNT_AND_DISPL(GEN_ALLGATHER)
