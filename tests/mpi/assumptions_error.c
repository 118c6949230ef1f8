/* assumptions_error.c - errors are reported where, as and as often as the library does. */
#include "assumptions.h"

#include <setjmp.h>

static int class_of(int error)
{
	int class = -1;

	MPI_Error_class(error, &class);
	return class;
}

#define REFUSED(call, wanted) \
	do { \
		int class_ = class_of(call); \
		CHECK(class_ == (wanted), "class %d, not %d", class_, wanted); \
	} while (0)

static void bad_arguments(void)
{
	MPI_Datatype half;
	MPI_Request request;
	MPI_Status st;
	int v = 0;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	REFUSED(MPI_Send(&v, 1, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
	REFUSED(MPI_Send(&v, 1, MPI_INT, -7, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
	REFUSED(MPI_Recv(&v, 1, MPI_INT, 9, 0, MPI_COMM_WORLD, &st), MPI_ERR_RANK);
	REFUSED(MPI_Isend(&v, 1, MPI_INT, !suite_rank, -5, MPI_COMM_WORLD, &request), MPI_ERR_TAG);
	REFUSED(MPI_Send(&v, -1, MPI_INT, !suite_rank, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
	REFUSED(MPI_Irecv(&v, -1, MPI_INT, !suite_rank, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT);
	REFUSED(MPI_Send(&v, 1, MPI_DATATYPE_NULL, !suite_rank, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
	REFUSED(MPI_Send(&v, 1, MPI_INT, !suite_rank, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	REFUSED(MPI_Bcast(&v, 1, MPI_INT, 5, MPI_COMM_WORLD), MPI_ERR_ROOT);
	MPI_Type_vector(2, 1, 2, MPI_INT, &half);
	REFUSED(MPI_Send(&v, 1, half, !suite_rank, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
	MPI_Type_free(&half);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static int calls, last_error;
static MPI_Comm last_comm;

static void note(MPI_Comm *comm, int *error, ...)
{
	calls++;
	last_comm = *comm;
	last_error = class_of(*error);
}

/* A message that is too long, received in each way that there is. */
static int truncate(MPI_Comm comm, int how, size_t bytes)
{
	static unsigned char out[LARGE], in[LARGE];
	MPI_Request send, request;
	int rc, index, flag, n;
	MPI_Status st;

	MPI_Isend(out, (int)bytes, MPI_BYTE, !suite_rank, how, comm, &send);
	if (how == 0) {
		rc = MPI_Recv(in, 4, MPI_BYTE, !suite_rank, how, comm, &st);
	} else {
		rc = MPI_Irecv(in, 4, MPI_BYTE, !suite_rank, how, comm, &request);
		CHECK(rc == MPI_SUCCESS);
		switch (how) {
		case 1:
			rc = MPI_Wait(&request, &st);
			break;
		case 2:
			do
				rc = MPI_Test(&request, &flag, &st);
			while (rc == MPI_SUCCESS && !flag);
			break;
		case 3:
			rc = MPI_Waitany(1, &request, &index, &st);
			break;
		case 4:
			rc = MPI_Waitall(1, &request, &st);
			CHECK(class_of(rc) == MPI_ERR_IN_STATUS);
			rc = st.MPI_ERROR;
			break;
		default:
			rc = MPI_Waitsome(1, &request, &n, &index, &st);
			CHECK(class_of(rc) == MPI_ERR_IN_STATUS);
			rc = st.MPI_ERROR;
		}
		CHECK(request == MPI_REQUEST_NULL, "way %d", how);
	}
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	return class_of(rc);
}

static void too_long(void)
{
	const size_t sizes[] = { SMALL, MIDDLE, LARGE };
	MPI_Errhandler own;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	/* An array's error may be raised elsewhere than on the communicator of the message. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < 18; i++) {
		int class = truncate(comm, i % 6, sizes[i / 6]);

		CHECK(class == MPI_ERR_TRUNCATE, "class %d, way %d", class, i);
	}
	MPI_Comm_create_errhandler(note, &own);
	/* MPICH raises what MPI_Wait and MPI_Test find elsewhere than on its communicator. */
	MPI_Comm_set_errhandler(comm, own);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
	for (int i = 0; i < 9; i++) {
		calls = 0;
		truncate(comm, i % 3, sizes[i / 3]);
		CHECK(calls == 1 && last_error == MPI_ERR_TRUNCATE, "way %d: %d calls, class %d", i,
		      calls, last_error);
		CHECK(i % 3 || last_comm == comm);
	}
	MPI_Errhandler_free(&own);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&comm);
}

static jmp_buf back;

static void leap(MPI_Comm *comm, int *error, ...)
{
	longjmp(back, 1);
}

/* Out of the handler of one rank, whose call never returns; the other one goes on. */
static void longjmp_out(void)
{
	static unsigned char in[4];
	MPI_Errhandler own;
	volatile int jumps = 0;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(leap, &own);
	MPI_Comm_set_errhandler(comm, own);
	for (volatile int i = 0; i < 5; i++) {
		static unsigned char out[MIDDLE];
		static MPI_Request send;

		MPI_Isend(out, i % 2 ? MIDDLE : SMALL, MPI_BYTE, !suite_rank, 1, comm, &send);
		if (setjmp(back))
			jumps++;
		else
			MPI_Recv(in, 4, MPI_BYTE, !suite_rank, 1, comm, MPI_STATUS_IGNORE);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		traffic();
	}
	CHECK(jumps == 5, "%d", jumps);
	MPI_Errhandler_free(&own);
	MPI_Comm_free(&comm);
}

static void sends_on(MPI_Comm *comm, int *error, ...)
{
	calls++;
	last_error = class_of(*error);
	traffic();
}

/*
 * Handlers that talk, of requests in arrays: `others` are of MPI_COMM_WORLD, too, or of
 * MPI_COMM_SELF, which is not routed.  (Whether an error is raised depends on the library.)
 */
static void raise_in_arrays(MPI_Comm others)
{
	unsigned char out[SMALL] = { 0 }, in[4], late[4] = { 0 };
	MPI_Request request[3];
	MPI_Errhandler own;
	int index[2];

	MPI_Comm_create_errhandler(sends_on, &own);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
	for (int i = 0; i < 4; i++) {
		MPI_Comm comm = i % 2 ? others : MPI_COMM_WORLD;
		int me = comm == MPI_COMM_SELF ? 0 : suite_rank, n;

		calls = 0;
		MPI_Irecv(late, 4, MPI_BYTE, !suite_rank, 50, MPI_COMM_WORLD, &request[0]);
		MPI_Irecv(in, 4, MPI_BYTE, me, 51, comm, &request[1]);
		MPI_Isend(out, SMALL, MPI_BYTE, me, 51, comm, &request[2]);
		if (i < 2)
			MPI_Waitany(2, request, index, MPI_STATUS_IGNORE);
		else
			MPI_Waitsome(2, request, &n, index, MPI_STATUSES_IGNORE);
		/* A rank may have called its handler where the other rank has not. */
		if (calls == 0)
			traffic();
		MPI_Send(out, 4, MPI_BYTE, !suite_rank, 50, MPI_COMM_WORLD);
		MPI_Wait(&request[0], MPI_STATUS_IGNORE);
		MPI_Wait(&request[2], MPI_STATUS_IGNORE);
	}
	MPI_Errhandler_free(&own);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void handler_that_sends(void)
{
	raise_in_arrays(MPI_COMM_SELF);
}

static void handler_in_threads(void)
{
	raise_in_arrays(MPI_COMM_WORLD);
}

const struct assumption error_cases[] = {
	{ "errors", "bad arguments", bad_arguments },
	{ "errors", "messages too long", too_long },
	{ "longjmp", "longjmp out of a handler", longjmp_out },
	{ "handler", "a handler that sends", handler_that_sends },
	{ "thread-handler", "a handler that sends, in threads", handler_in_threads },
	{ 0 },
};
