/* cut_place.c - the queues and actions of a process that is cut off or survives. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cut.h"

enum { LOOK_US = 11000, POLLS = 130 };	/* then the peers are checked for death, once */

struct told *told;

/* ---- A process's queues ---------------------------------------------------- */

static void post_own(struct place *p, int from, uint32_t slot)
{
	struct ibv_sge sge = sge_of(&p->in, ((size_t)from * OWN_DEPTH + slot) * BYTES, BYTES);

	post_receive(&p->link[from].e[OWN], (uint64_t)from << 8 | slot, &sge, 1);
}

bool post_shared(struct place *p, uint32_t slot)
{
	struct ibv_sge sge = sge_of(&p->in, (ROLES * OWN_DEPTH + (size_t)slot) * BYTES, BYTES);
	struct ibv_recv_wr wr = { .wr_id = ROLES << 8 | slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int rc = ibv_post_srq_recv(p->srq, &wr, &bad);

	p->busy[slot] = !rc;
	require(!rc || rc == ENOMEM);
	return !rc;
}

void open_place(struct place *p, int me, int sock)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = SHARED_DEPTH, .max_sge = 1 } };
	uint32_t i;

	memset(p, 0, sizeof(*p));
	p->me = me;
	p->s = side_open(0, me, sock);
	p->cq = ibv_create_cq(p->s.ctx, 128, NULL, NULL, 0);
	require(p->cq != NULL);
	p->srq = ibv_create_srq(p->s.pd, &a);
	require(p->srq != NULL);
	p->in = buffer_new(&p->s, SLOTS * BYTES, ACCESS_ALL);
	p->out = buffer_new(&p->s, BYTES, ACCESS_ALL);
	for (i = 0; i < SHARED_DEPTH; i++)
		require(post_shared(p, i));
}

static void make_link(struct place *p, int to)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 32, .max_recv_wr = OWN_DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct link *l = &p->link[to];
	int k;

	memset(l, 0, sizeof(*l));
	for (k = 0; k < KINDS; k++) {
		if (k == SHARED) {
			init.srq = p->srq;
			init.cap.max_recv_wr = 0;
		}
		l->e[k] = (struct end){ .config = end_defaults, .cq = p->cq };
		l->e[k].config.timeout = 10;		/* 4 ms */
		l->e[k].qp = ibv_create_qp(p->s.pd, &init);
		require(l->e[k].qp != NULL);
	}
}

static void connect_link(struct place *p, int to, const struct peer_address address[KINDS])
{
	struct link *l = &p->link[to];
	uint32_t i;
	int k;

	for (k = 0; k < KINDS; k++) {
		require_equal(end_to_init(&p->s, &l->e[k]), 0);
		for (i = 0; k == OWN && i < OWN_DEPTH; i++)
			post_own(p, to, i);
		require_equal(end_to_rtr(&p->s, &l->e[k], &address[k]), 0);
		require_equal(end_to_rts(&l->e[k]), 0);
	}
}

void drop_link(struct place *p, int to)
{
	int k;

	for (k = 0; k < KINDS; k++)
		require_equal(ibv_destroy_qp(p->link[to].e[k].qp), 0);
	memset(&p->link[to], 0, sizeof(p->link[to]));
}

/* ---- Messages ---------------------------------------------------------------- */

static void send_one(struct place *p, int to, int kind)
{
	struct header h = { .from = (uint32_t)p->me, .seq = p->link[to].sent[kind]++ };
	struct ibv_sge sge = sge_of(&p->out, 0, BYTES);

	memcpy(p->out.at, &h, sizeof(h));
	fill(p->out.at + sizeof(h), h.seq + 7 * h.from, BYTES - sizeof(h));
	post(&p->link[to].e[kind], send_wr(&sge, SENT | (uint64_t)to << 8 | (unsigned)kind));
	p->link[to].waiting++;
}

static void take_message(struct place *p, const struct ibv_wc *wc)
{
	int owner = (int)(wc->wr_id >> 8), kind = owner == ROLES ? SHARED : OWN;
	uint32_t slot = (uint32_t)wc->wr_id & 0xff;
	const unsigned char *at = p->in.at + ((size_t)owner * OWN_DEPTH + slot) * BYTES;
	struct header h;
	struct link *l;

	require_equal(wc->byte_len, BYTES);
	memcpy(&h, at, sizeof(h));
	require(h.from < ROLES && (kind == SHARED || (int)h.from == owner));
	check(at + sizeof(h), h.seq + 7 * h.from, BYTES - sizeof(h), "a message");
	l = &p->link[h.from];
	if (l->flushed[kind])
		fail("message %u of kind %d from %u after a receive was flushed", h.seq, kind,
		     h.from);
	if (h.seq != l->received[kind])
		fail("message %u of kind %d from %u, not %u", h.seq, kind, h.from,
		     l->received[kind]);
	l->received[kind]++;
	if (kind == OWN)
		post_own(p, owner, slot);
	else if (p->keeps)
		p->kept[p->kept_count++] = slot;
	else
		require(post_shared(p, slot));
}

bool take(struct place *p)
{
	struct ibv_wc wc;
	int to;

	if (ibv_poll_cq(p->cq, 1, &wc) != 1)
		return false;
	to = (int)(wc.wr_id >> 8 & 0xff);
	if (wc.wr_id & (SENT | PROBE)) {
		p->link[to].waiting--;
		p->link[to].failed |= wc.status != IBV_WC_SUCCESS;
		if (p->me == VICTIM && to == SURVIVOR && !wc.status)
			atomic_fetch_add(&told->sent[wc.wr_id & 0xff], 1);
	} else if (wc.status == IBV_WC_SUCCESS) {
		take_message(p, &wc);
	} else {
		require_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		require(to < ROLES);
		p->link[to].flushed[OWN]++;
		p->link[to].failed = true;
	}
	return true;
}

static void wait_sent(struct place *p, int to)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;

	while (p->link[to].waiting)
		if (!take(p) && now_ns() > until)
			fail("%d: a send to %d is not complete after %d s", p->me, to, PATIENCE_S);
}

void wait_received(struct place *p, int from, int kind, uint32_t count)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;

	while (p->link[from].received[kind] < count)
		if (!take(p) && now_ns() > until)
			fail("%u messages of kind %d from %d, not %u, within %d s",
			     p->link[from].received[kind], kind, from, count, PATIENCE_S);
}

void learn(struct place *p, int dead)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct link *l = &p->link[dead];
	int k;

	wait_sent(p, dead);
	for (k = 0; k < KINDS; k++) {
		l->failed = false;
		wr.wr_id = PROBE | (uint64_t)dead << 8 | (unsigned)k;
		require_equal(ibv_post_send(l->e[k].qp, &wr, &bad), 0);
		l->waiting++;
		wait_sent(p, dead);
		if (!l->failed)
			fail("%d: a write to the dead succeeded", p->me);
	}
}

/* ---- The others: what they are told to do ------------------------------------- */

static void send_to_survivor(struct place *p)
{
	int i, k;

	for (i = 0; i < MESSAGES; i++)
		for (k = 0; k < KINDS; k++) {
			send_one(p, SURVIVOR, k);
			wait_sent(p, SURVIVOR);
		}
}

/* Take messages, post anew, have the completion queue and memory moved, check peers. */
static void receive_from_all(struct place *p)
{
	struct buffer more;
	int from, k, i;

	for (from = 0; from < VICTIM; from++)
		for (k = 0; k < KINDS; k++)
			wait_received(p, from, k, MESSAGES);
	require_equal(ibv_resize_cq(p->cq, 256), 0);
	more = buffer_new(&p->s, 8192, ACCESS_ALL);
	buffer_free(&p->s, &more);
	usleep(LOOK_US);
	for (i = 0; i < POLLS; i++)
		take(p);
}

static void act(struct place *p, enum word_type what)
{
	static bool traced;

	if (!traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	traced = true;
	raise(SIGSTOP);
	if (what == STEP)
		send_one(p, SURVIVOR, OWN);
	else
		(what == ACT_SEND ? send_to_survivor : receive_from_all)(p);
	raise(SIGSTOP);
	wait_sent(p, SURVIVOR);
}

void obey(struct place *p, struct word *w)
{
	uint32_t i;
	int k;

	switch (w->type) {
	case MAKE:
		make_link(p, w->peer);
		for (k = 0; k < KINDS; k++)
			w->address[k] = end_address(&p->s, &p->link[w->peer].e[k]);
		break;
	case CONNECT:
		connect_link(p, w->peer, w->address);
		break;
	case SEND:
	case POST:
		for (i = 0; i < w->count; i++)
			send_one(p, w->peer, w->kind);
		if (w->type == SEND)
			wait_sent(p, w->peer);
		break;
	case LEARN:
		learn(p, w->peer);
		drop_link(p, w->peer);
		break;
	default:
		act(p, w->type);
	}
}

void member(int me, int sock)
{
	struct place p;
	struct word w;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_place(&p, me, sock);
	while (recv(sock, &w, sizeof(w), 0) == (ssize_t)sizeof(w)) {
		obey(&p, &w);
		if (send(sock, &w, sizeof(w), MSG_NOSIGNAL) != (ssize_t)sizeof(w))
			break;
	}
	_exit(0);
}
