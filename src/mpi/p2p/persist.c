/* persist.c - persistent requests and buffered sends. */
#include <stdlib.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/args.h"
#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/lost.h"
#include "mpi/job/catch_up.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/send.h"
#include "mpi/watch/call_count.h"
#include "util/compiler.h"

/* ---- Buffered sends ---------------------------------------------------------------------- */

/*
 * The attached buffer is where the library would copy to.  Ours copies to
 * memory of its own but keeps to the size that was attached, because a program
 * may count on MPI_ERR_BUFFER, and MPI_Buffer_detach waits for our sends, too.
 * A communicator that has a buffer of its own uses no other (MPI 4.1).
 */
static struct attached attached_to_all;

struct buffered {
	struct req *req;
	struct buffered *next;
	struct attached *in;
	size_t bytes;
};
static struct buffered *buffered_list;

static void buffered_reap(void)
{
	struct buffered **at = &buffered_list, *b;

	while ((b = *at)) {
		if (!b->req->done) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		b->in->used -= b->bytes;
		b->in->sends--;
		req_retire(b->req);
		req_free(b->req);
		free(b);
	}
}

/* Copies the message: the send is complete for the program.  Returns an MPI error class. */
static int buffered_start(struct comm *c, const struct message_args *m)
{
	size_t bytes = m->count * m->type->size + MPI_BSEND_OVERHEAD;
	struct attached *in = c->attached.here ? &c->attached : &attached_to_all;
	struct buffered *b;
	struct req *r;
	int rc;

	buffered_reap();
	if (bytes > in->capacity - in->used)
		return MPI_ERR_BUFFER;
	b = malloc(sizeof(*b));
	r = b ? req_alloc(REQ_SEND) : NULL;
	if (!r) {
		free(b);
		return MPI_ERR_NO_MEM;
	}
	rc = send_start(c, r, m, MODE_BUFFERED);
	if (rc) {
		req_free(r);
		free(b);
		return rc < 0 ? lost_error_of(c->peer[m->rank], rc) : MPI_SUCCESS;
	}
	*b = (struct buffered){.req = r, .next = buffered_list, .in = in, .bytes = bytes};
	buffered_list = b;
	in->used += bytes;
	in->sends++;
	return MPI_SUCCESS;
}

static int buffered_send(struct comm *c, const struct message_args *m)
{
	MPI_Comm handle;
	int rc;

	layer_enter();
	handle = c->handle;	/* another thread may free c as soon as the message is there */
	rc = buffered_start(c, m);
	layer_leave();
	return req_raise(handle, rc);
}

#define GEN_BSEND(S, COUNT)                                                                        \
	int MPI_Bsend##S(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag,      \
			 MPI_Comm comm)                                                           \
	{                                                                                         \
		struct comm *c = comm_lookup_of(comm, CALL_Bsend##S);                             \
		struct message_args m;                                                            \
                                                                                                  \
		if (c)                                                                            \
			switch (args_send(c, buf, count, type, dest, tag, &m)) {                  \
			case ARGS_OK:                                                             \
				return buffered_send(c, &m);                                      \
			case ARGS_PROC_NULL:                                                      \
				return MPI_SUCCESS;                                               \
			case ARGS_NATIVE:                                                         \
				break;                                                            \
			}                                                                         \
		return native.Bsend##S(buf, count, type, dest, tag, comm);                        \
	}                                                                                         \
	BOTH(Bsend##S);                                                                           \
                                                                                                  \
	int MPI_Ibsend##S(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag,     \
			  MPI_Comm comm, MPI_Request *request)                                    \
	{                                                                                         \
		struct comm *c = comm_lookup_of(comm, CALL_Ibsend##S);                            \
		struct message_args m;                                                            \
		int rc = MPI_SUCCESS;                                                             \
                                                                                                  \
		if (c)                                                                            \
			switch (args_send(c, buf, count, type, dest, tag, &m)) {                  \
			case ARGS_OK:                                                             \
				rc = buffered_send(c, &m);                                        \
				/* fall through */                                                \
			case ARGS_PROC_NULL:                                                      \
				req_handle_set(request, rc ? MPI_REQUEST_NULL : req_done_handle); \
				return rc;                                                        \
			case ARGS_NATIVE:                                                         \
				break;                                                            \
			}                                                                         \
		return native.Ibsend##S(buf, count, type, dest, tag, comm, request);              \
	}                                                                                         \
	BOTH(Ibsend##S);

EACH_COUNT_TYPE(GEN_BSEND)

static void attached_begin(struct attached *a, const void *buffer, size_t bytes)
{
	layer_enter();
	a->here = true;
	a->capacity = bytes;
#ifdef MPI_BUFFER_AUTOMATIC
	if (buffer == MPI_BUFFER_AUTOMATIC)
		a->capacity = SIZE_MAX;
#endif
	layer_leave();
}

/* Inside layer_enter: sends of ours that the buffer holds are gone, as MPI_Buffer_detach promises. */
static void buffered_drain(struct attached *a)
{
	unsigned idle = 0;

	for (buffered_reap(); a->sends; buffered_reap())
		layer_poll(&idle);
}

static void attached_end(struct attached *a)
{
	layer_enter();
	buffered_drain(a);
	a->here = false;
	a->capacity = 0;
	layer_leave();
}

#define GEN_BUFFER(S, COUNT)                                                                       \
	int MPI_Buffer_attach##S(void *buffer, COUNT size)                                        \
	{                                                                                         \
		int rc = native.Buffer_attach##S(buffer, size);                                   \
                                                                                                  \
		if (rc == MPI_SUCCESS)                                                            \
			attached_begin(&attached_to_all, buffer, (size_t)size);                   \
		return rc;                                                                        \
	}                                                                                         \
	BOTH(Buffer_attach##S);                                                                   \
                                                                                                  \
	int MPI_Buffer_detach##S(void *buffer, COUNT *size)                                       \
	{                                                                                         \
		attached_end(&attached_to_all);                                                   \
		return native.Buffer_detach##S(buffer, size);                                     \
	}                                                                                         \
	BOTH(Buffer_detach##S);

EACH_COUNT_TYPE(GEN_BUFFER)

#ifdef HAVE_MPI_BUFFER_FLUSH
#define GEN_COMM_BUFFER(S, COUNT)                                                                  \
	int MPI_Comm_attach_buffer##S(MPI_Comm comm, void *buffer, COUNT size)                    \
	{                                                                                         \
		int rc = native.Comm_attach_buffer##S(comm, buffer, size);                        \
		struct comm *c = comm_lookup(comm);                                               \
                                                                                                  \
		if (rc == MPI_SUCCESS && c)                                                       \
			attached_begin(&c->attached, buffer, (size_t)size);                       \
		return rc;                                                                        \
	}                                                                                         \
	BOTH(Comm_attach_buffer##S);                                                              \
                                                                                                  \
	int MPI_Comm_detach_buffer##S(MPI_Comm comm, void *buffer, COUNT *size)                   \
	{                                                                                         \
		struct comm *c = comm_lookup(comm);                                               \
                                                                                                  \
		if (c)                                                                            \
			attached_end(&c->attached);                                               \
		return native.Comm_detach_buffer##S(comm, buffer, size);                          \
	}                                                                                         \
	BOTH(Comm_detach_buffer##S);

EACH_COUNT_TYPE(GEN_COMM_BUFFER)

/* The copies go on in memory of ours: the buffer has its room again, and no call waits. */
static void buffered_leave(struct attached *a)
{
	layer_enter();
	for (struct buffered *b = buffered_list; b; b = b->next)
		if (b->in == a) {
			a->used -= b->bytes;
			b->bytes = 0;
		}
	layer_leave();
}

static void buffered_flush(struct attached *a)
{
	layer_enter();
	buffered_drain(a);
	layer_leave();
}

int MPI_Buffer_flush(void)
{
	buffered_flush(&attached_to_all);
	return native.Buffer_flush();
}
BOTH(Buffer_flush);

int MPI_Buffer_iflush(MPI_Request *request)
{
	buffered_leave(&attached_to_all);
	return native.Buffer_iflush(request);
}
BOTH(Buffer_iflush);

int MPI_Comm_flush_buffer(MPI_Comm comm)
{
	struct comm *c = comm_lookup(comm);

	if (c)
		buffered_flush(&c->attached);
	return native.Comm_flush_buffer(comm);
}
BOTH(Comm_flush_buffer);

int MPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
	struct comm *c = comm_lookup(comm);

	if (c)
		buffered_leave(&c->attached);
	return native.Comm_iflush_buffer(comm, request);
}
BOTH(Comm_iflush_buffer);
#endif

/* ---- Persistent requests --------------------------------------------------------------------- */

static int persistent_make(struct comm *c, enum req_kind kind, enum req_mode mode,
			   const struct message_args *m, int rank, MPI_Request *request)
{
	struct persistent *p = malloc(sizeof(*p));
	struct req *r = NULL;

	layer_enter();
	if (p)
		r = req_alloc(kind);
	if (r) {
		*p = (struct persistent){.comm = c, .args = *m, .kind = kind, .mode = mode};
		p->args.rank = rank;
		c->refs++;
		if (rank != MPI_PROC_NULL)
			p->args.type->refs++;
		r->persistent = p;
		r->done = true;
		req_handle_set(request, abi_request_handle(r));
	} else {
		free(p);
	}
	layer_leave();
	return r ? MPI_SUCCESS : req_raise(c->handle, MPI_ERR_NO_MEM);
}

/* The slot is re-initialised by the start of its operation; only `persistent` survives. */
static int persistent_start(struct req *r)
{
	struct persistent *p = r->persistent;
	int rc;

	r->active = true;
	r->comm = NULL;
	r->error = MPI_SUCCESS;
	r->cancelled = false;
	if (p->args.rank == MPI_PROC_NULL) {
		r->done = true;
		r->source = MPI_PROC_NULL;
		r->tag = MPI_ANY_TAG;
		r->bytes = 0;
		return MPI_SUCCESS;
	}
	if (p->kind == REQ_RECV) {
		recv_start(p->comm, r, &p->args);
		return MPI_SUCCESS;
	}
	if (p->mode == MODE_BUFFERED) {
		r->error = buffered_start(p->comm, &p->args);
		r->done = true;
		return r->error;
	}
	rc = send_beside(p->comm, r, &p->args, p->mode);
	if (rc) {
		r->done = true;
		r->error = rc < 0 ? lost_error_of(p->comm->peer[p->args.rank], rc) : MPI_SUCCESS;
	}
	return r->error;
}

#define GEN_INIT(S, COUNT, NAME, KIND, MODE, CONST, ARGS)                                          \
	int MPI_##NAME##S(CONST void *buf, COUNT count, MPI_Datatype type, int rank, int tag,     \
			  MPI_Comm comm, MPI_Request *request)                                    \
	{                                                                                         \
		struct comm *c = comm_lookup_of(comm, CALL_##NAME##S);                            \
		struct message_args m = {0};                                                      \
                                                                                                  \
		if (c && ARGS(c, buf, count, type, rank, tag, &m) != ARGS_NATIVE)                 \
			return persistent_make(c, KIND, MODE, &m, rank, request);                 \
		return native.NAME##S(buf, count, type, rank, tag, comm, request);                \
	}                                                                                         \
	BOTH(NAME##S);

#define GEN_INITS(S, COUNT)                                                                        \
	GEN_INIT(S, COUNT, Send_init, REQ_SEND, MODE_STANDARD, const, args_send)                  \
	GEN_INIT(S, COUNT, Rsend_init, REQ_SEND, MODE_STANDARD, const, args_send)                 \
	GEN_INIT(S, COUNT, Ssend_init, REQ_SEND, MODE_SYNC, const, args_send)                     \
	GEN_INIT(S, COUNT, Bsend_init, REQ_SEND, MODE_BUFFERED, const, args_send)                 \
	GEN_INIT(S, COUNT, Recv_init, REQ_RECV, MODE_STANDARD, , args_recv)

EACH_COUNT_TYPE(GEN_INITS)

static int start(MPI_Request *request)
{
	MPI_Request handle = req_handle(request);
	MPI_Comm comm = MPI_COMM_WORLD;
	int rc = MPI_ERR_REQUEST;
	struct req *r;

	if (!layer.rails || !abi_request_ours(handle)) {
		if (unlikely(calls_counted))
			calls_count(CALL_Start, false, MPI_COMM_NULL);
		layer_catch_up();	/* the other end of a partitioned message may be ready */
		/* Another thread may post a request in a variable that has none. */
		return native.Start(handle == MPI_REQUEST_NULL ? &handle : request);
	}
	layer_enter();
	r = req_now(request, &handle, layer.multiple);
	if (r && r->persistent && !r->active) {
		layer_count(CALL_Start);
		comm = r->persistent->comm->handle;
		rc = persistent_start(r);
	}
	layer_leave();
	return req_raise(comm, rc);
}

int MPI_Start(MPI_Request *request)
{
	return start(request);
}
BOTH(Start);

int MPI_Startall(int count, MPI_Request requests[])
{
	int i, rc = MPI_SUCCESS;

	if (!layer.rails)
		return native.Startall(count, requests);
	for (i = 0; i < count && rc == MPI_SUCCESS; i++)
		rc = start(&requests[i]);
	return rc;
}
BOTH(Startall);
