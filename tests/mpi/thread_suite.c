/* thread_suite.c - MPI_THREAD_MULTIPLE: several threads in the same calls. */
#include "threads.h"

enum { THREADS = 4, ROUNDS = 150 };

static MPI_Comm shared;

/* Each thread has its tag; its partner is the same thread of the next rank. */
static void *worker(void *arg)
{
	int tag = (int)(intptr_t)arg, i, n, right = (suite_rank + 1) % suite_size;
	int left = (suite_rank + suite_size - 1) % suite_size;
	unsigned char *out = malloc(70000), *in = malloc(70000);
	MPI_Request q[2];
	MPI_Status st[2];

	CHECK(out && in);
	for (i = 0; i < ROUNDS; i++) {
		n = (int)suite_sizes[i % 20];
		suite_fill(out, (size_t)n, suite_rank * THREADS + tag, (unsigned)i);
		suite_blank(in, (size_t)n + 16);
		if (i % 2) {
			MPI_Irecv(in, n + 16, MPI_BYTE, left, tag, shared, &q[0]);
			MPI_Isend(out, n, MPI_BYTE, right, tag, shared, &q[1]);
			MPI_Waitall(2, q, st);
		} else {
			MPI_Sendrecv(out, n, MPI_BYTE, right, tag, in, n + 16, MPI_BYTE, left, tag, shared,
				     &st[0]);
		}
		suite_status(&st[0], left, tag, (size_t)n);
		suite_verify(in, (size_t)n, (size_t)n + 16, left * THREADS + tag, (unsigned)i);
	}
	free(out);
	free(in);
	return NULL;
}

static void threads(MPI_Comm comm)
{
	shared = comm;
	threads_run(THREADS, worker);
}

/* A thread waits for a message that another thread sends later. */
static void *late_sender(void *arg)
{
	int v = 42;

	MPI_Send(&v, 1, MPI_INT, suite_rank, 3, shared);
	return NULL;
}

static void wait_for_other_thread(MPI_Comm comm)
{
	pthread_t t;
	int v = 0, i;

	shared = comm;
	for (i = 0; i < 20; i++) {
		CHECK(pthread_create(&t, NULL, late_sender, NULL) == 0);
		MPI_Recv(&v, 1, MPI_INT, suite_rank, 3, comm, MPI_STATUS_IGNORE);
		CHECK(v == 42);
		pthread_join(t, NULL);
	}
}

enum { TYPE_ROUNDS = 100, TYPE_INTS = 6 };

static struct {
	MPI_Datatype type;
	pthread_barrier_t start;
} fresh;

/* Every other int of 2 * TYPE_INTS goes round the ring. */
static void exchange(MPI_Datatype type, int tag, int round)
{
	int right = (suite_rank + 1) % suite_size, left = (suite_rank + suite_size - 1) % suite_size;
	int out[2 * TYPE_INTS], in[2 * TYPE_INTS], i;

	for (i = 0; i < 2 * TYPE_INTS; i++) {
		out[i] = suite_rank * 1000000 + tag * 100000 + round * 100 + i;
		in[i] = -1;
	}
	MPI_Sendrecv(out, 1, type, right, tag, in, 1, type, left, tag, shared, MPI_STATUS_IGNORE);
	for (i = 0; i < 2 * TYPE_INTS; i++)
		CHECK(in[i] == (i % 2 ? -1 : left * 1000000 + tag * 100000 + round * 100 + i));
}

static MPI_Datatype every_other_int(void)
{
	MPI_Datatype type;

	MPI_Type_vector(TYPE_INTS, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

/* All meet a type that none has used; then each makes and frees its own, while others send. */
static void *type_worker(void *arg)
{
	int tag = (int)(intptr_t)arg, i;
	MPI_Datatype own;

	for (i = 0; i < TYPE_ROUNDS; i++) {
		pthread_barrier_wait(&fresh.start);
		if (tag == 0)
			fresh.type = every_other_int();
		pthread_barrier_wait(&fresh.start);
		exchange(fresh.type, tag, i);
		own = every_other_int();
		exchange(own, tag, i);
		MPI_Type_free(&own);
		pthread_barrier_wait(&fresh.start);
		if (tag == 0)
			MPI_Type_free(&fresh.type);
	}
	return NULL;
}

static void fresh_types(MPI_Comm comm)
{
	shared = comm;
	pthread_barrier_init(&fresh.start, NULL, THREADS);
	threads_run(THREADS, type_worker);
	pthread_barrier_destroy(&fresh.start);
}

/* ---- Collectives of communicators at once, while their algorithms race -------------------------- */

enum { RACERS = 2, RACES = 200, RACE_BYTES = 20000 };

static MPI_Comm race_comm[RACERS];

static void *racer(void *number)
{
	const int me = (int)(intptr_t)number;
	MPI_Comm comm = race_comm[me];
	unsigned char *in = malloc(RACE_BYTES), *out = malloc((size_t)suite_size * RACE_BYTES);

	CHECK(in && out);
	for (unsigned call = 0; call < RACES; call++) {
		const unsigned message = call * RACERS + (unsigned)me;
		const int root = (int)call % suite_size;

		suite_fill(in, RACE_BYTES, suite_rank, message);
		suite_blank(out, (size_t)suite_size * RACE_BYTES);
		MPI_Allgather(in, RACE_BYTES, MPI_BYTE, out, RACE_BYTES, MPI_BYTE, comm);
		for (int r = 0; r < suite_size; r++)
			suite_verify(out + r * RACE_BYTES, RACE_BYTES, RACE_BYTES, r, message);
		MPI_Bcast(in, RACE_BYTES, MPI_BYTE, root, comm);
		suite_verify(in, RACE_BYTES, RACE_BYTES, root, message);
		MPI_Allreduce(MPI_IN_PLACE, in, RACE_BYTES, MPI_BYTE, MPI_BOR, comm);
		suite_verify(in, RACE_BYTES, RACE_BYTES, root, message);
	}
	free(in);
	free(out);
	return NULL;
}

static void races(MPI_Comm comm)
{
	for (int i = 0; i < RACERS; i++)
		MPI_Comm_dup(comm, &race_comm[i]);
	threads_run(RACERS, racer);
	for (int i = 0; i < RACERS; i++)
		MPI_Comm_free(&race_comm[i]);
}

void threads_run(int n, void *(*body)(void *number))
{
	pthread_t t[THREADS];
	int i;

	CHECK(n <= THREADS);
	for (i = 0; i < n; i++)
		CHECK(pthread_create(&t[i], NULL, body, (void *)(intptr_t)i) == 0);
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

#define FORBIDDEN \
	"MPI forbids it: Open MPI 4.1 completes twice, hangs or frees twice, MPICH 4.0 ends the job"

static const struct suite_case cases[] = {
	{.name = "threads", .run = threads, .min_ranks = 1},
	{.name = "fresh_types", .run = fresh_types, .min_ranks = 1},
	{.name = "wait_for_other_thread", .run = wait_for_other_thread, .min_ranks = 1,
	 .native_defect = "MPICH 4.0 hangs: its receiver keeps the sending thread out"},
	{.name = "disjoint_lists", .run = threads_disjoint_lists, .min_ranks = 1},
	{.name = "get_status", .run = threads_get_status, .min_ranks = 1},
	{.name = "races", .run = races, .min_ranks = 1, .collective = true},
	{.name = "matched_probes", .run = threads_matched_probes, .min_ranks = 1},
	{.name = "freed_beside_ssend", .run = threads_freed_beside_ssend, .min_ranks = 1},
	{.name = "freed_beside_scatter", .run = threads_freed_beside_scatter, .min_ranks = 3,
	 .collective = true, .native_defect = "no promise: Open MPI's root serves ranks in turn"},
	{.name = "callbacks", .run = threads_callbacks, .min_ranks = 1},
	{.name = "error_handlers", .run = threads_error_handlers, .min_ranks = 1,
	 .native_defect = "MPICH 4.0 calls them with its lock held"},
	{.name = "memory", .run = threads_memory, .min_ranks = 1},
	{.name = "mixture", .run = threads_mixture, .min_ranks = 1},
	{.name = "completed_twice", .run = threads_completed_twice, .min_ranks = 1,
	 .native_defect = FORBIDDEN},
	{.name = "posted_anew", .run = threads_posted_anew, .min_ranks = 1,
	 .native_defect = FORBIDDEN},
	{.name = "ended_otherwise", .run = threads_ended_otherwise, .min_ranks = 1,
	 .native_defect = FORBIDDEN},
	{.name = "message_received_twice", .run = threads_message_received_twice, .min_ranks = 1,
	 .changes_errors = true, .native_defect = FORBIDDEN},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_MULTIPLE, cases);
}
