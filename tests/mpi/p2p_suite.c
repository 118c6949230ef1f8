/* p2p_suite.c - point-to-point: every send mode, matching, probes; the table of cases. */
#include "p2p.h"

#include <sys/mman.h>

unsigned char *sbuf, *rbuf;

void buffers(void)
{
	if (!sbuf) {
		sbuf = malloc(ROOM);
		rbuf = malloc(ROOM);
		CHECK(sbuf && rbuf);
	}
}

/* ---- Every send mode against every receive, every size, in a ring -------------------------- */

enum { SENDS = 10, RECVS = 5 };

static void start_send(int kind, const void *b, int n, int to, int tag, MPI_Comm comm, MPI_Request *q)
{
	*q = MPI_REQUEST_NULL;
	switch (kind) {
	case 0: MPI_Isend(b, n, MPI_BYTE, to, tag, comm, q); break;
	case 1: MPI_Issend(b, n, MPI_BYTE, to, tag, comm, q); break;
	case 2: MPI_Ibsend(b, n, MPI_BYTE, to, tag, comm, q); break;
	case 3: MPI_Send_init(b, n, MPI_BYTE, to, tag, comm, q); MPI_Start(q); break;
	case 4: MPI_Ssend_init(b, n, MPI_BYTE, to, tag, comm, q); MPI_Start(q); break;
	case 5: MPI_Bsend_init(b, n, MPI_BYTE, to, tag, comm, q); MPI_Startall(1, q); break;
	case 6: MPI_Send(b, n, MPI_BYTE, to, tag, comm); break;
	case 7: MPI_Ssend(b, n, MPI_BYTE, to, tag, comm); break;
	case 8: MPI_Bsend(b, n, MPI_BYTE, to, tag, comm); break;
	case 9: MPI_Isend(b, n, MPI_BYTE, to, tag, comm, q); break;
	}
}

static void finish(MPI_Request *q)
{
	MPI_Wait(q, MPI_STATUS_IGNORE);
	if (*q != MPI_REQUEST_NULL)
		MPI_Request_free(q);
}

static void receive(int kind, void *b, int room, int from, int tag, MPI_Comm comm, MPI_Status *st)
{
	MPI_Message message;
	MPI_Request q;
	int flag = 0, n;

	switch (kind) {
	case 0:
		MPI_Recv(b, room, MPI_BYTE, from, tag, comm, st);
		break;
	case 1:
		MPI_Irecv(b, room, MPI_BYTE, from, tag, comm, &q);
		while (!flag)
			MPI_Test(&q, &flag, st);
		CHECK(q == MPI_REQUEST_NULL);
		break;
	case 2:
		MPI_Probe(from, tag, comm, st);
		MPI_Get_count(st, MPI_BYTE, &n);
		MPI_Recv(b, n, MPI_BYTE, st->MPI_SOURCE, st->MPI_TAG, comm, st);
		break;
	case 3:
		MPI_Mprobe(from, tag, comm, &message, st);
		MPI_Get_count(st, MPI_BYTE, &n);
		MPI_Mrecv(b, n, MPI_BYTE, &message, st);
		CHECK(message == MPI_MESSAGE_NULL);
		break;
	case 4:
		while (!flag)
			MPI_Improbe(from, tag, comm, &flag, &message, st);
		MPI_Imrecv(b, room, MPI_BYTE, &message, &q);
		MPI_Wait(&q, st);
		break;
	}
}

/* Even ranks send first where a send may block. */
static void modes(MPI_Comm comm)
{
	static char attached[64 << 20];
	int s, r, i;

	buffers();
	MPI_Buffer_attach(attached, sizeof(attached));
	for (i = 0; i < suite_size_count; i++)
		for (s = 0; s < SENDS; s++)
			for (r = 0; r < RECVS; r++) {
				unsigned message = (unsigned)(i * 100 + s * 10 + r);
				int n = (int)suite_sizes[i], tag = (int)message;
				bool blocks = s == 6 || s == 7;
				MPI_Request q = MPI_REQUEST_NULL;
				MPI_Status st;

				if (n > 300000 && (s + r) % 3)
					continue;	/* enough of the long ones */
				if (suite_size % 2 && blocks)
					continue;
				suite_fill(sbuf, (size_t)n, suite_rank, message);
				suite_blank(rbuf, (size_t)n + PAD);
				if (!blocks || suite_rank % 2 == 0)
					start_send(s, sbuf, n, right(), tag, comm, &q);
				receive(r, rbuf, n + PAD, left(), tag, comm, &st);
				if (blocks && suite_rank % 2)
					start_send(s, sbuf, n, right(), tag, comm, &q);
				finish(&q);
				suite_status(&st, left(), tag, (size_t)n);
				suite_verify(rbuf, (size_t)n, (size_t)n + PAD, left(), message);
			}
	{
		void *base;
		int size;

		MPI_Buffer_detach(&base, &size);
		CHECK(base == attached && size == (int)sizeof(attached));
	}
}

/* ---- Matching ----------------------------------------------------------------------------- */

/* Messages that come before they are wanted, taken in another order than sent, by tag. */
static void unexpected(MPI_Comm comm)
{
	enum { N = 40 };
	static const int sizes[] = {3, 100, 9000, 70000};
	MPI_Request q[N];
	MPI_Status st;
	int i;

	buffers();
	for (i = 0; i < N; i++) {
		suite_fill(sbuf + i * 80000, (size_t)sizes[i % 4], suite_rank, (unsigned)i);
		MPI_Isend(sbuf + i * 80000, sizes[i % 4], MPI_BYTE, right(), i, comm, &q[i]);
	}
	MPI_Barrier(comm);
	for (i = N - 1; i >= 0; i--) {
		suite_blank(rbuf, (size_t)sizes[i % 4] + PAD);
		MPI_Recv(rbuf, sizes[i % 4] + PAD, MPI_BYTE, left(), i, comm, &st);
		suite_status(&st, left(), i, (size_t)sizes[i % 4]);
		suite_verify(rbuf, (size_t)sizes[i % 4], (size_t)sizes[i % 4] + PAD, left(), (unsigned)i);
	}
	MPI_Waitall(N, q, MPI_STATUSES_IGNORE);
}

/* Messages of one envelope overtake neither eager nor rendezvous messages before them. */
static void ordered(MPI_Comm comm)
{
	enum { N = 60 };
	static const int sizes[] = {8, 20000, 1, 8193, 8192, 64, 300000, 0};
	MPI_Request sq[N], rq[N];
	size_t at = 0;
	int i, pass;

	buffers();
	for (pass = 0; pass < 2; pass++) {	/* posted before, posted after */
		size_t rat[N];

		at = 0;
		for (i = 0; i < N; i++) {
			int n = sizes[i % 8];

			rat[i] = at;
			suite_fill(sbuf + at, (size_t)n, suite_rank, (unsigned)(pass * N + i));
			at += (size_t)n;
		}
		suite_blank(rbuf, at);
		if (pass == 0)
			for (i = 0; i < N; i++)
				MPI_Irecv(rbuf + rat[i], sizes[i % 8], MPI_BYTE, left(), MPI_ANY_TAG, comm,
					  &rq[i]);
		MPI_Barrier(comm);
		for (i = 0; i < N; i++)
			MPI_Isend(sbuf + rat[i], sizes[i % 8], MPI_BYTE, right(), 5, comm, &sq[i]);
		if (pass == 1)
			for (i = 0; i < N; i++)
				MPI_Irecv(rbuf + rat[i], sizes[i % 8], MPI_BYTE, MPI_ANY_SOURCE, 5, comm,
					  &rq[i]);
		MPI_Waitall(N, rq, MPI_STATUSES_IGNORE);
		MPI_Waitall(N, sq, MPI_STATUSES_IGNORE);
		for (i = 0; i < N; i++)
			suite_verify(rbuf + rat[i], (size_t)sizes[i % 8], (size_t)sizes[i % 8], left(),
				     (unsigned)(pass * N + i));
	}
}

/* Receives by name and from anyone, mixed: the one posted first gets the message. */
static void wildcards(MPI_Comm comm)
{
	int value[4], i;
	MPI_Request q[4];
	MPI_Status st[4];

	for (i = 0; i < 4; i++) {
		value[i] = -1;
		MPI_Irecv(&value[i], 1, MPI_INT, i % 2 ? left() : MPI_ANY_SOURCE, i < 2 ? MPI_ANY_TAG : 9,
			  comm, &q[i]);
	}
	MPI_Barrier(comm);
	for (i = 0; i < 4; i++) {
		int v = suite_rank * 10 + i;

		MPI_Send(&v, 1, MPI_INT, right(), 9, comm);
	}
	MPI_Waitall(4, q, st);
	for (i = 0; i < 4; i++) {
		CHECK(value[i] == left() * 10 + i, "receive %d got %d", i, value[i]);
		suite_status(&st[i], left(), 9, sizeof(int));
	}
}

/* All to one, MPI_ANY_SOURCE; the status names each sender once per round. */
static void gather_any(MPI_Comm comm)
{
	enum { ROUNDS = 30 };
	int round, i, n;

	buffers();
	for (round = 0; round < ROUNDS; round++) {
		n = (int)suite_sizes[(unsigned)round % (unsigned)suite_size_count] % 100000;
		if (suite_rank) {
			suite_fill(sbuf, (size_t)n, suite_rank, (unsigned)round);
			MPI_Send(sbuf, n, MPI_BYTE, 0, round, comm);
			continue;
		}
		uint64_t seen = 0;
		for (i = 1; i < suite_size; i++) {
			MPI_Status st;

			suite_blank(rbuf, (size_t)n + PAD);
			MPI_Recv(rbuf, n + PAD, MPI_BYTE, MPI_ANY_SOURCE, round, comm, &st);
			suite_status(&st, st.MPI_SOURCE, round, (size_t)n);
			suite_verify(rbuf, (size_t)n, (size_t)n + PAD, st.MPI_SOURCE, (unsigned)round);
			CHECK(!(seen >> st.MPI_SOURCE & 1), "two messages of rank %d", st.MPI_SOURCE);
			seen |= (uint64_t)1 << st.MPI_SOURCE;
		}
	}
}

static void proc_null(MPI_Comm comm)
{
	MPI_Message message;
	MPI_Request q[2];
	MPI_Status st;
	int v = 1, flag = 0;

	MPI_Send(&v, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
	MPI_Recv(&v, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &st);
	suite_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Isend(&v, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &q[0]);
	MPI_Irecv(&v, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &q[1]);
	MPI_Wait(&q[1], &st);
	suite_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
	MPI_Sendrecv(&v, 1, MPI_INT, MPI_PROC_NULL, 1, &v, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &st);
	suite_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Iprobe(MPI_PROC_NULL, 1, comm, &flag, &st);
	CHECK(flag);
	MPI_Mprobe(MPI_PROC_NULL, 1, comm, &message, &st);
	CHECK(message == MPI_MESSAGE_NO_PROC);
	MPI_Mrecv(&v, 1, MPI_INT, &message, &st);
	suite_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Recv_init(&v, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &q[0]);
	MPI_Start(&q[0]);
	MPI_Wait(&q[0], &st);
	suite_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Request_free(&q[0]);
}

static void to_self(MPI_Comm comm)
{
	MPI_Request q[2];
	MPI_Status st[2];
	int i;

	buffers();
	for (i = 0; i < suite_size_count; i++) {
		size_t n = suite_sizes[i];

		suite_fill(sbuf, n, suite_rank, (unsigned)i);
		suite_blank(rbuf, n + PAD);
		if (i % 2) {
			MPI_Irecv(rbuf, (int)n + PAD, MPI_BYTE, suite_rank, i, comm, &q[0]);
			MPI_Isend(sbuf, (int)n, MPI_BYTE, suite_rank, i, comm, &q[1]);
			MPI_Waitall(2, q, st);
		} else {
			MPI_Sendrecv(sbuf, (int)n, MPI_BYTE, suite_rank, i, rbuf, (int)n + PAD, MPI_BYTE,
				     suite_rank, i, comm, &st[0]);
		}
		suite_status(&st[0], suite_rank, i, n);
		suite_verify(rbuf, n, n + PAD, suite_rank, (unsigned)i);
	}
}

static void sendrecv(MPI_Comm comm)
{
	MPI_Status st;
	int i;

	buffers();
	for (i = 0; i < suite_size_count; i++) {
		size_t n = suite_sizes[i], m = suite_sizes[suite_size_count - 1 - i];

		suite_fill(sbuf, suite_rank % 2 ? n : m, suite_rank, (unsigned)i);
		if (suite_size % 2)
			m = n;
		suite_fill(sbuf, suite_rank % 2 ? n : m, suite_rank, (unsigned)i);
		suite_blank(rbuf, ROOM);
		MPI_Sendrecv(sbuf, (int)(suite_rank % 2 ? n : m), MPI_BYTE, right(), i, rbuf, ROOM, MPI_BYTE,
			     left(), i, comm, &st);
		suite_status(&st, left(), i, left() % 2 ? n : m);
		suite_verify(rbuf, left() % 2 ? n : m, ROOM, left(), (unsigned)i);
		suite_fill(sbuf, n, suite_rank, (unsigned)i + 100);
		MPI_Sendrecv_replace(sbuf, (int)n, MPI_BYTE, right(), i, left(), i, comm, &st);
		suite_status(&st, left(), i, n);
		suite_verify(sbuf, n, n, left(), (unsigned)i + 100);
	}
}

#define NO_CANCEL "Open MPI 4.1 cancels no send, MPI_Wait hangs"

/* Memory that may only be written is not registered; a copy of what comes is. */
static void write_only(MPI_Comm comm)
{
	enum { BYTES = 300000 };
	unsigned char *from = malloc(BYTES), *to = mmap(NULL, BYTES, PROT_WRITE,
							MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int right = (suite_rank + 1) % suite_size, left = (suite_rank + suite_size - 1) % suite_size;
	MPI_Request q;

	CHECK(from && to != MAP_FAILED);
	suite_fill(from, BYTES, suite_rank, 77);
	MPI_Irecv(to, BYTES, MPI_BYTE, left, 5, comm, &q);
	MPI_Send(from, BYTES, MPI_BYTE, right, 5, comm);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	CHECK(!mprotect(to, BYTES, PROT_READ | PROT_WRITE));
	suite_verify(to, BYTES, BYTES, left, 77);
	munmap(to, BYTES);
	free(from);
}

static const struct suite_case cases[] = {
	{.name = "write_only", .run = write_only, .min_ranks = 1},
	{.name = "modes", .run = modes, .min_ranks = 1},
	{.name = "unexpected", .run = unexpected, .min_ranks = 1},
	{.name = "ordered", .run = ordered, .min_ranks = 1},
	{.name = "wildcards", .run = wildcards, .min_ranks = 1},
	{.name = "gather_any", .run = gather_any, .min_ranks = 2},
	{.name = "proc_null", .run = proc_null, .min_ranks = 1,
	 .native_defect = "MPICH 4.0: no MPI_PROC_NULL in the status of MPI_Irecv"},
	{.name = "to_self", .run = to_self, .min_ranks = 1},
	{.name = "sendrecv", .run = sendrecv, .min_ranks = 1},
	{.name = "completion", .run = p2p_completion, .min_ranks = 1},
	{.name = "get_status_and_free", .run = p2p_get_status_and_free, .min_ranks = 1},
	{.name = "cancel", .run = p2p_cancel, .min_ranks = 2},
	{.name = "cancel_sends", .run = p2p_cancel_sends, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "cancel_beside_native", .run = p2p_cancel_beside_native, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "cancel_matched", .run = p2p_cancel_matched, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "cancel_persistent", .run = p2p_cancel_persistent, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "cancel_and_free", .run = p2p_cancel_and_free, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "cancel_some", .run = p2p_cancel_some, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "cancel_flood", .run = p2p_cancel_flood, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "cancel_to_self", .run = p2p_cancel_to_self, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "done_free", .run = p2p_done_free, .min_ranks = 1},
	{.name = "done_cancel", .run = p2p_done_cancel, .min_ranks = 1,
	 .native_defect = NO_CANCEL},
	{.name = "done_get_status", .run = p2p_done_get_status, .min_ranks = 1},
	{.name = "done_arrays", .run = p2p_done_arrays, .min_ranks = 1},
	{.name = "done_fortran", .run = p2p_done_fortran, .min_ranks = 1},
	{.name = "persistent", .run = p2p_persistent, .min_ranks = 1},
	{.name = "isend_then_collective", .run = p2p_isend_then_collective, .min_ranks = 2},
	{.name = "irecv_then_collective", .run = p2p_irecv_then_collective, .min_ranks = 2},
	{.name = "native_behind_ours", .run = p2p_native_behind_ours, .min_ranks = 2},
	{.name = "flood", .run = p2p_flood, .min_ranks = 1},
	{.name = "truncation", .run = p2p_truncation, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "Open MPI 4.1 writes beyond the buffer (CMA)"},
	{.name = "bad_arguments", .run = p2p_bad_arguments, .min_ranks = 2, .changes_errors = true},
	{.name = "bsend_overflow", .run = p2p_bsend_overflow, .min_ranks = 1, .changes_errors = true,
	 .native_defect = "Open MPI 4.1 hangs in MPI_Buffer_detach after the error"},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
