/*
 * wait_many.c - completion of the requests of an array: Wait* and Test* of all, any, some.
 *
 * An array may hold requests of this layer and of the library.  The library then gets a copy
 * in which the layer's are replaced by MPI_REQUEST_NULL, which it skips, so that indices stay
 * the same.  While a call waits, layer_poll drives both.
 *
 * Under MPI_THREAD_MULTIPLE a call keeps to the handles that it has found: another thread may
 * complete some of them meanwhile (request.h), and post others in the array.
 */
#include <stdlib.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/native.h"
#include "mpi/comm/lost.h"
#include "mpi/job/catch_up.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/request.h"
#include "util/compiler.h"

static inline bool inactive(const struct req *r)
{
	return r->persistent && !r->active;
}

/* ---- What a call has found -------------------------------------------------------------------- */

enum { FEW = 64 };

struct found {
	MPI_Request handle;
	uint64_t serial;	/* the slot's, for a request of the layer; request.h */
};

static const uint64_t serial_of_none = UINT64_MAX;

struct split_requests {
	MPI_Request *copy;	/* the library's requests; NULL when it has none */
	struct found *found;	/* if several threads may call; else NULL: what the array holds */
	int ours;		/* number of ours, inactive ones included */
	void *memory;		/* room of both, if few is too small */
	MPI_Request few[FEW];
	struct found few_found[FEW];
};

static inline bool is_ours_at(const struct split_requests *s, const MPI_Request requests[], int i)
{
	return abi_request_ours(unlikely(s->found) ? s->found[i].handle : requests[i]);
}

/* Inside layer_enter: request i, if it is the layer's and no other thread has ended it. */
static inline struct req *req_at(const struct split_requests *s,
				 const MPI_Request requests[], int i)
{
	struct req *r;

	if (likely(!s->found))
		return req_ours(requests[i]);
	r = req_ours(s->found[i].handle);
	return r && r->serial == s->found[i].serial ? r : NULL;
}

static inline int finish_at(const struct split_requests *s, MPI_Request requests[], int i,
			    struct req *r, MPI_Status *status)
{
	if (likely(!s->found))
		return req_finish(r, &requests[i], requests[i], status, false);
	return req_finish(r, &requests[i], s->found[i].handle, status, true);
}

/*
 * Allocate arrays that the library and, if shared, other threads make necessary; false: out of
 * memory.
 */
static bool split_alloc(struct split_requests *s, size_t n, bool shared)
{
	s->copy = s->few;
	s->found = shared ? s->few_found : NULL;
	if (n <= FEW)
		return true;
	s->memory = malloc(n * (sizeof(*s->copy) + (shared ? sizeof(*s->found) : 0)));
	if (!s->memory)
		return false;
	s->found = shared ? s->memory : NULL;
	s->copy = shared ? (MPI_Request *)(s->found + n) : s->memory;
	return true;
}

/* Inside layer_enter. */
static struct found found_in(MPI_Request *at)
{
	struct found f = {.serial = serial_of_none};
	const struct req *r = req_again(at, &f.handle);

	if (r)
		f.serial = r->serial;
	return f;
}

/* Inside layer_enter.  True: some requests are the library's. */
static bool split_find(struct split_requests *s, int count, MPI_Request requests[])
{
	bool foreign = false;
	int i;

	for (i = 0; i < count; i++) {
		s->found[i] = found_in(&requests[i]);
		s->copy[i] = is_ours_at(s, requests, i) ? MPI_REQUEST_NULL : s->found[i].handle;
		s->ours += is_ours_at(s, requests, i);
		foreign |= s->copy[i] != MPI_REQUEST_NULL;
	}
	return foreign;
}

/* The library gets a copy of an array without requests of ours if other threads may post in it. */
static int split_open_shared(struct split_requests *s, int count, MPI_Request requests[])
{
	bool wanted = false;
	int i;

	for (i = 0; i < count && !wanted; i++) {
		MPI_Request handle = req_handle(&requests[i]);

		wanted = handle == MPI_REQUEST_NULL || abi_request_ours(handle);
	}
	if (!wanted)
		return 0;
	if (!split_alloc(s, (size_t)count, true))
		return req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	layer_enter();
	if (!split_find(s, count, requests) && s->ours)
		s->copy = NULL;
	if (!s->ours)
		layer_leave();
	return 0;
}

/* Inside layer_enter afterwards if any is ours.  Returns an MPI error. */
static int split_open(struct split_requests *s, int count, MPI_Request requests[])
{
	bool foreign = false;
	int i;

	s->copy = NULL;
	s->found = NULL;
	s->memory = NULL;
	s->ours = 0;
	if (!layer.rails)
		return 0;
	if (unlikely(layer.multiple))
		return split_open_shared(s, count, requests);
	for (i = 0; i < count; i++) {
		if (abi_request_ours(requests[i]))
			s->ours++;
		else
			foreign |= requests[i] != MPI_REQUEST_NULL;
	}
	if (!s->ours)
		return 0;
	if (foreign) {
		if (!split_alloc(s, (size_t)count, false))
			return req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
		for (i = 0; i < count; i++)
			s->copy[i] = abi_request_ours(requests[i]) ? MPI_REQUEST_NULL : requests[i];
	}
	layer_enter();
	return 0;
}

/* The array that the library gets.  Another thread may have completed some requests of it. */
static MPI_Request *split_native(struct split_requests *s, int count, MPI_Request requests[])
{
	int i;

	if (!s->copy)
		return requests;
	for (i = 0; s->found && i < count; i++)
		if (req_handle(&requests[i]) != s->found[i].handle)
			s->copy[i] = MPI_REQUEST_NULL;
	return s->copy;
}

static void split_return_shared(struct split_requests *s, int count, MPI_Request requests[])
{
	int i;

	for (i = 0; i < count; i++) {
		const struct found *f = &s->found[i];

		if (abi_request_ours(f->handle)) {
			if (!req_at(s, requests, i))
				req_handle_ended(&requests[i], f->handle);
		} else if (s->copy && s->copy[i] != f->handle && req_handle(&requests[i]) == f->handle) {
			req_handle_set(&requests[i], s->copy[i]);
		}
	}
}

/* Persistent handles of the library stay, completed ones became null: hand both back. */
static void split_close(struct split_requests *s, int count, MPI_Request requests[])
{
	int i;

	if (unlikely(s->found))
		split_return_shared(s, count, requests);
	else if (s->copy)
		for (i = 0; i < count; i++)
			if (!abi_request_ours(requests[i]))
				requests[i] = s->copy[i];
	if (unlikely(s->memory))
		free(s->memory);
}

/* ---- The calls ------------------------------------------------------------------------------- */

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
	return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static int all_ours_done(const struct split_requests *s, int count, const MPI_Request requests[])
{
	struct req *r;
	int i;

	for (i = 0; i < count; i++)
		if ((r = req_at(s, requests, i)) && !r->done)
			return 0;
	return 1;
}

/*
 * True: a request has ended since a rank is lost.  The others may never end, and are not waited
 * for.
 */
static bool is_cut_short(const struct split_requests *s, int count, const MPI_Request requests[])
{
	const struct req *r;
	int i;

	for (i = 0; lost_any() && i < count; i++)
		if ((r = req_at(s, requests, i)) && r->done && !inactive(r) && r->error &&
		    lost_is(r->error))
			return true;
	return false;
}

/*
 * Finish ours in an array of completed requests, or of one that is cut short.  Returns the first
 * error, its communicator too.
 */
static int finish_all(const struct split_requests *s, int count, MPI_Request requests[],
		      MPI_Status *statuses, MPI_Comm *comm)
{
	int i, error, first = MPI_SUCCESS;
	struct req *r;

	for (i = 0; i < count; i++) {
		MPI_Status *status = status_at(statuses, i);

		r = req_at(s, requests, i);
		if (!r) {
			if (!s->copy)	/* null handles: the library was not asked */
				req_status_empty(status);
			continue;
		}
		if (unlikely(!r->done)) {
			if (status != MPI_STATUS_IGNORE)
				status->MPI_ERROR = MPI_ERR_PENDING;
			continue;
		}
		if (unlikely(r->error) && !first)
			*comm = req_comm(r);
		error = finish_at(s, requests, i, r, status);
		if (status != MPI_STATUS_IGNORE)
			status->MPI_ERROR = error;
		first = first ? first : error;
	}
	return first;
}

/* Statuses of the library's requests hold MPI_ERROR only if it returned MPI_ERR_IN_STATUS. */
static void clear_native_errors(const struct split_requests *s, int count,
				const MPI_Request requests[], MPI_Status *statuses)
{
	int i;

	if (statuses != MPI_STATUSES_IGNORE)
		for (i = 0; i < count; i++)
			if (!is_ours_at(s, requests, i))
				statuses[i].MPI_ERROR = MPI_SUCCESS;
}

/* The library's part of a wait that is cut short, in its present state. */
static int native_cut_short(struct split_requests *s, int count, MPI_Request requests[],
			    MPI_Status statuses[])
{
	int i, flag, rc = native.Testall(count, split_native(s, count, requests), &flag, statuses);

	if (rc == MPI_SUCCESS)
		clear_native_errors(s, count, requests, statuses);
	for (i = 0; !flag && statuses != MPI_STATUSES_IGNORE && i < count; i++)
		if (s->copy[i] != MPI_REQUEST_NULL)
			statuses[i].MPI_ERROR = MPI_ERR_PENDING;
	return rc;
}

static __attribute__((noinline)) int waitall(int count, MPI_Request requests[],
					     MPI_Status statuses[])
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int i, error, rc = MPI_SUCCESS;
	bool cut_short = false;
	unsigned idle = 0;
	struct split_requests s;
	struct req *r;

	if (split_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours) {
		rc = native.Waitall(count, split_native(&s, count, requests), statuses);
		split_close(&s, count, requests);
		return rc;
	}
	for (i = 0; i < count && !cut_short; i++)
		while ((r = req_at(&s, requests, i)) && !r->done && !cut_short) {
			layer_poll(&idle);
			cut_short = is_cut_short(&s, count, requests);
		}
	if (s.copy) {
		cut_short = is_cut_short(&s, count, requests);
		layer_leave();
		rc = unlikely(cut_short) ? native_cut_short(&s, count, requests, statuses) :
		     native.Waitall(count, split_native(&s, count, requests), statuses);
		if (rc != MPI_ERR_IN_STATUS && !cut_short)
			clear_native_errors(&s, count, requests, statuses);
		layer_enter();
	}
	error = finish_all(&s, count, requests, statuses, &comm);
	split_close(&s, count, requests);
	layer_leave();
	if (likely(!error))
		return rc;
	return req_raise(comm, statuses == MPI_STATUSES_IGNORE ? error : MPI_ERR_IN_STATUS);
}

static bool any_is_ours(int count, const MPI_Request requests[])
{
	int i;

	for (i = 0; i < count; i++)
		if (abi_request_ours(requests[i]))
			return true;
	return false;
}

/* Split, because the library's requests must cost nothing; see p2p.c. */
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	if (layer.rails && (layer.multiple || any_is_ours(count, requests)))
		return waitall(count, requests, statuses);
	return native.Waitall(count, requests, statuses);
}
BOTH(Waitall);

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	MPI_Comm comm = MPI_COMM_WORLD;
	int error = MPI_SUCCESS, rc = MPI_SUCCESS;
	bool cut_short;
	struct split_requests s;

	if (split_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours) {
		layer_catch_up();
		rc = native.Testall(count, split_native(&s, count, requests), flag, statuses);
		split_close(&s, count, requests);
		return rc;
	}
	*flag = all_ours_done(&s, count, requests);
	/*
	 * A look is needed even if all of ours are done: peers of the library's requests may wait
	 * for us.
	 */
	if (!*flag || s.copy) {
		layer_look();
		*flag = all_ours_done(&s, count, requests);
	}
	cut_short = is_cut_short(&s, count, requests);
	/*
	 * Our requests come first: the library completes and frees its own in the call that reports
	 * them.
	 */
	if ((*flag || cut_short) && s.copy) {
		layer_leave();
		layer_catch_up();
		rc = cut_short ? native_cut_short(&s, count, requests, statuses) :
		     native.Testall(count, split_native(&s, count, requests), flag, statuses);
		if (*flag && !cut_short && rc != MPI_ERR_IN_STATUS)
			clear_native_errors(&s, count, requests, statuses);
		layer_enter();
	}
	*flag |= cut_short;
	if (*flag)
		error = finish_all(&s, count, requests, statuses, &comm);
	split_close(&s, count, requests);
	layer_leave();
	if (likely(!error))
		return rc;
	return req_raise(comm, statuses == MPI_STATUSES_IGNORE ? error : MPI_ERR_IN_STATUS);
}
BOTH(Testall);

/*
 * Finish a complete request, *index.  True also when no request is active at all (*index =
 * MPI_UNDEFINED).  The library is asked once if it has requests in the array.
 */
static bool any_once(int count, MPI_Request requests[], struct split_requests *s, int *index,
		     MPI_Status *status, int *error, MPI_Comm *comm)
{
	bool active = false;
	struct req *r;
	int i, flag;

	for (i = 0; i < count; i++) {
		r = req_at(s, requests, i);
		if (!r || inactive(r))
			continue;
		active = true;
		if (!r->done)
			continue;
		*index = i;
		*comm = req_comm(r);
		*error = finish_at(s, requests, i, r, status);
		return true;
	}
	if (s->copy) {
		/*
		 * Outside layer_enter: a generalized request asks its program, which may call MPI.
		 */
		layer_leave();
		layer_catch_up();
		*error = native.Testany(count, split_native(s, count, requests), index, &flag, status);
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
	struct split_requests s;

	if (split_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours) {
		error = native.Waitany(count, split_native(&s, count, requests), index, status);
		split_close(&s, count, requests);
		return error;
	}
	while (!any_once(count, requests, &s, index, status, &error, &comm))
		layer_poll(&idle);
	split_close(&s, count, requests);
	layer_leave();
	return comm == MPI_COMM_NULL ? error : req_raise(comm, error);
}
BOTH(Waitany);

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	MPI_Comm comm = MPI_COMM_NULL;
	int error = MPI_SUCCESS;
	struct split_requests s;

	if (split_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours) {
		layer_catch_up();
		error = native.Testany(count, split_native(&s, count, requests), index, flag,
				       status);
		split_close(&s, count, requests);
		return error;
	}
	*flag = any_once(count, requests, &s, index, status, &error, &comm);
	if (!*flag) {
		layer_look();
		*flag = any_once(count, requests, &s, index, status, &error, &comm);
	}
	if (!*flag)
		*index = MPI_UNDEFINED;
	split_close(&s, count, requests);
	layer_leave();
	return comm == MPI_COMM_NULL ? error : req_raise(comm, error);
}
BOTH(Testany);

/* All that are complete.  *out = MPI_UNDEFINED when none is active. */
static int some_once(int count, MPI_Request requests[], struct split_requests *s, int *out,
		     int indices[], MPI_Status statuses[], MPI_Comm *comm)
{
	int i, n = 0, error, first = MPI_SUCCESS;
	bool active = false;
	struct req *r;

	if (s->copy) {
		layer_leave();		/* for the reason in any_once */
		layer_catch_up();
		first = native.Testsome(count, split_native(s, count, requests), &n, indices,
					statuses);
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

		r = req_at(s, requests, i);
		if (!r || inactive(r))
			continue;
		active = true;
		if (!r->done)
			continue;
		status = status_at(statuses, n);
		*comm = req_comm(r);
		error = finish_at(s, requests, i, r, status);
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
	struct split_requests s;
	int error;

	if (split_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours) {
		layer_catch_up();
		error = native.Testsome(count, split_native(&s, count, requests), out, indices,
					statuses);
		split_close(&s, count, requests);
		return error;
	}
	layer_look();
	error = some_once(count, requests, &s, out, indices, statuses, &comm);
	split_close(&s, count, requests);
	layer_leave();
	return req_raise(comm, error);
}
BOTH(Testsome);

int MPI_Waitsome(int count, MPI_Request requests[], int *out, int indices[], MPI_Status statuses[])
{
	MPI_Comm comm = MPI_COMM_WORLD;
	unsigned idle = 0;
	struct split_requests s;
	int error;

	if (split_open(&s, count, requests))
		return MPI_ERR_NO_MEM;
	if (!s.ours) {
		error = native.Waitsome(count, split_native(&s, count, requests), out, indices,
					statuses);
		split_close(&s, count, requests);
		return error;
	}
	while (!(error = some_once(count, requests, &s, out, indices, statuses, &comm)) && *out == 0)
		layer_poll(&idle);
	split_close(&s, count, requests);
	layer_leave();
	return req_raise(comm, error);
}
BOTH(Waitsome);
