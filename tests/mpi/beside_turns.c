/*
 * beside_turns.c - cases of beside_suite: a wait in one transport serves the other, and a question
 * to one after an arrival by the other finds all that has come.
 */
#include "config.h"

#include <unistd.h>

#include "beside.h"

/* MPICH 4.0.2 adds to the beginning of 16 bytes, whatever the address in them. */
enum { ALIGNED = 16 };

/* A communicator of ranks 0 and 1 whose messages are all the library's. */
static MPI_Comm between;
static MPI_Win window;
static long *memory;
static MPI_Group peer;

static bool taking_part(void)
{
	return suite_rank < 2;
}

static void library_begin(MPI_Comm comm)
{
	const int other = !suite_rank;
	MPI_Group all;

	MPI_Win_allocate(ALIGNED, sizeof(long), MPI_INFO_NULL, comm, &memory, &window);
	*memory = 0;
	if (!taking_part())
		return;
	MPI_Intercomm_create(MPI_COMM_SELF, 0, comm, other, BESIDE_TAG, &between);
	MPI_Comm_group(comm, &all);
	MPI_Group_incl(all, 1, &other, &peer);
	MPI_Group_free(&all);
}

static void library_end(void)
{
	if (taking_part()) {
		MPI_Group_free(&peer);
		MPI_Comm_free(&between);
	}
	MPI_Win_free(&window);
}

/* ---- Messages that nobody asks for, to who waits in the library ------------------------------ */

enum { UNASKED = 2500, UNASKED_BYTES = 64, LIMIT_S = 60 };

static MPI_Comm line;
static MPI_File file;

static void wait_fence(MPI_Comm comm)
{
	MPI_Win_fence(0, window);
}

/* Rank 0 has locked its memory before. */
static void wait_unlock(MPI_Comm comm)
{
	long one = 1;

	if (suite_rank == 1) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		MPI_Put(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
	}
	if (taking_part())
		MPI_Win_unlock(0, window);
}

static void wait_epoch(MPI_Comm comm)
{
	if (suite_rank == 1) {
		MPI_Win_post(peer, 0, window);
		MPI_Win_wait(window);
	} else if (suite_rank == 0) {
		MPI_Win_start(peer, 0, window);
		MPI_Win_complete(window);
	}
}

static void wait_ibarrier(MPI_Comm comm)
{
	MPI_Request q;

	MPI_Ibarrier(comm, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void wait_split(MPI_Comm comm)
{
	MPI_Comm made;

	MPI_Comm_split(comm, 0, 0, &made);
	MPI_Comm_free(&made);
}

static void wait_file(MPI_Comm comm)
{
	long word = suite_rank;

	MPI_File_write_at_all(file, suite_rank * 8, &word, 1, MPI_LONG, MPI_STATUS_IGNORE);
}

static void wait_probe(MPI_Comm comm)
{
	if (suite_rank == 1) {
		MPI_Probe(0, BESIDE_TAG, between, MPI_STATUS_IGNORE);
		MPI_Recv(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, between, MPI_STATUS_IGNORE);
		MPI_Recv(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, between, MPI_STATUS_IGNORE);
	} else if (suite_rank == 0) {
		MPI_Send(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, between);
		MPI_Send(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, between);
	}
}

static void wait_recv(MPI_Comm comm)
{
	if (suite_rank == 1)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, between, MPI_STATUS_IGNORE);
	else if (suite_rank == 0)
		MPI_Send(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, between);
}

static void wait_neighbor(MPI_Comm comm)
{
	int in[2], out = suite_rank;

	MPI_Neighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, line);
}

static void (*const library_waits[])(MPI_Comm comm) = {
	wait_fence, wait_unlock, wait_epoch, wait_ibarrier, wait_split, wait_file, wait_probe, wait_recv,
	wait_neighbor,
};

enum { LIBRARY_WAITS = sizeof(library_waits) / sizeof(*library_waits) };

static void unasked_send(MPI_Comm comm)
{
	unsigned char message[UNASKED_BYTES];

	for (unsigned i = 0; i < UNASKED; i++) {
		suite_fill(message, sizeof(message), 0, i);
		MPI_Send(message, sizeof(message), MPI_BYTE, 1, BESIDE_TAG, comm);
	}
}

static void unasked_receive(MPI_Comm comm)
{
	unsigned char message[UNASKED_BYTES];

	for (unsigned i = 0; i < UNASKED; i++) {
		MPI_Recv(message, sizeof(message), MPI_BYTE, 0, BESIDE_TAG, comm, MPI_STATUS_IGNORE);
		suite_verify(message, sizeof(message), sizeof(message), 0, i);
	}
}

/*
 * Rank 1 waits for rank 0, which joins it when its messages have left: more than rank 1 has room for
 * without looking at them.
 */
void beside_unasked(MPI_Comm comm)
{
	int dims[1] = {suite_size}, periods[1] = {0};
	char name[64] = "";

	alarm(LIMIT_S);
	library_begin(comm);
	if (suite_rank == 0)
		snprintf(name, sizeof(name), "turns-%ld.tmp", (long)getpid());
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
	MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
		      MPI_INFO_NULL, &file);
	MPI_Cart_create(comm, 1, dims, periods, 0, &line);
	MPI_Win_fence(0, window);
	for (int i = 0; i < LIBRARY_WAITS; i++) {
		alarm(LIMIT_S);
		if (library_waits[i] == wait_unlock && suite_rank == 0)
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		wait_ibarrier(comm);
		if (suite_rank == 0)
			unasked_send(comm);
		library_waits[i](comm);
		if (suite_rank == 1)
			unasked_receive(comm);
	}
	MPI_Comm_free(&line);
	MPI_File_close(&file);
	library_end();
	alarm(0);
}

/* ---- One-sided calls to who waits over rails ------------------------------------------------- */

enum { ADDS = 300 };

enum rails_wait {
	WAIT_BARRIER, WAIT_RECV, WAIT_WAIT, WAIT_ANY, WAIT_ALL, WAIT_SOME, WAIT_PROBE, WAIT_SSEND, RAILS_WAITS,
};

static void await_go(enum rails_wait how, MPI_Comm comm)
{
	MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	int index[2], count;

	if (how == WAIT_BARRIER)
		return;
	if (how == WAIT_PROBE)
		MPI_Probe(1, BESIDE_TAG, comm, MPI_STATUS_IGNORE);
	if (how == WAIT_SSEND)
		MPI_Ssend(NULL, 0, MPI_BYTE, 1, BESIDE_TAG, comm);
	else if (how == WAIT_RECV || how == WAIT_PROBE)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, BESIDE_TAG, comm, MPI_STATUS_IGNORE);
	else
		MPI_Irecv(NULL, 0, MPI_BYTE, 1, BESIDE_TAG, comm, &q[1]);
	if (how == WAIT_ANY)
		MPI_Waitany(2, q, index, MPI_STATUS_IGNORE);
	else if (how == WAIT_SOME)
		MPI_Waitsome(2, q, &count, index, MPI_STATUSES_IGNORE);
	else if (how == WAIT_ALL)
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	else
		MPI_Wait(&q[1], MPI_STATUS_IGNORE);
}

static void adds(MPI_Win win, long first)
{
	long one = 1, before;

	for (long i = 0; i < ADDS; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
		MPI_Win_unlock(0, win);
		CHECK(before == first + 2 * i, "%ld, not %ld", before, first + 2 * i);
	}
}

static void one_sided(MPI_Comm comm, MPI_Win win, const long *sum)
{
	for (int how = 0; how < RAILS_WAITS; how++) {
		if (suite_rank == 0) {
			await_go(how, comm);
		} else if (suite_rank == 1) {
			adds(win, 2L * ADDS * how);
			if (how == WAIT_SSEND)
				MPI_Recv(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, comm, MPI_STATUS_IGNORE);
			else if (how != WAIT_BARRIER)
				MPI_Send(NULL, 0, MPI_BYTE, 0, BESIDE_TAG, comm);
		}
		MPI_Barrier(comm);
		MPI_Win_lock(MPI_LOCK_SHARED, suite_rank, 0, win);
		CHECK(suite_rank || *sum == 2L * ADDS * (how + 1), "%d: %ld", how, *sum);
		MPI_Win_unlock(suite_rank, win);
		MPI_Barrier(comm);
	}
}

void beside_one_sided(MPI_Comm comm)
{
	_Alignas(ALIGNED) long sum = 0;
	MPI_Win win;

	library_begin(comm);
	one_sided(comm, window, memory);
	MPI_Win_create(&sum, sizeof(sum), sizeof(sum), MPI_INFO_NULL, comm, &win);
	one_sided(comm, win, &sum);
	MPI_Win_free(&win);
	library_end();
}

/* ---- Asked once, after a message over rails ------------------------------------------------ */

/*
 * The library looks as often as needed after a collective, and a few times after a message
 * (src/mpi/job/catch_up.c).
 */
enum { ROUNDS = 50, BURST_COLLECTIVE = 40, BURST_MESSAGE = 3 };

static int burst(bool by_barrier)
{
	return by_barrier ? BURST_COLLECTIVE : BURST_MESSAGE;
}

bool beside_ask(enum ask how, MPI_Request *q, int source, MPI_Comm comm, MPI_Message *message)
{
	int flag = 0, index;

	switch (how) {
	case ASK_TEST:
		MPI_Test(q, &flag, MPI_STATUS_IGNORE);
		break;
	case ASK_TESTALL:
		MPI_Testall(1, q, &flag, MPI_STATUSES_IGNORE);
		break;
	case ASK_TESTANY:
		MPI_Testany(1, q, &index, &flag, MPI_STATUS_IGNORE);
		break;
	case ASK_TESTSOME:
		MPI_Testsome(1, q, &flag, &index, MPI_STATUSES_IGNORE);
		break;
	case ASK_GET_STATUS:
		MPI_Request_get_status(*q, &flag, MPI_STATUS_IGNORE);
		break;
	case ASK_IPROBE:
		MPI_Iprobe(source, BESIDE_TAG, comm, &flag, MPI_STATUS_IGNORE);
		break;
	case ASK_IMPROBE:
		MPI_Improbe(source, BESIDE_TAG, comm, &flag, message, MPI_STATUS_IGNORE);
		break;
	case ASK_WAYS:
		break;
	}
	return flag;
}

void beside_receive(enum ask how, bool found, int source, MPI_Comm comm, MPI_Message *message,
		    long *word)
{
	if (how == ASK_IMPROBE && found)
		MPI_Mrecv(word, 1, MPI_LONG, message, MPI_STATUS_IGNORE);
	else if (ask_probes(how))
		MPI_Recv(word, 1, MPI_LONG, source, BESIDE_TAG, comm, MPI_STATUS_IGNORE);
}

/* More ways to ask, after those of enum ask. */
enum {
	ASK_MIXED_ALL = ASK_WAYS, ASK_MIXED_ANY, ASK_MIXED_SOME,	/* in addition to a request of comm */
	ASK_BURST, ASK_WIN,
#if MPI_VERSION >= 4
	ASK_PARRIVED,
#endif
	ASKS,
};

static const char *const asks[ASKS] = {
	"MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Request_get_status",
	"MPI_Iprobe", "MPI_Improbe", "MPI_Testall of both", "MPI_Testany of both", "MPI_Testsome of both",
	"MPI_Iprobe behind many", "MPI_Win_test",
#if MPI_VERSION >= 4
	"MPI_Parrived",
#endif
};

/* Rank 1: what is to be seen at once. */
static void give(int how, bool by_barrier, long *word, MPI_Request *part)
{
	switch (how) {
	case ASK_WIN:
		MPI_Win_start(peer, 0, window);
		MPI_Put(word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
		MPI_Win_complete(window);
		return;
#if MPI_VERSION >= 4
	case ASK_PARRIVED:
		MPI_Start(part);
		MPI_Pready(0, *part);
		return;
#endif
	case ASK_BURST:
		for (int i = 1; i < burst(by_barrier); i++)
			MPI_Send(word, 1, MPI_LONG, 0, BESIDE_TAG + 1, between);
		break;
	default:
		break;
	}
	MPI_Send(word, 1, MPI_LONG, 0, BESIDE_TAG, between);
}

/* Rank 0, before rank 1 gives: q[0] is of comm and complete, or never is; q[1] is the library's. */
static void prepare(int how, MPI_Comm comm, long *word, MPI_Request q[2])
{
	if (how == ASK_WIN)
		MPI_Win_post(peer, 0, window);
	else if (!ask_probes(how) && how <= ASK_MIXED_SOME)
		MPI_Irecv(word, 1, MPI_LONG, 0, BESIDE_TAG, between, &q[1]);
	if (how == ASK_MIXED_ALL)
		MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &q[0]);
	else if (how == ASK_MIXED_ANY || how == ASK_MIXED_SOME)
		MPI_Irecv(NULL, 0, MPI_BYTE, 1, BESIDE_TAG + 2, comm, &q[0]);
#if MPI_VERSION >= 4
	if (how == ASK_PARRIVED)
		MPI_Start(&q[1]);
#endif
}

static bool ask(int how, MPI_Request q[2], MPI_Message *message)
{
	int flag = 0, index, indices[2], count;
	MPI_Status st[2];

	switch (how) {
	case ASK_MIXED_ALL:
		MPI_Testall(2, q, &flag, st);
		return flag;
	case ASK_MIXED_ANY:
		MPI_Testany(2, q, &index, &flag, MPI_STATUS_IGNORE);
		return flag;
	case ASK_MIXED_SOME:
		MPI_Testsome(2, q, &count, indices, MPI_STATUSES_IGNORE);
		return count == 1;
	case ASK_BURST:
		return beside_ask(ASK_IPROBE, NULL, 0, between, NULL);
	case ASK_WIN:
		MPI_Win_test(window, &flag);
		return flag;
#if MPI_VERSION >= 4
	case ASK_PARRIVED:
		MPI_Parrived(q[1], 0, &flag);
		return flag;
#endif
	default:
		return beside_ask(how, &q[1], 0, between, message);
	}
}

/* Whatever the answer was: it comes, and is right. */
static void take(int how, bool by_barrier, long *word, MPI_Request q[2], MPI_Message *message,
		 int flag)
{
	if (how == ASK_WIN) {
		if (!flag)
			MPI_Win_wait(window);
		*word = *memory;
	} else if (how == ASK_BURST) {
		beside_receive(ASK_IPROBE, flag, 0, between, message, word);
		for (int i = 1; i < burst(by_barrier); i++)
			MPI_Recv(word, 1, MPI_LONG, 0, BESIDE_TAG + 1, between, MPI_STATUS_IGNORE);
	} else {
		beside_receive(how, flag, 0, between, message, word);
	}
	MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	if (how == ASK_MIXED_ANY || how == ASK_MIXED_SOME)
		MPI_Cancel(&q[0]);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
}

/* Run a round; true: the first answer was no. */
static bool late(int how, bool by_barrier, MPI_Comm comm, long *word, MPI_Request *part)
{
	MPI_Request q[2] = {MPI_REQUEST_NULL, *part};
	const long wanted = *word;
	MPI_Message message;
	int flag;

	if (suite_rank == 0) {
		*word = -1;
		prepare(how, comm, word, q);
	}
	MPI_Barrier(comm);
	if (suite_rank == 1)
		give(how, by_barrier, word, part);
	if (by_barrier)
		MPI_Barrier(comm);
	else if (suite_rank == 1)
		MPI_Send(NULL, 0, MPI_BYTE, 0, BESIDE_TAG + 3, comm);
	else if (suite_rank == 0)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, BESIDE_TAG + 3, comm, MPI_STATUS_IGNORE);
	if (suite_rank) {
		if (*part != MPI_REQUEST_NULL)
			MPI_Wait(part, MPI_STATUS_IGNORE);
		return false;
	}
	flag = ask(how, q, &message);
	take(how, by_barrier, word, q, &message, flag);
	CHECK(*word == wanted, "%s: %ld", asks[how], *word);
	return !flag;
}

void beside_asked_once(MPI_Comm comm)
{
	library_begin(comm);
	for (int how = 0; how < ASKS; how++) {
		MPI_Request part = MPI_REQUEST_NULL;
		int lates[2] = {0, 0};
		long word;

#if MPI_VERSION >= 4
		if (how == ASK_PARRIVED && suite_rank == 0)
			MPI_Precv_init(&word, 1, 1, MPI_LONG, 0, BESIDE_TAG, between, MPI_INFO_NULL, &part);
		else if (how == ASK_PARRIVED && suite_rank == 1)
			MPI_Psend_init(&word, 1, 1, MPI_LONG, 0, BESIDE_TAG, between, MPI_INFO_NULL, &part);
#endif
		/* The first rounds do not count: a partitioned message's ends have to find each other. */
		for (int k = 0; k < 2 * ROUNDS + 2; k++) {
			word = 1000 * how + k;
			lates[k % 2] += late(how, k % 2 == 0, comm, &word, &part) && k > 1;
		}
		if (part != MPI_REQUEST_NULL)
			MPI_Request_free(&part);
		CHECK(!lates[0] && !lates[1], "%s: of %d, %d late behind a barrier and %d behind a message",
		      asks[how], ROUNDS, lates[0], lates[1]);
	}
	library_end();
}

/*
 * ---- The other way: asked once, after a collective of the library's -----------------------------
 */

enum { AHEAD = 100 };

static void answered(int how, MPI_Comm comm)
{
	MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	long word = -1, other;
	MPI_Message message;
	int flag;

	if (suite_rank == 0 && !ask_probes(how))
		MPI_Irecv(&word, 1, MPI_LONG, 1, BESIDE_TAG, comm, &q[1]);
	wait_ibarrier(comm);
	for (int i = 0; suite_rank == 1 && i <= AHEAD; i++) {
		word = how;
		MPI_Send(&word, 1, MPI_LONG, 0, i < AHEAD ? BESIDE_TAG + 1 : BESIDE_TAG, comm);
	}
	wait_ibarrier(comm);
	if (suite_rank)
		return;
	flag = beside_ask(how, &q[1], 1, comm, &message);
	CHECK(flag, "%s: late", asks[how]);
	beside_receive(how, flag, 1, comm, &message, &word);
	MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	for (int i = 0; i < AHEAD; i++)
		MPI_Recv(&other, 1, MPI_LONG, 1, BESIDE_TAG + 1, comm, MPI_STATUS_IGNORE);
	CHECK(word == (long)how, "%s: %ld", asks[how], word);
}

void beside_answered_once(MPI_Comm comm)
{
	MPI_Barrier(comm);	/* they are connected: MPI_Send copies what waits for that */
	for (int k = 0; k < 5; k++)
		for (int how = 0; how < ASK_WAYS; how++)
			answered(how, comm);
}
