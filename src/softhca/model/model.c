/* model.c - when a message leaves and when it arrives. */
#include <stdlib.h>
#include <string.h>

#include "softhca/model/model.h"

enum { QUANTUM_BYTES = 65536, QUANTUM_NS = 8000 };

/* ---- Servers ------------------------------------------------------------- */

static uint64_t service_ns(uint64_t bytes, uint64_t rate)
{
	return rate ? (uint64_t)(((unsigned __int128)bytes * 1000000000u + rate / 2) / rate) : 0;
}

/* Give a server work that may begin at `from`; the time at which it is done. */
static uint64_t give(const struct hca_server *s, uint64_t from, uint64_t need)
{
	uint64_t busy, until;

	if (!need)
		return from;
	busy = atomic_load_explicit(s->busy, memory_order_relaxed);
	do
		until = (busy > from && !hca_implausible(busy, from) ? busy : from) + need;
	while (!atomic_compare_exchange_weak_explicit(s->busy, &busy, until, memory_order_relaxed,
						      memory_order_relaxed));
	return until;
}

/* ---- Paths --------------------------------------------------------------- */

static uint64_t slowest(const struct hca_path *p)
{
	uint64_t rate = 0;
	int i;

	for (i = 0; i < 3; i++) {
		if (p->tx[i].rate && (!rate || p->tx[i].rate < rate))
			rate = p->tx[i].rate;
		if (p->rx[i].rate && (!rate || p->rx[i].rate < rate))
			rate = p->rx[i].rate;
	}
	return rate;
}

void hca_path_make(struct hca_shm_fabric *shm, const struct hca_spec *s, uint32_t from,
		   uint32_t to, uint32_t mtu, struct hca_path *p)
{
	uint32_t from_port, to_port;
	struct hca_shm_adapter *a = hca_adapter(shm, s, from, &from_port);
	struct hca_shm_adapter *b = hca_adapter(shm, s, to, &to_port);
	uint64_t rate, bytes, quantum_ns;

	*p = (struct hca_path){
		.tx = { { &a->bus_read.busy, s->bus_read, 0 }, { &a->cap_tx.busy, s->cap, 0 },
			{ &a->port[from_port - 1].tx.busy, s->rate[from_port - 1], 0 } },
		.rx = { { &b->port[to_port - 1].rx.busy, s->rate[to_port - 1], s->latency_ns },
			{ &b->cap_rx.busy, s->cap, s->latency_ns },
			{ s->bus_half ? &b->bus_read.busy : &b->bus_write.busy, s->bus_write,
			  s->bus_half ? 0 : s->latency_ns } },
		.latency_ns = s->latency_ns, .msg_ns = s->msg_ns, .pkt_ns = s->pkt_ns,
		.mtu = mtu,
	};
	rate = slowest(p);
	bytes = rate ? (uint64_t)((unsigned __int128)rate * QUANTUM_NS / 1000000000u)
		     : QUANTUM_BYTES;
	if (bytes > QUANTUM_BYTES)
		bytes = QUANTUM_BYTES;
	if (s->window && bytes > s->window * mtu / 4)
		bytes = s->window * mtu / 4;	/* or the window would open in leaps */
	p->quantum_bytes = bytes < mtu ? mtu : (uint32_t)(bytes / mtu * mtu);
	quantum_ns = service_ns(p->quantum_bytes, rate) + s->msg_ns +
		     s->pkt_ns * hca_packets(p->quantum_bytes, mtu);
	p->horizon_ns = hca_later(quantum_ns / 2, 2 * QUANTUM_NS);
	if (p->horizon_ns > 2 * quantum_ns)
		p->horizon_ns = hca_later(2 * quantum_ns, QUANTUM_NS);
}

uint64_t hca_path_free(const struct hca_path *p)
{
	uint64_t free = 0, busy;
	int i;

	for (i = 0; i < 3; i++) {
		busy = atomic_load_explicit(p->tx[i].busy, memory_order_relaxed);
		if (busy > free)
			free = busy;
		busy = atomic_load_explicit(p->rx[i].busy, memory_order_relaxed);
		if (busy > free + p->rx[i].lag_ns)
			free = busy - p->rx[i].lag_ns;
	}
	return free;
}

uint64_t hca_path_reserve(const struct hca_path *p, uint64_t t, uint32_t bytes, bool first,
			  uint64_t *span_ns)
{
	uint64_t end = t, span = 0, need;
	int i;

	for (i = 0; i < 3; i++) {
		need = service_ns(bytes, p->tx[i].rate);
		if (i == 2)
			need += (first ? p->msg_ns : 0) + p->pkt_ns * hca_packets(bytes, p->mtu);
		end = hca_later(end, give(&p->tx[i], t, need));
		span = hca_later(span, need);
		need = service_ns(bytes, p->rx[i].rate);
		end = hca_later(end, give(&p->rx[i], t + p->rx[i].lag_ns, need) - p->rx[i].lag_ns);
		span = hca_later(span, need);
	}
	if (span_ns)
		*span_ns = span;
	return end;
}

uint64_t hca_path_request(const struct hca_path *p, uint64_t t)
{
	return give(&p->tx[2], t, p->msg_ns + p->pkt_ns) + p->latency_ns;
}

/* ---- Limits -------------------------------------------------------------- */

int hca_window_init(struct hca_window *w, uint64_t limit)
{
	memset(w, 0, sizeof(*w));
	w->limit = limit;
	if (!limit)
		return 0;
	w->record = calloc(limit + 1, sizeof(*w->record));
	return w->record ? 0 : -ENOMEM;
}

void hca_window_destroy(struct hca_window *w)
{
	free(w->record);
	memset(w, 0, sizeof(*w));
}

uint64_t hca_window_open(struct hca_window *w)
{
	const struct hca_window_record *r;
	uint64_t blocking;

	if (!w->limit || w->next < w->limit)
		return 0;
	blocking = w->next - w->limit;	/* the packet whose ack opens the window */
	while (w->count && w->record[w->oldest].end <= blocking) {
		w->oldest = w->oldest == w->limit ? 0 : w->oldest + 1;
		w->count--;
	}
	if (!w->count)
		return 0;
	r = &w->record[w->oldest];
	return r->ack_ns - (r->end - 1 - blocking) * r->gap_ns;
}

void hca_window_add(struct hca_window *w, uint32_t packets, uint64_t ack_ns, uint64_t span_ns)
{
	uint64_t at;

	if (!w->limit)
		return;
	w->next += packets;
	at = w->oldest + w->count;
	if (at > w->limit)
		at -= w->limit + 1;
	w->record[at] = (struct hca_window_record){
		.end = w->next,
		.ack_ns = ack_ns,
		.gap_ns = span_ns / packets,
	};
	w->count++;
}

int hca_times_init(struct hca_times *t, uint32_t limit)
{
	memset(t, 0, sizeof(*t));
	t->limit = limit;
	if (!limit)
		return 0;
	t->at = calloc(limit, sizeof(*t->at));
	return t->at ? 0 : -ENOMEM;
}

void hca_times_destroy(struct hca_times *t)
{
	free(t->at);
	memset(t, 0, sizeof(*t));
}
