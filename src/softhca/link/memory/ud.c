/* ud.c - datagrams. */
#include <stdlib.h>
#include <string.h>

#include "softhca/object/ah.h"
#include "util/clock.h"
#include "softhca/link/memory/copy.h"
#include "softhca/link/memory/connect.h"
#include "softhca/link/memory/peer.h"
#include "softhca/object/loss.h"
#include "softhca/object/mcast.h"
#include "softhca/object/net.h"
#include "softhca/link/memory/steps.h"
#include "softhca/link/memory/ud.h"

enum { BUCKETS = 256 };

struct destination {
	struct hca_conn conn;
	struct destination *next;		/* in the same bucket */
};

struct hca_ud {
	struct destination *bucket[BUCKETS];
	/* Destinations in order of creation; when it is full, the oldest is replaced. */
	struct destination *destination[HCA_DESTINATIONS_MAX];
	uint32_t count, oldest;
	unsigned char header[HCA_GRH_BYTES];

	/* Multicast: the group that was sent to last. */
	struct hca_conn cast;		/* only its path is used */
	union ibv_gid group;
	uint32_t epoch;
	bool known;			/* members are group's, as of epoch */
	uint32_t member_count;
	struct hca_member_address *member;	/* HCA_MEMBERS_MAX, once it is needed */
};

/* ---- Destinations -------------------------------------------------------- */

static struct destination **bucket_of(struct hca_ud *ud, uint32_t address, uint32_t qpn)
{
	uint32_t hash = (qpn ^ address * 0x9e3779b1u) * 0x85ebca6bu;

	return &ud->bucket[hash >> 24];
}

static void unlink_destination(struct hca_ud *ud, struct destination *w)
{
	struct destination **at = bucket_of(ud, w->conn.address, w->conn.qpn);

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

/* A new destination, or the oldest, reused. */
static struct destination *claim_destination(struct hca_ud *ud)
{
	struct destination *w;

	if (ud->count < HCA_DESTINATIONS_MAX) {
		w = calloc(1, sizeof(*w));
		if (w)
			ud->destination[ud->count++] = w;
		return w;
	}
	w = ud->destination[ud->oldest];
	ud->oldest = (ud->oldest + 1) % HCA_DESTINATIONS_MAX;
	unlink_destination(ud, w);
	hca_conn_drop(&w->conn);
	return w;
}

static struct hca_conn *destination_new(struct hca_qp *qp, uint32_t address, uint32_t qpn)
{
	struct hca_fabric *f = qp->fabric;
	struct destination *w = claim_destination(qp->ud),
			   **bucket = bucket_of(qp->ud, address, qpn);

	if (!w)
		return NULL;
	w->conn.address = address;
	w->conn.qpn = qpn;
	w->next = *bucket;
	*bucket = w;
	if (qp->pace)
		hca_path_make(f->shm, &f->spec, qp->address, address, (uint32_t)f->spec.mtu,
			      &w->conn.out);
	return &w->conn;
}

static inline struct hca_conn *destination_to(struct hca_qp *qp, uint32_t address, uint32_t qpn)
{
	struct destination *w = *bucket_of(qp->ud, address, qpn);

	while (w && (w->conn.qpn != qpn || w->conn.address != address))
		w = w->next;
	return likely(w) ? &w->conn : destination_new(qp, address, qpn);
}

int hca_ud_make(struct hca_qp *qp)
{
	qp->ud = calloc(1, sizeof(*qp->ud));
	return qp->ud ? 0 : ENOMEM;
}

void hca_ud_reset(struct hca_qp *qp)
{
	struct hca_ud *ud = qp->ud;
	uint32_t i;

	if (!ud)
		return;
	for (i = 0; i < ud->count; i++) {
		hca_conn_drop(&ud->destination[i]->conn);
		free(ud->destination[i]);
	}
	memset(ud->bucket, 0, sizeof(ud->bucket));
	ud->count = ud->oldest = 0;
	ud->known = false;
	qp->message.to = &qp->conn;
}

void hca_ud_free(struct hca_qp *qp)
{
	if (!qp->ud)
		return;
	hca_ud_reset(qp);
	free(qp->ud->member);
	free(qp->ud);
	qp->ud = NULL;
}

void hca_ud_look(struct hca_qp *qp)
{
	struct hca_ud *ud = qp->ud;
	uint32_t i;

	for (i = 0; i < ud->count; i++) {
		struct hca_conn *c = &ud->destination[i]->conn;

		if (!c->peer || c->peer->fate == HCA_FATE_ALIVE)
			continue;
		hca_conn_drop(c);
		ud->known = false;
	}
}

/* ---- The local end ------------------------------------------------------- */

/* A group: only the sender's part of the path takes time. */
static struct hca_conn *destination_group(struct hca_qp *qp)
{
	struct hca_conn *c = &qp->ud->cast;
	struct hca_fabric *f = qp->fabric;
	int i;

	if (qp->pace) {
		hca_path_make(f->shm, &f->spec, qp->address, qp->address, (uint32_t)f->spec.mtu,
			      &c->out);
		for (i = 0; i < 3; i++)
			c->out.rx[i].rate = 0;
	}
	return c;
}

int hca_ud_begin(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	const struct hca_ah *ah = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM
		? hca_ah_of(wr->wr.ud.ah) : NULL;
	struct hca_message *m = &qp->message;
	struct hca_conn *to;
	int rc;

	m->done = 0;
	m->lost = m->claimed = false;
	if (!ah || ah->pd != qp->pd || ah->from != qp->address)
		return IBV_WC_LOC_QP_OP_ERR;
	/* IBTA C10-93.1.1: no packet and no error. */
	m->lost = bytes > hca_port_mtu(qp->fabric, qp->attr.port_num);
	rc = hca_gather_local(qp, wr, 1);
	if (rc)
		return rc;
	to = ah->multicast ? destination_group(qp)
			   : destination_to(qp, ah->to, wr->wr.ud.remote_qpn);
	if (unlikely(!to))
		return IBV_WC_GENERAL_ERR;	/* no memory */
	m->to = to;
	m->bytes = HCA_GRH_BYTES + bytes;
	m->flags = ah->global ? IBV_WC_GRH : 0;
	m->slid = ah->slid;
	m->sl = hca_ah_sl(ah);
	hca_ah_header(ah, bytes, qp->ud->header);
	m->local[0] = (struct hca_span){ .local = qp->ud->header, .bytes = HCA_GRH_BYTES };
	return IBV_WC_SUCCESS;
}

/* ---- The remote end ------------------------------------------------------ */

static bool ud_reach(struct hca_qp *qp, struct hca_conn *c)
{
	int rc;

	if (hca_conn_is_valid(c))
		return true;
	rc = hca_conn_resolve(qp, c);
	/* A dead process is forgotten: its number may soon be another's. */
	if (rc == -ECONNRESET)
		hca_conn_drop(c);
	return !rc;
}

/* Copy the message into the buffers of the claimed receive and complete it. */
static int ud_fill(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	struct hca_message *m = &qp->message;
	int theirs = IBV_WC_SUCCESS, rc = hca_find_buffers(qp, &theirs);

	if (rc == IBV_WC_SUCCESS) {
		rc = hca_copy(m->to->peer, m, HCA_TO_REMOTE, 0, m->bytes, false);
		if (rc) {
			hca_release_receive(qp);
			return rc == -EBUSY ? HCA_BUSY : IBV_WC_SUCCESS;
		}
	} else if (theirs != IBV_WC_LOC_PROT_ERR) {
		hca_release_receive(qp);	/* too short: dropped */
		return IBV_WC_SUCCESS;
	}
	if (hca_complete_receive(qp, wr, theirs, visible_ns))
		hca_report_qp_error(m->to, IBV_EVENT_CQ_ERR + 1);
	else if (theirs)
		hca_report_qp_error(m->to, HCA_FAULT_TOLD);
	return IBV_WC_SUCCESS;
}

/* Deliver to one queue pair, if reachable and of this qkey; HCA_NO_RECEIVE, HCA_BUSY: not now. */
static int ud_deliver(struct hca_qp *qp, struct hca_conn *c, const struct ibv_send_wr *wr,
		      uint64_t visible_ns)
{
	const uint32_t asked = wr->wr.ud.remote_qkey;
	const uint32_t qkey = asked & (uint32_t)HCA_QKEY_PRIVILEGED ? qp->attr.qkey : asked;

	qp->message.to = c;
	if (!ud_reach(qp, c) || atomic_load_explicit(&c->shm->qkey, memory_order_relaxed) != qkey ||
	    (qp->sq.wait == HCA_NOT_WAITING &&	/* drawn once */
	     hca_loss_lost(qp, c->address, qp->message.bytes - HCA_GRH_BYTES)))
		return IBV_WC_SUCCESS;
	if (hca_claim_receive(qp))
		return HCA_NO_RECEIVE;
	/*
	 * A receiver that clears its accept token waits for the claims that it finds
	 * then: either it finds this claim, or the token is seen cleared here.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (hca_conn_is_valid(c))
		return ud_fill(qp, wr, visible_ns);
	hca_release_receive(qp);
	return IBV_WC_SUCCESS;
}

/* A message that finds no receive is lost, unless a wait is worthwhile. */
static int deliver_alone(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	int rc = ud_deliver(qp, qp->message.to, wr, visible_ns);

	return likely(!rc) || !hca_receiver_may_catch_up(qp, rc) ? IBV_WC_SUCCESS : rc;
}

static bool know_members(struct hca_qp *qp, const union ibv_gid *group)
{
	struct hca_ud *ud = qp->ud;
	uint32_t epoch = hca_mcast_epoch(qp->fabric);

	if (ud->known && ud->epoch == epoch && memcmp(&ud->group, group, sizeof(*group)) == 0)
		return true;
	if (!ud->member)
		ud->member = calloc(HCA_MEMBERS_MAX, sizeof(*ud->member));
	if (!ud->member)
		return false;
	ud->group = *group;
	ud->epoch = epoch;
	ud->member_count = hca_mcast_members(qp->fabric, group, ud->member);
	ud->known = true;
	return true;
}

static void deliver_to_group(struct hca_qp *qp, const struct hca_ah *ah,
			     const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	struct hca_ud *ud = qp->ud;
	uint32_t i;

	if (wr->wr.ud.remote_qpn != HCA_QPN_MULTICAST || !know_members(qp, &ah->dgid))
		return;
	for (i = 0; i < ud->member_count; i++) {
		struct hca_conn *c = destination_to(qp, ud->member[i].address, ud->member[i].qpn);

		if (c)
			ud_deliver(qp, c, wr, visible_ns);
	}
	qp->message.to = &ud->cast;
}

int hca_ud_end(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns)
{
	const struct hca_ah *ah = hca_ah_of(wr->wr.ud.ah);

	if (likely(!ah->multicast))
		return deliver_alone(qp, wr, visible_ns);
	deliver_to_group(qp, ah, wr, visible_ns);
	return IBV_WC_SUCCESS;
}

int hca_ud_send(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	int rc = hca_ud_begin(qp, wr, bytes);

	return rc || qp->message.lost ? rc : hca_ud_end(qp, wr, 0);
}
