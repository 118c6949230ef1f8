/* sends.c - starts messages; looks whether their bytes are still there when they have gone. */
#include "programs.h"

struct half sending[MESSAGES_MAX];

typedef int send_call(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int start_call(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static send_call *const blocking[MODES] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
static start_call *const nonblocking[MODES] = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
static start_call *const persistent[MODES] = {
    MPI_Send_init,
    MPI_Bsend_init,
    MPI_Ssend_init,
    MPI_Rsend_init,
};

static size_t bytes_of(const struct message *m)
{
	return m->units * units[m->unit].bytes;
}

/* The message that starts this one's request again. */
static bool goes_on(int index)
{
	int i;

	for (i = index + 1; i < running->messages; i++)
		if (running->message[i].chain == index)
			return true;
	return false;
}

/*
 * Open MPI 4.1: a persistent buffered send that is started again after its first message has been
 * received sends what is in the buffer that it had then (MPI_Bsend_init, three times MPI_Start,
 * MPI_Wait, MPI_Recv show it).
 */
static bool must_be_new(const struct message *m)
{
#ifdef OPEN_MPI
	return m->mode == MODE_BUFFERED && !routed[m->comm];
#else
	return false;
#endif
}

static void start(const struct message *m, struct half *h)
{
	int to = rank_of(running, m->comm, m->to);
	MPI_Comm comm = comm_of[m->comm];
	void *at = half_at(h);

	switch (m->how) {
	case HOW_BLOCKING:
		DO(blocking[m->mode](at, h->count, h->l.type, to, m->tag, comm));
		return;
	case HOW_NONBLOCKING:
		DO(nonblocking[m->mode](at, h->count, h->l.type, to, m->tag, comm, &h->q));
		return;
	case HOW_PERSISTENT:
		if (m->chain >= 0 && must_be_new(m))
			DO(MPI_Request_free(&h->q));
		if (h->q == MPI_REQUEST_NULL)
			DO(persistent[m->mode](at, h->count, h->l.type, to, m->tag, comm, &h->q));
		if (m->key % 2)
			DO(MPI_Start(&h->q));
		else
			DO(MPI_Startall(1, &h->q));
	}
}

void send_start(int index)
{
	const struct message *m = &running->message[index];
	struct half *h = &sending[index];

	if (m->chain >= 0) {
		*h = sending[m->chain];
		sending[m->chain].open = false;
	} else {
		half_get(h, &m->side.shape, m->unit, m->units, m->side.origin, m->key);
	}
	half_fill(h, m->key, bytes_of(m));
	start(m, h);
	if (m->side.type_freed && !must_be_new(m) && h->l.type != MPI_DATATYPE_NULL)
		DO(MPI_Type_free(&h->l.type));
	if (m->request_freed)
		DO(MPI_Request_free(&h->q));
	if (m->how == HOW_BLOCKING)
		send_finish(index);
}

void send_finish(int index)
{
	const struct message *m = &running->message[index];
	struct half *h = &sending[index];

	half_check(h, m->key, bytes_of(m), "what was sent from");
	if (m->how == HOW_PERSISTENT) {
		CHECK(h->q != MPI_REQUEST_NULL, "a persistent request is gone");
		if (goes_on(index))
			return;
		DO(MPI_Request_free(&h->q));
	}
	CHECK(h->q == MPI_REQUEST_NULL, "a request has ended and is there");
	half_put(h);
}
