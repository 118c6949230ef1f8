/* member.c - a process in a seat: its device, its ends, the parent's commands. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "member.h"

enum {
	GRACE_MS = 60000,	/* for errors whose reason we have not been told */
	DETECT_MS = 60000,
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
	n->side = side_open(n->me % NODES, 0, -1);	/* the last seat shares a node */
	n->atomics = n->side.dev.atomic_cap != IBV_ATOMIC_NONE;
	n->access = ACCESS_ALL | (n->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0);
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
		member_tell(n);
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

	alarm(300);
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
		owe(n, WORD_FLOW, w, 60000);
		break;
	case WORD_TELL:
		member_tell(n);
		answer(n, WORD_TELL, w);
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
	side_close(&n->side);
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

	alarm(300);
	side_options.arena = mode->arena;
	n.me = seat;
	n.sock = sock;
	n.incarnation = incarnation;
	draw_from(incarnation * 2654435761u);
	open_member(&n);
	member_receives(&n);
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
