/*
 * end_together.h - the end of a program between hosts, before MPI_Finalize.
 *
 * MPICH's ch4:ucx before 4.2 leaves one job of three in MPI_Finalize: src/mpi/job/init.c has the reason.
 * A program includes this header in one source file, and defines no ucp_disconnect_nb of its own.
 */
#ifndef CLI_END_TOGETHER_H
#define CLI_END_TOGETHER_H

#include <mpi.h>

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
#include <dlfcn.h>
#include <stdbool.h>

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

#endif
