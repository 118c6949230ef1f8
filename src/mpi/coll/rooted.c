/*
 * rooted.c - MPI_Gather(v) and MPI_Scatter(v).
 *
 * `own` is the block that a rank itself contributes or receives.  With MPI_IN_PLACE the root has
 * none: its block stays where it is.
 */
#include <stdlib.h>

#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/comm/comm.h"

struct rooted {
	struct coll_blocks all;		/* at the root: of each rank */
	struct coll_block own;
	bool in_place;			/* at the root only */
	int root;
};

/* ---- linear --------------------------------------------------------------------------------- */

static void gather_linear(struct coll *k, const struct rooted *g)
{
	struct coll_message *in;
	int i;

	if (k->rank != g->root) {
		coll_send(k, g->own, g->root);
		return;
	}
	in = coll_temp(k, (size_t)k->size * sizeof(*in));
	for (i = 0; i < k->size; i++) {
		in[i].active = false;
		if (i != g->root)
			coll_irecv(k, &in[i], coll_block_at(&g->all, i), i);
	}
	if (!g->in_place)
		coll_copy(k, g->own, coll_block_at(&g->all, g->root));
	coll_wait_all(k, in, k->size);
}

static void scatter_linear(struct coll *k, const struct rooted *s)
{
	struct coll_message *out;
	int i;

	if (k->rank != s->root) {
		coll_recv(k, s->own, s->root);
		return;
	}
	out = coll_temp(k, (size_t)k->size * sizeof(*out));
	for (i = 0; i < k->size; i++) {
		out[i].active = false;
		if (i != s->root)
			coll_isend(k, &out[i], coll_block_at(&s->all, i), i);
	}
	if (!s->in_place)
		coll_copy(k, coll_block_at(&s->all, s->root), s->own);
	coll_wait_all(k, out, k->size);
}

/* ---- binomial: ranks counted from the root -------------------------------------------------- */

/* The branch of v: `blocks` blocks, v's own first. */
struct branch {
	int v, bit, blocks;
	size_t bytes;			/* bytes of a block */
	char *at;
};

static void branch_set(struct coll *k, struct branch *b, int root, size_t bytes)
{
	int n = k->size;

	b->v = (k->rank - root + n) % n;
	for (b->bit = 1; b->bit < n && !(b->v & b->bit); b->bit *= 2)
		;
	b->blocks = b->bit < n - b->v ? b->bit : n - b->v;
	b->bytes = bytes;
	b->at = coll_temp(k, (size_t)b->blocks * bytes);
}

/* Blocks of the branch that begins `bit` above this rank's. */
static struct coll_block branch_above(const struct branch *b, int bit)
{
	int blocks = bit < b->blocks - bit ? bit : b->blocks - bit;

	return coll_bytes(b->at + (size_t)bit * b->bytes, (size_t)blocks * b->bytes);
}

static struct coll_block branch_block(const struct branch *b, int i)
{
	return coll_bytes(b->at + (size_t)i * b->bytes, b->bytes);
}

static void gather_binomial(struct coll *k, const struct rooted *g, size_t bytes)
{
	int n = k->size, bit, i;
	struct branch b;

	branch_set(k, &b, g->root, bytes);
	if (b.v || !g->in_place)
		coll_copy(k, g->own, branch_block(&b, 0));
	for (bit = 1; bit < b.blocks; bit *= 2)
		coll_recv(k, branch_above(&b, bit), (k->rank + bit) % n);
	if (b.v) {
		coll_send(k, coll_bytes(b.at, (size_t)b.blocks * bytes), (k->rank - b.bit + n) % n);
		return;
	}
	for (i = g->in_place; i < n; i++)
		coll_copy(k, branch_block(&b, i), coll_block_at(&g->all, (i + g->root) % n));
}

static void scatter_binomial(struct coll *k, const struct rooted *s, size_t bytes)
{
	int n = k->size, bit, i;
	struct branch b;

	branch_set(k, &b, s->root, bytes);
	if (b.v)
		coll_recv(k, coll_bytes(b.at, (size_t)b.blocks * bytes), (k->rank - b.bit + n) % n);
	for (i = 0; !b.v && i < n; i++)
		coll_copy(k, coll_block_at(&s->all, (i + s->root) % n), branch_block(&b, i));
	for (bit = b.bit / 2; bit; bit /= 2)
		if (bit < b.blocks)
			coll_send(k, branch_above(&b, bit), (k->rank + bit) % n);
	if (b.v || !s->in_place)
		coll_copy(k, branch_block(&b, 0), s->own);
}

/* ---- Arguments ------------------------------------------------------------------------------ */

/*
 * The rank's own part, which the root may keep in place.  The arguments at the root count at the
 * root only.
 */
static bool rooted_own_set(struct comm *c, struct rooted *x, const void *buf, MPI_Count count,
			   MPI_Datatype type)
{
	if (x->root < 0 || x->root >= c->size)
		return false;
	x->in_place = buf == MPI_IN_PLACE;
	if (x->in_place)
		return c->rank == x->root;
	return coll_block_set(&x->own, buf, count, type);
}

static bool all_set(struct comm *c, struct rooted *x, const void *buf, MPI_Count count,
		    MPI_Datatype type)
{
	return c->rank != x->root ||
	       (buf != MPI_IN_PLACE && coll_block_set(&x->all.first, buf, count, type));
}

static bool list_set(struct comm *c, struct rooted *x, const void *buf, struct coll_counts counts,
		     MPI_Datatype type)
{
	return c->rank != x->root ||
	       (buf != MPI_IN_PLACE && coll_blocks_set(&x->all, c->size, buf, counts, type));
}

static size_t rooted_block_bytes(const struct coll *k, const struct rooted *x)
{
	return coll_size(k->rank == x->root ? x->all.first : x->own);
}

/* ---- The calls ------------------------------------------------------------------------------ */

static int gather(struct comm *c, const void *sbuf, MPI_Count scount, MPI_Datatype stype,
		  void *rbuf, MPI_Count rcount, MPI_Datatype rtype, int root)
{
	struct rooted g = {.root = root};
	struct coll k;
	size_t bytes;

	if (!coll_is_ours(COLL_GATHER))
		return COLL_BY_OPTION;
	if (!rooted_own_set(c, &g, sbuf, scount, stype) ||
	    !all_set(c, &g, rbuf, rcount, rtype))
		return COLL_BY_ARGUMENTS;
	coll_begin(&k, c);
	bytes = rooted_block_bytes(&k, &g);
	if (coll_choose(COLL_GATHER, k.size, bytes, 0) == COLL_BINOMIAL)
		gather_binomial(&k, &g, bytes);
	else
		gather_linear(&k, &g);
	return coll_end(&k);
}

static int gatherv(struct comm *c, const void *sbuf, MPI_Count scount, MPI_Datatype stype,
		   void *rbuf, struct coll_counts rcounts, MPI_Datatype rtype, int root)
{
	struct rooted g = {.root = root};
	struct coll k;

	if (!coll_is_ours(COLL_GATHERV))
		return COLL_BY_OPTION;
	if (!rooted_own_set(c, &g, sbuf, scount, stype) ||
	    !list_set(c, &g, rbuf, rcounts, rtype))
		return COLL_BY_ARGUMENTS;
	coll_begin(&k, c);
	gather_linear(&k, &g);
	free(g.all.list);
	return coll_end(&k);
}

static int scatter_from_root(struct comm *c, const void *sbuf, MPI_Count scount, MPI_Datatype stype,
			     void *rbuf, MPI_Count rcount, MPI_Datatype rtype, int root)
{
	struct rooted s = {.root = root};
	struct coll k;
	size_t bytes;

	if (!coll_is_ours(COLL_SCATTER))
		return COLL_BY_OPTION;
	if (!rooted_own_set(c, &s, rbuf, rcount, rtype) ||
	    !all_set(c, &s, sbuf, scount, stype))
		return COLL_BY_ARGUMENTS;
	coll_begin(&k, c);
	bytes = rooted_block_bytes(&k, &s);
	if (coll_choose(COLL_SCATTER, k.size, bytes, 0) == COLL_BINOMIAL)
		scatter_binomial(&k, &s, bytes);
	else
		scatter_linear(&k, &s);
	return coll_end(&k);
}

static int scatterv(struct comm *c, const void *sbuf, struct coll_counts scounts,
		    MPI_Datatype stype, void *rbuf, MPI_Count rcount, MPI_Datatype rtype, int root)
{
	struct rooted s = {.root = root};
	struct coll k;

	if (!coll_is_ours(COLL_SCATTERV))
		return COLL_BY_OPTION;
	if (!rooted_own_set(c, &s, rbuf, rcount, rtype) ||
	    !list_set(c, &s, sbuf, scounts, stype))
		return COLL_BY_ARGUMENTS;
	coll_begin(&k, c);
	scatter_linear(&k, &s);
	free(s.all.list);
	return coll_end(&k);
}

#define ROOTED_PARAMS(COUNT, DISPL, COMM)                                                          \
	(const void *sbuf, COUNT scount, MPI_Datatype stype, void *rbuf, COUNT rcount,             \
	 MPI_Datatype rtype, int root, COMM)
#define ROOTED_ARGS(COMM) (sbuf, scount, stype, rbuf, rcount, rtype, root, COMM)
#define GATHERV_PARAMS(COUNT, DISPL, COMM)                                                         \
	(const void *sbuf, COUNT scount, MPI_Datatype stype, void *rbuf, const COUNT rcounts[],    \
	 const DISPL displs[], MPI_Datatype rtype, int root, COMM)
#define GATHERV_ARGS(COMM) (sbuf, scount, stype, rbuf, rcounts, displs, rtype, root, COMM)
#define SCATTERV_PARAMS(COUNT, DISPL, COMM)                                                        \
	(const void *sbuf, const COUNT scounts[], const DISPL displs[], MPI_Datatype stype,        \
	 void *rbuf, COUNT rcount, MPI_Datatype rtype, int root, COMM)
#define SCATTERV_ARGS(COMM) (sbuf, scounts, displs, stype, rbuf, rcount, rtype, root, COMM)

#define GEN_ROOTED(S, COUNT, DISPL)                                                                \
	COLL_CALL(Gather##S, COUNT, DISPL, ROOTED_PARAMS, ROOTED_ARGS,                             \
		  gather(c, sbuf, scount, stype, rbuf, rcount, rtype, root))                       \
	COLL_CALL(Gatherv##S, COUNT, DISPL, GATHERV_PARAMS, GATHERV_ARGS,                          \
		  gatherv(c, sbuf, scount, stype, rbuf, COLL_COUNTS(COUNT, rcounts, displs),       \
			  rtype, root))                                                            \
	COLL_CALL(Scatter##S, COUNT, DISPL, ROOTED_PARAMS, ROOTED_ARGS,                            \
		  scatter_from_root(c, sbuf, scount, stype, rbuf, rcount, rtype, root))            \
	COLL_CALL(Scatterv##S, COUNT, DISPL, SCATTERV_PARAMS, SCATTERV_ARGS,                       \
		  scatterv(c, sbuf, COLL_COUNTS(COUNT, scounts, displs), stype, rbuf, rcount,      \
			   rtype, root))

EACH_COUNT_AND_DISPL(GEN_ROOTED)
