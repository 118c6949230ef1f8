/*
 * endpoints_stay.h - MPI_Finalize of MPICH's ch4:ucx, without its hang.
 *
 * ch4:ucx before 4.2 waits in MPI_Finalize until UCX has closed each endpoint, which may want an
 * answer of the peer's.  A peer whose own endpoints are closed waits for the process manager
 * meanwhile and answers no peer (pmodels/mpich pull request 6596): one job of three between hosts
 * hangs.  After a barrier no receive waits for anything any more.  So the endpoints need not be
 * closed one by one, and go with their worker.
 *
 * One source file of a program or library includes this header; it calls a barrier of all ranks and
 * then endpoints_stay.
 */
#ifndef MPI_ENDPOINTS_STAY_H
#define MPI_ENDPOINTS_STAY_H

#ifndef MPI_VERSION
#error "mpi.h comes before: the layer includes it with a visibility of its own (native.h)"
#endif

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
#define ENDPOINTS_STAY 1
#include <dlfcn.h>
#include <stdbool.h>

static bool ending;

__attribute__((visibility("default"))) void *ucp_disconnect_nb(void *ep);

/* In front of UCX's; NULL is its UCS_OK: done. */
void *ucp_disconnect_nb(void *ep)
{
	void *(*next)(void *);

	if (ending)
		return NULL;
	*(void **)&next = dlsym(RTLD_NEXT, "ucp_disconnect_nb");
	return next ? next(ep) : NULL;
}

static inline void endpoints_stay(void)
{
	ending = true;
}
#else
#define ENDPOINTS_STAY 0
static inline void endpoints_stay(void)
{
}
#endif

#endif
