/* assumptions_call.c - what programs do with MPI itself that is rare. */
#include "assumptions.h"

#include <ucontext.h>

enum { MANY_COMMS = 2000, HELD_COMMS = 100, MANY_REQUESTS = 20000, STACK = 1 << 20 };

static void many_communicators(void)
{
	MPI_Comm held[HELD_COMMS], comm;
	int v;

	for (int i = 0; i < HELD_COMMS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &held[i]);
	for (int i = 0; i < MANY_COMMS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		v = 10 * i + suite_rank;
		if (i % 10 == 0)
			MPI_Sendrecv_replace(&v, 1, MPI_INT, !suite_rank, 1, !suite_rank, 1, comm,
					     MPI_STATUS_IGNORE);
		CHECK(v == 10 * i + (i % 10 ? suite_rank : !suite_rank));
		MPI_Comm_free(&comm);
	}
	for (int i = HELD_COMMS; i-- > 0;) {
		v = i + 1000 * suite_rank;
		MPI_Sendrecv_replace(&v, 1, MPI_INT, !suite_rank, 1, !suite_rank, 1, held[i],
				     MPI_STATUS_IGNORE);
		CHECK(v == i + 1000 * !suite_rank);
		MPI_Comm_free(&held[i]);
	}
}

static void many_requests(void)
{
	static int in[MANY_REQUESTS], out[MANY_REQUESTS];
	MPI_Request *request = malloc(2 * MANY_REQUESTS * sizeof(*request));

	CHECK(request);
	for (int i = 0; i < MANY_REQUESTS; i++) {
		in[i] = -1;
		MPI_Irecv(&in[i], 1, MPI_INT, !suite_rank, i % 4, MPI_COMM_WORLD, &request[i]);
	}
	for (int i = 0; i < MANY_REQUESTS; i++) {
		out[i] = 2 * i + suite_rank;
		MPI_Isend(&out[i], 1, MPI_INT, !suite_rank, i % 4, MPI_COMM_WORLD,
			  &request[MANY_REQUESTS + i]);
	}
	MPI_Waitall(2 * MANY_REQUESTS, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY_REQUESTS; i++)
		CHECK(in[i] == 2 * i + !suite_rank, "receive %d: %d", i, in[i]);
	free(request);
}

static void to_itself(void)
{
	static unsigned char out[LARGE], in[LARGE];
	const size_t sizes[] = { 0, SMALL, MIDDLE, LARGE };
	MPI_Comm comms[] = { MPI_COMM_WORLD, MPI_COMM_SELF };
	MPI_Request request;

	for (int i = 0; i < 8; i++) {
		int me = i < 4 ? suite_rank : 0, n = (int)sizes[i % 4];

		suite_fill(out, (size_t)n, suite_rank, (unsigned)i);
		suite_blank(in, LARGE);
		MPI_Isend(out, n, MPI_BYTE, me, 2, comms[i / 4], &request);
		MPI_Recv(in, n, MPI_BYTE, me, 2, comms[i / 4], MPI_STATUS_IGNORE);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		suite_verify(in, (size_t)n, LARGE, suite_rank, (unsigned)i);
	}
}

static void nothing_from_nowhere(void)
{
	MPI_Request request[2];
	MPI_Status st[2];

	MPI_Irecv(NULL, 0, MPI_INT, !suite_rank, 6, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(NULL, 0, MPI_INT, !suite_rank, 6, MPI_COMM_WORLD, &request[1]);
	MPI_Waitall(2, request, st);
	suite_status(&st[0], !suite_rank, 6, 0);
	MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void largest_tag(void)
{
	int *ub, found, v = suite_rank, tag;
	MPI_Status st;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &found);
	CHECK(found && *ub >= 32767);
	tag = *ub;
	MPI_Sendrecv_replace(&v, 1, MPI_INT, !suite_rank, tag, !suite_rank, MPI_ANY_TAG,
			     MPI_COMM_WORLD, &st);
	CHECK(v == !suite_rank && st.MPI_TAG == tag);
}

static int copies, deletes;

static int talk(int tag)
{
	int v = suite_rank;

	MPI_Sendrecv_replace(&v, 1, MPI_INT, !suite_rank, tag, !suite_rank, tag, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	return v == !suite_rank ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *out, int *flag)
{
	copies++;
	*(void **)out = value;
	*flag = 1;
	return talk(21);
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
	deletes++;
	return talk(22);
}

/* Callbacks of attributes talk with the other rank while a communicator is made or freed. */
static void attributes(void)
{
	static int value = 5;
	MPI_Comm one, two;
	int key, found, *got;

	copies = deletes = 0;
	MPI_Comm_create_keyval(copy, delete, &key, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &one);
	MPI_Comm_set_attr(one, key, &value);
	MPI_Comm_dup(one, &two);
	MPI_Comm_get_attr(two, key, &got, &found);
	CHECK(found && got == &value);
	MPI_Comm_free(&one);
	traffic();
	MPI_Comm_free(&two);
	MPI_Comm_free_keyval(&key);
	CHECK(copies == 1 && deletes == 2, "%d copies, %d deletes", copies, deletes);
}

static ucontext_t outside, inside;
static int coroutine_steps;

/* The function's variables, which MPI reads and writes, lie on a stack that is no thread's. */
static void coroutine(void)
{
	unsigned char out[LARGE], in[LARGE + 16];
	MPI_Request request[2];

	for (unsigned i = 0; i < 3; i++) {
		suite_fill(out, LARGE, suite_rank, 40 + i);
		suite_blank(in, sizeof(in));
		MPI_Irecv(in, sizeof(in), MPI_BYTE, !suite_rank, 8, MPI_COMM_WORLD, &request[0]);
		MPI_Isend(out, LARGE, MPI_BYTE, !suite_rank, 8, MPI_COMM_WORLD, &request[1]);
		swapcontext(&inside, &outside);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		suite_verify(in, LARGE, sizeof(in), !suite_rank, 40 + i);
		coroutine_steps++;
		swapcontext(&inside, &outside);
	}
}

/* A function of its own: getcontext returns twice, and no loop variable of a caller is at stake. */
static void one_stack(void)
{
	void *stack = malloc(STACK);

	CHECK(stack && getcontext(&inside) == 0);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK;
	inside.uc_link = &outside;
	coroutine_steps = 0;
	makecontext(&inside, coroutine, 0);
	for (int i = 0; i < 7; i++) {
		swapcontext(&outside, &inside);
		if (i < 6)
			traffic();
	}
	CHECK(coroutine_steps == 3);
	free(stack);
}

static void other_stacks(void)
{
	for (int round = 0; round < 2; round++)
		one_stack();
}

const struct assumption call_cases[] = {
	{ "calls", "2000 communicators", many_communicators },
	{ "calls", "20000 receives posted", many_requests },
	{ "calls", "messages to itself", to_itself },
	{ "calls", "no bytes from NULL", nothing_from_nowhere },
	{ "calls", "MPI_TAG_UB", largest_tag },
	{ "calls", "attribute callbacks that send", attributes },
	{ "calls", "coroutine stacks", other_stacks },
	{ 0 },
};
