/* p2p_requests.c - point-to-point: completion calls, persistent requests, liveness, errors. */
#include "p2p.h"

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
void p2p_completion(MPI_Comm comm)
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

void p2p_get_status_and_free(MPI_Comm comm)
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
	for (i = 0; i < 2; i++)		/* order: the second barrier message comes after it */
		MPI_Sendrecv(&v, 1, MPI_INT, right(), 5, &flag, 1, MPI_INT, left(), 5, comm, &st);
	CHECK(w == left());
}

void p2p_cancel(MPI_Comm comm)
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

void p2p_persistent(MPI_Comm comm)
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
void p2p_isend_then_collective(MPI_Comm comm)
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
void p2p_irecv_then_collective(MPI_Comm comm)
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
void p2p_native_behind_ours(MPI_Comm comm)
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
void p2p_flood(MPI_Comm comm)
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

void p2p_truncation(MPI_Comm comm)
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

void p2p_bad_arguments(MPI_Comm comm)
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

void p2p_bsend_overflow(MPI_Comm comm)
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
