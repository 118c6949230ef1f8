/*
 * loss.h - ports that go down and come back, packets that are lost: the state in the fabric
 * segment, and the arithmetic on it.
 *
 * A port's state is a word (hca_shm_port) that the spec's schedule and the softhca command
 * write.  The change with the latest time determines it, whatever the order in which changes
 * were written.  A path is the two ports at its ends; it is up when both are.
 *
 * loss: the wire (the spec's `loss`), the sending and the receiving port each lose their share of
 * the packets on a path, independently.
 */
#ifndef HCA_LOSS_H
#define HCA_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/base/layout.h"
#include "softhca/model/spec.h"

/* ---- Ports, in shared memory: also for processes that are not members ------ */

struct hca_shm_port *hca_shm_port_of(struct hca_shm_fabric *shm, const struct hca_spec *s,
				     const struct hca_port_name *name);
/* The port of an address on the fabric. */
struct hca_shm_port *hca_shm_port_at(struct hca_shm_fabric *shm, const struct hca_spec *s,
				     uint32_t address);

static inline bool hca_port_is_down(uint64_t state)
{
	return state & 1;
}

/* Record a change at `when_ns`.  False: it has that state already, or was changed later. */
bool hca_port_change(struct hca_shm_fabric *shm, struct hca_shm_port *p, bool down,
		     uint64_t when_ns);
void hca_port_lose(struct hca_shm_fabric *shm, struct hca_shm_port *p, uint32_t loss_ppb);

/* Has any port been down or lost packets? */
static inline bool hca_is_faulty(const struct hca_shm_fabric *shm)
{
	return atomic_load_explicit(&shm->faulty, memory_order_acquire);
}

bool hca_port_up(struct hca_shm_fabric *shm, const struct hca_spec *s, uint32_t address);
/* The probability that a packet from one port to another is lost, in parts per 10^9. */
uint32_t hca_loss_ppb(struct hca_shm_fabric *shm, const struct hca_spec *s, uint32_t from,
		      uint32_t to);

/* ---- The schedule -------------------------------------------------------- */

/*
 * Carry out the schedule's due changes; *done: the number that all members together have carried
 * out.  Returns the time until the next one; UINT64_MAX: none.
 */
uint64_t hca_schedule_advance(struct hca_shm_fabric *shm, const struct hca_spec *s,
			      uint64_t now_ns, uint32_t *done);

/* ---- Random numbers ------------------------------------------------------ */

/*
 * The first state of a sequence, for messages of sender `number` of a process between two ports.
 * The spec's seed determines it; it is never 0.
 */
uint64_t hca_rng_first(const struct hca_spec *s, uint32_t from, uint32_t to, uint32_t number);
/* The next number below 2^32. */
uint32_t hca_rng_next(uint64_t *state);
/* Is the next packet lost? */
static inline bool hca_rng_lost(uint64_t *state, uint32_t ppb)
{
	return (uint64_t)hca_rng_next(state) * HCA_ALL_PPB >> 32 < ppb;
}

#endif
