/* member.c - a process in a seat: traffic with all others, by every kind of queue pair. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kill.h"

enum {
	SLOT = 8192,		/* bytes of a main message at most */
	WINDOW = 8,		/* main messages in flight per peer and direction */
	SMALL = 256,		/* bytes of the others at most */
	SHARED_DEPTH = 16,	/* receives of the shared queue: fewer than all could send */
	CHANNEL_DEPTH = 4, LOOSE_DEPTH = 8, UD_DEPTH = 32,
	GRH = 40,
	CHURN = 4096,
	QKEY = 0x11111111,
	GRACE_MS = 10000,	/* for errors whose reason we have not been told */
	DETECT_MS = 5000,
	SENT = 1u << 31,	/* in a wr_id */
	UD_SEAT = SEATS,
};

/* What a message begins with; the rest is pattern(seq). */
struct header {
	uint32_t from, bytes;
	uint32_t incarnation, churn_rkey;
	uint64_t seq, churn_addr;
};

struct counts {
	uint64_t sent, acked, received;
};

struct link {
	struct end e[KINDS];
	struct counts n[KINDS];
	struct address to;
	struct ibv_ah *ah;
	bool made, connected, alive, expected;
	uint64_t failed_ns;
	enum kind failed_kind;
	enum ibv_wc_status failed_status;
	/* One at a time: adds to our own word at the peer, adds to one of all, reads. */
	bool asked;
	uint64_t asks, adds, others_adds;
	uint64_t ud_seq;
	uint32_t churn_rkey;
	uint64_t churn_addr;
};

struct member {
	struct side side;
	struct options options;
	int me, sock;
	uint32_t incarnation;
	unsigned access;
	struct ibv_cq *cq, *channel_cq;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel;
	struct ibv_qp *ud;
	struct buffer out, in, small, words, answers, churn;
	void *withdrawn;		/* memory that was registered until just now */
	struct link link[SEATS];
	uint64_t ud_sent, ud_acked;
	unsigned random, rounds;
	bool atomics;

	/* What the parent waits for. */
	enum word_type owed;
	int owed_seat;
	unsigned owed_mask;
	uint64_t deadline_ns;
	uint64_t mark[SEATS][KINDS];
};

/* ---- Setting up ---------------------------------------------------------- */

static void open_ud(struct member *n)
{
	struct ibv_qp_init_attr init = {
		.send_cq = n->cq, .recv_cq = n->cq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 64, .max_recv_wr = UD_DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = SMALL },
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	n->ud = ibv_create_qp(n->side.pd, &init);
	if (!n->ud)
		return;
	require_equal(ibv_modify_qp(n->ud, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY), 0);
	a.qp_state = IBV_QPS_RTR;
	require_equal(ibv_modify_qp(n->ud, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	require_equal(ibv_modify_qp(n->ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* Kinds that the device does not have are left out. */
static void open_queues(struct member *n)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = SHARED_DEPTH, .max_sge = 1 } };

	n->cq = ibv_create_cq(n->side.ctx, 2048, NULL, NULL, 0);
	require(n->cq != NULL);
	n->srq = ibv_create_srq(n->side.pd, &srq);
	n->channel = ibv_create_comp_channel(n->side.ctx);
	if (n->channel) {
		fcntl(n->channel->fd, F_SETFL, O_NONBLOCK);
		n->channel_cq = ibv_create_cq(n->side.ctx, 256, NULL, n->channel, 0);
		require(n->channel_cq != NULL);
		require_equal(ibv_req_notify_cq(n->channel_cq, 0), 0);
	}
	open_ud(n);
	fcntl(n->side.ctx->async_fd, F_SETFL, O_NONBLOCK);
}

static void open_member(struct member *n)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	require(list != NULL && list[0] != NULL);
	n->side = (struct side){ .options = &n->options, .port_num = 1, .gid_index = -1 };
	n->side.ctx = ibv_open_device(list[0]);
	require(n->side.ctx != NULL);
	ibv_free_device_list(list);
	require_equal(ibv_query_port(n->side.ctx, 1, &n->side.port), 0);
	require_equal(ibv_query_device(n->side.ctx, &n->side.dev), 0);
	n->atomics = n->side.dev.atomic_cap != IBV_ATOMIC_NONE;
	n->access = ACCESS_ALL | (n->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	n->side.pd = ibv_alloc_pd(n->side.ctx);
	require(n->side.pd != NULL);
	n->out = buffer_new(&n->side, SEATS * WINDOW * SLOT, ACCESS_ALL);
	n->in = buffer_new(&n->side, SEATS * 2 * WINDOW * SLOT, ACCESS_ALL);
	n->small = buffer_new(&n->side, (SHARED_DEPTH + SEATS * (CHANNEL_DEPTH + LOOSE_DEPTH) +
					 UD_DEPTH) * SMALL, ACCESS_ALL);
	n->words = buffer_new(&n->side, (SEATS + 1) * 8, (int)n->access);
	n->answers = buffer_new(&n->side, SEATS * 8, ACCESS_ALL);
	n->churn = buffer_new(&n->side, CHURN, ACCESS_ALL);
	memset(n->words.at, 0, (SEATS + 1) * 8);
	open_queues(n);
}

static void post_small_receive(struct member *n, int seat, enum kind kind, uint32_t slot);

static void post_ud_receives(struct member *n)
{
	uint32_t i;

	for (i = 0; n->ud && i < UD_DEPTH; i++)
		post_small_receive(n, UD_SEAT, LOOSE, i);
	for (i = 0; n->srq && i < SHARED_DEPTH; i++)
		post_small_receive(n, 0, SHARED, i);
}

/* ---- Ends ----------------------------------------------------------------- */

static void link_free(struct link *l)
{
	int k;

	for (k = 0; k < KINDS; k++)
		if (l->e[k].qp)
			end_free(&l->e[k]);
	if (l->ah)
		require_equal(ibv_destroy_ah(l->ah), 0);
	memset(l, 0, sizeof(*l));
}

static struct end shared_end(struct member *n, const struct end_config *c)
{
	struct ibv_qp_init_attr init = {
		.send_cq = n->cq, .recv_cq = n->cq, .srq = n->srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_send_sge = 1, .max_inline_data = SMALL },
	};
	struct end e = { .config = *c, .cq = n->cq };

	e.qp = ibv_create_qp(n->side.pd, &init);
	require(e.qp != NULL);
	return e;
}

static void link_make(struct member *n, struct link *l)
{
	struct end_config c = end_defaults;

	c.cq = n->cq;
	c.recv_wr = 2 * WINDOW;
	c.inline_bytes = SMALL;
	c.timeout = 16;		/* 268 ms: a busy machine may keep a peer from answering */
	c.access = n->access;
	l->e[MAIN] = end_new(&n->side, &c);
	if (n->srq)
		l->e[SHARED] = shared_end(n, &c);
	c.recv_wr = CHANNEL_DEPTH;
	c.cq = n->channel_cq;
	if (n->channel)
		l->e[CHANNEL] = end_new(&n->side, &c);
	c.cq = n->cq;
	c.recv_wr = LOOSE_DEPTH;
	c.type = IBV_QPT_UC;
	l->e[LOOSE] = end_new(&n->side, &c);
	l->made = true;
}

static void link_address(struct member *n, const struct link *l, struct address *a)
{
	int k;

	memset(a, 0, sizeof(*a));
	for (k = 0; k < KINDS; k++)
		if (l->e[k].qp)
			a->qp[k] = end_address(&n->side, &l->e[k]);
	a->ud_qpn = n->ud ? n->ud->qp_num : 0;
	a->incarnation = n->incarnation;
	a->in_addr = (uintptr_t)n->in.at;
	a->in_rkey = n->in.mr->rkey;
	a->words_addr = (uintptr_t)n->words.at;
	a->words_rkey = n->words.mr->rkey;
}

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

static void link_receives(struct member *n, int from)
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

static void link_connect(struct member *n, int to, const struct address *a)
{
	struct ibv_ah_attr ah = { .dlid = a->qp[MAIN].lid, .port_num = 1 };
	struct link *l = &n->link[to];
	int k;

	l->to = *a;
	for (k = 0; k < KINDS; k++)
		if (l->e[k].qp)
			require_equal(end_to_init(&n->side, &l->e[k]), 0);
	link_receives(n, to);
	for (k = 0; k < KINDS; k++) {
		if (!l->e[k].qp)
			continue;
		require_equal(end_to_rtr(&n->side, &l->e[k], &a->qp[k]), 0);
		require_equal(end_to_rts(&l->e[k]), 0);
	}
	if (n->ud && a->ud_qpn) {
		l->ah = ibv_create_ah(n->side.pd, &ah);
		require(l->ah != NULL);
	}
	l->connected = true;
}

/* ---- Sending --------------------------------------------------------------- */

static unsigned dice(struct member *n, unsigned sides)
{
	n->random = n->random * 1103515245u + 12345u;
	return (n->random >> 16) % sides;
}

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

	h.bytes = (uint32_t)sizeof(h) + dice(n, dice(n, 4) ? 200 : SLOT - (unsigned)sizeof(h));
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
	struct header h = header_of(n, seq, (uint32_t)sizeof(struct header) + dice(n, 100));

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
	if (kind == LOOSE && dice(n, 2) && l->churn_rkey) {
		/* Its owner may withdraw the memory meanwhile. */
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = l->churn_addr + dice(n, CHURN - SMALL);
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

/* Our word at the peer counts our adds; the one of all only grows. */
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
	if (l->e[LOOSE].qp && c[LOOSE].sent < c[LOOSE].acked + LOOSE_DEPTH && !dice(n, 4))
		send_small(n, to, LOOSE);
	if (l->ah && n->ud_sent < n->ud_acked + UD_DEPTH && !dice(n, 4))
		send_ud(n, to);
	if (!l->asked && !dice(n, 4))
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

static void check_main(struct member *n, int from, const struct ibv_wc *wc)
{
	struct link *l = &n->link[from];
	bool written = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	uint64_t slot = written ? wc->imm_data : wc->wr_id & 0xffffff;
	struct header h = check_bytes(n->in.at + slot_at(from, slot, written), "main");

	require_equal(h.from, from);
	require_equal(h.bytes, wc->byte_len);
	require_equal(h.seq, l->n[MAIN].received);
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
	else
		require_equal(h.seq, l->n[kind].received);
	l->n[kind].received = h.seq + 1;
	post_small_receive(n, from, kind, slot);
}

static void check_ud(struct member *n, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id & 0xffffff;
	struct header h = check_bytes(n->small.at + small_at(UD_SEAT, LOOSE, slot) + GRH, "UD");
	struct link *l = &n->link[h.from];

	require_equal(h.bytes + GRH, wc->byte_len);
	/* One that has gone may still be heard of. */
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

static void handle(struct member *n, const struct ibv_wc *wc)
{
	int who = (int)(wc->wr_id >> 32);
	enum kind kind = (enum kind)(wc->wr_id >> 24 & 0x7f);

	require(who >= 0 && who <= SEATS && kind < KINDS);
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

/* Only when it was told to; now and then it sleeps until then. */
static void poll_channel(struct member *n)
{
	struct pollfd p = { .fd = n->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, dice(n, 64) ? 0 : 1) != 1 || ibv_get_cq_event(n->channel, &cq, &context))
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

/* Memory that was withdrawn is not written to, and another's comes instead. */
static void churn(struct member *n)
{
	uint64_t began = now_ns();
	unsigned char *was = n->churn.at;
	int i;

	if (dice(n, 4) == 0) {
		ibv_rereg_mr(n->churn.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL);
		return;
	}
	require_equal(ibv_dereg_mr(n->churn.mr), 0);
	/* Who was stopped in the middle of a copy is not waited for longer than a second. */
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
		ibv_resize_cq(n->cq, dice(n, 2) ? 4096 : 2048);
}

static void traffic(struct member *n)
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

/* ---- What the parent says ---------------------------------------------------- */

static void answer(struct member *n, enum word_type type, struct word *w)
{
	w->type = type;
	if (send(n->sock, w, sizeof(*w), MSG_NOSIGNAL) < 0)
		_exit(1);
}

static void owe(struct member *n, enum word_type type, const struct word *w, int ms)
{
	int i, k;

	n->owed = type;
	n->owed_seat = w->seat;
	n->owed_mask = w->mask;
	n->deadline_ns = now_ns() + (uint64_t)ms * 1000000;
	for (i = 0; i < SEATS; i++)
		for (k = 0; k < KINDS; k++)
			n->mark[i][k] = n->link[i].n[k].received;
}

static bool flowed(const struct member *n)
{
	static const uint64_t most[KINDS] = { 40, 20, 10, 0 };
	int i, k;

	for (i = 0; i < SEATS; i++)
		for (k = 0; (n->owed_mask >> i & 1) && i != n->me && k < KINDS; k++)
			if (n->link[i].e[k].qp &&
			    n->link[i].n[k].received < n->mark[i][k] + most[k])
				return false;
	return true;
}

static void say_what_lacks(const struct member *n)
{
	int i, k;

	for (i = 0; i < SEATS; i++)
		for (k = 0; k < KINDS; k++)
			if (n->link[i].e[k].qp)
				fprintf(stderr, "seat %d to %d, kind %d: alive %d, %llu sent, %llu "
					"acknowledged, %llu received, %llu before\n", n->me, i, k,
					n->link[i].alive,
					(unsigned long long)n->link[i].n[k].sent,
					(unsigned long long)n->link[i].n[k].acked,
					(unsigned long long)n->link[i].n[k].received,
					(unsigned long long)n->mark[i][k]);
}

static void pay(struct member *n)
{
	struct word w = { .seat = n->owed_seat };
	int i;

	for (i = 0; i < SEATS; i++)
		if (n->link[i].failed_ns && !n->link[i].expected &&
		    now_ns() - n->link[i].failed_ns > GRACE_MS * 1000000ull)
			fail("seat %d: the queue pair to %d, which lives, failed (kind %d: %s)",
			     n->me, i, (int)n->link[i].failed_kind,
			     ibv_wc_status_str(n->link[i].failed_status));
	if (!n->owed)
		return;
	if (n->owed == WORD_FLOW ? flowed(n) : !n->link[n->owed_seat].alive) {
		answer(n, n->owed, &w);
		n->owed = 0;
	} else if (now_ns() > n->deadline_ns) {
		say_what_lacks(n);
		fail("seat %d: '%c' (seat %d, mask 0x%x) did not come about", n->me, n->owed,
		     n->owed_seat, n->owed_mask);
	}
}

static void make(struct member *n, struct word *w)
{
	struct link *l = &n->link[w->seat];

	link_free(l);
	memset(n->words.at + (size_t)w->seat * 8, 0, 8);
	link_make(n, l);
	link_address(n, l, &w->address);
	answer(n, WORD_ADDRESS, w);
}

static void obey(struct member *n, struct word *w)
{
	struct link *l = &n->link[w->seat];

	alarm(120);
	switch (w->type) {
	case WORD_MAKE:
		make(n, w);
		break;
	case WORD_CONNECT:
		link_connect(n, w->seat, &w->address);
		answer(n, WORD_READY, w);
		break;
	case WORD_GO:
		l->alive = true;
		break;
	case WORD_KILLED:
		l->expected = true;
		owe(n, WORD_DEAD, w, DETECT_MS);
		break;
	case WORD_GONE:
		l->expected = true;
		l->alive = false;
		answer(n, WORD_DEAD, w);
		break;
	case WORD_FLOW:
		owe(n, WORD_FLOW, w, 20000);
		break;
	default:
		fail("word '%c'", w->type);
	}
}

static void leave(struct member *n)
{
	int i;

	for (i = 0; i < SEATS; i++)
		link_free(&n->link[i]);
	if (n->ud)
		require_equal(ibv_destroy_qp(n->ud), 0);
	if (n->srq)
		require_equal(ibv_destroy_srq(n->srq), 0);
	if (n->channel) {
		require_equal(ibv_destroy_cq(n->channel_cq), 0);
		require_equal(ibv_destroy_comp_channel(n->channel), 0);
	}
	require_equal(ibv_destroy_cq(n->cq), 0);
	buffer_free(&n->side, &n->out);
	buffer_free(&n->side, &n->in);
	buffer_free(&n->side, &n->small);
	buffer_free(&n->side, &n->words);
	buffer_free(&n->side, &n->answers);
	buffer_free(&n->side, &n->churn);
	require_equal(ibv_dealloc_pd(n->side.pd), 0);
	require_equal(ibv_close_device(n->side.ctx), 0);
}

static unsigned features(const struct member *n)
{
	return (n->srq ? HAS_SHARED : 0) | (n->channel ? HAS_CHANNEL : 0) | (n->ud ? HAS_UD : 0) |
	       (n->atomics ? HAS_ATOMICS : 0);
}

void member_run(int seat, int sock, uint32_t incarnation, const struct mode *mode)
{
	static struct member n;
	struct word w = { .type = WORD_READY };
	char number[8];

	alarm(120);
	snprintf(number, sizeof(number), "%d", seat % NODES);	/* the last shares one */
	setenv("SOFTHCA_NODE", number, 1);
	n.options = (struct options){ .port = 1, .gid_index = -2, .arena = mode->arena };
	n.me = seat;
	n.sock = sock;
	n.incarnation = incarnation;
	n.random = incarnation * 2654435761u;
	open_member(&n);
	post_ud_receives(&n);
	w.mask = features(&n);
	answer(&n, WORD_READY, &w);
	for (;;) {
		ssize_t got;
		int i;

		for (i = 0; i < 50; i++)
			traffic(&n);
		pay(&n);
		got = recv(sock, &w, sizeof(w), MSG_DONTWAIT);
		if (got == 0)
			_exit(1);
		if (got != sizeof(w))
			continue;
		if (w.type == WORD_QUIT)
			break;
		obey(&n, &w);
	}
	leave(&n);
	answer(&n, WORD_QUIT, &w);
	exit(0);
}
