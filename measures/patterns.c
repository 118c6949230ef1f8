/*
 * patterns.c - how long programs' usual exchanges take: an MPI program that knows nothing of Railgauge, started
 * by itself or by `railgauge exec`.
 *
 *	patterns
 *
 * Ranks come in pairs, or are a ring.  A line for each pattern and size: its name, bytes, and the median over
 * samples in microseconds, of rank 0 unless another is named.
 *	compute		rank 0 computes between MPI_Isend and MPI_Wait; the time of rank 1, in MPI_Recv
 *	pipe		the same, and rank 1 computes as long after each message
 *	halo		MPI_Irecv and MPI_Isend to both neighbours of the ring, MPI_Waitall
 *	halo-compute	the same, with computation before MPI_Waitall
 *	faces		the same of three messages of unlike sizes, a quarter, a half and all of it
 *	shift		MPI_Sendrecv around the ring
 *	cold		a ping-pong, each message from and to memory that no core's cache has
 *	fresh		the same by memory that is allocated for the message
 *	probe		rank 0 probes for any source and answers
 *	vector		a ping-pong of every second block of 64 bytes
 *	allreduce	MPI_Allreduce of doubles
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
#define COMPUTE_S 1e-4

enum { SAMPLES = 200, SAMPLES_LONG = 60, LONG = 1 << 18, MOST = 1 << 20, COLD = 1 << 28, BLOCK = 64 };

static int rank, size;
static char *out, *in, *cold;
static volatile double result;

static void compute(void)
{
	const double end = MPI_Wtime() + COMPUTE_S;
	double x = 1;

	while (MPI_Wtime() < end)
		for (int i = 0; i < 100; i++)
			x = x * 1.0000001 + 1e-9;
	result = x;
}

static int pair(void)
{
	return rank ^ 1;
}

static void offered(int bytes, int computes)
{
	MPI_Request sent;

	if (rank % 2 == 0) {
		MPI_Isend(out, bytes, MPI_BYTE, pair(), 0, WORLD, &sent);
		compute();
		MPI_Wait(&sent, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(in, bytes, MPI_BYTE, pair(), 0, WORLD, MPI_STATUS_IGNORE);
		if (computes)
			compute();
	}
}

static void computes(int bytes)
{
	offered(bytes, 0);
}

static void pipe(int bytes)
{
	offered(bytes, 1);
}

static void ring(int bytes, int busy)
{
	const int left = (rank + size - 1) % size, right = (rank + 1) % size;
	MPI_Request q[4];

	MPI_Irecv(in, bytes, MPI_BYTE, left, 1, WORLD, &q[0]);
	MPI_Irecv(in + MOST, bytes, MPI_BYTE, right, 2, WORLD, &q[1]);
	MPI_Isend(out, bytes, MPI_BYTE, right, 1, WORLD, &q[2]);
	MPI_Isend(out + MOST, bytes, MPI_BYTE, left, 2, WORLD, &q[3]);
	if (busy)
		compute();
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
}

static void halo(int bytes)
{
	ring(bytes, 0);
}

static void halo_compute(int bytes)
{
	ring(bytes, 1);
}

static void faces(int bytes)
{
	const int left = (rank + size - 1) % size, right = (rank + 1) % size;
	MPI_Request q[12];
	int n = 0;

	for (int part = 4; part; part /= 2) {
		char *place = in + 2 * (MOST - MOST / part);

		MPI_Irecv(place, bytes / part, MPI_BYTE, left, part, WORLD, &q[n++]);
		MPI_Irecv(place + 2 * MOST, bytes / part, MPI_BYTE, right, 8 * part, WORLD, &q[n++]);
	}
	for (int part = 4; part; part /= 2) {
		MPI_Isend(out, bytes / part, MPI_BYTE, right, part, WORLD, &q[n++]);
		MPI_Isend(out + MOST, bytes / part, MPI_BYTE, left, 8 * part, WORLD, &q[n++]);
	}
	MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
}

static void shift(int bytes)
{
	MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 0, in, bytes, MPI_BYTE,
		     (rank + size - 1) % size, 0, WORLD, MPI_STATUS_IGNORE);
}

static void ping_pong(const void *from, void *to, int count, MPI_Datatype type)
{
	if (rank % 2 == 0)
		MPI_Send(from, count, type, pair(), 0, WORLD);
	MPI_Recv(to, count, type, pair(), 0, WORLD, MPI_STATUS_IGNORE);
	if (rank % 2)
		MPI_Send(from, count, type, pair(), 0, WORLD);
}

static char *cold_bytes(int bytes)
{
	static size_t at;
	char *here;

	if (at + (size_t)bytes > COLD)
		at = 0;
	here = cold + at;
	at += ((size_t)bytes + 4095) & ~(size_t)4095;
	return here;
}

static void from_cold(int bytes)
{
	ping_pong(cold_bytes(bytes), cold_bytes(bytes), bytes, MPI_BYTE);
}

static void fresh(int bytes)
{
	char *from = malloc((size_t)bytes), *to = malloc((size_t)bytes);

	memset(from, 1, (size_t)bytes);
	ping_pong(from, to, bytes, MPI_BYTE);
	free(from);
	free(to);
}

static void probe(int bytes)
{
	MPI_Status status;

	if (rank) {
		MPI_Send(out, bytes, MPI_BYTE, 0, rank, WORLD);
		MPI_Recv(in, 1, MPI_BYTE, 0, 0, WORLD, MPI_STATUS_IGNORE);
		return;
	}
	for (int n = 1; n < size; n++) {
		int count;

		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		MPI_Recv(in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, WORLD, &status);
		MPI_Send(out, 1, MPI_BYTE, status.MPI_SOURCE, 0, WORLD);
	}
}

static void vector(int bytes)
{
	static MPI_Datatype type = MPI_DATATYPE_NULL;
	static int of;

	if (of != bytes) {
		if (type != MPI_DATATYPE_NULL)
			MPI_Type_free(&type);
		MPI_Type_vector(bytes / BLOCK, BLOCK, 2 * BLOCK, MPI_BYTE, &type);
		MPI_Type_commit(&type);
		of = bytes;
	}
	ping_pong(out, in, 1, type);
}

static void allreduce(int bytes)
{
	MPI_Allreduce(out, in, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, WORLD);
}

static const struct pattern {
	const char *name;
	void (*run)(int bytes);
	int teller;			/* the rank whose time is told; 1: samples begin together */
} patterns[] = {
	{ "compute", computes, 1 }, { "pipe", pipe }, { "halo", halo }, { "halo-compute", halo_compute },
	{ "faces", faces }, { "shift", shift }, { "cold", from_cold }, { "fresh", fresh }, { "probe", probe },
	{ "vector", vector }, { "allreduce", allreduce },
};

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const struct pattern *p, int bytes)
{
	const int samples = bytes < LONG ? SAMPLES : SAMPLES_LONG;
	double us[SAMPLES];

	for (int i = -samples; i < samples; i++) {
		double began;

		if (p->teller)
			MPI_Barrier(WORLD);
		began = MPI_Wtime();
		p->run(bytes);
		if (i >= 0)
			us[i] = 1e6 * (MPI_Wtime() - began);
	}
	qsort(us, (size_t)samples, sizeof(*us), compare);
	if (rank == p->teller)
		printf("%s %d %.2f\n", p->name, bytes, us[samples / 2]);
	fflush(stdout);
	MPI_Barrier(WORLD);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 512, 8192, 65536, MOST };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &size);
	out = calloc(2, MOST);
	in = calloc(4, MOST);
	cold = malloc(COLD);
	if (size % 2 || !out || !in || !cold) {
		fprintf(stderr, "patterns: an even number of ranks, and %d MiB each\n", COLD >> 20);
		MPI_Abort(WORLD, 4);
	}
	memset(cold, 1, COLD);
	for (size_t p = 0; p < sizeof(patterns) / sizeof(*patterns); p++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
			measure(&patterns[p], sizes[s]);
	MPI_Finalize();
	return 0;
}
