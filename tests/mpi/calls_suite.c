/*
 * calls_suite.c - calls that few programs make, of which each once went past the layer: over
 * rails they do what they do natively.
 */
#include "config.h"

#include "suite.h"

static int right(void)
{
	return (suite_rank + 1) % suite_size;
}

static int left(void)
{
	return (suite_rank + suite_size - 1) % suite_size;
}

enum { ROOM = 1 << 20, PAD = 64 };

static unsigned char from[ROOM], to[ROOM + PAD];

/* ---- MPI_Isendrecv ---------------------------------------------------------------------- */

#ifdef HAVE_MPI_ISENDRECV

static void finish(int how, MPI_Request *q, MPI_Status *st)
{
	MPI_Request pair[3] = {MPI_REQUEST_NULL, *q, MPI_REQUEST_NULL};
	MPI_Status three[3];
	int flag = 0, index = -1, out = 0;

	switch (how % 4) {
	case 0:
		MPI_Wait(q, st);
		break;
	case 1:
		while (!flag)
			MPI_Test(q, &flag, st);
		break;
	case 2:
		MPI_Waitall(3, pair, three);
		*st = three[1];
		*q = pair[1];
		break;
	default:
		MPI_Waitsome(3, pair, &out, &index, st);
		CHECK(out == 1 && index == 1);
		*q = pair[1];
	}
	CHECK(*q == MPI_REQUEST_NULL);
}

static void isendrecv(MPI_Comm comm)
{
	MPI_Request q;
	MPI_Status st;
	int i, n;

	for (i = 0; i < suite_size_count && suite_sizes[i] <= ROOM; i++) {
		n = (int)suite_sizes[i];
		suite_fill(from, (size_t)n, suite_rank, (unsigned)i);
		suite_blank(to, (size_t)n + PAD);
		MPI_Isendrecv(from, n, MPI_BYTE, right(), i, to, n + PAD, MPI_BYTE, left(), i, comm, &q);
		finish(i, &q, &st);
		suite_status(&st, left(), i, (size_t)n);
		suite_verify(to, (size_t)n, (size_t)n + PAD, left(), (unsigned)i);

		suite_fill(to, (size_t)n, suite_rank, (unsigned)i + 1);
		MPI_Isendrecv_replace(to, n, MPI_BYTE, right(), i, left(), i, comm, &q);
		finish(i + 1, &q, &st);
		suite_status(&st, left(), i, (size_t)n);
		suite_verify(to, (size_t)n, (size_t)n + PAD, left(), (unsigned)i + 1);
	}
}

/* Each half meets any other kind of call. */
static void isendrecv_halves(MPI_Comm comm)
{
	static const int sizes[] = {8, 100000};
	MPI_Request q;
	MPI_Status st;
	int i, n;

	for (i = 0; i < 2; i++) {
		n = sizes[i];
		suite_fill(from, (size_t)n, suite_rank, 3);
		suite_blank(to, (size_t)n + PAD);
		if (suite_rank % 2 == 0) {
			MPI_Isendrecv(from, n, MPI_BYTE, right(), 1, to, n, MPI_BYTE, left(),
				      MPI_ANY_TAG, comm, &q);
			MPI_Wait(&q, &st);
		} else {
			MPI_Request s;

			MPI_Isend(from, n, MPI_BYTE, right(), 1, comm, &s);
			MPI_Recv(to, n, MPI_BYTE, MPI_ANY_SOURCE, 1, comm, &st);
			MPI_Wait(&s, MPI_STATUS_IGNORE);
		}
		suite_status(&st, left(), 1, (size_t)n);
		suite_verify(to, (size_t)n, (size_t)n + PAD, left(), 3);
	}
}

static void isendrecv_nobody(MPI_Comm comm)
{
	int one = suite_rank, two = -1, count;
	MPI_Request q, r;
	MPI_Status st;

	MPI_Isendrecv(&one, 1, MPI_INT, MPI_PROC_NULL, 1, &two, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &q);
	MPI_Wait(&q, &st);
	MPI_Get_count(&st, MPI_INT, &count);
	CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG && !count);

	MPI_Irecv(&two, 1, MPI_INT, left(), 2, comm, &r);
	MPI_Isendrecv(&one, 1, MPI_INT, right(), 2, NULL, 0, MPI_INT, MPI_PROC_NULL, 2, comm, &q);
	MPI_Wait(&q, &st);
	CHECK(st.MPI_SOURCE == MPI_PROC_NULL);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(two == left());

	MPI_Isend(&one, 1, MPI_INT, right(), 3, comm, &r);
	MPI_Isendrecv_replace(&two, 1, MPI_INT, MPI_PROC_NULL, 3, left(), 3, comm, &q);
	MPI_Wait(&q, &st);
	suite_status(&st, left(), 3, sizeof(int));
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(two == left());
}

enum { COLUMN = 30000 };
static int column[2 * COLUMN];

static bool column_is_from(int rank)
{
	const volatile int *at = column;
	int i;

	for (i = 0; i < 2 * COLUMN; i++)
		if (at[i] != (i % 2 ? suite_rank : rank) * 1000000 + i)
			return false;
	return true;
}

/* Data that is not contiguous; and the request is given back before it is complete. */
static void isendrecv_typed(MPI_Comm comm)
{
	MPI_Datatype every_other;
	MPI_Request q;
	int i, freed, flag;

	for (freed = 0; freed < 2; freed++) {
		for (i = 0; i < 2 * COLUMN; i++)
			column[i] = suite_rank * 1000000 + i;
		MPI_Type_vector(COLUMN, 1, 2, MPI_INT, &every_other);
		MPI_Type_commit(&every_other);
		MPI_Isendrecv_replace(column, 1, every_other, right(), 1, left(), 1, comm, &q);
		MPI_Type_free(&every_other);
		if (freed)
			MPI_Request_free(&q);
		else
			MPI_Wait(&q, MPI_STATUS_IGNORE);
		CHECK(q == MPI_REQUEST_NULL);
		while (freed && !column_is_from(left()))
			MPI_Iprobe(MPI_ANY_SOURCE, 99, comm, &flag, MPI_STATUS_IGNORE);
		CHECK(column_is_from(left()));
		MPI_Barrier(comm);
	}
}

static void isendrecv_truncates(MPI_Comm comm)
{
	static const int sizes[] = {100, 100000};
	MPI_Request q;
	int i, rc, class;

	for (i = 0; i < 2; i++) {
		MPI_Isendrecv(from, sizes[i], MPI_BYTE, right(), 1, to, sizes[i] / 2, MPI_BYTE, left(), 1,
			      comm, &q);
		rc = MPI_Wait(&q, MPI_STATUS_IGNORE);
		MPI_Error_class(rc, &class);
		CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
	}
	rc = MPI_Isendrecv(from, 1, MPI_BYTE, suite_size, 1, to, 1, MPI_BYTE, left(), 1, comm, &q);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_RANK, "class %d", class);
}

/* Counts of type MPI_Count, and a buffer that is attached with one. */
#ifdef HAVE_MPI_SEND_C
static void large_counts(MPI_Comm comm)
{
	static char buffer[300000];
	MPI_Datatype every_other;
	MPI_Count size;
	MPI_Request q;
	MPI_Status st;
	void *base;
	int i;

	suite_fill(from, 200000, suite_rank, 5);
	suite_blank(to, 200000 + PAD);
	MPI_Buffer_attach_c(buffer, sizeof(buffer));
	MPI_Irecv_c(to, 200000 + PAD, MPI_BYTE, left(), 1, comm, &q);
	MPI_Bsend_c(from, 200000, MPI_BYTE, right(), 1, comm);
	MPI_Wait(&q, &st);
	suite_status(&st, left(), 1, 200000);
	suite_verify(to, 200000, 200000 + PAD, left(), 5);
	MPI_Buffer_detach_c(&base, &size);
	CHECK(base == buffer && size == sizeof(buffer));

	suite_blank(to, 1000);
	MPI_Isendrecv_c(from, 1000, MPI_BYTE, right(), 2, to, 1000, MPI_BYTE, left(), 2, comm, &q);
	MPI_Wait(&q, &st);
	suite_verify(to, 1000, 1000, left(), 5);
	suite_fill(to, 1000, suite_rank, 6);
	MPI_Isendrecv_replace_c(to, 1000, MPI_BYTE, right(), 2, left(), 2, comm, &q);
	MPI_Wait(&q, &st);
	suite_verify(to, 1000, 1000, left(), 6);

	/* A type that was made with large counts. */
	MPI_Type_vector_c(COLUMN, 1, 2, MPI_INT, &every_other);
	MPI_Type_commit(&every_other);
	for (i = 0; i < 2 * COLUMN; i++)
		column[i] = suite_rank * 1000000 + i;
	MPI_Sendrecv_replace(column, 1, every_other, right(), 3, left(), 3, comm, &st);
	CHECK(column_is_from(left()));
	for (i = 0; i < 2 * COLUMN; i += 2)
		column[i] = i;
	MPI_Bcast_c(column, 1, every_other, 0, comm);
	MPI_Type_free(&every_other);
}
#endif

#endif

/* ---- Requests of the program's own in the library's arrays ------------------------------- */

static MPI_Comm asked;

/* The function may call MPI, and does. */
static int query(void *extra, MPI_Status *status)
{
	int flag;

	MPI_Iprobe(MPI_ANY_SOURCE, 98, asked, &flag, MPI_STATUS_IGNORE);
	MPI_Status_set_elements(status, MPI_BYTE, *(int *)extra);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = 7;
	return MPI_SUCCESS;
}

static int query_end(void *extra)
{
	return MPI_SUCCESS;
}

static int query_cancel(void *extra, int complete)
{
	return MPI_SUCCESS;
}

/* A generalized request among ours, by every call that may ask it how it ended. */
static void generalized(MPI_Comm comm)
{
	int how, v, w, bytes = 5, out, index[3], flag, done, count;
	MPI_Request q[3];
	MPI_Status st[3];

	asked = comm;
	for (how = 0; how < 6; how++) {
		v = suite_rank;
		w = -1;
		MPI_Irecv(&w, 1, MPI_INT, left(), how, comm, &q[0]);
		MPI_Grequest_start(query, query_end, query_cancel, &bytes, &q[1]);
		MPI_Isend(&v, 1, MPI_INT, right(), how, comm, &q[2]);
		MPI_Grequest_complete(q[1]);
		for (done = 0; done < 3;) {
			flag = out = 0;
			switch (how) {
			case 0:
				MPI_Waitall(3, q, st);
				out = 3;
				break;
			case 1:
				MPI_Testall(3, q, &flag, st);
				out = flag ? 3 : 0;
				break;
			case 2:
				MPI_Waitany(3, q, &index[0], &st[0]);
				out = 1;
				break;
			case 3:
				MPI_Testany(3, q, &index[0], &out, &st[0]);
				break;
			case 4:
				MPI_Waitsome(3, q, &out, index, st);
				break;
			default:
				MPI_Testsome(3, q, &out, index, st);
			}
			done += out;
			if (how < 2 && out) {
				MPI_Get_count(&st[1], MPI_BYTE, &count);
				CHECK(count == bytes && st[1].MPI_SOURCE == 7, "count %d", count);
			}
		}
		CHECK(w == left() && q[1] == MPI_REQUEST_NULL);
	}
}

/*
 * An error of the library's own request in an array with ours: its handler may call MPI.
 * MPICH 4.0.2 runs it with a lock of its own held, without rails too.
 */
#if RG_OPENMPI
static int handled;

static void handle(MPI_Comm *comm, int *error, ...)
{
	int flag;

	handled++;
	MPI_Iprobe(MPI_ANY_SOURCE, 98, asked, &flag, MPI_STATUS_IGNORE);
}

static MPI_Comm native_comm(MPI_Comm comm)
{
	MPI_Info info;
	MPI_Comm made;

	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", "native");
	MPI_Comm_dup_with_info(comm, info, &made);
	MPI_Info_free(&info);
	return made;
}

static void handlers(MPI_Comm comm)
{
	int sent[2] = {1, 2}, word, late = 0, index, rc, class;
	MPI_Comm beside = native_comm(comm);
	MPI_Errhandler handler;
	MPI_Request q[2], s;

	asked = comm;
	handled = 0;
	MPI_Comm_create_errhandler(handle, &handler);
	MPI_Comm_set_errhandler(beside, handler);
	MPI_Irecv(&late, 1, MPI_INT, left(), 9, comm, &q[0]);
	MPI_Irecv(&word, 1, MPI_INT, left(), 1, beside, &q[1]);
	MPI_Isend(sent, 2, MPI_INT, right(), 1, beside, &s);
	rc = MPI_Waitany(2, q, &index, MPI_STATUS_IGNORE);
	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_TRUNCATE && index == 1 && handled == 1,
	      "class %d, index %d, handled %d times", class, index, handled);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);	/* nobody's other request is complete before that */
	MPI_Send(sent, 1, MPI_INT, right(), 9, comm);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
	CHECK(late == 1);
	MPI_Errhandler_free(&handler);
	MPI_Comm_free(&beside);
}
#endif

/* ---- MPI 4.1 -------------------------------------------------------------------------------- */

#ifdef HAVE_MPI_REQUEST_GET_STATUS_ALL

enum { FIRST, SECOND, NOTHING, RESTS, MEETS, LOOKED_AT };

static void some_are(const int *wanted, int count, MPI_Request *q, MPI_Status *st)
{
	int out = 0, indices[LOOKED_AT], bits = 0, wanted_bits = 0, i;

	for (i = 0; i < count; i++)
		wanted_bits |= 1 << wanted[i];
	while (out != count)
		MPI_Request_get_status_some(LOOKED_AT, q, &out, indices, st);
	for (i = 0; i < count; i++)
		bits |= 1 << indices[i];
	CHECK(bits == wanted_bits, "bits %x", (unsigned)bits);
	for (i = 0; i < count; i++)
		if (indices[i] == FIRST)
			suite_status(&st[i], left(), 1, 1000);
}

/*
 * The completed requests of an array that has requests of the library, too; the array stays as it
 * is.
 */
static void get_statuses(MPI_Comm comm)
{
	const int before[] = {FIRST, MEETS}, all[] = {FIRST, SECOND, MEETS};
	MPI_Request q[LOOKED_AT], kept[LOOKED_AT];
	MPI_Status st[LOOKED_AT], one;
	int flag, index;

	suite_fill(from, 1000, suite_rank, 1);
	suite_blank(to, 3000);
	MPI_Irecv(to, 1000, MPI_BYTE, left(), 1, comm, &q[FIRST]);
	MPI_Irecv(to + 1000, 2000, MPI_BYTE, left(), 2, comm, &q[SECOND]);
	q[NOTHING] = MPI_REQUEST_NULL;
	MPI_Recv_init(to, 1, MPI_BYTE, left(), 3, comm, &q[RESTS]);
	MPI_Ibarrier(comm, &q[MEETS]);
	memcpy(kept, q, sizeof(q));
	MPI_Send(from, 1000, MPI_BYTE, right(), 1, comm);
	some_are(before, 2, q, st);
	MPI_Request_get_status_any(LOOKED_AT, q, &index, &flag, &one);
	CHECK(flag && (index == FIRST || index == MEETS), "%d %d", flag, index);
	MPI_Request_get_status_any(1, &q[SECOND], &index, &flag, &one);
	CHECK(!flag);
	MPI_Request_get_status_all(LOOKED_AT, q, &flag, st);
	CHECK(!flag);
	MPI_Barrier(comm);
	MPI_Send(from, 900, MPI_BYTE, right(), 2, comm);
	for (flag = 0; !flag;)
		MPI_Request_get_status_all(LOOKED_AT, q, &flag, st);
	suite_status(&st[FIRST], left(), 1, 1000);
	suite_status(&st[SECOND], left(), 2, 900);
	suite_status(&st[NOTHING], MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	suite_status(&st[RESTS], MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	some_are(all, 3, q, st);
	CHECK(memcmp(q, kept, sizeof(q)) == 0);
	MPI_Waitall(LOOKED_AT, q, MPI_STATUSES_IGNORE);
	suite_verify(to, 1000, 1000, left(), 1);
	suite_verify(to + 1000, 900, 2000, left(), 1);

	/* The rest has no active request. */
	MPI_Request_get_status_all(LOOKED_AT, q, &flag, st);
	CHECK(flag);
	MPI_Request_get_status_any(LOOKED_AT, q, &index, &flag, &one);
	CHECK(flag && index == MPI_UNDEFINED, "%d %d", flag, index);
	suite_status(&one, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	MPI_Request_get_status_some(LOOKED_AT, q, &index, &(int){0}, st);
	CHECK(index == MPI_UNDEFINED, "%d", index);
	MPI_Request_free(&q[RESTS]);
}
#endif

#ifdef HAVE_MPI_BUFFER_FLUSH
enum { LONG_BYTES = 300000 };

static int bsend(MPI_Comm comm)
{
	int class;

	MPI_Error_class(MPI_Bsend(from, LONG_BYTES, MPI_BYTE, right(), 1, comm), &class);
	return class;
}

static void take_one(MPI_Comm comm)
{
	suite_blank(to, LONG_BYTES);
	MPI_Recv(to, LONG_BYTES, MPI_BYTE, left(), 1, comm, MPI_STATUS_IGNORE);
	suite_verify(to, LONG_BYTES, LONG_BYTES, left(), 8);
}

/* A communicator's own buffer, which is full until its message has been taken. */
static void own_buffers(MPI_Comm comm)
{
	static char own[LONG_BYTES + MPI_BSEND_OVERHEAD + 1000], of_all[sizeof(own)];
	int i, size = 0;
	MPI_Request q;
	void *base;

	suite_fill(from, LONG_BYTES, suite_rank, 8);
	CHECK(bsend(comm) == MPI_ERR_BUFFER);
	MPI_Comm_attach_buffer(comm, own, sizeof(own));
	for (i = 0; i < 3; i++) {
		CHECK(bsend(comm) == MPI_SUCCESS, "%d", i);
		CHECK(bsend(comm) == MPI_ERR_BUFFER, "%d", i);
		if (i == 0) {
			take_one(comm);
			MPI_Comm_flush_buffer(comm);
		} else if (i == 1) {
			MPI_Comm_iflush_buffer(comm, &q);
			take_one(comm);
			MPI_Wait(&q, MPI_STATUS_IGNORE);
		} else {
			take_one(comm);
		}
	}
	MPI_Comm_detach_buffer(comm, &base, &size);
	CHECK(base == own && size == sizeof(own));
	CHECK(bsend(comm) == MPI_ERR_BUFFER);

	/* The buffer of the process is another one. */
	MPI_Buffer_attach(of_all, sizeof(of_all));
	CHECK(bsend(comm) == MPI_SUCCESS && bsend(comm) == MPI_ERR_BUFFER);
	MPI_Comm_attach_buffer(comm, own, sizeof(own));
	CHECK(bsend(comm) == MPI_SUCCESS && bsend(comm) == MPI_ERR_BUFFER);
	MPI_Buffer_iflush(&q);
	take_one(comm);
	take_one(comm);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	MPI_Comm_detach_buffer(comm, &base, &size);
	CHECK(bsend(comm) == MPI_SUCCESS);
	take_one(comm);
	MPI_Buffer_flush();
	MPI_Buffer_detach(&base, &size);
	CHECK(base == of_all);

	/* The buffer has the least size that is enough. */
	MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
	for (i = 0; i < 3; i++)
		CHECK(bsend(comm) == MPI_SUCCESS, "%d", i);
	for (i = 0; i < 3; i++)
		take_one(comm);
	MPI_Comm_detach_buffer(comm, &base, &size);
}
#endif

/* A handle of a request, through Fortran and back: mpi.h's macros are not these functions. */
#if RG_OPENMPI || MPICH_NUMVERSION >= 40200000
static void fortran_handles(MPI_Comm comm)
{
	MPI_Message message = MPI_MESSAGE_NULL;
	MPI_Request q, same;

	MPI_Irecv(to, 10, MPI_BYTE, left(), 1, comm, &q);
	same = (MPI_Request_f2c)((MPI_Request_c2f)(q));
	CHECK(same == q);
	MPI_Send(from, 10, MPI_BYTE, right(), 1, comm);
	MPI_Wait(&same, MPI_STATUS_IGNORE);
	MPI_Send(from, 10, MPI_BYTE, right(), 2, comm);
	MPI_Mprobe(left(), 2, comm, &message, MPI_STATUS_IGNORE);
	CHECK((MPI_Message_f2c)((MPI_Message_c2f)(message)) == message);
	MPI_Mrecv(to, 10, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}
#endif

/* ---- Beyond the standard ------------------------------------------------------------------ */

#ifdef HAVE_MPIX_QUERY_CUDA_SUPPORT
int MPIX_Query_cuda_support(void);

/* Rails carry no memory of GPUs, whatever the library would do. */
static void gpu_memory(MPI_Comm comm)
{
	CHECK(MPIX_Query_cuda_support() == 0);
}
#endif

#ifdef HAVE_MPIX_COMM_REVOKE
int MPIX_Comm_revoke(MPI_Comm comm);	/* mpi.h of MPICH, mpi-ext.h of Open MPI */

static void revoke(MPI_Comm comm)
{
	int class, rc = MPIX_Comm_revoke(comm);

	MPI_Error_class(rc, &class);
	CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION, "class %d", class);
}
#endif

static const struct suite_case cases[] = {
#ifdef HAVE_MPI_ISENDRECV
	{.name = "isendrecv", .run = isendrecv, .min_ranks = 1,
	 .native_defect = "MPICH 4.0.2: the status is another one's"},
	{.name = "isendrecv_halves", .run = isendrecv_halves, .min_ranks = 2,
	 .native_defect = "MPICH 4.0.2: the status is another one's"},
	{.name = "isendrecv_nobody", .run = isendrecv_nobody, .min_ranks = 1,
	 .native_defect = "MPICH 4.0.2: SIGSEGV with MPI_PROC_NULL"},
	{.name = "isendrecv_typed", .run = isendrecv_typed, .min_ranks = 1,
	 .native_defect = "MPICH 4.0.2: SIGSEGV"},
	{.name = "isendrecv_truncates", .run = isendrecv_truncates, .min_ranks = 1,
	 .changes_errors = true, .native_defect = "MPICH 4.0.2: no error"},
#ifdef HAVE_MPI_SEND_C
	{.name = "large_counts", .run = large_counts, .min_ranks = 1},
#endif
#endif
#ifdef HAVE_MPI_REQUEST_GET_STATUS_ALL
	{.name = "get_statuses", .run = get_statuses, .min_ranks = 1,
	 .native_defect = "MPICH 4.2.1: _some makes no progress while one is complete"},
#endif
#ifdef HAVE_MPI_BUFFER_FLUSH
	{.name = "own_buffers", .run = own_buffers, .min_ranks = 2, .changes_errors = true},
#endif
#if RG_OPENMPI || MPICH_NUMVERSION >= 40200000
	{.name = "fortran_handles", .run = fortran_handles, .min_ranks = 1},
#endif
	{.name = "generalized", .run = generalized, .min_ranks = 1},
#if RG_OPENMPI
	{.name = "handlers", .run = handlers, .min_ranks = 1},
#endif
#ifdef HAVE_MPIX_QUERY_CUDA_SUPPORT
	{.name = "gpu_memory", .run = gpu_memory, .min_ranks = 1},
#endif
#ifdef HAVE_MPIX_COMM_REVOKE
	{.name = "revoke", .run = revoke, .min_ranks = 1, .changes_errors = true,
	 .native_defect = "it works there, and the suite wants to go on"},
#endif
	{0},
};

int main(int argc, char **argv)
{
	bool multiple = getenv("SUITE_MULTIPLE");

	return suite_main(argc, argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, cases);
}
