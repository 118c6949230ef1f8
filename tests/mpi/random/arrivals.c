/* arrivals.c - receives, and whether what they got is what they had to get. */
#include "programs.h"

struct half receiving[MESSAGES_MAX];

static bool goes_on(int index)
{
	int i;

	for (i = index + 1; i < running->receives; i++)
		if (running->receive[i].chain == index)
			return true;
	return false;
}

/* ---- The calls --------------------------------------------------------------------------------
 */

static void probe(const struct receive *r, int source, MPI_Comm comm, MPI_Status *st)
{
	int found = 0;

	if (r->how == RECEIVE_PROBE)
		DO(MPI_Probe(source, r->tag, comm, st));
	else
		while (!found)
			DO(MPI_Iprobe(source, r->tag, comm, &found, st));
}

static void probe_matched(const struct receive *r, int source, MPI_Comm comm, struct half *h)
{
	MPI_Message message = MPI_MESSAGE_NULL;
	int found = 0;

	if (r->how == RECEIVE_MPROBE) {
		DO(MPI_Mprobe(source, r->tag, comm, &message, &h->st));
		DO(MPI_Mrecv(half_at(h), h->count, h->l.type, &message, &h->st));
	} else {
		while (!found)
			DO(MPI_Improbe(source, r->tag, comm, &found, &message, &h->st));
		DO(MPI_Imrecv(half_at(h), h->count, h->l.type, &message, &h->q));
		DO(MPI_Wait(&h->q, &h->st));
	}
	CHECK(message == MPI_MESSAGE_NULL, "a message that was received is there");
}

static void start(const struct receive *r, struct half *h)
{
	int source =
	    r->source == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : rank_of(running, r->comm, r->source);
	MPI_Comm comm = comm_of[r->comm];
	void *at = half_at(h);

	switch (r->how) {
	case RECEIVE_BLOCKING:
		DO(MPI_Recv(at, h->count, h->l.type, source, r->tag, comm, &h->st));
		break;
	case RECEIVE_PROBE:
	case RECEIVE_IPROBE:
		probe(r, source, comm, &h->st);
		DO(MPI_Recv(at, h->count, h->l.type, h->st.MPI_SOURCE, h->st.MPI_TAG, comm,
			    &h->st));
		break;
	case RECEIVE_MPROBE:
	case RECEIVE_IMPROBE:
		probe_matched(r, source, comm, h);
		break;
	case RECEIVE_NONBLOCKING:
		DO(MPI_Irecv(at, h->count, h->l.type, source, r->tag, comm, &h->q));
		break;
	default:
		if (r->chain < 0)
			DO(MPI_Recv_init(at, h->count, h->l.type, source, r->tag, comm, &h->q));
		DO(MPI_Start(&h->q));
	}
}

void receive_start(int index)
{
	const struct receive *r = &running->receive[index];
	struct half *h = &receiving[index];

	if (r->chain >= 0) {
		*h = receiving[r->chain];
		receiving[r->chain].open = false;
		pattern(h->b.mem, h->b.room + 2 * GUARD, h->b.key);
	} else {
		half_get(h, &r->side.shape, r->unit, r->units, r->side.origin,
			 mix(running->key + 1000 + (unsigned)index));
	}
	start(r, h);
	if (r->side.type_freed && !is_blocking(r->how) && h->l.type != MPI_DATATYPE_NULL)
		DO(MPI_Type_free(&h->l.type));
	if (is_blocking(r->how))
		receive_finish(index);
}

/* ---- The judgement ------------------------------------------------------------------------------
 */

static void check_status(const struct half *h, const struct message *m)
{
	int source = rank_of(running, m->comm, m->from), n, flag;
	const MPI_Status *st = &h->st;

	CHECK(st->MPI_SOURCE == source, "source %d, not %d", st->MPI_SOURCE, source);
	CHECK(st->MPI_TAG == m->tag, "tag %d, not %d", st->MPI_TAG, m->tag);
	DO(MPI_Test_cancelled(st, &flag));
	CHECK(!flag, "it is cancelled");
	if (h->l.type == MPI_DATATYPE_NULL)
		return;
	DO(MPI_Get_elements(st, h->l.type, &n));
	/*
	 * Types of MPI_DOUBLE_INT have 0 elements for MPICH 4.0.2, and pairs at times for Open MPI
	 * 4.1.
	 */
	CHECK((size_t)n == m->units * units[m->unit].fields || m->unit == FIRST_MIXED,
	      "message %d: %d basic elements, not %zu (%s)", (int)(m - running->message), n,
	      m->units * units[m->unit].fields, units[m->unit].name);
	DO(MPI_Get_count(st, h->l.type, &n));
	if (m->units % h->l.units)
		CHECK(n == MPI_UNDEFINED, "%d elements, not MPI_UNDEFINED", n);
	else
		CHECK((size_t)n == m->units / h->l.units, "%d elements, not %zu", n,
		      m->units / h->l.units);
}

static void judge(struct half *h, const struct message *m)
{
	check_status(h, m);
	half_check(h, m->key, m->units * units[m->unit].bytes, "what was received");
}

void receive_finish(int index)
{
	const struct receive *r = &running->receive[index];
	struct half *h = &receiving[index];
	bool persistent = r->how == RECEIVE_PERSISTENT;

	if (r->message >= 0)
		judge(h, &running->message[r->message]);
	if (persistent && goes_on(index))
		return;
	CHECK((h->q != MPI_REQUEST_NULL) == persistent, "a request has ended and is%s there",
	      persistent ? " not" : "");
	if (persistent)
		DO(MPI_Request_free(&h->q));
	if (r->message >= 0)
		half_put(h);
}

/* ---- Wildcards
 * ------------------------------------------------------------------------------------ */

/* The first message of this class, with the receive's status, that no receive has got yet. */
static int message_of(const struct receive *r, const MPI_Status *st, const bool *taken)
{
	int i;

	for (i = 0; i < running->messages; i++) {
		const struct message *m = &running->message[i];

		if (!taken[i] && m->epoch == r->epoch && accepts(r, m) && st->MPI_TAG == m->tag &&
		    st->MPI_SOURCE == rank_of(running, m->comm, m->from))
			return i;
	}
	return -1;
}

/*
 * All receives of the class have got this one's message, if they accept it, or one that came from
 * its sender before, or one from elsewhere.  r: an earlier receive that got message `got`.
 */
static void check_order(int r, int got, int later, int missed)
{
	const struct message *a = &running->message[got], *b = &running->message[missed];

	CHECK(a->from != b->from || missed > got || !accepts(&running->receive[r], b),
	      "receive %d got message %d, and receive %d, posted later, message %d, which was sent "
	      "before it",
	      r, got, later, missed);
}

static void close_class(int comm, int me, int epoch)
{
	bool taken[MESSAGES_MAX] = {false};
	int got[MESSAGES_MAX], i, k;

	for (i = 0; i < running->receives; i++) {
		const struct receive *r = &running->receive[i];
		struct half *h = &receiving[i];

		if (r->comm != comm || r->to != me || r->epoch != epoch)
			continue;
		got[i] = message_of(r, &h->st, taken);
		CHECK(got[i] >= 0, "receive %d: no message is left from %d with tag %d", i,
		      h->st.MPI_SOURCE, h->st.MPI_TAG);
		taken[got[i]] = true;
		judge(h, &running->message[got[i]]);
		half_put(h);
		for (k = 0; k < i; k++)
			if (running->receive[k].comm == comm && running->receive[k].to == me &&
			    running->receive[k].epoch == epoch)
				check_order(k, got[k], i, got[i]);
	}
}

void receives_close(int epoch)
{
	int comm, me;

	for (comm = 0; comm < running->comms; comm++) {
		me = member_of(running, comm, world_rank);
		if (me >= 0 && running->comm[comm].style == STYLE_WILD)
			close_class(comm, me, epoch);
	}
}
