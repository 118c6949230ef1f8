/*
 * request.h - requests: taking one from the pool, its completion, its end.
 *
 * A request is cleared as far as its kind does not set it, when it is taken.  A send that is
 * complete before its call returns takes none: all of them share one, which is never freed.
 *
 * MPI gives a request to one thread at a time.  Programs are less strict (two threads test one
 * request, or one tests it while another has completed it and posts the next in the same
 * variable), and libraries that look at a handle inside their lock endure that.  So does this
 * layer, under MPI_THREAD_MULTIPLE:
 *  - A handle counts as read inside layer_enter (req_now), and its variable is set there, if it
 *    still has that handle (req_handle_end).
 *  - layer_poll and layer_look may let another thread in, which may end the operation: the
 *    slot's `serial` differs afterwards, whatever the slot is used for then.
 *  - The thread that comes second sees what MPI_REQUEST_NULL shows: complete, an empty status.
 */
#ifndef RAILMPI_REQUEST_H
#define RAILMPI_REQUEST_H

#include "mpi/job/layer.h"
#include "mpi/p2p/pool.h"

#pragma GCC visibility push(hidden)

/* ---- The pool (request.c) -------------------------------------------------------------- */

extern struct req *req_free_list;
struct req *req_grow(void);		/* NULL: out of memory */

/* The first free one, r.  The caller sets all that its operation does not. */
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

/* The slot; its references have been dropped. */
static inline void req_free(struct req *r)
{
	r->kind = REQ_FREE;
	r->serial++;
	r->next_free = req_free_list;
	req_free_list = r;
}

/* Of copies that requests have (r->packed); those that go at once, as eager messages, are reused. */
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
 * Their request, and its handle.  Any number of handles of the program may be this one at the
 * same time: it is complete, has no error, and cannot be cancelled any more.
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

/* Of req_complete: what few requests have. */
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
 * NULL: it has ended, or is not the layer's.
 */
struct req *req_again(const MPI_Request *at, MPI_Request *handle);

/* The same for a handle of the layer's that has just been read.  shared: layer.multiple. */
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

/* Of req_finish: a persistent one stays. */
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
