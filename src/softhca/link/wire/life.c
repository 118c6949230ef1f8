/*
 * life.c - does the host of a peer answer?
 *
 * A kernel acknowledges for its processes, also for stopped ones: only silence of the kernel ends a
 * connection.  TCP_USER_TIMEOUT would also end one whose peer has stopped with a full window.  With a
 * full window, and after losses, the kernel asks less and less often.  So a host that has been silent
 * for the verbs' timeouts, 5 s at least, is asked by a connection of its own: any answer, a refusal
 * too, proves it alive.  Where a host answers, packets are sent once more and it answers again without
 * an acknowledgement of them, the path does not pass their length; while a cable was out, packets were
 * lost as well, and the next ones may be due after many seconds.
 */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "softhca/base/gid.h"
#include "softhca/base/rtnetlink.h"
#include "softhca/link/wire/socket.h"
#include "softhca/link/wire/wire.h"
#include "softhca/object/fabric.h"
#include "util/clock.h"

#define PATIENCE_NS 5000000000ull	/* TCP needs so long to overcome losses */
#define UNRELIABLE_NS 1000000000ull	/* then messages without a connection are lost */
#define QUESTION_NS 2000000000ull	/* for an answer, with one repetition by the kernel */
/* Keepalive asks after two seconds, a look follows within one. */
#define HEARD_NS 4000000000ull
#define LOSSY_NS 1000000000ull		/* after losses, the first question */
#define MSEC_NS 1000000ull
#define SEC_NS 1000000000ull
enum { SHORT_BYTES = 512 };	/* payload of a packet that every path passes */

uint64_t hca_wire_patience_ns(const struct hca_qp *qp)
{
	uint64_t ns;

	if (!qp->reliable)
		return UNRELIABLE_NS;
	if (!qp->attr.timeout)
		return 0;
	ns = (4096ull << qp->attr.timeout) * (qp->attr.retry_cnt + 1u);
	return ns > PATIENCE_NS ? ns : PATIENCE_NS;
}

/* ---- Lines --------------------------------------------------------------- */

static unsigned rail_of(const struct hca_wire_qp *w)
{
	return w->qp->attr.port_num - 1u;
}

static const struct hca_netif *netif_of(const struct hca_wire_qp *w)
{
	return &w->qp->fabric->netif[rail_of(w)];
}

static const union ibv_gid *host_of(const struct hca_wire_qp *w)
{
	return &w->qp->attr.ah_attr.grh.dgid;
}

void hca_wire_say_unconnected(struct hca_wire_qp *w)
{
	const struct hca_wire *wire = w->wire;
	const char *turned = w->calls ? NULL : hca_meet_turned_away(wire->meet, rail_of(w), host_of(w)->raw);
	char host[INET6_ADDRSTRLEN];

	if (w->why)
		hca_wire_say(w->wire, rail_of(w), host_of(w), HCA_WIRE_UNCONNECTED, "%s", w->why);
	else if (turned)
		hca_wire_say(w->wire, rail_of(w), host_of(w), HCA_WIRE_UNCONNECTED, "the process that calls from host %s has %s",
			     hca_gid_format(host_of(w), host, sizeof(host)), turned);
	else
		hca_wire_say(w->wire, rail_of(w), host_of(w), HCA_WIRE_UNCONNECTED,
			     "no connection %s host %s, which would %s TCP ports %u to %u: is its "
			     "process there, or does a firewall drop these ports (SOFTHCA_PORTS)?",
			     w->calls ? "to" : "from",
			     hca_gid_format(host_of(w), host, sizeof(host)),
			     w->calls ? "listen on" : "call", wire->port_first, wire->port_last);
}

/* A packet of a socket that is bound to an interface leaves without a route, and gets no answer. */
const char *hca_wire_why(const struct hca_wire *wire, unsigned rail, const union ibv_gid *host, int error,
			 const char *why, char text[HCA_WIRE_WHY_BYTES])
{
	const struct hca_netif *local = &wire->fabric->netif[rail];
	const int rc = error == ETIMEDOUT ? hca_rtnetlink_route(&local->gid, host, local->index) : 0;
	char address[INET6_ADDRSTRLEN];

	if (rc)
		snprintf(text, HCA_WIRE_WHY_BYTES, "%s: %s over this interface", hca_gid_format(host, address,
			 sizeof(address)), strerror(-rc));
	else
		snprintf(text, HCA_WIRE_WHY_BYTES, "%s%s", why, error != ECONNREFUSED ? "" :
			 ": it has ended, or a firewall rejects these TCP ports (SOFTHCA_PORTS)");
	return text;
}

void hca_wire_say_refused(struct hca_wire *wire, unsigned rail, const union ibv_gid *gid, int error,
			  const char *why)
{
	char host[INET6_ADDRSTRLEN];

	if (error == EXDEV)
		hca_wire_say(wire, rail, gid, HCA_WIRE_UNCONNECTED, HCA_SOCKET_ASTRAY,
			     hca_gid_format(gid, host, sizeof(host)));
	else
		hca_wire_say(wire, rail, gid, HCA_WIRE_UNCONNECTED, "%s", why);
}

void hca_wire_say_taken(struct hca_wire_qp *w)
{
	char host[INET6_ADDRSTRLEN];

	hca_wire_say(w->wire, rail_of(w), host_of(w), HCA_WIRE_TAKEN,
		     "this program has closed the descriptor of the connection to host %s "
		     "(accepted: it closes those that it has opened)",
		     hca_gid_format(host_of(w), host, sizeof(host)));
}

void hca_wire_say_failed(struct hca_wire_qp *w, int error)
{
	char host[INET6_ADDRSTRLEN];

	hca_wire_say(w->wire, rail_of(w), host_of(w), HCA_WIRE_SILENT, "the connection to host %s has failed: %s",
		     hca_gid_format(host_of(w), host, sizeof(host)), strerror(-error));
}

static void say_silent(struct hca_wire_qp *w, uint64_t silence_ns)
{
	const char *here = hca_netif_trouble(netif_of(w));
	char host[INET6_ADDRSTRLEN];

	hca_wire_say(w->wire, rail_of(w), host_of(w), HCA_WIRE_SILENT,
		     "host %s has not answered for %u s (%s)",
		     hca_gid_format(host_of(w), host, sizeof(host)), (unsigned)(silence_ns / SEC_NS),
		     here ? here : "its interface, a cable, a firewall, or the host");
}

/* Have packets left that no path is too narrow for, and no others? */
static bool all_are_short(const struct hca_wire_qp *w, const struct tcp_info *info)
{
	int queued = 0, unsent = 0;

	if (ioctl(w->stream.fd, SIOCOUTQ, &queued) || ioctl(w->stream.fd, SIOCOUTQNSD, &unsent))
		return false;
	return (uint64_t)(queued - unsent) <= (uint64_t)SHORT_BYTES * info->tcpi_unacked;
}

static void say_forgotten(struct hca_wire_qp *w, uint64_t silence_ns)
{
	char host[INET6_ADDRSTRLEN];

	hca_wire_say(w->wire, rail_of(w), host_of(w), HCA_WIRE_FORGOTTEN,
		     "host %s answers, but packets of this connection have not reached it for %u s: "
		     "a firewall has forgotten it (accepted: one that lets established connections pass)",
		     hca_gid_format(host_of(w), host, sizeof(host)), (unsigned)(silence_ns / SEC_NS));
}

void hca_wire_say_too_long(struct hca_wire *wire, unsigned rail, const union ibv_gid *gid, uint64_t silence_ns)
{
	char host[INET6_ADDRSTRLEN];

	hca_wire_say(wire, rail, gid, HCA_WIRE_TOO_LONG,
		     "host %s answers, but long packets have not reached it for %u s: the path does "
		     "not pass the MTU of %u, or a firewall has forgotten this connection (accepted: "
		     "at both ends the smallest MTU of the path)",
		     hca_gid_format(gid, host, sizeof(host)), (unsigned)(silence_ns / SEC_NS),
		     wire->fabric->netif[rail].mtu);
}

/* ---- Questions ----------------------------------------------------------- */

static void question_close(struct hca_wire_qp *w)
{
	if (w->life.ask_fd >= 0)
		hca_socket_close(w->life.ask_fd);
	w->life.ask_fd = -1;
}

static void ask_no_more(struct hca_wire_qp *w)
{
	question_close(w);
	w->life.asked_ns = 0;
}

/* A port of the range: firewalls let it pass. */
static void ask(struct hca_wire_qp *w, uint64_t now_ns)
{
	const struct hca_netif *local = netif_of(w);
	struct sockaddr_storage to;
	int rc;

	hca_gid_address(host_of(w), &to);
	hca_address_scope_set(&to, &local->address);
	hca_address_port_set(&to, w->wire->port_first);
	rc = hca_socket_connect(&to, &local->address,
				hca_address_is_local(&to) ? 0 : local->index, &w->life.ask_fd);
	/* Without a descriptor there is no question, which the next look asks. */
	w->life.asked_ns = rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOBUFS ? 0 : now_ns;
	if (rc == -ECONNREFUSED)
		w->life.alive_ns = now_ns;
}

static bool is_answered(struct hca_wire_qp *w)
{
	struct pollfd p = { .fd = w->life.ask_fd, .events = POLLOUT };
	int error = 0;
	socklen_t size = sizeof(error);

	if (w->life.ask_fd < 0 || poll(&p, 1, 0) != 1)
		return false;
	getsockopt(w->life.ask_fd, SOL_SOCKET, SO_ERROR, &error, &size);
	question_close(w);		/* an error is told once */
	return !error || error == ECONNREFUSED || error == ECONNRESET;
}

/* ---- A look -------------------------------------------------------------- */

void hca_wire_life_begin(struct hca_wire_qp *w, uint64_t now_ns)
{
	w->life = (struct hca_wire_life){ .acked_ns = now_ns, .alive_ns = now_ns, .ask_fd = -1 };
	atomic_store_explicit(&w->heard_ns, now_ns, memory_order_relaxed);
}

void hca_wire_life_end(struct hca_wire_qp *w)
{
	ask_no_more(w);
	atomic_store_explicit(&w->heard_ns, 0, memory_order_relaxed);
}

bool hca_wire_hears_peer(const struct hca_qp *qp)
{
	const uint64_t heard_ns = qp->wire ? atomic_load_explicit(&qp->wire->heard_ns, memory_order_relaxed) : 0;

	return heard_ns && !rg_reached(heard_ns + HEARD_NS, rg_now_ns());
}

static bool works(const struct hca_wire_qp *w)
{
	return w->qp->sq.under_way || w->current;
}

/* Since when has the peer's kernel acknowledged nothing that it should have? */
static uint64_t silent_since(struct hca_wire_qp *w, const struct tcp_info *info, bool lossy,
			     uint64_t now_ns)
{
	struct hca_wire_life *life = &w->life;
	uint64_t since;

	if (life->acked != info->tcpi_bytes_acked || !info->tcpi_unacked) {
		life->acked = info->tcpi_bytes_acked;
		life->acked_ns = now_ns;
	}
	life->works_ns = !works(w) ? 0 : life->works_ns ? life->works_ns : now_ns;
	since = lossy ? life->acked_ns : now_ns - info->tcpi_last_ack_recv * MSEC_NS;
	if (since < life->works_ns)
		since = life->works_ns;
	/* An answer by another connection says nothing of packets that are lost on this one. */
	return lossy || since > life->alive_ns ? since : life->alive_ns;
}

/* True: packets were sent again in vain between two answers: the path passes no long packets. */
static bool hear(struct hca_wire_qp *w, const struct tcp_info *info)
{
	struct hca_wire_life *life = &w->life;

	if (!life->heard)
		life->resent = info->tcpi_total_retrans;
	life->heard = true;
	return life->vain;
}

/* A question that was asked before the packets says nothing of them. */
static void look_at_resent(struct hca_wire_qp *w, const struct tcp_info *info)
{
	struct hca_wire_life *life = &w->life;

	if (!life->heard || life->vain || info->tcpi_total_retrans == life->resent)
		return;
	life->vain = true;
	ask_no_more(w);
}

/* The silence lasts: a question decides.  True: lost, if the silence is overdue. */
static bool judge(struct hca_wire_qp *w, const struct tcp_info *info, bool lossy, uint64_t silence_ns,
		  bool overdue, uint64_t now_ns)
{
	struct hca_wire_life *life = &w->life;

	if (lossy)
		look_at_resent(w, info);
	if (!life->asked_ns)
		ask(w, now_ns);
	else if (is_answered(w))
		life->alive_ns = now_ns;
	if (!life->asked_ns)
		return false;
	if (life->alive_ns >= life->asked_ns) {
		ask_no_more(w);
		if (!lossy || !hear(w, info) || !overdue)
			return false;
		if (all_are_short(w, info))
			say_forgotten(w, silence_ns);
		else
			hca_wire_say_too_long(w->wire, rail_of(w), host_of(w), silence_ns);
		return true;
	}
	if (now_ns - life->asked_ns < QUESTION_NS)
		return false;
	if (!overdue || !works(w) || !hca_wire_patience_ns(w->qp)) {
		ask_no_more(w);		/* and later once more */
		return false;
	}
	say_silent(w, silence_ns);
	return true;
}

/* Also for requests that wait for ever, a path that does not pass their packets is no path. */
static bool is_overdue(const struct hca_wire_qp *w, bool lossy, uint64_t silence_ns)
{
	uint64_t patience_ns = works(w) ? hca_wire_patience_ns(w->qp) : 0;

	if (!patience_ns && !lossy)
		return false;
	return silence_ns >= hca_later(patience_ns, PATIENCE_NS);
}

bool hca_wire_is_silent(struct hca_wire_qp *w, uint64_t now_ns)
{
	const struct linger dropped = { .l_onoff = 1 };
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	uint64_t since_ns, silence_ns;
	bool lossy, overdue;

	if (getsockopt(w->stream.fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		return false;
	atomic_store_explicit(&w->heard_ns, now_ns - info.tcpi_last_ack_recv * MSEC_NS, memory_order_relaxed);
	lossy = info.tcpi_unacked && info.tcpi_retransmits;
	since_ns = silent_since(w, &info, lossy, now_ns);
	silence_ns = since_ns < now_ns ? now_ns - since_ns : 0;
	overdue = is_overdue(w, lossy, silence_ns);
	if (!overdue && !(lossy && silence_ns >= LOSSY_NS)) {
		ask_no_more(w);
		w->life.heard = w->life.vain = false;
		return false;
	}
	if (!judge(w, &info, lossy, silence_ns, overdue, now_ns))
		return false;
	/* A FIN would follow the bytes that do not pass. */
	setsockopt(w->stream.fd, SOL_SOCKET, SO_LINGER, &dropped, sizeof(dropped));
	return true;
}
