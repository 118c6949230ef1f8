/*
 * waits.c - how soon a rank that waits in one transport serves the other: an MPI program that
 * knows nothing of Railgauge, started by itself or by `railgauge exec`, on two ranks.
 *
 *	waits [-b BYTES] [-n COUNT] [-s SAMPLES] MODE...
 *
 * Rank 1 waits in a call that railgauge leaves to the MPI library.  Rank 0 sends COUNT messages
 * of BYTES that no receive is posted for, and lets rank 1 go on when all sends are complete:
 *	fence, unlock, pscw, ibarrier, split, file, inter_recv, inter_probe, neighbor
 * Rank 1 waits in a call of MPI_COMM_WORLD.  Rank 0 calls MPI_Win_lock, MPI_Fetch_and_op,
 * MPI_Accumulate and MPI_Win_unlock COUNT times, to memory of rank 1:
 *	WINDOW-WAIT, such as allocate-recv
 *	WINDOW	create, allocate
 *	WAIT	barrier, recv, wait, waitany, probe
 * Rank 1 computes, and nothing else:
 *	idle	rank 0 sends nothing
 *	flood	rank 0 sends COUNT messages
 *
 * A line for each mode: its name, microseconds of the first sample, and the median of those after
 * it.  The first sample includes the connection where it is the process's first mode.  "never":
 * PATIENCE_S are not enough for all sends.  Of idle and flood: per cent of the time that
 * threads other than the one that computes took.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 2.0

enum { SAMPLES_MAX = 1000, TAG = 7, GO = 8, COMPUTE_S = 2 };

static size_t bytes = 64;
static int count = 1000, samples = 5, rank;

static void stop(const char *text)
{
	fprintf(stderr, "waits: %s\n", text);
	MPI_Abort(MPI_COMM_WORLD, 4);
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* A native message everywhere: it makes no connection over rails. */
static void meet(void)
{
	MPI_Request q;

	MPI_Ibarrier(MPI_COMM_WORLD, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
}

/* ---- Waits of the MPI library: rank 0 ends them, rank 1 is in them ------------------------ */

static MPI_Win window;
static MPI_Comm between, line;
static MPI_File file;
static long *memory;

static void fence(void)
{
	MPI_Win_fence(0, window);
}

/* Rank 0 has locked its own memory before they meet. */
static void unlock(void)
{
	long one = 1;

	if (rank) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		MPI_Put(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
	}
	MPI_Win_unlock(0, window);
}

static void lock_first(void)
{
	if (!rank)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
}

static void pscw(void)
{
	const int other = !rank;
	MPI_Group all, peer;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &other, &peer);
	if (rank) {
		MPI_Win_post(peer, 0, window);
		MPI_Win_wait(window);
	} else {
		MPI_Win_start(peer, 0, window);
		MPI_Win_complete(window);
	}
	MPI_Group_free(&peer);
	MPI_Group_free(&all);
}

static void split(void)
{
	MPI_Comm made;

	MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made);
	MPI_Comm_free(&made);
}

static void write_all(void)
{
	MPI_File_write_at_all(file, rank * 8, memory, 1, MPI_LONG, MPI_STATUS_IGNORE);
}

static void inter_recv(void)
{
	long word = 1;

	if (rank)
		MPI_Recv(&word, 1, MPI_LONG, 0, GO, between, MPI_STATUS_IGNORE);
	else
		MPI_Send(&word, 1, MPI_LONG, 0, GO, between);
}

static void inter_probe(void)
{
	if (rank)
		MPI_Probe(0, GO, between, MPI_STATUS_IGNORE);
	inter_recv();
}

static void neighbor(void)
{
	long in[2] = { 0, 0 }, out = rank;

	MPI_Neighbor_allgather(&out, 1, MPI_LONG, in, 1, MPI_LONG, line);
}

struct wait {
	const char *name;
	void (*wait)(void);
	void (*before)(void);
};

static const struct wait waits[] = {
	{ "fence", fence, NULL },
	{ "unlock", unlock, lock_first },
	{ "pscw", pscw, NULL },
	{ "ibarrier", meet, NULL },
	{ "split", split, NULL },
	{ "file", write_all, NULL },
	{ "inter_recv", inter_recv, NULL },
	{ "inter_probe", inter_probe, NULL },
	{ "neighbor", neighbor, NULL },
	{ NULL, NULL, NULL },
};

static MPI_Request *requests;
static char *buffer;

static void send_all(void)
{
	for (int i = 0; i < count; i++)
		MPI_Isend(buffer, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
}

static void receive_all(void)
{
	for (int i = 0; i < count; i++) {
		memset(buffer, 0, bytes);
		MPI_Recv(buffer, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (buffer[0] != 1 || buffer[bytes - 1] != 1)
			stop("wrong data");
	}
}

/* Microseconds until all sends were complete, or -1. */
static double unasked(const struct wait *w)
{
	double start, end = -1;
	int done = 0;

	/* Rank 1 has what it waited for last time: rank 0 must not take the lock again before. */
	meet();
	if (w->before)
		w->before();
	meet();
	if (rank) {
		w->wait();
		receive_all();
		return 0;
	}
	nap_ms(3);	/* rank 1 is inside */
	start = MPI_Wtime();
	send_all();
	for (int i = 0; i < count; i++)
		do
			MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
		while (!done && MPI_Wtime() - start < PATIENCE_S);
	if (done)
		end = MPI_Wtime();
	w->wait();
	MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
	return end < 0 ? -1 : (end - start) * 1e6;
}

/* ---- Waits over rails, and one-sided calls to who is in them ------------------------------- */

static MPI_Win windows[2];
static long *window_memory[2];

static void await_go(const char *how)
{
	int index, word;
	MPI_Request q[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };

	if (!strcmp(how, "barrier")) {
		MPI_Barrier(MPI_COMM_WORLD);
		return;
	}
	if (!strcmp(how, "probe"))
		MPI_Probe(0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!strcmp(how, "probe") || !strcmp(how, "recv")) {
		MPI_Recv(&word, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	MPI_Irecv(&word, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, &q[1]);
	if (!strcmp(how, "wait"))
		MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	else if (!strcmp(how, "waitany"))
		MPI_Waitany(2, q, &index, MPI_STATUS_IGNORE);
	else
		stop("accepted: barrier, recv, wait, waitany, probe");
}

static void give_go(const char *how)
{
	int word = 0;

	if (!strcmp(how, "barrier"))
		MPI_Barrier(MPI_COMM_WORLD);
	else
		MPI_Send(&word, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
}

static double one_sided(int which, const char *how)
{
	static long expected[2];
	MPI_Win win = windows[which];
	long one = 1, before;
	double start;

	expected[which] += 2L * count;
	meet();
	if (rank) {
		await_go(how);
		meet();
		MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		if (window_memory[which][0] != expected[which])
			stop("wrong data");
		MPI_Win_unlock(1, win);
		return 0;
	}
	nap_ms(3);
	start = MPI_Wtime();
	for (int i = 0; i < count; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, win);
		MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win);
		MPI_Win_unlock(1, win);
	}
	start = (MPI_Wtime() - start) * 1e6;
	give_go(how);
	meet();
	return start;
}

/* ---- A rank that computes -------------------------------------------------------------------- */

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Per cent of the time that other threads of rank 1 took; rank 0 reports it. */
static double computing(int flooded)
{
	double start, mine, all, share = 0;
	volatile unsigned long work = 0;

	meet();
	if (rank) {
		start = seconds_of(CLOCK_MONOTONIC);
		mine = seconds_of(CLOCK_THREAD_CPUTIME_ID);
		all = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
		while (seconds_of(CLOCK_MONOTONIC) - start < COMPUTE_S)
			for (int i = 0; i < 10000; i++)
				work = work + (unsigned)i;
		all = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - all;
		mine = seconds_of(CLOCK_THREAD_CPUTIME_ID) - mine;
		if (all > mine)
			share = 100 * (all - mine) / (seconds_of(CLOCK_MONOTONIC) - start);
		if (flooded)
			receive_all();
		MPI_Send(&share, 1, MPI_DOUBLE, 0, GO, MPI_COMM_WORLD);
		return 0;
	}
	if (flooded) {
		send_all();
		MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
	}
	MPI_Recv(&share, 1, MPI_DOUBLE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return share;
}

/* ---- All --------------------------------------------------------------------------------------- */

static double sample(const char *mode)
{
	for (const struct wait *w = waits; w->name; w++)
		if (!strcmp(mode, w->name))
			return unasked(w);
	if (!strncmp(mode, "create-", 7))
		return one_sided(0, mode + 7);
	if (!strncmp(mode, "allocate-", 9))
		return one_sided(1, mode + 9);
	if (!strcmp(mode, "idle") || !strcmp(mode, "flood"))
		return computing(*mode == 'f');
	stop("such a mode is unknown");
	return 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *mode, double *value, int n)
{
	double first = value[0];

	if (n > 1)
		qsort(value + 1, (size_t)n - 1, sizeof(*value), ascending);
	if (first < 0 || (n > 1 && value[1] < 0))
		printf("waits %s never never\n", mode);
	else
		printf("waits %s %.2f %.2f\n", mode, first, n > 1 ? value[1 + (n - 1) / 2] : first);
	fflush(stdout);
}

/* Until it is known that sends do not complete: then each sample would take PATIENCE_S. */
static void samples_take(const char *mode)
{
	static double value[SAMPLES_MAX];
	int n = 0;

	do {
		value[n] = sample(mode);
		MPI_Bcast(&value[n], 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	} while (value[n++] >= 0 && n < samples);
	if (!rank)
		print(mode, value, n);
}

static void start_all(void)
{
	int dims[1] = { 2 }, periods[1] = { 0 };
	char name[32] = "waits-file";

	requests = calloc((size_t)count, sizeof(*requests));
	buffer = malloc(bytes);
	memory = calloc(2, sizeof(*memory));
	if (!requests || !buffer || !memory)
		stop("no memory");
	memset(buffer, 1, bytes);
	MPI_Win_create(memory, sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	window_memory[0] = calloc(2, sizeof(long));
	MPI_Win_create(window_memory[0], sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
		       &windows[0]);
	/* MPICH 4.0.2 adds to the beginning of 16 bytes, whatever the address in them. */
	MPI_Win_allocate(16, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &window_memory[1], &windows[1]);
	window_memory[1][0] = 0;
	MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, !rank, TAG, &between);
	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line);
	MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
		      MPI_INFO_NULL, &file);
}

static void end_all(void)
{
	MPI_File_close(&file);
	MPI_Comm_free(&line);
	MPI_Comm_free(&between);
	MPI_Win_free(&windows[1]);
	MPI_Win_free(&windows[0]);
	MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
	int option, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while ((option = getopt(argc, argv, "b:n:s:")) != -1)
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
		default:
			stop("accepted: -b, -n, -s, and modes");
		}
	if (size != 2 || samples < 1 || samples > SAMPLES_MAX || count < 1 || !bytes || bytes > 1 << 30)
		stop("accepted: two ranks, -b 1 to 2^30, -n from 1 on, -s 1 to 1000");
	start_all();
	for (char **mode = argv + optind; *mode; mode++)
		samples_take(*mode);
	end_all();
	MPI_Finalize();
	return 0;
}
