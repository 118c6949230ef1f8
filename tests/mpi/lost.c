/*
 * lost.c - a rank is lost while the others wait for it, each in another call: every call ends with
 * an error that names that rank, what is not its business goes on, and MPI_Finalize returns.
 *
 *	lost cut	the last rank's rails are cut, by --soft down=... or by hand; it lives
 *	lost cut unmet	the same, and no rank has ever talked to it
 *	lost fatal	the same, with the error handler that all communicators have at first
 *	lost killed	the last rank kills itself, and the launcher does not mind
 *	lost stopped	the last rank is stopped for some seconds: nobody is lost
 *
 * With RG_LOST_THREADS in the environment the program asks for MPI_THREAD_MULTIPLE.
 *
 * The program knows nothing of the layer but the beginning of its errors.
 */
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include "lost_waits.h"

enum { STOPPED_S = 8, FINALIZE_S = 15, LATE_S = 3 };

/* ---- Afterwards --------------------------------------------------------------------------- */

/* Each call that names the lost rank, or waits for any, ends at once. */
static void nothing_more(MPI_Comm comm)
{
	char attached[4096];
	MPI_Request request;
	MPI_Status status;
	void *detached;
	int i, size;

	for (i = 0; i < wait_count; i++)
		check_lost(waits[i].wait(), victim, waits[i].name);
	check_lost(MPI_Recv(in, 8, MPI_BYTE, victim, NEVER, comm, &status), victim, "another's");
	CHECK(status.MPI_SOURCE == victim, "source %d", status.MPI_SOURCE);
	check_lost(MPI_Send(out, 8, MPI_BYTE, victim, NEVER, comm), victim, "MPI_Send, short");
	MPI_Buffer_attach(attached, sizeof(attached));
	check_lost(MPI_Bsend(out, 8, MPI_BYTE, victim, NEVER, comm), victim, "MPI_Bsend");
	MPI_Buffer_detach(&detached, &size);
	MPI_Recv_init(in, 8, MPI_BYTE, MPI_ANY_SOURCE, NEVER, comm, &request);
	for (i = 0; i < 2; i++) {
		MPI_Start(&request);
		check_lost(MPI_Wait(&request, &status), victim, "MPI_Recv_init");
	}
	MPI_Request_free(&request);
}

static void exchange(MPI_Comm comm, int right, int left, int size)
{
	MPI_Status status;
	int rc;

	suite_fill(out, (size_t)size, suite_rank, 3);
	suite_blank(in, LARGE);
	rc = MPI_Sendrecv(out, size, MPI_BYTE, right, TAG, in, LARGE, MPI_BYTE, left, TAG, comm,
			  &status);
	CHECK(rc == MPI_SUCCESS, "rc %d", rc);
	suite_verify(in, (size_t)size, (size_t)size, left, 3);
	suite_status(&status, left, TAG, (size_t)size);
}

/* Ranks that live use each other as before: by name, and from any source where no rank is lost. */
static void others_go_on(void)
{
	int n = victim, i, rc, sum = 0, mine = suite_rank;
	int right = (suite_rank + 1) % n, left = (suite_rank + n - 1) % n;
	MPI_Group world, living;
	MPI_Comm comm;

	exchange(MPI_COMM_WORLD, right, left, 8);
	exchange(MPI_COMM_WORLD, right, left, LARGE - 3);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_excl(world, 1, &victim, &living);
	rc = MPI_Comm_create_group(MPI_COMM_WORLD, living, 1, &comm);
	CHECK(rc == MPI_SUCCESS, "rc %d", rc);
	MPI_Send(&mine, 1, MPI_INT, right, TAG, comm);
	rc = MPI_Recv(&i, 1, MPI_INT, MPI_ANY_SOURCE, TAG, comm, MPI_STATUS_IGNORE);
	CHECK(rc == MPI_SUCCESS && i == left, "rc %d, %d", rc, i);
	rc = MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK(rc == MPI_SUCCESS && sum == n * (n - 1) / 2, "rc %d, sum %d", rc, sum);
	rc = MPI_Comm_disconnect(&comm);
	CHECK(rc == MPI_SUCCESS, "rc %d", rc);
	MPI_Group_free(&world);
	MPI_Group_free(&living);
}

/*
 * All call them, the lost rank too if it lives: none waits for ever, and who has no error has the
 * right result.
 */
static void collectives(void)
{
	int size = suite_size, i, rc, *all = calloc((size_t)size, sizeof(*all)), mine, sum;
	bool error = false;

	rc = MPI_Barrier(MPI_COMM_WORLD);
	check_class(rc, "a barrier without a rank");
	suite_fill(out, LARGE, 0, 4);
	suite_blank(in, LARGE);
	memcpy(in, out, suite_rank == 0 ? LARGE : 0);
	rc = MPI_Bcast(in, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD);
	if (rc == MPI_SUCCESS)
		suite_verify(in, LARGE, LARGE, 0, 4);
	else
		error = true;
	mine = suite_rank + 1;
	rc = MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check_class(rc, "a sum without a rank");
	rc = MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	check_class(rc, "all without a rank");
	rc = MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (suite_rank == 0 || rc)
		check_class(rc, "gathered without a rank");
	rc = MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rc == MPI_SUCCESS)
		CHECK(sum == mine * (mine + 1) / 2, "scan: %d", sum);
	for (i = 0; i < size; i++)
		all[i] = 100 * (suite_rank + 1) + i;
	rc = MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	check_class(rc, "all to all without a rank");
	CHECK(suite_rank != victim || error, "the lost rank received a broadcast");
	free(all);
}

/*
 * Rank 0 calls collectives that the others, who may have had errors, do not; one calls one of them
 * late, when nobody waits for its message any more.
 */
static void left_alone(MPI_Comm comm)
{
	int rc, done = 1;
	char *all;

	if (suite_rank == 0) {
		check_class(MPI_Barrier(comm), "a barrier alone");
		check_class(MPI_Bcast(out, LARGE, MPI_BYTE, 0, comm), "a broadcast alone");
		all = malloc((size_t)suite_size * LARGE);
		check_class(MPI_Gather(in, LARGE, MPI_BYTE, all, LARGE, MPI_BYTE, 0, comm), "gathered alone");
		free(all);
		rc = MPI_Ssend(&done, 1, MPI_INT, 1, TAG, comm);
		CHECK(rc == MPI_SUCCESS, "rc %d", rc);
		rc = MPI_Recv(&done, 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE);
		CHECK(rc == MPI_SUCCESS && done == 2, "rc %d, %d", rc, done);
	} else if (suite_rank == 1) {
		rc = MPI_Recv(&done, 1, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
		CHECK(rc == MPI_SUCCESS, "rc %d", rc);
		MPI_Barrier(comm);
		MPI_Bcast(in, LARGE, MPI_BYTE, 0, comm);
		MPI_Gather(out, LARGE, MPI_BYTE, NULL, 0, MPI_BYTE, 0, comm);
		/* Rank 0 looks for late messages while it waits, once a second. */
		sleep(LATE_S);
		done = 2;
		rc = MPI_Send(&done, 1, MPI_INT, 0, TAG, comm);
		CHECK(rc == MPI_SUCCESS, "rc %d", rc);
	}
}

/* A communicator that is made after the loss; the library's own messages find the lost rank. */
static void new_communicator(void)
{
	MPI_Request request;
	MPI_Comm comm;
	int rc = MPI_Comm_dup(MPI_COMM_WORLD, &comm);

	CHECK(rc == MPI_SUCCESS, "rc %d", rc);
	if (suite_rank == victim)
		check_lost(MPI_Recv(in, 8, MPI_BYTE, 0, NEVER, comm, MPI_STATUS_IGNORE), 0,
			   "a new communicator");
	else
		nothing_more(comm);
	left_alone(comm);
	/* The rank waits for messages of a rank that has ended. */
	MPI_Irecv(in, 8, MPI_BYTE, suite_rank == victim ? 0 : victim, NEVER, comm, &request);
	rc = MPI_Comm_disconnect(&comm);
	CHECK(rc == MPI_SUCCESS, "rc %d", rc);
	check_lost(MPI_Wait(&request, MPI_STATUS_IGNORE), suite_rank == victim ? 0 : victim,
		   "after MPI_Comm_disconnect");
}

/* ---- Ways to be lost ---------------------------------------------------------------------- */

/*
 * Connections are there; what fails is not judged, since the loss may come early.  All at the same
 * time: the loss of each peer that is not connected takes some seconds to find.
 */
static void greet_victim(void)
{
	MPI_Request *request;
	int i;

	if (suite_rank != victim) {
		MPI_Sendrecv(out, 8, MPI_BYTE, victim, TAG, in, 8, MPI_BYTE, victim, TAG,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	request = malloc(2 * (size_t)victim * sizeof(*request));
	for (i = 0; i < victim; i++) {
		MPI_Irecv(in + 8 * i, 8, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &request[2 * i]);
		MPI_Isend(out, 8, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &request[2 * i + 1]);
	}
	for (i = 0; i < 2 * victim; i++)
		MPI_Wait(&request[i], MPI_STATUS_IGNORE);
	free(request);
}

/* The rank waits for all others, and each waits for it. */
static void cut(bool met)
{
	int i;

	if (met)
		greet_victim();
	printf("rank %d: waits\n", suite_rank);
	fflush(stdout);
	if (suite_rank == victim) {
		for (i = 0; i < victim; i++)
			check_lost(MPI_Recv(in, 8, MPI_BYTE, i, NEVER, MPI_COMM_WORLD,
					    MPI_STATUS_IGNORE), i, "the lost rank's own");
	} else {
		check_lost(waits[suite_rank % wait_count].wait(), victim, waits[suite_rank % wait_count].name);
		nothing_more(MPI_COMM_WORLD);
		others_go_on();
	}
	collectives();
	new_communicator();
}

/* Ping-pong of few bytes, until it is one no longer. */
static void fatal(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	for (;;)
		greet_victim();
}

/* Rank 0 has never talked to it; the others have.  Rank 1 waits in a barrier. */
static void killed(void)
{
	int pid = (int)getpid();

	signal(SIGUSR1, SIG_IGN);	/* from MPICH's launcher, to those who live */
	if (suite_rank == victim) {
		for (int i = 1; i < victim; i++)
			MPI_Ssend(&pid, 1, MPI_INT, i, TAG, MPI_COMM_WORLD);
		raise(SIGKILL);
	}
	if (suite_rank)
		MPI_Recv(&pid, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (suite_rank != 1)
		check_lost(waits[suite_rank].wait(), victim, waits[suite_rank].name);
	check_class(MPI_Barrier(MPI_COMM_WORLD), "a barrier");
	nothing_more(MPI_COMM_WORLD);
	others_go_on();
}

/* The rank before it lets it go on; all wait in the meantime. */
static void stopped(void)
{
	int pid = (int)getpid(), rc;

	if (suite_rank == victim) {
		MPI_Ssend(&pid, 1, MPI_INT, victim - 1, TAG, MPI_COMM_WORLD);
		raise(SIGSTOP);
		for (int i = 0; i < victim; i++)
			MPI_Send(&pid, 1, MPI_INT, i, TAG + 1, MPI_COMM_WORLD);
	} else {
		if (suite_rank == victim - 1) {
			MPI_Recv(&pid, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (fork() == 0) {
				sleep(STOPPED_S);
				kill((pid_t)pid, SIGCONT);
				_exit(0);
			}
		}
		rc = MPI_Recv(&pid, 1, MPI_INT, victim, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(rc == MPI_SUCCESS, "rc %d", rc);
	}
	rc = MPI_Barrier(MPI_COMM_WORLD);
	CHECK(rc == MPI_SUCCESS, "rc %d", rc);
}

static void init(int *argc, char ***argv)
{
	int provided, wanted = getenv("RG_LOST_THREADS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;

	MPI_Init_thread(argc, argv, wanted, &provided);
	CHECK(provided >= wanted, "threads: %d", provided);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &suite_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &suite_size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	suite_where = how;
	victim = suite_size - 1;
	out = calloc(1, LARGE);
	in = calloc(1, LARGE);
	CHECK(out && in && victim > 1, "memory, or ranks");
	if (!strcmp(how, "cut"))
		cut(argc < 3);
	else if (!strcmp(how, "fatal"))
		fatal();
	else if (!strcmp(how, "killed"))
		killed();
	else
		stopped();
	printf("rank %d: as it should be\n", suite_rank);
	fflush(stdout);
	/*
	 * The libraries' own MPI_Finalize may wait for ever for a rank that was killed: MPICH's does, and
	 * Open MPI's in 3 of 8 jobs natively, when the others are busy before it.
	 */
	if (!strcmp(how, "killed"))
		alarm(FINALIZE_S);
	free(out);
	free(in);
	MPI_Finalize();
	printf("rank %d: the end\n", suite_rank);
	return 0;
}
