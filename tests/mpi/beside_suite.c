/*
 * beside_suite.c - calls that stay the library's own (src/mpi/abi/calls.txt) among messages over
 * rails: on the same communicator, in the same arrays of requests, on communicators that are made
 * from a routed one.
 */
#include "config.h"

#include <unistd.h>

#include "beside.h"

enum { BYTES = 70000, TAG = BESIDE_TAG };

static unsigned char from[BYTES], to[BYTES + 16];

static int right(void)
{
	return (suite_rank + 1) % suite_size;
}

static int left(void)
{
	return (suite_rank + suite_size - 1) % suite_size;
}

/* A message goes round while `beside` is under way; all are complete, the message is right. */
static void ring_begin(MPI_Comm comm, unsigned message, MPI_Request q[2])
{
	suite_fill(from, BYTES, suite_rank, message);
	suite_blank(to, sizeof(to));
	MPI_Irecv(to, sizeof(to), MPI_BYTE, left(), TAG, comm, &q[0]);
	MPI_Isend(from, BYTES, MPI_BYTE, right(), TAG, comm, &q[1]);
}

static void ring_end(unsigned message)
{
	suite_verify(to, BYTES, sizeof(to), left(), message);
}

/* A communicator made from a routed one, by whatever constructor, carries messages. */
static void ring_on(MPI_Comm comm)
{
	int rank, size, out, in = -1;
	MPI_Status st;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	out = rank;
	MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 1, &in, 1, MPI_INT, (rank + size - 1) % size, 1,
		     comm, &st);
	CHECK(in == (rank + size - 1) % size && st.MPI_SOURCE == in, "in %d", in);
	MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, comm);
	CHECK(in == size * (size - 1) / 2);
}

/* ---- Collectives that are not ours --------------------------------------------------------- */

static void nonblocking_collectives(MPI_Comm comm)
{
	int one = 1, sum = 0, all[64] = {0}, root = suite_size - 1, word = suite_rank == root ? 42 : 0, i;
	MPI_Request q[6];

	CHECK(suite_size <= 64);
	ring_begin(comm, 1, q);
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &q[2]);
	MPI_Ibcast(&word, 1, MPI_INT, root, comm, &q[3]);
	MPI_Iallgather(&suite_rank, 1, MPI_INT, all, 1, MPI_INT, comm, &q[4]);
	MPI_Ibarrier(comm, &q[5]);
	/* Collectives of ours in between: each kind is begun in the same order on all ranks. */
	MPI_Barrier(comm);
	i = 1;
	MPI_Bcast(&i, 1, MPI_INT, 0, comm);
	MPI_Waitall(6, q, MPI_STATUSES_IGNORE);
	ring_end(1);
	CHECK(sum == suite_size && word == 42);
	for (i = 0; i < suite_size; i++)
		CHECK(all[i] == i);
}

/*
 * A loop of MPI_Testall waits natively: of its requests the one over rails is complete, and the
 * library's does not end before rank 0 has sent a message that rails carry and this rank has
 * posted.  Such a loop drives the transport, too.
 */
static void testall_beside(MPI_Comm comm)
{
	enum { ENDED, BARRIER, REQUESTS };
	MPI_Request q[REQUESTS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, large;
	int word = 0, flag = 0;

	if (suite_rank == 1) {
		suite_blank(to, sizeof(to));
		MPI_Irecv(to, sizeof(to), MPI_BYTE, 0, TAG, comm, &large);
		MPI_Irecv(&word, 1, MPI_INT, 0, TAG + 1, comm, &q[ENDED]);
		while (!flag)
			MPI_Request_get_status(q[ENDED], &flag, MPI_STATUS_IGNORE);
	} else if (suite_rank == 0) {
		word = 42;
		MPI_Send(&word, 1, MPI_INT, 1, TAG + 1, comm);
		suite_fill(from, BYTES, 0, 9);
		MPI_Ssend(from, BYTES, MPI_BYTE, 1, TAG, comm);
	}
	MPI_Ibarrier(comm, &q[BARRIER]);
	do
		MPI_Testall(REQUESTS, q, &flag, MPI_STATUSES_IGNORE);
	while (!flag);
	if (suite_rank != 1)
		return;
	CHECK(word == 42);
	MPI_Wait(&large, MPI_STATUS_IGNORE);
	suite_verify(to, BYTES, sizeof(to), 0, 9);
}

static void neighbourhoods(MPI_Comm comm)
{
	int periods[1] = {1}, dims[1] = {suite_size}, out[2], in[2] = {-1, -1}, i;
	MPI_Request q[3];
	MPI_Comm ring;

	MPI_Cart_create(comm, 1, dims, periods, 0, &ring);
	out[0] = suite_rank * 10;
	out[1] = suite_rank * 10 + 1;
	for (i = 0; i < 2; i++) {
		in[0] = in[1] = -1;
		ring_begin(ring, 2, q);
		if (i == 0) {
			MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
			q[2] = MPI_REQUEST_NULL;
		} else {
			MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring, &q[2]);
		}
		MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
		ring_end(2);
		/* With two ranks both neighbours are the same, and libraries differ in the order. */
		if (suite_size > 2)
			CHECK(in[0] == left() * 10 + 1 && in[1] == right() * 10, "%d %d", in[0], in[1]);
	}
	MPI_Comm_free(&ring);
}

#if MPI_VERSION >= 4
static void persistent_collectives(MPI_Comm comm)
{
	int one = suite_rank, sum, i;
	MPI_Request q[4];

	MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &q[0]);
	MPI_Barrier_init(comm, MPI_INFO_NULL, &q[1]);
	MPI_Recv_init(to, sizeof(to), MPI_BYTE, left(), TAG, comm, &q[2]);
	MPI_Send_init(from, BYTES, MPI_BYTE, right(), TAG, comm, &q[3]);
	for (i = 0; i < 3; i++) {
		sum = -1;
		suite_fill(from, BYTES, suite_rank, (unsigned)i);
		suite_blank(to, sizeof(to));
		MPI_Startall(4, q);
		MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
		CHECK(sum == suite_size * (suite_size - 1) / 2);
		ring_end((unsigned)i);
	}
	for (i = 0; i < 4; i++)
		MPI_Request_free(&q[i]);
}

/* Partitioned messages meet partitioned messages only, and they are all the library's. */
static void partitioned(MPI_Comm comm)
{
	enum { PARTS = 4, EACH = 1000 };
	static int out[PARTS * EACH], in[PARTS * EACH];
	MPI_Request q[4];
	int i, round, flag;

	MPI_Precv_init(in, PARTS, EACH, MPI_INT, left(), TAG, comm, MPI_INFO_NULL, &q[0]);
	MPI_Psend_init(out, PARTS, EACH, MPI_INT, right(), TAG, comm, MPI_INFO_NULL, &q[1]);
	MPI_Recv_init(to, sizeof(to), MPI_BYTE, left(), TAG, comm, &q[2]);
	MPI_Send_init(from, BYTES, MPI_BYTE, right(), TAG, comm, &q[3]);
	for (round = 0; round < 3; round++) {
		suite_fill(from, BYTES, suite_rank, 9);
		suite_blank(to, sizeof(to));
		MPI_Startall(4, q);
		for (i = 0; i < PARTS * EACH; i++)
			out[i] = suite_rank * 100000 + round * 10000 + i;
		MPI_Pready(0, q[1]);
		MPI_Pready_range(1, PARTS - 1, q[1]);
		for (flag = 0; !flag;)
			MPI_Parrived(q[0], PARTS - 1, &flag);
		MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
		for (i = 0; i < PARTS * EACH; i++)
			CHECK(in[i] == left() * 100000 + round * 10000 + i, "in[%d] = %d", i, in[i]);
		ring_end(9);
	}
	for (i = 0; i < 4; i++)
		MPI_Request_free(&q[i]);
}

/* A communicator from a session, in addition to the world of MPI_Init. */
static void sessions(MPI_Comm comm)
{
	MPI_Session session;
	MPI_Request q[2];
	MPI_Group group;
	MPI_Comm made;

	ring_begin(comm, 3, q);
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
	MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
	MPI_Comm_create_from_group(group, "beside", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
	ring_on(made);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	ring_end(3);
	MPI_Comm_free(&made);
	MPI_Group_free(&group);
	MPI_Session_finalize(&session);
}
#endif

/* ---- Communicators ------------------------------------------------------------------------- */

static void idup(MPI_Comm comm)
{
	MPI_Request q[3];
	MPI_Comm made, again;

	ring_begin(comm, 4, q);
	MPI_Comm_idup(comm, &made, &q[2]);
	MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
	ring_end(4);
	ring_on(made);
	MPI_Comm_dup(made, &again);
	MPI_Comm_free(&made);
	ring_on(again);
	MPI_Comm_free(&again);
#if MPI_VERSION >= 4
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", "stripe");
	MPI_Comm_idup_with_info(comm, info, &made, &q[0]);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
	MPI_Info_free(&info);
	ring_on(made);
	MPI_Comm_free(&made);
#endif
}

/* The two halves of a communicator, between them and as one again. */
static void intercommunicators(MPI_Comm comm)
{
	int low = suite_rank < suite_size / 2, v = suite_rank, w = -1, rank, remote, leader;
	MPI_Comm half, inter, copy, merged;
	MPI_Request q[2];
	MPI_Status st;

	MPI_Comm_split(comm, low, 0, &half);
	leader = low ? suite_size / 2 : 0;
	ring_begin(comm, 5, q);
	MPI_Intercomm_create(half, 0, comm, leader, TAG, &inter);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	ring_end(5);
	MPI_Comm_dup(inter, &copy);
	MPI_Comm_rank(copy, &rank);
	MPI_Comm_remote_size(copy, &remote);
	if (rank < remote && (!low || rank < suite_size / 2)) {
		MPI_Isend(&v, 1, MPI_INT, rank, 1, copy, &q[0]);
		MPI_Recv(&w, 1, MPI_INT, rank, 1, copy, &st);
		MPI_Wait(&q[0], MPI_STATUS_IGNORE);
		CHECK(w == (low ? suite_size / 2 : 0) + rank);
	}
	MPI_Intercomm_merge(copy, !low, &merged);
	ring_on(merged);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/* ---- Windows and files ------------------------------------------------------------------- */

static void windows(MPI_Comm comm)
{
	int *memory, v = suite_rank;
	MPI_Request q[3];
	MPI_Win win;

	MPI_Alloc_mem(sizeof(int), MPI_INFO_NULL, &memory);
	*memory = -1;
	MPI_Win_create(memory, sizeof(int), 1, MPI_INFO_NULL, comm, &win);
	ring_begin(comm, 6, q);
	MPI_Win_fence(0, win);
	MPI_Put(&v, 1, MPI_INT, right(), 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	CHECK(*memory == left());
	MPI_Barrier(comm);
	MPI_Win_lock_all(0, win);
	v += 100;
	MPI_Rput(&v, 1, MPI_INT, right(), 0, 1, MPI_INT, win, &q[2]);
	MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
	MPI_Win_unlock_all(win);
	MPI_Barrier(comm);
	MPI_Win_lock(MPI_LOCK_SHARED, suite_rank, 0, win);
	CHECK(*memory == left() + 100, "%d", *memory);
	MPI_Win_unlock(suite_rank, win);
	ring_end(6);
	MPI_Win_free(&win);
	MPI_Free_mem(memory);
}

/* Collective access: the library's two phases send messages of their own. */
static void files(MPI_Comm comm)
{
	enum { BLOCK = 1000, BLOCKS = 40 };
	static int out[BLOCK * BLOCKS], in[BLOCK * BLOCKS];
	char name[64] = "";
	MPI_Datatype mine;
	MPI_Request q[3];
	MPI_File file;
	int i;

	if (suite_rank == 0)
		snprintf(name, sizeof(name), "beside-%ld.tmp", (long)getpid());
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
	for (i = 0; i < BLOCK * BLOCKS; i++)
		out[i] = suite_rank * 1000000 + i;
	MPI_Type_vector(BLOCKS, BLOCK, BLOCK * suite_size, MPI_INT, &mine);
	MPI_Type_commit(&mine);
	MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
		      MPI_INFO_NULL, &file);
	MPI_File_set_view(file, (MPI_Offset)(suite_rank * BLOCK) * (MPI_Offset)sizeof(int), MPI_INT, mine,
			  "native", MPI_INFO_NULL);
	ring_begin(comm, 7, q);
	MPI_File_write_all(file, out, BLOCK * BLOCKS, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_sync(file);
	MPI_Barrier(comm);
	MPI_File_seek(file, 0, MPI_SEEK_SET);
	MPI_File_read_all(file, in, BLOCK * BLOCKS, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(!memcmp(in, out, sizeof(in)));
	memset(in, 0, sizeof(in));
	MPI_File_iread_at(file, 0, in, BLOCK * BLOCKS, MPI_INT, &q[2]);
	MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
	CHECK(!memcmp(in, out, sizeof(in)));
	ring_end(7);
	MPI_File_close(&file);
	MPI_Type_free(&mine);
}

/* ---- Statuses of ours in the library's hands ------------------------------------------------ */

static void statuses(MPI_Comm comm)
{
	struct pair { int i; double d; } out[3] = {{1, 2}, {3, 4}, {5, 6}}, in[3];
	int lengths[2] = {1, 1}, count, position = 0;
	MPI_Aint at[2] = {offsetof(struct pair, i), offsetof(struct pair, d)};
	MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, raw, pair;
	MPI_Fint fortran[sizeof(MPI_Status) / sizeof(MPI_Fint) + 8];
	char packed[64];
	MPI_Status st, copy;
	MPI_Request q;

	MPI_Type_create_struct(2, lengths, at, types, &raw);
	MPI_Type_create_resized(raw, 0, sizeof(struct pair), &pair);
	MPI_Type_commit(&pair);
	MPI_Isend(out, 2, pair, right(), 1, comm, &q);
	MPI_Recv(in, 3, pair, left(), 1, comm, &st);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	MPI_Get_elements(&st, pair, &count);
	CHECK(count == 4, "count %d", count);
	MPI_Status_c2f(&st, fortran);
	MPI_Status_f2c(fortran, &copy);
	suite_status(&copy, left(), 1, 2 * (sizeof(int) + sizeof(double)));
	/*
	 * Data of MPI_Pack are received by the type that they were packed from, and end inside an
	 * element.
	 */
	MPI_Pack(out, 1, pair, packed, sizeof(packed), &position, comm);
	MPI_Pack(&out[1].i, 1, MPI_INT, packed, sizeof(packed), &position, comm);
	MPI_Isend(packed, position, MPI_PACKED, right(), 2, comm, &q);
	MPI_Recv(in, 3, pair, left(), 2, comm, &st);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	MPI_Get_elements(&st, pair, &count);
	CHECK(count == 3 && in[0].d == 2 && in[1].i == 3, "count %d", count);
	MPI_Type_free(&raw);
	MPI_Type_free(&pair);
}

/* ---- Messages of the library's own, while calls of ours ask again and again --------------------- */

/* A long buffered send wants its sender's help, which is in no call of the library. */
static void looks(MPI_Comm comm)
{
	int room = ASK_WAYS * (BYTES + MPI_BSEND_OVERHEAD), how;
	MPI_Message message;
	long word;
	void *mem = malloc((size_t)room);
	MPI_Request q = MPI_REQUEST_NULL;
	MPI_Comm other;

	CHECK(mem);
	MPI_Comm_idup(comm, &other, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	MPI_Buffer_attach(mem, room);
	for (how = 0; how < ASK_WAYS && suite_rank < 2; how++) {
		word = how;
		if (suite_rank == 1) {
			MPI_Recv(to, BYTES, MPI_BYTE, 0, TAG, other, MPI_STATUS_IGNORE);
			suite_verify(to, BYTES, BYTES, 0, (unsigned)how);
			MPI_Send(&word, 1, MPI_LONG, 0, TAG, comm);
			continue;
		}
		suite_fill(from, BYTES, 0, (unsigned)how);
		word = -1;
		MPI_Bsend(from, BYTES, MPI_BYTE, 1, TAG, other);
		if (!ask_probes(how))
			MPI_Irecv(&word, 1, MPI_LONG, 1, TAG, comm, &q);
		while (!beside_ask(how, &q, 1, comm, &message))
			continue;
		beside_receive(how, true, 1, comm, &message, &word);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		CHECK(word == how, "%ld", word);
	}
	MPI_Buffer_detach(&mem, &room);
	free(mem);
	MPI_Comm_free(&other);
}

/*
 * MPICH's streams.  Of the communicators with several of them MPICH 4.2.1 frees what it has not
 * allocated; calls.sh reserves the stream.
 */
#ifdef HAVE_MPIX_STREAM_COMM_CREATE
static void streams(MPI_Comm comm)
{
	const int next = (suite_rank + 1) % suite_size, last = (suite_rank + suite_size - 1) % suite_size;
	MPIX_Stream stream;
	MPI_Request q;
	MPI_Comm one;

	MPIX_Stream_create(MPI_INFO_NULL, &stream);
	MPIX_Stream_comm_create(comm, stream, &one);
	suite_fill(from, BYTES, suite_rank, 3);
	suite_blank(to, BYTES);
	MPI_Irecv(to, BYTES, MPI_BYTE, last, TAG, one, &q);
	MPI_Send(from, BYTES, MPI_BYTE, next, TAG, one);
	MPIX_Stream_progress(stream);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	suite_verify(to, BYTES, BYTES, last, 3);
	MPI_Comm_free(&one);
	MPIX_Stream_free(&stream);
}
#endif

static const struct suite_case cases[] = {
	/* First: its messages find no connection where collectives are the library's. */
	{.name = "unasked", .run = beside_unasked, .min_ranks = 2},
	{.name = "nonblocking_collectives", .run = nonblocking_collectives, .min_ranks = 1},
	{.name = "testall_beside", .run = testall_beside, .min_ranks = 2},
	{.name = "neighbourhoods", .run = neighbourhoods, .min_ranks = 1},
#if MPI_VERSION >= 4
	{.name = "persistent_collectives", .run = persistent_collectives, .min_ranks = 1},
	{.name = "partitioned", .run = partitioned, .min_ranks = 1},
	{.name = "sessions", .run = sessions, .min_ranks = 1},
#endif
#ifdef HAVE_MPIX_STREAM_COMM_CREATE
	{.name = "streams", .run = streams, .min_ranks = 1},
#endif
	{.name = "looks", .run = looks, .min_ranks = 2},
	{.name = "one_sided", .run = beside_one_sided, .min_ranks = 2},
	{.name = "asked_once", .run = beside_asked_once, .min_ranks = 2},
	{.name = "answered_once", .run = beside_answered_once, .min_ranks = 2},
	{.name = "idup", .run = idup, .min_ranks = 1},
	{.name = "intercommunicators", .run = intercommunicators, .min_ranks = 2},
	{.name = "windows", .run = windows, .min_ranks = 2},	/* Open MPI 4.1: none for one */
	{.name = "files", .run = files, .min_ranks = 1},
	{.name = "statuses", .run = statuses, .min_ranks = 1},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, getenv("SUITE_MULTIPLE") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			  cases);
}
