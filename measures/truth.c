/*
 * truth.c - our native columns compared with a plain loop, as MPI benchmark suites have it, in one
 * process.  Two processes differ by more than the difference in question: in the pages that they
 * get, and in other work of the machine.
 *
 * The file is linked with a program of pt2pt, without the layer, and --wrap=measure_size.  The loop
 * takes half of its samples before our measurement of each size and half after it, with the same
 * buffers.  A single clock serves all samples, after a warm-up.  Rank 0 writes "plain BYTES VALUE"
 * to stderr:
 *	latency	a message and its answer; half of that in microseconds
 *	bw	a window of 64 messages and an answer of 4 bytes; MB/s
 *	bibw	a window of 64 messages in each direction; MB/s of both
 */
#include "bench/measure.h"
#include "bench/options.h"

#include <string.h>

struct loop {
	const char *name;
	void (*sample)(int bytes);
	int messages;		/* 0: half of the time is the value */
};

enum { WINDOW = 64, TAG = 1, ANSWER = 2 };

static void *out, *in;
static char answer[4];
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

static const struct loop loops[] = {
	{ "latency", latency, 0 }, { "bw", bw, WINDOW }, { "bibw", bibw, 2 * WINDOW },
};

static double seconds(const struct loop *l, int bytes, int count, int warmup)
{
	double begin;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < warmup; i++)
		l->sample(bytes);
	begin = MPI_Wtime();
	for (i = 0; i < count; i++)
		l->sample(bytes);
	return MPI_Wtime() - begin;
}

static const struct loop *loop_of(const char *program)
{
	for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++)
		if (!strcmp(program, loops[i].name))
			return &loops[i];
	MPI_Abort(MPI_COMM_WORLD, RG_EXIT_USAGE);
	return NULL;
}

void __real_measure_size(struct bench_job *job, uint64_t bytes, struct measure m[]);
void __wrap_measure_size(struct bench_job *job, uint64_t bytes, struct measure m[]);

void __wrap_measure_size(struct bench_job *job, uint64_t bytes, struct measure m[])
{
	const struct loop *l = loop_of(job->def->name);
	const struct bench_counts counts = options_counts(job, bytes);
	const int half = ((int)counts.iterations + 1) / 2, warmup = (int)counts.warmup;
	double took;

	rank = job->b.rank;
	out = job->b.sbuf;
	in = job->b.rbuf;
	took = seconds(l, (int)bytes, half, warmup);
	__real_measure_size(job, bytes, m);
	took += seconds(l, (int)bytes, half, warmup);
	took /= 2 * half;
	if (rank == 0)
		fprintf(stderr, "plain %d %.6g\n", (int)bytes,
			l->messages ? l->messages * (double)bytes / took / 1e6 : took / 2 * 1e6);
}
