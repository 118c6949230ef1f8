/*
 * assumptions_finalize.c - callbacks of MPI_COMM_SELF's attributes, which MPI_Finalize calls while
 * all of MPI still works (PETSc frees and sends there).  A case here only sets an attribute; its
 * callback is the test.  Both ranks set the same attributes, so callbacks meet.
 */
#include "assumptions.h"

enum { FINAL_TAG = 41 };

static int callbacks_set, callbacks_run;

typedef void final_fn(void);

struct final {
	final_fn *run;
	const char *name;
	int number;
};

/* The last attribute set is the first one deleted. */
static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
	struct final *f = value;
	int down = -1;

	suite_where = f->name;
	CHECK(MPI_Finalized(&down) == MPI_SUCCESS && !down);
	CHECK(f->number == callbacks_set - callbacks_run - 1, "%d", f->number);
	callbacks_run++;
	f->run();
	free(f);
	return MPI_SUCCESS;
}

static void set_callback(final_fn *run)
{
	struct final *f = malloc(sizeof(*f));
	int key;

	CHECK(f != NULL);
	*f = (struct final){ run, strdup(suite_where), callbacks_set++ };
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, f);
	MPI_Comm_free_keyval(&key);
}

/* After MPI_Finalize. */
bool finalize_well(void)
{
	return callbacks_run == callbacks_set;
}

/* ---- What there was before ----------------------------------------------------------- */

static MPI_Comm kept_comm;
static MPI_Request persistent[4], posted;
static unsigned char *allocated, *persistent_bytes;
static struct pair pending;
static MPI_Datatype every_other;
static MPI_Win window;
static int *window_base, posted_word;

static void comm_freed(void)
{
	int v = suite_rank;

	MPI_Sendrecv_replace(&v, 1, MPI_INT, !suite_rank, 1, !suite_rank, 1, kept_comm,
			     MPI_STATUS_IGNORE);
	CHECK(v == !suite_rank);
	MPI_Barrier(kept_comm);
	MPI_Comm_free(&kept_comm);
}

/* The info key makes rails wanted after the attribute was set, under --over native. */
static void comm_kept(void)
{
	MPI_Info info;

	set_callback(comm_freed);
	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", "stripe");
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &kept_comm);
	MPI_Info_free(&info);
}

/* Inactive ones that never started, one that has completed, one that still waits. */
static void persistent_freed(void)
{
	MPI_Startall(2, persistent);
	MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
	suite_verify(persistent_bytes + LARGE, LARGE, LARGE, !suite_rank, 77);
	for (int i = 0; i < 4; i++) {
		CHECK(MPI_Request_free(&persistent[i]) == MPI_SUCCESS);
		CHECK(persistent[i] == MPI_REQUEST_NULL);
	}
	free(persistent_bytes);
}

static void persistent_kept(void)
{
	int other = !suite_rank;

	persistent_bytes = malloc(2 * LARGE);
	CHECK(persistent_bytes != NULL);
	suite_fill(persistent_bytes, LARGE, suite_rank, 77);
	MPI_Send_init(persistent_bytes, LARGE, MPI_BYTE, other, 43, MPI_COMM_WORLD, &persistent[0]);
	MPI_Recv_init(persistent_bytes + LARGE, LARGE, MPI_BYTE, other, 43, MPI_COMM_WORLD,
		      &persistent[1]);
	MPI_Bsend_init(persistent_bytes, SMALL, MPI_BYTE, other, 44, MPI_COMM_WORLD, &persistent[2]);
	MPI_Ssend_init(persistent_bytes, SMALL, MPI_BYTE, other, 45, MPI_COMM_WORLD, &persistent[3]);
	MPI_Startall(2, persistent);
	MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
	set_callback(persistent_freed);
}

static void memory_freed(void)
{
	suite_fill(allocated, LARGE, suite_rank, 6);
	MPI_Sendrecv_replace(allocated, LARGE, MPI_BYTE, !suite_rank, 4, !suite_rank, 4,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	suite_verify(allocated, LARGE, LARGE, !suite_rank, 6);
	CHECK(MPI_Free_mem(allocated) == MPI_SUCCESS);
}

static void memory_kept(void)
{
	MPI_Alloc_mem(LARGE, MPI_INFO_NULL, &allocated);
	set_callback(memory_freed);
}

static void pending_completed(void)
{
	pair_shut(&pending);
}

static void pending_kept(void)
{
	pair_open(&pending);
	set_callback(pending_completed);
}

static void receive_cancelled(void)
{
	int cancelled = 0;
	MPI_Status st;

	MPI_Cancel(&posted);
	MPI_Wait(&posted, &st);
	MPI_Test_cancelled(&st, &cancelled);
	CHECK(cancelled);
}

static void receive_posted(void)
{
	MPI_Irecv(&posted_word, 1, MPI_INT, !suite_rank, 99, MPI_COMM_WORLD, &posted);
	set_callback(receive_cancelled);
}

static void type_freed(void)
{
	int out[200], in[200];

	for (int i = 0; i < 200; i++) {
		out[i] = 3 * i + suite_rank;
		in[i] = -1;
	}
	MPI_Sendrecv(out, 1, every_other, !suite_rank, 5, in, 1, every_other, !suite_rank, 5,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 200; i++)
		CHECK(in[i] == (i % 2 ? -1 : 3 * i + !suite_rank));
	MPI_Type_free(&every_other);
}

static void type_kept(void)
{
	MPI_Type_vector(100, 1, 2, MPI_INT, &every_other);
	MPI_Type_commit(&every_other);
	set_callback(type_freed);
}

static void window_freed(void)
{
	int put = 70 + suite_rank;

	MPI_Win_fence(0, window);
	MPI_Put(&put, 1, MPI_INT, !suite_rank, 0, 1, MPI_INT, window);
	MPI_Win_fence(0, window);
	CHECK(*window_base == 70 + !suite_rank);
	MPI_Win_free(&window);
	free(window_base);
}

static void window_kept(void)
{
	/* From the heap: MPICH 4.0.2 loses a put into static memory, natively. */
	window_base = calloc(1, MIDDLE);
	CHECK(window_base != NULL);
	MPI_Win_create(window_base, MIDDLE, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	set_callback(window_freed);
}

/* ---- What is begun there ------------------------------------------------------------- */

static void all_sizes(void)
{
	traffic();
}

static void sends(void)
{
	set_callback(all_sizes);
}

static void probed(void)
{
	MPI_Request request;
	MPI_Message message;
	int v = suite_rank;
	MPI_Status st;

	MPI_Isend(&v, 1, MPI_INT, !suite_rank, FINAL_TAG, MPI_COMM_WORLD, &request);
	MPI_Probe(MPI_ANY_SOURCE, FINAL_TAG, MPI_COMM_WORLD, &st);
	suite_status(&st, !suite_rank, FINAL_TAG, sizeof(v));
	MPI_Mprobe(!suite_rank, FINAL_TAG, MPI_COMM_WORLD, &message, &st);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Mrecv(&v, 1, MPI_INT, &message, &st);
	CHECK(v == !suite_rank);
}

static void probes(void)
{
	set_callback(probed);
}

/* A send that nobody waits for, an attached buffer. */
static void buffered(void)
{
	static char room[MIDDLE + MPI_BSEND_OVERHEAD + 64];
	static unsigned char out[MIDDLE], in[MIDDLE];
	void *back;
	int bytes;

	suite_fill(out, MIDDLE, suite_rank, 8);
	MPI_Buffer_attach(room, sizeof(room));
	MPI_Bsend(out, MIDDLE, MPI_BYTE, !suite_rank, FINAL_TAG, MPI_COMM_WORLD);
	MPI_Recv(in, MIDDLE, MPI_BYTE, !suite_rank, FINAL_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	suite_verify(in, MIDDLE, MIDDLE, !suite_rank, 8);
	MPI_Buffer_detach(&back, &bytes);
	CHECK(back == room);
}

static void buffers(void)
{
	set_callback(buffered);
}

static void communicators_made(void)
{
	MPI_Comm one, two;
	int v = 1, sum = 0;

	MPI_Comm_dup(MPI_COMM_WORLD, &one);
	MPI_Comm_split(one, suite_rank, 0, &two);
	MPI_Allreduce(&v, &sum, 1, MPI_INT, MPI_SUM, two);
	CHECK(sum == 1);
	MPI_Allreduce(&v, &sum, 1, MPI_INT, MPI_SUM, one);
	CHECK(sum == 2);
	MPI_Comm_free(&two);
	MPI_Comm_disconnect(&one);
}

static void communicators(void)
{
	set_callback(communicators_made);
}

/* The last callback of all: a send without a wait for it, received by nobody before the end. */
static void left_behind(void)
{
	static unsigned char out[LARGE], in[LARGE];
	MPI_Request request;

	suite_fill(out, LARGE, suite_rank, 9);
	MPI_Isend(out, LARGE, MPI_BYTE, !suite_rank, FINAL_TAG, MPI_COMM_WORLD, &request);
	MPI_Request_free(&request);
	MPI_Recv(in, LARGE, MPI_BYTE, !suite_rank, FINAL_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	suite_verify(in, LARGE, LARGE, !suite_rank, 9);
}

static void leaves_behind(void)
{
	set_callback(left_behind);
}

const struct assumption finalize_cases[] = {
	{ "finalize", "a send that is not waited for", leaves_behind },
	{ "finalize", "persistent requests are started and freed", persistent_kept },
	{ "finalize", "memory is sent and freed", memory_kept },
	{ "finalize", "pending requests are completed", pending_kept },
	{ "finalize", "a posted receive is cancelled", receive_posted },
	{ "finalize", "a communicator is used and freed", comm_kept },
	{ "finalize", "a type is used and freed", type_kept },
	{ "finalize", "a window is used and freed", window_kept },
	{ "finalize", "messages of all sizes", sends },
	{ "finalize", "probes", probes },
	{ "finalize", "buffered sends", buffers },
	{ "finalize", "communicators are made and freed", communicators },
	{ 0 },
};
