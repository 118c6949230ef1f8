/*
 * scan.c - MPI_Scan and MPI_Exscan.
 *
 * acc is the value that a rank passes on: the reduction of a run of ranks that ends with this
 * one.  result is the program's buffer.  A scan's result is acc; an exscan's result leaves
 * this rank's own elements out.
 */
#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/coll/coll.h"
#include "mpi/coll/coll_data.h"
#include "mpi/coll/coll_op.h"
#include "mpi/comm/comm.h"

struct scan {
	void *acc, *result;
	size_t count;
	bool exclusive;
	bool begun;		/* exclusive: the result holds something */
};

static struct coll_block vector(const struct coll_reduction *r, const struct scan *s, void *base)
{
	return coll_elements(r, base, 0, s->count);
}

/*
 * `below`: the value of the run of ranks that ends before acc's run.  acc: true if acc is needed
 * further.
 */
static void scan_join(struct coll *k, const struct coll_reduction *r, struct scan *s, void *below,
		      bool acc)
{
	if (acc || !s->exclusive)
		coll_apply(k, r, below, s->acc, s->count);
	if (!s->exclusive)
		return;
	if (s->begun)
		coll_apply(k, r, below, s->result, s->count);
	else
		coll_copy(k, vector(r, s, below), vector(r, s, s->result));
	s->begun = true;
}

/*
 * The run of `far` ranks goes to the rank `far` above; the arriving run joins before the own run.
 */
static void scan_doubling(struct coll *k, const struct coll_reduction *r, struct scan *s)
{
	void *below = coll_vector(k, r->type, s->count);
	struct coll_block none = coll_elements(r, below, 0, 0), out, in;
	int far, up, down;

	for (far = 1; far < k->size; far *= 2) {
		up = k->rank + far;
		down = k->rank - far;
		out = up < k->size ? vector(r, s, s->acc) : none;
		in = down >= 0 ? vector(r, s, below) : none;
		coll_exchange(k, out, up, in, down);
		if (down >= 0)
			scan_join(k, r, s, below, up + far < k->size);
	}
}

static void scan_linear(struct coll *k, const struct coll_reduction *r, struct scan *s)
{
	void *below = coll_vector(k, r->type, s->count);
	bool last = k->rank == k->size - 1;

	if (k->rank) {
		coll_recv(k, vector(r, s, below), k->rank - 1);
		scan_join(k, r, s, below, !last);
	}
	if (!last)
		coll_send(k, vector(r, s, s->acc), k->rank + 1);
}

/* ---- The calls ------------------------------------------------------------------------------ */

static int scan(struct comm *c, const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type,
		MPI_Op op, bool exclusive)
{
	struct scan s = {.acc = rbuf, .result = rbuf, .exclusive = exclusive};
	struct coll_reduction r;
	struct coll_block own;
	struct coll k;
	int rc;

	if (!coll_is_ours(COLL_SCAN))
		return COLL_BY_OPTION;
	rc = coll_reduction_set(&r, op, type);
	if (rc)
		return rc;
	if (rbuf == MPI_IN_PLACE ||
	    !coll_block_set(&own, sbuf == MPI_IN_PLACE ? rbuf : sbuf, count, type))
		return COLL_BY_ARGUMENTS;
	s.count = own.count;
	coll_begin(&k, c);
	if (coll_size(own)) {
		if (exclusive)
			s.acc = coll_vector(&k, r.type, s.count);
		if (s.acc != own.buf)
			coll_copy(&k, own, vector(&r, &s, s.acc));
		if (coll_choose(COLL_SCAN, k.size, coll_size(own), 0) == COLL_LINEAR)
			scan_linear(&k, &r, &s);
		else
			scan_doubling(&k, &r, &s);
	}
	return coll_end(&k);
}

#define GEN_SCAN(S, COUNT, DISPL) \
	COLL_CALL(Scan##S, COUNT, DISPL, COLL_VALUES_PARAMS, COLL_VALUES_ARGS, \
		  scan(c, sbuf, rbuf, count, type, op, false)) \
	COLL_CALL(Exscan##S, COUNT, DISPL, COLL_VALUES_PARAMS, COLL_VALUES_ARGS, \
		  scan(c, sbuf, rbuf, count, type, op, true))

EACH_COUNT_AND_DISPL(GEN_SCAN)
