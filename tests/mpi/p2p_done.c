/*
 * p2p_done.c - point-to-point: sends that are complete before MPI_Isend returns.  Where messages
 * are sent at once, many requests of a program are such; what is done with one of them must not
 * be seen by the others.
 */
#include "p2p.h"

enum { N = 48, TAG = 9 };

static int out[N], in[N];

static void check_sent(const MPI_Status *st)
{
	int cancelled = 1;

	MPI_Test_cancelled(st, &cancelled);
	CHECK(!cancelled);
}

/* N messages to the right; the requests are the case's to complete. */
static void send_all(MPI_Comm comm, MPI_Request q[])
{
	for (int i = 0; i < N; i++) {
		out[i] = suite_rank * N + i;
		MPI_Isend(&out[i], 1, MPI_INT, right(), TAG, comm, &q[i]);
		CHECK(q[i] != MPI_REQUEST_NULL);
	}
}

static void receive_all(MPI_Comm comm)
{
	MPI_Status st;

	for (int i = 0; i < N; i++) {
		MPI_Recv(&in[i], 1, MPI_INT, left(), TAG, comm, &st);
		suite_status(&st, left(), TAG, sizeof(int));
		CHECK(in[i] == left() * N + i, "message %d: %d", i, in[i]);
	}
}

/* Every other one is freed, some of them before others are tested. */
void p2p_done_free(MPI_Comm comm)
{
	MPI_Request q[N];
	MPI_Status st;
	int flag;

	for (int round = 0; round < 3; round++) {
		send_all(comm, q);
		for (int i = round % 2; i < N; i += 2) {
			MPI_Request_free(&q[i]);
			CHECK(q[i] == MPI_REQUEST_NULL);
		}
		receive_all(comm);
		for (int i = 1 - round % 2; i < N; i += 2) {
			for (flag = 0; !flag;)
				MPI_Test(&q[i], &flag, &st);
			check_sent(&st);
			CHECK(q[i] == MPI_REQUEST_NULL);
		}
	}
}

/* A message is cancelled or it arrives; its neighbours arrive. */
void p2p_done_cancel(MPI_Comm comm)
{
	int gone[N] = {0}, gone_left[N];
	MPI_Request q[N];
	MPI_Status st;

	send_all(comm, q);
	for (int i = 0; i < N; i += 3)
		MPI_Cancel(&q[i]);
	for (int i = 0; i < N; i += 3) {
		MPI_Wait(&q[i], &st);
		MPI_Test_cancelled(&st, &gone[i]);
	}
	MPI_Sendrecv(gone, N, MPI_INT, right(), TAG + 1, gone_left, N, MPI_INT, left(), TAG + 1, comm,
		     &st);
	for (int i = 0; i < N; i++) {
		if (gone_left[i])
			continue;
		MPI_Recv(&in[i], 1, MPI_INT, left(), TAG, comm, MPI_STATUS_IGNORE);
		CHECK(in[i] == left() * N + i, "message %d: %d", i, in[i]);
	}
	for (int i = 0; i < N; i++) {
		if (i % 3 == 0)
			continue;
		MPI_Wait(&q[i], &st);
		check_sent(&st);
	}
	/* The next message was not cancelled. */
	send_all(comm, q);
	receive_all(comm);
	for (int i = 0; i < N; i++) {
		MPI_Wait(&q[i], &st);
		check_sent(&st);
	}
}

/* The request stays, as often as it is asked, also with a request that has gone. */
void p2p_done_get_status(MPI_Comm comm)
{
	MPI_Request q[N];
	MPI_Status st;
	int flag;

	send_all(comm, q);
	receive_all(comm);
	for (int i = 0; i < N; i++) {
		MPI_Request before = q[i];

		for (int k = 0; k < 3; k++) {
			for (flag = 0; !flag;)
				MPI_Request_get_status(q[i], &flag, &st);
			check_sent(&st);
			MPI_Request_get_status(q[N - 1], &flag, MPI_STATUS_IGNORE);
		}
		CHECK(q[i] == before);
		MPI_Wait(&q[i], &st);
		check_sent(&st);
		CHECK(q[i] == MPI_REQUEST_NULL);
	}
}

/* Count a request that index names; each is told once. */
static void told(MPI_Request q[], int index, bool seen[])
{
	if (index < 0 || index >= N + 2) {
		CHECK(false, "index %d", index);
		return;
	}
	CHECK(!seen[index], "%d is told twice", index);
	seen[index] = true;
	CHECK(index == N || q[index] == MPI_REQUEST_NULL);
}

/*
 * An array of complete sends, then a persistent send and a receive, taken out by one kind of call.
 */
static void take_out(MPI_Request q[], int kind)
{
	bool seen[N + 2] = {false};
	int left_over = N + 2, count, index[N + 2], flag;
	MPI_Status st[N + 2];

	while (left_over) {
		count = 1;
		if (kind == 0) {
			MPI_Waitany(N + 2, q, index, st);
		} else if (kind == 1) {
			MPI_Testany(N + 2, q, index, &flag, st);
			count = flag;
		} else if (kind == 2) {
			MPI_Waitsome(N + 2, q, &count, index, st);
		} else {
			MPI_Testsome(N + 2, q, &count, index, st);
		}
		for (int k = 0; k < count; k++) {
			told(q, index[k], seen);
			if (index[k] == N + 1)
				suite_status(&st[k], left(), TAG + 2, sizeof(int));
			else
				check_sent(&st[k]);
		}
		left_over -= count;
	}
	MPI_Testany(N + 2, q, index, &flag, st);
	CHECK(flag && index[0] == MPI_UNDEFINED, "flag %d, index %d", flag, index[0]);
}

void p2p_done_arrays(MPI_Comm comm)
{
	MPI_Request q[N + 2], received[N];
	int v = suite_rank, w;

	MPI_Send_init(&v, 1, MPI_INT, right(), TAG + 2, comm, &q[N]);
	for (int kind = 0; kind < 4; kind++) {
		w = -1;
		MPI_Irecv(&w, 1, MPI_INT, left(), TAG + 2, comm, &q[N + 1]);
		for (int i = 0; i < N; i++)
			MPI_Irecv(&in[i], 1, MPI_INT, left(), TAG, comm, &received[i]);
		send_all(comm, q);
		MPI_Start(&q[N]);
		take_out(q, kind);
		CHECK(w == left());
		MPI_Waitall(N, received, MPI_STATUSES_IGNORE);
		for (int i = 0; i < N; i++)
			CHECK(in[i] == left() * N + i, "message %d: %d", i, in[i]);
	}
	MPI_Request_free(&q[N]);
}

/* Each handle has a number in Fortran, which leads back to it while it is outstanding. */
void p2p_done_fortran(MPI_Comm comm)
{
	MPI_Request q[N], again;
	MPI_Fint f[N];
	MPI_Status st;

	send_all(comm, q);
	for (int i = 0; i < N; i++)
		f[i] = MPI_Request_c2f(q[i]);
	receive_all(comm);
	for (int i = N - 1; i >= 0; i--) {
		again = MPI_Request_f2c(f[i]);
		CHECK(again == q[i]);
		CHECK(MPI_Request_c2f(again) == f[i]);
		MPI_Wait(&again, &st);
		check_sent(&st);
		CHECK(again == MPI_REQUEST_NULL);
	}
}
