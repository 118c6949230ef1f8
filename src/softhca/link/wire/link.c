/* link.c - the wire's side of the contract (object/link.h). */
#include "softhca/link/wire/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "softhca/base/fd.h"
#include "softhca/link/wire/ports.h"
#include "softhca/link/wire/secret.h"
#include "softhca/link/wire/socket.h"
#include "softhca/base/netif.h"
#include "softhca/link/wire/wire.h"
#include "softhca/object/fabric.h"
#include "softhca/object/net.h"
#include "softhca/object/query.h"
#include "util/clock.h"

enum {
	EVENTS = 64,		/* served in a pass */
	DATAGRAM_PASSES = 4096,	/* epoll is asked in each so long after a datagram */
	EPOLL_PASSES = 16,	/* epoll is asked in every such pass while few streams are active */
	TOLD = 16,		/* events of a stream that passes read, before it leaves the epoll set */
};

/* ---- Waiting ------------------------------------------------------------- */

static int control(struct hca_wire *wire, int operation, int fd, void *source)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				 .data.ptr = source };

	return epoll_ctl(wire->epoll, operation, fd, &e);
}

bool hca_wire_watch(struct hca_wire *wire, int fd, void *source)
{
	return !control(wire, EPOLL_CTL_ADD, fd, source);
}

void hca_wire_watch_again(struct hca_wire *wire, int fd, void *source)
{
	control(wire, EPOLL_CTL_MOD, fd, source);
}

void hca_wire_unwatch(struct hca_wire *wire, const struct hca_stream *s)
{
	if (s->fd >= 0)
		control(wire, EPOLL_CTL_DEL, s->fd, NULL);
}

/*
 * A stream that passes read is not in the epoll set, which would run its call-back for each packet that
 * arrives.  It returns before a thread sleeps, and when passes leave it to epoll.
 */
static void leave_set(struct hca_wire_qp *w)
{
	struct hca_wire *wire = w->wire;

	hca_lock(&wire->active_lock);
	if (!wire->sleepers && !w->unwatched && w->state == HCA_WIRE_OPEN) {
		hca_wire_unwatch(wire, &w->stream);
		w->unwatched = true;
		w->next_unwatched = wire->unwatched;
		w->unwatched_at = &wire->unwatched;
		if (w->next_unwatched)
			w->next_unwatched->unwatched_at = &w->next_unwatched;
		wire->unwatched = w;
	}
	w->told = 0;
	hca_unlock(&wire->active_lock);
}

static void unlink_unwatched(struct hca_wire_qp *w)
{
	*w->unwatched_at = w->next_unwatched;
	if (w->next_unwatched)
		w->next_unwatched->unwatched_at = w->unwatched_at;
	w->unwatched = false;
}

void hca_wire_qp_watch_again(struct hca_wire_qp *w)
{
	unlink_unwatched(w);
	if (!hca_wire_watch(w->wire, w->stream.fd, w))
		hca_say("queue pair %u: no memory to wait for its connection", hca_qpn(w->qp));
}

void hca_wire_qp_unwatch(struct hca_wire_qp *w)
{
	hca_lock(&w->wire->active_lock);
	if (w->unwatched)
		unlink_unwatched(w);
	else
		hca_wire_unwatch(w->wire, &w->stream);
	hca_unlock(&w->wire->active_lock);
}

static void sleep_begins(struct hca_fabric *f)
{
	struct hca_wire *wire = f->wire_state;

	hca_lock(&wire->active_lock);
	wire->sleepers++;
	while (wire->unwatched)
		hca_wire_qp_watch_again(wire->unwatched);
	hca_unlock(&wire->active_lock);
}

static void sleep_ends(struct hca_fabric *f)
{
	struct hca_wire *wire = f->wire_state;

	hca_lock(&wire->active_lock);
	wire->sleepers--;
	hca_unlock(&wire->active_lock);
}

void hca_wire_look_at(_Atomic uint64_t *look_ns, uint64_t at_ns)
{
	uint64_t before = atomic_load(look_ns);

	while (at_ns < before && !atomic_compare_exchange_weak(look_ns, &before, at_ns))
		;
}

/* ---- A pass -------------------------------------------------------------- */

/* direct: this pass has served all that are active.  qp->lock held. */
static void qp_event(struct hca_wire_qp *w, uint32_t events, bool direct)
{
	w->stream.drained = false;
	w->stream.ended |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (direct && w->active && !w->stream.ended) {
		w->unread = true;	/* perhaps: the next pass looks */
		if (++w->told >= TOLD)
			leave_set(w);
		return;
	}
	hca_wire_serve(w);
	if (w->state == HCA_WIRE_OPEN)
		hca_wire_activate(w);
}

static void serve_event(struct hca_wire *wire, const struct epoll_event *e, bool direct)
{
	struct hca_wire_qp *w = e->data.ptr;

	switch (*(enum hca_wire_source *)e->data.ptr) {
	case HCA_WIRE_MEETINGS:
		hca_meet_progress(wire->meet);
		return;
	case HCA_WIRE_PORTS:
		hca_net_changed(wire->fabric);
		return;
	case HCA_WIRE_PEER:
		hca_wire_peer_serve(e->data.ptr);
		return;
	case HCA_WIRE_GONE:
		return;
	case HCA_WIRE_QP:
		hca_lock(&w->qp->lock);
		qp_event(w, e->events, direct);
		hca_unlock(&w->qp->lock);
	}
}

static void serve_events(struct hca_wire *wire, bool direct)
{
	struct epoll_event e[EVENTS];
	int i, n = epoll_wait(wire->epoll, e, EVENTS, 0);

	if (unlikely(n < 0) && (errno == EBADF || errno == EINVAL) && wire->epoll >= 0) {
		hca_socket_forget(wire->epoll);
		wire->epoll = -1;
		hca_wire_lose_all(wire);
	}
	for (i = 0; i < n; i++)
		serve_event(wire, &e[i], direct);
}

/* Are datagrams on their way, perhaps? */
static bool hears_datagrams(const struct hca_wire *wire)
{
	uint64_t busy = atomic_load_explicit(&wire->peers.busy, memory_order_relaxed);

	return atomic_load_explicit(&wire->peers.count, memory_order_relaxed) &&
	       hca_wire_pass(wire) - busy < DATAGRAM_PASSES;
}

static uint64_t progress(struct hca_fabric *f)
{
	struct hca_wire *wire = f->wire_state;
	bool direct;
	uint64_t passes, now;

	passes = hca_wire_pass(wire) + 1;
	atomic_store_explicit(&wire->passes, passes, memory_order_relaxed);
	direct = hca_wire_serve_active(wire);
	if (!direct || !wire->active || hears_datagrams(wire) || passes % EPOLL_PASSES == 0)
		serve_events(wire, direct);
	now = rg_now_ns();
	if (atomic_load_explicit(&wire->peers.look_ns, memory_order_relaxed) <= now)
		hca_wire_peers_look(wire, now);
	if (hca_meet_next_ns(wire->meet) <= now)
		hca_meet_progress(wire->meet);
	if (atomic_load_explicit(&wire->look_ns, memory_order_relaxed) <= now)
		hca_wire_look(wire, now);
	hca_wire_peers_sweep(wire);
	return now;
}

static int wait_fd(struct hca_fabric *f)
{
	return f->wire_state->epoll;
}

static bool has_unread(struct hca_wire *wire)
{
	struct hca_wire_qp *w;
	bool found = false;

	hca_lock(&wire->active_lock);
	for (w = wire->active; w && !found; w = w->next_active)
		found = w->unread;
	hca_unlock(&wire->active_lock);
	return found;
}

static uint64_t next_ns(struct hca_fabric *f)
{
	struct hca_wire *wire = f->wire_state;
	uint64_t next = hca_meet_next_ns(wire->meet), look = atomic_load(&wire->look_ns),
		 peers = atomic_load(&wire->peers.look_ns);

	if (atomic_load(&wire->owed) || has_unread(wire))
		return 0;
	if (look < next)
		next = look;
	return peers < next ? peers : next;
}

/* ---- What has no queue pair ---------------------------------------------- */

static void look_nothing(struct hca_fabric *f)
{
	(void)f;
}

static bool quiesce(struct hca_fabric *f, struct hca_qp *only)
{
	(void)only;
	hca_landings_quiesce(f);
	return true;
}

static bool peer_in_access_section(struct hca_qp *qp)
{
	return qp->wire && qp->wire->request.receive.claimed;
}

static void mr_published(struct hca_fabric *f, const struct hca_mr *mr)
{
	(void)f;
	(void)mr;
}

static void mr_withdrawn(struct hca_fabric *f)
{
	hca_landings_quiesce(f);
}

static int qp_make(struct hca_qp *qp)
{
	(void)qp;
	return 0;
}

static bool peer_lost(struct hca_qp *qp)
{
	(void)qp;
	return false;			/* its stream tells (hca_link_upcalls.lost) */
}

static uint32_t rnr_timer(const struct hca_qp *qp)
{
	return qp->wire ? qp->wire->rnr_timer : 0;
}

static void transfer_drop(struct hca_qp *qp)
{
	(void)qp;
}

const struct hca_link_operations hca_wire_link = {
	.look = look_nothing,
	.quiesce = quiesce,
	.peer_in_access_section = peer_in_access_section,
	.mr_published = mr_published,
	.mr_withdrawn = mr_withdrawn,
	.qp_make = qp_make,
	.qp_free = hca_wire_qp_free,
	.qp_connect = hca_wire_connect,
	.qp_sends = hca_wire_qp_sends,
	.qp_stop = hca_wire_qp_stop,
	.qp_reset = hca_wire_qp_reset,
	.peer_lost = peer_lost,
	.rnr_timer = rnr_timer,
	.transfer_whole = hca_wire_transfer,
	.transfer_drop = transfer_drop,
	.datagram_fate = hca_wire_datagram_fate,
	.hears_peer = hca_wire_hears_peer,
	.progress = progress,
	.wait_fd = wait_fd,
	.sleep_begins = sleep_begins,
	.sleep_ends = sleep_ends,
	.next_ns = next_ns,
};

/* ---- Life ---------------------------------------------------------------- */

static int get_always(bool *always)
{
	const char *text = getenv("SOFTHCA_LINK");

	*always = text && strcmp(text, "tcp") == 0;
	if (!text || !*text || *always || strcmp(text, "auto") == 0)
		return 0;
	return hca_fail(EINVAL, "SOFTHCA_LINK: '%.40s' (accepted: auto, tcp)", text);
}

static int open_meetings(struct hca_wire *wire, const char *secret_hex)
{
	struct hca_fabric *f = wire->fabric;
	struct hca_meet_config c = {
		.fabric = f->name, .rails = (unsigned)f->spec.ports, .arg = wire,
		.find = hca_wire_find, .arrived = hca_wire_arrived, .reached = hca_wire_reached,
		.refused = hca_wire_call_refused,
	};
	struct sockaddr_storage local[HCA_PORTS_MAX];
	const char *interface[HCA_PORTS_MAX];
	unsigned i;
	int rc;

	for (i = 0; i < c.rails; i++) {
		local[i] = f->netif[i].address;
		interface[i] = f->netif[i].name;
	}
	c.local = local;
	c.interface = interface;
	rc = hca_secret_load(secret_hex, c.secret);
	if (!rc)
		rc = hca_ports_parse(getenv("SOFTHCA_PORTS"), &c.port_first, &c.port_last);
	wire->port_first = c.port_first;
	wire->port_last = c.port_last;
	if (!rc)
		rc = hca_meet_open(&wire->meet, &c);
	explicit_bzero(c.secret, sizeof(c.secret));
	return rc;
}

static int watch(struct hca_wire *wire, int fd, enum hca_wire_source *source)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(wire->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int watch_all(struct hca_wire *wire)
{
	wire->epoll = hca_socket_raise(epoll_create1(EPOLL_CLOEXEC));
	if (wire->epoll < 0 || watch(wire, hca_meet_fd(wire->meet), &wire->meetings) ||
	    watch(wire, wire->fabric->net_fd, &wire->ports))
		return hca_fail(errno, "epoll: %s", strerror(errno));
	return 0;
}

int hca_wire_start(struct hca_fabric *f, const char *secret_hex)
{
	struct hca_wire *wire = calloc(1, sizeof(*wire));
	int rc;

	if (!wire)
		return hca_fail(ENOMEM, "no memory");
	wire->meetings = HCA_WIRE_MEETINGS;
	wire->ports = HCA_WIRE_PORTS;
	wire->fabric = f;
	wire->of_job = secret_hex != NULL;
	wire->epoll = -1;
	atomic_store(&wire->look_ns, UINT64_MAX);
	atomic_store(&wire->peers.look_ns, UINT64_MAX);
	rc = get_always(&f->wire_always);
	if (!rc)
		rc = open_meetings(wire, secret_hex);
	if (!rc)
		rc = watch_all(wire);
	f->wire_state = wire;
	if (rc) {
		hca_wire_stop(f);
		return rc;
	}
	atomic_store(&f->shm->slot[f->slot].wire_port,
		     hca_meet_port(wire->meet) | (uint32_t)(hca_meet_shared(wire->meet) + 1) << 16);
	f->wire = &hca_wire_link;
	return 0;
}

static void close_descriptors(struct hca_wire *wire)
{
	hca_wire_parked_free(wire);
	hca_wire_peers_free(wire);
	if (wire->meet)
		hca_meet_close(wire->meet);
	if (wire->epoll >= 0)
		hca_socket_close(wire->epoll);
	wire->meet = NULL;
	wire->epoll = -1;
}

void hca_wire_stop(struct hca_fabric *f)
{
	if (!f->wire_state)
		return;
	if (f->wire)
		atomic_store(&f->shm->slot[f->slot].wire_port, 0);
	close_descriptors(f->wire_state);
	free(f->wire_state);
	f->wire_state = NULL;
	f->wire = NULL;
}

void hca_wire_forget(void)
{
	hca_sockets_close_in_child();
}
