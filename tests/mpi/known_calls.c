/*
 * known_calls.c - a program of known calls, for what is told of them (ledger.sh): two ranks,
 * messages over rails from rank 0 to rank 1, some collectives, and the same on a communicator
 * that is native.
 *
 * Usage: known_calls [many N | abort | cancel | kill | dump FILE | reductions]
 *	many	N messages of 8 bytes more
 *	abort	MPI_Abort in place of MPI_Finalize
 *	cancel	rank 0 cancels a message of 1 MiB that rank 1 does not receive
 *	kill	rank 0 is killed then
 *	dump	SIGUSR2, once while rank 0 has known queues and once while it waits; goes on
 *		when FILE is there
 *	reductions	nothing else than reductions, of one element: says how many are right, and makes
 *		some of each kind that is the library's
 * KNOWN_MULTIPLE in the environment: with MPI_THREAD_MULTIPLE.
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static int rank;
static char *out, *in;

static MPI_Comm native_dup(void)
{
	MPI_Comm comm;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", "native");
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
	MPI_Info_free(&info);
	return comm;
}

static void receive(int count, int bytes, int tag, MPI_Comm comm)
{
	while (count--)
		MPI_Recv(in, bytes, MPI_BYTE, 0, tag, comm, MPI_STATUS_IGNORE);
}

/* MPI_Send 5, 330 bytes; MPI_Ssend 1, 8; MPI_Bsend 1, 50; MPI_Start 4, 80; MPI_Isend 2, 2 MiB */
static void sends(void)
{
	static char buffer[50 + MPI_BSEND_OVERHEAD];
	int size = sizeof(buffer);
	MPI_Request large[2], again;
	void *detached;

	for (int i = 0; i < 3; i++)
		MPI_Send(out, 100, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
	MPI_Send(out, 100, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	for (int i = 0; i < 2; i++)
		MPI_Isend(out, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &large[i]);
	MPI_Waitall(2, large, MPI_STATUSES_IGNORE);
	MPI_Ssend(out, 8, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
	MPI_Buffer_attach(buffer, size);
	MPI_Bsend(out, 50, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
	MPI_Buffer_detach(&detached, &size);
	MPI_Send_init(out, 5, MPI_INT, 1, 5, MPI_COMM_WORLD, &again);
	for (int i = 0; i < 4; i++) {
		if (i < 2)
			MPI_Start(&again);
		else
			MPI_Startall(1, &again);
		MPI_Wait(&again, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&again);
	MPI_Send(out, 30, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
}

/* MPI_Recv 9, MPI_Irecv 2, MPI_Mprobe 1, MPI_Mrecv 1 */
static void receives(void)
{
	MPI_Request large[2];
	MPI_Message message;

	receive(3, 100, 1, MPI_COMM_WORLD);
	for (int i = 0; i < 2; i++)
		MPI_Irecv(in + i * LARGE, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &large[i]);
	MPI_Waitall(2, large, MPI_STATUSES_IGNORE);
	receive(1, 8, 3, MPI_COMM_WORLD);
	receive(1, 50, 4, MPI_COMM_WORLD);
	receive(4, 20, 5, MPI_COMM_WORLD);
	MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
	MPI_Mrecv(in, 30, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

/*
 * Calls of each rank: MPI_Sendrecv 64 bytes, MPI_Allreduce 4, MPI_Barrier twice, MPI_Bcast (0:
 * 1000).
 */
static void together(void)
{
	int one = 1, all = 0;
	MPI_Request request;

	MPI_Sendrecv(out, 64, MPI_BYTE, !rank, 7, in, 64, MPI_BYTE, !rank, 7, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Bcast(out, 1000, MPI_BYTE, 0, MPI_COMM_WORLD);
	MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* MPI_Send 5, MPI_Recv 5, MPI_Allreduce 2 */
static void natively(MPI_Comm comm)
{
	int one = 1, all = 0;

	for (int i = 0; rank == 0 && i < 5; i++)
		MPI_Send(out, 10, MPI_BYTE, 1, 1, comm);
	if (rank == 1)
		receive(5, 10, 1, comm);
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
}

/* Types that a library may lack, and what their elements can be combined by. */
enum { TYPES_MAX = 64 };
struct reducible {
	MPI_Datatype type;
	MPI_Op op;
};

static int optional_types(struct reducible to[TYPES_MAX])
{
	const struct reducible all[] = {
		{MPI_CHAR, MPI_MAX}, {MPI_AINT, MPI_SUM}, {MPI_OFFSET, MPI_BAND}, {MPI_COUNT, MPI_PROD},
		{MPI_REAL4, MPI_SUM}, {MPI_REAL8, MPI_SUM}, {MPI_REAL8, MPI_MAX},
		{MPI_INTEGER4, MPI_SUM}, {MPI_INTEGER8, MPI_SUM}, {MPI_COMPLEX16, MPI_SUM},
		{MPI_2REAL, MPI_MAXLOC}, {MPI_2INTEGER, MPI_MINLOC}, {MPI_2DOUBLE_PRECISION, MPI_MAXLOC},
		{MPI_LONG_DOUBLE_INT, MPI_MINLOC},
#ifdef MPI_REAL16
		{MPI_REAL16, MPI_SUM},
#endif
#ifdef MPI_INTEGER1
		{MPI_INTEGER1, MPI_SUM}, {MPI_INTEGER2, MPI_MIN},
#endif
#ifdef MPI_COMPLEX8
		{MPI_COMPLEX8, MPI_PROD},
#endif
#ifdef MPI_LOGICAL4
		{MPI_LOGICAL1, MPI_LOR}, {MPI_LOGICAL2, MPI_LAND}, {MPI_LOGICAL4, MPI_LOR},
		{MPI_LOGICAL8, MPI_LXOR},
#endif
#ifdef MPI_CXX_BOOL
		{MPI_CXX_BOOL, MPI_LOR}, {MPI_CXX_FLOAT_COMPLEX, MPI_SUM},
		{MPI_CXX_DOUBLE_COMPLEX, MPI_SUM},
#endif
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].type != MPI_DATATYPE_NULL)
			to[n++] = all[i];
	for (int i = 0; i < 5; i++)
		to[n + i].op = MPI_SUM;
	MPI_Type_create_f90_real(6, MPI_UNDEFINED, &to[n++].type);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &to[n++].type);
	MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &to[n++].type);
	MPI_Type_create_f90_integer(9, &to[n++].type);
	MPI_Type_create_f90_integer(15, &to[n++].type);
	return n;
}

static void add(void *left, void *right, int *count, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *count; i++)
		((int *)right)[i] += ((const int *)left)[i];
}

static void others(void)
{
	int one = 1, all = 0;
	MPI_Datatype copy;
	MPI_Comm half, inter;

	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
	MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !rank, 0, &inter);
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, inter);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_MAXLOC, MPI_COMM_WORLD);
	MPI_Type_dup(MPI_INT, &copy);
	MPI_Allreduce(&one, &all, 1, copy, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_REPLACE, MPI_COMM_WORLD);
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD);
	MPI_Type_free(&copy);
}

/* The library's result is that of the same call on a communicator that is native. */
static void reductions(MPI_Comm native)
{
	enum { ROOM = 64 };
	struct reducible type[TYPES_MAX];
	int n = optional_types(type), right = 0, one = 1, all;
	MPI_Op op;

	for (int i = 0; i < n; i++) {
		_Alignas(ROOM) unsigned char from[ROOM] = {0}, ours[ROOM] = {0}, theirs[ROOM] = {0};

		from[1] = (unsigned char)(3 + rank);
		from[0] = (unsigned char)rank;
		MPI_Allreduce(from, theirs, 1, type[i].type, type[i].op, native);
		MPI_Allreduce(from, ours, 1, type[i].type, type[i].op, MPI_COMM_WORLD);
		right += memcmp(ours, theirs, ROOM) == 0;
	}
	MPI_Op_create(add, 0, &op);
	MPI_Allreduce(&one, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
	right += all == 2;
	MPI_Op_free(&op);
	others();
	if (rank == 0)
		printf("%d of %d right\n", right, n + 1);
}

static void many(int count)
{
	for (int i = 0; rank == 0 && i < count; i++)
		MPI_Send(out, 8, MPI_BYTE, 1, 8, MPI_COMM_WORLD);
	if (rank == 1)
		receive(count, 8, 8, MPI_COMM_WORLD);
}

static void on_alarm(int number)
{
	(void)number;
	raise(SIGUSR2);
}

/* Queues of rank 1: four receives are posted, three messages unexpected, 16 bytes and 1 MiB. */
static void rank0_waits(void)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 200000 } };
	MPI_Request posted[4], any;

	for (int i = 0; i < 4; i++)
		MPI_Irecv(in + i, 1, MPI_BYTE, 1, 100 + (i == 3), MPI_COMM_WORLD, &posted[i]);
	MPI_Irecv(in + 4, 1, MPI_BYTE, MPI_ANY_SOURCE, 102, MPI_COMM_WORLD, &any);
	MPI_Recv(in, 8, MPI_BYTE, 1, 105, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	raise(SIGUSR2);
	signal(SIGALRM, on_alarm);
	usleep(100000);
	setitimer(ITIMER_REAL, &soon, NULL);
	MPI_Wait(&posted[3], MPI_STATUS_IGNORE);
	MPI_Waitall(3, posted, MPI_STATUSES_IGNORE);
	MPI_Wait(&any, MPI_STATUS_IGNORE);
	for (int i = 0; i < 2; i++)
		MPI_Recv(in, 8, MPI_BYTE, 1, 103, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(in, LARGE, MPI_BYTE, 1, 104, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* To rank 0: one message is in flight, until FILE is there. */
static void rank1_serves(const char *file)
{
	MPI_Request large;

	for (int i = 0; i < 2; i++)
		MPI_Send(out, 8, MPI_BYTE, 0, 103, MPI_COMM_WORLD);
	MPI_Isend(out, LARGE, MPI_BYTE, 0, 104, MPI_COMM_WORLD, &large);
	MPI_Send(out, 8, MPI_BYTE, 0, 105, MPI_COMM_WORLD);
	raise(SIGUSR2);
	while (access(file, F_OK))
		usleep(1000);
	for (int i = 0; i < 3; i++)
		MPI_Send(out, 1, MPI_BYTE, 0, 100, MPI_COMM_WORLD);
	MPI_Send(out, 1, MPI_BYTE, 0, 102, MPI_COMM_WORLD);
	MPI_Send(out, 1, MPI_BYTE, 0, 101, MPI_COMM_WORLD);
	MPI_Wait(&large, MPI_STATUS_IGNORE);
}

/* Rank 0 is away from MPI while each of its messages is under way. */
static void computes(void)
{
	MPI_Request q;

	for (int i = 0; i < 50; i++) {
		if (rank == 1) {
			receive(1, LARGE, 300, MPI_COMM_WORLD);
			continue;
		}
		MPI_Isend(out, LARGE, MPI_BYTE, 1, 300, MPI_COMM_WORLD, &q);
		usleep(10000);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
	}
}

/* The tag is 200: rank 1 looks at its messages in the barrier and takes none. */
static void cancels(void)
{
	int cancelled = 1;
	MPI_Request q;
	MPI_Status st;

	if (rank == 0) {
		MPI_Isend(out, LARGE, MPI_BYTE, 1, 200, MPI_COMM_WORLD, &q);
		MPI_Cancel(&q);
		MPI_Wait(&q, &st);
		MPI_Test_cancelled(&st, &cancelled);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (!cancelled)
		MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
	int level = getenv("KNOWN_MULTIPLE") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, size;
	const char *mode = argc > 1 ? argv[1] : "";
	MPI_Comm native;

	MPI_Init_thread(&argc, &argv, level, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = calloc(1, LARGE);
	in = calloc(2, LARGE);
	if (size != 2 || !out || !in)
		MPI_Abort(MPI_COMM_WORLD, 2);
	native = native_dup();
	if (strcmp(mode, "reductions") == 0) {
		reductions(native);
	} else {
		if (rank == 0)
			sends();
		else
			receives();
		together();
		natively(native);
	}
	if (strcmp(mode, "many") == 0)
		many(atoi(argv[2]));
	if (strcmp(mode, "cancel") == 0)
		cancels();
	if (strcmp(mode, "computes") == 0)
		computes();
	if (strcmp(mode, "dump") == 0 && rank == 0)
		rank0_waits();
	else if (strcmp(mode, "dump") == 0)
		rank1_serves(argv[2]);
	if (strcmp(mode, "kill") == 0 && rank == 0)
		raise(SIGKILL);
	if (strcmp(mode, "abort") == 0 && rank == 0) {
		MPI_Abort(MPI_COMM_WORLD, 5);
		pause();	/* MPICH 4.2.1 returns, and ends the job a moment later */
	}
	MPI_Comm_free(&native);
	MPI_Finalize();
	if (rank == 0)
		printf("done\n");
	free(out);
	free(in);
	return 0;
}
