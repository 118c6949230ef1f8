/*
 * lost.h - ranks that are lost: operations that wait for them end with an error.
 *
 * librail reports a lost peer once.  From then on, in each routed communicator that contains it:
 *
 *  - Posted receives that name it, and those from MPI_ANY_SOURCE, are complete with an error:
 *    the message that such a receive waits for may be the lost rank's.
 *  - A notice follows the unexpected messages of the lost rank.  A receive or a probe, by name or
 *    from any source, that finds no message finds the notice, and ends with its error. A call that
 *    finds these queues empty therefore never asks for lost ranks.
 *  - Sends end by librail's own error.
 *  - A collective goes on with its messages to the other ranks, for some seconds (coll.h).
 *  - Calls that wait for all of several requests end when one of them has such an error: requests
 *    that are not complete stay (MPI_ERR_PENDING).  MPI_Sendrecv and MPI_Isendrecv withdraw their
 *    other half.  The other rank may have had its own error, and never answer.
 *
 * Other ranks can be used as before: by name, and on communicators without the lost rank, from any
 * source.  Messages that the lost rank sent before are received as ever, if they arrived whole.
 *
 * Each lost rank has an error code of its own.  The class of that code is MPI_ERR_PROC_FAILED where
 * the library has it, else a class that the layer adds.  Codes are added at the start, on all ranks
 * the same number: a loss is noticed where no MPI call is allowed, and programs may add codes that
 * are to be the same on all ranks.  The text follows when an error is raised.
 */
#ifndef RAILMPI_LOST_H
#define RAILMPI_LOST_H

#include "mpi/comm/comm.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

struct req;

/* Add the codes, the same on each rank, without a message.  0 or -ENOMEM. */
int lost_start(void);
void lost_stop(void);

/* librail's on_peer_error and on_watch. */
void lost_peer(void *user, unsigned index, int error);
void lost_watch(void *user);
/* Inside layer_enter.  lost_any: a rank is lost.  lost_ended: a rank has ended. */
extern bool lost_some;
static inline bool lost_any(void)
{
	return unlikely(lost_some);
}
bool lost_ended(void);
/* Notice any rank that ends from now on, with or without a wait for it. */
void lost_watch_all(void);

/* A communicator is new: notices of the ranks that are lost already.  Inside layer_enter. */
void lost_comm(struct comm *c);
/* A probe has found no message of this source (or MPI_ANY_SOURCE), so the program waits for it. */
static inline void lost_probed(struct comm *c, int source)
{
	c->probed = source;
}

/* The error code of a lost rank, by its index among the peers. */
int lost_error(unsigned index);
/*
 * The MPI error for rc, which rail_send returned for this peer or an operation with it ended with.
 */
int lost_error_of(const struct rail_peer *peer, int rc);
/* The error of a collective in which another rank has reported its own. */
int lost_elsewhere(void);
/* True: the error of a lost rank. */
bool lost_is(int error);
/*
 * The other half of this operation has ended with that error.  If the error is a lost rank's, a
 * receive that has matched nothing ends with the same error; a send that its receiver has not
 * matched is cancelled, and ends when the receiver has answered.  An operation under way goes on.
 */
void lost_withdraw(struct req *r, int error);
/* Attach the texts of codes, before errors are raised, where MPI calls are allowed. */
void lost_texts(void);

#pragma GCC visibility pop

#endif
