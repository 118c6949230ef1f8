/*
 * datagram.c - datagrams to queue pairs of other hosts, on a stream to the process of each.
 *
 * A datagram that would have to wait is dropped: UD promises nothing, and its sender must not
 * stand still.  While a stream is being made, as many as the output buffer holds are kept.  The
 * stream carries both directions: an answer takes the one on which the question came.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "softhca/base/netif.h"
#include "softhca/link/wire/wire.h"
#include "softhca/object/ah.h"
#include "softhca/object/fabric.h"
#include "softhca/object/net.h"
#include "softhca/object/query.h"
#include "util/clock.h"

#define AGAIN_NS 100000000ull		/* between calls of a process that is not there yet */
#define FORGET_NS 10000000000ull	/* a peer that cannot be called */

/* The stream to the process that has a queue pair number. */
struct hca_wire_peer {
	enum hca_wire_source source;	/* first */
	struct hca_wire *wire;
	struct hca_wire_peer *next;
	union ibv_gid gid;
	uint32_t qpn, from;		/* its number; of this end, which the call names */
	unsigned rail;
	bool called, open;
	uint64_t again_ns, since_ns;
	struct hca_stream stream;
};

/* ---- Peers; wire->peers_lock held ---------------------------------------- */

static struct hca_wire_peer *peer_find(struct hca_wire *wire, unsigned rail,
				       const union ibv_gid *gid, uint32_t qpn)
{
	struct hca_wire_peer *p = wire->peers;

	while (p && (p->qpn != qpn || p->rail != rail || memcmp(&p->gid, gid, sizeof(*gid)) != 0))
		p = p->next;
	return p;
}

static struct hca_wire_peer *peer_add(struct hca_wire *wire, unsigned rail,
				      const union ibv_gid *gid, uint32_t qpn)
{
	struct hca_wire_peer *p = calloc(1, sizeof(*p));

	if (!p || hca_stream_open(&p->stream, -1)) {
		free(p);
		return NULL;
	}
	p->source = HCA_WIRE_PEER;
	p->wire = wire;
	p->gid = *gid;
	p->qpn = qpn;
	p->rail = rail;
	p->since_ns = rg_now_ns();
	p->next = wire->peers;
	wire->peers = p;
	return p;
}

static void peer_free(struct hca_wire_peer *p)
{
	struct hca_wire_peer **at = &p->wire->peers;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	hca_meet_cancel(p->wire->meet, p);
	hca_stream_close(&p->stream);
	free(p);
}

static bool peer_watch(struct hca_wire_peer *p, int fd)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				 .data.ptr = p };

	p->stream.fd = fd;
	p->open = !epoll_ctl(p->wire->epoll, EPOLL_CTL_ADD, fd, &e);
	return p->open;
}

void hca_wire_peers_free(struct hca_wire *wire)
{
	while (wire->peers)
		peer_free(wire->peers);
}

/* ---- Streams; fabric.life held ------------------------------------------- */

static void peer_call(struct hca_wire_peer *p)
{
	struct hca_hello h = { .kind = HCA_MEET_DATAGRAMS, .source_qpn = p->from,
			       .target_qpn = p->qpn, .target = p->gid };

	p->called = true;
	p->again_ns = 0;
	if (hca_wire_call(p->wire, p->rail, &h, p)) {
		p->called = false;
		p->again_ns = rg_now_ns() + AGAIN_NS;
	}
}

void hca_wire_peers_call(struct hca_wire *wire)
{
	uint64_t now = rg_now_ns();
	struct hca_wire_peer *p, *next;
	bool later = false;

	hca_lock(&wire->peers_lock);
	atomic_store(&wire->peers_new, false);
	for (p = wire->peers; p; p = next) {
		next = p->next;
		if (p->open || p->called)
			continue;
		if (now - p->since_ns > FORGET_NS) {
			peer_free(p);
			continue;
		}
		if (rg_reached(p->again_ns, now))
			peer_call(p);
		later |= !p->called;
	}
	if (later)
		atomic_store(&wire->peers_new, true);
	hca_unlock(&wire->peers_lock);
}

void hca_wire_peer_opened(struct hca_wire *wire, int fd, const struct hca_hello *h)
{
	struct hca_fabric *f = wire->fabric;
	struct hca_wire_peer *p;
	unsigned rail = 0;

	while (rail < f->spec.ports &&
	       memcmp(&f->netif[rail].gid, &h->target, sizeof(h->target)) != 0)
		rail++;
	hca_lock(&wire->peers_lock);
	p = rail < f->spec.ports ? peer_add(wire, rail, &h->source, h->source_qpn) : NULL;
	if (!p) {
		close(fd);
	} else if (!peer_watch(p, fd)) {
		peer_free(p);
		p = NULL;
	}
	hca_unlock(&wire->peers_lock);
	if (p)
		hca_wire_peer_serve(p);
}

void hca_wire_peer_reached(struct hca_wire_peer *p, int fd)
{
	struct hca_wire *wire = p->wire;

	hca_lock(&wire->peers_lock);
	if (peer_watch(p, fd))
		hca_stream_flush(&p->stream);
	else
		peer_free(p);
	hca_unlock(&wire->peers_lock);
}

void hca_wire_peer_refused(struct hca_wire_peer *p, int error, const char *why)
{
	struct hca_wire *wire = p->wire;

	hca_lock(&wire->peers_lock);
	if (error == EACCES || error == EPROTONOSUPPORT || error == EINVAL) {
		hca_wire_say(wire, p->rail, &p->gid, HCA_WIRE_UNCONNECTED, "%s", why);
		peer_free(p);
	} else {
		if (error == ETIMEDOUT)
			hca_wire_say(wire, p->rail, &p->gid, HCA_WIRE_UNCONNECTED, "%s", why);
		p->called = false;
		p->again_ns = rg_now_ns() + AGAIN_NS;
		atomic_store(&wire->peers_new, true);
	}
	hca_unlock(&wire->peers_lock);
}

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
	hca_lock(&wire->peers_lock);
	p = peer_find(wire, rail, &ah->dgid, wr->wr.ud.remote_qpn);
	if (!p)
		p = peer_add(wire, rail, &ah->dgid, wr->wr.ud.remote_qpn);
	if (p && !p->open && !p->called) {
		p->from = hca_qpn(qp);
		atomic_store(&wire->peers_new, true);
	}
	if (p && hca_stream_has_room(&p->stream, HCA_DATAGRAM_BYTES + bytes)) {
		put(qp, p, wr, bytes, piece, 1u + (unsigned)wr->num_sge);
		if (p->open)
			hca_stream_flush(&p->stream);
	}
	hca_unlock(&wire->peers_lock);
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

void hca_wire_peer_serve(struct hca_wire_peer *p)
{
	struct hca_stream *s = &p->stream;
	struct hca_wire *wire = p->wire;
	struct hca_frame f;
	int n, rc = 0;

	s->drained = false;
	do {
		while ((rc = whole_frame(s, &f)) > 0 && take(p, &f))
			;
		n = rc ? -EPROTO : hca_stream_fill(s);
	} while (n > 0);
	hca_lock(&wire->peers_lock);
	if (n != -EAGAIN)
		peer_free(p);
	else
		hca_stream_flush(s);
	hca_unlock(&wire->peers_lock);
}
