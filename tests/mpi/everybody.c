/*
 * everybody - every rank exchanges a large and a small message with every other, and
 * tells what the connections cost: the growth of the process's memory per peer, which
 * includes what it touches of its peers' memory, so it is an upper bound.
 *
 *	everybody KIB		fails when a peer costs more than that
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

enum { LARGE = 40000, SMALL = 24 };

int suite_rank, suite_size;
const char *suite_where = "everybody";

static long resident_kib(void)
{
	long pages = -1;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%*s %ld", &pages) == 1);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void exchange(int to, int from, unsigned message, size_t bytes)
{
	static unsigned char out[LARGE], in[LARGE];

	suite_fill(out, bytes, suite_rank, message);
	memset(in, 0, bytes);
	MPI_Sendrecv(out, (int)bytes, MPI_BYTE, to, 1, in, (int)bytes, MPI_BYTE, from, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (size_t i = 0; i < bytes; i++)
		CHECK(in[i] == suite_byte(from, message, i), "byte %zu from %d", i, from);
}

int main(int argc, char **argv)
{
	long before, growth, most;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &suite_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &suite_size);
	CHECK(argc == 2 && suite_size > 1, "usage: everybody KIB, with 2 ranks or more");
	/* Memory that is allocated once, the buffers above too, does not count for a peer. */
	exchange((suite_rank + 1) % suite_size, (suite_rank + suite_size - 1) % suite_size, 0, LARGE);
	before = resident_kib();
	for (int d = 2; d < suite_size - 1; d++) {
		exchange((suite_rank + d) % suite_size, (suite_rank + suite_size - d) % suite_size,
			 (unsigned)d, LARGE);
		exchange((suite_rank + d) % suite_size, (suite_rank + suite_size - d) % suite_size,
			 (unsigned)d, SMALL);
	}
	growth = resident_kib() - before;
	MPI_Allreduce(&growth, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	most /= suite_size > 3 ? suite_size - 3 : 1;
	if (suite_rank == 0)
		printf("%d ranks, each with all others: %ld KiB per peer\n", suite_size, most);
	CHECK(suite_size <= 3 || most <= atol(argv[1]), "%ld KiB per peer", most);
	MPI_Finalize();
	return 0;
}
