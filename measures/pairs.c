/*
 * pairs.c - MPI_Isend and MPI_Irecv of a few bytes, on messages that have already arrived, for
 * measures/instructions.sh to count the instructions of.
 *
 *	pairs FILE [ROUNDS [N]]	on two ranks; FILE, of any content, is what they agree by
 *
 * A message is 8 bytes, or N doubles, every second one of a vector.
 *
 * Two functions are counted, and nothing else: pair_send on rank 0, MPI_Isend and the MPI_Test
 * that completes it, and pair_receive on rank 1, MPI_Irecv and its MPI_Test.  Rank 1 enters
 * pair_receive when rank 0 has left pair_send: told by a word in FILE, outside MPI, asleep in
 * between.  So every MPI_Test should find all done when it looks for the first time; those
 * that do not are counted, and told at the end.  Rounds before the counted ones warm up, in
 * functions of other names.
 */
#include <mpi.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WARM = 200, BYTES = 8, DOUBLES_MAX = 4096, TAG = 7 };

static double buffer[2 * DOUBLES_MAX];
static int count = BYTES;
static MPI_Datatype type = MPI_BYTE;
static long looks;		/* calls of MPI_Test that found nothing */

static inline void complete(MPI_Request *request)
{
	int done = 0;

	for (MPI_Test(request, &done, MPI_STATUS_IGNORE); !done; looks++)
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

static inline void send_one(void)
{
	MPI_Request request;

	MPI_Isend(buffer, count, type, 1, TAG, MPI_COMM_WORLD, &request);
	complete(&request);
}

static inline void receive_one(void)
{
	MPI_Request request;

	MPI_Irecv(buffer, count, type, 0, TAG, MPI_COMM_WORLD, &request);
	complete(&request);
}

void pair_send(void);
void pair_receive(void);
void warm_send(void);
void warm_receive(void);

__attribute__((noinline)) void pair_send(void) { send_one(); }
__attribute__((noinline)) void pair_receive(void) { receive_one(); }
__attribute__((noinline)) void warm_send(void) { send_one(); }
__attribute__((noinline)) void warm_receive(void) { receive_one(); }

static void await(const _Atomic long *turn, long wanted)
{
	const struct timespec nap = { 0, 20000 };

	while (atomic_load(turn) < wanted)
		nanosleep(&nap, NULL);
}

static _Atomic long *turn_open(const char *path)
{
	int fd = open(path, O_RDWR);
	void *at = fd < 0 || ftruncate(fd, 4096) ? MAP_FAILED :
		   mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		perror(path);
		exit(3);
	}
	return at;
}

static void type_make(int doubles)
{
	if (doubles < 1 || doubles > DOUBLES_MAX)
		MPI_Abort(MPI_COMM_WORLD, 3);
	MPI_Type_vector(doubles, 1, 2, MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	count = 1;
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? atol(argv[2]) : 1000, all;
	char out[BYTES] = "", in[BYTES];
	_Atomic long *turn;
	int rank, size;

	if (argc < 2) {
		fprintf(stderr, "pairs FILE [ROUNDS [N]]\n");
		return 3;
	}
	turn = turn_open(argv[1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2)
		MPI_Abort(MPI_COMM_WORLD, 3);
	if (argc > 3)
		type_make(atoi(argv[3]));
	/* Both sides connect when the first messages need it. */
	for (int k = 0; k < 20; k++)
		MPI_Sendrecv(out, BYTES, MPI_BYTE, 1 - rank, TAG, in, BYTES, MPI_BYTE, 1 - rank, TAG,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (long k = 0; k < WARM + rounds; k++) {
		if (k == WARM)
			looks = 0;
		await(turn, 2 * k + rank);
		if (rank == 0)
			(k < WARM ? warm_send : pair_send)();
		else
			(k < WARM ? warm_receive : pair_receive)();
		atomic_store(turn, 2 * k + rank + 1);
	}
	MPI_Reduce(&looks, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld rounds, %ld looks in vain\n", rounds, all);
	MPI_Finalize();
	return 0;
}
