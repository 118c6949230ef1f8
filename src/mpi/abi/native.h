/*
 * native.h - the MPI library below the layer, through saved pointers.
 *
 * The layer defines both MPI_X and PMPI_X, because Fortran bindings and tools call either.  The
 * library's own PMPI_X is reached through a pointer that dlsym(RTLD_NEXT) returns when this library
 * is loaded.  The rest of the layer calls the library through these pointers only, never by name.
 */
#ifndef RAILMPI_NATIVE_H
#define RAILMPI_NATIVE_H

#include "config.h"

#include <stdbool.h>

/* The layer exports what mpi.h declares; not every mpi.h sets the visibility. */
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#define NATIVE_FUNCTIONS(X) \
	X(Abort) X(Add_error_class) X(Add_error_code) X(Add_error_string) X(Allgather) X(Allgatherv) \
	X(Allreduce) X(Alloc_mem) X(Alltoall) X(Alltoallv) X(Alltoallw) X(Barrier) X(Bcast) \
	X(Bsend) X(Bsend_init) X(Buffer_attach) X(Buffer_detach) \
	X(Cancel) X(Comm_call_errhandler) X(Comm_compare) X(Comm_create) X(Comm_create_group) \
	X(Comm_create_keyval) X(Comm_delete_attr) X(Comm_disconnect) X(Comm_dup) \
	X(Comm_dup_with_info) X(Comm_free) X(Comm_free_keyval) X(Comm_get_attr) \
	X(Comm_get_errhandler) X(Comm_group) \
	X(Comm_rank) X(Comm_set_attr) X(Comm_set_errhandler) X(Comm_size) X(Comm_split) \
	X(Comm_split_type) X(Comm_test_inter) \
	X(Cart_create) X(Cart_sub) X(Dist_graph_create) X(Dist_graph_create_adjacent) \
	X(Graph_create) \
	X(Errhandler_free) X(Error_class) X(Error_string) X(Exscan) X(Finalize) X(Finalized) X(Free_mem) X(Gather) X(Gatherv) \
	X(Get_address) X(Get_count) X(Get_library_version) \
	X(Group_free) X(Group_translate_ranks) X(Iallgather) X(Iallgatherv) X(Iallreduce) \
	X(Ibarrier) X(Ibcast) X(Ibsend) X(Improbe) X(Imrecv) \
	X(Info_get) X(Init) X(Init_thread) X(Initialized) X(Iprobe) X(Irecv) X(Ireduce) X(Irsend) X(Isend) \
	X(Issend) X(Mprobe) X(Mrecv) X(Op_commutative) X(Probe) X(Query_thread) X(Recv) \
	X(Recv_init) X(Reduce) X(Reduce_local) X(Reduce_scatter) X(Reduce_scatter_block) \
	X(Request_free) X(Request_get_status) X(Rsend) X(Rsend_init) X(Scan) X(Scatter) \
	X(Scatterv) X(Send) X(Send_init) \
	X(Sendrecv) X(Sendrecv_replace) X(Ssend) X(Ssend_init) X(Start) X(Startall) \
	X(Status_set_cancelled) X(Test) X(Testall) X(Testany) X(Testsome) \
	X(Type_create_keyval) X(Type_free) \
	X(Type_free_keyval) \
	X(Type_get_attr) X(Type_get_contents) X(Type_get_envelope) X(Type_get_extent) \
	X(Type_get_true_extent) \
	X(Type_set_attr) X(Type_size_x) \
	X(Wait) X(Waitall) X(Waitany) X(Waitsome) \
	X(Win_allocate) X(Win_attach) X(Win_create) X(Win_detach) X(Win_free) X(Win_get_attr) \
	X(Win_test)

/* MPI 4: the same with counts of type MPI_Count. */
#ifdef HAVE_MPI_SEND_C
#define NATIVE_LARGE_COUNT(X) \
	X(Allgather_c) X(Allgatherv_c) X(Allreduce_c) X(Alltoall_c) X(Alltoallv_c) X(Alltoallw_c) \
	X(Bcast_c) X(Bsend_c) X(Bsend_init_c) X(Buffer_attach_c) X(Buffer_detach_c) X(Exscan_c) \
	X(Gather_c) X(Gatherv_c) X(Ibsend_c) X(Imrecv_c) X(Irecv_c) X(Irsend_c) X(Isend_c) \
	X(Isendrecv_c) X(Isendrecv_replace_c) X(Issend_c) X(Mrecv_c) X(Recv_c) \
	X(Recv_init_c) X(Reduce_c) X(Reduce_scatter_c) X(Reduce_scatter_block_c) X(Rsend_c) \
	X(Rsend_init_c) X(Scan_c) X(Scatter_c) X(Scatterv_c) X(Send_c) X(Send_init_c) \
	X(Sendrecv_c) X(Sendrecv_replace_c) X(Ssend_c) X(Ssend_init_c) X(Type_get_contents_c) \
	X(Type_get_envelope_c) X(Win_allocate_c) X(Win_create_c)
#else
#define NATIVE_LARGE_COUNT(X)
#endif

/* MPI 4, too; Open MPI has it without the large counts in some versions. */
#ifdef HAVE_MPI_ISENDRECV
#define NATIVE_ISENDRECV(X) X(Isendrecv) X(Isendrecv_replace)
#else
#define NATIVE_ISENDRECV(X)
#endif

/* MPI 4.1. */
#ifdef HAVE_MPI_BUFFER_FLUSH
#define NATIVE_BUFFERS(X) \
	X(Buffer_flush) X(Buffer_iflush) X(Comm_attach_buffer) X(Comm_attach_buffer_c) \
	X(Comm_detach_buffer) X(Comm_detach_buffer_c) X(Comm_flush_buffer) X(Comm_iflush_buffer)
#else
#define NATIVE_BUFFERS(X)
#endif
#ifdef HAVE_MPI_REQUEST_GET_STATUS_ALL
#define NATIVE_STATUSES(X) \
	X(Request_get_status_all) X(Request_get_status_any) X(Request_get_status_some)
#else
#define NATIVE_STATUSES(X)
#endif
/* Open MPI has them from 5.0 on. */
#ifdef HAVE_MPI_PARRIVED
#define NATIVE_PARTITIONED(X) X(Parrived) X(Pready) X(Pready_list) X(Pready_range)
#else
#define NATIVE_PARTITIONED(X)
#endif

/*
 * Open MPI's Fortran handles are indices that the library assigns; MPICH's equal the handles of C.
 */
#if RG_OPENMPI
#define NATIVE_FORTRAN(X) X(Request_c2f) X(Request_f2c) X(Message_c2f) X(Message_f2c)
#else
#define NATIVE_FORTRAN(X)
#endif

/* Beyond the standard (extensions.c): NULL if this library has none. */
#define NATIVE_EXTENSIONS(X) \
	X(MPIX_Query_cuda_support, (void)) X(MPIX_Query_hip_support, (void)) \
	X(MPIX_Query_rocm_support, (void)) X(MPIX_Query_ze_support, (void)) \
	X(PMPIX_GPU_query_support, (int kind, int *supported)) X(PMPIX_Comm_revoke, (MPI_Comm comm))

struct native {
#define X(name) __typeof__(&PMPI_##name) name;
	NATIVE_FUNCTIONS(X)
	NATIVE_LARGE_COUNT(X)
	NATIVE_ISENDRECV(X)
	NATIVE_BUFFERS(X)
	NATIVE_STATUSES(X)
	NATIVE_PARTITIONED(X)
	NATIVE_FORTRAN(X)
#undef X
#define X(name, params) int (*name) params;
	NATIVE_EXTENSIONS(X)
#undef X
};

extern struct native native;

/*
 * Define MPI_name and, as the same function, PMPI_name. Usage: BOTH(Send) at file scope after the
 * definition of MPI_Send.
 */
#define BOTH(name) BOTH_(MPI_##name, PMPI_##name)
#define BOTH_(mpi, pmpi) __typeof__(pmpi) pmpi __attribute__((alias(#mpi)))

/*
 * Generate a function for each count type of the library: gen(suffix, type), or with
 * the type of displacements as well.
 */
#ifdef HAVE_MPI_SEND_C
#define EACH_COUNT_TYPE(gen) gen(, int) gen(_c, MPI_Count)
#define EACH_COUNT_AND_DISPL(gen) gen(, int, int) gen(_c, MPI_Count, MPI_Aint)
#else
#define EACH_COUNT_TYPE(gen) gen(, int)
#define EACH_COUNT_AND_DISPL(gen) gen(, int, int)
#endif

/* End the job, after an error's line. */
_Noreturn void native_abort(int code);
/*
 * Print one line and end the job.  This rank cannot go on alone, and other ranks may send to it or
 * wait for it already.
 */
_Noreturn void native_end(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * True: the library refuses certain arguments.  `error` is the result of a call that moves nothing
 * and asks for that.  A failure of another kind, such as lack of memory, ends the job.
 */
bool native_refuses(int error);

#endif
