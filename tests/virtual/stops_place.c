/* stops_place.c - the queues of a sender, an owner, another sender; their messages. */
#include <stdlib.h>

#include "softhca/api/fabric.h"
#include "softhca/object/fabric.h"
#include "stops.h"

enum { SLOTS = MEMBERS * KINDS * DEPTH, QKEY = 0x11111111, CQE = 32 };

struct header {
	uint32_t from, kind, seq;
};

struct member member[MEMBERS];
struct round run;

/* ---- Queues ---------------------------------------------------------------- */

static bool owner_has(int from, int kind)
{
	return from == SENDER ? !run.gone || kind == UD : true;
}

static size_t slot_at(int from, int kind, uint32_t slot)
{
	return (((size_t)from * KINDS + (size_t)kind) * DEPTH + slot) * SLOT;
}

static uint32_t room_of(int kind)
{
	return BYTES + (kind == UD ? GRH : 0);
}

/* The shared queue's and UD's slots count as the owner's own. */
void post_slot(int from, int kind, uint32_t slot)
{
	struct member *o = &member[OWNER];
	struct ibv_sge sge = sge_of(&o->in, slot_at(from, kind, slot), room_of(kind));
	struct ibv_recv_wr wr = { .wr_id = slot_at(from, kind, slot), .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	require_equal(kind == SHARED ? ibv_post_srq_recv(o->srq, &wr, &bad)
				     : ibv_post_recv(o->e[from][kind].qp, &wr, &bad), 0);
}

static void post_again(uint64_t wr_id)
{
	const uint64_t slot = wr_id / SLOT;

	post_slot((int)(slot / DEPTH / KINDS), (int)(slot / DEPTH % KINDS), slot % DEPTH);
}

static void post_all(int from, int kind)
{
	uint32_t slot;

	for (slot = 0; slot < DEPTH; slot++)
		post_slot(from, kind, slot);
}

static struct end end_of(struct member *m, int kind)
{
	const struct end_config config = {
		.send_wr = 16, .recv_wr = kind == SHARED ? 0 : DEPTH, .rnr_retry = 7,
		.retry_cnt = 6, .timeout = 10, .min_rnr_timer = 1, .access = ACCESS_ALL,
		.cq = m->cq, .srq = kind == SHARED ? m->srq : NULL,
		.type = kind == UD ? IBV_QPT_UD : kind == LOOSE ? IBV_QPT_UC : IBV_QPT_RC,
	};

	return end_new(&m->s, &config);
}

static void make_ud(struct member *m)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct end *e = &m->e[m->s.me][UD];

	*e = end_of(m, UD);
	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY), 0);
	require_equal(end_to(e, IBV_QPS_RTR), 0);
	a.qp_state = IBV_QPS_RTS;
	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void connect(struct end *e, struct member *m, const struct peer_address *to)
{
	require_equal(end_to_rtr(&m->s, e, to), 0);
	require_equal(end_to_rts(e), 0);
}

static void make_link(int from, int kind)
{
	struct member *o = &member[OWNER], *m = &member[from];
	struct end *ours = &o->e[from][kind], *theirs = &m->e[OWNER][kind];
	struct peer_address of_owner, of_sender;

	*ours = end_of(o, kind);
	*theirs = end_of(m, kind);
	require_equal(end_to_init(&o->s, ours), 0);
	require_equal(end_to_init(&m->s, theirs), 0);
	of_owner = end_address(&o->s, ours);
	of_sender = end_address(&m->s, theirs);
	if (kind != SHARED)
		post_all(from, kind);
	connect(ours, o, &of_sender);
	connect(theirs, m, &of_owner);
}

struct end *end_to_owner(int from, int kind)
{
	return &member[from].e[kind == UD ? from : OWNER][kind];
}

/* ---- Messages -------------------------------------------------------------- */

void prepare(struct message *to, int from, int kind, bool too_long)
{
	struct member *m = &member[from];
	const uint32_t slot = too_long ? OUT - 1 : run.sent[from][kind] % (OUT - 1);
	const size_t at = ((size_t)kind * OUT + slot) * SLOT;
	const struct header h = { (uint32_t)from, (uint32_t)kind,
				  too_long ? UINT32_MAX : run.sent[from][kind]++ };

	memcpy(m->out.at + at, &h, sizeof(h));
	fill(m->out.at + at + sizeof(h), h.seq + 7 * h.from + 31 * h.kind, BYTES - sizeof(h));
	to->sge = sge_of(&m->out, at, too_long ? 2 * BYTES : BYTES);
	to->wr = send_wr(&to->sge, (uint64_t)kind | (too_long ? KINDS : 0));
	to->end = end_to_owner(from, kind);
	if (kind == UD) {
		to->wr.wr.ud.ah = m->ah;
		to->wr.wr.ud.remote_qpn = member[OWNER].e[OWNER][UD].qp->qp_num;
		to->wr.wr.ud.remote_qkey = QKEY;
	}
}

void post_message(struct message *m)
{
	struct ibv_send_wr *bad;

	require_equal(ibv_post_send(m->end->qp, &m->wr, &bad), 0);
}

void send_one(int from, int kind)
{
	struct message m;

	prepare(&m, from, kind, false);
	post_message(&m);
}

bool take_sent(int from)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(member[from].cq, 1, &wc) != 1)
		return false;
	if (wc.wr_id < KINDS) {
		run.ended[from][wc.wr_id]++;
		run.ok[from][wc.wr_id] += wc.status == IBV_WC_SUCCESS;
	}
	if (from == OTHER)
		require_equal(wc.status, IBV_WC_SUCCESS);
	virtual_found();
	return true;
}

void take_message(const struct ibv_wc *wc)
{
	const int kind = (int)(wc->wr_id / SLOT / DEPTH % KINDS);
	const unsigned char *at = member[OWNER].in.at + wc->wr_id + (kind == UD ? GRH : 0);
	struct header h;

	require_equal(wc->byte_len, room_of(kind));
	memcpy(&h, at, sizeof(h));
	require(h.from < MEMBERS && (int)h.kind == kind);
	if (h.seq != run.received[h.from][kind])
		fail("message %u of kind %d from %u, not %u", h.seq, kind, h.from,
		     run.received[h.from][kind]);
	check(at + sizeof(h), h.seq + 7 * h.from + 31 * h.kind, BYTES - sizeof(h), "a message");
	run.received[h.from][kind]++;
	if (run.reposts) {
		run.reposted[h.from][kind]++;
		post_again(wc->wr_id);
	}
	if (h.from == SENDER && kind != SHARED && run.flushed[kind])
		fail("a message of kind %d after a receive was flushed", kind);
}

static bool take(void)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(member[OWNER].cq, 1, &wc) != 1)
		return false;
	if (wc.status == IBV_WC_SUCCESS) {
		take_message(&wc);
	} else {
		require_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		require(run.closed || run.refused);
		run.flushed[wc.wr_id / SLOT / DEPTH % KINDS]++;
	}
	virtual_found();
	return true;
}

/* Every 64th call checks for dead peers and stuck entries. */
bool take_any(void)
{
	int i;

	for (i = 0; i < 64; i++)
		if (take())
			return true;
	return false;
}

bool all_here(int from)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		if (owner_has(from, kind) && run.received[from][kind] < run.ok[from][kind])
			return false;
	return true;
}

bool all_ended(int from)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		if (run.ended[from][kind] < run.sent[from][kind])
			return false;
	return true;
}

void settle(uint64_t most_ns)
{
	const uint64_t end_ns = now_ns() + most_ns;
	bool more = true;

	while (more || !all_ended(SENDER) || !all_ended(OTHER) || !all_here(SENDER) ||
	       !all_here(OTHER)) {
		more = take_any();
		more |= take_sent(SENDER);
		more |= take_sent(OTHER);
		if (!more && !goes_on(end_ns))
			break;
	}
}

void must_have_all(int from)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		if (run.ended[from][kind] != run.sent[from][kind])
			fail("member %d: %u sends of kind %d, %u completions", from,
			     run.sent[from][kind], kind, run.ended[from][kind]);
		if (owner_has(from, kind) && run.received[from][kind] < run.ok[from][kind])
			fail("member %d was told that %u messages of kind %d have arrived, which are %u",
			     from, run.ok[from][kind], kind, run.received[from][kind]);
	}
}

void all_send(int from)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		send_one(from, kind);
}

uint32_t taken_by(int from, int kind)
{
	return run.received[from][kind] - run.reposted[from][kind];
}

/* Leftovers of messages that are gone would make it fail. */
void use_up(int from, int kind, uint32_t count)
{
	uint32_t i, before = run.received[from][kind];

	for (i = 0; i < count; i++)
		send_one(from, kind);
	settle(2000 * MS_NS);
	if (run.received[from][kind] != before + count)
		fail("of %u receives of kind %d, %u are there", count, kind,
		     run.received[from][kind] - before);
}

void set_up(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct member *o = &member[OWNER];
	int from, kind;

	memset(&run, 0, sizeof(run));
	o->cq = ibv_create_cq(o->s.ctx, CQE, NULL, NULL, 0);
	o->srq = ibv_create_srq(o->s.pd, &a);
	require(o->cq && o->srq);
	o->away.mr = ibv_reg_mr(o->s.pd, o->away.at, BYTES, ACCESS_ALL);
	require(o->away.mr != NULL);
	post_all(OWNER, SHARED);
	make_ud(o);
	post_all(OWNER, UD);
	for (from = 0; from < MEMBERS; from++) {
		if (from == OWNER)
			continue;
		member[from].cq = ibv_create_cq(member[from].s.ctx, 64, NULL, NULL, 0);
		require(member[from].cq != NULL);
		for (kind = 0; kind < UD; kind++)
			make_link(from, kind);
		make_ud(&member[from]);
	}
	/* A message of each kind, so that connections are resolved. */
	all_send(SENDER);
	all_send(OTHER);
	settle(1000 * MS_NS);
	must_have_all(SENDER);
	must_have_all(OTHER);
	for (from = 0; from < MEMBERS; from++)
		for (kind = 0; from != OWNER && kind < KINDS; kind++) {
			require_equal(run.received[from][kind], 1);
			post_slot(kind == SHARED || kind == UD ? OWNER : from, kind,
				  kind == SHARED || kind == UD ? from == OTHER : 0);
		}
	memset(&run, 0, sizeof(run));
}

void tear_down(void)
{
	struct member *o = &member[OWNER];
	int from, kind;

	for (from = 0; from < MEMBERS; from++) {
		if (from == OWNER)
			continue;
		for (kind = 0; kind < UD; kind++) {
			end_free(&member[from].e[OWNER][kind]);
			if (o->e[from][kind].qp)
				end_free(&o->e[from][kind]);
		}
		end_free(&member[from].e[from][UD]);
		require_equal(ibv_destroy_cq(member[from].cq), 0);
	}
	end_free(&o->e[OWNER][UD]);
	require_equal(ibv_destroy_srq(o->srq), 0);
	require_equal(ibv_destroy_cq(o->cq), 0);
	if (o->away.mr)
		require_equal(ibv_dereg_mr(o->away.mr), 0);
	o->away.mr = NULL;
}

static void open_member(int me)
{
	struct member *m = &member[me];

	hca_fabric_member = (unsigned)me;
	m->s = side_open(0, me, -1);
	m->in = buffer_new(&m->s, SLOTS * SLOT, ACCESS_ALL);
	m->out = buffer_new(&m->s, (KINDS * OUT + 1) * SLOT, ACCESS_ALL);
	m->away = buffer_new(&m->s, SLOT, ACCESS_ALL);
	require_equal(ibv_dereg_mr(m->away.mr), 0);
	m->away.mr = NULL;
}

static void close_member(int me)
{
	struct member *m = &member[me];

	require_equal(ibv_destroy_ah(m->ah), 0);
	buffer_free(&m->s, &m->in);
	buffer_free(&m->s, &m->out);
	buffer_free(&m->s, &m->away);
	side_close(&m->s);
}

void members_open(void)
{
	struct ibv_ah_attr to = { .port_num = 1 };
	int me;

	for (me = 0; me < MEMBERS; me++)
		open_member(me);
	hca_fabric_member = 0;
	to.dlid = member[OWNER].s.port.lid;
	for (me = 0; me < MEMBERS; me++) {
		member[me].ah = ibv_create_ah(member[me].s.pd, &to);
		require(member[me].ah != NULL);
	}
}

void members_close(void)
{
	int me;

	for (me = 0; me < MEMBERS; me++)
		close_member(me);
}
