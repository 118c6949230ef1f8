/*
 * loss.h - what ports that go down and packets that get lost (model/loss.h) mean to the messages
 * of a queue pair.
 *
 * Messages of an untimed fabric in order pay nothing for this.  A process that changes a port raises
 * the attention of every member (layout.h), which every verb looks at anyway; a member that finds
 * its attention raised goes through its queue pairs (engine/port_events.h) and takes the fast path
 * from those whose way is not *clear*: they go through the engine, which asks this file before each
 * message.  Each member notices changes on schedule itself.
 *
 *   RC, untimed	over a way that is down the peer is not found, so the timeout and
 *		retry_cnt of the queue pair run, and it goes on once the way is up; a packet that
 *		is lost is sent again at once, at most retry_cnt times.
 *   RC, timed	engine/pace.h.
 *   UC, UD	a message over a way that is down, or of which a packet is lost, is lost as a
 *		whole; the sender does not notice.
 * A packet's fate is settled when it leaves: what is under way when a port goes down arrives.
 * Acknowledgements and requests to read share that of the data.
 */
#ifndef HCA_OBJECT_LOSS_H
#define HCA_OBJECT_LOSS_H

#include <infiniband/verbs.h>

#include "model/loss.h"
#include "object/fabric.h"

struct hca_qp;

/* A queue pair is ready to send: the schedule's time begins, if it has not. */
void hca_fault_start(struct hca_fabric *f);
/*
 * Carry out what the schedule has until now, and raise the attention of this process if there was
 * something.  How long until the next change; UINT64_MAX: there is none.  Any thread, any time.
 */
uint64_t hca_fault_advance(struct hca_fabric *f, uint64_t now_ns);

/* As of now. */
enum ibv_port_state hca_port_state(struct hca_fabric *f, uint32_t address);

/* Both ports are up. */
static inline bool hca_path_up(const struct hca_fabric *f, uint32_t from, uint32_t to)
{
	return hca_port_up(f->shm, &f->spec, from) && hca_port_up(f->shm, &f->spec, to);
}

/*
 * Nothing can happen to a message of this queue pair: the way is up and loses nothing.  Of one
 * without a connection (UD): any way.
 */
bool hca_path_clear(const struct hca_qp *qp);

/* Of so many packets on their way to `to`: the first that is lost, or `packets`. */
uint32_t hca_fault_first_lost(struct hca_qp *qp, uint32_t to, uint32_t packets);

/* UC and UD: a message of so many bytes to `to` does not arrive. */
bool hca_fault_lost(struct hca_qp *qp, uint32_t to, uint32_t bytes);

/*
 * RC on an untimed fabric: is a packet of the message lost more than retry_cnt times in a row?
 */
bool hca_fault_exhausts(struct hca_qp *qp, uint32_t bytes);

/* A number below 2^32, from the queue pair's own sequence. */
uint32_t hca_random(struct hca_qp *qp);

#endif
