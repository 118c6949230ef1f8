/* coll_data.h - one call of a collective: its blocks, its memory, its messages. */
#ifndef RAILMPI_COLL_DATA_H
#define RAILMPI_COLL_DATA_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/p2p/pool.h"
#include "mpi/p2p/request.h"
#include "mpi/type/dtype.h"
#include "mpi/watch/call_count.h"

/* Returned by the implementation of an MPI call: the library is to execute it, for this reason. */
enum {
	COLL_BY_OPTION = -NATIVE_OPTION,	/* --coll */
	COLL_BY_OPERATION = -NATIVE_OPERATION,	/* the library lacks it for the type */
	COLL_BY_ARGUMENTS = -NATIVE_ARGUMENTS,	/* the library raises its usual error */
};

enum { COLL_TEMPS = 8 };

struct coll_race;

struct coll {
	struct comm *comm;		/* the record of collectives */
	int rank, size;
	int tag;
	int error;			/* the first, an MPI error class */
	bool exact;			/* messages shorter than expected are errors */
	struct coll_race *race;		/* the call's time counts for it (coll_agree.h); or NULL */
	uint64_t began_ns;		/* then */
	int temps;
	struct { void *block; struct pool *pool; } temp[COLL_TEMPS];
};

/*
 * The tag of a call's agreement among ranks: messages of the algorithm that go over another rail may
 * overtake those of the agreement, or be overtaken.
 */
static inline int coll_agree_tag(int tag)
{
	return tag | INT_MIN;
}
_Static_assert((COMM_CALLS | INT_MIN) != MPI_ANY_TAG, "the last number has a tag of its own");

/* Begin a call; all up to coll_end is inside layer_enter. */
void coll_begin(struct coll *k, struct comm *c);
/*
 * The library executes it on this rank, maybe not on others: keeps later tags the same.  Arguments that
 * it refuses may be right on other ranks, which would wait for this one where they meet (coll_agree.c);
 * they are told.
 */
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

/* Blocks, one for each rank. */
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

/* Block i is at displs[i] extents from buf.  Free b->list.  False: the library would refuse it. */
bool coll_blocks_set(struct coll_blocks *b, int n, const void *buf, struct coll_counts a,
		     MPI_Datatype type);
/* Block i has types[i] and is at displs[i] bytes from buf. */
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
	size_t expected;		/* bytes that it receives */
	bool withdrawn;
};

void coll_isend(struct coll *k, struct coll_message *m, struct coll_block b, int to);
/* The same; a large message goes over this rail alone (rail: below coll_rails). */
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

#endif
