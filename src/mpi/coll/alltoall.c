/*
 * alltoall.c - MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw.
 *
 * The three differ in their blocks only.  With MPI_IN_PLACE the blocks to send are copied first;
 * long blocks, known as long at both ends, are swapped piece by piece afterwards.
 */
#include <stdlib.h>

#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_agree.h"
#include "mpi/coll/coll_data.h"
#include "mpi/comm/comm.h"
#include "mpi/type/dtype.h"
#include "rail/rail.h"

struct trade {
	struct coll_blocks from, to;	/* block i: for rank i, of rank i */
};

static void copy_own(struct coll *k, const struct trade *t)
{
	coll_copy(k, coll_block_at(&t->from, k->rank), coll_block_at(&t->to, k->rank));
}

/* ---- pairwise ------------------------------------------------------------------------------- */

/*
 * Partners come one after the other; among a power of two of ranks a partner is the same both ways.
 */
static void alltoall_pairwise(struct coll *k, const struct trade *t)
{
	bool same = (k->size & (k->size - 1)) == 0;
	int i, to, from;

	copy_own(k, t);
	for (i = 1; i < k->size; i++) {
		to = same ? k->rank ^ i : (k->rank + i) % k->size;
		from = same ? to : (k->rank - i + k->size) % k->size;
		coll_exchange(k, coll_block_at(&t->from, to), to,
			      coll_block_at(&t->to, from), from);
	}
}

/* ---- pairwise-rails ------------------------------------------------------------------------- */

static void pairwise_rails(struct coll *k, const struct trade *t)
{
	struct coll_message in[RAIL_MAX], out[RAIL_MAX];
	int n = k->size, rails = coll_rails(k), i, j, partners, peer;

	copy_own(k, t);
	for (i = 1; i < n; i += partners) {
		partners = n - i < rails ? 1 : rails;
		for (j = 0; j < partners; j++) {
			peer = (k->rank - i - j + n) % n;
			coll_irecv(k, &in[j], coll_block_at(&t->to, peer), peer);
		}
		for (j = 0; j < partners; j++) {
			peer = (k->rank + i + j) % n;
			if (partners == 1)
				coll_isend(k, &out[j], coll_block_at(&t->from, peer), peer);
			else
				coll_isend_over(k, &out[j], coll_block_at(&t->from, peer), peer, j);
		}
		coll_wait_all(k, in, partners);
		coll_wait_all(k, out, partners);
	}
}

/* ---- linear --------------------------------------------------------------------------------- */

/* All at once; no two ranks begin with the same partner. */
static void alltoall_linear(struct coll *k, const struct trade *t)
{
	size_t n = (size_t)k->size - 1;
	struct coll_message *in = coll_temp(k, 2 * n * sizeof(*in)), *out = in + n;
	int i, peer;

	for (i = 1; i < k->size; i++) {
		peer = (k->rank - i + k->size) % k->size;
		coll_irecv(k, &in[i - 1], coll_block_at(&t->to, peer), peer);
	}
	for (i = 1; i < k->size; i++) {
		peer = (k->rank + i) % k->size;
		coll_isend(k, &out[i - 1], coll_block_at(&t->from, peer), peer);
	}
	copy_own(k, t);
	coll_wait_all(k, in, (int)(2 * n));
}

/* ---- bruck ---------------------------------------------------------------------------------- */

/* Blocks whose number has this bit, from `at` to `packed` or back; how many bytes they are. */
static size_t pack_bit(struct coll *k, char *at, char *packed, size_t bytes, int bit, bool back)
{
	size_t used = 0;
	int i;

	for (i = 0; i < k->size; i++) {
		struct coll_block here = coll_bytes(at + (size_t)i * bytes, bytes);
		struct coll_block there = coll_bytes(packed + used, bytes);

		if (!(i & bit))
			continue;
		coll_copy(k, back ? there : here, back ? here : there);
		used += bytes;
	}
	return used;
}

/* Block i has i ranks to go: by its highest bit, then the next, each round all that share one. */
static void alltoall_bruck(struct coll *k, const struct trade *t)
{
	size_t bytes = coll_size(t->to.first), half = (size_t)(k->size / 2 + 1) * bytes, used;
	char *at = coll_temp(k, (size_t)k->size * bytes);
	char *out = coll_temp(k, half), *in = coll_temp(k, half);
	int n = k->size, i, bit;

	for (i = 0; i < n; i++)
		coll_copy(k, coll_block_at(&t->from, (k->rank + i) % n),
			  coll_bytes(at + (size_t)i * bytes, bytes));
	for (bit = 1; bit < n; bit *= 2) {
		used = pack_bit(k, at, out, bytes, bit, false);
		coll_exchange(k, coll_bytes(out, used), (k->rank + bit) % n, coll_bytes(in, used),
			      (k->rank - bit + n) % n);
		pack_bit(k, at, in, bytes, bit, true);
	}
	for (i = 0; i < n; i++)
		coll_copy(k, coll_bytes(at + (size_t)i * bytes, bytes),
			  coll_block_at(&t->to, (k->rank - i + n) % n));
}

/* ---- In place ------------------------------------------------------------------------------- */

static bool is_long(struct coll_block b)
{
	return coll_size(b) > RAIL_PART_BYTES;
}

/* Short blocks only: `from` becomes a copy, in plain bytes, of the blocks of t->to. */
static struct trade trade_copy(struct coll *k, const struct trade *t)
{
	const size_t list = (size_t)k->size * sizeof(*t->to.list);
	struct trade copied = {.from.list = coll_temp(k, list), .to.list = coll_temp(k, list)};
	size_t used = 0;
	char *copy;
	int i;

	copied.to.first = t->to.first;
	for (i = 0; i < k->size; i++) {
		copied.to.list[i] = coll_block_at(&t->to, i);
		if (is_long(copied.to.list[i]))
			copied.to.list[i].count = 0;
		used += coll_size(copied.to.list[i]);
	}
	copy = coll_temp(k, used);
	for (i = 0; i < k->size; i++) {
		copied.from.list[i] = coll_bytes(copy, coll_size(copied.to.list[i]));
		coll_copy(k, copied.to.list[i], copied.from.list[i]);
		copy += copied.from.list[i].count;
	}
	return copied;
}

static void swap(struct coll *k, struct coll_block b, int peer, void *piece)
{
	const size_t all = coll_size(b);
	struct dtype type;
	size_t at, n;

	for (at = 0; at < all; at += n) {
		n = all - at < RAIL_PART_BYTES ? all - at : RAIL_PART_BYTES;
		dtype_pack(b.type, b.buf, at, piece, n);
		coll_exchange(k, coll_bytes(piece, n), peer, coll_range(b, at, n, &type), peer);
	}
}

/* In round i each two ranks meet whose numbers add up to i, modulo the number of ranks. */
static void swap_long(struct coll *k, const struct trade *t)
{
	void *piece = NULL;
	int i, peer;

	for (i = 0; i < k->size; i++) {
		peer = (i - k->rank + k->size) % k->size;
		if (peer == k->rank || !is_long(coll_block_at(&t->to, peer)))
			continue;
		piece = piece ? piece : coll_temp(k, RAIL_PART_BYTES);
		swap(k, coll_block_at(&t->to, peer), peer, piece);
	}
}

/* ---- The calls ------------------------------------------------------------------------------ */

static void trade_by(struct coll *k, const struct trade *t, enum coll_id id, size_t bytes)
{
	const unsigned holds = coll_rails_hold(k);

	switch (id == COLL_ALLTOALL ? coll_take(k, id, bytes, holds) :
				      coll_choose(id, k->size, bytes, holds)) {
	case COLL_BRUCK:
		alltoall_bruck(k, t);
		break;
	case COLL_LINEAR:
		alltoall_linear(k, t);
		break;
	case COLL_PAIRWISE_RAILS:
		pairwise_rails(k, t);
		break;
	default:
		alltoall_pairwise(k, t);
	}
}

static int trade(struct comm *c, struct trade *t, enum coll_id id, bool in_place)
{
	size_t bytes = id == COLL_ALLTOALL ? coll_size(t->to.first) : 0;
	struct trade copied;
	struct coll k;

	coll_begin(&k, c);
	if (in_place && bytes <= RAIL_PART_BYTES) {
		copied = trade_copy(&k, t);
		trade_by(&k, &copied, id, bytes);
	} else if (!in_place) {
		trade_by(&k, t, id, bytes);
	}
	if (in_place)
		swap_long(&k, t);
	return coll_end_taken(&k);
}

static int alltoall(struct comm *c, const void *sbuf, MPI_Count scount, MPI_Datatype stype,
		    void *rbuf, MPI_Count rcount, MPI_Datatype rtype)
{
	struct trade t = {.from.list = NULL};

	if (!coll_is_ours(COLL_ALLTOALL))
		return COLL_BY_OPTION;
	if (rbuf == MPI_IN_PLACE ||
	    !coll_block_set(&t.to.first, rbuf, rcount, rtype) ||
	    (sbuf != MPI_IN_PLACE && !coll_block_set(&t.from.first, sbuf, scount, stype)))
		return COLL_BY_ARGUMENTS;
	return trade(c, &t, COLL_ALLTOALL, sbuf == MPI_IN_PLACE);
}

/* Both lists are set, or none. */
static int trade_lists(struct comm *c, struct trade *t, bool in_place)
{
	struct coll_block *from = t->from.list;
	int rc = trade(c, t, COLL_ALLTOALLV, in_place);

	free(from);
	free(t->to.list);
	return rc;
}

static int alltoallv(struct comm *c, const void *sbuf, struct coll_counts scounts,
		     MPI_Datatype stype, void *rbuf, struct coll_counts rcounts,
		     MPI_Datatype rtype)
{
	struct trade t = {.from.list = NULL};

	if (!coll_is_ours(COLL_ALLTOALLV))
		return COLL_BY_OPTION;
	if (rbuf == MPI_IN_PLACE ||
	    (sbuf != MPI_IN_PLACE &&
	     !coll_blocks_set(&t.from, c->size, sbuf, scounts, stype)))
		return COLL_BY_ARGUMENTS;
	if (!coll_blocks_set(&t.to, c->size, rbuf, rcounts, rtype)) {
		free(t.from.list);
		return COLL_BY_ARGUMENTS;
	}
	return trade_lists(c, &t, sbuf == MPI_IN_PLACE);
}

static int alltoallw(struct comm *c, const void *sbuf, struct coll_counts scounts,
		     const MPI_Datatype stypes[], void *rbuf, struct coll_counts rcounts,
		     const MPI_Datatype rtypes[])
{
	struct trade t = {.from.list = NULL};

	if (!coll_is_ours(COLL_ALLTOALLV))
		return COLL_BY_OPTION;
	if (rbuf == MPI_IN_PLACE ||
	    (sbuf != MPI_IN_PLACE &&
	     !coll_blocks_set_typed(&t.from, c->size, sbuf, scounts, stypes)))
		return COLL_BY_ARGUMENTS;
	if (!coll_blocks_set_typed(&t.to, c->size, rbuf, rcounts, rtypes)) {
		free(t.from.list);
		return COLL_BY_ARGUMENTS;
	}
	return trade_lists(c, &t, sbuf == MPI_IN_PLACE);
}

#define ALLTOALLV_PARAMS(COUNT, DISPL, COMM)                                                       \
	(const void *sbuf, const COUNT scounts[], const DISPL sdispls[], MPI_Datatype stype,       \
	 void *rbuf, const COUNT rcounts[], const DISPL rdispls[], MPI_Datatype rtype, COMM)
#define ALLTOALLW_PARAMS(COUNT, DISPL, COMM)                                                       \
	(const void *sbuf, const COUNT scounts[], const DISPL sdispls[],                           \
	 const MPI_Datatype stype[], void *rbuf, const COUNT rcounts[], const DISPL rdispls[],     \
	 const MPI_Datatype rtype[], COMM)
#define ALLTOALLV_ARGS(COMM) \
	(sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype, COMM)

#define GEN_ALLTOALL(S, COUNT, DISPL)                                                              \
	COLL_CALL(Alltoall##S, COUNT, DISPL, COLL_BLOCKS_PARAMS, COLL_BLOCKS_ARGS,                 \
		  alltoall(c, sbuf, scount, stype, rbuf, rcount, rtype))                           \
	COLL_CALL(Alltoallv##S, COUNT, DISPL, ALLTOALLV_PARAMS, ALLTOALLV_ARGS,                    \
		  alltoallv(c, sbuf, COLL_COUNTS(COUNT, scounts, sdispls), stype, rbuf,            \
			    COLL_COUNTS(COUNT, rcounts, rdispls), rtype))                          \
	COLL_CALL(Alltoallw##S, COUNT, DISPL, ALLTOALLW_PARAMS, ALLTOALLV_ARGS,                    \
		  alltoallw(c, sbuf, COLL_COUNTS(COUNT, scounts, sdispls), stype, rbuf,            \
			    COLL_COUNTS(COUNT, rcounts, rdispls), rtype))

EACH_COUNT_AND_DISPL(GEN_ALLTOALL)
