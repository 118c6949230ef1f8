/* request.c - requests of the layer: slots of a slab that never moves, one for each handle. */
#include "mpi/p2p/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/fortran.h"
#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/lost.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/pool.h"
#include "mpi/type/dtype.h"
#include "rail/rail.h"
#include "util/compiler.h"
#include "util/err.h"

enum {
	GROW_SLOTS = 1024,
	/* In front of the slots, where the first one's handle may point. */
	SLAB_LEAD = 65536,
	COPY_REUSED = 16 << 10,
};

#define SLAB_BYTES (SLAB_LEAD + (size_t)SLAB_SLOTS_MAX * SLAB_SLOT_BYTES)

unsigned char *slab_base;
#if RG_OPENMPI
unsigned char *slab_handles;
#endif
struct req *req_done_send, *req_next_send, *req_free_list;
MPI_Request req_done_handle;
struct pool req_copies = { .get = pool_heap_get, .put = free, .largest = COPY_REUSED };

static size_t slots_ready;

#if RG_OPENMPI
static void slot_number(void *slot)
{
	MPI_Fint f = fortran_of(slot);

	memcpy((unsigned char *)slot + SLAB_FORTRAN, &f, sizeof(f));
}

/* Without a distance programs in C go on as ever. */
static void handles_place(void)
{
	int distance = fortran_distance();

	slab_handles = slab_base + (distance < 0 ? 0 : SLAB_FORTRAN - distance);
}
#else
static void slot_number(void *slot)
{
}

static void handles_place(void)
{
}
#endif

/* Printed once; further requests only fail. */
static void say_full(bool all)
{
	static bool said;

	if (said)
		return;
	said = true;
	if (all)
		rg_error("rank %d: more than %d requests at once (accepted: as many; complete some before "
			 "others are started)", layer.world_rank, SLAB_SLOTS_MAX);
	else
		rg_error("rank %d: no memory for more requests than %zu at once", layer.world_rank,
			 slots_ready);
}

static struct req *req_slot(size_t i)
{
	return (struct req *)(slab_base + i * SLAB_SLOT_BYTES);
}

/* Address space is reserved once for all requests; memory is added as it is needed. */
struct req *req_grow(void)
{
	size_t from = slots_ready * SLAB_SLOT_BYTES, i;

	if (slots_ready == SLAB_SLOTS_MAX ||
	    mprotect(slab_base + from, (size_t)GROW_SLOTS * SLAB_SLOT_BYTES, PROT_READ | PROT_WRITE)) {
		say_full(slots_ready == SLAB_SLOTS_MAX);
		return NULL;
	}
	for (i = GROW_SLOTS; i-- > 0;) {
		struct req *r = req_slot(slots_ready + i);

		req_free(r);
		slot_number(r);
	}
	slots_ready += GROW_SLOTS;
	return req_free_list;
}

struct req *req_pending(const struct comm *c)
{
	for (size_t i = 0; i < slots_ready; i++) {
		struct req *r = req_slot(i);

		if ((r->kind == REQ_SEND || r->kind == REQ_RECV) && !r->done && r->comm == c)
			return r;
	}
	return NULL;
}

int req_start(void)
{
	unsigned char *p = mmap(NULL, SLAB_BYTES, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		rg_error("no address space for requests: %zu MiB (is RLIMIT_AS set? see ulimit -v)",
			 SLAB_BYTES >> 20);
		return -ENOMEM;
	}
	slab_base = p + SLAB_LEAD;
	handles_place();
	req_done_send = req_alloc(REQ_SEND);
	if (!req_done_send)
		return -ENOMEM;
	req_done_send->done = true;
	req_done_send->source = MPI_ANY_SOURCE;
	req_done_send->tag = MPI_ANY_TAG;
	req_done_handle = abi_request_handle(req_done_send);
	return 0;
}

void req_status_empty(MPI_Status *status)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = MPI_ANY_SOURCE;
	status->MPI_TAG = MPI_ANY_TAG;
	status->MPI_ERROR = MPI_SUCCESS;
	abi_status_set_count(status, 0, false);
}

void req_status_proc_null(MPI_Status *status)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = MPI_PROC_NULL;
	status->MPI_TAG = MPI_ANY_TAG;
	abi_status_set_count(status, 0, false);
}

int req_raise_error(MPI_Comm handle, int error)
{
	lost_texts();
	native.Comm_call_errhandler(handle == MPI_COMM_NULL ? MPI_COMM_WORLD : handle, error);
	return error;
}

struct req *req_again(const MPI_Request *at, MPI_Request *handle)
{
	struct req *r;

	*handle = req_handle(at);
	r = req_ours(*handle);
	return r && (r->kind == REQ_SEND || r->kind == REQ_RECV) ? r : NULL;
}

void req_handle_ended(MPI_Request *at, MPI_Request handle)
{
	struct req *r = req_ours(handle);

	if (r && r->kind == REQ_FREE)
		req_handle_end(at, handle, true);
}

int req_finish_persistent(struct req *r, MPI_Status *status)
{
	if (!r->active) {
		req_status_empty(status);
		return MPI_SUCCESS;
	}
	req_status(r, status);
	r->active = false;
	r->serial++;
	if (r->comm)
		req_retire(r);
	r->comm = NULL;
	return r->error;
}

void req_copy_failed(size_t bytes)
{
	rg_error("rank %d: no memory for a copy of a message of %zu bytes", layer.world_rank, bytes);
}

void req_on_part(void *user, struct rail_op *op, uint64_t from, void *part, size_t bytes,
		 bool gather)
{
	struct req *r = (struct req *)op;

	r->scattered = !gather;
	if (!r->type && gather)
		memcpy(part, (char *)r->buf + from, bytes);
	else if (!r->type)
		memcpy((char *)r->buf + from, part, bytes);
	else if (gather)
		dtype_pack(r->type, r->buf, from, part, bytes);
	else
		dtype_unpack(r->type, part, bytes, r->buf, from);
}

void req_part_done(struct req *part)
{
	struct req *whole = part->whole, *other = part->other;
	const int error = part->error;

	if (part->kind == REQ_RECV) {
		whole->source = part->source;
		whole->tag = part->tag;
		whole->bytes = part->bytes;
	}
	if (error && !whole->error)
		whole->error = error;
	if (other)
		other->other = NULL;
	req_discard(part);
	if (--whole->parts) {
		/* A part that has not begun has no whole yet. */
		if (unlikely(error) && other->whole)
			lost_withdraw(other, error);
		return;
	}
	whole->done = true;
	if (whole->detached)
		req_discard(whole);
}

void req_complete_rare(struct req *r)
{
	req_copy_put(r);
	if (r->type) {
		dtype_release(r->type);
		r->type = NULL;
	}
	if (!r->detached)
		return;
	if (r->whole)
		req_part_done(r);
	else
		req_discard(r);
}

static void persistent_drop(struct persistent *p)
{
	if (p->args.rank != MPI_PROC_NULL)
		dtype_release(p->args.type);
	if (--p->comm->refs == 0)
		comm_unref_last(p->comm);
	free(p);
}

void req_discard(struct req *r)
{
	if (r == req_done_send)
		return;
	if (r->comm)
		req_retire(r);
	if (r->persistent)
		persistent_drop(r->persistent);
	req_free(r);
}

void req_stop(void)
{
	munmap(slab_base - SLAB_LEAD, SLAB_BYTES);
	slab_base = NULL;
#if RG_OPENMPI
	slab_handles = NULL;
#endif
	req_free_list = req_next_send = req_done_send = NULL;
	pool_stop(&req_copies);
	slots_ready = 0;
}
