/*
 * buffers.c - what a program's way with memory costs: an MPI program that knows nothing of
 * Railgauge, started by itself or by `railgauge exec`.
 *
 *	buffers [-b BYTES] [-n COUNT] [-s SAMPLES] [--name NAME] [--json FILE] MODE...
 *
 * Messages from rank 0 to rank 1, a window of four and an answer; MB/s of a window of COUNT:
 *	reused	one buffer of malloc for each of four messages, used again and again
 *	malloc	malloc, fill, send, free; as in a program that allocates in its loop
 *	mmap	mmap, fill, send, munmap
 *	once	COUNT buffers of malloc that are there from the beginning, each used once
 * There and back, MB/s of COUNT messages:
 *	strided	a vector of doubles, of which every second is sent
 * No messages, both ranks at once; thousands of pairs of calls per second:
 *	calls	mmap and munmap of 64 KiB
 *	threads	malloc, touch and free of 256 KiB, in each of four threads
 *
 * The median of SAMPLES, a row each as in result files: "way" is NAME-MODE.
 */
#include <getopt.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WINDOW = 4, SAMPLES_MAX = 1000, PAGE = 4096, THREADS = 4 };

static size_t bytes = 1 << 20;
static int count = 64, samples = 9, rank;

static void stop(const char *text)
{
	fprintf(stderr, "buffers: %s\n", text);
	MPI_Abort(MPI_COMM_WORLD, 4);
}

/* ---- Messages ---------------------------------------------------------------- */

struct memory {
	const char *name;
	char *(*get)(size_t bytes);
	void (*put)(char *at, size_t bytes);
	char *kept[WINDOW];
};

static char *get_malloc(size_t n)
{
	char *at = malloc(n);

	if (!at)
		stop("no memory");
	return at;
}

static void put_malloc(char *at, size_t n)
{
	free(at);
}

static char *get_mmap(size_t n)
{
	char *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		stop("no memory");
	return at;
}

static void put_mmap(char *at, size_t n)
{
	munmap(at, n);
}

static struct memory memories[] = {
	{ "reused", get_malloc, NULL, { NULL } },
	{ "malloc", get_malloc, put_malloc, { NULL } },
	{ "mmap", get_mmap, put_mmap, { NULL } },
};

static void window(struct memory *m, int number)
{
	MPI_Request request[WINDOW];
	char *at[WINDOW], answer = 0;

	for (int i = 0; i < WINDOW; i++) {
		at[i] = m->kept[i] ? m->kept[i] : m->get(bytes);
		if (!m->put)
			m->kept[i] = at[i];
		if (rank) {
			MPI_Irecv(at[i], (int)bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request[i]);
		} else {
			memset(at[i], number + i, bytes);
			MPI_Isend(at[i], (int)bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &request[i]);
		}
	}
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < WINDOW; i++) {
		if (at[i][0] != (char)(number + i) || at[i][bytes - 1] != (char)(number + i))
			stop("wrong data");
		if (m->put)
			m->put(at[i], bytes);
	}
	MPI_Sendrecv(&answer, 1, MPI_BYTE, !rank, WINDOW, &answer, 1, MPI_BYTE, !rank, WINDOW,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double messages(struct memory *m)
{
	double start;

	window(m, -1);
	start = MPI_Wtime();
	for (int i = 0; i < count; i += WINDOW)
		window(m, i);
	return (double)(count / WINDOW * WINDOW) * (double)bytes / (MPI_Wtime() - start) / 1e6;
}

static double once(void)
{
	char **buffer = malloc((size_t)count * sizeof(*buffer)), answer = 0;
	double start, mbytes;

	for (int i = 0; buffer && i < count; i++)
		memset(buffer[i] = get_malloc(bytes), i, bytes);
	if (!buffer)
		stop("no memory");
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int i = 0; i < count; i++)
		if (rank)
			MPI_Recv(buffer[i], (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(buffer[i], (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	MPI_Sendrecv(&answer, 1, MPI_BYTE, !rank, WINDOW, &answer, 1, MPI_BYTE, !rank, WINDOW,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	mbytes = (double)count * (double)bytes / (MPI_Wtime() - start) / 1e6;
	for (int i = 0; i < count; i++) {
		if (buffer[i][0] != (char)i || buffer[i][bytes - 1] != (char)i)
			stop("wrong data");
		free(buffer[i]);
	}
	free(buffer);
	return mbytes;
}

static double strided(void)
{
	size_t n = bytes / sizeof(double) ? bytes / sizeof(double) : 1;
	double *at = malloc(2 * n * sizeof(*at)), start;
	MPI_Datatype vector;

	if (!at)
		stop("no memory");
	MPI_Type_vector((int)n, 1, 2, MPI_DOUBLE, &vector);
	MPI_Type_commit(&vector);
	for (size_t i = 0; i < 2 * n; i++)
		at[i] = rank ? -1 : (double)i;
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int i = 0; i < count; i++)
		for (int turn = 0; turn < 2; turn++)
			if (turn == rank)
				MPI_Send(at, 1, vector, !rank, 0, MPI_COMM_WORLD);
			else
				MPI_Recv(at, 1, vector, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	start = MPI_Wtime() - start;
	for (size_t i = 0; i < n; i++)
		if (at[2 * i] != (double)(2 * i) || (rank && i + 1 < n && at[2 * i + 1] >= 0))
			stop("wrong data");
	MPI_Type_free(&vector);
	free(at);
	return 2.0 * count * (double)(n * sizeof(double)) / start / 1e6;
}

/* ---- Calls ------------------------------------------------------------------------ */

enum { CALLS = 20000 };

static double calls(void)
{
	double start = MPI_Wtime();

	for (int i = 0; i < CALLS; i++)
		put_mmap(get_mmap(65536), 65536);
	return CALLS / (MPI_Wtime() - start) / 1e3;
}

static void *allocate(void *arg)
{
	for (int i = 0; i < CALLS / THREADS; i++) {
		volatile char *at = malloc(256 << 10);

		if (!at)
			abort();
		for (size_t k = 0; k < 256 << 10; k += PAGE)
			at[k] = 1;
		free((void *)at);
	}
	return NULL;
}

static double threads(void)
{
	double start = MPI_Wtime();
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, allocate, NULL))
			stop("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return CALLS / (MPI_Wtime() - start) / 1e3;
}

/* ---- All ----------------------------------------------------------------------------- */

static double sample(const char *mode)
{
	if (!strcmp(mode, "calls"))
		return calls();
	if (!strcmp(mode, "threads"))
		return threads();
	if (!strcmp(mode, "once"))
		return once();
	if (!strcmp(mode, "strided"))
		return strided();
	for (size_t i = 0; i < sizeof(memories) / sizeof(*memories); i++)
		if (!strcmp(mode, memories[i].name))
			return messages(&memories[i]);
	stop("accepted: reused, malloc, mmap, once, strided, calls, threads");
	return 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static const struct option options[] = {
	{ "name", required_argument, NULL, 'w' },
	{ "json", required_argument, NULL, 'j' },
	{ 0 },
};

int main(int argc, char **argv)
{
	const char *name = "native", *json = NULL;
	static double value[SAMPLES_MAX];
	FILE *out = stdout;
	int option;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	while ((option = getopt_long(argc, argv, "b:n:s:", options, NULL)) != -1)
		switch (option) {
		case 'b':
			bytes = (size_t)atol(optarg);
			break;
		case 'n':
			count = atoi(optarg);
			break;
		case 's':
			samples = atoi(optarg);
			break;
		case 'w':
			name = optarg;
			break;
		case 'j':
			json = optarg;
			break;
		default:
			stop("accepted: -b, -n, -s, --name, --json, and modes");
		}
	if (samples < 1 || samples > SAMPLES_MAX || count < WINDOW || !bytes || bytes > 1 << 30)
		stop("accepted: -b 1 to 2^30, -n from 4 on, -s 1 to 1000");
	if (json && !rank)
		out = fopen(json, "w");
	if (!out)
		stop("the file cannot be written");
	for (char **mode = argv + optind; *mode; mode++) {
		for (int k = 0; k < samples; k++)
			value[k] = sample(*mode);
		qsort(value, (size_t)samples, sizeof(*value), ascending);
		if (!rank)
			fprintf(out, "{\"type\":\"row\",\"way\":\"%s-%s\",\"bytes\":%zu,\"n\":%d,"
				"\"median\":%.4f,\"min\":%.4f,\"max\":%.4f}\n", name, *mode, bytes,
				samples, value[samples / 2], value[0], value[samples - 1]);
	}
	if (out != stdout)
		fclose(out);
	MPI_Finalize();
	return 0;
}
