/* coll_data.c - messages, memory and arguments of all collectives. */
#include "mpi/coll/coll_data.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_learn.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/lost.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/pool.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/send.h"
#include "mpi/type/dtype.h"
#include "mpi/watch/call_count.h"
#include "rail/policy.h"
#include "rail/rail.h"
#include "util/clock.h"
#include "util/compiler.h"
#include "util/err.h"

enum { LINE = 64 };

/* Blocks for a rendezvous are registered once and for all; larger blocks are given back. */
enum { REGISTERED_BYTES = 8 << 10, POOLED_BYTES = 16 << 20 };

static void *registered_get(size_t bytes)
{
	return rail_alloc(layer.rails, bytes);
}

static void registered_put(void *memory)
{
	rail_free(layer.rails, memory);
}

static struct pool small = { .get = pool_heap_get, .put = free };
static struct pool large = { .get = registered_get, .put = registered_put };

struct dtype coll_byte_type = {
	.size = 1,
	.extent = 1,
	.true_extent = 1,
	.contiguous = true,
	.solid = true,
	.refs = 1,
};

/* ---- What other threads may free meanwhile ---------------------------------------------------- */

/*
 * A collective that has begun goes on when another thread frees its datatype.  Block-setting calls
 * look types up before the collective begins; the thread holds these types until it ends.  Types
 * that reduce are predefined and stay.
 */
enum { HELD = 8 };

struct held {
	struct held *more;
	int count;
	struct dtype *type[HELD];
};

static FAST_THREAD_LOCAL struct held held;

static void hold(struct dtype *t)
{
	struct held *full;

	if (held.count && held.type[held.count - 1] == t)
		return;
	if (held.count == HELD) {
		full = coll_must(malloc(sizeof(*full)));
		*full = held;
		held = (struct held){.more = full};
	}
	atomic_fetch_add(&t->refs, 1);
	held.type[held.count++] = t;
}

struct dtype *coll_type(MPI_Datatype handle)
{
	struct dtype *t = dtype_lookup(handle);

	if (unlikely(layer.multiple) && t && !t->reduces)
		hold(t);
	return t;
}

static __attribute__((noinline)) void release_slow(void)
{
	struct held *full;

	for (;;) {
		while (held.count)
			dtype_release(held.type[--held.count]);
		full = held.more;
		if (!full)
			return;
		held = *full;
		free(full);
	}
}

static inline void release_types(void)
{
	if (unlikely(held.count))
		release_slow();
}

/* ---- One call ------------------------------------------------------------------------------- */

void coll_begin(struct coll *k, struct comm *c)
{
	layer_enter();
	k->comm = c->collective;
	k->comm->refs++;
	k->rank = c->rank;
	k->size = c->size;
	k->tag = (int)(k->comm->collectives++ & COMM_CALLS);
	k->error = MPI_SUCCESS;
	k->exact = false;
	k->race = NULL;
	k->temps = 0;
}

/* An empty message to each rank that ranks_meet of coll_agree.c sends to; none is waited for. */
static void refusal_tell(struct comm *c, int tag)
{
	for (int far = 1; far < c->size; far *= 2) {
		const struct message_args empty = {NULL, 0, &coll_byte_type, (c->rank + far) % c->size,
						   coll_agree_tag(tag)};
		struct req *r = req_alloc(REQ_SEND);

		if (!r)
			continue;
		if (send_start(c, r, &empty, MODE_STANDARD) == 0)
			r->detached = true;
		else
			req_free(r);
	}
}

void coll_skip(struct comm *c, int why)
{
	struct comm *of = c->collective;
	int tag;

	calls_leave_rails((enum native_reason)-why);
	layer_enter();
	tag = (int)(of->collectives++ & COMM_CALLS);
	if (why == COLL_BY_ARGUMENTS && !(of->learned && of->learned->end))
		refusal_tell(of, tag);
	layer_leave();
	release_types();
}

int coll_end(struct coll *k)
{
	const MPI_Comm handle = k->comm->handle;

	while (k->temps--) {
		if (k->temp[k->temps].pool)
			pool_put(k->temp[k->temps].pool, k->temp[k->temps].block);
		else
			free(k->temp[k->temps].block);
	}
	if (unlikely(--k->comm->refs == 0))
		comm_unref_last(k->comm);
	atomic_store_explicit(&layer.collected, true, memory_order_relaxed);
	layer_leave();
	release_types();
	return req_raise(handle, k->error);
}

void coll_fail(struct coll *k, int mpi_error)
{
	if (k->error == MPI_SUCCESS)
		k->error = mpi_error;
}

void *coll_must(void *memory)
{
	if (!memory)
		native_end("out of memory for a collective");
	return memory;
}

void *coll_temp(struct coll *k, size_t bytes)
{
	struct pool *pool = bytes > POOLED_BYTES ? NULL : bytes > REGISTERED_BYTES ? &large : &small;
	size_t lines = (bytes + LINE - 1) / LINE * LINE;
	void *block = pool ? pool_get(pool, bytes) : NULL;

	if (!block) {
		pool = NULL;
		block = coll_must(aligned_alloc(LINE, lines));
	}
	k->temp[k->temps].block = block;
	k->temp[k->temps++].pool = pool;
	return block;
}

void coll_stop(void)
{
	pool_stop(&small);
	pool_stop(&large);
}

/* ---- Arguments ------------------------------------------------------------------------------ */

/*
 * A type with more bytes than can be counted goes to the library, on all ranks, which refuses it.
 */
static bool countable(MPI_Count count, const struct dtype *t)
{
	return count >= 0 && (!t->size || (size_t)count <= DTYPE_BYTES_MAX / t->size);
}

bool coll_block_set(struct coll_block *b, const void *buf, MPI_Count count, MPI_Datatype type)
{
	/* MPICH ignores the type of an empty block. */
	b->type = count ? coll_type(type) : &coll_byte_type;
	b->buf = (void *)(uintptr_t)buf;
	b->count = (size_t)count;
	return b->type && countable(count, b->type);
}

bool coll_blocks_set(struct coll_blocks *b, int n, const void *buf, struct coll_counts a,
		     MPI_Datatype type)
{
	struct dtype *t = coll_type(type);
	int i;

	b->list = NULL;
	if (!t || !a.counts || !a.displs)
		return false;
	for (i = 0; i < n; i++)
		if (!countable(coll_count_at(&a, i), t))
			return false;
	b->list = coll_must(malloc((size_t)n * sizeof(*b->list)));
	for (i = 0; i < n; i++)
		b->list[i] = (struct coll_block){
			(char *)((uintptr_t)buf + (uintptr_t)coll_displ_at(&a, i) * (uintptr_t)t->extent),
			(size_t)coll_count_at(&a, i), t};
	return true;
}

bool coll_blocks_set_typed(struct coll_blocks *b, int n, const void *buf, struct coll_counts a,
			   const MPI_Datatype types[])
{
	bool right = true;
	int i;

	b->list = NULL;
	if (!a.counts || !a.displs || !types)
		return false;
	b->list = coll_must(malloc((size_t)n * sizeof(*b->list)));
	for (i = 0; i < n && right; i++)
		right = coll_block_set(&b->list[i], (const char *)buf + coll_displ_at(&a, i),
				       coll_count_at(&a, i), types[i]);
	if (!right) {
		free(b->list);
		b->list = NULL;
	}
	return right;
}

/* ---- Copies --------------------------------------------------------------------------------- */

static char *begin_of(struct coll_block b)
{
	return (char *)b.buf + b.type->true_lb;
}

static bool is_plain(struct coll_block b)
{
	return dtype_is_plain(b.type, b.count);
}

struct coll_block coll_range(struct coll_block b, size_t from, size_t bytes, struct dtype *type)
{
	if (is_plain(b))
		return coll_bytes(begin_of(b) + from, bytes);
	*type = dtype_range(b.type, from);
	return (struct coll_block){b.buf, bytes, type};
}

enum { PIECE_BYTES = 64 << 10 };

/* Piece by piece, while it is in the cache. */
static void copy_packed(struct coll_block from, struct coll_block to, size_t bytes)
{
	const size_t most = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
	void *piece = coll_must(malloc(most));
	size_t at, n;

	for (at = 0; at < bytes; at += n) {
		n = bytes - at < most ? bytes - at : most;
		dtype_pack(from.type, from.buf, at, piece, n);
		dtype_unpack(to.type, piece, n, to.buf, at);
	}
	free(piece);
}

void coll_copy(struct coll *k, struct coll_block from, struct coll_block to)
{
	size_t bytes = coll_size(from);

	if (bytes > coll_size(to)) {
		coll_fail(k, MPI_ERR_TRUNCATE);
		return;
	}
	if (!bytes)
		return;
	if (is_plain(from) && is_plain(to))
		memmove(begin_of(to), begin_of(from), bytes);
	else if (is_plain(to))
		dtype_pack(from.type, from.buf, 0, begin_of(to), bytes);
	else if (is_plain(from))
		dtype_unpack(to.type, begin_of(from), bytes, to.buf, 0);
	else
		copy_packed(from, to, bytes);
}

/* ---- Rails ---------------------------------------------------------------------------------- */

int coll_rails(const struct coll *k)
{
	return rail_policies[k->comm->way.policy].spreads ? rail_count(layer.rails) : 1;
}

unsigned coll_rails_hold(const struct coll *k)
{
	return coll_rails(k) > 1 ? COLL_RAILS : 0;
}

/* ---- Messages ------------------------------------------------------------------------------- */

/*
 * A message that tells the receiver of an error: empty in place of data, a byte in place of a
 * signal.
 */
static struct coll_block failure_like(struct coll_block b)
{
	static unsigned char byte;

	return coll_size(b) ? coll_bytes(NULL, 0) : coll_bytes(&byte, 1);
}

static int block_send(struct coll *k, struct coll_message *m, struct coll_block b, int to)
{
	struct message_args args = {b.buf, b.count, b.type, to, k->tag};
	int rc = send_start(k->comm, &m->req, &args, MODE_STANDARD);

	if (unlikely(rc < 0))
		coll_fail(k, lost_error_of(k->comm->peer[to], rc));
	return rc;
}

static void send_begin(struct coll *k, struct coll_message *m, struct coll_block b, int to)
{
	int rc = block_send(k, m, unlikely(k->error) ? failure_like(b) : b, to);

	if (unlikely(rc < 0 && rc != -ECONNRESET))
		rc = block_send(k, m, failure_like(b), to);
	m->active = rc == 0;
	m->expected = 0;
	m->withdrawn = false;
}

static void recv_begin(struct coll *k, struct coll_message *m, struct coll_block b, int from)
{
	struct message_args args = {b.buf, b.count, b.type, from, k->tag};

	recv_start(k->comm, &m->req, &args);
	m->active = true;
	m->expected = coll_size(b);
	m->withdrawn = false;
}

void coll_isend(struct coll *k, struct coll_message *m, struct coll_block b, int to)
{
	m->active = false;
	if (coll_size(b))
		send_begin(k, m, b, to);
}

/* The record is this collective's alone as long as it lasts: see layer_enter. */
void coll_isend_over(struct coll *k, struct coll_message *m, struct coll_block b, int to, int rail)
{
	struct rail_way *way = &k->comm->way, usual = *way;

	way->policy = RAIL_SINGLE;
	way->rail = (uint8_t)rail;
	coll_isend(k, m, b, to);
	*way = usual;
}

void coll_irecv(struct coll *k, struct coll_message *m, struct coll_block b, int from)
{
	m->active = false;
	if (coll_size(b))
		recv_begin(k, m, b, from);
}

/* ---- A rank is lost --------------------------------------------------------------------------- */

static bool is_over(const struct comm *c)
{
	return c->lost && rg_reached(c->lost_until_ns, rg_now_ns());
}

static int rank_of(const struct comm *c, const struct rail_peer *peer)
{
	int rank = 0;

	while (c->peer[rank] != peer)
		rank++;
	return rank;
}

/* A message that nothing may ever match is withdrawn, once; a message under way goes on. */
static void message_withdraw(struct coll *k, struct coll_message *m)
{
	if (m->withdrawn)
		return;
	m->withdrawn = true;
	k->comm->withdrawn = k->comm->collectives;
	coll_fail(k, k->comm->lost);
	lost_withdraw(&m->req, k->comm->lost);
}

/* The receiver is told, in case it comes at last. */
static void cancelled(struct coll *k, struct coll_message *m)
{
	const int to = rank_of(k->comm, rail_op_peer(&m->req.op));

	req_retire(&m->req);
	m->active = block_send(k, m, coll_bytes(NULL, 0), to) == 0;
}

static void wait_beside_lost(struct coll *k, struct coll_message *m)
{
	unsigned idle = 0;

	while (m->active && !m->req.done) {
		layer_poll(&idle);
		if (!m->req.done && is_over(k->comm))
			message_withdraw(k, m);
		if (m->req.done && m->withdrawn && m->req.cancelled)
			cancelled(k, m);
	}
}

/* ---- The end of a message --------------------------------------------------------------------- */

/* See failure_like. */
static bool is_failure(const struct coll_message *m)
{
	return m->expected ? !m->req.error && !m->req.bytes : m->req.error == MPI_ERR_TRUNCATE;
}

/* A piece of another algorithm's: see coll_take_large. */
static bool is_short(const struct coll *k, const struct coll_message *m)
{
	return m->expected > m->req.bytes && k->exact && !m->req.error;
}

void coll_wait(struct coll *k, struct coll_message *m)
{
	unsigned idle = 0;

	if (!m->active)
		return;
	while (!m->req.done && !lost_any())
		layer_poll(&idle);
	if (!m->req.done)
		wait_beside_lost(k, m);
	if (!m->active)
		return;
	if (unlikely(is_failure(m)))
		coll_fail(k, lost_elsewhere());
	else if (unlikely(m->req.error))
		coll_fail(k, m->req.error);
	else if (unlikely(is_short(k, m)))
		coll_fail(k, MPI_ERR_TRUNCATE);
	req_retire(&m->req);
	m->active = false;
}

void coll_wait_all(struct coll *k, struct coll_message m[], int count)
{
	int i;

	for (i = 0; i < count; i++)
		coll_wait(k, &m[i]);
}

void coll_send(struct coll *k, struct coll_block b, int to)
{
	struct coll_message m;

	coll_isend(k, &m, b, to);
	coll_wait(k, &m);
}

void coll_recv(struct coll *k, struct coll_block b, int from)
{
	struct coll_message m;

	coll_irecv(k, &m, b, from);
	coll_wait(k, &m);
}

void coll_exchange(struct coll *k, struct coll_block out, int to, struct coll_block in, int from)
{
	struct coll_message sent, received;

	coll_irecv(k, &received, in, from);
	coll_isend(k, &sent, out, to);
	coll_wait(k, &received);
	coll_wait(k, &sent);
}

void coll_ring(struct coll *k, int right, int left, int own,
	       struct coll_block (*at)(const void *blocks, int i), const void *blocks)
{
	struct coll_message in[2] = {{.active = false}, {.active = false}};
	struct coll_message out[2] = {{.active = false}, {.active = false}};
	int i, n = k->size;

	/* The receives of a rank alone would never end. */
	if (left >= 0 && n > 1)
		coll_irecv(k, &in[1], at(blocks, (own + n - 1) % n), left);
	for (i = 1; i < n; i++) {
		if (left >= 0 && i + 1 < n)
			coll_irecv(k, &in[(i + 1) % 2], at(blocks, (own + 2 * n - i - 1) % n), left);
		coll_wait(k, &out[i % 2]);
		if (right >= 0)
			coll_isend(k, &out[i % 2], at(blocks, (own + n - i + 1) % n), right);
		coll_wait(k, &in[i % 2]);
	}
	coll_wait_all(k, out, 2);
}

void coll_signal(struct coll *k, int to, int from)
{
	struct coll_message sent, received;

	recv_begin(k, &received, coll_bytes(NULL, 0), from);
	send_begin(k, &sent, coll_bytes(NULL, 0), to);
	coll_wait(k, &received);
	coll_wait(k, &sent);
}
