/* other.c - messages of all members at once, and messages that never are. */
#include "programs.h"

#include <string.h>

static int peer(const struct other *o, int me, int shift)
{
	int n = running->comm[o->comm].size, to = me + shift;

	if (o->wraps)
		return (to % n + n) % n;
	return to < 0 || to >= n ? MPI_PROC_NULL : to;
}

static uint64_t ring_key(const struct other *o, int from)
{
	return o->key ^ mix((unsigned)from + 300);
}

static size_t bytes_of(const struct other *o)
{
	return o->units * units[o->unit].bytes;
}

/* ---- Sendrecv and the like: to rank + shift, from rank - shift ----------------------------------
 */

static struct half ring_out[OTHERS_MAX];

static bool replaces(const struct other *o)
{
	return o->kind == OTHER_SENDRECV_REPLACE || o->kind == OTHER_ISENDRECV_REPLACE;
}

static void ring_finish(int index)
{
	const struct other *o = &running->other[index];
	int me = member_of(running, o->comm, world_rank), from = peer(o, me, -o->shift), n;
	struct half *h = &between[index], *out = &ring_out[index];
	bool none = from == MPI_PROC_NULL;

	CHECK(h->q == MPI_REQUEST_NULL, "a request has ended and is there");
	/* Some libraries have no status of the receive where several requests are one. */
	if (o->kind == OTHER_SENDRECV || o->kind == OTHER_SENDRECV_REPLACE) {
		CHECK(h->st.MPI_SOURCE == from, "source %d, not %d", h->st.MPI_SOURCE, from);
		CHECK(h->st.MPI_TAG == (none ? MPI_ANY_TAG : TAG_RING), "tag %d", h->st.MPI_TAG);
		DO(MPI_Get_elements(&h->st, h->l.type, &n));
		CHECK((size_t)n == (none ? 0 : o->units * units[o->unit].fields) ||
			  o->unit == FIRST_MIXED,
		      "%d basic elements", n);
	}
	if (none && replaces(o))
		half_check(h, ring_key(o, me), bytes_of(o), "what nobody has replaced");
	else
		half_check(h, ring_key(o, none ? me : from), none ? 0 : bytes_of(o), "what came");
	half_put(h);
	if (replaces(o))
		return;
	half_check(out, ring_key(o, me), bytes_of(o), "what was sent from");
	half_put(out);
}

/*
 * MPICH 4.0.2: MPI_Isendrecv and MPI_Isendrecv_replace free a derived type once too often, and
 * bring wrong bytes or crash where one end is MPI_PROC_NULL.
 */
#if MPI_VERSION >= 4
static bool is_nonblocking(const struct other *o)
{
#ifdef MPICH_VERSION
	if (!routed[o->comm])
		return false;
#endif
	return o->kind == OTHER_ISENDRECV || o->kind == OTHER_ISENDRECV_REPLACE;
}
#endif

static void ring_replace(const struct other *o, struct half *h, int to, int from, MPI_Comm comm)
{
#if MPI_VERSION >= 4
	if (is_nonblocking(o)) {
		DO(MPI_Isendrecv_replace(half_at(h), h->count, h->l.type, to, TAG_RING, from,
					 TAG_RING, comm, &h->q));
		return;
	}
#endif
	DO(MPI_Sendrecv_replace(half_at(h), h->count, h->l.type, to, TAG_RING, from, TAG_RING, comm,
				&h->st));
}

static void ring_exchange(const struct other *o, struct half *h, struct half *out, int to, int from,
			  MPI_Comm comm)
{
#if MPI_VERSION >= 4
	if (is_nonblocking(o)) {
		DO(MPI_Isendrecv(half_at(out), out->count, out->l.type, to, TAG_RING, half_at(h),
				 h->count, h->l.type, from, TAG_RING, comm, &h->q));
		return;
	}
#endif
	DO(MPI_Sendrecv(half_at(out), out->count, out->l.type, to, TAG_RING, half_at(h), h->count,
			h->l.type, from, TAG_RING, comm, &h->st));
}

static void ring_start(int index)
{
	const struct other *o = &running->other[index];
	int me = member_of(running, o->comm, world_rank), to = peer(o, me, o->shift);
	struct half *h = &between[index], *out = &ring_out[index];
	int from = peer(o, me, -o->shift);
	struct shape flat = {.grain = 1};

	half_get(h, &o->shape, o->unit, o->units, o->origin, o->key + 1);
	if (replaces(o)) {
		half_fill(h, ring_key(o, me), bytes_of(o));
		ring_replace(o, h, to, from, comm_of[o->comm]);
	} else {
		flat.seed = o->key;
		half_get(out, &flat, o->unit, o->units, ORIGIN_MALLOC, o->key + 2);
		half_fill(out, ring_key(o, me), bytes_of(o));
		ring_exchange(o, h, out, to, from, comm_of[o->comm]);
	}
	/* A library without the nonblocking form has just done the other. */
	if (o->kind == OTHER_SENDRECV || o->kind == OTHER_SENDRECV_REPLACE)
		ring_finish(index);
}

/* ---- A communicator that is freed while its messages are under way
 * -------------------------------- */

static void dup_run(const struct other *o, int me)
{
	int to = peer(o, me, o->shift), from = peer(o, me, -o->shift);
	struct half in, out;
	MPI_Request q[2];
	MPI_Comm comm;

	DO(MPI_Comm_dup(comm_of[o->comm], &comm));
	half_get(&in, &o->shape, o->unit, o->units, o->origin, o->key + 1);
	half_get(&out, &o->shape, o->unit, o->units, ORIGIN_MALLOC, o->key + 2);
	half_fill(&out, ring_key(o, me), bytes_of(o));
	DO(MPI_Irecv(half_at(&in), in.count, in.l.type, from, MPI_ANY_TAG, comm, &q[0]));
	DO(MPI_Isend(half_at(&out), out.count, out.l.type, to, 3, comm, &q[1]));
	DO(MPI_Comm_free(&comm));
	DO(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
	half_check(&in, ring_key(o, from), from == MPI_PROC_NULL ? 0 : bytes_of(o), "what came");
	half_check(&out, ring_key(o, me), bytes_of(o), "what was sent from");
	half_put(&in);
	half_put(&out);
}

/* ---- What nobody sends or receives
 * ------------------------------------------------------------------ */

static void null_run(const struct other *o)
{
	MPI_Comm comm = comm_of[o->comm];
	int data = 5, n;
	MPI_Request q;
	MPI_Status st;

	DO(MPI_Send(&data, 1, MPI_INT, MPI_PROC_NULL, 3, comm));
	DO(MPI_Isend(&data, 1, MPI_INT, MPI_PROC_NULL, 3, comm, &q));
	DO(MPI_Wait(&q, MPI_STATUS_IGNORE));
	DO(MPI_Recv(&data, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, comm, &st));
	DO(MPI_Get_count(&st, MPI_INT, &n));
	CHECK(data == 5 && n == 0 && st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG,
	      "from MPI_PROC_NULL came %d, %d elements, source %d, tag %d", data, n, st.MPI_SOURCE,
	      st.MPI_TAG);
}

static void none(int source, int tag, MPI_Comm comm)
{
	MPI_Message message;
	int flag;

	DO(MPI_Iprobe(source, tag, comm, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag, "a message that nobody has sent");
	DO(MPI_Improbe(source, tag, comm, &flag, &message, MPI_STATUS_IGNORE));
	CHECK(!flag, "a message that nobody has sent");
}

static void cancel_receive(const struct other *o)
{
	MPI_Comm comm = comm_of[o->comm];
	struct half h;
	int flag;

	half_get(&h, &o->shape, o->unit, o->units, o->origin, o->key);
	DO(MPI_Irecv(half_at(&h), h.count, h.l.type, o->wraps ? MPI_ANY_SOURCE : o->from, TAG_NONE,
		     comm, &h.q));
	DO(MPI_Cancel(&h.q));
	DO(MPI_Wait(&h.q, &h.st));
	DO(MPI_Test_cancelled(&h.st, &flag));
	CHECK(flag, "a receive that nothing could match is not cancelled");
	half_check(&h, o->key, 0, "a cancelled receive");
	half_put(&h);
}

/* ---- A send that is cancelled, or goes out all the same: its sender says which
 * ------------------------ */

static void cancel_send(const struct other *o, int tag, MPI_Comm comm)
{
	int flag = 0;
	struct half h;

	half_get(&h, &o->shape, o->unit, o->units, o->origin, o->key);
	half_fill(&h, o->key, bytes_of(o));
	if (o->wraps)
		DO(MPI_Issend(half_at(&h), h.count, h.l.type, o->to, tag, comm, &h.q));
	else
		DO(MPI_Isend(half_at(&h), h.count, h.l.type, o->to, tag, comm, &h.q));
	if (routed[o->comm]) { /* Open MPI 4.1 cancels no send, and MPI_Wait hangs */
		DO(MPI_Cancel(&h.q));
		DO(MPI_Wait(&h.q, &h.st));
		DO(MPI_Test_cancelled(&h.st, &flag));
	}
	DO(MPI_Send(&flag, 1, MPI_INT, o->to, TAG_TOLD, comm));
	DO(MPI_Wait(&h.q, MPI_STATUS_IGNORE));
	half_check(&h, o->key, bytes_of(o), "what was sent from");
	half_put(&h);
}

static void cancel_see(const struct other *o, int tag, MPI_Comm comm)
{
	struct half h;
	int flag;

	DO(MPI_Recv(&flag, 1, MPI_INT, o->from, TAG_TOLD, comm, MPI_STATUS_IGNORE));
	if (flag) {
		none(o->from, tag, comm);
		return;
	}
	half_get(&h, &o->shape, o->unit, o->units, o->origin, o->key + 1);
	DO(MPI_Recv(half_at(&h), h.count, h.l.type, o->from, tag, comm, &h.st));
	half_check(&h, o->key, bytes_of(o), "what came, and was not cancelled");
	half_put(&h);
}

/* ---- */

void other_run(int index)
{
	const struct other *o = &running->other[index];
	int me = member_of(running, o->comm, world_rank);
	MPI_Comm comm = comm_of[o->comm];

	if (me < 0)
		return;
	if (is_collective(o))
		collective_start(index);
	else if (o->kind < OTHER_DUP)
		ring_start(index);
	else if (o->kind == OTHER_DUP)
		dup_run(o, me);
	else if (o->kind == OTHER_NULL)
		null_run(o);
	else if (o->kind == OTHER_NONE)
		none(o->wraps ? MPI_ANY_SOURCE : o->from, TAG_NONE, comm);
	else if (o->kind == OTHER_CANCEL_RECEIVE)
		cancel_receive(o);
	else if (me == o->from)
		cancel_send(o, TAG_CANCELLED + index, comm);
	else if (me == o->to)
		cancel_see(o, TAG_CANCELLED + index, comm);
}

void other_finish(int index)
{
	if (is_collective(&running->other[index]))
		collective_finish(index);
	else
		ring_finish(index);
}
