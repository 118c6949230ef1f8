/* collective.c - collectives that move blocks, and what each rank must have then. */
#include "programs.h"

#include <string.h>

struct half between[OTHERS_MAX];

/* Buffers that a rank gives and gets, in units, kept until a nonblocking collective has ended. */
static struct blocks {
	int give[RANKS_MAX], give_at[RANKS_MAX], get[RANKS_MAX], get_at[RANKS_MAX];
	int gives, gets; /* blocks */
	size_t give_room, get_room;
} all_blocks[OTHERS_MAX];

static int length(const struct other *o, int from, int to)
{
	int low = from < to ? from : to, high = from < to ? to : from;

	if (!o->vector)
		return (int)o->units;
	if (o->in_place) /* the same size both ways */
		from = low, to = high;
	return (int)(mix(o->key + (unsigned)(from * RANKS_MAX + to)) % (o->units + 1));
}

/* To whom a block goes, as its length and its bytes are concerned. */
static int block_to(const struct other *o, int to)
{
	return o->kind == OTHER_ALLGATHER || o->kind == OTHER_GATHER ? 0 : to;
}

static uint64_t block_key(const struct other *o, int from, int to)
{
	return o->key ^ mix((unsigned)(from * RANKS_MAX + block_to(o, to)) + 77);
}

static size_t place(int *count, int *at, int n, const struct other *o)
{
	int i, next = 0;

	for (i = 0; i < n; i++) {
		at[i] = next + (o->vector ? i % 3 : 0);
		next = at[i] + count[i];
	}
	return (size_t)next * units[o->unit].bytes;
}

static void blocks_make(struct blocks *b, const struct other *o, int me, int n)
{
	bool root = me == o->root;
	int i, from;

	memset(b, 0, sizeof(*b));
	b->gives = o->kind == OTHER_ALLTOALL || (o->kind == OTHER_SCATTER && root)
		       ? n
		       : o->kind != OTHER_SCATTER;
	b->gets = o->kind == OTHER_GATHER && !root ? 0 : o->kind == OTHER_SCATTER ? 1 : n;
	for (i = 0; i < b->gives; i++)
		b->give[i] = length(o, me, block_to(o, i));
	for (i = 0; i < b->gets; i++) {
		from = o->kind == OTHER_SCATTER ? o->root : i;
		b->get[i] = length(o, from, block_to(o, me));
	}
	b->give_room = place(b->give, b->give_at, b->gives, o);
	b->get_room = place(b->get, b->get_at, b->gets, o);
}

static void put_block(unsigned char *mem, const struct other *o, int at, int count, uint64_t key)
{
	size_t size = units[o->unit].bytes;

	pattern(mem + GUARD + (size_t)at * size, (size_t)count * size, key);
}

/* Only where MPI_IN_PLACE means something. */
static bool in_place(const struct other *o, int me)
{
	return o->in_place &&
	       (o->kind == OTHER_ALLGATHER || o->kind == OTHER_ALLTOALL || me == o->root);
}

/* Contents of the receive buffer: in the beginning, in the end. */
static void image(unsigned char *mem, const struct half *h, const struct blocks *b,
		  const struct other *o, int me, bool begun)
{
	int i;

	pattern(mem, h->b.room + 2 * GUARD, h->b.key);
	for (i = 0; i < b->gets; i++) {
		int from = o->kind == OTHER_SCATTER ? o->root : i;
		bool own = in_place(o, me) && (o->kind == OTHER_ALLTOALL || i == me);

		if (o->kind == OTHER_SCATTER && in_place(o, me))
			continue;
		if (!begun)
			put_block(mem, o, b->get_at[i], b->get[i], block_key(o, from, me));
		else if (own)
			put_block(mem, o, b->get_at[i], b->get[i], block_key(o, me, i));
	}
}

static void give_image(unsigned char *mem, const struct half *h, const struct blocks *b,
		       const struct other *o, int me)
{
	int i;

	pattern(mem, h->b2.room + 2 * GUARD, h->b2.key);
	for (i = 0; i < b->gives; i++)
		put_block(mem, o, b->give_at[i], b->give[i], block_key(o, me, i));
}

/* ---- The calls ---------------------------------------------------------------------------------
 */

static int uniform(const struct other *o, const void *give, void *get, MPI_Comm comm,
		   MPI_Request *q)
{
	MPI_Datatype t = basic(o->unit);
	int n = (int)o->units;

	switch (o->kind) {
	case OTHER_GATHER:
		return q ? MPI_Igather(give, n, t, get, n, t, o->root, comm, q)
			 : MPI_Gather(give, n, t, get, n, t, o->root, comm);
	case OTHER_SCATTER:
		return q ? MPI_Iscatter(give, n, t, get, n, t, o->root, comm, q)
			 : MPI_Scatter(give, n, t, get, n, t, o->root, comm);
	case OTHER_ALLGATHER:
		return q ? MPI_Iallgather(give, n, t, get, n, t, comm, q)
			 : MPI_Allgather(give, n, t, get, n, t, comm);
	default:
		return q ? MPI_Ialltoall(give, n, t, get, n, t, comm, q)
			 : MPI_Alltoall(give, n, t, get, n, t, comm);
	}
}

static int vector(const struct other *o, const struct blocks *b, const void *give, void *get,
		  MPI_Comm comm, MPI_Request *q)
{
	MPI_Datatype t = basic(o->unit);

	switch (o->kind) {
	case OTHER_GATHER:
		return q ? MPI_Igatherv(give, b->give[0], t, get, b->get, b->get_at, t, o->root,
					comm, q)
			 : MPI_Gatherv(give, b->give[0], t, get, b->get, b->get_at, t, o->root,
				       comm);
	case OTHER_SCATTER:
		return q ? MPI_Iscatterv(give, b->give, b->give_at, t, get, b->get[0], t, o->root,
					 comm, q)
			 : MPI_Scatterv(give, b->give, b->give_at, t, get, b->get[0], t, o->root,
					comm);
	case OTHER_ALLGATHER:
		return q ? MPI_Iallgatherv(give, b->give[0], t, get, b->get, b->get_at, t, comm, q)
			 : MPI_Allgatherv(give, b->give[0], t, get, b->get, b->get_at, t, comm);
	default:
		return q ? MPI_Ialltoallv(give, b->give, b->give_at, t, get, b->get, b->get_at, t,
					  comm, q)
			 : MPI_Alltoallv(give, b->give, b->give_at, t, get, b->get, b->get_at, t,
					 comm);
	}
}

static void move_start(int index, int me)
{
	const struct other *o = &running->other[index];
	struct half *h = &between[index];
	struct blocks *b = &all_blocks[index];
	MPI_Comm comm = comm_of[o->comm];
	const void *give;
	void *get;

	blocks_make(b, o, me, running->comm[o->comm].size);
	buffer_get(&h->b, o->origin, b->get_room, units[o->unit].align, o->key + 1);
	buffer_get(&h->b2, o->origin, b->give_room, units[o->unit].align, o->key + 2);
	image(h->b.mem, h, b, o, me, true);
	give_image(h->b2.mem, h, b, o, me);
	give = h->b2.mem + GUARD;
	get = h->b.mem + GUARD;
	if (in_place(o, me) && o->kind == OTHER_SCATTER)
		get = MPI_IN_PLACE;
	else if (in_place(o, me))
		give = MPI_IN_PLACE;
	if (o->vector)
		DO(vector(o, b, give, get, comm, o->nonblocking ? &h->q : NULL));
	else
		DO(uniform(o, give, get, comm, o->nonblocking ? &h->q : NULL));
}

static void move_finish(int index, int me)
{
	const struct other *o = &running->other[index];
	struct half *h = &between[index];
	struct blocks *b = &all_blocks[index];
	unsigned char *should =
	    scratch(0, (h->b.room > h->b2.room ? h->b.room : h->b2.room) + 2 * GUARD);

	image(should, h, b, o, me, false);
	bytes_check(h->b.mem, should, h->b.room + 2 * GUARD, "what a collective has brought");
	give_image(should, h, b, o, me);
	bytes_check(h->b2.mem, should, h->b2.room + 2 * GUARD, "what a collective has taken");
	buffer_put(&h->b);
	buffer_put(&h->b2);
	h->open = false;
}

/* ---- Those that are moved by derived types, or move nothing -------------------------------------
 */

static void bcast_start(const struct other *o, struct half *h, int me)
{
	MPI_Comm comm = comm_of[o->comm];

	half_get(h, &o->shape, o->unit, o->units, o->origin, o->key);
	if (me == o->root)
		half_fill(h, o->key, o->units * units[o->unit].bytes);
	if (o->nonblocking)
		DO(MPI_Ibcast(half_at(h), h->count, h->l.type, o->root, comm, &h->q));
	else
		DO(MPI_Bcast(half_at(h), h->count, h->l.type, o->root, comm));
}

static void barrier_start(const struct other *o, struct half *h)
{
	if (o->nonblocking)
		DO(MPI_Ibarrier(comm_of[o->comm], &h->q));
	else
		DO(MPI_Barrier(comm_of[o->comm]));
}

void collective_start(int index)
{
	const struct other *o = &running->other[index];
	int me = member_of(running, o->comm, world_rank);
	struct half *h = &between[index];

	h->q = MPI_REQUEST_NULL;
	h->open = true;
	if (o->kind == OTHER_BARRIER)
		barrier_start(o, h);
	else if (o->kind == OTHER_BCAST)
		bcast_start(o, h, me);
	else if (o->kind < OTHER_REDUCE)
		move_start(index, me);
	else
		reduction_start(index);
	if (!o->nonblocking)
		collective_finish(index);
}

void collective_finish(int index)
{
	const struct other *o = &running->other[index];
	struct half *h = &between[index];

	CHECK(h->q == MPI_REQUEST_NULL, "a collective has ended, and its request is there");
	if (o->kind == OTHER_BCAST) {
		half_check(h, o->key, o->units * units[o->unit].bytes, "what Bcast has brought");
		half_put(h);
	} else if (o->kind != OTHER_BARRIER && o->kind < OTHER_REDUCE) {
		move_finish(index, member_of(running, o->comm, world_rank));
	} else if (o->kind >= OTHER_REDUCE) {
		reduction_finish(index);
	}
	h->open = false;
}
