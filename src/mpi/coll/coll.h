/*
 * coll.h - collectives of routed communicators, over messages of this layer.
 *
 * The path of a call:  the MPI call at the end of its family's file (arguments that the library
 * must refuse?) -> coll.c (which algorithm?) -> the algorithm -> coll_data.c (its messages) ->
 * send.c, match.c.
 *
 *	barrier.c  bcast.c  allgather.c  alltoall.c
 *	allreduce.c  reduce.c  rooted.c  scan.c
 *	coll_learn.c	costs of algorithms, and what follows; coll_agree.c: the same on all ranks
 *	coll_types.c	which operations the library has for a type
 *	coll_op.c	operations, and how they are applied
 *
 * Rules:
 *  - A collective is executed by this layer on all ranks of a communicator or by the
 *    library on all.  The criteria are the same on all ranks: whether the communicator is
 *    routed (an intercommunicator never is), and --coll.  For a reduction, also whether the
 *    library has the operation for the type; MPI requires both to be the same on all ranks.
 *    Nonblocking and neighbourhood collectives are executed by the library.
 *  - The algorithm is chosen by --coll, else by rules of its files, else by the table of coll.c,
 *    which costs measured on this machine may overrule (coll_learn.h).  The choice depends on n,
 *    on the bytes of the type signature, which MPI requires to be the same on all ranks, and on
 *    costs that all ranks have agreed on.  It never depends on datatypes, whose layouts may differ.
 *  - Messages belong to the communicator's collective record (comm.c), which has a context of its
 *    own.  A message's tag is the number of the collective on that communicator, so that a message
 *    left over from one collective never matches a receive of the next.
 *  - A block of no bytes is not sent: both ends know its size.
 *  - Reductions keep the order of ranks, a0 op a1 op ..., unless the operation commutes.
 *    Every rank gets the same bits.  A call gives the same bits each time: where costs choose
 *    the algorithm, they choose among those that combine in one order (COLL_SAME_BITS).
 *  - Calls with wrong arguments go to the library, which raises its usual error.  Such a call counts
 *    as begun: other ranks may make it with right ones (coll_skip).  After an error, a lost rank's too
 *    (lost.h), the algorithm goes on, so that other ranks do not wait for ever; the
 *    call returns the first error.  The data of a rank with an error may be wrong, so the rank
 *    sends no more of it: an empty message in place of each, and one byte in place of an empty
 *    message (coll_signal).  Either is an error at its receiver, which goes on in the same way.  A
 *    rank whose call succeeds has the right result.  Lack of memory ends the job, since other ranks
 *    would wait for ever.
 *  - After the loss of a rank another rank may have had its own error, and never call the
 *    collective.  From some seconds later on, collectives of that communicator withdraw messages
 *    that have not begun, in place of waiting.  Messages that others send for such a collective
 *    afterwards are received and dropped (lost_watch).
 *
 * Costs.  n: number of ranks.  p: the largest power of two that is not above n.  lg: log2 n rounded
 * up.  a: time of a message of no bytes.  b: time per byte.  g: time to reduce a byte.  m: bytes of
 * the data named below the collective's name.
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	COLL_AUTO,		/* chosen by the table, or by costs */
	COLL_LIBRARY,		/* "native": executed by the MPI library */
	COLL_DISSEMINATION, COLL_BINOMIAL, COLL_SCATTER_RING, COLL_CHAIN, COLL_BRUCK,
	COLL_DOUBLING, COLL_RING, COLL_RING_RAILS, COLL_PAIRWISE, COLL_PAIRWISE_RAILS, COLL_LINEAR,
	COLL_RABENSEIFNER,
	COLL_TABLE,		/* chosen by the table, whatever the costs */
	COLL_MEASURED,		/* chosen by costs, of ranks that share cores, too */
	COLL_ALGORITHMS,
};

/* Conditions of algorithms. */
enum {
	COLL_COMMUTES = 1,	/* the operation */
	COLL_DIVIDES = 2,	/* at least one element for each rank */
	COLL_POWER_OF_TWO = 4,	/* the number of ranks */
	COLL_RAILS = 8,		/* several rails, and a way that may use any of them */
	/*
	 * The operation gives the same bits, but for the payload of a NaN, whatever side each of
	 * its two operands is on.  Doubling and Rabenseifner combine the same elements in the same
	 * order; the ring does among two ranks.
	 */
	COLL_SAME_BITS = 16,
};

enum { COLL_LEARN_ABOVE = 1 << 10 };	/* bytes; costs do not change the choice below */

/* For up to so many ranks and bytes; 0: any number.  The first rule that fits is used. */
struct coll_rule {
	int ranks;
	size_t bytes;
	enum coll_algorithm algorithm;
	short next;		/* the collective's next rule, as `first` */
};

enum { COLL_RULES_MAX = 1024 };

/* Rules of files, which take precedence over the rules of coll.c. */
struct coll_rules {
	int count;
	short first[COLL_COUNT];	/* rule[first - 1]; 0: none */
	struct coll_rule rule[COLL_RULES_MAX];
};

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
/* holds: those of COLL_COMMUTES, COLL_DIVIDES, COLL_RAILS and COLL_SAME_BITS that are true. */
enum coll_algorithm coll_choose(enum coll_id id, int ranks, size_t bytes, unsigned holds);
/* The same; *open: it is the table's choice, which costs may overrule. */
enum coll_algorithm coll_choose_open(enum coll_id id, int ranks, size_t bytes, unsigned holds,
				     bool *open);
/* --coll measured: costs overrule the table even where ranks share cores. */
bool coll_is_measured_anyway(enum coll_id id);
/* The algorithm itself, or the one in its place where its conditions do not hold. */
enum coll_algorithm coll_possible(enum coll_id id, enum coll_algorithm a, int ranks, unsigned holds);
/* For railmpi_coll_used. */
void coll_use(enum coll_algorithm a, size_t bytes);
const char *coll_name(enum coll_id id);
const char *coll_algorithm_name(enum coll_algorithm a);

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
