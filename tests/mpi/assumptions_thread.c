/*
 * assumptions_thread.c - MPI_THREAD_MULTIPLE, initialised in a thread that is not the
 * process's first: threads with small stacks, threads that end, requests that change hands.
 */
#include "assumptions.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4 };

static void *some_traffic(void *arg)
{
	for (int i = 0; i < 10; i++) {
		exchange(10 + (int)(intptr_t)arg, SMALL);
		exchange(10 + (int)(intptr_t)arg, LARGE);
	}
	return NULL;
}

static void run_threads(void *(*body)(void *), size_t stack)
{
	pthread_attr_t attr;
	pthread_t t[THREADS];

	pthread_attr_init(&attr);
	if (stack)
		CHECK(pthread_attr_setstacksize(&attr, stack) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], &attr, body, (void *)(intptr_t)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_attr_destroy(&attr);
}

static void several_threads(void)
{
	run_threads(some_traffic, 0);
}

static void small_stacks(void)
{
	run_threads(some_traffic, (size_t)PTHREAD_STACK_MIN + 16384);
}

static struct pair handed;

static void *open_and_end(void *unused)
{
	pair_open(&handed);
	return NULL;
}

/* The thread that started the messages is gone when another one waits. */
static void starter_ends(void)
{
	pthread_t t;

	for (int i = 0; i < 10; i++) {
		CHECK(pthread_create(&t, NULL, open_and_end, NULL) == 0);
		pthread_join(t, NULL);
		pair_shut(&handed);
	}
}

static void *nothing(void *unused)
{
	return unused;
}

/* Threads that never called MPI, and some that did, end while messages wait. */
static void threads_end_meanwhile(void)
{
	pthread_t t[20];
	struct pair p;

	for (int round = 0; round < 5; round++) {
		pair_open(&p);
		for (int i = 0; i < 20; i++)
			CHECK(pthread_create(&t[i], NULL, nothing, NULL) == 0);
		for (int i = 0; i < 20; i++)
			pthread_join(t[i], NULL);
		pair_shut(&p);
	}
}

static int mailed;

static void *wait_for_it(void *request)
{
	MPI_Wait(request, MPI_STATUS_IGNORE);
	return NULL;
}

/*
 * A second thread waits in MPI_Wait for a receive that this thread has posted and the other rank
 * sends late.
 */
static void waits_elsewhere(void)
{
	MPI_Request request;
	pthread_t t;
	int v;

	for (int i = 0; i < 20; i++) {
		mailed = -1;
		MPI_Irecv(&mailed, 1, MPI_INT, !suite_rank, 30, MPI_COMM_WORLD, &request);
		CHECK(pthread_create(&t, NULL, wait_for_it, &request) == 0);
		exchange(31, MIDDLE);
		v = 100 * i + suite_rank;
		MPI_Send(&v, 1, MPI_INT, !suite_rank, 30, MPI_COMM_WORLD);
		pthread_join(t, NULL);
		CHECK(mailed == 100 * i + !suite_rank && request == MPI_REQUEST_NULL);
	}
}

/* A thread is idle in no MPI call at all: others go on, and fork works meanwhile. */
static void *sleeper(void *end)
{
	char c;

	CHECK(read(*(int *)end, &c, 1) == 0);
	return NULL;
}

static void beside_an_idle_thread(void)
{
	int ends[2];
	pthread_t t;

	CHECK(pipe(ends) == 0);
	CHECK(pthread_create(&t, NULL, sleeper, &ends[0]) == 0);
	traffic();
	CHECK(system("exit 0") == 0);
	traffic();
	close(ends[1]);
	pthread_join(t, NULL);
	close(ends[0]);
}

const struct assumption thread_cases[] = {
	{ "threads", "several threads", several_threads },
	{ "threads", "small stacks", small_stacks },
	{ "threads", "the thread that started has ended", starter_ends },
	{ "threads", "threads end while messages wait", threads_end_meanwhile },
	{ "threads", "posted here, waited for there", waits_elsewhere },
	{ "threads", "beside an idle thread", beside_an_idle_thread },
	{ 0 },
};
