/*
 * spawn.c - a job over rails spawns another one; messages inside each and between both.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 100000 };

/* Each rank's first message comes from the one before it. */
static int ring(MPI_Comm comm)
{
	static int out[BYTES / 4], in[BYTES / 4];
	int rank, size, i;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (i = 0; i < BYTES / 4; i++)
		out[i] = rank + i;
	MPI_Sendrecv(out, BYTES / 4, MPI_INT, (rank + 1) % size, 1, in, BYTES / 4, MPI_INT,
		     (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
	for (i = 0; i < BYTES / 4 && in[i] == (rank + size - 1) % size + i; i++)
		;
	return i == BYTES / 4;
}

int main(int argc, char **argv)
{
	MPI_Comm parent, other, all;
	int right, spawned;

	MPI_Init(&argc, &argv);
	MPI_Comm_get_parent(&parent);
	spawned = parent != MPI_COMM_NULL;
	right = ring(MPI_COMM_WORLD);
	other = parent;
	if (!spawned)
		MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
			       MPI_ERRCODES_IGNORE);
	MPI_Intercomm_merge(other, spawned, &all);
	right = right && ring(all) && ring(MPI_COMM_WORLD);
	printf("%s over rails: %s\n", spawned ? "spawned" : "spawns", right ? "right" : "wrong");
	fflush(stdout);
	MPI_Comm_free(&all);
	MPI_Comm_disconnect(&other);
	MPI_Finalize();
	return !right;
}
