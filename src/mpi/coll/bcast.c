/*
 * bcast.c - MPI_Bcast.
 *
 * The algorithms cut a message into pieces of bytes.  A type that is not plain bytes is packed once
 * at the root and unpacked once at each other rank; a message that is too long for that is packed
 * piece by piece.  Ranks are counted from the root: v = 0 is the root.
 */
#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_agree.h"
#include "mpi/coll/coll_data.h"
#include "mpi/comm/comm.h"
#include "mpi/type/dtype.h"
#include "rail/rail.h"

enum { RANGES = 8 };			/* more than there are pieces under way */

struct bcast {
	struct coll_block data;		/* plain bytes, or too many to be packed at once */
	size_t bytes;
	int root, v;
	struct ranges {
		struct dtype type[RANGES];
		unsigned next;
	} *ranges;			/* NULL: it is plain */
};

/* Bytes of the message, wherever they are. */
static struct coll_block cut(const struct bcast *b, size_t from, size_t bytes)
{
	struct dtype *range = b->ranges ? &b->ranges->type[b->ranges->next++ % RANGES] : NULL;

	return coll_range(b->data, from, bytes, range);
}

static int real(const struct coll *k, const struct bcast *b, int v)
{
	return (v + b->root) % k->size;
}

/* ---- binomial ------------------------------------------------------------------------------- */

static void bcast_binomial(struct coll *k, const struct bcast *b)
{
	struct coll_block all = b->data;
	int bit = 1;

	while (bit < k->size && !(b->v & bit))
		bit *= 2;
	if (b->v)
		coll_recv(k, all, real(k, b, b->v - bit));
	for (bit /= 2; bit; bit /= 2)
		if (b->v + bit < k->size)
			coll_send(k, all, real(k, b, b->v + bit));
}

/* ---- scatter, then a ring ------------------------------------------------------------------- */

/* Pieces lo to hi - 1 of n; the last ones may be shorter or empty. */
static struct coll_block pieces(const struct coll *k, const struct bcast *b, int lo, int hi)
{
	size_t piece = (b->bytes + (size_t)k->size - 1) / (size_t)k->size;
	size_t from = piece * (size_t)lo, to = piece * (size_t)hi;

	from = from < b->bytes ? from : b->bytes;
	to = to < b->bytes ? to : b->bytes;
	return cut(b, from, to - from);
}

/* Down the binomial tree each rank gets the pieces of its branch: v to v + bit - 1. */
static void bcast_scatter(struct coll *k, const struct bcast *b)
{
	int bit = 1, end;

	while (bit < k->size && !(b->v & bit))
		bit *= 2;
	end = b->v + bit < k->size ? b->v + bit : k->size;
	if (b->v)
		coll_recv(k, pieces(k, b, b->v, end), real(k, b, b->v - bit));
	for (bit /= 2; bit; bit /= 2)
		if (b->v + bit < k->size) {
			end = b->v + 2 * bit < k->size ? b->v + 2 * bit : k->size;
			coll_send(k, pieces(k, b, b->v + bit, end), real(k, b, b->v + bit));
		}
}

struct ring {
	const struct coll *k;
	const struct bcast *b;
};

static struct coll_block ring_piece(const void *ring, int i)
{
	const struct ring *r = ring;

	return pieces(r->k, r->b, i, i + 1);
}

/* The root has all of it already, and its memory may be only read: nothing goes there. */
static void bcast_ring(struct coll *k, const struct bcast *b)
{
	const struct ring r = {k, b};
	bool first = b->v == 0, last = b->v == k->size - 1;

	coll_ring(k, last ? -1 : real(k, b, b->v + 1), first ? -1 : real(k, b, b->v + k->size - 1),
		  b->v, ring_piece, &r);
}

/* ---- chain ---------------------------------------------------------------------------------- */

static struct coll_block segment(const struct bcast *b, size_t i)
{
	size_t from = i * COLL_CHAIN_BYTES, left = b->bytes - from;

	return cut(b, from, left < COLL_CHAIN_BYTES ? left : COLL_CHAIN_BYTES);
}

/* While a segment goes on to the next rank, the following one comes in. */
static void chain(struct coll *k, const struct bcast *b)
{
	size_t i, count = (b->bytes + COLL_CHAIN_BYTES - 1) / COLL_CHAIN_BYTES;
	struct coll_message in[2], out[2] = {{.active = false}, {.active = false}};
	bool first = b->v == 0, last = b->v == k->size - 1;
	int from = real(k, b, b->v + k->size - 1), to = real(k, b, b->v + 1);

	if (!first)
		coll_irecv(k, &in[0], segment(b, 0), from);
	for (i = 0; i < count; i++) {
		if (!first && i + 1 < count)
			coll_irecv(k, &in[(i + 1) % 2], segment(b, i + 1), from);
		if (!first)
			coll_wait(k, &in[i % 2]);
		if (last)
			continue;
		coll_wait(k, &out[i % 2]);
		coll_isend(k, &out[i % 2], segment(b, i), to);
	}
	coll_wait_all(k, out, 2);
}

/* ---- The call ------------------------------------------------------------------------------- */

static void spread(struct coll *k, const struct bcast *b)
{
	switch (coll_take(k, COLL_BCAST, b->bytes, 0)) {
	case COLL_SCATTER_RING:
		bcast_scatter(k, b);
		bcast_ring(k, b);
		break;
	case COLL_CHAIN:
		chain(k, b);
		break;
	default:
		bcast_binomial(k, b);
	}
}

static void spread_packed(struct coll *k, struct bcast *b)
{
	struct coll_block data = b->data;

	b->data = coll_bytes(coll_temp(k, b->bytes), b->bytes);
	if (b->v == 0)
		coll_copy(k, data, b->data);
	spread(k, b);
	if (b->v)
		coll_copy(k, b->data, data);
}

static void spread_ranges(struct coll *k, struct bcast *b)
{
	struct ranges ranges = {.next = 0};

	b->ranges = &ranges;
	spread(k, b);
}

static int bcast(struct comm *c, void *buf, MPI_Count count, MPI_Datatype type, int root)
{
	struct bcast b = {.root = root};
	struct coll k;

	if (!coll_is_ours(COLL_BCAST))
		return COLL_BY_OPTION;
	if (root < 0 || root >= c->size || buf == MPI_IN_PLACE ||
	    !coll_block_set(&b.data, buf, count, type))
		return COLL_BY_ARGUMENTS;
	b.v = (c->rank - root + c->size) % c->size;
	b.bytes = coll_size(b.data);
	coll_begin(&k, c);
	if (!b.bytes || k.size == 1)
		;
	else if (dtype_is_plain(b.data.type, b.data.count))
		spread(&k, &b);
	else if (b.bytes <= RAIL_PART_BYTES)
		spread_packed(&k, &b);
	else
		spread_ranges(&k, &b);
	return coll_end_taken(&k);
}

#define BCAST_PARAMS(COUNT, DISPL, COMM) \
	(void *buf, COUNT count, MPI_Datatype type, int root, COMM)
#define BCAST_ARGS(COMM) (buf, count, type, root, COMM)
#define GEN_BCAST(S, COUNT, DISPL) \
	COLL_CALL(Bcast##S, COUNT, DISPL, BCAST_PARAMS, BCAST_ARGS, \
		  bcast(c, buf, count, type, root))

EACH_COUNT_AND_DISPL(GEN_BCAST)
