/*
 * lost.h - ranks that are lost: what waits for them ends with an error.
 *
 * librail reports a lost peer once.  From then on, in each routed communicator that contains it:
 *
 *  - Posted receives that name it, and those from MPI_ANY_SOURCE, are complete with an error:
 *    the message that such a receive waits for may be the lost rank's.
 *  - A notice stands behind the unexpected messages of the lost rank.  A receive or a probe, by
 *    name or from any source, that finds no message finds the notice, and ends with its error.
 *    So a call that finds these queues empty never asks whether a rank is lost.
 *  - Sends end by librail's own error.
 *  - A collective goes on with its messages to the other ranks, for some seconds (coll.h).
 *  - Calls that wait for all of several requests end when one of them has such an error: those
 *    that are not complete stay (MPI_ERR_PENDING).  MPI_Sendrecv and MPI_Isendrecv withdraw their
 *    other half.  The other rank may have had its own error, and never answer.
 *
 * Other ranks can be used as before: by name, and on communicators without the lost rank, from any
 * source.  What the lost rank has sent before is received as ever, if it arrived whole.
 *
 * Each lost rank has an error code of its own.  Its class is MPI_ERR_PROC_FAILED where the library
 * has that, else one that the layer adds.  Codes are added at the start, on all ranks the same
 * number: a loss is noticed where no MPI call is allowed, and programs may add codes that are to
 * be the same on all ranks.  The text follows when an error is raised.
 */
#ifndef RAILMPI_LOST_H
#define RAILMPI_LOST_H

#include "mpi/abi/compiler.h"
#include "mpi/comm/comm.h"

#pragma GCC visibility push(hidden)

struct req;

/* Collective only in that each rank adds the same codes.  0 or -ENOMEM. */
int lost_start(void);
void lost_stop(void);

/* librail's on_peer_error and on_watch. */
void lost_peer(void *user, unsigned index, int error);
void lost_watch(void *user);
/* Inside layer_enter: is any rank lost?  Has one ended? */
extern bool lost_some;
static inline bool lost_any(void)
{
	return unlikely(lost_some);
}
bool lost_ended(void);
/* From now on any rank that ends is noticed, whether or not something waits for it. */
void lost_watch_all(void);

/* A communicator is new: notices of the ranks that are lost already.  Inside layer_enter. */
void lost_comm(struct comm *c);
/* A probe has found no message of this source, by name or any: it is waited for. */
static inline void lost_probed(struct comm *c, int source)
{
	c->probed = source;
}

/* The error code of a lost rank, by its index among the peers. */
int lost_error(unsigned index);
/* The same from rc: the result of rail_send to this peer, or the status of an operation with it. */
int lost_error_of(const struct rail_peer *peer, int rc);
/* The error code of a collective in which another rank reports an error. */
int lost_elsewhere(void);
/* Is this the error of a lost rank? */
bool lost_is(int error);
/*
 * The other half of this operation has ended with that error.  If it is a lost rank's, a receive
 * that has matched nothing ends with the same one; a send that its receiver has not matched is
 * cancelled, and ends when the receiver has been asked.  What is under way goes on.
 */
void lost_withdraw(struct req *r, int error);
/* Before errors are raised, where MPI calls are allowed: texts of codes. */
void lost_texts(void);

#pragma GCC visibility pop

#endif
