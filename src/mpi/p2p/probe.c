/* probe.c - probes, and receives of probed messages. */
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
#include "mpi/p2p/unexpected.h"
#include "mpi/type/dtype.h"
#include "mpi/watch/call_count.h"
#include "util/compiler.h"

/*
 * MPI_Probe and MPI_Mprobe: wait until a message could be received.  The caller holds c, which
 * another thread may free meanwhile.
 */
static struct unexpected *probe_blocking(struct comm *c, int source, int tag)
{
	struct unexpected *u;
	unsigned idle = 0;

	while (!(u = match_probe(c, source, tag))) {
		lost_probed(c, source);
		layer_poll(&idle);
	}
	return u;
}

static void probe_hold(struct comm *c)
{
	c->refs++;
}

static void probe_release(struct comm *c)
{
	if (unlikely(--c->refs == 0))
		comm_unref_last(c);
}

static struct unexpected *probe_once(struct comm *c, int source, int tag)
{
	struct unexpected *u = match_probe(c, source, tag);

	if (!u) {
		lost_probed(c, source);
		layer_look();
		u = match_probe(c, source, tag);
	}
	return u;
}

/* The status of the message that was found, or the error of a notice. */
static int probed(const struct unexpected *u, MPI_Status *status)
{
	if (unlikely(u->lost))
		return u->lost;
	match_unexpected_status(u, status);
	return MPI_SUCCESS;
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct comm *c = comm_lookup_of(comm, CALL_Probe);
	int rc;

	if (c && source == MPI_PROC_NULL) {
		req_status_proc_null(status);
		return MPI_SUCCESS;
	}
	if (!c || !args_envelope(c, source, tag))
		return native.Probe(source, tag, comm, status);
	layer_enter();
	probe_hold(c);
	rc = probed(probe_blocking(c, source, tag), status);
	probe_release(c);
	layer_leave();
	return req_raise(comm, rc);
}
BOTH(Probe);

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	struct comm *c = comm_lookup_of(comm, CALL_Iprobe);
	int rc = MPI_SUCCESS;
	struct unexpected *u;

	if (c && source == MPI_PROC_NULL) {
		*flag = 1;
		req_status_proc_null(status);
		return MPI_SUCCESS;
	}
	if (!c || !args_envelope(c, source, tag)) {
		layer_catch_up();
		return native.Iprobe(source, tag, comm, flag, status);
	}
	layer_enter();
	u = probe_once(c, source, tag);
	*flag = u && !u->lost;
	if (u)
		rc = probed(u, status);
	layer_leave();
	return req_raise(comm, rc);
}
BOTH(Iprobe);

/* The counterparts of req_handle and req_handle_set. */
static inline MPI_Message message_in(const MPI_Message *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline void message_set(MPI_Message *at, MPI_Message handle)
{
	__atomic_store_n(at, handle, __ATOMIC_RELAXED);
}

/* The probed message leaves the queues and lives in a request slot until it is received. */
static int message_take(struct comm *c, struct unexpected *u, MPI_Message *message,
			MPI_Status *status)
{
	int rc = probed(u, status);
	struct req *r;

	if (unlikely(rc))
		return rc;
	r = req_alloc(REQ_MESSAGE);
	if (!r)
		return MPI_ERR_NO_MEM;
	r->unexpected = unexpected_take(c, u);
	r->comm = c;
	c->refs++;
	message_set(message, abi_message_handle(r));
	return MPI_SUCCESS;
}

static int message_proc_null(MPI_Message *message, MPI_Status *status)
{
	message_set(message, MPI_MESSAGE_NO_PROC);
	req_status_proc_null(status);
	return MPI_SUCCESS;
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	struct comm *c = comm_lookup_of(comm, CALL_Mprobe);
	int rc;

	if (c && source == MPI_PROC_NULL)
		return message_proc_null(message, status);
	if (!c || !args_envelope(c, source, tag))
		return native.Mprobe(source, tag, comm, message, status);
	layer_enter();
	probe_hold(c);
	rc = message_take(c, probe_blocking(c, source, tag), message, status);
	probe_release(c);
	layer_leave();
	return req_raise(comm, rc);
}
BOTH(Mprobe);

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		MPI_Status *status)
{
	struct comm *c = comm_lookup_of(comm, CALL_Improbe);
	int rc = MPI_SUCCESS;
	struct unexpected *u;

	if (c && source == MPI_PROC_NULL) {
		*flag = 1;
		return message_proc_null(message, status);
	}
	if (!c || !args_envelope(c, source, tag)) {
		layer_catch_up();
		return native.Improbe(source, tag, comm, flag, message, status);
	}
	layer_enter();
	u = probe_once(c, source, tag);
	*flag = u && !u->lost;
	message_set(message, MPI_MESSAGE_NULL);
	if (u)
		rc = message_take(c, u, message, status);
	layer_leave();
	return req_raise(comm, rc);
}
BOTH(Improbe);

/*
 * Inside layer_enter: take the message back out of its slot; the slot's hold on the communicator
 * is the caller's now.  NULL: another thread has received it.
 */
static struct comm *message_open(MPI_Message *message, struct unexpected **u)
{
	const MPI_Message handle = message_in(message);
	struct req *r = abi_message_ours(handle) ? abi_message_slot(handle) : NULL;

	if (!r || r->kind != REQ_MESSAGE)
		return NULL;
	*u = r->unexpected;
	message_set(message, MPI_MESSAGE_NULL);
	req_free(r);
	return r->comm;
}

/* Another thread has received the message. */
static int message_gone(void)
{
	return req_raise(MPI_COMM_WORLD, MPI_ERR_REQUEST);
}

static int mrecv(enum call call, const struct message_args *m, MPI_Message *message,
		 MPI_Status *status)
{
	struct unexpected *u;
	MPI_Comm handle;
	struct comm *c;
	struct req r;

	layer_enter();
	layer_count(call);
	c = message_open(message, &u);
	if (unlikely(!c)) {
		layer_leave();
		return message_gone();
	}
	handle = c->handle;
	recv_unexpected(c, &r, m, u);
	layer_wait(&r);
	req_status(&r, status);
	req_retire(&r);
	req_retire(&r);		/* the slot's reference */
	layer_leave();
	return req_raise(handle, r.error);
}

static int imrecv(enum call call, const struct message_args *m, MPI_Message *message,
		  MPI_Request *request)
{
	struct unexpected *u;
	struct comm *c;
	struct req *r;

	layer_enter();
	layer_count(call);
	r = req_alloc(REQ_RECV);
	c = r ? message_open(message, &u) : NULL;
	if (c) {
		recv_unexpected(c, r, m, u);
		c->refs--;	/* the slot's reference; the receive has its own */
		req_handle_set(request, abi_request_handle(r));
	} else if (r) {
		req_free(r);
	}
	layer_leave();
	if (unlikely(!r))
		return req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	return c ? MPI_SUCCESS : message_gone();
}

/* OURS receives *message as m says, into OUT. */
#define GEN_MRECV_CALL(NAME, COUNT, OURS, OUT_TYPE, OUT)                                           \
	int MPI_##NAME(void *buf, COUNT count, MPI_Datatype type, MPI_Message *message,           \
		       OUT_TYPE *OUT)                                                             \
	{                                                                                         \
		const MPI_Message handle = message_in(message);                                   \
		struct message_args m = {.buf = buf};                                             \
                                                                                                  \
		if (layer.rails && abi_message_ours(handle) && count >= 0 &&                      \
		    (m.type = dtype_lookup(type))) {                                              \
			m.count = dtype_elements(m.type, count);                                  \
			return OURS(CALL_##NAME, &m, message, OUT);                               \
		}                                                                                 \
		if (unlikely(calls_counted))                                                      \
			calls_count(CALL_##NAME, false, MPI_COMM_NULL);                           \
		/* In an empty variable another thread may put a message of the layer's. */       \
		if (layer.multiple && handle == MPI_MESSAGE_NULL)                                 \
			return message_gone();                                                    \
		return native.NAME(buf, count, type, message, OUT);                               \
	}                                                                                         \
	BOTH(NAME);

#define GEN_MRECV(S, COUNT)                                                                        \
	GEN_MRECV_CALL(Mrecv##S, COUNT, mrecv, MPI_Status, status)                                \
	GEN_MRECV_CALL(Imrecv##S, COUNT, imrecv, MPI_Request, request)

EACH_COUNT_TYPE(GEN_MRECV)
