/*
 * datagram.c - datagrams to queue pairs of other hosts, on a stream to the process of each.
 *
 * A datagram that would have to wait is dropped: UD promises nothing, and its sender must not
 * stand still.  While a stream is being made, as many as the output buffer holds are kept.  The
 * stream carries both directions: an answer takes the one on which the question came.
 */
#include <netinet/in.h>
#include <string.h>

#include "softhca/base/gid.h"
#include "softhca/base/netif.h"
#include "softhca/link/wire/peers.h"
#include "softhca/object/ah.h"
#include "softhca/object/fabric.h"
#include "softhca/object/net.h"
#include "softhca/object/query.h"

enum { PASS_BYTES = 1 << 18 };		/* read from one peer in a pass: others have their turn */

/* ---- Sending; qp->lock held ---------------------------------------------- */

static bool gather(const struct hca_qp *qp, const struct ibv_send_wr *wr, struct iovec *piece)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		piece[i] = (struct iovec){ (void *)(uintptr_t)s->addr, s->length };
		if ((wr->send_flags & IBV_SEND_INLINE) || !s->length)
			continue;
		piece[i].iov_base = hca_mr_local(qp->fabric, s->lkey, qp->pd, 0, s->addr,
						 s->length);
		if (!piece[i].iov_base)
			return false;
	}
	return true;
}

static void put(struct hca_qp *qp, struct hca_wire_peer *p, const struct ibv_send_wr *wr,
		uint32_t bytes, struct iovec *piece, unsigned count)
{
	const uint32_t asked = wr->wr.ud.remote_qkey;
	const struct hca_ah *ah = hca_ah_of(wr->wr.ud.ah);
	unsigned char head[HCA_DATAGRAM_BYTES];
	struct hca_datagram d = {
		.source_qpn = hca_qpn(qp), .target_qpn = wr->wr.ud.remote_qpn,
		.qkey = asked & (uint32_t)HCA_QKEY_PRIVILEGED ? qp->attr.qkey : asked,
		.flow_label = ah->flow_label, .traffic_class = ah->traffic_class,
		.hop_limit = ah->hop_limit, .sl = hca_ah_sl(ah),
	};
	struct hca_frame f = { .kind = HCA_FRAME_DATAGRAM, .flags = HCA_FRAME_LAST | HCA_FRAME_GRH,
			       .bytes = sizeof(head) + bytes, .total = bytes };

	memcpy(d.source, &qp->fabric->netif[p->rail].gid, sizeof(d.source));
	memcpy(d.target, &ah->dgid, sizeof(d.target));
	hca_datagram_write(head, &d);
	if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
		f.flags |= HCA_FRAME_IMM;
		f.imm = be32toh(wr->imm_data);
	}
	if (wr->send_flags & IBV_SEND_SOLICITED)
		f.flags |= HCA_FRAME_SOLICITED;
	piece[0] = (struct iovec){ head, sizeof(head) };
	hca_stream_put(&p->stream, &f, piece, count);
}

int hca_wire_datagram(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	const struct hca_ah *ah = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM
		? hca_ah_of(wr->wr.ud.ah) : NULL;
	struct iovec piece[1 + HCA_SGE_MAX];
	struct hca_wire *wire = qp->fabric->wire_state;
	unsigned rail = qp->attr.port_num - 1u;
	struct hca_wire_peer *p;

	if (!ah || (ah->to != HCA_ADDRESS_REMOTE && !qp->fabric->wire_always))
		return qp->fabric->link->transfer_whole(qp, wr, bytes);
	if (ah->pd != qp->pd || ah->from != qp->address || ah->multicast)
		return IBV_WC_LOC_QP_OP_ERR;
	/* IBTA C10-93.1.1: no packet and no error. */
	if (bytes > hca_port_mtu(qp->fabric, qp->attr.port_num))
		return IBV_WC_SUCCESS;
	if (!gather(qp, wr, piece + 1))
		return IBV_WC_LOC_PROT_ERR;
	atomic_store_explicit(&wire->peers.busy, hca_wire_pass(wire), memory_order_relaxed);
	hca_lock(&wire->peers.lock);
	p = hca_wire_peer_for(wire, rail, &ah->dgid, wr->wr.ud.remote_qpn, hca_qpn(qp));
	if (p && hca_stream_has_room(&p->stream, HCA_DATAGRAM_BYTES + bytes)) {
		put(qp, p, wr, bytes, piece, 1u + (unsigned)wr->num_sge);
		if (p->open)
			hca_stream_flush(&p->stream);
	}
	hca_unlock(&wire->peers.lock);
	hca_wire_look_at(&wire->peers.look_ns, rg_now_ns() + HCA_WIRE_LIFE_NS);
	return IBV_WC_SUCCESS;
}

/* ---- Receiving; fabric.life held ----------------------------------------- */

static struct hca_qp *target_of(struct hca_fabric *f, const struct hca_datagram *d)
{
	uint32_t slot, index;
	struct hca_qp *qp;

	if (!f->link->number_owner(f, d->target_qpn, &slot, &index) || slot != f->slot)
		return NULL;
	qp = atomic_load(&f->qp[index]);
	return qp && hca_qpn(qp) == d->target_qpn && qp->datagram ? qp : NULL;
}

static bool accepts(const struct hca_qp *qp, const struct hca_datagram *d)
{
	int state = hca_qp_state(qp);

	return state >= IBV_QPS_RTR && state != IBV_QPS_ERR && qp->attr.qkey == d->qkey;
}

/* Header and data into the buffers of a claimed receive. */
static void scatter(const struct hca_arrival *a, const unsigned char *header,
		    const unsigned char *data, uint32_t bytes)
{
	struct iovec to[HCA_SGE_MAX];
	const unsigned char *from = header;
	uint32_t left = HCA_GRH_BYTES, at = 0;
	unsigned part, i, n;

	for (part = 0; part < 2; part++, from = data, left = bytes) {
		n = hca_pieces_cut(a->to, a->count, at, left, to);
		at += left;
		for (i = 0; i < n; from += to[i++].iov_len)
			memcpy(to[i].iov_base, from, to[i].iov_len);
	}
}

static void grh_of(const struct hca_datagram *d, uint32_t bytes, unsigned char *header)
{
	struct ibv_global_route to = { .flow_label = d->flow_label, .hop_limit = d->hop_limit,
				       .traffic_class = d->traffic_class };
	union ibv_gid source;

	memcpy(&source, d->source, sizeof(source));
	memcpy(&to.dgid, d->target, sizeof(to.dgid));
	hca_grh_make(&source, &to, bytes, header);
}

/* qp->lock held. */
static void deliver(struct hca_qp *qp, const struct hca_frame *f, const struct hca_datagram *d,
		    const unsigned char *data)
{
	struct hca_arrival a = { .claimed = false };
	struct hca_arrival_wc wc = {
		.opcode = IBV_WC_RECV, .bytes = HCA_GRH_BYTES + f->total, .src_qp = d->source_qpn,
		.flags = IBV_WC_GRH, .sl = d->sl, .solicited = f->flags & HCA_FRAME_SOLICITED,
	};
	unsigned char header[HCA_GRH_BYTES];
	int theirs = IBV_WC_SUCCESS, rc;

	if (hca_arrival_claim(qp, &a))
		return;
	hca_landing_begin(qp->fabric);
	rc = hca_arrival_buffers(qp, &a, wc.bytes, &theirs);
	if (!rc) {
		grh_of(d, f->total, header);
		scatter(&a, header, data, f->total);
	}
	hca_landing_end(qp->fabric);
	if (rc && theirs != IBV_WC_LOC_PROT_ERR) {
		hca_arrival_release(qp, &a);	/* too short: dropped */
		return;
	}
	if (f->flags & HCA_FRAME_IMM) {
		wc.flags |= IBV_WC_WITH_IMM;
		wc.imm = htobe32(f->imm);
	}
	wc.status = theirs;
	if (hca_arrival_complete(qp, &a, &wc))
		hca_qp_report(qp, IBV_EVENT_CQ_ERR + 1);
	else if (theirs)
		hca_qp_report(qp, HCA_FAULT_TOLD);
}

/* The datagram at the begin of the input; false: a breach of the protocol. */
static bool take(struct hca_wire_peer *p, const struct hca_frame *f)
{
	const unsigned char *payload = p->stream.in + p->stream.in_at + HCA_FRAME_BYTES;
	struct hca_datagram d;
	struct hca_qp *qp;

	if (f->kind != HCA_FRAME_DATAGRAM || hca_datagram_read(payload, &d) ||
	    memcmp(d.source, &p->gid, sizeof(d.source)) != 0)
		return false;
	qp = target_of(p->wire->fabric, &d);
	if (qp) {
		hca_lock(&qp->lock);
		if (accepts(qp, &d))
			deliver(qp, f, &d, payload + HCA_DATAGRAM_BYTES);
		hca_unlock(&qp->lock);
	}
	hca_stream_skip(&p->stream, HCA_FRAME_BYTES + f->bytes);
	return true;
}

/* A whole frame in the input?  1, 0, or -EPROTO. */
static int whole_frame(const struct hca_stream *s, struct hca_frame *f)
{
	if (hca_stream_arrived(s) < HCA_FRAME_BYTES)
		return 0;
	if (hca_frame_read(s->in + s->in_at, f) ||
	    f->bytes > HCA_DATAGRAM_BYTES + HCA_DATAGRAM_MAX)
		return -EPROTO;
	return hca_stream_arrived(s) >= HCA_FRAME_BYTES + f->bytes;
}

/* Takes arrived bytes: as hca_stream_fill; positive: more may be there. */
static int receive(struct hca_wire_peer *p)
{
	struct hca_stream *s = &p->stream;
	const uint64_t begin = s->in_total;
	struct hca_frame f;
	int n, rc;

	s->drained = false;
	atomic_store_explicit(&p->wire->peers.busy, hca_wire_pass(p->wire), memory_order_relaxed);
	do {
		while ((rc = whole_frame(s, &f)) > 0 && take(p, &f))
			;
		n = rc ? -EPROTO : hca_stream_fill(s, HCA_FRAME_BYTES);
	} while (n > 0 && s->in_total - begin < PASS_BYTES);
	return n;
}

/* Once for a host: it may connect again, as often as it likes. */
static void say_breach(const struct hca_wire_peer *p)
{
	char host[INET6_ADDRSTRLEN];

	hca_wire_say(p->wire, p->rail, &p->gid, HCA_WIRE_BREACH,
		     "host %s has sent datagrams that no peer sends",
		     hca_gid_format(&p->gid, host, sizeof(host)));
}

void hca_wire_peer_serve(struct hca_wire_peer *p)
{
	struct hca_stream *s = &p->stream;
	struct hca_wire *wire = p->wire;
	int n = receive(p);

	hca_lock(&wire->peers.lock);
	hca_wire_peer_used(p);
	if (n == -EPROTO)
		say_breach(p);
	if (hca_stream_is_taken(n))
		hca_stream_forget(s);
	if (n > 0)
		hca_wire_watch_again(wire, s->fd, p);
	else if (n == -EAGAIN)
		hca_stream_flush(s);
	else
		hca_wire_peer_remove(p);
	hca_unlock(&wire->peers.lock);
}
