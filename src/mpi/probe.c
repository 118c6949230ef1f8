/* probe.c - probes, and receives of probed messages. */
#include "layer.h"

#include "args.h"
#include "request.h"
#include "unexpected.h"

/* MPI_Probe and MPI_Mprobe: wait until a message could be received. */
static struct unexpected *probe_blocking(struct comm *c, int source, int tag)
{
	struct unexpected *u;
	unsigned idle = 0;

	while (!(u = match_probe(c, source, tag)))
		layer_poll(&idle);
	return u;
}

static struct unexpected *probe_once(struct comm *c, int source, int tag)
{
	struct unexpected *u = match_probe(c, source, tag);

	if (!u) {
		layer_look();
		u = match_probe(c, source, tag);
	}
	return u;
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct comm *c = comm_lookup_of(comm, CALL_Probe);

	if (c && source == MPI_PROC_NULL) {
		req_status_proc_null(status);
		return MPI_SUCCESS;
	}
	if (!c || !args_envelope(c, source, tag))
		return native.Probe(source, tag, comm, status);
	layer_enter();
	match_unexpected_status(probe_blocking(c, source, tag), status);
	layer_leave();
	return MPI_SUCCESS;
}
BOTH(Probe);

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	struct comm *c = comm_lookup_of(comm, CALL_Iprobe);
	struct unexpected *u;

	if (c && source == MPI_PROC_NULL) {
		*flag = 1;
		req_status_proc_null(status);
		return MPI_SUCCESS;
	}
	if (!c || !args_envelope(c, source, tag))
		return native.Iprobe(source, tag, comm, flag, status);
	layer_enter();
	u = probe_once(c, source, tag);
	*flag = !!u;
	if (u)
		match_unexpected_status(u, status);
	layer_leave();
	return MPI_SUCCESS;
}
BOTH(Iprobe);

/* The probed message leaves the queues and lives in a request slot until it is received. */
static int message_take(struct comm *c, struct unexpected *u, MPI_Message *message,
			MPI_Status *status)
{
	struct req *r = req_alloc(REQ_MESSAGE);

	if (!r)
		return MPI_ERR_NO_MEM;
	match_unexpected_status(u, status);
	r->unexpected = unexpected_take(c, u);
	r->comm = c;
	c->refs++;
	*message = abi_message_handle(r);
	return MPI_SUCCESS;
}

static int message_proc_null(MPI_Message *message, MPI_Status *status)
{
	*message = MPI_MESSAGE_NO_PROC;
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
	rc = message_take(c, probe_blocking(c, source, tag), message, status);
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
	if (!c || !args_envelope(c, source, tag))
		return native.Improbe(source, tag, comm, flag, message, status);
	layer_enter();
	u = probe_once(c, source, tag);
	*flag = !!u;
	if (u)
		rc = message_take(c, u, message, status);
	else
		*message = MPI_MESSAGE_NULL;
	layer_leave();
	return req_raise(comm, rc);
}
BOTH(Improbe);

/* Take the message back out of its slot; the slot's hold on the communicator goes, too. */
static struct comm *message_open(MPI_Message *message, struct unexpected **u)
{
	struct req *r = abi_message_slot(*message);
	struct comm *c = r->comm;

	*u = r->unexpected;
	*message = MPI_MESSAGE_NULL;
	req_free(r);
	return c;
}

static int mrecv(enum call call, void *buf, MPI_Count count, struct dtype *type,
		 MPI_Message *message, MPI_Status *status)
{
	struct message_args m = {.buf = buf, .count = (size_t)count, .type = type};
	struct unexpected *u;
	struct comm *c;
	struct req r;
	MPI_Comm handle;

	layer_enter();
	layer_count(call);
	c = message_open(message, &u);
	handle = c->handle;
	recv_unexpected(c, &r, &m, u);
	layer_wait(&r);
	req_status(&r, status);
	req_retire(&r);
	req_retire(&r);		/* the slot's reference */
	layer_leave();
	return req_raise(handle, r.error);
}

static int imrecv(enum call call, void *buf, MPI_Count count, struct dtype *type,
		  MPI_Message *message, MPI_Request *request)
{
	struct message_args m = {.buf = buf, .count = (size_t)count, .type = type};
	struct unexpected *u;
	struct comm *c;
	struct req *r;

	layer_enter();
	layer_count(call);
	r = req_alloc(REQ_RECV);
	if (r) {
		c = message_open(message, &u);
		recv_unexpected(c, r, &m, u);
		c->refs--;	/* the slot's reference; the receive has its own */
		*request = abi_request_handle(r);
	}
	layer_leave();
	return r ? MPI_SUCCESS : req_raise(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
}

#define GEN_MRECV(S, COUNT)                                                                        \
	int MPI_Mrecv##S(void *buf, COUNT count, MPI_Datatype type, MPI_Message *message,         \
			 MPI_Status *status)                                                      \
	{                                                                                         \
		struct dtype *t;                                                                  \
                                                                                                  \
		if (layer.rails && abi_message_ours(*message) && count >= 0 &&                    \
		    (t = dtype_lookup(type)))                                                     \
			return mrecv(CALL_Mrecv##S, buf, count, t, message, status);              \
		if (unlikely(calls_counted))                                                      \
			calls_count(CALL_Mrecv##S, false);                                        \
		return native.Mrecv##S(buf, count, type, message, status);                        \
	}                                                                                         \
	BOTH(Mrecv##S);                                                                           \
                                                                                                  \
	int MPI_Imrecv##S(void *buf, COUNT count, MPI_Datatype type, MPI_Message *message,        \
			  MPI_Request *request)                                                   \
	{                                                                                         \
		struct dtype *t;                                                                  \
                                                                                                  \
		if (layer.rails && abi_message_ours(*message) && count >= 0 &&                    \
		    (t = dtype_lookup(type)))                                                     \
			return imrecv(CALL_Imrecv##S, buf, count, t, message, request);           \
		if (unlikely(calls_counted))                                                      \
			calls_count(CALL_Imrecv##S, false);                                       \
		return native.Imrecv##S(buf, count, type, message, request);                      \
	}                                                                                         \
	BOTH(Imrecv##S);

EACH_COUNT_TYPE(GEN_MRECV)
