/*
 * p2p.c - blocking and nonblocking sends and receives.
 *
 * Each function checks whether the communicator is routed.  If it is not, or if the library
 * would refuse the arguments, the library's own function does the work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/args.h"
#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/lost.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/queue.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/send.h"
#include "mpi/type/dtype.h"
#include "util/compiler.h"

/* ---- Sends ------------------------------------------------------------------------------ */

static int send_blocking(struct comm *c, const struct message_args *m, enum req_mode mode)
{
	MPI_Comm handle;
	struct req r;
	int rc;

	layer_enter();
	rc = send_short(c, &r, m, mode);
	if (unlikely(rc <= 0)) {
		/* Another thread may free the communicator as soon as the message is there. */
		handle = c->handle;
		if (rc == 0) {
			layer_wait(&r);
			rc = r.error;
			req_retire(&r);
		} else {
			rc = lost_error_of(c->peer[m->rank], rc);
		}
		layer_leave();
		return req_raise(handle, rc);
	}
	layer_leave();
	return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int
send_nonblocking(struct comm *c, const struct message_args *m, enum req_mode mode,
		 MPI_Request *request)
{
	int rc, error = MPI_SUCCESS;
	struct req *r;

	layer_enter();
	r = req_for_send();
	rc = likely(r) ? send_beside(c, r, m, mode) : -ENOMEM;
	if (likely(rc > 0)) {
		req_handle_set(request, req_done_handle);
	} else if (rc == 0) {
		req_handle_set(request, abi_request_handle(r));
		req_next_send = NULL;
	} else {
		error = lost_error_of(c->peer[m->rank], rc);
		*request = MPI_REQUEST_NULL;
	}
	layer_leave();
	return likely(rc >= 0) ? MPI_SUCCESS : req_raise(c->handle, error);
}

#define SEND_ARGS(COMM) (buf, count, type, dest, tag, COMM)
#define GEN_SEND(S, COUNT, NAME, MODE)                                                             \
	static ROUTED NAME##S##_routed(const void *buf, COUNT count, MPI_Datatype type, int dest,  \
				       int tag, struct comm *c)                                    \
	{                                                                                          \
		struct message_args m;                                                             \
                                                                                                   \
		switch (args_send(c, buf, count, type, dest, tag, &m)) {                           \
		case ARGS_OK:                                                                      \
			return send_blocking(c, &m, MODE);                                         \
		case ARGS_PROC_NULL:                                                               \
			return MPI_SUCCESS;                                                        \
		case ARGS_NATIVE:                                                                  \
			break;                                                                     \
		}                                                                                  \
		return native.NAME##S SEND_ARGS(c->handle);                                        \
	}                                                                                          \
	DISPATCH(NAME##S, (const void *buf, COUNT count, MPI_Datatype type, int dest, int tag,     \
			   MPI_Comm comm), SEND_ARGS)

#define ISEND_ARGS(COMM) (buf, count, type, dest, tag, COMM, request)
#define GEN_ISEND(S, COUNT, NAME, MODE)                                                            \
	static ROUTED NAME##S##_routed(const void *buf, COUNT count, MPI_Datatype type, int dest,  \
				       int tag, struct comm *c, MPI_Request *request)              \
	{                                                                                          \
		struct message_args m;                                                             \
                                                                                                   \
		switch (args_send(c, buf, count, type, dest, tag, &m)) {                           \
		case ARGS_OK:                                                                      \
			return send_nonblocking(c, &m, MODE, request);                             \
		case ARGS_PROC_NULL:                                                               \
			req_handle_set(request, req_done_handle);                                  \
			return MPI_SUCCESS;                                                        \
		case ARGS_NATIVE:                                                                  \
			break;                                                                     \
		}                                                                                  \
		return native.NAME##S ISEND_ARGS(c->handle);                                       \
	}                                                                                          \
	DISPATCH(NAME##S, (const void *buf, COUNT count, MPI_Datatype type, int dest, int tag,     \
			   MPI_Comm comm, MPI_Request *request), ISEND_ARGS)

/* A ready send is a standard send whose program promises more. */
#define GEN_SENDS(S, COUNT)                                                                        \
	GEN_SEND(S, COUNT, Send, MODE_STANDARD)                                                   \
	GEN_SEND(S, COUNT, Rsend, MODE_STANDARD)                                                  \
	GEN_SEND(S, COUNT, Ssend, MODE_SYNC)                                                      \
	GEN_ISEND(S, COUNT, Isend, MODE_STANDARD)                                                 \
	GEN_ISEND(S, COUNT, Irsend, MODE_STANDARD)                                                \
	GEN_ISEND(S, COUNT, Issend, MODE_SYNC)

EACH_COUNT_TYPE(GEN_SENDS)

/* ---- Receives ------------------------------------------------------------------------------ */

static int recv_blocking(struct comm *c, const struct message_args *m, MPI_Status *status)
{
	MPI_Comm handle;
	struct req r;
	int error;

	layer_enter();
	recv_start(c, &r, m);
	layer_wait(&r);
	req_status(&r, status);
	error = r.error;
	handle = c->handle;	/* c may be gone below */
	req_retire(&r);
	layer_leave();
	return req_raise(handle, error);
}

static int recv_nonblocking(struct comm *c, const struct message_args *m, MPI_Request *request)
{
	struct req *r;

	layer_enter();
	r = req_alloc(REQ_RECV);
	if (likely(r)) {
		recv_start(c, r, m);
		req_handle_set(request, abi_request_handle(r));
	}
	layer_leave();
	return likely(r) ? MPI_SUCCESS : req_raise(c->handle, MPI_ERR_NO_MEM);
}

/*
 * A receive of plain bytes from a rank that is named and has sent nothing yet: posted without a
 * call, so that no register is saved.  False: nothing was done, recv_nonblocking is to do it.
 */
static inline __attribute__((always_inline)) bool
recv_straight(struct comm *c, void *buf, MPI_Count count, MPI_Datatype type, int source, int tag,
	      MPI_Request *request)
{
	const struct message_args m = {buf, (size_t)count, dtype_cached(type), source, tag};
	struct req *r;

	if (unlikely(!m.type || !m.type->contiguous || (uint64_t)count > INT_MAX ||
		     (unsigned)source >= (unsigned)c->size || !args_envelope(c, source, tag) ||
		     !layer_enter_straight()))
		return false;
	r = req_free_list;
	if (unlikely(!r || match_waits(c, source)))
		return false;
	req_take(r);
	recv_init(c, r, &m);
	match_receive(c, r, true);
	req_handle_set(request, abi_request_handle(r));
	layer_leave();
	return true;
}

/* A receive that is complete without a message: from MPI_PROC_NULL. */
static int recv_proc_null(MPI_Comm comm, MPI_Request *request)
{
	struct req *r;

	layer_enter();
	r = req_alloc(REQ_RECV);
	if (r) {
		r->done = true;
		r->source = MPI_PROC_NULL;
		r->tag = MPI_ANY_TAG;
		req_handle_set(request, abi_request_handle(r));
	}
	layer_leave();
	return r ? MPI_SUCCESS : req_raise(comm, MPI_ERR_NO_MEM);
}

#define RECV_ARGS(COMM) (buf, count, type, source, tag, COMM, status)
#define IRECV_ARGS(COMM) (buf, count, type, source, tag, COMM, request)
#define GEN_RECVS(S, COUNT)                                                                        \
	static ROUTED Recv##S##_routed(void *buf, COUNT count, MPI_Datatype type, int source,      \
				       int tag, struct comm *c, MPI_Status *status)                \
	{                                                                                          \
		struct message_args m;                                                             \
                                                                                                   \
		switch (args_recv(c, buf, count, type, source, tag, &m)) {                         \
		case ARGS_OK:                                                                      \
			return recv_blocking(c, &m, status);                                       \
		case ARGS_PROC_NULL:                                                               \
			req_status_proc_null(status);                                              \
			return MPI_SUCCESS;                                                        \
		case ARGS_NATIVE:                                                                  \
			break;                                                                     \
		}                                                                                  \
		return native.Recv##S RECV_ARGS(c->handle);                                        \
	}                                                                                          \
	DISPATCH(Recv##S, (void *buf, COUNT count, MPI_Datatype type, int source, int tag,         \
			   MPI_Comm comm, MPI_Status *status), RECV_ARGS)                          \
                                                                                                   \
	static ROUTED Irecv##S##_general(void *buf, COUNT count, MPI_Datatype type, int source,    \
					 int tag, struct comm *c, MPI_Request *request)            \
	{                                                                                          \
		struct message_args m;                                                             \
                                                                                                   \
		switch (args_recv(c, buf, count, type, source, tag, &m)) {                         \
		case ARGS_OK:                                                                      \
			return recv_nonblocking(c, &m, request);                                   \
		case ARGS_PROC_NULL:                                                               \
			return recv_proc_null(c->handle, request);                                 \
		case ARGS_NATIVE:                                                                  \
			break;                                                                     \
		}                                                                                  \
		return native.Irecv##S IRECV_ARGS(c->handle);                                      \
	}                                                                                          \
                                                                                                   \
	static ROUTED Irecv##S##_routed(void *buf, COUNT count, MPI_Datatype type, int source,     \
					int tag, struct comm *c, MPI_Request *request)             \
	{                                                                                          \
		if (likely(recv_straight(c, buf, count, type, source, tag, request)))              \
			return MPI_SUCCESS;                                                        \
		return Irecv##S##_general IRECV_ARGS(c);                                           \
	}                                                                                          \
	DISPATCH(Irecv##S, (void *buf, COUNT count, MPI_Datatype type, int source, int tag,        \
			    MPI_Comm comm, MPI_Request *request), IRECV_ARGS)

EACH_COUNT_TYPE(GEN_RECVS)

/* ---- Both at once -------------------------------------------------------------------------- */

/* The send is in flight.  The receive, or NULL, may end first: see lost_withdraw. */
static void sendrecv_send_wait(struct req *sending, const struct req *receiving)
{
	bool withdrawn = false;
	unsigned idle = 0;

	do {
		layer_poll(&idle);
		if (lost_any() && receiving && receiving->done && receiving->error && !withdrawn) {
			lost_withdraw(sending, receiving->error);
			withdrawn = true;
		}
	} while (!sending->done);
}

/* s or r is NULL where the partner is MPI_PROC_NULL. */
static int sendrecv(struct comm *c, const struct message_args *s, const struct message_args *r,
		    MPI_Status *status)
{
	struct req sending, receiving;
	int sent = 1, error = MPI_SUCCESS;
	MPI_Comm handle;

	layer_enter();
	handle = c->handle;	/* c may be gone below */
	if (r)
		recv_start(c, &receiving, r);
	if (s)
		sent = send_start(c, &sending, s, MODE_STANDARD);
	if (sent == 0) {
		sendrecv_send_wait(&sending, r ? &receiving : NULL);
		error = sending.error;
		req_retire(&sending);
	} else if (sent < 0) {
		error = lost_error_of(c->peer[s->rank], sent);
	}
	if (r) {
		if (unlikely(error))
			lost_withdraw(&receiving, error);
		layer_wait(&receiving);
		req_status(&receiving, status);
		error = error ? error : receiving.error;
		req_retire(&receiving);
	} else {
		req_status_proc_null(status);
	}
	layer_leave();
	return req_raise(handle, error);
}

/* Receive into the buffer that is being sent: send a copy. */
static int sendrecv_replace(struct comm *c, const struct message_args *s,
			    const struct message_args *r, MPI_Status *status)
{
	struct message_args copy = *s;
	size_t bytes = s->count * s->type->size;
	void *packed = malloc(bytes ? bytes : 1);
	int error;

	if (!packed) {
		req_copy_failed(bytes);
		return req_raise(c->handle, MPI_ERR_NO_MEM);
	}
	if (bytes)
		dtype_pack(s->type, s->buf, 0, packed, bytes);
	copy.buf = packed;
	copy.count = bytes;
	copy.type = dtype_lookup(MPI_BYTE);
	error = sendrecv(c, &copy, r, status);
	free(packed);
	return error;
}

#define SENDRECV_ARGS(COMM) \
	(sbuf, scount, stype, dest, stag, rbuf, rcount, rtype, source, rtag, COMM, status)
#define REPLACE_ARGS(COMM) (buf, count, type, dest, stag, source, rtag, COMM, status)
#define GEN_SENDRECV(S, COUNT)                                                                     \
	static ROUTED Sendrecv##S##_routed(const void *sbuf, COUNT scount, MPI_Datatype stype,     \
					   int dest, int stag, void *rbuf, COUNT rcount,           \
					   MPI_Datatype rtype, int source, int rtag,               \
					   struct comm *c, MPI_Status *status)                     \
	{                                                                                          \
		struct message_args s, r;                                                          \
		enum args sa = args_send(c, sbuf, scount, stype, dest, stag, &s);                  \
		enum args ra = args_recv(c, rbuf, rcount, rtype, source, rtag, &r);                \
                                                                                                   \
		if (unlikely(sa == ARGS_NATIVE || ra == ARGS_NATIVE))                              \
			return native.Sendrecv##S SENDRECV_ARGS(c->handle);                        \
		return sendrecv(c, sa == ARGS_OK ? &s : NULL, ra == ARGS_OK ? &r : NULL, status);  \
	}                                                                                          \
	DISPATCH(Sendrecv##S, (const void *sbuf, COUNT scount, MPI_Datatype stype, int dest,       \
			       int stag, void *rbuf, COUNT rcount, MPI_Datatype rtype, int source, \
			       int rtag, MPI_Comm comm, MPI_Status *status), SENDRECV_ARGS)        \
                                                                                                   \
	static ROUTED Sendrecv_replace##S##_routed(void *buf, COUNT count, MPI_Datatype type,      \
						   int dest, int stag, int source, int rtag,       \
						   struct comm *c, MPI_Status *status)             \
	{                                                                                          \
		struct message_args s, r;                                                          \
		enum args sa = args_send(c, buf, count, type, dest, stag, &s);                     \
		enum args ra = args_recv(c, buf, count, type, source, rtag, &r);                   \
                                                                                                   \
		if (unlikely(sa == ARGS_NATIVE || ra == ARGS_NATIVE))                              \
			return native.Sendrecv_replace##S REPLACE_ARGS(c->handle);                 \
		if (sa == ARGS_OK && ra == ARGS_OK)                                                \
			return sendrecv_replace(c, &s, &r, status);                                \
		return sendrecv(c, sa == ARGS_OK ? &s : NULL, ra == ARGS_OK ? &r : NULL, status);  \
	}                                                                                          \
	DISPATCH(Sendrecv_replace##S, (void *buf, COUNT count, MPI_Datatype type, int dest,        \
				       int stag, int source, int rtag, MPI_Comm comm,              \
				       MPI_Status *status), REPLACE_ARGS)

EACH_COUNT_TYPE(GEN_SENDRECV)
