/*
 * comm.h - communicators: the record of each routed one.
 *
 * Whether a message goes over rails depends on its communicator only, never on anything that can
 * differ between two ranks.
 */
#ifndef RAILMPI_COMM_H
#define RAILMPI_COMM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/abi/native.h"
#include "mpi/p2p/queue.h"
#include "rail/rail.h"

#pragma GCC visibility push(hidden)

/* The queues of one source rank of a communicator. */
struct source {
	struct queue_link posted;	/* receives from this source by name, in post order */
	struct queue_link unexpected;	/* unmatched messages, in order of arrival */
};

/* The buffer that the program has attached, if any, and the room of buffered sends in it. */
struct attached {
	bool here;
	size_t capacity, used;
	unsigned sends;			/* in flight */
};

/* The bit of a context of collectives.  World ranks, in the upper half, do not reach it. */
#define COMM_COLLECTIVE_CONTEXT (UINT64_C(1) << 63)
/* The bits of a collective's number in its tags: with any sign bit, none of them is MPI_ANY_TAG. */
#define COMM_CALLS (INT_MAX >> 1)

struct comm {
	MPI_Comm handle;
	uint64_t context;		/* the same on all ranks; see comm.c */
	struct rail_way way;
	uint64_t eager;			/* rail_eager_limit of the way */
	int rank, size;
	int refs;			/* the communicator itself, and each operation on it */
	struct rail_peer **peer;	/* indexed by rank */
	struct source *source;		/* indexed by rank */
	struct queue_link posted_any;	/* receives from MPI_ANY_SOURCE, in post order */
	struct queue_link unexpected_any;	/* every unmatched message, in order of arrival */
	uint64_t stamp;			/* next post-order stamp */
	int probed;			/* see lost_probed; MPI_PROC_NULL: none since the last watch */
	int lost;			/* the error of a rank that is lost; 0: none is */
	uint64_t lost_until_ns;		/* then: collectives wait for others until here */
	struct comm *next;		/* same hash bucket */
	struct attached attached;	/* before that of the process: MPI_Comm_attach_buffer */
	/*
	 * Messages of collectives have a record of their own with a context of its own, so that
	 * they never match receives of the program (coll.h).  NULL in such a record.
	 */
	struct comm *collective;
	struct coll_learned *learned;	/* in such a record: see coll_agree.h; NULL: nothing yet */
	struct coll_kept *kept;		/* ... the job's races of its kind: see coll_job.h; NULL: none */
	unsigned collectives;		/* in such a record: collectives begun */
	unsigned withdrawn;		/* ... the number after the last one that was withdrawn */
};

/* Is a tag of collectives that of a call before this number?  Numbers wrap. */
static inline bool comm_call_is_before(unsigned number, int tag)
{
	return ((number - 1 - (unsigned)tag) & COMM_CALLS) <= COMM_CALLS / 2;
}

/* Collective over `handle`: route it in this way.  0 or -errno, the same on all its ranks. */
int comm_adopt(MPI_Comm handle, const struct rail_way *way);
int comm_start(void);
void comm_stop(void);
/* "stripe,threshold=16K" -> way; *native when it says native.  0 or -EINVAL with why. */
int comm_parse_way(const char *text, bool *native_way, struct rail_way *way, char *why,
		   size_t why_size);

#pragma GCC visibility pop

#endif
