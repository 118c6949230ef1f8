/*
 * extensions.c - functions of MPI libraries beyond the standard, where the library's own
 * answer would be wrong in a job over rails.
 */
#include "mpi/abi/native.h"
#include "mpi/comm/comm_table.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/request.h"
#include "util/err.h"

/*
 * mpi-ext.h has some of them in Open MPI, and mpi.h in MPICH; these are the declarations of both.
 */
#pragma GCC visibility push(default)
int MPIX_Query_cuda_support(void);
int PMPIX_Query_cuda_support(void);
int MPIX_Query_hip_support(void);
int PMPIX_Query_hip_support(void);
int MPIX_Query_rocm_support(void);
int PMPIX_Query_rocm_support(void);
int MPIX_Query_ze_support(void);
int PMPIX_Query_ze_support(void);
int MPIX_GPU_query_support(int kind, int *supported);
int PMPIX_GPU_query_support(int kind, int *supported);
int MPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_revoke(MPI_Comm comm);
#pragma GCC visibility pop

/* ---- GPU memory: rails do not carry it (rail.h) ------------------------------------------- */

#define GEN_QUERY(NAME)                                                                            \
	int MPIX_##NAME(void)                                                                     \
	{                                                                                         \
		return layer.rails || !native.MPIX_##NAME ? 0 : native.MPIX_##NAME();             \
	}                                                                                         \
	int PMPIX_##NAME(void) __attribute__((alias("MPIX_" #NAME)));

#ifdef HAVE_MPIX_QUERY_CUDA_SUPPORT
GEN_QUERY(Query_cuda_support)
#endif
#ifdef HAVE_MPIX_QUERY_HIP_SUPPORT
GEN_QUERY(Query_hip_support)
#endif
#ifdef HAVE_MPIX_QUERY_ROCM_SUPPORT
GEN_QUERY(Query_rocm_support)
#endif
#ifdef HAVE_MPIX_QUERY_ZE_SUPPORT
GEN_QUERY(Query_ze_support)
#endif

#ifdef HAVE_MPIX_GPU_QUERY_SUPPORT
int MPIX_GPU_query_support(int kind, int *supported)
{
	int rc = native.PMPIX_GPU_query_support(kind, supported);	/* the library knows all kinds */
	if (rc == MPI_SUCCESS && layer.rails)
		*supported = 0;
	return rc;
}
int PMPIX_GPU_query_support(int kind, int *supported)
	__attribute__((alias("MPIX_GPU_query_support")));
#endif

/* ---- Failed processes (ULFM) ---------------------------------------------------------------- */

#ifdef HAVE_MPIX_COMM_REVOKE
/* The library would end its own operations on it; ours would wait for ever. */
int MPIX_Comm_revoke(MPI_Comm comm)
{
	if (comm_lookup(comm)) {
		rg_error("MPIX_Comm_revoke: a communicator over rails cannot be revoked (accepted: "
			 "RAILGAUGE_OVER=native, or a native communicator)");
		return req_raise(comm, MPI_ERR_UNSUPPORTED_OPERATION);
	}
	return native.PMPIX_Comm_revoke(comm);
}
int PMPIX_Comm_revoke(MPI_Comm comm) __attribute__((alias("MPIX_Comm_revoke")));
#endif
