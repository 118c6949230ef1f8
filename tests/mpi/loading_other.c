/*
 * loading_other.c - for loading.sh.  An MPI library of another kind, as far as the layer looks at it;
 * or, with LOADING_VERSION, the version that a newer library of the layer's kind would tell.
 */
#include <stdio.h>
#include <stdlib.h>

#pragma GCC visibility push(default)

#ifdef LOADING_VERSION

int PMPI_Get_library_version(char *text, int *length);
int PMPI_Get_library_version(char *text, int *length)
{
	*length = sprintf(text, "%s", "Open MPI v99.7.1, package: none\nMPICH Version: 99.7.1\n");
	return 0;
}

#else

static int initialized;

int PMPI_Init(int *argc, char ***argv);
int MPI_Init(int *argc, char ***argv) __attribute__((alias("PMPI_Init")));
int PMPI_Initialized(int *flag);
_Noreturn int MPI_Comm_rank(void *comm, int *rank);
int PMPI_Send(void);
int MPI_Recv(void);
int MPI_Finalize(void);
extern char ompi_mpi_comm_world, ompi_mpi_byte;
char ompi_mpi_comm_world, ompi_mpi_byte;

int PMPI_Init(int *argc, char ***argv)
{
	initialized = 1;
	return 0;
}

int PMPI_Initialized(int *flag)
{
	*flag = initialized;
	return 0;
}

int MPI_Comm_rank(void *comm, int *rank)
{
	exit(0);	/* enough has been seen */
}

int PMPI_Send(void)
{
	return 0;
}

int MPI_Recv(void)
{
	return 0;
}

int MPI_Finalize(void)
{
	return 0;
}

#endif
