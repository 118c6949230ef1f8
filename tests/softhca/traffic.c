/* traffic.c - traffic of a process in a seat with all others, by every kind of queue pair. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "member.h"

enum {
	GRH = 40,
	SENT = 1u << 31,	/* in a wr_id */
	UD_SEAT = SEATS,
};

/* The beginning of a message; the rest is pattern(seq). */
struct header {
	uint32_t from, bytes;
	uint32_t incarnation, churn_rkey;
	uint64_t seq, churn_addr;
};

/* ---- Receives ------------------------------------------------------------- */

/* First half of the slots of `from`: sends land there; second half: writes. */
static size_t slot_at(int from, uint64_t slot, bool written)
{
	return (((size_t)from * 2 + written) * WINDOW + slot % WINDOW) * SLOT;
}

static size_t small_at(int seat, enum kind kind, uint32_t slot)
{
	size_t at = slot;

	if (kind != SHARED)
		at += SHARED_DEPTH;
	if (kind == CHANNEL)
		at += (size_t)seat * CHANNEL_DEPTH;
	if (kind == LOOSE)
		at += SEATS * CHANNEL_DEPTH + (size_t)seat * LOOSE_DEPTH;
	return at * SMALL;	/* UD's follow, as if of one more seat */
}

static uint64_t id_of(int seat, enum kind kind, uint32_t slot)
{
	return (uint64_t)seat << 32 | (uint32_t)kind << 24 | slot;
}

static void post_main_receive(struct member *n, int from, uint32_t slot)
{
	struct ibv_sge sge = sge_of(&n->in, slot_at(from, slot, false), SLOT);

	post_receive(&n->link[from].e[MAIN], id_of(from, MAIN, slot), &sge, 1);
}

static void post_small_receive(struct member *n, int seat, enum kind kind, uint32_t slot)
{
	struct ibv_sge sge = sge_of(&n->small, small_at(seat, kind, slot), SMALL);
	struct ibv_recv_wr wr = { .wr_id = id_of(seat, kind, slot), .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	if (kind == SHARED)
		require_equal(ibv_post_srq_recv(n->srq, &wr, &bad), 0);
	else
		require_equal(ibv_post_recv(seat == UD_SEAT ? n->ud : n->link[seat].e[kind].qp,
					    &wr, &bad), 0);
}

void link_receives(struct member *n, int from)
{
	struct link *l = &n->link[from];
	uint32_t i;

	for (i = 0; i < 2 * WINDOW; i++)
		post_main_receive(n, from, i);
	for (i = 0; l->e[CHANNEL].qp && i < CHANNEL_DEPTH; i++)
		post_small_receive(n, from, CHANNEL, i);
	for (i = 0; l->e[LOOSE].qp && i < LOOSE_DEPTH; i++)
		post_small_receive(n, from, LOOSE, i);
}

void member_receives(struct member *n)
{
	uint32_t i;

	for (i = 0; n->ud && i < UD_DEPTH; i++)
		post_small_receive(n, UD_SEAT, LOOSE, i);
	for (i = 0; n->srq && i < SHARED_DEPTH; i++)
		post_small_receive(n, 0, SHARED, i);
}

/* ---- Sending --------------------------------------------------------------- */

static struct header header_of(struct member *n, uint64_t seq, uint32_t bytes)
{
	return (struct header){ .from = (uint32_t)n->me, .bytes = bytes, .seq = seq,
				.incarnation = n->incarnation,
				.churn_addr = (uintptr_t)n->churn.at,
				.churn_rkey = n->churn.mr->rkey };
}

static uint64_t seed_of(const struct header *h)
{
	return h->seq + h->from * 77ull + h->incarnation * 7919ull;
}

/* In turns: a send, a write with immediate. */
static void send_main(struct member *n, int to)
{
	struct link *l = &n->link[to];
	uint64_t seq = l->n[MAIN].sent;
	size_t at = ((size_t)to * WINDOW + seq % WINDOW) * SLOT;
	struct header h = header_of(n, seq, 0);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	h.bytes = (uint32_t)sizeof(h) + draw(draw(4) ? 200 : SLOT - (unsigned)sizeof(h));
	memcpy(n->out.at + at, &h, sizeof(h));
	fill(n->out.at + at + sizeof(h), seed_of(&h), h.bytes - sizeof(h));
	sge = sge_of(&n->out, at, h.bytes);
	wr = send_wr(&sge, id_of(to, MAIN, 0) | SENT);
	if (seq % 2) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = (uint32_t)(seq % WINDOW);
		wr.wr.rdma.remote_addr = l->to.in_addr + slot_at(n->me, seq, true);
		wr.wr.rdma.rkey = l->to.in_rkey;
	}
	if (ibv_post_send(l->e[MAIN].qp, &wr, &bad) == 0)
		l->n[MAIN].sent++;
}

static uint32_t make_small(struct member *n, unsigned char *at, uint64_t seq)
{
	struct header h = header_of(n, seq, (uint32_t)sizeof(struct header) + draw(100));

	memcpy(at, &h, sizeof(h));
	fill(at + sizeof(h), seed_of(&h), h.bytes - sizeof(h));
	return h.bytes;
}

static void send_small(struct member *n, int to, enum kind kind)
{
	struct link *l = &n->link[to];
	unsigned char bytes[SMALL];
	struct ibv_sge sge = { .addr = (uintptr_t)bytes,
			       .length = make_small(n, bytes, l->n[kind].sent) };
	struct ibv_send_wr wr = send_wr(&sge, id_of(to, kind, 0) | SENT), *bad;

	wr.send_flags |= IBV_SEND_INLINE;
	if (kind == LOOSE && draw(2) && l->churn_rkey) {
		/* The owner may withdraw the memory meanwhile. */
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = l->churn_addr + draw(CHURN - SMALL);
		wr.wr.rdma.rkey = l->churn_rkey;
	}
	if (ibv_post_send(l->e[kind].qp, &wr, &bad) == 0)
		l->n[kind].sent++;
}

static void send_ud(struct member *n, int to)
{
	struct link *l = &n->link[to];
	unsigned char bytes[SMALL];
	struct ibv_sge sge = { .addr = (uintptr_t)bytes,
			       .length = make_small(n, bytes, n->ud_sent) };
	struct ibv_send_wr wr = send_wr(&sge, id_of(UD_SEAT, LOOSE, 0) | SENT), *bad;

	wr.send_flags |= IBV_SEND_INLINE;
	wr.wr.ud.ah = l->ah;
	wr.wr.ud.remote_qpn = l->to.ud_qpn;
	wr.wr.ud.remote_qkey = QKEY;
	if (ibv_post_send(n->ud, &wr, &bad) == 0)
		n->ud_sent++;
}

/* Our word at the peer counts our adds; the common word only grows. */
static void ask(struct member *n, int to)
{
	struct link *l = &n->link[to];
	struct ibv_sge sge = sge_of(&n->answers, (size_t)to * 8, 8);
	struct ibv_send_wr wr = send_wr(&sge, id_of(to, MAIN, 1) | SENT), *bad;
	uint64_t own = l->to.words_addr + (uint64_t)n->me * 8;

	if (l->asks % 3 == 2 || !n->atomics) {
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = own;
		wr.wr.rdma.rkey = l->to.words_rkey;
	} else {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = l->asks % 3 ? l->to.words_addr + SEATS * 8 : own;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = l->to.words_rkey;
	}
	l->asked = ibv_post_send(l->e[MAIN].qp, &wr, &bad) == 0;
}

static void check_answer(struct member *n, int from)
{
	struct link *l = &n->link[from];
	uint64_t value;

	memcpy(&value, n->answers.at + (size_t)from * 8, 8);
	if (l->asks % 3 == 2 || !n->atomics) {
		require_equal(value, l->adds);
	} else if (l->asks % 3) {
		require(value >= l->others_adds);
		l->others_adds = value + 1;
	} else {
		require_equal(value, l->adds);
		l->adds++;
	}
	l->asks++;
	l->asked = false;
}

static void send_some(struct member *n, int to)
{
	struct link *l = &n->link[to];
	struct counts *c = l->n;

	if (c[MAIN].sent < c[MAIN].acked + WINDOW / 2 &&
	    c[MAIN].sent < c[MAIN].received + WINDOW / 2)
		send_main(n, to);
	if (l->e[SHARED].qp && c[SHARED].sent < c[SHARED].acked + SHARED_DEPTH / 2)
		send_small(n, to, SHARED);
	if (l->e[CHANNEL].qp && c[CHANNEL].sent < c[CHANNEL].acked + 2 &&
	    c[CHANNEL].sent < c[CHANNEL].received + 2)
		send_small(n, to, CHANNEL);
	if (l->e[LOOSE].qp && c[LOOSE].sent < c[LOOSE].acked + LOOSE_DEPTH && !draw(4))
		send_small(n, to, LOOSE);
	if (l->ah && n->ud_sent < n->ud_acked + UD_DEPTH && !draw(4))
		send_ud(n, to);
	if (!l->asked && !draw(4))
		ask(n, to);
}

/* ---- Receiving ------------------------------------------------------------- */

static struct header check_bytes(const unsigned char *at, const char *what)
{
	struct header h;

	memcpy(&h, at, sizeof(h));
	require(h.from < SEATS && h.bytes >= sizeof(h) && h.bytes <= SLOT);
	check(at + sizeof(h), seed_of(&h), h.bytes - sizeof(h), what);
	return h;
}

static void poll_all(struct member *n, struct ibv_cq *cq);

/* Is a message lost, or late?  The report has messages of another half second. */
static void __attribute__((noreturn)) out_of_order(struct member *n, int from, enum kind kind,
						   const struct header *h, const struct ibv_wc *wc)
{
	uint64_t until = now_ns() + 500000000;

	fprintf(stderr, "seat %d: message %llu of kind %d from %d, not %llu: opcode %d, qp %x, "
		"receive %llx\n", n->me, (unsigned long long)h->seq, (int)kind, from,
		(unsigned long long)n->link[from].n[kind].received, (int)wc->opcode, wc->qp_num,
		(unsigned long long)wc->wr_id);
	member_tell(n);
	n->broken = true;
	while (now_ns() < until) {
		poll_all(n, n->cq);
		if (n->channel)
			poll_all(n, n->channel_cq);
	}
	member_tell(n);
	fail("seat %d: message %llu of kind %d from %d, not %llu", n->me,
	     (unsigned long long)h->seq, (int)kind, from,
	     (unsigned long long)n->link[from].n[kind].received);
}

static void check_main(struct member *n, int from, const struct ibv_wc *wc)
{
	struct link *l = &n->link[from];
	bool written = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	uint64_t slot = written ? wc->imm_data : wc->wr_id & 0xffffff;
	struct header h = check_bytes(n->in.at + slot_at(from, slot, written), "main");

	require_equal(h.from, from);
	require_equal(h.bytes, wc->byte_len);
	if (h.seq != l->n[MAIN].received)
		out_of_order(n, from, MAIN, &h, wc);
	l->n[MAIN].received++;
	l->churn_addr = h.churn_addr;
	l->churn_rkey = h.churn_rkey;
	post_main_receive(n, from, (uint32_t)wc->wr_id & 0xffffff);
}

static void check_small(struct member *n, int from, enum kind kind, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id & 0xffffff;
	struct header h = check_bytes(n->small.at + small_at(from, kind, slot), "small");
	struct link *l = &n->link[h.from];

	require_equal(h.bytes, wc->byte_len);
	if (kind != SHARED)
		require_equal(h.from, from);
	else if (wc->qp_num != l->e[SHARED].qp->qp_num)
		fail("a message from %u on another's queue pair", h.from);
	if (kind == LOOSE)
		require(h.seq >= l->n[kind].received);
	else if (h.seq != l->n[kind].received)
		out_of_order(n, (int)h.from, kind, &h, wc);
	l->n[kind].received = h.seq + 1;
	post_small_receive(n, from, kind, slot);
}

static void check_ud(struct member *n, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id & 0xffffff;
	struct header h = check_bytes(n->small.at + small_at(UD_SEAT, LOOSE, slot) + GRH, "UD");
	struct link *l = &n->link[h.from];

	require_equal(h.bytes + GRH, wc->byte_len);
	/* A message of a dead peer may still arrive. */
	if (l->connected && h.incarnation == l->to.incarnation) {
		require(h.seq >= l->ud_seq);
		l->ud_seq = h.seq + 1;
	}
	post_small_receive(n, UD_SEAT, LOOSE, slot);
}

static void completed_badly(struct member *n, int who, enum kind kind, const struct ibv_wc *wc)
{
	if (who == UD_SEAT)
		fail("seat %d: UD: %s", n->me, ibv_wc_status_str(wc->status));
	if (kind == LOOSE && wc->status != IBV_WC_WR_FLUSH_ERR)
		fail("seat %d: UC to %d: %s", n->me, who, ibv_wc_status_str(wc->status));
	if (n->link[who].alive) {
		n->link[who].alive = false;
		n->link[who].failed_ns = now_ns();
		n->link[who].failed_kind = kind;
		n->link[who].failed_status = wc->status;
	}
}

static void note(struct member *n, int who, enum kind kind, const struct ibv_wc *wc)
{
	struct note *c = &n->history[n->noted++ % HISTORY];

	*c = (struct note){ .wc = *wc, .at_ns = now_ns(), .round = n->rounds };
	if (who < SEATS) {
		c->sent = n->link[who].n[kind].sent;
		c->received = n->link[who].n[kind].received;
	}
}

static void handle(struct member *n, const struct ibv_wc *wc)
{
	int who = (int)(wc->wr_id >> 32);
	enum kind kind = (enum kind)(wc->wr_id >> 24 & 0x7f);

	require(who >= 0 && who <= SEATS && kind < KINDS);
	note(n, who, kind, wc);
	if (n->broken)
		return;		/* only probed */
	if (wc->status != IBV_WC_SUCCESS)
		completed_badly(n, who, kind, wc);
	else if (wc->wr_id & SENT && who == UD_SEAT)
		n->ud_acked++;
	else if (wc->wr_id & SENT && (wc->wr_id & 0xffffff))
		check_answer(n, who);
	else if (wc->wr_id & SENT)
		n->link[who].n[kind].acked++;
	else if (who == UD_SEAT)
		check_ud(n, wc);
	else if (kind == MAIN)
		check_main(n, who, wc);
	else
		check_small(n, who, kind, wc);
}

static void poll_all(struct member *n, struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int i, count;

	do {
		count = ibv_poll_cq(cq, 16, wc);
		require(count >= 0);
		for (i = 0; i < count; i++)
			handle(n, &wc[i]);
	} while (count == 16);
}

/* Poll only after an event; now and then sleep until it comes. */
static void poll_channel(struct member *n)
{
	struct pollfd p = { .fd = n->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, draw(64) ? 0 : 1) != 1 || ibv_get_cq_event(n->channel, &cq, &context))
		return;
	require(cq == n->channel_cq);
	ibv_ack_cq_events(cq, 1);
	require_equal(ibv_req_notify_cq(cq, 0), 0);
	poll_all(n, cq);
}

/* ---- Other things that go on ------------------------------------------------ */

static void take_events(struct member *n)
{
	struct ibv_async_event e;

	while (ibv_get_async_event(n->side.ctx, &e) == 0)
		ibv_ack_async_event(&e);
}

/* Withdrawn memory is not written to, and other memory replaces it. */
static void churn(struct member *n)
{
	uint64_t began = now_ns();
	unsigned char *was = n->churn.at;
	int i;

	if (draw(4) == 0) {
		ibv_rereg_mr(n->churn.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL);
		return;
	}
	require_equal(ibv_dereg_mr(n->churn.mr), 0);
	/* The wait for a process stopped in the middle of a copy is a second at most. */
	if (now_ns() - began < 800000000) {
		memset(was, 0xaa, CHURN);
		for (i = 0; i < 50; i++)
			poll_all(n, n->cq);
		check_untouched(was, 0xaa, CHURN, "memory that was withdrawn");
	}
	n->churn.mr = ibv_reg_mr(n->side.pd, was, CHURN, ACCESS_ALL);
	require(n->churn.mr != NULL);
}

static void sundries(struct member *n)
{
	if (n->rounds % 64 == 0)
		take_events(n);
	if (n->rounds % 512 == 0)
		churn(n);
	if (n->rounds % 4096 == 0)
		ibv_resize_cq(n->cq, draw(2) ? 4096 : 2048);
}

void traffic(struct member *n)
{
	int i;

	for (i = 0; i < SEATS; i++)
		if (n->link[i].alive)
			send_some(n, i);
	poll_all(n, n->cq);
	if (n->channel && n->rounds % 8 == 0)
		poll_channel(n);
	n->rounds++;
	sundries(n);
}
