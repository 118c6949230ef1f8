/* mapping_kit.c - see mapping_kit.h. */
#include "mapping_kit.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../page.h"

int rank, wrong;
const char *now;
unsigned turn;

void check_at(int line, bool right, const char *what)
{
	if (right)
		return;
	printf("%s: failed: rank %d, line %d: %s\n", now, rank, line, what);
	wrong++;
}

/* ---- Messages ------------------------------------------------------------ */

unsigned char value(unsigned seed, size_t i)
{
	return (unsigned char)(seed * 131 + i * 7 + (i >> 8) * 13 + (i >> 16));
}

void fill(unsigned char *at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = value(seed, i);
}

bool is_filled(const unsigned char *at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != value(seed, i))
			return false;
	return true;
}

unsigned message(void *buf, size_t bytes)
{
	unsigned seed = ++turn;

	if (rank == 0) {
		unsigned char *from = malloc(bytes);

		fill(from, bytes, seed);
		MPI_Send(from, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		free(from);
	} else {
		memset(buf, 0xee, bytes);
		MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(is_filled(buf, bytes, seed));
	}
	return seed;
}

unsigned messages(void *buf, size_t bytes, int count)
{
	unsigned seed = 0;

	while (count-- > 0)
		seed = message(buf, bytes);
	return seed;
}

/* ---- What is mapped ------------------------------------------------------ */

size_t mapped(const void *at, size_t bytes)
{
	uintptr_t start = (uintptr_t)at, end = start + bytes, from, to;
	FILE *maps = fopen("/proc/self/maps", "re");
	size_t pages = 0;
	char line[512], mode[8];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, mode) != 3 ||
		    !strstr(line, "softhca-memory") || mode[3] != 's')
			continue;
		from = from < start ? start : from;
		to = to > end ? end : to;
		if (from < to)
			pages += (to - from) / PAGE;
	}
	if (maps)
		fclose(maps);
	return pages;
}

bool is_mapped(const void *at, size_t bytes)
{
	uintptr_t start = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;
	uintptr_t end = ((uintptr_t)at + bytes) / PAGE * PAGE;

	return rank == 0 || mapped((void *)start, end - start) == (end - start) / PAGE;
}

bool is_not(const void *at, size_t bytes)
{
	return mapped(at, bytes) == 0;
}

unsigned char *pages(size_t bytes)
{
	static uintptr_t next = (uintptr_t)1 << 44;
	void *at = mmap((void *)(next += (uintptr_t)1 << 28), bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* ---- Cases ---------------------------------------------------------------- */

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int mapping_run(const struct mapping_case *cases, size_t count, int argc, char **argv)
{
	int provided, all = 0;

	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (size_t i = 0; i < count; i++) {
		const char *why;
		int before = wrong;

		if (!is_wanted(cases[i].name, argc, argv))
			continue;
		now = cases[i].name;
		usleep(20000);		/* files of the case before are looked for every 10 ms */
		MPI_Barrier(MPI_COMM_WORLD);
		why = cases[i].run();
		if (rank == 1)
			printf("%s: %s%s\n", now, why ? "skipped: " : wrong > before ? "failed" : "well",
			       why ? why : "");
		fflush(stdout);
	}
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("wrong: %d\n", all);
	MPI_Finalize();
	return all != 0;
}
