/*
 * qp_calls.c - which end of a queue pair's stream calls the other, what becomes of calls, and how long
 * requests wait for them.
 *
 * The end with the smaller address (GID, then number) calls the other once it is in RTR.  The
 * other's queue pair may not have got so far: its process then parks the stream, which has proven
 * itself, until the queue pair is connected.
 *
 * A stopped process is waited for at both ends.  So the end that waits for the other one (for its call, or
 * for its first frame) asks by a call of its own, which is over when the process there answers.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "softhca/base/gid.h"
#include "softhca/base/netif.h"
#include "softhca/link/wire/socket.h"
#include "softhca/link/wire/wire.h"
#include "softhca/object/fabric.h"
#include "util/clock.h"

enum {
	SOON_NS = 5000000,	/* between calls of a peer that has not got so far: at first ... */
	LATER_NS = 200000000,	/* ... and at last, while requests may wait */
	SILENT_CALLS = 12,	/* of HCA_MEET_PATIENCE_NS each, to a host that answers */
};
#define ASK_NS 1000000000ull		/* before a question of the end that waits, and between two */
#define SELDOM_NS 5000000000ull		/* between calls of an unreliable peer that is gone, at last */

/* ---- Calls --------------------------------------------------------------- */

/* The next call comes later than the last one did.  Nothing fails that would end calls of UC. */
void hca_wire_pause_calls(struct hca_wire_qp *w)
{
	const uint64_t most_ns = w->qp->reliable ? LATER_NS : SELDOM_NS;

	w->pause_ns = !w->pause_ns ? SOON_NS : w->pause_ns * 2;
	if (w->pause_ns > most_ns)
		w->pause_ns = most_ns;
	w->again_ns = rg_now_ns() + w->pause_ns;
	hca_wire_look_at(&w->wire->look_ns, w->again_ns);
}

bool hca_wire_this_end_calls(const struct hca_qp *qp)
{
	const union ibv_gid *mine = &qp->fabric->netif[qp->attr.port_num - 1].gid;
	int order = memcmp(mine, &qp->attr.ah_attr.grh.dgid, sizeof(*mine));

	return order ? order < 0 : hca_qpn(qp) < qp->attr.dest_qp_num;
}

/* A call from a port of this host to a queue pair number. */
int hca_wire_call(struct hca_wire *wire, unsigned rail, struct hca_hello *h, void *token)
{
	const struct hca_fabric *f = wire->fabric;
	struct sockaddr_storage to;

	h->rail = (uint8_t)rail;
	h->mtu = f->netif[rail].mtu;
	h->rails = (uint32_t)f->spec.ports;
	h->source = f->netif[rail].gid;
	memcpy(h->host, f->host, sizeof(h->host));
	hca_gid_address(&h->target, &to);
	return hca_meet_call(wire->meet, &to, h, token);
}

static void call(struct hca_wire_qp *w, enum hca_meet_kind kind)
{
	const struct hca_qp *qp = w->qp;
	struct hca_hello h = {
		.kind = (uint8_t)kind, .source_qpn = hca_qpn(qp), .target_qpn = qp->attr.dest_qp_num,
		.psn = qp->attr.rq_psn, .target = qp->attr.ah_attr.grh.dgid,
	};

	w->again_ns = 0;
	if (hca_wire_call(w->wire, qp->attr.port_num - 1u, &h, w)) {
		w->again_ns = rg_now_ns() + LATER_NS;
		hca_wire_look_at(&w->wire->look_ns, w->again_ns);
	}
}

void hca_wire_call_peer(struct hca_wire_qp *w)
{
	call(w, HCA_MEET_QP);
}

/* ---- Meetings ------------------------------------------------------------ */

static struct hca_qp *own_qp(struct hca_wire *wire, uint32_t qpn)
{
	struct hca_fabric *f = wire->fabric;
	uint32_t slot, index;
	struct hca_qp *qp;

	if (!f->link->number_owner(f, qpn, &slot, &index) || slot != f->slot)
		return NULL;
	qp = atomic_load(&f->qp[index]);
	return qp && hca_qpn(qp) == qpn ? qp : NULL;
}

enum hca_meet_answer hca_wire_find(void *arg, const struct hca_hello *h, uint16_t *at)
{
	struct hca_wire *wire = arg;
	struct hca_fabric *f = wire->fabric;
	uint32_t slot, index, port;

	if (!f->link->number_owner(f, h->target_qpn, &slot, &index))
		return HCA_MEET_UNKNOWN;
	if (slot == f->slot)
		return h->rail < f->spec.ports && h->mtu != f->netif[h->rail].mtu
			       ? HCA_MEET_OTHER_MTU : HCA_MEET_MINE;
	if (f->link->slot_fate(f, slot) != HCA_FATE_ALIVE)
		return HCA_MEET_UNKNOWN;	/* its slot and its number outlive it for a while */
	port = atomic_load(&f->shm->slot[slot].wire_port);
	if (port >> 16) {
		*at = (uint16_t)((port >> 16) - 1);
		return HCA_MEET_SHARED;
	}
	*at = (uint16_t)port;
	return port ? HCA_MEET_AT_PORT : HCA_MEET_UNKNOWN;
}

void hca_wire_arrived(void *arg, int fd, const struct hca_hello *h)
{
	struct hca_wire *wire = arg;
	struct hca_qp *qp;
	struct hca_wire_qp *w;

	if (h->kind == HCA_MEET_DATAGRAMS) {
		hca_wire_peer_opened(wire, fd, h);
		return;
	}
	qp = own_qp(wire, h->target_qpn);
	if (!qp || qp->datagram || h->kind == HCA_MEET_QUESTION) {
		hca_socket_close(fd);
		return;
	}
	hca_lock(&qp->lock);
	w = qp->wire;
	/* The other end has lost the stream of unreliable messages, and this one does not know yet. */
	if (w && w->state == HCA_WIRE_OPEN && !w->calls && !qp->reliable && hca_wire_is_for(h, qp))
		hca_wire_lost(w, 0);
	if (w && w->state == HCA_WIRE_EXPECTING && hca_wire_is_for(h, qp))
		hca_wire_open(w, fd, h->psn);
	else
		hca_wire_park(wire, fd, h);
	hca_unlock(&qp->lock);
}

/* Does the end wait for the other one? */
static bool asks(const struct hca_wire_qp *w)
{
	return w->qp->reliable && (w->state == HCA_WIRE_EXPECTING || w->state == HCA_WIRE_GREETING);
}

static void question_ends(struct hca_wire_qp *w, uint64_t pause_ns)
{
	w->asking = false;
	if (asks(w))
		w->again_ns = rg_now_ns() + pause_ns;
}

/* The queue pair has stopped meanwhile: the other end's is left, not lost. */
static void refuse_stream(int fd)
{
	const struct hca_frame f = { .kind = HCA_FRAME_ACK, .flags = HCA_FRAME_LAST };
	unsigned char bytes[HCA_FRAME_BYTES];

	hca_frame_write(bytes, &f);
	send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
	hca_socket_close(fd);
}

void hca_wire_reached(void *arg, void *token, int fd, const struct hca_hello *h)
{
	struct hca_wire_qp *w = token;

	(void)arg;
	if (*(enum hca_wire_source *)token == HCA_WIRE_PEER) {
		hca_wire_peer_reached(token, fd);
		return;
	}
	hca_lock(&w->qp->lock);
	if (h->kind == HCA_MEET_QUESTION) {
		hca_socket_close(fd);
		question_ends(w, ASK_NS);
	} else if (w->state == HCA_WIRE_CALLING) {
		hca_wire_open(w, fd, 0);
	} else {
		refuse_stream(fd);
	}
	hca_unlock(&w->qp->lock);
}

/* Will a later call have another answer? */
static bool may_change(int error)
{
	return error != EACCES && error != EPROTONOSUPPORT && error != EINVAL && error != EXDEV;
}

static void keep_why(struct hca_wire_qp *w, int error, const char *why)
{
	char text[HCA_WIRE_WHY_BYTES];

	free(w->why);
	w->why = strdup(hca_wire_why(w->wire, w->qp->attr.port_num - 1u, &w->qp->attr.ah_attr.grh.dgid, error, why,
				     text));
}

/* The host answers for a stopped process: requests wait for the next call, whatever their timeouts are. */
static void is_stopped(struct hca_wire_qp *w)
{
	const uint64_t until_ns = rg_now_ns() + LATER_NS + HCA_MEET_PATIENCE_NS + hca_wire_patience_ns(w->qp);

	if (w->silent_calls++ < SILENT_CALLS)
		w->deadline_ns = w->refused_one && w->deadline_ns ? until_ns : 0;
}

void hca_wire_call_refused(void *arg, void *token, int error, const char *why)
{
	struct hca_wire_qp *w = token;

	(void)arg;
	if (*(enum hca_wire_source *)token == HCA_WIRE_PEER) {
		hca_wire_peer_refused(token, error, why);
		return;
	}
	hca_lock(&w->qp->lock);
	if (asks(w)) {
		if (error == EBUSY) {
			keep_why(w, error, why);
			is_stopped(w);
		}
		question_ends(w, error == EBUSY ? LATER_NS : ASK_NS);
	} else if (w->state == HCA_WIRE_CALLING && may_change(error)) {
		keep_why(w, error, why);
		if (error == ETIMEDOUT)
			hca_wire_say_unconnected(w);
		if (error == EBUSY)
			is_stopped(w);
		hca_wire_pause_calls(w);
	} else if (w->state == HCA_WIRE_CALLING) {
		hca_wire_say_refused(w->wire, w->qp->attr.port_num - 1u, &w->qp->attr.ah_attr.grh.dgid, error,
				     why);
		hca_wire_give_up(w);
	}
	hca_unlock(&w->qp->lock);
}

/* ---- Requests that wait -------------------------------------------------- */

/* Is the peer stopped? */
static void ask(struct hca_wire_qp *w, uint64_t now)
{
	if (w->asking)
		return;
	if (!w->again_ns)
		w->again_ns = now + ASK_NS;
	if (!rg_reached(w->again_ns, now))
		return;
	call(w, HCA_MEET_QUESTION);
	w->asking = !w->again_ns;
}

void hca_wire_look_at_waiting(struct hca_wire_qp *w, uint64_t now)
{
	uint64_t patience = hca_wire_patience_ns(w->qp);

	if (!w->deadline_ns && patience)
		w->deadline_ns = now + patience;
	if (!w->deadline_ns)
		return;
	if (asks(w) && w->silent_calls < SILENT_CALLS)
		ask(w, now);
	if (!rg_reached(w->deadline_ns, now) || (asks(w) && w->asking))
		return;
	if (w->qp->reliable)
		hca_wire_say_unconnected(w);
	w->refused_one = false;
	w->qp->fabric->upcalls->resume(w->qp);	/* the next try fails */
}
