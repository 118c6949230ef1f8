/*
 * wait.c - completion of one request: Wait, Test, Request_get_status, Request_free, Cancel.
 * wait_many.c has the calls for arrays.
 */
#include "mpi/abi/abi.h"
#include "mpi/abi/native.h"
#include "mpi/job/catch_up.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/request.h"
#include "util/compiler.h"

/* ---- What several threads do to one handle; see request.h ------------------------------------ */

/*
 * The handle that the library gets.  Another thread may post a request of the layer in a variable
 * that had none, so the library gets *handle, which was read from it, in place of the variable.
 */
static inline MPI_Request *native_at(MPI_Request *request, MPI_Request *handle)
{
	return layer.multiple && *handle == MPI_REQUEST_NULL ? handle : request;
}

/* Another thread was first. */
static __attribute__((noinline)) int ended_elsewhere(MPI_Request *request, MPI_Request handle,
						     MPI_Status *status)
{
	req_handle_ended(request, handle);
	req_status_empty(status);
	return MPI_SUCCESS;
}

/* Poll until r is done.  False: another thread has ended it. */
static inline __attribute__((always_inline)) bool wait_for(struct req *r, const bool shared)
{
	const uint64_t serial = r->serial;
	unsigned idle = 0;

	while (!r->done) {
		layer_poll(&idle);
		if (shared && r->serial != serial)
			return false;
	}
	return true;
}

/* The same, once. */
static inline __attribute__((always_inline)) bool look_for(struct req *r, const bool shared)
{
	const uint64_t serial = r->serial;

	if (!r->done)
		layer_look();
	return !shared || r->serial == serial;
}

/* ---- A send that was complete before its call returned ---------------------------------------- */

/* The request of complete sends never changes, so no lock is needed. */
static inline bool done_send(MPI_Request handle)
{
	return handle == req_done_handle && layer.rails;
}

/* Another thread may have completed it, too, and posted the next. */
static __attribute__((noinline)) void done_send_end_shared(MPI_Request *request)
{
	MPI_Request expected = req_done_handle;

	__atomic_compare_exchange_n(request, &expected, MPI_REQUEST_NULL, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

static inline int done_send_finish(MPI_Request *request, MPI_Status *status)
{
	if (unlikely(layer.multiple))
		done_send_end_shared(request);
	else
		*request = MPI_REQUEST_NULL;
	if (status != MPI_STATUS_IGNORE) {
		status->MPI_SOURCE = MPI_ANY_SOURCE;
		status->MPI_TAG = MPI_ANY_TAG;
		abi_status_set_count(status, 0, false);
	}
	return MPI_SUCCESS;
}

/* ---- Wait, Test ------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) int wait_in(MPI_Request *request, MPI_Request handle,
							 MPI_Status *status, const bool shared)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	struct req *r;
	int error;

	layer_enter();
	r = req_now(request, &handle, shared);
	if ((shared && !r) || !wait_for(r, shared)) {
		error = ended_elsewhere(request, handle, status);
	} else {
		if (unlikely(r->error))
			comm = req_comm(r);
		error = req_finish(r, request, handle, status, shared);
	}
	layer_leave();
	return req_raise(comm, error);
}

static __attribute__((noinline)) int wait_shared(MPI_Request *request, MPI_Status *status)
{
	return wait_in(request, MPI_REQUEST_NULL, status, true);
}

static __attribute__((noinline)) int wait_native(MPI_Request *request, MPI_Status *status,
						 MPI_Request handle)
{
	return native.Wait(native_at(request, &handle), status);
}

static __attribute__((noinline)) int wait_one(MPI_Request *request, MPI_Status *status)
{
	const MPI_Request handle = req_handle(request);

	if (!layer.rails)
		return native.Wait(request, status);
	if (!abi_request_ours(handle))
		return wait_native(request, status, handle);
	if (unlikely(layer.multiple))
		return wait_shared(request, status);
	return wait_in(request, handle, status, false);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	if (done_send(req_handle(request)))
		return done_send_finish(request, status);
	return wait_one(request, status);
}
BOTH(Wait);

static inline __attribute__((always_inline)) int test_in(MPI_Request *request, MPI_Request handle,
							 int *flag, MPI_Status *status,
							 const bool shared)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int error = MPI_SUCCESS;
	struct req *r;

	layer_enter();
	r = req_now(request, &handle, shared);
	if ((shared && !r) || !look_for(r, shared)) {
		*flag = 1;
		error = ended_elsewhere(request, handle, status);
	} else {
		*flag = r->done;
		if (r->done) {
			if (unlikely(r->error))
				comm = req_comm(r);
			error = req_finish(r, request, handle, status, shared);
		}
	}
	layer_leave();
	return req_raise(comm, error);
}

static __attribute__((noinline)) int test_shared(MPI_Request *request, int *flag,
						 MPI_Status *status)
{
	return test_in(request, MPI_REQUEST_NULL, flag, status, true);
}

static __attribute__((noinline)) int test_native(MPI_Request *request, int *flag,
						 MPI_Status *status, MPI_Request handle)
{
	layer_catch_up();
	return native.Test(native_at(request, &handle), flag, status);
}

static __attribute__((noinline)) int test_one(MPI_Request *request, int *flag, MPI_Status *status)
{
	const MPI_Request handle = req_handle(request);

	if (!layer.rails)
		return native.Test(request, flag, status);
	if (!abi_request_ours(handle))
		return test_native(request, flag, status, handle);
	if (unlikely(layer.multiple))
		return test_shared(request, flag, status);
	return test_in(request, handle, flag, status, false);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	if (done_send(req_handle(request))) {
		*flag = 1;
		return done_send_finish(request, status);
	}
	return test_one(request, flag, status);
}
BOTH(Test);

/* ---- Other calls -------------------------------------------------------------------------------- */

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct req *r;

	if (!layer.rails || !abi_request_ours(request)) {
		layer_catch_up();
		return native.Request_get_status(request, flag, status);
	}
	layer_enter();
	r = req_now(&request, &request, layer.multiple);
	if (!r || !look_for(r, layer.multiple)) {
		*flag = 1;
		req_status_empty(status);
	} else if ((*flag = r->done)) {
		if (r->persistent && !r->active)
			req_status_empty(status);
		else
			req_status(r, status);
	}
	layer_leave();
	return MPI_SUCCESS;
}
BOTH(Request_get_status);

int MPI_Request_free(MPI_Request *request)
{
	MPI_Request handle = req_handle(request);
	struct req *r;

	if (!layer.rails || !abi_request_ours(handle))
		return native.Request_free(native_at(request, &handle));
	layer_enter();
	r = req_now(request, &handle, layer.multiple);
	if (r) {
		if (r->done)
			req_discard(r);
		else
			r->detached = true;
		req_handle_end(request, handle, layer.multiple);
	} else {
		req_handle_ended(request, handle);
	}
	layer_leave();
	return MPI_SUCCESS;
}
BOTH(Request_free);

/*
 * A receive that is still posted is cancelled.  A send's completion tells whether it was: the
 * receiver may have to be asked, and answers also while it computes (progress.c).  An operation
 * that has begun completes normally.
 */
int MPI_Cancel(MPI_Request *request)
{
	MPI_Request handle = req_handle(request);
	MPI_Comm comm = MPI_COMM_WORLD;
	int rc = MPI_SUCCESS;
	struct req *r;

	if (!layer.rails || !abi_request_ours(handle))
		return native.Cancel(native_at(request, &handle));
	layer_enter();
	r = req_now(request, &handle, layer.multiple);
	if (!r || r->done) {
		;		/* too late */
	} else if (r->kind == REQ_RECV && r->posted) {
		match_unpost(r);
		r->cancelled = true;
		r->bytes = 0;
		r->source = MPI_ANY_SOURCE;
		r->tag = MPI_ANY_TAG;
		req_complete(r, MPI_SUCCESS);
	} else if (r->kind == REQ_SEND) {
		comm = req_comm(r);
		rc = rail_cancel(&r->op) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
	}
	layer_leave();
	return req_raise(comm, rc);
}
BOTH(Cancel);
