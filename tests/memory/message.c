/* message.c - see message.h. */
#include "message.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { GAP = 200, TAG = 7 };

const char *life_failed(const char *call)
{
	static _Thread_local char text[160];

	snprintf(text, sizeof(text), "%s: %s", call, strerror(errno));
	return text;
}

size_t message_need(const struct message *m)
{
	size_t each = m->bytes + GAP;

	return m->at + (m->how == HOW_SENDRECV ? 2 : 1) * each;
}

size_t message_limit(size_t max)
{
	return life_round(2 * (max + GAP) + 2 * PAGE, PAGE);
}

/* ---- Lives ------------------------------------------------------------------------ */

/* The first fault of a life in words; all of them are counted. */
static void tell(const struct life *l, const char *when, const char *what)
{
	static _Atomic(const struct kind *) last;
	int rank;

	if (atomic_exchange(&last, l->kind) == l->kind)
		return;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fprintf(stderr, "%s: rank %d, %s: %s\n", l->kind->name, rank, when, what);
}

const char *life_begin(struct life *l, const struct kind *kind, size_t limit, uint64_t seed)
{
	const char *failed;
	void *shadow;

	*l = (struct life){.kind = kind, .limit = limit, .bytes = limit, .random = seed, .fd = -1};
	/* A mapping, so that no allocator and no life meets it. */
	shadow = mmap(NULL, limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shadow == MAP_FAILED)
		return life_failed("mmap of a shadow");
	l->shadow = shadow;
	failed = kind->begin(l);
	if (failed)
		munmap(shadow, limit);
	return failed;
}

void life_end(struct life *l)
{
	l->kind->end(l);
	munmap(l->shadow, l->limit);
}

int life_check(struct life *l, const char *when)
{
	size_t i = 0, wrong = 0, first;
	char what[120];

	if (!memcmp(l->mem, l->shadow, l->bytes))
		return 0;
	while (l->mem[i] == l->shadow[i])
		i++;
	for (first = i; i < l->bytes; i++)
		wrong += l->mem[i] != l->shadow[i];
	snprintf(what, sizeof(what), "%zu bytes of %zu are wrong, from %zu on: %02x, not %02x", wrong,
		 l->bytes, first, l->mem[first], l->shadow[first]);
	tell(l, when, what);
	memcpy(l->shadow, l->mem, l->bytes);
	return 1;
}

/* Check only half of the time, so that the other half meets untouched pages. */
int life_change(struct life *l, const struct message *m)
{
	const char *failed = l->kind->change(l, message_need(m));

	if (!failed)
		return life_draw(l, 2) ? life_check(l, "after its change") : 0;
	tell(l, "change", failed);
	l->kind->end(l);
	failed = l->kind->begin(l);
	if (failed) {
		fprintf(stderr, "%s: no new beginning: %s\n", l->kind->name, failed);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return 1;
}

static void store(struct life *l, size_t at, size_t bytes)
{
	if (l->kind->store)
		l->kind->store(l, at, bytes);
	else
		memcpy(l->mem + at, l->shadow + at, bytes);
}

/* ---- Messages ---------------------------------------------------------------------- */

static uint64_t seed_of(const struct message *m, int from, uint64_t seed)
{
	return seed << 32 ^ (uint64_t)m->number << 1 ^ (uint64_t)from;
}

static void transfer(const struct message *m, bool sends, unsigned char *p, MPI_Comm comm)
{
	MPI_Request request;
	int n = (int)m->bytes, peer = sends ? 1 - m->from : m->from;

	if (m->how == HOW_BCAST) {
		MPI_Bcast(p, n, MPI_BYTE, m->from, comm);
	} else if (m->how == HOW_ISEND) {
		if (sends)
			MPI_Isend(p, n, MPI_BYTE, peer, TAG, comm, &request);
		else
			MPI_Irecv(p, n, MPI_BYTE, peer, TAG, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else if (sends) {
		MPI_Send(p, n, MPI_BYTE, peer, TAG, comm);
	} else {
		MPI_Recv(p, n, MPI_BYTE, peer, TAG, comm, MPI_STATUS_IGNORE);
	}
}

int message_pass(const struct message *m, struct life *l, uint64_t seed, MPI_Comm comm)
{
	size_t second = m->at + m->bytes + GAP;
	int rank, other;
	char when[80];

	MPI_Comm_rank(comm, &rank);
	other = 1 - rank;
	if (m->how == HOW_SENDRECV || rank == m->from) {
		life_pattern(l->shadow + m->at, m->bytes, seed_of(m, rank, seed));
		store(l, m->at, m->bytes);
	}
	if (m->how == HOW_SENDRECV) {
		MPI_Sendrecv(l->mem + m->at, (int)m->bytes, MPI_BYTE, other, TAG, l->mem + second,
			     (int)m->bytes, MPI_BYTE, other, TAG, comm, MPI_STATUS_IGNORE);
		life_pattern(l->shadow + second, m->bytes, seed_of(m, other, seed));
	} else {
		transfer(m, rank == m->from, l->mem + m->at, comm);
		if (rank != m->from)
			life_pattern(l->shadow + m->at, m->bytes, seed_of(m, other, seed));
	}
	snprintf(when, sizeof(when), "%s %s", rank == m->from ? "after sending to" : "after receiving from",
		 m->peer);
	return life_check(l, when);
}
