/*
 * coll.h - collectives of routed communicators, over this layer's own messages.
 *
 * The path of a call:  the MPI call at the end of its family's file (does the library
 * have to refuse the arguments?) -> coll.c (which algorithm?) -> the algorithm ->
 * coll_data.c (its messages) -> send.c, match.c.
 *
 *	barrier.c  bcast.c  allgather.c  alltoall.c
 *	allreduce.c  reduce.c  rooted.c  scan.c
 *	coll_types.c	which operations MPI has for a type
 *	coll_op.c	operations, and how they are applied
 *
 * Rules:
 *  - A collective is ours on all ranks of a communicator or the library's on all.  What
 *    decides is the same on all: is it routed (never an intercommunicator), and --coll.
 *    Reductions also ask whether MPI has the operation for the type, which MPI wants to
 *    be the same on all ranks.  Nonblocking forms and neighbourhoods are the library's.
 *  - Which algorithm (--coll, else rules of its files, else the table of coll.c): by n and
 *    by bytes that the type signature gives, which MPI wants to be the same on all ranks;
 *    never by datatypes, whose layouts may differ.
 *  - Messages are those of the communicator's collective record (comm.c): a context of
 *    its own.  Their tag is the number of the collective on that communicator, so that
 *    what one leaves behind is never taken for the next.
 *  - A block of no bytes is no message: both ends know that it has none.
 *  - Reductions keep the order of ranks, a0 op a1 op ..., unless the operation commutes,
 *    and every rank gets the same bits.
 *  - Wrong arguments go to the library, whose error its users know.  An error of a
 *    message is remembered, the algorithm goes on, so that others need not wait, and the
 *    call returns the first.  For a message that cannot be sent an empty one goes out, of
 *    which its receiver makes an error: there are no others.  Without memory the job ends:
 *    others would wait for ever.
 *
 * What they cost.  n ranks; p the largest power of two that is not above n; lg = log2 n
 * rounded up; a: a message of no bytes; b: a byte; g: to reduce a byte; m as said, bytes.
 *
 *	barrier		dissemination	lg a
 *			[Hensgen, Finkel, Manber 1988]
 *	bcast		binomial	lg (a + m b)
 *	(m: all)	scatter-ring	(lg + n - 1) a + 2 (n - 1)/n m b
 *			[Barnett, Gupta, Payne, Shuler, van de Geijn, Watts 1994]
 *			chain		(n - 2 + S) (a + m/S b), S pieces of COLL_CHAIN_BYTES
 *			[Worringen 2003]
 *	allgather	bruck		lg a + (n - 1)/n m b, m bytes copied
 *	(m: result)	[Bruck, Ho, Kipnis, Upfal, Weathersby 1997]
 *			doubling	lg a + (n - 1)/n m b; n = p, else bruck
 *			ring		(n - 1) (a + m/n b)
 *			ring-rails	n/2 a + (n - 1)/n m b with two rails: one for each
 *					direction; more rails would lie idle
 *	allgatherv	ring		the same, with the largest block for m/n
 *	alltoall	pairwise	(n - 1) (a + m b)
 *	(m: a block)	bruck		lg (a + n/2 m b), about (lg + 2) n m bytes copied
 *			[Bruck et al. 1997]
 *			linear		a + (n - 1) m b, all messages at once
 *			pairwise-rails	((n - 1)/R + (n - 1) mod R) a + (n - 1) m b: R partners
 *					at a time, each over one of R rails; those left over
 *					one by one, striped
 *	alltoallv, w	pairwise, linear	the same, with the largest blocks
 *	allreduce	doubling	lg (a + m b + m g); n > p: 2 (a + m b) + m g more
 *	(m: vector)	rabenseifner	2 log2 p a + (p - 1)/p m (2 b + g); n > p: the same more
 *			[Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005]; commuting
 *			operations, n elements or more, else doubling
 *			ring		2 (n - 1) a + (n - 1)/n m (2 b + g)
 *			[Patarasuk, Yuan 2009]; the same conditions
 *	reduce		binomial	lg (a + m b + m g); not commuting and the root is not
 *	(m: vector)			rank 0: a + m b more
 *			rabenseifner	(log2 p + p - 1) a + (p - 1)/p m (2 b + g); n > p:
 *					a + m b + m g more; conditions as above
 *	reduce_scatter	pairwise	(n - 1) a + (n - 1)/n m (b + g); commuting operations
 *	(m: vector)	binomial	reduce to rank 0, then scatter
 *	gather, scatter	binomial	lg a + (n - 1) m b, n m bytes copied
 *	(m: a block)	linear		a + (n - 1) m b at the root
 *	gatherv, scatterv	linear	the same
 *	scan, exscan	doubling	lg (a + m b + m g)
 *	(m: vector)	[Hillis, Steele 1986]
 *			linear		(n - 1) (a + m b + m g)
 */
#ifndef RAILMPI_COLL_H
#define RAILMPI_COLL_H

#include "layer.h"

enum { COLL_CHAIN_BYTES = 128 << 10 };

/* ---- Which algorithm (coll.c; calls no MPI) ------------------------------------------------- */

enum coll_id {
	COLL_BARRIER, COLL_BCAST, COLL_ALLGATHER, COLL_ALLGATHERV, COLL_ALLTOALL,
	COLL_ALLTOALLV,		/* alltoallw, too */
	COLL_ALLREDUCE, COLL_REDUCE,
	COLL_REDUCE_SCATTER,	/* reduce_scatter_block, too */
	COLL_GATHER, COLL_GATHERV, COLL_SCATTER, COLL_SCATTERV,
	COLL_SCAN,		/* exscan, too */
	COLL_COUNT,
};

enum coll_algorithm {
	COLL_AUTO,		/* by the table */
	COLL_LIBRARY,		/* "native": left to the MPI library */
	COLL_DISSEMINATION, COLL_BINOMIAL, COLL_SCATTER_RING, COLL_CHAIN, COLL_BRUCK,
	COLL_DOUBLING, COLL_RING, COLL_RING_RAILS, COLL_PAIRWISE, COLL_PAIRWISE_RAILS, COLL_LINEAR,
	COLL_RABENSEIFNER,
	COLL_ALGORITHMS,
};

/* What an algorithm may need. */
enum {
	COLL_COMMUTES = 1,	/* the operation */
	COLL_DIVIDES = 2,	/* at least one element for each rank */
	COLL_POWER_OF_TWO = 4,	/* the number of ranks */
	COLL_RAILS = 8,		/* several, and a way that is free to use any of them */
};

/* Up to so many ranks and bytes, 0: any number.  The first rule that fits counts. */
struct coll_rule {
	int ranks;
	size_t bytes;
	enum coll_algorithm algorithm;
	short next;		/* of the same collective: as `first` */
};

enum { COLL_RULES_MAX = 1024 };

/* Of files: they come before those of coll.c. */
struct coll_rules {
	int count;
	short first[COLL_COUNT];	/* rule[first - 1]; 0: none */
	struct coll_rule rule[COLL_RULES_MAX];
};

/* Adds a file's (coll_file.c).  0, or -EINVAL with why: "@FILE: line 3: ...". */
int coll_file_read(const char *path, struct coll_rules *rules, char *why, size_t why_size);
/* A collective and one of its candidates, by name.  0, or -EINVAL with why. */
int coll_names(const char *collective, const char *algorithm, enum coll_id *id,
	       enum coll_algorithm *a, char *why, size_t why_size);

/*
 * --coll LIST.  The option row's check: 0, or -EINVAL with why.  Files are not read: which
 * ranks can do so, and whether all find the same, they find out together (world.c).
 */
int coll_check(const char *text, char *why, size_t why_size);
/* A text that coll_check has accepted, or NULL.  0, or -EINVAL with why: of a file. */
int coll_set(const char *text, char *why, size_t why_size);
/* Stands for what coll_set has understood, files included, where ranks compare theirs. */
uint64_t coll_digest(void);
/* Not left to the library by --coll. */
bool coll_is_ours(enum coll_id id);
/* holds: COLL_COMMUTES, COLL_DIVIDES, as far as they are true. */
enum coll_algorithm coll_choose(enum coll_id id, int ranks, size_t bytes, unsigned holds);

/* ---- One call (coll_data.c) ----------------------------------------------------------------- */

/* Returned by what stands behind an MPI call: let the library answer it. */
enum { COLL_NATIVE = -1 };

enum { COLL_TEMPS = 8 };

struct coll {
	struct comm *comm;		/* the record of collectives */
	int rank, size;
	int tag;
	int error;			/* the first, an MPI error class */
	int temps;
	struct { void *block; struct pool *pool; } temp[COLL_TEMPS];
};

/* Everything up to coll_end is inside layer_enter. */
void coll_begin(struct coll *k, struct comm *c);
/* Left to the library at this rank, maybe not at others: later ones still have the same tags. */
void coll_skip(struct comm *c);
/* Frees what coll_temp gave; returns what the MPI call returns. */
int coll_end(struct coll *k);
void coll_fail(struct coll *k, int mpi_error);
/* Memory until coll_end, aligned to cache lines; never NULL. */
void *coll_temp(struct coll *k, size_t bytes);
/* Before the rails are closed. */
void coll_stop(void);
/* What malloc returned; NULL ends the job. */
void *coll_must(void *memory);

/* ---- Data ----------------------------------------------------------------------------------- */

/* A buffer as MPI describes it: what one message is made of. */
struct coll_block {
	void *buf;
	size_t count;			/* elements */
	struct dtype *type;
};

extern struct dtype coll_byte_type;

static inline struct coll_block coll_bytes(void *at, size_t bytes)
{
	return (struct coll_block){at, bytes, &coll_byte_type};
}

static inline size_t coll_size(struct coll_block b)
{
	return b.count * b.type->size;
}

/* Fill *b, outside of layer_enter.  False: the library would refuse it. */
bool coll_block_set(struct coll_block *b, const void *buf, MPI_Count count, MPI_Datatype type);
/* `to` has room for all of `from`, or the error is MPI_ERR_TRUNCATE. */
void coll_copy(struct coll *k, struct coll_block from, struct coll_block to);

/* One block for each rank. */
struct coll_blocks {
	struct coll_block first;	/* they follow each other, without list */
	struct coll_block *list;	/* malloc'ed; or NULL */
};

static inline struct coll_block coll_block_at(const struct coll_blocks *b, int i)
{
	struct coll_block one = b->first;

	if (b->list)
		return b->list[i];
	one.buf = (char *)one.buf + (MPI_Aint)i * (MPI_Aint)one.count * one.type->extent;
	return one;
}

/* `count` of them from `first` on, which follow each other: not with a list. */
static inline struct coll_block coll_block_range(const struct coll_blocks *b, int first, int count)
{
	struct coll_block some = coll_block_at(b, first);

	some.count *= (size_t)count;
	return some;
}

/* Arrays of a call's arguments; int, or MPI_Count and MPI_Aint (wide). */
struct coll_counts {
	const void *counts, *displs;
	bool wide;
};

#define COLL_COUNTS(COUNT, counts, displs) \
	((struct coll_counts){counts, displs, sizeof(COUNT) > sizeof(int)})

static inline MPI_Count coll_count_at(const struct coll_counts *a, int i)
{
	return a->wide ? ((const MPI_Count *)a->counts)[i] : ((const int *)a->counts)[i];
}

static inline MPI_Aint coll_displ_at(const struct coll_counts *a, int i)
{
	return a->wide ? ((const MPI_Aint *)a->displs)[i] : ((const int *)a->displs)[i];
}

/* Block i is displs[i] extents behind buf.  Free b->list; false: the library would refuse it. */
bool coll_blocks_set(struct coll_blocks *b, int n, const void *buf, struct coll_counts a,
		     MPI_Datatype type);
/* Block i has types[i], displs[i] bytes behind buf. */
bool coll_blocks_set_typed(struct coll_blocks *b, int n, const void *buf, struct coll_counts a,
			   const MPI_Datatype types[]);

/* ---- Rails ---------------------------------------------------------------------------------- */

/* How many an algorithm may tell apart: one where the communicator's way has chosen already. */
int coll_rails(const struct coll *k);
/* What coll_choose wants to know. */
unsigned coll_rails_hold(const struct coll *k);

/* ---- Messages; one of no bytes is none ------------------------------------------------------ */

struct coll_message {
	struct req req;
	bool active;
	bool receives;
};

void coll_isend(struct coll *k, struct coll_message *m, struct coll_block b, int to);
/* A large one over this rail alone: less than coll_rails. */
void coll_isend_over(struct coll *k, struct coll_message *m, struct coll_block b, int to, int rail);
void coll_irecv(struct coll *k, struct coll_message *m, struct coll_block b, int from);
void coll_wait(struct coll *k, struct coll_message *m);
void coll_wait_all(struct coll *k, struct coll_message m[], int count);
void coll_send(struct coll *k, struct coll_block b, int to);
void coll_recv(struct coll *k, struct coll_block b, int from);
/* Both at once. */
void coll_exchange(struct coll *k, struct coll_block out, int to, struct coll_block in, int from);
/*
 * What came last goes on to the right: in step i block own - i comes from the left, and the one
 * before it goes out.  Receives are posted a step ahead, so that no rendezvous waits for what
 * goes out meanwhile.  Nobody on a side: -1.  `at` finds block i.
 */
void coll_ring(struct coll *k, int right, int left, int own,
	       struct coll_block (*at)(const void *blocks, int i), const void *blocks);
/* Both at once, without data: these are messages. */
void coll_signal(struct coll *k, int to, int from);

/* ---- Reductions (coll_op.c) ----------------------------------------------------------------- */

struct coll_reduction {
	MPI_Op op;
	MPI_Datatype handle;
	struct dtype *type;
	bool commutes;
};

/* Outside of layer_enter.  False: the library would refuse it. */
bool coll_reduction_set(struct coll_reduction *r, MPI_Op op, MPI_Datatype type);
/* Kinds of predefined operations. */
enum {
	COLL_OP_ORDER = 1,		/* MPI_MAX, MPI_MIN */
	COLL_OP_ARITHMETIC = 2,		/* MPI_SUM, MPI_PROD */
	COLL_OP_LOGICAL = 4,		/* MPI_LAND, MPI_LOR, MPI_LXOR */
	COLL_OP_BITS = 8,		/* MPI_BAND, MPI_BOR, MPI_BXOR */
	COLL_OP_PLACE = 16,		/* MPI_MAXLOC, MPI_MINLOC */
	COLL_OP_NO_REDUCTION = 32,	/* MPI_REPLACE, MPI_NO_OP: for one-sided calls */
};

/* Those that MPI has for a predefined type (coll_types.c); 0 for other types. */
unsigned char coll_operations_of(MPI_Datatype type);
/* What coll_choose wants to know. */
unsigned coll_reduction_holds(const struct coll_reduction *r, size_t count, int ranks);
/*
 * inout = in op inout, element by element.  Leaves layer_enter meanwhile: a user's
 * function may take long, and locks.
 */
void coll_apply(struct coll *k, const struct coll_reduction *r, const void *in, void *inout,
		size_t count);
/* Room for `count` elements as the type lays them out, as a buffer for MPI, until coll_end. */
void *coll_vector(struct coll *k, const struct dtype *type, size_t count);

static inline struct coll_block coll_elements(const struct coll_reduction *r, void *base,
					      size_t first, size_t count)
{
	char *at = (char *)base + (MPI_Aint)first * r->type->extent;

	return (struct coll_block){at, count, r->type};
}

/* The first element of part i, of `count` elements in even parts. */
static inline size_t coll_part(size_t count, int parts, int i)
{
	size_t rest = count % (size_t)parts, at = (size_t)i;

	return at * (count / (size_t)parts) + (at < rest ? at : rest);
}

/* Parts lo to hi - 1. */
static inline struct coll_block coll_parts(const struct coll_reduction *r, void *base, size_t count,
					   int parts, int lo, int hi)
{
	size_t first = coll_part(count, parts, lo);

	return coll_elements(r, base, first, coll_part(count, parts, hi) - first);
}

/*
 * Where n is no power of two: the first 2 (n - p) ranks join in pairs, of which the
 * upper one takes part for both.  Order is kept.
 */
struct coll_fold {
	int ranks;	/* p, those who take part */
	int pairs;
	int rank;	/* mine among them, -1: my neighbour has my data */
};

static inline int coll_fold_real(const struct coll_fold *f, int rank)
{
	return rank < f->pairs ? 2 * rank + 1 : rank + f->pairs;
}

/* acc: my elements, then also my neighbour's; tmp: as many. */
void coll_fold_in(struct coll *k, const struct coll_reduction *r, struct coll_fold *f, void *acc,
		  void *tmp, size_t count);
/* The result goes back to those who did not take part. */
void coll_fold_out(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		   void *acc, size_t count);
/*
 * Recursive halving among those who take part: afterwards part f->rank of f->ranks in
 * acc is reduced.  Commuting operations.
 */
void coll_halve(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		void *acc, void *tmp, size_t count);

/* ---- The MPI calls -------------------------------------------------------------------------- */

/*
 * Define the MPI call NAME.  OURS does the work with `struct comm *c`, or is COLL_NATIVE.
 * PARAMS(COUNT, DISPL, x), ARGS(x): parameters and arguments, x for the communicator.
 */
#define COLL_CALL(NAME, COUNT, DISPL, PARAMS, ARGS, OURS)                                          \
	static ROUTED NAME##_routed PARAMS(COUNT, DISPL, struct comm *c)                           \
	{                                                                                          \
		int rc = OURS;                                                                     \
                                                                                                   \
		if (likely(rc != COLL_NATIVE))                                                     \
			return rc;                                                                 \
		coll_skip(c);                                                                      \
		return native.NAME ARGS(c->handle);                                                \
	}                                                                                          \
	DISPATCH(NAME, PARAMS(COUNT, DISPL, MPI_Comm comm), ARGS)

/* What several calls have in common: those that exchange blocks, those that combine values. */
#define COLL_BLOCKS_PARAMS(COUNT, DISPL, COMM)                                                     \
	(const void *sbuf, COUNT scount, MPI_Datatype stype, void *rbuf, COUNT rcount,             \
	 MPI_Datatype rtype, COMM)
#define COLL_BLOCKS_ARGS(COMM) (sbuf, scount, stype, rbuf, rcount, rtype, COMM)
#define COLL_VALUES_PARAMS(COUNT, DISPL, COMM)                                                     \
	(const void *sbuf, void *rbuf, COUNT count, MPI_Datatype type, MPI_Op op, COMM)
#define COLL_VALUES_ARGS(COMM) (sbuf, rbuf, count, type, op, COMM)

#endif
