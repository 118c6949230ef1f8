/*
 * plain.c - what MPI benchmark suites do, in the fewest lines: a program of its own kind beside
 * our native columns, which uses nothing of Railgauge.
 *
 *	plain latency|bw|bibw MIN MAX COUNT WARMUP
 *
 * Two ranks; sizes double from MIN to MAX.  One buffer of malloc to send from and one to receive
 * into, touched once.  One clock for all COUNT samples of a size, after WARMUP of them:
 *	latency	a message and its answer; half of that in microseconds
 *	bw	a window of 64 messages and an answer of 4 bytes; MB/s
 *	bibw	a window of 64 messages in each direction; MB/s of both
 * A line for each size: bytes and the value.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, TAG = 1, ANSWER = 2 };

static char *out, *in, answer[4];
static MPI_Request request[2 * WINDOW];
static int rank;

static void latency(int bytes)
{
	if (rank == 0) {
		MPI_Send(out, bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
		MPI_Recv(in, bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(in, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(out, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
	}
}

static void bw(int bytes)
{
	int i;

	if (rank == 0) {
		for (i = 0; i < WINDOW; i++)
			MPI_Isend(out, bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &request[i]);
		MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
		MPI_Recv(answer, sizeof(answer), MPI_CHAR, 1, ANSWER, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else {
		for (i = 0; i < WINDOW; i++)
			MPI_Irecv(in, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &request[i]);
		MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
		MPI_Send(answer, sizeof(answer), MPI_CHAR, 0, ANSWER, MPI_COMM_WORLD);
	}
}

static void bibw(int bytes)
{
	int i;

	for (i = 0; i < WINDOW; i++)
		MPI_Irecv(in, bytes, MPI_CHAR, !rank, TAG, MPI_COMM_WORLD, &request[i]);
	for (i = 0; i < WINDOW; i++)
		MPI_Isend(out, bytes, MPI_CHAR, !rank, TAG, MPI_COMM_WORLD, &request[WINDOW + i]);
	MPI_Waitall(WINDOW, request + WINDOW, MPI_STATUSES_IGNORE);
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
}

static const struct kind {
	const char *name;
	void (*sample)(int bytes);
	int messages;		/* 0: half of the time is the value */
} kinds[] = {
	{ "latency", latency, 0 }, { "bw", bw, WINDOW }, { "bibw", bibw, 2 * WINDOW },
};

static double seconds(const struct kind *k, int bytes, int count, int warmup)
{
	double begin;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < warmup; i++)
		k->sample(bytes);
	begin = MPI_Wtime();
	for (i = 0; i < count; i++)
		k->sample(bytes);
	return MPI_Wtime() - begin;
}

static void measure(const struct kind *k, int bytes, int count, int warmup)
{
	double took = seconds(k, bytes, count, warmup) / count;

	if (rank == 0)
		printf("%d %.6g\n", bytes, k->messages ? k->messages * (double)bytes / took / 1e6 :
							 took / 2 * 1e6);
}

int main(int argc, char **argv)
{
	const struct kind *k = NULL;
	long bytes, most;
	int size, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; argc == 6 && i < (int)(sizeof(kinds) / sizeof(*kinds)); i++)
		if (!strcmp(argv[1], kinds[i].name))
			k = &kinds[i];
	most = k ? atol(argv[3]) : 0;
	if (!k || size != 2 || atoi(argv[2]) < 1 || most < atol(argv[2]) ||
	    most > 1 << 30 || atoi(argv[4]) < 1) {
		fprintf(stderr, "plain: on two ranks: latency|bw|bibw MIN MAX COUNT WARMUP\n");
		MPI_Abort(MPI_COMM_WORLD, 3);
		return 3;
	}
	out = malloc((size_t)most);
	in = malloc((size_t)most);
	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 4);
	memset(out, 'a', (size_t)most);
	memset(in, 'b', (size_t)most);
	for (bytes = atol(argv[2]); bytes <= most; bytes *= 2)
		measure(k, (int)bytes, atoi(argv[4]), atoi(argv[5]));
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
