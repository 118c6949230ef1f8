/*
 * p2p.h - the cases of p2p_suite, in four rooms: p2p_suite.c (send modes, matching, the table),
 * p2p_requests.c (completion calls, liveness, errors), p2p_cancel.c (cancelled sends) and
 * p2p_done.c (sends that are complete at once).
 */
#ifndef P2P_H
#define P2P_H

#include "suite.h"

enum { ROOM = 4 << 20, PAD = 64 };

extern unsigned char *sbuf, *rbuf;	/* ROOM bytes each, after buffers() */

void buffers(void);

static inline int right(void)
{
	return (suite_rank + 1) % suite_size;
}

static inline int left(void)
{
	return (suite_rank + suite_size - 1) % suite_size;
}

void p2p_completion(MPI_Comm comm);
void p2p_get_status_and_free(MPI_Comm comm);
void p2p_cancel(MPI_Comm comm);
void p2p_persistent(MPI_Comm comm);
void p2p_isend_then_collective(MPI_Comm comm);
void p2p_irecv_then_collective(MPI_Comm comm);
void p2p_native_behind_ours(MPI_Comm comm);
void p2p_flood(MPI_Comm comm);
void p2p_truncation(MPI_Comm comm);
void p2p_bad_arguments(MPI_Comm comm);
void p2p_bsend_overflow(MPI_Comm comm);
void p2p_cancel_sends(MPI_Comm comm);
void p2p_cancel_beside_native(MPI_Comm comm);
void p2p_cancel_matched(MPI_Comm comm);
void p2p_cancel_persistent(MPI_Comm comm);
void p2p_cancel_and_free(MPI_Comm comm);
void p2p_cancel_some(MPI_Comm comm);
void p2p_cancel_flood(MPI_Comm comm);
void p2p_cancel_to_self(MPI_Comm comm);
void p2p_done_free(MPI_Comm comm);
void p2p_done_cancel(MPI_Comm comm);
void p2p_done_get_status(MPI_Comm comm);
void p2p_done_arrays(MPI_Comm comm);
void p2p_done_fortran(MPI_Comm comm);

#endif
