/*
 * coll.h - collectives of routed communicators, over messages of this layer.
 *
 * The path of a call:  the MPI call at the end of its family's file (does the library
 * have to refuse the arguments?) -> coll.c (which algorithm?) -> the algorithm ->
 * coll_data.c (its messages) -> send.c, match.c.
 *
 *	barrier.c  bcast.c  allgather.c  alltoall.c
 *	allreduce.c  reduce.c  rooted.c  scan.c
 *	coll_types.c	which operations the library has for a type
 *	coll_op.c	operations, and how they are applied
 *
 * Rules:
 *  - A collective is executed by this layer on all ranks of a communicator or by the
 *    library on all.  The criteria are the same on all ranks: whether the communicator is
 *    routed (an intercommunicator never is), and --coll.  For a reduction, also whether the
 *    library has the operation for the type; MPI requires both to be the same on all ranks.
 *    Nonblocking and neighbourhood collectives are executed by the library.
 *  - The algorithm is chosen by --coll, else by rules of its files, else by the table of
 *    coll.c.  The choice depends on n and on the bytes of the type signature, which MPI
 *    requires to be the same on all ranks.  It never depends on datatypes, whose layouts may
 *    differ.
 *  - Messages belong to the communicator's collective record (comm.c), which has a context
 *    of its own.  Their tag is the number of the collective on that communicator, so that a
 *    message left over from one collective never matches a receive of the next.
 *  - A block of no bytes is not sent: both ends know its size.
 *  - Reductions keep the order of ranks, a0 op a1 op ..., unless the operation commutes.
 *    Every rank gets the same bits.
 *  - Calls with wrong arguments go to the library, which raises its usual error.  After an
 *    error, a lost rank's too (lost.h), the algorithm goes on, so that other ranks do not wait
 *    for ever; the call returns the first error.  What a rank has then may be anything, so it
 *    sends no more data: an empty message in place of each, and one byte in place of an empty
 *    message (coll_signal).  Either is an error at its receiver, which goes on in the same way.
 *    So a rank whose call succeeds has the right result.  Without memory the job ends, since
 *    other ranks would wait for ever.
 *  - Where a rank is lost, another may have had its own error, and never call the collective.  So
 *    from some seconds later on, collectives of that communicator do not wait: messages that
 *    have not begun are withdrawn.  What others send for such a collective afterwards is received
 *    and dropped (lost_watch).
 *
 * Costs.  n: number of ranks.  p: the largest power of two that is not above n.  lg: log2 n
 * rounded up.  a: time of a message of no bytes.  b: time per byte.  g: time to reduce a
 * byte.  m: bytes, of what stands below the collective's name.
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
 *					direction; further rails are idle
 *	allgatherv	ring		the same, with the largest block for m/n
 *	alltoall	pairwise	(n - 1) (a + m b)
 *	(m: a block)	bruck		lg (a + n/2 m b), about (lg + 2) n m bytes copied
 *			[Bruck et al. 1997]
 *			linear		a + (n - 1) m b, all messages at once
 *			pairwise-rails	((n - 1)/R + (n - 1) mod R) a + (n - 1) m b: R partners
 *					at a time, each over one of R rails; the remaining
 *					ones one by one, striped
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

#include "mpi/job/layer.h"

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
	COLL_LIBRARY,		/* "native": executed by the MPI library */
	COLL_DISSEMINATION, COLL_BINOMIAL, COLL_SCATTER_RING, COLL_CHAIN, COLL_BRUCK,
	COLL_DOUBLING, COLL_RING, COLL_RING_RAILS, COLL_PAIRWISE, COLL_PAIRWISE_RAILS, COLL_LINEAR,
	COLL_RABENSEIFNER,
	COLL_ALGORITHMS,
};

/* Conditions of algorithms. */
enum {
	COLL_COMMUTES = 1,	/* the operation */
	COLL_DIVIDES = 2,	/* at least one element for each rank */
	COLL_POWER_OF_TWO = 4,	/* the number of ranks */
	COLL_RAILS = 8,		/* several rails, and a way that may use any of them */
};

/* For up to so many ranks and bytes; 0: any number.  The first rule that fits is used. */
struct coll_rule {
	int ranks;
	size_t bytes;
	enum coll_algorithm algorithm;
	short next;		/* of the same collective: as `first` */
};

enum { COLL_RULES_MAX = 1024 };

/* Rules of files, which take precedence over those of coll.c. */
struct coll_rules {
	int count;
	short first[COLL_COUNT];	/* rule[first - 1]; 0: none */
	struct coll_rule rule[COLL_RULES_MAX];
};

/* Add the rules of a file (coll_file.c).  0, or -EINVAL with why: "@FILE: line 3: ...". */
int coll_file_read(const char *path, struct coll_rules *rules, char *why, size_t why_size);
/* Find a collective and one of its candidates by name.  0, or -EINVAL with why. */
int coll_names(const char *collective, const char *algorithm, enum coll_id *id,
	       enum coll_algorithm *a, char *why, size_t why_size);

/*
 * --coll LIST.  The option row's check: 0, or -EINVAL with why.  Files are not read here:
 * world.c reads them and compares their contents among ranks.
 */
int coll_check(const char *text, char *why, size_t why_size);
/* text: accepted by coll_check, or NULL.  0, or -EINVAL with why: an error of a file. */
int coll_set(const char *text, char *why, size_t why_size);
/* A digest of what coll_set has parsed, files included, for comparison among ranks. */
uint64_t coll_digest(void);
/* False: --coll leaves it to the library. */
bool coll_is_ours(enum coll_id id);
/* holds: those of COLL_COMMUTES, COLL_DIVIDES and COLL_RAILS that are true. */
enum coll_algorithm coll_choose(enum coll_id id, int ranks, size_t bytes, unsigned holds);

/* ---- One call (coll_data.c) ----------------------------------------------------------------- */

/* Returned by the implementation of an MPI call: the library is to execute it, for this reason. */
enum {
	COLL_BY_OPTION = -NATIVE_OPTION,	/* --coll */
	COLL_BY_OPERATION = -NATIVE_OPERATION,	/* it does not have it for the type */
	COLL_BY_ARGUMENTS = -NATIVE_ARGUMENTS,	/* it raises its usual error */
};

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
/* The library executes it on this rank, maybe not on others: keeps later tags the same. */
void coll_skip(struct comm *c, int why);
/* Frees the memory of coll_temp.  Returns what the MPI call returns. */
int coll_end(struct coll *k);
void coll_fail(struct coll *k, int mpi_error);
/* Memory until coll_end, aligned to cache lines; never NULL. */
void *coll_temp(struct coll *k, size_t bytes);
/* Before the rails are closed. */
void coll_stop(void);
/* Returns memory, a result of malloc; NULL ends the job. */
void *coll_must(void *memory);

/* ---- Data ----------------------------------------------------------------------------------- */

/* A buffer as MPI describes it: the data of one message. */
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

/*
 * dtype_lookup of a type that the call uses from coll_begin to coll_end, which another thread may
 * free meanwhile.
 */
struct dtype *coll_type(MPI_Datatype handle);
/* Fill *b, outside of layer_enter.  False: the library would refuse the arguments. */
bool coll_block_set(struct coll_block *b, const void *buf, MPI_Count count, MPI_Datatype type);
/* Bytes of a block, wherever they are; `type` is room for the type of such a block. */
struct coll_block coll_range(struct coll_block b, size_t from, size_t bytes, struct dtype *type);
/* MPI_ERR_TRUNCATE if `to` is smaller than `from`. */
void coll_copy(struct coll *k, struct coll_block from, struct coll_block to);

/* One block for each rank. */
struct coll_blocks {
	struct coll_block first;	/* without list: the blocks follow each other */
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

/* `count` blocks from `first` on, as one block.  Only without a list. */
static inline struct coll_block coll_block_range(const struct coll_blocks *b, int first, int count)
{
	struct coll_block some = coll_block_at(b, first);

	some.count *= (size_t)count;
	return some;
}

/* Arrays among a call's arguments: int, or MPI_Count and MPI_Aint (wide). */
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

/* Block i is displs[i] extents behind buf.  Free b->list.  False: the library would refuse it. */
bool coll_blocks_set(struct coll_blocks *b, int n, const void *buf, struct coll_counts a,
		     MPI_Datatype type);
/* Block i has types[i], displs[i] bytes behind buf. */
bool coll_blocks_set_typed(struct coll_blocks *b, int n, const void *buf, struct coll_counts a,
			   const MPI_Datatype types[]);

/* ---- Rails ---------------------------------------------------------------------------------- */

/* Rails that an algorithm may choose from: one if the communicator's way has chosen already. */
int coll_rails(const struct coll *k);
/* The conditions that hold, for coll_choose. */
unsigned coll_rails_hold(const struct coll *k);

/* ---- Messages; one of no bytes is not sent -------------------------------------------------- */

struct coll_message {
	struct req req;
	bool active;
	bool receives;
	bool withdrawn;
};

void coll_isend(struct coll *k, struct coll_message *m, struct coll_block b, int to);
/* If it is large, over this rail alone; rail: below coll_rails. */
void coll_isend_over(struct coll *k, struct coll_message *m, struct coll_block b, int to, int rail);
void coll_irecv(struct coll *k, struct coll_message *m, struct coll_block b, int from);
void coll_wait(struct coll *k, struct coll_message *m);
void coll_wait_all(struct coll *k, struct coll_message m[], int count);
void coll_send(struct coll *k, struct coll_block b, int to);
void coll_recv(struct coll *k, struct coll_block b, int from);
/* Send and receive at once. */
void coll_exchange(struct coll *k, struct coll_block out, int to, struct coll_block in, int from);
/*
 * Pass blocks on along a ring: in step i block own - i comes from the left, and the block of
 * the step before goes to the right.  Receives are posted a step ahead, so that no rendezvous
 * waits for the step's send.  right, left: -1 if there is no neighbour.  `at` returns block i.
 */
void coll_ring(struct coll *k, int right, int left, int own,
	       struct coll_block (*at)(const void *blocks, int i), const void *blocks);
/* Send and receive at once, without data: these messages are sent. */
void coll_signal(struct coll *k, int to, int from);

/* ---- Reductions (coll_op.c) ----------------------------------------------------------------- */

struct coll_reduction {
	MPI_Op op;
	MPI_Datatype handle;
	struct dtype *type;
	bool commutes;
};

/* Outside of layer_enter.  0, or COLL_BY_... */
int coll_reduction_set(struct coll_reduction *r, MPI_Op op, MPI_Datatype type);
/*
 * Has the library this operation, the n-th of up to COLL_OPERATIONS, for the type?  No: also for
 * all types that are not predefined.
 */
enum { COLL_OPERATIONS = 16 };
bool coll_type_has(struct dtype *t, MPI_Datatype handle, MPI_Op op, unsigned n);
/* The conditions that hold, for coll_choose. */
unsigned coll_reduction_holds(const struct coll_reduction *r, size_t count, int ranks);
/*
 * inout = in op inout, element by element.  Outside of layer_enter meanwhile: a user's
 * function may take long, and may take locks.
 */
void coll_apply(struct coll *k, const struct coll_reduction *r, const void *in, void *inout,
		size_t count);
/* to = left op right.  `to` is `right` or overlaps neither. */
void coll_combine(struct coll *k, const struct coll_reduction *r, const void *left, void *right,
		  void *to, size_t count);
/* A buffer for `count` elements in the type's layout, until coll_end. */
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
 * Where n is no power of two: the first 2 (n - p) ranks form pairs, and the upper rank of a
 * pair takes part for both.  The order of ranks is kept.
 */
struct coll_fold {
	int ranks;	/* p: ranks that take part */
	int pairs;
	int rank;	/* this rank's number among them; -1: its neighbour has its data */
};

static inline int coll_fold_real(const struct coll_fold *f, int rank)
{
	return rank < f->pairs ? 2 * rank + 1 : rank + f->pairs;
}

/*
 * mine: this rank's elements, only read unless they are in acc.  acc, tmp: room for as many.
 * Returns where this rank's elements are, combined with its neighbour's: mine or acc.
 */
void *coll_fold_in(struct coll *k, const struct coll_reduction *r, struct coll_fold *f, void *mine,
		   void *acc, void *tmp, size_t count);
/* Send the result to the ranks that did not take part. */
void coll_fold_out(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		   void *acc, size_t count);
/*
 * Recursive halving among the ranks that take part, of what coll_fold_in has returned:
 * afterwards part f->rank of f->ranks in acc is reduced.  Only for operations that commute.
 */
void coll_halve(struct coll *k, const struct coll_reduction *r, const struct coll_fold *f,
		void *mine, void *acc, void *tmp, size_t count);

/* ---- The MPI calls -------------------------------------------------------------------------- */

/*
 * Define the MPI call NAME.  OURS does the work with `struct comm *c`, or is COLL_BY_...
 * PARAMS(COUNT, DISPL, x), ARGS(x): parameters and arguments, x for the communicator.
 */
#define COLL_CALL(NAME, COUNT, DISPL, PARAMS, ARGS, OURS)                                          \
	static ROUTED NAME##_routed PARAMS(COUNT, DISPL, struct comm *c)                           \
	{                                                                                          \
		int rc = OURS;                                                                     \
                                                                                                   \
		if (likely(rc >= 0))                                                               \
			return rc;                                                                 \
		coll_skip(c, rc);                                                                  \
		return native.NAME ARGS(c->handle);                                                \
	}                                                                                          \
	DISPATCH(NAME, PARAMS(COUNT, DISPL, MPI_Comm comm), ARGS)

/* Parameters shared by calls that exchange blocks, and by calls that combine values. */
#define COLL_BLOCKS_PARAMS(COUNT, DISPL, COMM)                                                     \
	(const void *sbuf, COUNT scount, MPI_Datatype stype, void *rbuf, COUNT rcount,             \
	 MPI_Datatype rtype, COMM)
#define COLL_BLOCKS_ARGS(COMM) (sbuf, scount, stype, rbuf, rcount, rtype, COMM)
#define COLL_VALUES_PARAMS(COUNT, DISPL, COMM)                                                     \
	(const void *sbuf, void *rbuf, COUNT count, MPI_Datatype type, MPI_Op op, COMM)
#define COLL_VALUES_ARGS(COMM) (sbuf, rbuf, count, type, op, COMM)

#endif
