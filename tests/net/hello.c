/*
 * hello.c - each rank says its host, its number, and how many ranks share memory with it.
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
#include <dlfcn.h>
#include <stdbool.h>

/* Without it, one job of three stays in MPI_Finalize: src/mpi/job/init.c has the reason. */
static bool ending;

__attribute__((visibility("default"))) void *ucp_disconnect_nb(void *ep);

void *ucp_disconnect_nb(void *ep)
{
	void *(*next)(void *);

	if (ending)
		return NULL;
	*(void **)&next = dlsym(RTLD_NEXT, "ucp_disconnect_nb");
	return next ? next(ep) : NULL;
}

static void end_together(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	ending = true;
}
#else
static void end_together(void)
{
}
#endif

int main(int argc, char **argv)
{
	int rank, ranks, together, sum = 0;
	char host[256] = "";
	MPI_Comm node;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &together);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	gethostname(host, sizeof(host) - 1);
	printf("%s: rank %d of %d, %d on this host, sum %d\n", host, rank, ranks, together, sum);
	MPI_Comm_free(&node);
	end_together();
	MPI_Finalize();
	return 0;
}
