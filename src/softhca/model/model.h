/*
 * model.h - when a message leaves and when it arrives.
 *
 * A message is cut into *quanta* of whole packets: at most 64 KiB and at most
 * about 8 us of the slowest server on its path, but at least one packet.  A
 * quantum of n bytes in p packets needs a share of every server on its path:
 *
 *	source adapter:	bus_read, cap_tx, port tx
 *	...latency...
 *	destination:	port rx, cap_rx, bus_write
 *
 * Server i has a rate r_i and one word, busy_i: the time until which the work
 * assigned to it keeps it busy.  A quantum that may begin at t takes of it
 *
 *	s_i = n / r_i			(+ msg once per message and pkt * p at port tx)
 *	busy_i := max(busy_i, t + f_i) + s_i
 *
 * where f_i is 0 at the source and the latency at the destination, whose times
 * are later by it; but 0 for a bus that both directions share, or arriving messages
 * would always be ahead of messages that start there.  The quantum has left when the
 * last server is done with it:
 *
 *	end     = max over i of (busy_i - f_i)
 *	arrival = end + latency		+ cqe: the receiver's completion is visible
 *	ack     = arrival + latency	+ cqe: the sender's completion is visible
 *
 * each latency up to `jitter` longer, drawn per message, without overtaking in
 * its queue pair.  A program that polls memory sees the message at its arrival,
 * without cqe.  An unacknowledged message (UC, UD) is complete at its sender at
 * end + cqe.
 *
 * So a single message takes the latency and the time of the slowest server
 * (cut-through), a stream gets the rate of the slowest, streams that meet in a
 * server share it, and no server idles while there is work for it.  A server
 * without a rate takes no time.  With bus=...:half, both directions of an
 * adapter's bus share one word, each at its own rate.
 *
 * t is max(time of posting, limits, end of the queue pair's previous quantum -
 * horizon), never the current time: a process that was off its core catches up
 * without losing wire time.  Limits, per queue pair:
 *
 *	window		a packet waits for the ack of the packet `window` before it
 *	outstanding	a message waits for the ack of the message `outstanding` before it
 *	reads		an RDMA read waits for the completion of the read `reads` before it
 *
 * RDMA read: a request of one packet passes the requester's port tx and the
 * latency; the quanta of the response begin when it has arrived and take the
 * reverse path; the last arrival completes it, + cqe.  Atomics likewise.
 *
 * Reservations are lazy: a queue pair takes its next quantum only when every
 * server on the path is free within the *horizon*: two quanta, but not more than
 * 16 us or half a quantum, which may be a long packet (twice that if it has had
 * none for as long: pace.c).  So a small message of another queue pair, or of
 * another process, waits for one horizon and not for all queued messages; and
 * congestion at the destination delays its sender, as credits would.  Queue pairs
 * of a process take turns.
 *
 * Everything here is arithmetic on words: no clock, no lock.  Each word advances
 * by compare-and-swap, so a process that dies in between wastes a little time of
 * a server and nothing else.
 */
#ifndef HCA_MODEL_H
#define HCA_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "softhca/base/base.h"
#include "softhca/base/layout.h"
#include "softhca/model/spec.h"

/* The adapter of an address on the fabric, and its port (1...). */
static inline struct hca_shm_adapter *hca_adapter(struct hca_shm_fabric *shm,
						  const struct hca_spec *s, uint32_t address,
						  uint32_t *port)
{
	uint32_t ports = (uint32_t)s->ports, hcas = (uint32_t)s->hcas;
	uint32_t hca = address / ports % hcas, node = address / ports / hcas;

	*port = address % ports + 1;
	return &shm->adapter[node * HCA_HCAS_MAX + hca];
}

struct hca_server {
	_Atomic uint64_t *busy;
	uint64_t rate;			/* bytes per second; 0: takes no time */
	uint64_t lag_ns;		/* f_i */
};

/* The path from one port to another. */
struct hca_path {
	struct hca_server tx[3], rx[3];	/* bus, cap, port; port, cap, bus */
	uint64_t latency_ns;
	uint64_t msg_ns, pkt_ns;
	uint32_t mtu;
	uint32_t quantum_bytes;		/* a number of whole packets */
	uint64_t horizon_ns;
};

/* Ports by their address on the fabric; `mtu` of the connection. */
void hca_path_make(struct hca_shm_fabric *shm, const struct hca_spec *s, uint32_t from,
		   uint32_t to, uint32_t mtu, struct hca_path *path);

/* When the whole path is free, in the source's time. */
uint64_t hca_path_free(const struct hca_path *path);

/* Further ahead than any reservation: some process has written an implausible value. */
static inline bool hca_implausible(uint64_t busy_ns, uint64_t now_ns)
{
	return busy_ns > now_ns && busy_ns - now_ns > 60000000000u;
}

/*
 * Reserve one quantum that may begin at t.  `first`: it begins a message.
 * Returns its end; it arrives one latency later.  *span_ns (may be NULL): the
 * time that the slowest server took.
 */
uint64_t hca_path_reserve(const struct hca_path *path, uint64_t t, uint32_t bytes, bool first,
			  uint64_t *span_ns);

/* The time when the request of an RDMA read arrives at the responder. */
uint64_t hca_path_request(const struct hca_path *path, uint64_t t);

static inline uint32_t hca_packets(uint32_t bytes, uint32_t mtu)
{
	return bytes ? (bytes + mtu - 1) / mtu : 1;
}

/* ---- Limits of unacknowledged messages ----------------------------------- */

/*
 * The times of acks.  A quantum has a record as long as its packets may
 * still delay others.  `packet` counts from 0.
 */
struct hca_window_record {
	uint64_t end;			/* first packet after it */
	uint64_t ack_ns;		/* the last packet's */
	uint64_t gap_ns;		/* between two of its packets */
};

struct hca_window {
	uint64_t limit;			/* packets; 0: none */
	uint64_t next;			/* packet to be sent next */
	struct hca_window_record *record;	/* ring of limit + 1 */
	uint64_t oldest, count;
};

int hca_window_init(struct hca_window *w, uint64_t limit);	/* 0 or -ENOMEM */
void hca_window_destroy(struct hca_window *w);
/* When the next packet may leave: 0 for at once. */
uint64_t hca_window_open(struct hca_window *w);
/* `packets` left in a quantum; ack_ns: the last one's ack; span_ns: the time all took. */
void hca_window_add(struct hca_window *w, uint32_t packets, uint64_t ack_ns, uint64_t span_ns);

/* The last `limit` times of something; the next may begin when the oldest is over. */
struct hca_times {
	uint32_t limit;			/* 0: none */
	uint32_t next;
	uint64_t *at;
};

int hca_times_init(struct hca_times *t, uint32_t limit);	/* 0 or -ENOMEM */
void hca_times_destroy(struct hca_times *t);

static inline uint64_t hca_times_open(const struct hca_times *t)
{
	return t->limit ? t->at[t->next] : 0;
}

static inline void hca_times_add(struct hca_times *t, uint64_t ns)
{
	if (!t->limit)
		return;
	t->at[t->next] = ns;
	t->next = t->next + 1 == t->limit ? 0 : t->next + 1;
}

#endif
