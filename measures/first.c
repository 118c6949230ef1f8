/*
 * first.c - an MPI program of two ranks whose messages have no warm-up: the time of the first COUNT of them.
 *
 *	first fresh|heap|reused COUNT LOW HIGH SEED
 *
 * Sizes are drawn between LOW and HIGH bytes, all octaves alike; messages come one at a time, four or 16 at
 * once, from either rank.  Buffers are made and checked between the times that are counted.  The connection is
 * made before, by a barrier.  Prints "first US", of rank 0.
 *
 *	fresh	each message has a buffer of its own at either end, allocated before it and freed behind it; the
 *		sender has filled its buffer, the receiver has not touched the other one
 *	heap	the same, by a malloc that gives nothing back to the kernel; else the place of other blocks in the
 *		heap decides whether many messages cost page faults
 *	reused	16 buffers at either end, all touched
 */
#include <malloc.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, TAG = 1, ACK_TAG = 2 };

static struct burst {
	int count, sender;
	int bytes[MOST];
	unsigned char *buffer[MOST];
} burst;

static int rank, low, octaves;
static bool fresh;
static uint64_t state;
static unsigned char *pool[MOST];

static void stop(const char *text)
{
	fprintf(stderr, "first: %s\n", text);
	MPI_Abort(MPI_COMM_WORLD, 4);
}

/* splitmix64: the same numbers on both ranks. */
static unsigned draw(unsigned n)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (unsigned)((z ^ z >> 31) % n);
}

static int draw_size(void)
{
	int octave;

	if (octaves == 0)
		return low;
	octave = low << draw((unsigned)octaves);
	return octave + (int)draw((unsigned)octave) + 1;
}

static void *allocate(size_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory)
		stop("no memory");
	return memory;
}

static void burst_make(int left)
{
	static const int counts[] = { 1, 4, MOST };

	burst.count = counts[draw(3)];
	if (burst.count > left)
		burst.count = left;
	burst.sender = (int)draw(2);
	for (int i = 0; i < burst.count; i++) {
		burst.bytes[i] = draw_size();
		burst.buffer[i] = fresh ? allocate((size_t)burst.bytes[i]) : pool[i];
		if (burst.sender == rank)
			memset(burst.buffer[i], (int)draw(255) + 1, (size_t)burst.bytes[i]);
		else
			draw(255);
	}
}

static double burst_time(void)
{
	MPI_Request request[MOST];
	double start;
	int ack = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int i = 0; i < burst.count; i++)
		if (burst.sender == rank)
			MPI_Isend(burst.buffer[i], burst.bytes[i], MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &request[i]);
		else
			MPI_Irecv(burst.buffer[i], burst.bytes[i], MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &request[i]);
	MPI_Waitall(burst.count, request, MPI_STATUSES_IGNORE);
	if (burst.sender == rank)
		MPI_Recv(&ack, 1, MPI_INT, !rank, ACK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&ack, 1, MPI_INT, !rank, ACK_TAG, MPI_COMM_WORLD);
	return MPI_Wtime() - start;
}

static void burst_check(void)
{
	for (int i = 0; i < burst.count; i++) {
		const unsigned char *b = burst.buffer[i];

		if (!b[0] || memcmp(b, b + 1, (size_t)burst.bytes[i] - 1))
			stop("a byte is wrong");
		if (fresh)
			free(burst.buffer[i]);
	}
}

static void options(int argc, char **argv)
{
	int high;

	if (argc != 6)
		stop("usage: first fresh|heap|reused COUNT LOW HIGH SEED");
	fresh = strcmp(argv[1], "reused");
	if (!strcmp(argv[1], "heap")) {
		mallopt(M_TRIM_THRESHOLD, 1 << 30);
		mallopt(M_MMAP_THRESHOLD, 16 << 20);
	}
	low = atoi(argv[3]);
	high = atoi(argv[4]);
	if (low < 2 || high > 1 << 26)
		stop("sizes (accepted: 2 to 64 MiB)");
	while ((int64_t)low << (octaves + 1) <= high)
		octaves++;
	state = (uint64_t)atoll(argv[5]);
	for (int i = 0; i < MOST && !fresh; i++) {
		pool[i] = allocate((size_t)low << octaves);
		memset(pool[i], 1, (size_t)low << octaves);
	}
}

int main(int argc, char **argv)
{
	double seconds = 0;
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		stop("two ranks, please");
	options(argc, argv);
	for (int left = atoi(argv[2]); left > 0; left -= burst.count) {
		burst_make(left);
		seconds += burst_time();
		burst_check();
	}
	if (rank == 0)
		printf("first %.1f\n", seconds * 1e6);
	MPI_Finalize();
	return 0;
}
