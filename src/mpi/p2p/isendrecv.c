/*
 * isendrecv.c - MPI_Isendrecv and MPI_Isendrecv_replace: one request for a send and a receive.
 *
 * The program's request has two internal ones, its parts; no other handle refers to them.  The
 * request is done when both parts are.  The status is the receive's.
 */
#include "mpi/abi/abi.h"
#include "mpi/abi/args.h"
#include "mpi/abi/dispatch.h"
#include "mpi/abi/native.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/lost.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/match.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/send.h"
#include "util/compiler.h"

#ifdef HAVE_MPI_ISENDRECV

/* The part goes on by itself, unless it is complete already. */
static void part_let_go(struct req *part, struct req *whole)
{
	part->whole = whole;
	part->detached = true;
	if (part->done)
		req_part_done(part);
	else if (unlikely(whole->error))
		lost_withdraw(part, whole->error);
}

static struct req *whole_alloc(struct comm *c)
{
	struct req *whole = req_alloc(REQ_RECV);

	if (!whole)
		return NULL;
	whole->comm = c;
	c->refs++;
	whole->source = MPI_PROC_NULL;
	whole->tag = MPI_ANY_TAG;
	whole->parts = 2;
	return whole;
}

static void part_send(struct comm *c, struct req *part, const struct message_args *m,
		      enum req_mode mode, struct req *whole)
{
	int rc = m ? send_beside(c, part, m, mode) : 1;

	/* A send that has not begun is complete: nothing is in flight. */
	if (rc) {
		part->done = true;
		part->error = rc < 0 ? lost_error_of(c->peer[m->rank], rc) : MPI_SUCCESS;
	}
	part_let_go(part, whole);
}

static void part_recv(struct comm *c, struct req *part, const struct message_args *m,
		      struct req *whole)
{
	if (m) {
		recv_start(c, part, m);
	} else {
		part->done = true;
		part->source = MPI_PROC_NULL;
		part->tag = MPI_ANY_TAG;
	}
	part_let_go(part, whole);
}

/* s or r is NULL where the partner is MPI_PROC_NULL.  MODE_BUFFERED: s is copied at once. */
static int isendrecv(struct comm *c, const struct message_args *s, const struct message_args *r,
		     enum req_mode mode, MPI_Request *request)
{
	struct req *whole, *sending, *receiving;

	layer_enter();
	whole = whole_alloc(c);
	sending = whole ? req_alloc(REQ_SEND) : NULL;
	receiving = sending ? req_alloc(REQ_RECV) : NULL;
	if (receiving) {
		sending->other = receiving;
		receiving->other = sending;
		req_handle_set(request, abi_request_handle(whole));
		/* A buffer that is replaced must be sent first. */
		if (mode == MODE_STANDARD)
			part_recv(c, receiving, r, whole);
		part_send(c, sending, s, mode, whole);
		if (mode != MODE_STANDARD)
			part_recv(c, receiving, r, whole);
	} else {
		if (sending)
			req_free(sending);
		if (whole)
			req_discard(whole);
	}
	layer_leave();
	return receiving ? MPI_SUCCESS : req_raise(c->handle, MPI_ERR_NO_MEM);
}

#define ISENDRECV_ARGS(COMM) \
	(sbuf, scount, stype, dest, stag, rbuf, rcount, rtype, source, rtag, COMM, request)
#define IREPLACE_ARGS(COMM) (buf, count, type, dest, stag, source, rtag, COMM, request)
#define GEN_ISENDRECV(S, COUNT)                                                                    \
	static ROUTED Isendrecv##S##_routed(const void *sbuf, COUNT scount, MPI_Datatype stype,    \
					    int dest, int stag, void *rbuf, COUNT rcount,          \
					    MPI_Datatype rtype, int source, int rtag,              \
					    struct comm *c, MPI_Request *request)                  \
	{                                                                                          \
		struct message_args s, r;                                                          \
		enum args sa = args_send(c, sbuf, scount, stype, dest, stag, &s);                  \
		enum args ra = args_recv(c, rbuf, rcount, rtype, source, rtag, &r);                \
                                                                                                   \
		if (unlikely(sa == ARGS_NATIVE || ra == ARGS_NATIVE))                              \
			return native.Isendrecv##S ISENDRECV_ARGS(c->handle);                      \
		return isendrecv(c, sa == ARGS_OK ? &s : NULL, ra == ARGS_OK ? &r : NULL,          \
				 MODE_STANDARD, request);                                          \
	}                                                                                          \
	DISPATCH(Isendrecv##S, (const void *sbuf, COUNT scount, MPI_Datatype stype, int dest,      \
				int stag, void *rbuf, COUNT rcount, MPI_Datatype rtype,            \
				int source, int rtag, MPI_Comm comm, MPI_Request *request),        \
		 ISENDRECV_ARGS)                                                                   \
                                                                                                   \
	static ROUTED Isendrecv_replace##S##_routed(void *buf, COUNT count, MPI_Datatype type,     \
						    int dest, int stag, int source, int rtag,      \
						    struct comm *c, MPI_Request *request)          \
	{                                                                                          \
		struct message_args s, r;                                                          \
		enum args sa = args_send(c, buf, count, type, dest, stag, &s);                     \
		enum args ra = args_recv(c, buf, count, type, source, rtag, &r);                   \
                                                                                                   \
		if (unlikely(sa == ARGS_NATIVE || ra == ARGS_NATIVE))                              \
			return native.Isendrecv_replace##S IREPLACE_ARGS(c->handle);               \
		return isendrecv(c, sa == ARGS_OK ? &s : NULL, ra == ARGS_OK ? &r : NULL,          \
				 MODE_BUFFERED, request);                                          \
	}                                                                                          \
	DISPATCH(Isendrecv_replace##S, (void *buf, COUNT count, MPI_Datatype type, int dest,       \
					int stag, int source, int rtag, MPI_Comm comm,             \
					MPI_Request *request), IREPLACE_ARGS)

EACH_COUNT_TYPE(GEN_ISENDRECV)

#endif
