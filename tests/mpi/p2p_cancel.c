/*
 * p2p_cancel.c - point-to-point: sends that are cancelled.  MPI_Wait returns without any call of
 * the receiver's; a cancelled message is nowhere, and later messages are right.
 */
#include "p2p.h"

enum { LONG = 200000, TAG = 5, OTHER = 6 };

/* Lengths by rendezvous because they are long, or because the send is synchronous. */
static const int lengths[] = {0, 8, 5000, LONG};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static MPI_Comm make_native(MPI_Comm comm)
{
	MPI_Comm other;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", "native");
	MPI_Comm_dup_with_info(comm, info, &other);
	MPI_Info_free(&info);
	return other;
}

static void start(int n, unsigned message, int to, MPI_Comm comm, MPI_Request *q)
{
	suite_fill(sbuf, (size_t)n, suite_rank, message);
	if (n == LONG && message % 2)
		MPI_Isend(sbuf, n, MPI_BYTE, to, TAG, comm, q);
	else
		MPI_Issend(sbuf, n, MPI_BYTE, to, TAG, comm, q);
}

static int ended_cancelled(MPI_Request *q)
{
	MPI_Status st;
	int cancelled;

	MPI_Wait(q, &st);
	MPI_Test_cancelled(&st, &cancelled);
	return cancelled;
}

static void cancel(MPI_Request *q)
{
	MPI_Cancel(q);
	CHECK(ended_cancelled(q), "it was not cancelled");
}

/* Every rank sends to its right; the message is the next that its left has sent. */
static void exchange(int n, unsigned message, MPI_Comm comm)
{
	MPI_Request q;
	MPI_Status st;

	suite_blank(rbuf, (size_t)n + PAD);
	start(n, message, right(), comm, &q);
	MPI_Recv(rbuf, n + PAD, MPI_BYTE, message % 3 ? left() : MPI_ANY_SOURCE,
		 message % 2 ? TAG : MPI_ANY_TAG, comm, &st);
	CHECK(!ended_cancelled(&q));
	suite_status(&st, left(), TAG, (size_t)n);
	suite_verify(rbuf, (size_t)n, (size_t)n + PAD, left(), message);
}

/* On all ranks; nobody sends what comes next before all have looked. */
static void check_none(MPI_Comm comm)
{
	int flag;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag, "a cancelled message is still there");
	MPI_Barrier(comm);
}

/* Nobody receives the first; the second is the first that is received. */
void p2p_cancel_sends(MPI_Comm comm)
{
	MPI_Request q;
	int i, flag;

	buffers();
	for (i = 0; i < 4 * LENGTHS; i++) {
		start(lengths[i % LENGTHS], (unsigned)i, right(), comm, &q);
		if (i % 3 == 1) {	/* the message has certainly come */
			MPI_Probe(left(), TAG, comm, MPI_STATUS_IGNORE);
			MPI_Barrier(comm);
		}
		MPI_Cancel(&q);
		if (i % 2)
			MPI_Cancel(&q);
		for (flag = 0; i % 3 == 2 && !flag;)
			MPI_Request_get_status(q, &flag, MPI_STATUS_IGNORE);
		CHECK(ended_cancelled(&q));
		MPI_Barrier(comm);
		check_none(comm);
		exchange(lengths[i % LENGTHS], (unsigned)i + 100, comm);
	}
}

/* The receiver is in a call of the library, where no call of ours moves anything. */
void p2p_cancel_beside_native(MPI_Comm comm)
{
	MPI_Comm other = make_native(comm);
	MPI_Request q;
	int i;

	buffers();
	for (i = 0; i < 2 * LENGTHS; i++) {
		if (suite_rank % 2 == 0) {
			start(lengths[i % LENGTHS], (unsigned)i, right(), comm, &q);
			cancel(&q);
		}
		MPI_Barrier(other);
		check_none(comm);
	}
	exchange(LONG, 50, comm);
	MPI_Comm_free(&other);
}

/*
 * The cancellation comes too late: taken out by MPI_Mprobe.  Where a receive was posted, it only
 * may: a message that has not left yet is not matched.  Then it is sent again.
 */
void p2p_cancel_matched(MPI_Comm comm)
{
	MPI_Message message;
	MPI_Request q[2];
	MPI_Status st;
	int i, cancelled;

	buffers();
	for (i = 0; i < 2 * LENGTHS; i++) {
		int n = lengths[i % LENGTHS];

		suite_blank(rbuf, (size_t)n + PAD);
		if (i < LENGTHS) {
			MPI_Irecv(rbuf, n + PAD, MPI_BYTE, left(), TAG, comm, &q[1]);
			MPI_Barrier(comm);
			start(n, (unsigned)i, right(), comm, &q[0]);
		} else {
			start(n, (unsigned)i, right(), comm, &q[0]);
			MPI_Mprobe(left(), TAG, comm, &message, &st);
			MPI_Barrier(comm);
		}
		MPI_Cancel(&q[0]);
		if (i >= LENGTHS) {
			MPI_Barrier(comm);
			MPI_Imrecv(rbuf, n + PAD, MPI_BYTE, &message, &q[1]);
		}
		cancelled = ended_cancelled(&q[0]);
		CHECK(!cancelled || i < LENGTHS, "taken out, yet cancelled");
		if (cancelled)
			MPI_Send(sbuf, n, MPI_BYTE, right(), TAG, comm);
		MPI_Wait(&q[1], &st);
		suite_status(&st, left(), TAG, (size_t)n);
		suite_verify(rbuf, (size_t)n, (size_t)n + PAD, left(), (unsigned)i);
		MPI_Barrier(comm);
		check_none(comm);
	}
}

void p2p_cancel_persistent(MPI_Comm comm)
{
	MPI_Request q[2];
	MPI_Status st;
	int i, n;

	buffers();
	for (i = 0; i < 2 * LENGTHS; i++) {
		n = lengths[i % LENGTHS];
		suite_fill(sbuf, (size_t)n, suite_rank, (unsigned)i);
		MPI_Ssend_init(sbuf, n, MPI_BYTE, right(), TAG, comm, &q[0]);
		MPI_Start(&q[0]);
		cancel(&q[0]);
		MPI_Barrier(comm);
		check_none(comm);
		/* Again, and this time it is wanted. */
		suite_blank(rbuf, (size_t)n + PAD);
		MPI_Irecv(rbuf, n + PAD, MPI_BYTE, left(), TAG, comm, &q[1]);
		MPI_Start(&q[0]);
		CHECK(!ended_cancelled(&q[0]) && q[0] != MPI_REQUEST_NULL);
		MPI_Wait(&q[1], &st);
		suite_verify(rbuf, (size_t)n, (size_t)n + PAD, left(), (unsigned)i);
		MPI_Request_free(&q[0]);
	}
}

/* No rank waits for a cancelled message: later messages say that it is gone. */
void p2p_cancel_and_free(MPI_Comm comm)
{
	MPI_Request q;
	MPI_Comm other;
	int i, v = -1;

	buffers();
	for (i = 0; i < 2 * LENGTHS; i++) {
		start(lengths[i % LENGTHS], (unsigned)i, right(), comm, &q);
		MPI_Cancel(&q);
		MPI_Request_free(&q);
		MPI_Sendrecv(&i, 1, MPI_INT, right(), OTHER, &v, 1, MPI_INT, left(), OTHER, comm,
			     MPI_STATUS_IGNORE);
		CHECK(v == i);
		exchange(lengths[i % LENGTHS], (unsigned)i + 100, comm);
	}
	/* Nor does the receiver know the communicator any more. */
	for (i = 0; i < LENGTHS; i++) {
		MPI_Comm_dup(comm, &other);
		start(lengths[i], (unsigned)i, right(), other, &q);
		MPI_Probe(left(), TAG, other, MPI_STATUS_IGNORE);
		MPI_Comm_free(&other);
		MPI_Barrier(comm);
		cancel(&q);
	}
}

/* A complete send stays complete; a cancelled one goes out of the middle of others. */
void p2p_cancel_some(MPI_Comm comm)
{
	enum { N = 60, ROW = 20000 };
	MPI_Request q[N];
	MPI_Status st[N], one;
	MPI_Datatype holes;
	int i, n, cancelled;

	buffers();
	MPI_Type_vector(ROW / 4, 1, 2, MPI_BYTE, &holes);
	MPI_Type_commit(&holes);
	suite_fill(sbuf, N * ROW, suite_rank, 7);
	for (i = 0; i < N; i++) {
		if (i % 4 == 3)
			MPI_Isend(sbuf + i * ROW, i, MPI_BYTE, right(), TAG, comm, &q[i]);
		else if (i % 4 == 2)
			MPI_Issend(sbuf + i * ROW, 1, holes, right(), TAG, comm, &q[i]);
		else
			MPI_Issend(sbuf + i * ROW, i % 8 ? i : ROW, MPI_BYTE, right(), TAG, comm, &q[i]);
		if (i % 2 == 0)
			MPI_Cancel(&q[i]);
	}
	MPI_Barrier(comm);
	for (i = 0; i < N; i += 2) {
		MPI_Wait(&q[i], &st[i]);
		MPI_Test_cancelled(&st[i], &cancelled);
		CHECK(cancelled, "message %d", i);
	}
	MPI_Barrier(comm);
	for (i = 1; i < N; i += 2) {
		n = i % 8 || i % 4 == 3 ? i : ROW;
		MPI_Recv(rbuf, ROW, MPI_BYTE, left(), TAG, comm, &one);
		suite_status(&one, left(), TAG, (size_t)n);
		for (int k = 0; k < n; k++)
			CHECK(rbuf[k] == suite_byte(left(), 7, (size_t)(i * ROW + k)));
	}
	MPI_Waitall(N, q, st);
	for (i = 1; i < N; i += 2) {
		MPI_Test_cancelled(&st[i], &cancelled);
		CHECK(!cancelled);
	}
	MPI_Type_free(&holes);
}

/* More messages than any ring holds come between the one that is cancelled and that being said. */
void p2p_cancel_flood(MPI_Comm comm)
{
	enum { N = 300 };
	MPI_Comm other = make_native(comm);
	static unsigned char out[N][48], in[48];
	MPI_Request q[N + 1];
	int i;

	buffers();
	start(LONG, 1, right(), comm, &q[N]);
	for (i = 0; i < N; i++) {
		suite_fill(out[i], 48, suite_rank, (unsigned)i);
		MPI_Isend(out[i], 48, MPI_BYTE, right(), TAG, comm, &q[i]);
	}
	if (suite_rank % 2 == 0)
		cancel(&q[N]);
	MPI_Barrier(other);
	if (suite_rank % 2)
		cancel(&q[N]);
	MPI_Barrier(other);
	for (i = 0; i < N; i++) {
		MPI_Recv(in, 48, MPI_BYTE, left(), TAG, comm, MPI_STATUS_IGNORE);
		suite_verify(in, 48, 48, left(), (unsigned)i);
	}
	MPI_Waitall(N, q, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&other);
}

void p2p_cancel_to_self(MPI_Comm comm)
{
	MPI_Request q[2];
	int i, n;

	buffers();
	for (i = 0; i < 2 * LENGTHS; i++) {
		n = lengths[i % LENGTHS];
		start(n, (unsigned)i, suite_rank, comm, &q[0]);
		if (i >= LENGTHS)
			MPI_Probe(suite_rank, TAG, comm, MPI_STATUS_IGNORE);
		cancel(&q[0]);
		check_none(comm);
		suite_blank(rbuf, (size_t)n + PAD);
		start(n, (unsigned)i + 100, suite_rank, comm, &q[0]);
		MPI_Irecv(rbuf, n + PAD, MPI_BYTE, suite_rank, TAG, comm, &q[1]);
		MPI_Cancel(&q[0]);
		/* The cancellation may be too late or not: either result is right. */
		if (ended_cancelled(&q[0])) {
			MPI_Cancel(&q[1]);
			CHECK(ended_cancelled(&q[1]));
		} else {
			MPI_Wait(&q[1], MPI_STATUS_IGNORE);
			suite_verify(rbuf, (size_t)n, (size_t)n + PAD, suite_rank, (unsigned)i + 100);
		}
	}
}
