/*
 * mapping_costs.c - receive buffers that are used again, where costs decide whether they are mapped.
 *
 *	mapping_costs nothing	with costs by which plain memory is better, or without --map-buffers
 *	mapping_costs learns	with --map-buffers, without costs
 */
#include <mpi.h>
#include <sys/mman.h>

#include "mapping_kit.h"

/* Buffers of each size that are used again and again, one by one or several at once. */
static void reuse(size_t bytes, int count, bool stays)
{
	enum { SEVERAL = 4 };
	unsigned char *buf[SEVERAL];
	MPI_Request request[SEVERAL];

	for (int i = 0; i < SEVERAL; i++)
		buf[i] = pages(bytes);
	for (int n = 0; n < count; n++) {
		message(buf[0], bytes);
		for (int i = 0; i < SEVERAL; i++)
			if (rank == 0)
				MPI_Isend(buf[i], (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request[i]);
			else
				MPI_Irecv(buf[i], (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[i]);
		MPI_Waitall(SEVERAL, request, MPI_STATUSES_IGNORE);
		for (int i = 0; i < SEVERAL; i++)
			check(!stays || is_not(buf[i], bytes));
	}
	for (int i = 0; i < SEVERAL; i++)
		munmap(buf[i], bytes);
}

/* No page moves, whatever is used again. */
static const char *nothing(void)
{
	for (size_t bytes = 32 << 10; bytes <= 4 << 20; bytes *= 2)
		reuse(bytes, (int)((16 << 20) / bytes), true);
	return NULL;
}

/* Pages move to and fro while plain and mapped memory are compared. */
static const char *learns(void)
{
	reuse(64 << 10, 600, false);
	reuse(512 << 10, 150, false);
	return NULL;
}

static const struct mapping_case cases[] = { { "nothing", nothing }, { "learns", learns } };

int main(int argc, char **argv)
{
	return mapping_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
