/*
 * loss.h - the effect of ports that are down and of lost packets (model/loss.h) on the messages of
 * a queue pair.
 *
 * A fault-free untimed fabric pays nothing for this.  A process that changes a port raises the
 * attention of every member (layout.h); every verb reads it anyway.  A member whose attention is
 * raised goes through its queue pairs (engine/port_events.h) and disables the fast path of each
 * queue pair whose path is not clear.  Messages of that queue pair go through the engine, which
 * consults this file before each one.  Each member detects scheduled changes itself.
 *
 *   RC, untimed	over a path that is down the peer is not found, so the timeout and
 *		retry_cnt of the queue pair run, and it continues once the path is up; a lost
 *		packet is retransmitted immediately, at most retry_cnt times.
 *   RC, timed	engine/pace.h.
 *   UC, UD	a message over a path that is down, or of which a packet is lost, is lost as a
 *		whole; the sender does not notice.
 * The loss of a packet is decided when it leaves: packets in flight when a port goes down arrive.
 * Acknowledgements and read requests share the result of the data.
 */
#ifndef HCA_OBJECT_LOSS_H
#define HCA_OBJECT_LOSS_H

#include <infiniband/verbs.h>

#include "softhca/model/loss.h"
#include "softhca/object/fabric.h"

struct hca_qp;

/* A queue pair is ready to send: start the schedule's clock, unless it runs already. */
void hca_loss_start(struct hca_fabric *f);
/*
 * Apply the schedule up to now, and raise the attention of this process if anything has changed.
 * Returns the time until the next change; UINT64_MAX: there is none.  Any thread, any time.
 */
uint64_t hca_loss_advance(struct hca_fabric *f, uint64_t now_ns);

/* The state as of now. */
enum ibv_port_state hca_port_state(struct hca_fabric *f, uint32_t address);

/* How often such an event has given the port another LID, or other GIDs, until now. */
unsigned hca_port_moves(struct hca_fabric *f, uint32_t address, enum ibv_event_type type);

/* Both ports are up, as far as this host knows, and reach each other. */
bool hca_path_up(const struct hca_fabric *f, uint32_t from, uint32_t to);

/*
 * No message of this queue pair can be lost: its path is up and without loss.  For UD, which has
 * no connection: every path.
 */
bool hca_path_clear(const struct hca_qp *qp);

/* The index of the first lost packet of `packets` to `to`; or `packets`. */
uint32_t hca_loss_first_lost(struct hca_qp *qp, uint32_t to, uint32_t packets);

/* UC and UD: is a message of so many bytes to `to` lost? */
bool hca_loss_lost(struct hca_qp *qp, uint32_t to, uint32_t bytes);

/* RC on an untimed fabric: is a packet of the message lost more than retry_cnt times in a row? */
bool hca_loss_exhausts(struct hca_qp *qp, uint32_t bytes);

/* A random number below 2^32, from the queue pair's own sequence. */
uint32_t hca_random(struct hca_qp *qp);

/* Count retransmissions, including those of refused messages; qp->lock held. */
void hca_qp_retried(struct hca_qp *qp, uint32_t times);

#endif
