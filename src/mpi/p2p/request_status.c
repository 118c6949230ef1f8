/*
 * request_status.c - MPI_Request_get_status_all, _any and _some (MPI 4.1): completed requests of
 * an array; all requests stay.
 *
 * The library gets a copy of an array with requests of its own, as in wait_many.c.
 */
#include <stdlib.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/native.h"
#include "mpi/job/catch_up.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/request.h"

#ifdef HAVE_MPI_REQUEST_GET_STATUS_ALL

/* MPI's array is const; MPICH 4.3's is not. */
typedef __typeof__(_Generic(&PMPI_Request_get_status_all,
			    int (*)(int, MPI_Request *, int *, MPI_Status *): (MPI_Request *)0,
			    default: (const MPI_Request *)0)) requests_type;

/* The request of the layer; NULL also if another thread has ended it. */
static inline struct req *ours(MPI_Request handle)
{
	struct req *r = abi_request_ours(handle) ? abi_request_slot(handle) : NULL;

	return r && r->kind == REQ_FREE ? NULL : r;
}

/* An active one, or NULL. */
static inline struct req *ours_active(MPI_Request handle)
{
	struct req *r = ours(handle);

	return r && r->persistent && !r->active ? NULL : r;
}

/*
 * True: a request is ours, or may become ours: another thread may post one in a variable that has
 * none (request.h).
 */
static bool any_may_be_ours(int count, requests_type requests)
{
	for (int i = 0; layer.rails && i < count; i++)
		if (abi_request_ours(requests[i]) ||
		    (layer.multiple && requests[i] == MPI_REQUEST_NULL))
			return true;
	return false;
}

/* False: out of memory.  *copy is NULL if none of the requests is the library's. */
static bool library_part(int count, requests_type requests, MPI_Request **copy)
{
	int foreign = 0;

	*copy = NULL;
	for (int i = 0; i < count; i++)
		foreign += !abi_request_ours(requests[i]) && requests[i] != MPI_REQUEST_NULL;
	if (!foreign)
		return true;
	*copy = malloc((size_t)count * sizeof(**copy));
	for (int i = 0; *copy && i < count; i++)
		(*copy)[i] = abi_request_ours(requests[i]) ? MPI_REQUEST_NULL : requests[i];
	return *copy;
}

static void status_of(const struct req *r, MPI_Status *status)
{
	if (r->persistent && !r->active)
		req_status_empty(status);
	else
		req_status(r, status);
}

/* ---- All ---------------------------------------------------------------------------------- */

static bool all_done(int count, requests_type requests)
{
	for (int i = 0; i < count; i++) {
		const struct req *r = ours(requests[i]);

		if (r && !r->done)
			return false;
	}
	return true;
}

/* alone: the library has filled in none of the others. */
static void statuses_fill(int count, requests_type requests, MPI_Status *statuses, bool alone)
{
	for (int i = 0; statuses != MPI_STATUSES_IGNORE && i < count; i++) {
		const struct req *r = ours(requests[i]);

		if (r) {
			status_of(r, &statuses[i]);
			statuses[i].MPI_ERROR = r->error;
		} else if (alone) {
			req_status_empty(&statuses[i]);
		}
	}
}

int MPI_Request_get_status_all(int count, requests_type requests, int *flag, MPI_Status statuses[])
{
	int rc = MPI_SUCCESS;
	MPI_Request *copy;

	if (!any_may_be_ours(count, requests)) {
		layer_catch_up();
		return native.Request_get_status_all(count, requests, flag, statuses);
	}
	if (!library_part(count, requests, &copy))
		return req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	layer_enter();
	layer_look();
	*flag = all_done(count, requests);
	layer_leave();
	if (*flag && copy) {
		layer_catch_up();
		rc = native.Request_get_status_all(count, copy, flag, statuses);
	}
	layer_enter();
	if (*flag && rc == MPI_SUCCESS)
		statuses_fill(count, requests, statuses, !copy);
	layer_leave();
	free(copy);
	return rc;
}
BOTH(Request_get_status_all);

/* ---- Any ------------------------------------------------------------------------------------ */

/*
 * The index of a complete request of ours, or MPI_UNDEFINED.  *active: a request of ours is active.
 */
static int find_done(int count, requests_type requests, MPI_Status *status, bool *active)
{
	int found = MPI_UNDEFINED;

	layer_enter();
	layer_look();
	for (int i = 0; i < count && found == MPI_UNDEFINED; i++) {
		const struct req *r = ours_active(requests[i]);

		*active = *active || r;
		if (r && r->done) {
			req_status(r, status);
			found = i;
		}
	}
	layer_leave();
	return found;
}

int MPI_Request_get_status_any(int count, requests_type requests, int *index, int *flag,
			       MPI_Status *status)
{
	int rc = MPI_SUCCESS;
	bool active = false;
	MPI_Request *copy;

	if (!any_may_be_ours(count, requests)) {
		layer_catch_up();
		return native.Request_get_status_any(count, requests, index, flag, status);
	}
	*index = find_done(count, requests, status, &active);
	*flag = *index != MPI_UNDEFINED;
	if (*flag)
		return MPI_SUCCESS;
	if (!library_part(count, requests, &copy))
		return req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	if (copy) {
		layer_catch_up();
		rc = native.Request_get_status_any(count, copy, index, flag, status);
		/* A flag without an index: the library has none active. */
		if (rc == MPI_SUCCESS && *flag && *index == MPI_UNDEFINED)
			*flag = !active;
		free(copy);
	} else if (!active) {
		*flag = 1;
		req_status_empty(status);
	}
	return rc;
}
BOTH(Request_get_status_any);

/* ---- Some ----------------------------------------------------------------------------------- */

int MPI_Request_get_status_some(int count, requests_type requests, int *out, int indices[],
				MPI_Status statuses[])
{
	int rc = MPI_SUCCESS, n = MPI_UNDEFINED;
	MPI_Request *copy;
	bool active;

	if (!any_may_be_ours(count, requests)) {
		layer_catch_up();
		return native.Request_get_status_some(count, requests, out, indices, statuses);
	}
	if (!library_part(count, requests, &copy))
		return req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	if (copy) {
		layer_catch_up();
		rc = native.Request_get_status_some(count, copy, &n, indices, statuses);
	}
	free(copy);
	active = n != MPI_UNDEFINED;
	n = active ? n : 0;
	layer_enter();
	layer_look();
	for (int i = 0; i < count; i++) {
		const struct req *r = ours_active(requests[i]);

		active = active || r;
		if (!r || !r->done)
			continue;
		if (statuses != MPI_STATUSES_IGNORE) {
			req_status(r, &statuses[n]);
			statuses[n].MPI_ERROR = r->error;
		}
		indices[n++] = i;
	}
	layer_leave();
	*out = active ? n : MPI_UNDEFINED;
	return rc;
}
BOTH(Request_get_status_some);

#endif
