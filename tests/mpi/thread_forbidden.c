/*
 * thread_forbidden.c - two threads at one request, which MPI forbids and programs do all the same:
 * each operation completes once, and the thread that comes second finds no request or an empty
 * status.
 *
 * A round: requests are posted, one thread of each rank sends to the right, and two others
 * complete the same requests from the left, from one array or from a copy each.
 */
#include "threads.h"

enum { REQUESTS = 6, ROUNDS = 10, ROOM = 20000, TAG = 40, SENDER = 2, THREADS = 3 };

static MPI_Comm shared;
static pthread_barrier_t meet;
static MPI_Request posted[REQUESTS], copy[2][REQUESTS];
static unsigned char in[REQUESTS][ROOM], out[ROOM];
static atomic_int completed;

static const struct way {
	void (*complete)(MPI_Request *requests);	/* all, until none is left */
	bool copies, persistent;
} *way;

static size_t size_of(int k)
{
	return k % 3 == 2 ? ROOM : 8;
}

static void post(int round)
{
	int k;

	for (k = 0; k < REQUESTS; k++) {
		suite_blank(in[k], ROOM);
		if (way->persistent && round == 0)
			MPI_Recv_init(in[k], ROOM, MPI_BYTE, threads_left(), TAG + k, shared, &posted[k]);
		if (way->persistent)
			MPI_Start(&posted[k]);
		else
			MPI_Irecv(in[k], ROOM, MPI_BYTE, threads_left(), TAG + k, shared, &posted[k]);
		copy[0][k] = copy[1][k] = posted[k];
	}
	completed = 0;
}

static void send_all(int round)
{
	int k;

	for (k = 0; k < REQUESTS; k++) {
		suite_fill(out, size_of(k), suite_rank, (unsigned)(round * REQUESTS + k));
		MPI_Send(out, (int)size_of(k), MPI_BYTE, threads_right(), TAG + k, shared);
	}
}

static void check(int round)
{
	int k;

	CHECK(completed == REQUESTS, "%d of %d, in round %d", completed, REQUESTS, round);
	for (k = 0; k < REQUESTS; k++) {
		suite_verify(in[k], size_of(k), ROOM, threads_left(),
			     (unsigned)(round * REQUESTS + k));
		if (way->persistent)
			continue;
		CHECK(way->copies || posted[k] == MPI_REQUEST_NULL);
		CHECK(!way->copies || (copy[0][k] == MPI_REQUEST_NULL && copy[1][k] == MPI_REQUEST_NULL));
	}
}

static void seen(const MPI_Status *status)
{
	if (status->MPI_SOURCE == threads_left())
		completed++;
	else
		CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE, "source %d", status->MPI_SOURCE);
}

static void *worker(void *number)
{
	const int me = (int)(intptr_t)number;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		if (me == 0)
			post(round);
		pthread_barrier_wait(&meet);
		if (me == SENDER)
			send_all(round);
		else
			way->complete(way->copies ? copy[me] : posted);
		pthread_barrier_wait(&meet);
		if (me == 0)
			check(round);
	}
	return NULL;
}

/* A message takes no request slot any more for want of a connection. */
static void meet_neighbours(MPI_Comm comm)
{
	int mine = suite_rank, theirs;

	shared = comm;
	MPI_Sendrecv(&mine, 1, MPI_INT, threads_right(), TAG, &theirs, 1, MPI_INT, threads_left(), TAG,
		     comm, MPI_STATUS_IGNORE);
}

static void twice(MPI_Comm comm, const struct way *w)
{
	int k;

	meet_neighbours(comm);
	way = w;
	pthread_barrier_init(&meet, NULL, THREADS);
	threads_run(THREADS, worker);
	pthread_barrier_destroy(&meet);
	for (k = 0; w->persistent && k < REQUESTS; k++)
		MPI_Request_free(&posted[k]);
}

/* ---- The calls that complete ------------------------------------------------------------------ */

static void by_wait(MPI_Request *r)
{
	MPI_Status status;
	int k;

	for (k = 0; k < REQUESTS; k++) {
		MPI_Wait(&r[k], &status);
		seen(&status);
	}
}

static void by_test(MPI_Request *r)
{
	MPI_Status status;
	int k, flag;

	for (k = 0; k < REQUESTS; k++) {
		do
			MPI_Test(&r[k], &flag, &status);
		while (!flag);
		seen(&status);
	}
}

static void all_seen(const MPI_Status *statuses, int n)
{
	int k;

	for (k = 0; k < n; k++)
		seen(&statuses[k]);
}

static void by_waitall(MPI_Request *r)
{
	MPI_Status statuses[REQUESTS];

	MPI_Waitall(REQUESTS, r, statuses);
	all_seen(statuses, REQUESTS);
}

static void by_testall(MPI_Request *r)
{
	MPI_Status statuses[REQUESTS];
	int flag;

	do
		MPI_Testall(REQUESTS, r, &flag, statuses);
	while (!flag);
	all_seen(statuses, REQUESTS);
}

static void by_waitany(MPI_Request *r)
{
	MPI_Status status;
	int index;

	for (;;) {
		MPI_Waitany(REQUESTS, r, &index, &status);
		if (index == MPI_UNDEFINED)
			return;
		seen(&status);
	}
}

static void by_testany(MPI_Request *r)
{
	MPI_Status status;
	int index, flag;

	for (;;) {
		MPI_Testany(REQUESTS, r, &index, &flag, &status);
		if (flag && index == MPI_UNDEFINED)
			return;
		if (flag)
			seen(&status);
	}
}

static void by_waitsome(MPI_Request *r)
{
	MPI_Status statuses[REQUESTS];
	int indices[REQUESTS], n;

	for (;;) {
		MPI_Waitsome(REQUESTS, r, &n, indices, statuses);
		if (n == MPI_UNDEFINED)
			return;
		all_seen(statuses, n);
	}
}

static void by_testsome(MPI_Request *r)
{
	MPI_Status statuses[REQUESTS];
	int indices[REQUESTS], n;

	for (;;) {
		MPI_Testsome(REQUESTS, r, &n, indices, statuses);
		if (n == MPI_UNDEFINED)
			return;
		all_seen(statuses, n);
	}
}

void threads_completed_twice(MPI_Comm comm)
{
	static void (*const complete[])(MPI_Request *requests) = {
		by_wait, by_test, by_waitall, by_testall, by_waitany, by_testany, by_waitsome,
		by_testsome,
	};
	size_t i;

	for (i = 0; i < sizeof(complete) / sizeof(complete[0]); i++) {
		twice(comm, &(struct way){complete[i], false, false});
		twice(comm, &(struct way){complete[i], true, false});
	}
	twice(comm, &(struct way){by_wait, false, true});
	twice(comm, &(struct way){by_wait, true, true});
	twice(comm, &(struct way){by_test, false, true});
}

/* ---- One variable, posted anew ---------------------------------------------------------------- */

enum { POSTS = 1500, POSTER = 0, TESTERS = 2 };

static MPI_Request variable;
static int value;
static atomic_bool over;
static enum { ANEW_RECEIVE, ANEW_SEND, ANEW_START } anew;

static void complete_variable(void)
{
	MPI_Status status;
	int flag = 0;

	while (!flag)
		MPI_Test(&variable, &flag, &status);
}

static void post_anew(int i)
{
	switch (anew) {
	case ANEW_RECEIVE:
		value = -1;
		MPI_Irecv(&value, 1, MPI_INT, threads_left(), TAG, shared, &variable);
		break;
	case ANEW_SEND:
		value = suite_rank * POSTS + i;
		MPI_Isend(&value, 1, MPI_INT, threads_right(), TAG, shared, &variable);
		break;
	case ANEW_START:
		value = -1;
		MPI_Start(&variable);
	}
	complete_variable();
	CHECK(anew == ANEW_SEND || value == threads_left() * POSTS + i, "%d, message %d", value, i);
}

static void *post_or_test(void *number)
{
	int i, flag, other;
	MPI_Status status;

	switch ((intptr_t)number) {
	case POSTER:
		for (i = 0; i < POSTS; i++)
			post_anew(i);
		over = true;
		break;
	case POSTER + 1:
		/* The other end of each message. */
		for (i = 0; i < POSTS; i++) {
			other = suite_rank * POSTS + i;
			if (anew != ANEW_SEND) {
				MPI_Send(&other, 1, MPI_INT, threads_right(), TAG, shared);
				continue;
			}
			MPI_Recv(&other, 1, MPI_INT, threads_left(), TAG, shared, MPI_STATUS_IGNORE);
			CHECK(other == threads_left() * POSTS + i, "%d, message %d", other, i);
		}
		break;
	default:
		while (!over)
			MPI_Test(&variable, &flag, &status);
	}
	return NULL;
}

void threads_posted_anew(MPI_Comm comm)
{
	int kind;

	shared = comm;
	for (kind = ANEW_RECEIVE; kind <= ANEW_START; kind++) {
		anew = kind;
		over = false;
		variable = MPI_REQUEST_NULL;
		if (anew == ANEW_START)
			MPI_Recv_init(&value, 1, MPI_INT, threads_left(), TAG, comm, &variable);
		threads_run(POSTER + 2 + TESTERS, post_or_test);
		if (anew == ANEW_START)
			MPI_Request_free(&variable);
	}
}

/* ---- One waits, the other ends it otherwise --------------------------------------------------- */

static enum { ELSE_FREE, ELSE_CANCEL } otherwise;

static void *wait_or_end(void *number)
{
	int round, flag;
	MPI_Status status;

	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&meet);
		if ((intptr_t)number == SENDER) {
			MPI_Send(&round, 1, MPI_INT, threads_right(), TAG, shared);
		} else if ((intptr_t)number == 1) {
			if (otherwise == ELSE_FREE)
				MPI_Request_free(&copy[0][0]);
			else
				MPI_Cancel(&copy[0][0]);
		} else {
			MPI_Wait(&variable, &status);
			MPI_Test_cancelled(&status, &flag);
			/*
			 * A freed operation goes on; the message of a cancelled receive is still
			 * there.
			 */
			if (flag)
				MPI_Recv(&value, 1, MPI_INT, threads_left(), TAG, shared,
					 MPI_STATUS_IGNORE);
			CHECK(variable == MPI_REQUEST_NULL);
		}
		pthread_barrier_wait(&meet);
		if ((intptr_t)number != 0)
			continue;
		/* The message has the same source and tag, and comes after the other. */
		MPI_Sendrecv(&round, 1, MPI_INT, threads_right(), TAG, &flag, 1, MPI_INT,
			     threads_left(), TAG, shared, MPI_STATUS_IGNORE);
		CHECK(flag == round && value == round, "%d and %d, not %d", flag, value, round);
		value = -1;
		MPI_Irecv(&value, 1, MPI_INT, threads_left(), TAG, shared, &variable);
		copy[0][0] = variable;
	}
	return NULL;
}

void threads_ended_otherwise(MPI_Comm comm)
{
	int kind;

	meet_neighbours(comm);
	for (kind = ELSE_FREE; kind <= ELSE_CANCEL; kind++) {
		otherwise = kind;
		value = -1;
		MPI_Irecv(&value, 1, MPI_INT, threads_left(), TAG, comm, &variable);
		copy[0][0] = variable;
		pthread_barrier_init(&meet, NULL, THREADS);
		threads_run(THREADS, wait_or_end);
		pthread_barrier_destroy(&meet);
		MPI_Cancel(&variable);
		MPI_Wait(&variable, MPI_STATUS_IGNORE);
		MPI_Barrier(comm);
	}
}

/* ---- One message, received twice -------------------------------------------------------------- */

static MPI_Message message;

static void *receive_it(void *number)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int round, rc;

	for (round = 0; round < ROUNDS; round++) {
		if ((intptr_t)number == 0) {
			suite_blank(in[0], ROOM);
			MPI_Mprobe(threads_left(), TAG, shared, &message, MPI_STATUS_IGNORE);
		}
		pthread_barrier_wait(&meet);
		rc = (round + (intptr_t)number) % 2 ?
			     MPI_Mrecv(in[0], ROOM, MPI_BYTE, &message, MPI_STATUS_IGNORE) :
			     MPI_Imrecv(in[0], ROOM, MPI_BYTE, &message, &request);
		completed += rc == MPI_SUCCESS;
		if (rc == MPI_SUCCESS)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		pthread_barrier_wait(&meet);
		if ((intptr_t)number == 0) {
			CHECK(completed == 1 && message == MPI_MESSAGE_NULL);
			suite_verify(in[0], size_of(round), ROOM, threads_left(), (unsigned)round);
			completed = 0;
		}
	}
	return NULL;
}

static void *send_them(void *unused)
{
	int round;

	for (round = 0; round < ROUNDS; round++) {
		suite_fill(out, size_of(round), suite_rank, (unsigned)round);
		MPI_Send(out, (int)size_of(round), MPI_BYTE, threads_right(), TAG, shared);
	}
	return NULL;
}

void threads_message_received_twice(MPI_Comm comm)
{
	pthread_t sender;

	shared = comm;
	completed = 0;
	pthread_barrier_init(&meet, NULL, 2);
	CHECK(pthread_create(&sender, NULL, send_them, NULL) == 0);
	threads_run(2, receive_it);
	pthread_join(sender, NULL);
	pthread_barrier_destroy(&meet);
}
