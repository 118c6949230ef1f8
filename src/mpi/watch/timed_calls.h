/*
 * timed_calls.h - the functions of MPI in which a program may wait or move data, whose time --ledger
 * takes; in the order of strcmp.  X has at most 6 parameters, Y at most 14.
 */
#ifndef RAILMPI_TIMED_CALLS_H
#define RAILMPI_TIMED_CALLS_H

#define TIMED_CALLS(X, Y) \
	Y(Accumulate) Y(Accumulate_c) Y(Allgather) Y(Allgather_c) Y(Allgatherv) \
	Y(Allgatherv_c) X(Allreduce) X(Allreduce_c) Y(Alltoall) Y(Alltoall_c) Y(Alltoallv) \
	Y(Alltoallv_c) Y(Alltoallw) Y(Alltoallw_c) X(Barrier) X(Bcast) X(Bcast_c) X(Bsend) \
	X(Bsend_c) X(Buffer_detach) X(Buffer_detach_c) X(Buffer_flush) X(Cart_create) \
	X(Cart_sub) X(Comm_accept) X(Comm_connect) X(Comm_create) X(Comm_create_from_group) \
	X(Comm_create_group) X(Comm_detach_buffer) X(Comm_detach_buffer_c) \
	X(Comm_disconnect) X(Comm_dup) X(Comm_dup_with_info) X(Comm_flush_buffer) \
	X(Comm_free) X(Comm_idup) X(Comm_idup_with_info) X(Comm_join) Y(Comm_spawn) \
	Y(Comm_spawn_multiple) X(Comm_split) X(Comm_split_type) Y(Compare_and_swap) \
	Y(Dist_graph_create) Y(Dist_graph_create_adjacent) X(Exscan) X(Exscan_c) \
	Y(Fetch_and_op) X(File_close) X(File_delete) X(File_iread) X(File_iread_all) \
	X(File_iread_all_c) X(File_iread_at) X(File_iread_at_all) X(File_iread_at_all_c) \
	X(File_iread_at_c) X(File_iread_c) X(File_iread_shared) X(File_iread_shared_c) \
	X(File_iwrite) X(File_iwrite_all) X(File_iwrite_all_c) X(File_iwrite_at) \
	X(File_iwrite_at_all) X(File_iwrite_at_all_c) X(File_iwrite_at_c) X(File_iwrite_c) \
	X(File_iwrite_shared) X(File_iwrite_shared_c) X(File_open) X(File_preallocate) \
	X(File_read) X(File_read_all) X(File_read_all_begin) X(File_read_all_begin_c) \
	X(File_read_all_c) X(File_read_all_end) X(File_read_at) X(File_read_at_all) \
	X(File_read_at_all_begin) X(File_read_at_all_begin_c) X(File_read_at_all_c) \
	X(File_read_at_all_end) X(File_read_at_c) X(File_read_c) X(File_read_ordered) \
	X(File_read_ordered_begin) X(File_read_ordered_begin_c) X(File_read_ordered_c) \
	X(File_read_ordered_end) X(File_read_shared) X(File_read_shared_c) X(File_set_size) \
	X(File_set_view) X(File_sync) X(File_write) X(File_write_all) \
	X(File_write_all_begin) X(File_write_all_begin_c) X(File_write_all_c) \
	X(File_write_all_end) X(File_write_at) X(File_write_at_all) \
	X(File_write_at_all_begin) X(File_write_at_all_begin_c) X(File_write_at_all_c) \
	X(File_write_at_all_end) X(File_write_at_c) X(File_write_c) X(File_write_ordered) \
	X(File_write_ordered_begin) X(File_write_ordered_begin_c) X(File_write_ordered_c) \
	X(File_write_ordered_end) X(File_write_shared) X(File_write_shared_c) Y(Gather) \
	Y(Gather_c) Y(Gatherv) Y(Gatherv_c) Y(Get) Y(Get_accumulate) Y(Get_accumulate_c) \
	Y(Get_c) X(Graph_create) Y(Iallgather) Y(Iallgather_c) Y(Iallgatherv) \
	Y(Iallgatherv_c) Y(Iallreduce) Y(Iallreduce_c) Y(Ialltoall) Y(Ialltoall_c) \
	Y(Ialltoallv) Y(Ialltoallv_c) Y(Ialltoallw) Y(Ialltoallw_c) X(Ibarrier) X(Ibcast) \
	X(Ibcast_c) Y(Ibsend) Y(Ibsend_c) Y(Iexscan) Y(Iexscan_c) Y(Igather) Y(Igather_c) \
	Y(Igatherv) Y(Igatherv_c) X(Improbe) X(Imrecv) X(Imrecv_c) Y(Ineighbor_allgather) \
	Y(Ineighbor_allgather_c) Y(Ineighbor_allgatherv) Y(Ineighbor_allgatherv_c) \
	Y(Ineighbor_alltoall) Y(Ineighbor_alltoall_c) Y(Ineighbor_alltoallv) \
	Y(Ineighbor_alltoallv_c) Y(Ineighbor_alltoallw) Y(Ineighbor_alltoallw_c) \
	X(Intercomm_create) Y(Intercomm_create_from_groups) X(Intercomm_merge) X(Iprobe) \
	Y(Irecv) Y(Irecv_c) Y(Ireduce) Y(Ireduce_c) Y(Ireduce_scatter) \
	Y(Ireduce_scatter_block) Y(Ireduce_scatter_block_c) Y(Ireduce_scatter_c) Y(Irsend) \
	Y(Irsend_c) Y(Iscan) Y(Iscan_c) Y(Iscatter) Y(Iscatter_c) Y(Iscatterv) \
	Y(Iscatterv_c) Y(Isend) Y(Isend_c) Y(Isendrecv) Y(Isendrecv_c) Y(Isendrecv_replace) \
	Y(Isendrecv_replace_c) Y(Issend) Y(Issend_c) X(Mprobe) X(Mrecv) X(Mrecv_c) \
	Y(Neighbor_allgather) Y(Neighbor_allgather_c) Y(Neighbor_allgatherv) \
	Y(Neighbor_allgatherv_c) Y(Neighbor_alltoall) Y(Neighbor_alltoall_c) \
	Y(Neighbor_alltoallv) Y(Neighbor_alltoallv_c) Y(Neighbor_alltoallw) \
	Y(Neighbor_alltoallw_c) X(Parrived) X(Pready) X(Pready_list) X(Pready_range) \
	X(Probe) Y(Put) Y(Put_c) Y(Raccumulate) Y(Raccumulate_c) Y(Recv) Y(Recv_c) Y(Reduce) \
	Y(Reduce_c) X(Reduce_scatter) X(Reduce_scatter_block) X(Reduce_scatter_block_c) \
	X(Reduce_scatter_c) X(Request_get_status) X(Request_get_status_all) \
	X(Request_get_status_any) X(Request_get_status_some) Y(Rget) Y(Rget_accumulate) \
	Y(Rget_accumulate_c) Y(Rget_c) Y(Rput) Y(Rput_c) X(Rsend) X(Rsend_c) X(Scan) \
	X(Scan_c) Y(Scatter) Y(Scatter_c) Y(Scatterv) Y(Scatterv_c) X(Send) X(Send_c) \
	Y(Sendrecv) Y(Sendrecv_c) Y(Sendrecv_replace) Y(Sendrecv_replace_c) X(Ssend) \
	X(Ssend_c) X(Start) X(Startall) X(Test) X(Testall) X(Testany) X(Testsome) X(Wait) \
	X(Waitall) X(Waitany) X(Waitsome) X(Win_allocate) X(Win_allocate_c) \
	X(Win_allocate_shared) X(Win_allocate_shared_c) X(Win_complete) X(Win_create) \
	X(Win_create_c) X(Win_create_dynamic) X(Win_fence) X(Win_flush) X(Win_flush_all) \
	X(Win_flush_local) X(Win_flush_local_all) X(Win_free) X(Win_lock) X(Win_lock_all) \
	X(Win_post) X(Win_start) X(Win_sync) X(Win_test) X(Win_unlock) X(Win_unlock_all) \
	X(Win_wait)

#endif
