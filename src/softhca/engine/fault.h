/*
 * fault.h - ports that go down and come back, packets that get lost.
 *
 * What is wrong with a port is written in the fabric segment (hca_shm_port), by
 * `softhca port` and `softhca loss` and by the changes that the spec schedules.
 * A port is as its latest change says, by the clock, whoever wrote it when.
 *
 * Messages of an untimed fabric in order pay nothing for this.  Who changes a
 * port raises the attention of every member (layout.h), which every verb looks
 * at anyway; a member that finds its attention raised goes through its queue
 * pairs (hca_fault_look) and takes the fast path from those whose way is not
 * *clear*: they go through the engine, which asks this file before each message.
 * Changes on schedule are noticed by each member itself, by its attendant or its
 * engine.
 *
 * A way is the two ports at its ends; it is up when both are.
 *   RC, untimed	over a way that is down the peer is not found (connect.c), so
 *		its timeout and retry_cnt run, and it goes on once the way is up;
 *		a packet that is lost is sent again at once, at most retry_cnt times.
 *   RC, timed	pace.h.
 *   UC, UD	a message over a way that is down, or of which a packet is lost,
 *		is lost as a whole; its sender does not notice.
 * A packet's fate is settled when it leaves: what is under way when a port goes
 * down arrives.  Acknowledgements and requests to read share that of the data.
 *
 * loss: of the packets on a way, the wire (the spec's `loss`), the sending and
 * the receiving port each lose their share, independently.
 */
#ifndef HCA_FAULT_H
#define HCA_FAULT_H

#include "object/fabric.h"

struct hca_device;
struct hca_qp;

/* ---- Ports, in shared memory: also for who is no member ------------------- */

struct hca_shm_port *hca_shm_port_of(struct hca_shm_fabric *shm, const struct hca_spec *s,
				     const struct hca_port_name *name);
static inline bool hca_port_is_down(uint64_t state)
{
	return state & 1;
}

/* It was changed at `when_ns`.  False: it is so already, or was changed since. */
bool hca_port_change(struct hca_shm_fabric *shm, struct hca_shm_port *p, bool down,
		     uint64_t when_ns);
void hca_port_lose(struct hca_shm_fabric *shm, struct hca_shm_port *p, uint32_t loss_ppb);

/* ---- Time ---------------------------------------------------------------- */

/* A queue pair is ready to send: the schedule's time begins, if it has not. */
void hca_fault_start(struct hca_fabric *f);

/*
 * Carry out what the schedule has until now.  How long until the next change;
 * UINT64_MAX: there is none.  Any thread, any time.
 */
uint64_t hca_fault_advance(struct hca_fabric *f, uint64_t now_ns);

/* A device is as it is now: its users hear of what comes after. */
void hca_fault_begin(struct hca_device *d);

/* Have ports changed since the last look?  Tell queue pairs and users.  engine.lock held. */
void hca_fault_look(struct hca_fabric *f);

/* ---- Messages ------------------------------------------------------------ */

/* As of now. */
enum ibv_port_state hca_port_state(struct hca_fabric *f, uint32_t address);

/* Both ports are up. */
bool hca_way_up(const struct hca_fabric *f, uint32_t from, uint32_t to);

/*
 * Nothing can happen to a message of this queue pair: the way is up and loses
 * nothing.  Of one without a connection (UD): any way.
 */
bool hca_way_clear(const struct hca_qp *qp);

/* Of so many packets on their way to `to`: the first that is lost, or `packets`. */
uint32_t hca_fault_first_lost(struct hca_qp *qp, uint32_t to, uint32_t packets);

/* UC and UD: a message of so many bytes to `to` does not arrive. */
bool hca_fault_lost(struct hca_qp *qp, uint32_t to, uint32_t bytes);

/*
 * RC on an untimed fabric: is a packet of the message lost more than retry_cnt
 * times in a row?
 */
bool hca_fault_exhausts(struct hca_qp *qp, uint32_t bytes);

/* A number below 2^32, from the queue pair's own sequence. */
uint32_t hca_random(struct hca_qp *qp);

#endif
