/*
 * wait.c - completion: Wait*, Test*, and other calls that take a request.
 *
 * An array may hold requests of this layer and of the library.  The library then gets a copy
 * in which the layer's are replaced by MPI_REQUEST_NULL, which it skips, so that indices stay
 * the same.  While a call waits, layer_poll drives both.
 */
#include "request.h"

#include <stdlib.h>
#include <string.h>

static inline struct req *ours(MPI_Request handle)
{
	return abi_request_ours(handle) ? abi_request_slot(handle) : NULL;
}

static inline bool inactive(const struct req *r)
{
	return r->persistent && !r->active;
}

static MPI_Comm comm_of(const struct req *r)
{
	return r->comm ? r->comm->handle : MPI_COMM_WORLD;
}

/* ---- One request ---------------------------------------------------------------------- */

/* A send that was complete before its call returned: its request never changes, so no lock. */
static inline bool done_send(MPI_Request handle)
{
	return handle == req_done_handle && layer.rails;
}

static inline int done_send_finish(MPI_Request *request, MPI_Status *status)
{
	*request = MPI_REQUEST_NULL;
	if (status != MPI_STATUS_IGNORE) {
		status->MPI_SOURCE = MPI_ANY_SOURCE;
		status->MPI_TAG = MPI_ANY_TAG;
		abi_status_set_count(status, 0, false);
	}
	return MPI_SUCCESS;
}

static __attribute__((noinline)) int wait_one(MPI_Request *request, MPI_Status *status)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	struct req *r;
	int error;

	if (!layer.rails || !(r = ours(*request)))
		return native.Wait(request, status);
	layer_enter();
	if (!r->done)
		layer_wait(r);
	if (unlikely(r->error))
		comm = comm_of(r);
	error = req_finish(r, request, status);
	layer_leave();
	return req_raise(comm, error);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	if (done_send(*request))
		return done_send_finish(request, status);
	return wait_one(request, status);
}
BOTH(Wait);

static __attribute__((noinline)) int test_one(MPI_Request *request, int *flag, MPI_Status *status)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int error = MPI_SUCCESS;
	struct req *r;

	if (!layer.rails || !(r = ours(*request)))
		return native.Test(request, flag, status);
	layer_enter();
	if (!r->done)
		layer_look();
	*flag = r->done;
	if (r->done) {
		if (unlikely(r->error))
			comm = comm_of(r);
		error = req_finish(r, request, status);
	}
	layer_leave();
	return req_raise(comm, error);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	if (done_send(*request)) {
		*flag = 1;
		return done_send_finish(request, status);
	}
	return test_one(request, flag, status);
}
BOTH(Test);

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct req *r;

	if (!layer.rails || !(r = ours(request)))
		return native.Request_get_status(request, flag, status);
	layer_enter();
	if (!r->done)
		layer_look();
	*flag = r->done;
	if (inactive(r))
		req_status_empty(status);
	else if (r->done)
		req_status(r, status);
	layer_leave();
	return MPI_SUCCESS;
}
BOTH(Request_get_status);

int MPI_Request_free(MPI_Request *request)
{
	struct req *r;

	if (!layer.rails || !(r = ours(*request)))
		return native.Request_free(request);
	layer_enter();
	if (r->done)
		req_discard(r);
	else
		r->detached = true;
	*request = MPI_REQUEST_NULL;
	layer_leave();
	return MPI_SUCCESS;
}
BOTH(Request_free);

/*
 * A receive that is still posted is cancelled.  Of a send its completion tells: its receiver
 * may have to be asked, who answers also while it computes (progress.c).  What has begun
 * completes normally.
 */
int MPI_Cancel(MPI_Request *request)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int rc = MPI_SUCCESS;
	struct req *r;

	if (!layer.rails || !(r = ours(*request)))
		return native.Cancel(request);
	layer_enter();
	if (r->kind == REQ_RECV && !r->done && r->posted) {
		match_unpost(r);
		r->cancelled = true;
		r->bytes = 0;
		r->source = MPI_ANY_SOURCE;
		r->tag = MPI_ANY_TAG;
		req_complete(r, MPI_SUCCESS);
	} else if (r->kind == REQ_SEND && !r->done) {
		comm = comm_of(r);
		rc = rail_cancel(&r->op) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
	}
	layer_leave();
	return req_raise(comm, rc);
}
BOTH(Cancel);

/* ---- Arrays ------------------------------------------------------------------------------- */

/* The library's share of an array; copy is NULL when it has none. */
struct share {
	MPI_Request *copy;
	MPI_Request few[64];
	int ours;		/* number of ours, inactive ones included */
};

static int share_open(struct share *s, int count, const MPI_Request requests[])
{
	bool foreign = false;
	int i;

	s->copy = NULL;
	s->ours = 0;
	if (!layer.rails)
		return 0;
	for (i = 0; i < count; i++) {
		if (abi_request_ours(requests[i]))
			s->ours++;
		else
			foreign |= requests[i] != MPI_REQUEST_NULL;
	}
	if (!s->ours || !foreign)
		return 0;
	s->copy = (size_t)count <= sizeof(s->few) / sizeof(s->few[0])
			  ? s->few : malloc((size_t)count * sizeof(*s->copy));
	if (!s->copy)
		return req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	for (i = 0; i < count; i++)
		s->copy[i] = abi_request_ours(requests[i]) ? MPI_REQUEST_NULL : requests[i];
	return 0;
}

/* Persistent handles of the library stay, completed ones became null: hand both back. */
static void share_close(struct share *s, int count, MPI_Request requests[])
{
	int i;

	if (!s->copy)
		return;
	for (i = 0; i < count; i++)
		if (!abi_request_ours(requests[i]))
			requests[i] = s->copy[i];
	if (s->copy != s->few)
		free(s->copy);
}

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
	return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static int all_ours_done(int count, const MPI_Request requests[])
{
	struct req *r;
	int i;

	for (i = 0; i < count; i++)
		if ((r = ours(requests[i])) && !r->done)
			return 0;
	return 1;
}

/* Finish ours in an array of completed requests.  Returns the first error, its communicator too. */
static int finish_all(int count, MPI_Request requests[], MPI_Status *statuses, bool all_ours,
		      MPI_Comm *comm)
{
	int i, error, first = MPI_SUCCESS;
	struct req *r;

	for (i = 0; i < count; i++) {
		MPI_Status *status = status_at(statuses, i);

		r = ours(requests[i]);
		if (!r) {
			if (all_ours)	/* null handles: the library was not asked */
				req_status_empty(status);
			continue;
		}
		if (unlikely(r->error) && !first)
			*comm = comm_of(r);
		error = req_finish(r, &requests[i], status);
		if (status != MPI_STATUS_IGNORE)
			status->MPI_ERROR = error;
		first = first ? first : error;
	}
	return first;
}

/* Statuses of the library's requests hold MPI_ERROR only if it returned MPI_ERR_IN_STATUS. */
static void clear_native_errors(int count, const MPI_Request requests[], MPI_Status *statuses)
{
	int i;

	if (statuses != MPI_STATUSES_IGNORE)
		for (i = 0; i < count; i++)
			if (!abi_request_ours(requests[i]))
				statuses[i].MPI_ERROR = MPI_SUCCESS;
}

static __attribute__((noinline)) int waitall(int count, MPI_Request requests[],
					     MPI_Status statuses[])
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int i, error, rc = MPI_SUCCESS;
	struct share s;
	struct req *r;

	if (share_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	layer_enter();
	for (i = 0; i < count; i++)
		if ((r = ours(requests[i])) && !r->done)
			layer_wait(r);
	layer_leave();
	if (s.copy) {
		rc = native.Waitall(count, s.copy, statuses);
		if (rc != MPI_ERR_IN_STATUS)
			clear_native_errors(count, requests, statuses);
	}
	layer_enter();
	error = finish_all(count, requests, statuses, !s.copy, &comm);
	share_close(&s, count, requests);
	layer_leave();
	if (likely(!error))
		return rc;
	return req_raise(comm, statuses == MPI_STATUSES_IGNORE ? error : MPI_ERR_IN_STATUS);
}

/* Split, because the library's requests must cost nothing; see p2p.c. */
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	int i;

	for (i = 0; layer.rails && i < count; i++)
		if (abi_request_ours(requests[i]))
			return waitall(count, requests, statuses);
	return native.Waitall(count, requests, statuses);
}
BOTH(Waitall);

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int error = MPI_SUCCESS, rc = MPI_SUCCESS;
	struct share s;

	if (share_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours)
		return native.Testall(count, requests, flag, statuses);
	layer_enter();
	*flag = all_ours_done(count, requests);
	/* Also where none of ours is left: what the library's wait for may wait for us. */
	if (!*flag || s.copy) {
		layer_look();
		*flag = all_ours_done(count, requests);
	}
	/* Ours first: the library's complete, and free theirs, as soon as it says so. */
	if (*flag && s.copy) {
		layer_leave();
		rc = native.Testall(count, s.copy, flag, statuses);
		if (*flag && rc != MPI_ERR_IN_STATUS)
			clear_native_errors(count, requests, statuses);
		layer_enter();
	}
	if (*flag)
		error = finish_all(count, requests, statuses, !s.copy, &comm);
	share_close(&s, count, requests);
	layer_leave();
	if (likely(!error))
		return rc;
	return req_raise(comm, statuses == MPI_STATUSES_IGNORE ? error : MPI_ERR_IN_STATUS);
}
BOTH(Testall);

/*
 * One request that is complete: finish it, *index says which.  True also when
 * no request is active at all (*index = MPI_UNDEFINED).  Where the library has
 * a share, it is asked once.
 */
static bool any_once(int count, MPI_Request requests[], struct share *s, int *index,
		     MPI_Status *status, int *error, MPI_Comm *comm)
{
	bool active = false;
	struct req *r;
	int i, flag;

	for (i = 0; i < count; i++) {
		r = ours(requests[i]);
		if (!r || inactive(r))
			continue;
		active = true;
		if (!r->done)
			continue;
		*index = i;
		*comm = comm_of(r);
		*error = req_finish(r, &requests[i], status);
		return true;
	}
	if (s->copy) {
		/* Not inside: a generalized request asks its program, which may call MPI. */
		layer_leave();
		*error = native.Testany(count, s->copy, index, &flag, status);
		layer_enter();
		if (*error != MPI_SUCCESS || (flag && *index != MPI_UNDEFINED))
			return true;
		active |= !flag;	/* flag without an index: the library has none active */
	}
	if (active)
		return false;
	*index = MPI_UNDEFINED;
	req_status_empty(status);
	return true;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	MPI_Comm comm = MPI_COMM_NULL;
	int error = MPI_SUCCESS;
	unsigned idle = 0;
	struct share s;

	if (share_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours)
		return native.Waitany(count, requests, index, status);
	layer_enter();
	while (!any_once(count, requests, &s, index, status, &error, &comm))
		layer_poll(&idle);
	share_close(&s, count, requests);
	layer_leave();
	return comm == MPI_COMM_NULL ? error : req_raise(comm, error);
}
BOTH(Waitany);

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	MPI_Comm comm = MPI_COMM_NULL;
	int error = MPI_SUCCESS;
	struct share s;

	if (share_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours)
		return native.Testany(count, requests, index, flag, status);
	layer_enter();
	*flag = any_once(count, requests, &s, index, status, &error, &comm);
	if (!*flag) {
		layer_look();
		*flag = any_once(count, requests, &s, index, status, &error, &comm);
	}
	if (!*flag)
		*index = MPI_UNDEFINED;
	share_close(&s, count, requests);
	layer_leave();
	return comm == MPI_COMM_NULL ? error : req_raise(comm, error);
}
BOTH(Testany);

/* All that are complete.  *out = MPI_UNDEFINED when none is active. */
static int some_once(int count, MPI_Request requests[], struct share *s, int *out, int indices[],
		     MPI_Status statuses[], MPI_Comm *comm)
{
	int i, n = 0, error, first = MPI_SUCCESS;
	bool active = false;
	struct req *r;

	if (s->copy) {
		layer_leave();		/* as in any_once */
		first = native.Testsome(count, s->copy, &n, indices, statuses);
		layer_enter();
		active = n != MPI_UNDEFINED;
		if (n == MPI_UNDEFINED)
			n = 0;
		if (first != MPI_ERR_IN_STATUS && statuses != MPI_STATUSES_IGNORE)
			for (i = 0; i < n; i++)
				statuses[i].MPI_ERROR = MPI_SUCCESS;
	}
	for (i = 0; i < count; i++) {
		MPI_Status *status;

		r = ours(requests[i]);
		if (!r || inactive(r))
			continue;
		active = true;
		if (!r->done)
			continue;
		status = status_at(statuses, n);
		*comm = comm_of(r);
		error = req_finish(r, &requests[i], status);
		if (status != MPI_STATUS_IGNORE)
			status->MPI_ERROR = error;
		if (error)
			first = statuses == MPI_STATUSES_IGNORE ? error : MPI_ERR_IN_STATUS;
		indices[n++] = i;
	}
	*out = active ? n : MPI_UNDEFINED;
	return first;
}

int MPI_Testsome(int count, MPI_Request requests[], int *out, int indices[], MPI_Status statuses[])
{
	MPI_Comm comm = MPI_COMM_WORLD;
	struct share s;
	int error;

	if (share_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours)
		return native.Testsome(count, requests, out, indices, statuses);
	layer_enter();
	layer_look();
	error = some_once(count, requests, &s, out, indices, statuses, &comm);
	share_close(&s, count, requests);
	layer_leave();
	return req_raise(comm, error);
}
BOTH(Testsome);

int MPI_Waitsome(int count, MPI_Request requests[], int *out, int indices[], MPI_Status statuses[])
{
	MPI_Comm comm = MPI_COMM_WORLD;
	unsigned idle = 0;
	struct share s;
	int error;

	if (share_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours)
		return native.Waitsome(count, requests, out, indices, statuses);
	layer_enter();
	while (!(error = some_once(count, requests, &s, out, indices, statuses, &comm)) && *out == 0)
		layer_poll(&idle);
	share_close(&s, count, requests);
	layer_leave();
	return req_raise(comm, error);
}
BOTH(Waitsome);
