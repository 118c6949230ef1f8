/*
 * request.h - requests: taking one from the pool, its completion, its end.
 *
 * A request is cleared as far as its kind does not set it, when it is taken.  A send that is
 * complete before its call returns takes none: all of them share one, which is never freed.
 *
 * MPI gives a request to one thread at a time.  Programs are less strict (two threads test one
 * request, or one tests it while another has completed it and posts the next in the same variable),
 * and libraries that look at a handle inside their lock endure that.  This layer endures that,
 * too, under MPI_THREAD_MULTIPLE:
 *  - A handle counts as read inside layer_enter (req_now), and its variable is set there, if it
 *    still has that handle (req_handle_end).
 *  - layer_poll and layer_look may let another thread in, which may end the operation: the
 *    slot's `serial` differs afterwards, whatever the slot is used for then.
 *  - The thread that comes second sees what MPI_REQUEST_NULL shows: complete, an empty status.
 */
#ifndef RAILMPI_REQUEST_H
#define RAILMPI_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/pool.h"
#include "mpi/p2p/queue.h"
#include "mpi/type/dtype.h"
#include "rail/rail.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

struct unexpected;
struct persistent;

enum req_kind { REQ_FREE, REQ_SEND, REQ_RECV, REQ_MESSAGE };
/* A ready send is a standard send. */
enum req_mode { MODE_STANDARD, MODE_SYNC, MODE_BUFFERED };

struct req {
	struct rail_op op;		/* first: op's address is the request's */
	struct queue_link link;		/* in a posted queue */
	struct comm *comm;		/* holds a reference while set */
	struct dtype *type;		/* holds a reference while set: buf is not in one piece */
	void *buf;
	const void *frame;		/* for a receive: the stack of its caller */
	void *packed;			/* a copy: not contiguous, or not registrable */
	size_t bytes;			/* capacity as posted; the message's length when done */
	uint64_t stamp;
	int source, tag;		/* posted values; the message's when done */
	int error;			/* MPI error code when done */
	unsigned char kind;		/* enum req_kind */
	bool done;
	bool posted;			/* in a posted queue */
	bool cancelled;
	bool detached;			/* freed when done; a part of `whole`, if set */
	bool active;			/* persistent: started and not yet waited for */
	bool scattered;			/* a receive: slices went into buf, not into `packed` */
	unsigned char parts;		/* number of parts that are not complete */
	struct persistent *persistent;	/* how to start it again, or NULL */
	struct req *whole;		/* the request that this one is a part of; isendrecv.c */
	union {
		struct unexpected *unexpected;	/* REQ_MESSAGE: what MPI_Mprobe took out */
		struct req *other;	/* the other part, as long as both go on */
	};
	struct req *next_free;
	uint64_t serial;		/* operations that have ended in this slot; see above */
};
_Static_assert(sizeof(struct req) <= SLAB_FORTRAN, "a request must fit its slot");

struct message_args {
	void *buf;
	size_t count;
	struct dtype *type;
	int rank;	/* destination or source; MPI_ANY_SOURCE allowed for receives */
	int tag;
};

/* The arguments of MPI_Send_init and its like. */
struct persistent {
	struct comm *comm;		/* holds a reference */
	struct message_args args;	/* args.type holds a reference */
	enum req_kind kind;
	enum req_mode mode;
};

int req_start(void);
void req_stop(void);
void req_discard(struct req *r);		/* release references and slot */
struct req *req_pending(const struct comm *c);	/* a request that is not complete, or NULL */
/*
 * librail's on_part: copy bytes of r->buf, by r->type or in one piece, to or from librail's memory.
 */
void req_on_part(void *user, struct rail_op *op, uint64_t from, void *part, size_t bytes,
		 bool gather);
void req_part_done(struct req *part);		/* part is complete: update its whole */
void req_status_empty(MPI_Status *status);
void req_status_proc_null(MPI_Status *status);
/* Raise the error of a completed operation on the communicator that MPI names; returns it. */
int req_raise_error(MPI_Comm handle, int error);

/* The communicator that errors of r are raised on. */
static inline MPI_Comm req_comm(const struct req *r)
{
	return r->comm ? r->comm->handle : MPI_COMM_WORLD;
}

static inline int req_raise(MPI_Comm handle, int error)
{
	return likely(error == MPI_SUCCESS) ? error : req_raise_error(handle, error);
}

/* ---- The pool (request.c) -------------------------------------------------------------- */

extern struct req *req_free_list;
struct req *req_grow(void);		/* NULL: out of memory */

/* Take r, the first free one.  The caller sets the remaining fields. */
static inline void req_take(struct req *r)
{
	req_free_list = r->next_free;
	r->active = false;
	r->parts = 0;
	r->persistent = NULL;
	r->whole = NULL;
}

/* NULL: out of memory. */
static inline struct req *req_alloc(enum req_kind kind)
{
	struct req *r = req_free_list;

	if (unlikely(!r)) {
		r = req_grow();
		if (!r)
			return NULL;
	}
	req_take(r);
	r->comm = NULL;
	r->type = NULL;
	r->packed = NULL;
	r->bytes = 0;
	r->error = MPI_SUCCESS;
	r->kind = (unsigned char)kind;
	r->done = r->posted = r->cancelled = r->detached = false;
	return r;
}

/* Free the slot, after its references have been dropped. */
static inline void req_free(struct req *r)
{
	r->kind = REQ_FREE;
	r->serial++;
	r->next_free = req_free_list;
	req_free_list = r;
}

/*
 * The pool of requests' copies (r->packed).  A copy that is free at once, an eager message's, is
 * reused.
 */
extern struct pool req_copies;

void req_copy_failed(size_t bytes);	/* says so */

/* NULL: out of memory. */
static inline void *req_copy_get(struct req *r, size_t bytes)
{
	r->packed = pool_get(&req_copies, bytes);
	if (unlikely(!r->packed))
		req_copy_failed(bytes);
	return r->packed;
}

static inline void req_copy_put(struct req *r)
{
	if (r->packed)
		pool_put(&req_copies, r->packed);
	r->packed = NULL;
}

/* ---- Sends that are complete at once ----------------------------------------------------- */

/*
 * The request of sends that are complete at once, and its handle.  Any number of the program's
 * handles may be this one at the same time: the request is complete, has no error, and cannot be
 * cancelled any more.
 */
extern struct req *req_done_send;
extern MPI_Request req_done_handle;

/* A request for the next send, taken before it is known whether that needs one; or NULL. */
extern struct req *req_next_send;

static inline struct req *req_for_send(void)
{
	if (unlikely(!req_next_send))
		req_next_send = req_alloc(REQ_SEND);
	return req_next_send;
}

/* ---- Completion ------------------------------------------------------------------------- */

/* The rest of req_complete, which few requests need. */
void req_complete_rare(struct req *r);

/* Mark it done; waiters poll, so there is no wake-up.  Frees a detached one. */
static inline void req_complete(struct req *r, int mpi_error)
{
	r->error = mpi_error;
	r->done = true;
	layer_pending_add(-1);
	if (unlikely(r->packed || r->type || r->detached))
		req_complete_rare(r);
}

/* After completion: drop the operation's references.  Also for requests on the stack. */
static inline void req_retire(struct req *r)
{
	if (unlikely(--r->comm->refs == 0))
		comm_unref_last(r->comm);
}

/* ---- Handles ------------------------------------------------------------------------------ */

/* Another thread may write it. */
static inline MPI_Request req_handle(const MPI_Request *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline void req_handle_set(MPI_Request *at, MPI_Request handle)
{
	__atomic_store_n(at, handle, __ATOMIC_RELAXED);
}

/* NULL: the library's. */
static inline struct req *req_ours(MPI_Request handle)
{
	return abi_request_ours(handle) ? abi_request_slot(handle) : NULL;
}

/*
 * Inside layer_enter, if several threads may call: the request in *at, which has become *handle.
 * NULL: the request has ended, or is the library's.
 */
struct req *req_again(const MPI_Request *at, MPI_Request *handle);

/* The same for a handle of the layer that has just been read.  shared: layer.multiple. */
static inline __attribute__((always_inline)) struct req *
req_now(const MPI_Request *at, MPI_Request *handle, const bool shared)
{
	return shared ? req_again(at, handle) : abi_request_slot(*handle);
}

/* The operation of this handle has ended. */
static inline void req_handle_end(MPI_Request *at, MPI_Request handle, const bool shared)
{
	if (!shared || req_handle(at) == handle)
		req_handle_set(at, MPI_REQUEST_NULL);
}

/* Another thread has ended it: the handle in *at is useless, unless its slot is in use again. */
void req_handle_ended(MPI_Request *at, MPI_Request handle);

/* ---- The end ------------------------------------------------------------------------------ */

/* MPI_ERROR is the caller's to set: only the calls with many statuses may touch it. */
static inline void req_status(const struct req *r, MPI_Status *status)
{
	const bool sent = r->kind == REQ_SEND;

	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = sent ? MPI_ANY_SOURCE : r->source;
	status->MPI_TAG = sent ? MPI_ANY_TAG : r->tag;
	abi_status_set_count(status, sent ? 0 : r->bytes, r->cancelled);
}

/* req_finish of a persistent request, which stays. */
int req_finish_persistent(struct req *r, MPI_Status *status);

/*
 * Fill status and, unless persistent, free the request and end its handle, which is in *at.
 * Returns the request's error.
 */
static inline __attribute__((always_inline)) int
req_finish(struct req *r, MPI_Request *at, MPI_Request handle, MPI_Status *status,
	   const bool shared)
{
	int error = r->error;

	if (unlikely(r->persistent))
		return req_finish_persistent(r, status);
	req_status(r, status);
	req_handle_end(at, handle, shared);
	if (r == req_done_send)
		return error;
	if (likely(r->comm))
		req_retire(r);
	req_free(r);
	return error;
}

#pragma GCC visibility pop

#endif
