/* thread_allowed.c - what MPI allows several threads to do with the same objects. */
#include "threads.h"

enum { THREADS = 4, TAG = 60 };

static MPI_Comm shared;
static pthread_barrier_t meet;

/* ---- One array, a part of it for each thread -------------------------------------------------- */

enum { LISTS = 3, PART = 5, LIST_ROUNDS = 40, LONG = 20000 };

static MPI_Request array[LISTS * PART];
static unsigned char in[LISTS * PART][LONG], out[LISTS * PART][LONG];

static size_t bytes_of(int k)
{
	return k % 4 == 3 ? LONG : (size_t)k + 1;
}

static void wait_any(MPI_Request *part)
{
	int i, index;

	for (i = 0; i < PART; i++) {
		MPI_Waitany(PART, part, &index, MPI_STATUS_IGNORE);
		CHECK(index != MPI_UNDEFINED);
	}
}

static void test_some(MPI_Request *part)
{
	int indices[PART], n, done = 0;

	while (done < PART) {
		MPI_Testsome(PART, part, &n, indices, MPI_STATUSES_IGNORE);
		CHECK(n != MPI_UNDEFINED, "%d of %d", done, PART);
		done += n;
	}
}

/* Each posts receives into its part, sends what belongs there, and completes it in its own way. */
static void *list_worker(void *number)
{
	int me = (int)(intptr_t)number, round, k;
	MPI_Request *part = array + me * PART;
	MPI_Request sent[PART];

	for (round = 0; round < LIST_ROUNDS; round++) {
		for (k = me * PART; k < (me + 1) * PART; k++) {
			suite_blank(in[k], LONG);
			suite_fill(out[k], bytes_of(k), suite_rank, (unsigned)(round * 100 + k));
			MPI_Irecv(in[k], LONG, MPI_BYTE, threads_left(), TAG + k, shared, &array[k]);
			MPI_Isend(out[k], (int)bytes_of(k), MPI_BYTE, threads_right(), TAG + k, shared,
				  &sent[k - me * PART]);
		}
		switch ((me + round) % LISTS) {
		case 0:
			MPI_Waitall(PART, part, MPI_STATUSES_IGNORE);
			break;
		case 1:
			wait_any(part);
			break;
		default:
			test_some(part);
		}
		MPI_Waitall(PART, sent, MPI_STATUSES_IGNORE);
		for (k = me * PART; k < (me + 1) * PART; k++)
			suite_verify(in[k], bytes_of(k), LONG, threads_left(),
				     (unsigned)(round * 100 + k));
	}
	return NULL;
}

void threads_disjoint_lists(MPI_Comm comm)
{
	shared = comm;
	threads_run(LISTS, list_worker);
}

/* ---- Looks that complete nothing ---------------------------------------------------------------- */

enum { LOOK_ROUNDS = 60 };

static MPI_Request looked_at;
static int looked_value;

/* All look until it is complete; the first completes it afterwards. */
static void *looker(void *number)
{
	MPI_Status status;
	int round, flag;

	for (round = 0; round < LOOK_ROUNDS; round++) {
		if ((intptr_t)number == 0) {
			looked_value = -1;
			MPI_Irecv(&looked_value, 1, MPI_INT, threads_left(), TAG, shared, &looked_at);
		}
		pthread_barrier_wait(&meet);
		if ((intptr_t)number == 1)
			MPI_Send(&round, 1, MPI_INT, threads_right(), TAG, shared);
		do
			MPI_Request_get_status(looked_at, &flag, &status);
		while (!flag);
		suite_status(&status, threads_left(), TAG, sizeof(int));
		CHECK(looked_value == round);
		pthread_barrier_wait(&meet);
		if ((intptr_t)number == 0)
			MPI_Wait(&looked_at, MPI_STATUS_IGNORE);
	}
	return NULL;
}

void threads_get_status(MPI_Comm comm)
{
	shared = comm;
	pthread_barrier_init(&meet, NULL, THREADS);
	threads_run(THREADS, looker);
	pthread_barrier_destroy(&meet);
}

/* ---- Probed messages, each for one thread ------------------------------------------------------- */

enum { MESSAGES = 240, PROBERS = 3 };

static atomic_int taken[MESSAGES];

static void *prober(void *number)
{
	MPI_Message message;
	MPI_Request request;
	MPI_Status status;
	int i, n, flag;

	if ((intptr_t)number == PROBERS) {
		for (i = 0; i < MESSAGES; i++)
			MPI_Send(&i, 1, MPI_INT, threads_right(), TAG, shared);
		return NULL;
	}
	for (i = 0; i < MESSAGES / PROBERS; i++) {
		flag = i % 2;
		if (flag)
			MPI_Mprobe(threads_left(), TAG, shared, &message, &status);
		while (!flag)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, shared, &flag, &message, &status);
		n = -1;
		if (i % 3) {
			MPI_Mrecv(&n, 1, MPI_INT, &message, &status);
		} else {
			MPI_Imrecv(&n, 1, MPI_INT, &message, &request);
			MPI_Wait(&request, &status);
		}
		suite_status(&status, threads_left(), TAG, sizeof(int));
		CHECK(n >= 0 && n < MESSAGES && taken[n]++ == 0, "message %d", n);
	}
	return NULL;
}

void threads_matched_probes(MPI_Comm comm)
{
	int i;

	shared = comm;
	for (i = 0; i < MESSAGES; i++)
		taken[i] = 0;
	threads_run(PROBERS + 1, prober);
}

/* ---- What another thread frees ------------------------------------------------------------------ */

enum { FREE_ROUNDS = 20, FREE_INTS = 6000, TOKEN = TAG + 1, TAKER = 2, LATE = 1 };

static struct {
	MPI_Comm comm;
	MPI_Datatype type;
} used;

/* FREE_INTS of every `stride` ints. */
static MPI_Datatype strided(int stride)
{
	MPI_Datatype type;

	MPI_Type_vector(FREE_INTS, 1, stride, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

static void token_send(int to)
{
	MPI_Send(NULL, 0, MPI_BYTE, to, TOKEN, shared);
}

static void token_receive(int from)
{
	MPI_Recv(NULL, 0, MPI_BYTE, from, TOKEN, shared, MPI_STATUS_IGNORE);
}

static void every_other_check(const int *ints, int first)
{
	int i;

	for (i = 0; i < 2 * FREE_INTS; i++)
		CHECK(ints[i] == (i % 2 ? -1 : first + i / 2), "%d: %d", i, ints[i]);
}

static void every_other_fill(int *ints, int first)
{
	int i;

	for (i = 0; i < 2 * FREE_INTS; i++)
		ints[i] = i % 2 ? -1 : first + i / 2;
}

static void use_ssend(int round, MPI_Comm comm, MPI_Datatype type)
{
	int ints[2 * FREE_INTS];

	every_other_fill(ints, suite_rank * 100 + round);
	MPI_Ssend(ints, 1, type, threads_right(), TAG, comm);
}

/* The root is inside until rank LATE comes; rank TAKER does not wait for that. */
static void use_scatter(int round, MPI_Comm comm, MPI_Datatype type)
{
	int ints[2 * FREE_INTS], i, *all = malloc(sizeof(int) * FREE_INTS * (size_t)suite_size);

	CHECK(all);
	for (i = 0; i < FREE_INTS * suite_size; i++)
		all[i] = i + round;
	every_other_fill(ints, 0);
	for (i = 0; i < FREE_INTS; i++)
		ints[2 * i] = -2;
	if (suite_rank == LATE)
		token_receive(0);
	MPI_Scatter(all, FREE_INTS, MPI_INT, ints, 1, type, 0, comm);
	if (suite_rank == TAKER)
		token_send(0);
	every_other_check(ints, suite_rank * FREE_INTS + round);
	free(all);
}

static void (*use)(int round, MPI_Comm comm, MPI_Datatype type);

static void *user(void *unused)
{
	int round;

	for (round = 0; round < FREE_ROUNDS; round++) {
		pthread_barrier_wait(&meet);
		use(round, used.comm, used.type);
		pthread_barrier_wait(&meet);
	}
	return unused;
}

/* From where it is freed: the memory of a type's record is soon that of another type. */
static void free_type(MPI_Datatype type)
{
	int ints[4 * FREE_INTS] = {0}, i;
	MPI_Datatype other;

	MPI_Type_free(&type);
	for (i = 3; i < 5; i++) {
		other = strided(i - 1);
		MPI_Sendrecv(ints, 0, other, suite_rank, TAG, ints, 0, other, suite_rank, TAG, shared,
			     MPI_STATUS_IGNORE);
		MPI_Type_free(&other);
	}
}

/* The next rank says that the call has begun; it may not have returned. */
static void free_beside_ssend(int round, MPI_Comm comm, MPI_Datatype type)
{
	int ints[2 * FREE_INTS];

	every_other_fill(ints, 0);
	MPI_Recv(ints, 1, type, threads_left(), TAG, comm, MPI_STATUS_IGNORE);
	every_other_check(ints, threads_left() * 100 + round);
	token_send(threads_left());
	token_receive(threads_right());
	free_type(type);
	MPI_Comm_free(&comm);
}

static void free_beside_scatter(int round, MPI_Comm comm, MPI_Datatype type)
{
	if (suite_rank)
		return;
	token_receive(TAKER);
	free_type(type);
	token_send(LATE);
}

static void *freer(void *unused)
{
	const bool sends = use == use_ssend;
	int round;

	for (round = 0; round < FREE_ROUNDS; round++) {
		MPI_Comm_dup(shared, &used.comm);
		used.type = strided(2);
		pthread_barrier_wait(&meet);
		if (sends)
			free_beside_ssend(round, used.comm, used.type);
		else
			free_beside_scatter(round, used.comm, used.type);
		pthread_barrier_wait(&meet);
		if (!sends && suite_rank)
			free_type(used.type);
		if (!sends)
			MPI_Comm_free(&used.comm);
	}
	return unused;
}

static void *use_or_free(void *number)
{
	return number ? user(NULL) : freer(NULL);
}

static void freed_beside(MPI_Comm comm, void (*calls)(int, MPI_Comm, MPI_Datatype))
{
	shared = comm;
	use = calls;
	pthread_barrier_init(&meet, NULL, 2);
	threads_run(2, use_or_free);
	pthread_barrier_destroy(&meet);
}

void threads_freed_beside_ssend(MPI_Comm comm)
{
	freed_beside(comm, use_ssend);
}

void threads_freed_beside_scatter(MPI_Comm comm)
{
	freed_beside(comm, use_scatter);
}

/* ---- Callbacks that send ------------------------------------------------------------------------ */

enum { CALLBACK_ROUNDS = 25 };

static int keyval;
static MPI_Comm own[THREADS];
static atomic_int copied, deleted;

/* To this rank itself: no other rank is to wait while the library has its locks. */
static void to_itself(int tag)
{
	int mine = tag, theirs = -1;

	MPI_Sendrecv(&mine, 1, MPI_INT, suite_rank, tag, &theirs, 1, MPI_INT, suite_rank, tag, shared,
		     MPI_STATUS_IGNORE);
	CHECK(theirs == mine);
}

static int on_copy(MPI_Comm comm, int key, void *extra, void *value, void *to,
		   int *flag)
{
	to_itself((int)(intptr_t)value);
	copied++;
	*(void **)to = value;
	*flag = 1;
	return MPI_SUCCESS;
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
	to_itself((int)(intptr_t)value);
	deleted++;
	return MPI_SUCCESS;
}

static void *with_callbacks(void *number)
{
	int me = (int)(intptr_t)number, round, v = -1;
	MPI_Comm made;

	for (round = 0; round < CALLBACK_ROUNDS; round++) {
		if (me == 0) {
			MPI_Comm_dup(own[0], &made);
			MPI_Comm_free(&made);
			continue;
		}
		MPI_Sendrecv(&round, 1, MPI_INT, threads_right(), TAG, &v, 1, MPI_INT, threads_left(),
			     TAG, own[me], MPI_STATUS_IGNORE);
		CHECK(v == round);
	}
	return NULL;
}

static void own_comms(MPI_Comm comm)
{
	int i;

	shared = comm;
	for (i = 0; i < THREADS; i++)
		MPI_Comm_dup(comm, &own[i]);
}

static void own_comms_free(void)
{
	int i;

	for (i = 0; i < THREADS; i++)
		MPI_Comm_free(&own[i]);
}

void threads_callbacks(MPI_Comm comm)
{
	own_comms(comm);
	copied = deleted = 0;
	MPI_Comm_create_keyval(on_copy, on_delete, &keyval, NULL);
	MPI_Comm_set_attr(own[0], keyval, (void *)(intptr_t)(TAG + 1));
	threads_run(THREADS, with_callbacks);
	own_comms_free();
	CHECK(copied == CALLBACK_ROUNDS && deleted == CALLBACK_ROUNDS + 1, "%d, %d", copied, deleted);
	MPI_Comm_free_keyval(&keyval);
}

static atomic_int handled;

static void on_error(MPI_Comm *comm, int *error, ...)
{
	to_itself(TAG + THREADS);
	handled++;
}

/* Messages too long for their receives. */
static void *with_errors(void *number)
{
	MPI_Comm comm = own[(intptr_t)number];
	int round;
	char byte;

	for (round = 0; round < CALLBACK_ROUNDS; round++) {
		MPI_Send(&round, sizeof(round), MPI_BYTE, suite_rank, TAG, comm);
		MPI_Recv(&byte, 1, MPI_BYTE, suite_rank, TAG, comm, MPI_STATUS_IGNORE);
	}
	return NULL;
}

void threads_error_handlers(MPI_Comm comm)
{
	MPI_Errhandler handler;
	int i;

	own_comms(comm);
	handled = 0;
	MPI_Comm_create_errhandler(on_error, &handler);
	for (i = 0; i < THREADS; i++)
		MPI_Comm_set_errhandler(own[i], handler);
	MPI_Errhandler_free(&handler);
	threads_run(THREADS, with_errors);
	own_comms_free();
	CHECK(handled == THREADS * CALLBACK_ROUNDS, "%d", handled);
}

/* ---- Memory ----------------------------------------------------------------------------------- */

enum { MEMORY_ROUNDS = 100, BLOCKS = 3 };

static void *allocator(void *number)
{
	unsigned char *block[BLOCKS];
	int round, i, bytes = 100 + (int)(intptr_t)number;

	for (round = 0; round < MEMORY_ROUNDS; round++) {
		for (i = 0; i < BLOCKS; i++) {
			MPI_Alloc_mem(bytes, MPI_INFO_NULL, &block[i]);
			suite_fill(block[i], (size_t)bytes, bytes, (unsigned)i);
		}
		for (i = 0; i < BLOCKS; i++) {
			suite_verify(block[i], (size_t)bytes, (size_t)bytes, bytes, (unsigned)i);
			MPI_Free_mem(block[i]);
		}
	}
	return NULL;
}

void threads_memory(MPI_Comm comm)
{
	shared = comm;
	threads_run(THREADS, allocator);
}

/* ---- All kinds of calls at once ------------------------------------------------------------------ */

enum { MIXED_ROUNDS = 30, MIXED_BYTES = 10000 };

static void sums(MPI_Comm comm, int round)
{
	int one = suite_rank + round, sum, all[64], i;

	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK(sum == suite_size * round + suite_size * (suite_size - 1) / 2);
	if (suite_size > 64)
		return;
	MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm);
	for (i = 0; i < suite_size; i++)
		CHECK(all[i] == i + round);
}

/* The library's request together with the layer's. */
static void beside_native(MPI_Comm comm, int round)
{
	MPI_Request requests[3];
	int v = -1;

	MPI_Ibarrier(comm, &requests[1]);
	MPI_Irecv(&v, 1, MPI_INT, threads_left(), TAG, comm, &requests[0]);
	MPI_Isend(&round, 1, MPI_INT, threads_right(), TAG, comm, &requests[2]);
	MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
	CHECK(v == round);
}

static void buffered(MPI_Comm comm, int round)
{
	MPI_Status status;
	int v = -1, flag = 0;

	MPI_Bsend(&round, 1, MPI_INT, threads_right(), TAG, comm);
	if (round % 2)
		MPI_Probe(threads_left(), MPI_ANY_TAG, comm, &status);
	while (round % 2 == 0 && !flag)
		MPI_Iprobe(MPI_ANY_SOURCE, TAG, comm, &flag, &status);
	suite_status(&status, threads_left(), TAG, sizeof(v));
	MPI_Recv(&v, 1, MPI_INT, threads_left(), TAG, comm, MPI_STATUS_IGNORE);
	CHECK(v == round);
}

static void persistent(MPI_Comm comm, int round)
{
	unsigned char *memory, *from;
	MPI_Request requests[2];
	int i;

	MPI_Alloc_mem(2 * MIXED_BYTES, MPI_INFO_NULL, &memory);
	from = memory + MIXED_BYTES;
	MPI_Recv_init(memory, MIXED_BYTES, MPI_BYTE, threads_left(), TAG, comm, &requests[0]);
	MPI_Send_init(from, MIXED_BYTES, MPI_BYTE, threads_right(), TAG, comm, &requests[1]);
	for (i = 0; i < 2; i++) {
		suite_blank(memory, MIXED_BYTES);
		suite_fill(from, MIXED_BYTES, suite_rank, (unsigned)(2 * round + i));
		MPI_Startall(2, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		suite_verify(memory, MIXED_BYTES, MIXED_BYTES, threads_left(), (unsigned)(2 * round + i));
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	MPI_Free_mem(memory);
}

static void *mixed(void *number)
{
	MPI_Comm comm = own[(intptr_t)number], made;
	int round;

	for (round = 0; round < MIXED_ROUNDS; round++)
		switch ((intptr_t)number) {
		case 0:
			sums(comm, round);
			beside_native(comm, round);
			break;
		case 1:
			buffered(comm, round);
			break;
		case 2:
			persistent(comm, round);
			break;
		default:
			MPI_Comm_dup(comm, &made);
			sums(made, round);
			MPI_Comm_free(&made);
		}
	return NULL;
}

void threads_mixture(MPI_Comm comm)
{
	int bytes = MIXED_ROUNDS * (MPI_BSEND_OVERHEAD + (int)sizeof(int));
	void *buffer = malloc((size_t)bytes);

	CHECK(buffer);
	own_comms(comm);
	MPI_Buffer_attach(buffer, bytes);
	threads_run(THREADS, mixed);
	MPI_Buffer_detach(&buffer, &bytes);
	own_comms_free();
	free(buffer);
}
