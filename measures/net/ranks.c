/*
 * ranks.c - what a job costs apart from its messages: an MPI program, started by itself or by `railgauge exec`.
 *
 *	ranks start		MPI_Init, a barrier, MPI_Finalize
 *	ranks idle SECONDS	rank 1 waits in MPI_Recv, all others in nanosleep, after an exchange of all; a
 *				line each: KIND WAKES CPU, wakes and milliseconds of the processor a second
 *	ranks peers BYTES	rank 0 exchanges messages with ranks N/2, N/2 + 1, ...; a line after each and
 *				before the first: PEERS KIB DESCRIPTORS, its private memory, open descriptors
 *
 * Wakes are voluntary context switches of all threads of the process, from /proc.
 */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define STEP_S 0.5		/* for a peer */

static int rank, count;

static void stop(const char *text)
{
	fprintf(stderr, "ranks: %s\n", text);
	MPI_Abort(MPI_COMM_WORLD, 4);
}

/* The sum of the numbers behind `key` in a file of /proc. */
static long sum_of(const char *path, const char *key)
{
	char line[256];
	FILE *file = fopen(path, "r");
	long sum = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			sum += atol(line + strlen(key));
	fclose(file);
	return sum;
}

static long wakes(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	char path[300];
	long sum = 0;

	if (!tasks)
		stop("no /proc");
	while ((task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
		sum += sum_of(path, "voluntary_ctxt_switches:");
	}
	closedir(tasks);
	return sum;
}

static double cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return 1e3 * (u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-3 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void pause_for(double seconds)
{
	struct timespec t = { seconds, (seconds - (long)seconds) * 1e9 };

	nanosleep(&t, NULL);
}

static void exchange(char *buffer, int bytes, int with)
{
	MPI_Sendrecv(buffer, bytes, MPI_CHAR, with, 1, buffer + bytes, bytes, MPI_CHAR, with, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

static void idle(double seconds)
{
	char two[2] = "", line[64] = "";
	double cpu;
	long before;

	for (int k = 0; k < count; k++)
		if (k != rank)
			exchange(two, 1, k);
	MPI_Barrier(MPI_COMM_WORLD);
	before = wakes();
	cpu = cpu_ms();
	if (rank == 1)
		MPI_Recv(two, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		pause_for(seconds);
	snprintf(line, sizeof(line), "%s %.1f %.1f", rank == 1 ? "blocked" : "sleeping",
		 (wakes() - before) / seconds, (cpu_ms() - cpu) / seconds);
	if (rank == 0) {
		MPI_Send(two, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
		puts(line);
	}
	for (int k = 1; k < count; k++) {
		if (rank == k)
			MPI_Send(line, sizeof(line), MPI_CHAR, 0, 3, MPI_COMM_WORLD);
		if (rank == 0) {
			MPI_Recv(line, sizeof(line), MPI_CHAR, k, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			puts(line);
		}
	}
}

static int descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	int n = -3;		/* . and .., and this directory's own */

	while (all && readdir(all))
		n++;
	closedir(all);
	return n;
}

static void state(int peers)
{
	printf("%d %ld %d\n", peers, sum_of("/proc/self/smaps_rollup", "Private_Dirty:") +
	       sum_of("/proc/self/smaps_rollup", "Private_Clean:"), descriptors());
}

static void ask(char *buffer, int bytes, int other)
{
	for (int m = 0; m < 20; m++)
		exchange(buffer, bytes, rank == 0 ? other : 0);
}

/* A rank that waits in a receive, or in MPI_Finalize, connects: all others sleep meanwhile. */
static void peers(int bytes)
{
	char *buffer = calloc(2, bytes);
	double end = MPI_Wtime();

	if (!buffer)
		stop("no memory");
	memset(buffer, 1, 2 * bytes);
	if (rank == 0)
		state(0);
	for (int k = count / 2; k < count; k++) {
		end += STEP_S;
		if (rank == 0 || rank == k)
			ask(buffer, bytes, k);
		if (end > MPI_Wtime())
			pause_for(end - MPI_Wtime());
		if (rank == 0)
			state(k - count / 2 + 1);
	}
	free(buffer);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &count);
	if (!strcmp(what, "start"))
		MPI_Barrier(MPI_COMM_WORLD);
	else if (!strcmp(what, "idle") && argc == 3)
		idle(atof(argv[2]));
	else if (!strcmp(what, "peers") && argc == 3)
		peers(atoi(argv[2]));
	else
		stop("start, idle SECONDS or peers BYTES");
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
