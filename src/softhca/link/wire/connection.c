/*
 * connection.c - the stream of a connected queue pair: made, lost, closed.
 *
 * A stream that has carried messages is never replaced: its loss is the loss of the peer.
 */
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "softhca/base/netif.h"
#include "softhca/link/wire/socket.h"
#include "softhca/link/wire/wire.h"
#include "softhca/object/fabric.h"
#include "softhca/object/query.h"
#include "util/clock.h"

enum {
	TIMER_NS = 20000000,	/* between two looks while something waits */
	KEEPALIVE_S = 2,	/* an idle connection shows its life so often (life.c) */
	ROOM = 1 << 19,		/* so much arrives without a pause for the kernel to announce room */
};
#define ALIVE_NS 1000000000ull		/* between two looks at an open connection */

/* ---- Closing ------------------------------------------------------------- */

void hca_wire_close(struct hca_wire_qp *w, enum hca_wire_state state)
{
	w->of_this_life = false;
	hca_wire_request_drop(w);
	w->answer_count = 0;
	w->refusal = 0;
	w->fault = 0;
	w->current = NULL;
	w->withdrawn = false;
	w->left = 0;
	w->asking = false;
	w->state = state;
	hca_wire_forgive(w);
	hca_wire_qp_unwatch(w);
	hca_stream_close(&w->stream);
	hca_wire_life_end(w);
}

/* ---- Opening ------------------------------------------------------------- */

/* A connection without traffic shows that the peer's host is alive, too. */
static void keep_alive(int fd)
{
	const int on = 1, idle = KEEPALIVE_S, between = 1, count = 127;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/* There will be no connection: requests that wait for one fail. */
void hca_wire_give_up(struct hca_wire_qp *w)
{
	w->state = HCA_WIRE_REFUSED;
	if (w->refused_one)
		w->qp->fabric->upcalls->resume(w->qp);
	w->refused_one = false;
}

/* Requests may leave, and messages come. */
static void opened(struct hca_wire_qp *w, uint32_t psn)
{
	w->state = HCA_WIRE_OPEN;
	w->peer_psn = psn;
	if (w->sends && !hca_wire_is_of_this_life(w))
		return;
	w->deadline_ns = w->pause_ns = 0;
	if (!w->refused_one)
		return;
	w->refused_one = false;
	w->qp->fabric->upcalls->resume(w->qp);
}

void hca_wire_open(struct hca_wire_qp *w, int fd, uint32_t psn)
{
	if (hca_stream_open(&w->stream, fd))
		hca_socket_close(fd);
	if (w->stream.fd < 0 || !hca_wire_watch(w->wire, fd, w)) {
		hca_say("queue pair %u: no memory for its connection", hca_qpn(w->qp));
		hca_stream_close(&w->stream);
		hca_wire_give_up(w);
		return;
	}
	keep_alive(fd);
	hca_socket_room(fd, ROOM);
	hca_wire_life_begin(w, rg_now_ns());
	hca_wire_activate(w);
	w->again_ns = 0;
	w->asking = false;
	hca_wire_look_at(&w->wire->look_ns, rg_now_ns() + ALIVE_NS);
	w->state = HCA_WIRE_GREETING;
	if (w->calls)
		return;
	hca_wire_greet(w);
	opened(w, psn);
}

void hca_wire_greeted(struct hca_wire_qp *w, const struct hca_frame *f)
{
	w->of_this_life = f->flags & HCA_FRAME_LAST;	/* a farewell at once */
	opened(w, f->imm);
}

/* Answers have room for the most that the queue pair can ever accept. */
static struct hca_wire_qp *wire_qp_new(struct hca_qp *qp)
{
	struct hca_wire *wire = qp->fabric->wire_state;
	struct hca_wire_qp *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->answer_room = qp->fabric->spec.reads ? qp->fabric->spec.reads : 1;
	w->answer = calloc(w->answer_room, sizeof(*w->answer));
	if (!w->answer) {
		free(w);
		return NULL;
	}
	w->source = HCA_WIRE_QP;
	w->qp = qp;
	w->wire = wire;
	w->stream.fd = w->life.ask_fd = -1;
	w->fate = HCA_FATE_ALIVE;
	w->next = wire->all;
	w->at = &wire->all;
	if (w->next)
		w->next->at = &w->next;
	wire->all = w;
	qp->wire = w;
	return w;
}

int hca_wire_connect(struct hca_qp *qp)
{
	struct hca_fabric *f = qp->fabric;
	struct hca_wire *wire = f->wire_state;
	struct hca_wire_qp *w;
	uint32_t psn = 0;
	int fd;

	if (qp->attr.dest_qp_num == hca_qpn(qp) && qp->conn.address != HCA_ADDRESS_REMOTE) {
		qp->link = f->link;	/* to itself: a stream would have one end too many */
		return 0;
	}
	w = wire_qp_new(qp);
	if (!w)
		return ENOMEM;
	w->calls = hca_wire_this_end_calls(qp);
	w->state = w->calls ? HCA_WIRE_CALLING : HCA_WIRE_EXPECTING;
	if (w->calls) {
		hca_wire_parked_drop(wire, qp);
		hca_wire_call_peer(w);
		return 0;
	}
	fd = hca_wire_parked_for(wire, qp, false, &psn);
	if (fd >= 0)
		hca_wire_open(w, fd, psn);
	return 0;
}

/* ---- The end ------------------------------------------------------------- */

/* Unreliable messages that have not left are lost, which is no error. */
static void end_lost(struct hca_wire_qp *w)
{
	struct hca_qp *qp = w->qp;

	if (qp->sq.under_way)
		qp->fabric->upcalls->ended(qp, qp->sq.under_way);
	if (w->refused_one)
		qp->fabric->upcalls->resume(qp);
	w->refused_one = false;
}

/* Messages are lost from here on. */
void hca_wire_begin_anew(struct hca_wire_qp *w)
{
	hca_wire_close(w, w->calls ? HCA_WIRE_CALLING : HCA_WIRE_EXPECTING);
	w->sequence = w->acked = w->expected = 0;
	w->discards = false;
	w->broken = 0;
	w->deadline_ns = rg_now_ns();
	if (w->calls)
		hca_wire_pause_calls(w);
	end_lost(w);
}

/* An error that no other line is about; ETIME: hca_wire_is_silent has said why. */
static bool is_kernels(int error)
{
	return error && error != -ECONNRESET && error != -EPIPE && error != -EPROTO && error != -ETIME;
}

/* The kernel resets the connection of a process that ends with unread bytes; so does a lost path (life.c). */
static enum hca_fate fate_by(int error)
{
	if (!error)
		return HCA_FATE_DEAD;
	return error == -ECONNRESET || error == -EPIPE ? HCA_FATE_RESET : HCA_FATE_ALIVE;
}

/* For good.  True: the queue pair fails by what the peer has asked; the refusal cannot leave any more. */
static bool close_with_fault(struct hca_wire_qp *w)
{
	const uint32_t fault = w->fault;

	hca_wire_close(w, HCA_WIRE_LEFT);
	if (fault)
		hca_qp_report(w->qp, fault);
	return fault;
}

static void lose_reliable(struct hca_wire_qp *w)
{
	const bool withdrawn = w->withdrawn && w->acked == w->current_sequence;
	const struct hca_link_upcalls *up = w->qp->fabric->upcalls;
	const bool told = close_with_fault(w);

	if (withdrawn)
		up->failed(w->qp, IBV_WC_LOC_PROT_ERR);
	else if (!told)
		up->lost(w->qp);
}

void hca_wire_lost(struct hca_wire_qp *w, int error)
{
	struct hca_qp *qp = w->qp;

	if (w->broken && w->broken != -EPIPE && error != -EPROTO)
		error = w->broken;	/* the first one; later reads find the end */
	if (hca_stream_is_taken(error)) {
		hca_wire_say_taken(w);
		hca_stream_forget(&w->stream);
	} else if (qp->reliable && is_kernels(error)) {
		hca_wire_say_failed(w, error);
	}
	w->fate = fate_by(error);
	if (w->state == HCA_WIRE_GREETING) {	/* parked too long, or of an earlier life */
		hca_wire_close(w, HCA_WIRE_CALLING);
		hca_wire_pause_calls(w);
		return;
	}
	if (hca_wire_is_of_any_life(w) && error != -EPROTO) {
		hca_wire_await_another(w);
		return;
	}
	if (error == -EPROTO)
		hca_say("%s: the peer of queue pair %u has sent bytes that no peer sends",
			qp->fabric->netif[qp->attr.port_num - 1].name, hca_qpn(qp));
	if (!qp->reliable && error != -EPROTO) {
		hca_wire_begin_anew(w);
		return;
	}
	if (!qp->reliable) {
		hca_wire_close(w, HCA_WIRE_LEFT);
		end_lost(w);
		return;
	}
	lose_reliable(w);
}

void hca_wire_lose_all(struct hca_wire *wire)
{
	struct hca_wire_qp *w, *next;

	for (w = wire->all; w; w = next) {
		struct hca_qp *qp = w->qp;

		next = w->next;
		hca_lock(&qp->lock);
		if (w->state == HCA_WIRE_OPEN || w->state == HCA_WIRE_GREETING)
			hca_wire_lost(w, -EBADF);
		hca_unlock(&qp->lock);
	}
}

enum hca_fate hca_wire_stream_fate(struct hca_wire *wire, uint32_t port, const union ibv_gid *gid,
				   uint32_t qpn)
{
	enum hca_fate fate = HCA_FATE_ALIVE;
	struct hca_wire_qp *w;

	hca_lock(&wire->fabric->life);
	for (w = wire->all; w && fate == HCA_FATE_ALIVE; w = w->next)
		if (w->qp->reliable && w->qp->attr.port_num == port && w->qp->attr.dest_qp_num == qpn &&
		    memcmp(&w->qp->attr.ah_attr.grh.dgid, gid, sizeof(*gid)) == 0)
			fate = w->fate;
	hca_unlock(&wire->fabric->life);
	return fate;
}

void hca_wire_left(struct hca_wire_qp *w)
{
	if (hca_wire_is_of_any_life(w)) {
		hca_wire_await_another(w);
		return;
	}
	close_with_fault(w);
	if (!w->qp->reliable)
		end_lost(w);
	else if (w->qp->sq.under_way)
		w->qp->fabric->upcalls->rewound(w->qp, HCA_NO_PEER);
}

void hca_wire_qp_stop(struct hca_qp *qp)
{
	struct hca_wire_qp *w = qp->wire;

	if (!w)
		return;
	if (hca_qp_state(qp) == IBV_QPS_SQE) {
		w->current = NULL;	/* the receive side goes on */
		return;
	}
	if (w->state == HCA_WIRE_OPEN || w->state == HCA_WIRE_GREETING)
		hca_wire_farewell(w);
	hca_wire_close(w, HCA_WIRE_CLOSED);
}

void hca_wire_qp_reset(struct hca_qp *qp)
{
	struct hca_wire_qp *w = qp->wire;

	if (!w)
		return;
	if (w->state == HCA_WIRE_OPEN || w->state == HCA_WIRE_GREETING)
		hca_wire_farewell(w);
	hca_wire_close(w, HCA_WIRE_CLOSED);
	hca_meet_cancel(w->wire->meet, w);
	hca_wire_deactivate(w);
	*w->at = w->next;
	if (w->next)
		w->next->at = w->at;
	qp->wire = NULL;
	free(w->answer);
	free(w->why);
	free(w);
}

void hca_wire_qp_free(struct hca_qp *qp)
{
	hca_wire_qp_reset(qp);
}

/* ---- Timers -------------------------------------------------------------- */

/* Looks at a queue pair; returns when to look again. */
static uint64_t look_at(struct hca_wire_qp *w, uint64_t now, bool at_life)
{
	switch (w->state) {
	case HCA_WIRE_CALLING:
		if (w->again_ns && rg_reached(w->again_ns, now))
			hca_wire_call_peer(w);
		if (w->refused_one)
			hca_wire_look_at_waiting(w, now);
		return w->refused_one ? now + TIMER_NS : w->again_ns ? w->again_ns : UINT64_MAX;
	case HCA_WIRE_EXPECTING:
	case HCA_WIRE_GREETING:
		if (w->refused_one)
			hca_wire_look_at_waiting(w, now);
		return w->refused_one ? now + TIMER_NS : UINT64_MAX;
	case HCA_WIRE_OPEN:
		if (at_life && hca_wire_is_silent(w, now))
			hca_wire_lost(w, -ETIME);
		return now + ALIVE_NS;
	default:
		return UINT64_MAX;
	}
}

void hca_wire_look(struct hca_wire *wire, uint64_t now)
{
	bool at_life = now - wire->life_ns >= ALIVE_NS;
	struct hca_wire_qp *w, *next;
	uint64_t again = UINT64_MAX;

	if (at_life)
		wire->life_ns = now;
	atomic_store(&wire->look_ns, UINT64_MAX);	/* a thread that posts may want one earlier */
	for (w = wire->all; w; w = next) {
		struct hca_qp *qp = w->qp;
		uint64_t at;

		next = w->next;
		hca_lock(&qp->lock);
		at = look_at(w, now, at_life);
		hca_unlock(&qp->lock);
		if (at < again)
			again = at;
	}
	if (wire->parked) {
		hca_wire_parked_expire(wire, now);
		if (again > now + ALIVE_NS)
			again = now + ALIVE_NS;
	}
	hca_wire_look_at(&wire->look_ns, again);
}
