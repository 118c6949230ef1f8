/* p2p_suite.c - blocking, nonblocking, persistent; matching, probes, completion calls. */
#include "suite.h"

enum { ROOM = 4 << 20, PAD = 64 };

static unsigned char *sbuf, *rbuf;

static void buffers(void)
{
	if (!sbuf) {
		sbuf = malloc(ROOM);
		rbuf = malloc(ROOM);
		CHECK(sbuf && rbuf);
	}
}

static int right(void)
{
	return (suite_rank + 1) % suite_size;
}

static int left(void)
{
	return (suite_rank + suite_size - 1) % suite_size;
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

/* One envelope: messages overtake neither eager nor rendezvous ones before them. */
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

/* ---- Completion calls -------------------------------------------------------------------------- */

enum call { WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TESTSOME, WAIT, CALLS };

/* Complete all n requests by one kind of call; returns what it saw in a set. */
static void complete(enum call call, int n, MPI_Request *q, MPI_Status *st)
{
	int left_over = n, i, k, out, index[64], flag;
	MPI_Status some[64], one;

	switch (call) {
	case WAITALL:
		MPI_Waitall(n, q, st);
		return;
	case TESTALL:
		for (flag = 0; !flag;)
			MPI_Testall(n, q, &flag, st);
		return;
	case WAIT:
		for (i = n - 1; i >= 0; i--)
			MPI_Wait(&q[i], &st[i]);
		return;
	default:
		break;
	}
	while (left_over) {
		switch (call) {
		case WAITANY:
			MPI_Waitany(n, q, &index[0], &one);
			out = 1;
			some[0] = one;
			CHECK(index[0] != MPI_UNDEFINED);
			break;
		case TESTANY:
			MPI_Testany(n, q, &index[0], &flag, &one);
			out = flag;
			some[0] = one;
			CHECK(!flag || index[0] != MPI_UNDEFINED);
			break;
		case WAITSOME:
			MPI_Waitsome(n, q, &out, index, some);
			CHECK(out != MPI_UNDEFINED && out > 0);
			break;
		default:
			MPI_Testsome(n, q, &out, index, some);
			CHECK(out != MPI_UNDEFINED);
			break;
		}
		for (k = 0; k < out; k++) {
			CHECK(q[index[k]] == MPI_REQUEST_NULL);
			st[index[k]] = some[k];
		}
		left_over -= out;
	}
	MPI_Waitany(n, q, &index[0], &one);
	CHECK(index[0] == MPI_UNDEFINED, "all are null, yet index %d", index[0]);
	MPI_Testsome(n, q, &out, index, some);
	CHECK(out == MPI_UNDEFINED);
}

/* Requests of this communicator, of a native one, and null ones in the same array. */
static void completion(MPI_Comm comm)
{
	enum { N = 24 };
	MPI_Comm other;
	MPI_Info info;
	int call, i;

	buffers();
	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", "native");
	MPI_Comm_dup_with_info(comm, info, &other);
	MPI_Info_free(&info);
	for (call = 0; call < CALLS; call++) {
		MPI_Request q[2 * N + 1];
		MPI_Status st[2 * N + 1];

		for (i = 0; i < N; i++) {
			MPI_Comm c = i % 3 == 2 ? other : comm;
			int n = (int)suite_sizes[i % 18];

			suite_blank(rbuf + i * 100000, (size_t)n + PAD);
			MPI_Irecv(rbuf + i * 100000, n + PAD, MPI_BYTE, left(), i, c, &q[i]);
		}
		q[2 * N] = MPI_REQUEST_NULL;
		for (i = N - 1; i >= 0; i--) {
			MPI_Comm c = i % 3 == 2 ? other : comm;
			int n = (int)suite_sizes[i % 18];

			suite_fill(sbuf + i * 100000, (size_t)n, suite_rank, (unsigned)(call * N + i));
			MPI_Isend(sbuf + i * 100000, n, MPI_BYTE, right(), i, c, &q[N + i]);
		}
		complete(call, call == WAITALL || call == TESTALL ? 2 * N + 1 : 2 * N, q, st);
		for (i = 0; i < 2 * N; i++)
			CHECK(q[i] == MPI_REQUEST_NULL);
		for (i = 0; i < N; i++) {
			size_t n = suite_sizes[i % 18];

			suite_status(&st[i], left(), i, n);
			suite_verify(rbuf + i * 100000, n, n + PAD, left(), (unsigned)(call * N + i));
		}
	}
	MPI_Comm_free(&other);
}

static void get_status_and_free(MPI_Comm comm)
{
	int v = suite_rank, w = -1, flag = 0, i;
	MPI_Request s, r;
	MPI_Status st;

	MPI_Irecv(&w, 1, MPI_INT, left(), 3, comm, &r);
	MPI_Request_get_status(r, &flag, &st);
	CHECK(!flag || suite_size > 1 || suite_rank == 0);
	MPI_Isend(&v, 1, MPI_INT, right(), 3, comm, &s);
	MPI_Request_free(&s);
	CHECK(s == MPI_REQUEST_NULL);
	for (flag = 0; !flag;)
		MPI_Request_get_status(r, &flag, &st);
	suite_status(&st, left(), 3, sizeof(int));
	CHECK(r != MPI_REQUEST_NULL);
	MPI_Wait(&r, &st);
	suite_status(&st, left(), 3, sizeof(int));
	CHECK(w == left());
	/* A receive whose request is freed still receives. */
	w = -1;
	MPI_Irecv(&w, 1, MPI_INT, left(), 4, comm, &r);
	MPI_Request_free(&r);
	MPI_Send(&v, 1, MPI_INT, right(), 4, comm);
	for (i = 0; i < 2; i++)		/* order: the second barrier message is behind it */
		MPI_Sendrecv(&v, 1, MPI_INT, right(), 5, &flag, 1, MPI_INT, left(), 5, comm, &st);
	CHECK(w == left());
}

static void cancel(MPI_Comm comm)
{
	int v = 7, w = -1, x = -1, cancelled;
	MPI_Request q;
	MPI_Status st;

	MPI_Irecv(&w, 1, MPI_INT, left(), 77, comm, &q);
	MPI_Cancel(&q);
	MPI_Wait(&q, &st);
	MPI_Test_cancelled(&st, &cancelled);
	CHECK(cancelled);
	MPI_Barrier(comm);
	MPI_Sendrecv(&v, 1, MPI_INT, right(), 77, &x, 1, MPI_INT, left(), 77, comm, &st);
	MPI_Test_cancelled(&st, &cancelled);
	CHECK(!cancelled && x == 7 && w == -1, "x %d w %d", x, w);
}

static void persistent(MPI_Comm comm)
{
	MPI_Request q[4];
	MPI_Status st[4];
	int round, i, n[2] = {100, 50000};

	buffers();
	for (i = 0; i < 2; i++) {
		MPI_Recv_init(rbuf + i * 100000, n[i] + PAD, MPI_BYTE, left(), i, comm, &q[i]);
		MPI_Send_init(sbuf + i * 100000, n[i], MPI_BYTE, right(), i, comm, &q[2 + i]);
	}
	MPI_Waitall(4, q, st);		/* inactive: returns at once */
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 2; i++) {
			suite_fill(sbuf + i * 100000, (size_t)n[i], suite_rank, (unsigned)(round * 2 + i));
			suite_blank(rbuf + i * 100000, (size_t)n[i] + PAD);
		}
		MPI_Startall(4, q);
		MPI_Waitall(4, q, st);
		for (i = 0; i < 2; i++) {
			CHECK(q[i] != MPI_REQUEST_NULL);
			suite_status(&st[i], left(), i, (size_t)n[i]);
			suite_verify(rbuf + i * 100000, (size_t)n[i], (size_t)n[i] + PAD, left(),
				     (unsigned)(round * 2 + i));
		}
	}
	for (i = 0; i < 4; i++)
		MPI_Request_free(&q[i]);
}

/* ---- Liveness ------------------------------------------------------------------------------------- */

/* A long send needs its sender's help while that waits in a collective of the library. */
static void isend_then_collective(MPI_Comm comm)
{
	int one = 1, sum, i;
	MPI_Request q;

	buffers();
	for (i = 0; i < 5; i++) {
		suite_fill(sbuf, 1 << 20, suite_rank, (unsigned)i);
		suite_blank(rbuf, (1 << 20) + PAD);
		if (suite_rank % 2 == 0 && suite_rank + 1 < suite_size) {
			MPI_Isend(sbuf, 1 << 20, MPI_BYTE, suite_rank + 1, i, comm, &q);
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
			MPI_Wait(&q, MPI_STATUS_IGNORE);
		} else if (suite_rank % 2) {
			MPI_Recv(rbuf, (1 << 20) + PAD, MPI_BYTE, suite_rank - 1, i, comm, MPI_STATUS_IGNORE);
			suite_verify(rbuf, 1 << 20, (1 << 20) + PAD, suite_rank - 1, (unsigned)i);
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
		} else {
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
		}
		CHECK(sum == suite_size);
	}
}

/* The other way round: the receiver waits natively, the sender in MPI_Send. */
static void irecv_then_collective(MPI_Comm comm)
{
	int one = 1, sum, i;
	MPI_Request q;

	buffers();
	for (i = 0; i < 5; i++) {
		suite_fill(sbuf, 1 << 20, suite_rank, (unsigned)i);
		suite_blank(rbuf, (1 << 20) + PAD);
		MPI_Irecv(rbuf, (1 << 20) + PAD, MPI_BYTE, left(), i, comm, &q);
		if (suite_rank == 0) {
			MPI_Send(sbuf, 1 << 20, MPI_BYTE, right(), i, comm);
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
		} else {
			MPI_Request s;

			MPI_Isend(sbuf, 1 << 20, MPI_BYTE, right(), i, comm, &s);
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
			MPI_Wait(&s, MPI_STATUS_IGNORE);
		}
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		suite_verify(rbuf, 1 << 20, (1 << 20) + PAD, left(), (unsigned)i);
	}
}

/* While we wait in a call of ours, a peer may need the library to move. */
static void native_behind_ours(MPI_Comm comm)
{
	static int big[1 << 18];
	MPI_Request q;
	int v = 0, i;

	if (suite_rank > 1) {
		for (i = 0; i < 3; i++) {
			MPI_Ibcast(big, 1 << 18, MPI_INT, 0, comm, &q);
			MPI_Wait(&q, MPI_STATUS_IGNORE);
		}
		return;
	}
	for (i = 0; i < 3; i++) {
		MPI_Ibcast(big, 1 << 18, MPI_INT, 0, comm, &q);
		if (suite_rank == 0) {
			MPI_Recv(&v, 1, MPI_INT, 1, 1, comm, MPI_STATUS_IGNORE);
			MPI_Wait(&q, MPI_STATUS_IGNORE);
		} else {
			MPI_Wait(&q, MPI_STATUS_IGNORE);	/* needs rank 0's library */
			MPI_Send(&v, 1, MPI_INT, 0, 1, comm);
		}
	}
}

/* More eager messages than any ring holds, without a receive in sight; then the other way. */
static void flood(MPI_Comm comm)
{
	enum { N = 3000 };
	MPI_Request *q = malloc(N * sizeof(*q));
	static unsigned char out[N][48], in[N][48];
	int i;

	CHECK(q);
	for (i = 0; i < N; i++) {
		suite_fill(out[i], 48, suite_rank, (unsigned)i);
		MPI_Isend(out[i], i % 49, MPI_BYTE, right(), i % 7, comm, &q[i]);
	}
	MPI_Barrier(comm);
	for (i = 0; i < N; i++) {
		suite_blank(in[i], 48);
		MPI_Recv(in[i], 48, MPI_BYTE, left(), i % 7, comm, MPI_STATUS_IGNORE);
		suite_verify(in[i], (size_t)(i % 49), 48, left(), (unsigned)i);
	}
	MPI_Waitall(N, q, MPI_STATUSES_IGNORE);
	free(q);
}

/* ---- Errors --------------------------------------------------------------------------------------- */

static void truncation(MPI_Comm comm)
{
	static const int sent[] = {200, 100000}, room[] = {150, 60000};
	int i, rc, class;
	MPI_Request q[2];
	MPI_Status st[2];

	buffers();
	for (i = 0; i < 2; i++) {
		suite_fill(sbuf, (size_t)sent[i], suite_rank, (unsigned)i);
		suite_blank(rbuf, (size_t)sent[i]);
		MPI_Isend(sbuf, sent[i], MPI_BYTE, right(), 1, comm, &q[0]);
		rc = MPI_Recv(rbuf, room[i], MPI_BYTE, left(), 1, comm, &st[0]);
		MPI_Error_class(rc, &class);
		CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
		MPI_Wait(&q[0], MPI_STATUS_IGNORE);
		for (int k = room[i]; k < sent[i]; k++)
			CHECK(rbuf[k] == 0xee, "byte %d written beyond the buffer", k);
		/* In an array: the others complete, this one's status tells. */
		MPI_Irecv(rbuf, room[i], MPI_BYTE, left(), 2, comm, &q[0]);
		MPI_Isend(sbuf, sent[i], MPI_BYTE, right(), 2, comm, &q[1]);
		rc = MPI_Waitall(2, q, st);
		CHECK(rc == MPI_ERR_IN_STATUS, "rc %d", rc);
		MPI_Error_class(st[0].MPI_ERROR, &class);
		CHECK(class == MPI_ERR_TRUNCATE && st[1].MPI_ERROR == MPI_SUCCESS);
	}
}

static void bad_arguments(MPI_Comm comm)
{
	int v = 0, class, rc;

	rc = MPI_Send(&v, 1, MPI_INT, suite_size, 1, comm);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_RANK, "class %d", class);
	rc = MPI_Send(&v, 1, MPI_INT, 0, -5, comm);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_TAG, "class %d", class);
	rc = MPI_Send(&v, -1, MPI_INT, 0, 1, comm);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_COUNT, "class %d", class);
	rc = MPI_Send(&v, 1, MPI_DATATYPE_NULL, 0, 1, comm);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_TYPE, "class %d", class);
	rc = MPI_Recv(&v, 1, MPI_INT, suite_size + 3, 1, comm, MPI_STATUS_IGNORE);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_RANK, "class %d", class);
}

static void bsend_overflow(MPI_Comm comm)
{
	static char attached[2000];
	MPI_Request q;
	int rc, class, size;
	void *base;

	buffers();
	MPI_Buffer_attach(attached, sizeof(attached));
	rc = MPI_Bsend(sbuf, 20000, MPI_BYTE, right(), 1, comm);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_BUFFER, "class %d", class);
	MPI_Irecv(rbuf, 100, MPI_BYTE, left(), 1, comm, &q);
	MPI_Bsend(sbuf, 100, MPI_BYTE, right(), 1, comm);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	MPI_Buffer_detach(&base, &size);
}

static const struct suite_case cases[] = {
	{.name = "modes", .run = modes, .min_ranks = 1},
	{.name = "unexpected", .run = unexpected, .min_ranks = 1},
	{.name = "ordered", .run = ordered, .min_ranks = 1},
	{.name = "wildcards", .run = wildcards, .min_ranks = 1},
	{.name = "gather_any", .run = gather_any, .min_ranks = 2},
	{.name = "proc_null", .run = proc_null, .min_ranks = 1,
	 .native_defect = "MPICH 4.0: no MPI_PROC_NULL in the status of MPI_Irecv"},
	{.name = "to_self", .run = to_self, .min_ranks = 1},
	{.name = "sendrecv", .run = sendrecv, .min_ranks = 1},
	{.name = "completion", .run = completion, .min_ranks = 1},
	{.name = "get_status_and_free", .run = get_status_and_free, .min_ranks = 1},
	{.name = "cancel", .run = cancel, .min_ranks = 2},
	{.name = "persistent", .run = persistent, .min_ranks = 1},
	{.name = "isend_then_collective", .run = isend_then_collective, .min_ranks = 2},
	{.name = "irecv_then_collective", .run = irecv_then_collective, .min_ranks = 2},
	{.name = "native_behind_ours", .run = native_behind_ours, .min_ranks = 2},
	{.name = "flood", .run = flood, .min_ranks = 1},
	{.name = "truncation", .run = truncation, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "Open MPI 4.1 writes beyond the buffer (CMA)"},
	{.name = "bad_arguments", .run = bad_arguments, .min_ranks = 2, .changes_errors = true},
	{.name = "bsend_overflow", .run = bsend_overflow, .min_ranks = 1, .changes_errors = true,
	 .native_defect = "Open MPI 4.1 hangs in MPI_Buffer_detach after the error"},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
