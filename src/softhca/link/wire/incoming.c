/*
 * incoming.c - connections that others opened, up to their proof.
 *
 * Each costs a descriptor and some hundred bytes, for HCA_MEET_PATIENCE_NS at most.  Beyond
 * HCA_MEET_UNPROVEN_MAX the oldest goes, after GRACE_NS, in which a process that knows the secret has
 * proven it; until then further ones stay in the listener's queue.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "softhca/base/fd.h"
#include "softhca/link/wire/meet_state.h"

enum {
	DISCARD_MAX = 4096,		/* bytes read and dropped after a refusal */
};
#define PAUSE_NS 100000000u		/* without a descriptor */
#define GRACE_NS 250000000u
#define CROSSED_NS 1000000000u	/* for a proof that follows an answer over the rail's interface */

static const char other_secret[] = "another secret (accepted: one SOFTHCA_SECRET_FILE at both ends)";
static const char no_proof[] = "another secret, or has ended before its proof (accepted: one SOFTHCA_SECRET_FILE at "
	"both ends)";

enum incoming_state {
	INCOMING_HELLO,
	INCOMING_PROOF,
	INCOMING_LEAVES,		/* refused: a close now might lose the refusal */
};

struct hca_incoming {
	struct hca_watch watch;
	struct hca_incoming *next, **at;
	struct hca_rail *rail;
	bool away;			/* its other end is on another host, and is answered over the rail */
	unsigned times;			/* that it has changed hands (recipient.c) */
	unsigned through;		/* another interface than the rail's, on which it arrived; 0 */
	bool crossed;			/* it is told so */
	uint64_t due_ns;
	enum incoming_state state;
	size_t have;			/* bytes of the message that this state expects */
	struct hca_hello h;
	unsigned char hello[HCA_HELLO_BYTES], reply[HCA_REPLY_BYTES], proof[HCA_PROOF_BYTES];
};

/* ---- Arrival and end ------------------------------ */

/* Connections stay in the listener's queue, which epoll would report forever. */
static void listeners_pause(struct hca_meet *m, uint64_t until_ns)
{
	m->listen_again_ns = until_ns;
	for (unsigned i = 0; i < m->config.rails; i++)
		hca_watch_change(m->epoll, &m->rail[i].listener, 0);
	hca_handovers_listen(m);
}

static void listeners_resume(struct hca_meet *m)
{
	m->listen_again_ns = 0;
	for (unsigned i = 0; i < m->config.rails; i++)
		hca_watch_change(m->epoll, &m->rail[i].listener, EPOLLIN);
	hca_handovers_listen(m);
}

static void incoming_unlink(struct hca_meet *m, struct hca_incoming *in)
{
	*in->at = in->next;
	if (in->next)
		in->next->at = in->at;
	else
		m->incoming_end = in->at;
	m->incoming_count--;
	if (m->listen_again_ns)
		listeners_resume(m);
}

static void incoming_drop(struct hca_meet *m, struct hca_incoming *in)
{
	incoming_unlink(m, in);
	hca_watch_close(m->epoll, &in->watch);
	free(in);
}

static void incoming_link(struct hca_meet *m, struct hca_incoming *in)
{
	in->at = m->incoming_end;
	*m->incoming_end = in;
	m->incoming_end = &in->next;
	m->incoming_count++;
}

/* The oldest goes, or it is too early and the listeners pause. */
bool hca_incoming_has_room(struct hca_meet *m)
{
	const uint64_t now_ns = rg_now_ns();
	uint64_t grace_ns;

	if (m->incoming_count < HCA_MEET_UNPROVEN_MAX)
		return true;
	grace_ns = m->incoming->due_ns - HCA_MEET_PATIENCE_NS + GRACE_NS;
	if (rg_reached(grace_ns, now_ns))
		incoming_drop(m, m->incoming);
	else
		listeners_pause(m, grace_ns);
	return !m->listen_again_ns;
}

/* A queue pair that expects the call has the reason in its line.  NULL: the caller has proven itself. */
static void turn_away(struct hca_incoming *in, const char *why)
{
	struct hca_rail *r = in->rail;
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	struct hca_endpoint from;

	if (getpeername(in->watch.fd, (struct sockaddr *)(void *)&peer, &bytes))
		return;
	hca_address_endpoint(&peer, &from);
	if (!why && memcmp(from.address, r->turned_away.address, sizeof(from.address)) != 0)
		return;
	r->turned_away = from;
	r->why = why;
}

const char *hca_meet_turned_away(const struct hca_meet *m, unsigned rail, const unsigned char address[16])
{
	const struct hca_rail *r = &m->rail[rail];

	return r->why && memcmp(r->turned_away.address, address, 16) == 0 ? r->why : NULL;
}

/*
 * Answers over the rail's interface did not get there.  The first one of a rail has a line, but where this end
 * calls the same address: the end of that call has it.
 */
static void crossed_tell(const struct hca_meet *m, const struct hca_incoming *in)
{
	char name[IFNAMSIZ] = "another one", address[INET6_ADDRSTRLEN];
	const bool told = in->rail->crossed.port;
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);

	if (getpeername(in->watch.fd, (struct sockaddr *)(void *)&peer, &bytes))
		return;
	hca_address_endpoint(&peer, &in->rail->crossed);
	if_indextoname(in->through, name);
	if (!told && !hca_calls_address(m, &peer))
		hca_say("%s: calls of host %s arrive on %s, and answers of %s do not reach it " HCA_CROSSED,
			in->rail->interface, hca_address_text(&peer, address), name, in->rail->interface);
}

static bool is_crossed(const struct hca_rail *rail, const struct sockaddr_storage *peer)
{
	struct hca_endpoint e;

	hca_address_endpoint(peer, &e);
	return rail->crossed.port && memcmp(rail->crossed.address, e.address, sizeof(e.address)) == 0;
}

/*
 * A peer on another host is reached over the rail's interface alone.  A call that arrives on another one is
 * tried all the same.  Where that fails the next is refused, by an answer that goes out as the system routes it.
 * On a shared port this process may not be the one that answers: the answer binds (incoming_reply).
 */
static int incoming_place(const struct hca_meet *m, struct hca_incoming *in, int fd, struct hca_rail *rail)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);

	in->rail = rail;
	if (!rail->index)
		return 0;
	if (getpeername(fd, (struct sockaddr *)(void *)&peer, &bytes))
		return -errno;
	if (hca_address_is_local(&peer))
		return 0;
	in->through = hca_socket_arrived_on(fd, rail->local.ss_family == AF_INET);
	if (in->through == rail->index)
		in->through = 0;
	in->crossed = in->through && is_crossed(rail, &peer);
	in->away = !in->crossed;
	return in->crossed || (m->handovers.fd >= 0 && !in->through) ? 0 : hca_socket_interface(fd, rail->index);
}

static struct hca_incoming *incoming_make(struct hca_meet *m, struct hca_rail *rail, int fd)
{
	struct hca_incoming *in = calloc(1, sizeof(*in));

	if (!in || incoming_place(m, in, fd, rail)) {
		hca_socket_close(fd);
		free(in);
		return NULL;
	}
	in->watch = (struct hca_watch){ HCA_WATCH_INCOMING, fd };
	in->due_ns = rg_now_ns() + HCA_MEET_PATIENCE_NS;
	if (hca_watch_add(m->epoll, &in->watch, EPOLLIN)) {
		hca_socket_close(fd);
		free(in);
		return NULL;
	}
	incoming_link(m, in);
	if (in->through && !in->crossed && !m->crossed_ns)
		m->crossed_ns = rg_now_ns() + CROSSED_NS;
	return in;
}

/* The connection stays in the listener's queue.  One line: its other end sees a process that is silent. */
void hca_incoming_lacks(struct hca_meet *m, const char *where, int error)
{
	char text[128];

	if (m->incoming) {
		incoming_drop(m, m->incoming);
		return;
	}
	listeners_pause(m, rg_now_ns() + PAUSE_NS);
	if (!m->lacks)
		hca_say("%s: a connection that another process opens waits: %s", where,
			hca_fd_error(error, text, sizeof(text)));
	m->lacks = true;
}

void hca_incoming_accept(struct hca_meet *m, struct hca_rail *rail)
{
	struct hca_incoming *in;
	int fd;

	if (!hca_incoming_has_room(m))
		return;
	fd = hca_socket_accept(rail->listener.fd);
	if (fd >= 0) {
		in = incoming_make(m, rail, fd);
		/* The hello is often there. */
		if (in)
			hca_incoming_serve(m, &in->watch);
	} else if (hca_socket_lacks(-fd)) {
		hca_incoming_lacks(m, rail->interface, -fd);
	}
}

/* ---- Messages ------------------------------ */

static bool incoming_called_this_end(const struct hca_incoming *in,
				     const struct hca_endpoint *called)
{
	struct sockaddr_storage own;
	socklen_t bytes = sizeof(own);
	struct hca_endpoint end;

	if (getsockname(in->watch.fd, (struct sockaddr *)(void *)&own, &bytes))
		return false;
	hca_address_endpoint(&own, &end);
	return end.port == called->port &&
	       memcmp(end.address, called->address, sizeof(end.address)) == 0;
}

static void handover_fill(const struct hca_incoming *in, struct hca_handover *h)
{
	h->fd = in->watch.fd;
	h->times = in->times + 1;
	h->bytes = in->have;
	memcpy(h->begin, in->hello, in->have);
}

/* To the owner, a process of this fabric.  False: it is not there, or has no room. */
static bool handed_to_owner(const struct hca_meet *m, const struct hca_incoming *in, unsigned number)
{
	struct hca_handover h;

	if (in->times >= HCA_HANDOVER_TIMES_MAX)
		return false;
	handover_fill(in, &h);
	return hca_handover_to(m->credentials.fabric, number, &h) == 0;
}

/* To any process of the group that the first bytes name, once, by one that shares its port. */
static bool handed_to_group(struct hca_meet *m, const struct hca_incoming *in)
{
	unsigned char group[HCA_HASH_BYTES];
	struct hca_handover h;

	if (m->handovers.fd < 0 || in->times || hca_handover_group(in->hello, in->have, group))
		return false;
	handover_fill(in, &h);
	return hca_handover_to_any(&m->search, group, &h, rg_now_ns()) == 0;
}

/* *port is 0, and is set with HCA_VERDICT_AT_PORT alone. */
static enum hca_verdict verdict_of_owner(const struct hca_meet *m, const struct hca_incoming *in,
					 uint16_t *port)
{
	uint16_t at = 0;

	switch (m->config.find(m->config.arg, &in->h, &at)) {
	case HCA_MEET_MINE:
		return HCA_VERDICT_MINE;
	case HCA_MEET_AT_PORT:
		*port = at;
		return at ? HCA_VERDICT_AT_PORT : HCA_VERDICT_UNKNOWN;
	case HCA_MEET_SHARED:
		return handed_to_owner(m, in, at) ? HCA_VERDICT_NONE : HCA_VERDICT_UNKNOWN;
	case HCA_MEET_OTHER_MTU:
		return HCA_VERDICT_OTHER_MTU;
	default:
		return HCA_VERDICT_UNKNOWN;
	}
}

static enum hca_verdict incoming_judge(struct hca_meet *m, const struct hca_incoming *in,
				       const struct hca_endpoint *called, uint16_t *port)
{
	*port = 0;
	if (!incoming_called_this_end(in, called))
		return HCA_VERDICT_OTHER_ADDRESS;
	if (!hca_hello_is_of_fabric(in->hello, &m->credentials))
		return handed_to_group(m, in) ? HCA_VERDICT_NONE : HCA_VERDICT_OTHER_FABRIC;
	if (in->h.rails != m->config.rails)
		return HCA_VERDICT_OTHER_RAILS;
	if (in->crossed)
		return HCA_VERDICT_CROSSED;
	return verdict_of_owner(m, in, port);
}

static const char *why_of(enum hca_verdict verdict)
{
	switch (verdict) {
	case HCA_VERDICT_OTHER_RAILS:
		return "another number of rails than this one";
	case HCA_VERDICT_OTHER_MTU:
		return "another MTU than this interface";
	default:
		return NULL;
	}
}

/* False: the connection has gone. */
static bool incoming_reply(struct hca_meet *m, struct hca_incoming *in, enum hca_verdict verdict,
			uint16_t port, bool same_version)
{
	unsigned char drawn[HCA_RANDOM_BYTES];

	if ((in->away && hca_socket_interface(in->watch.fd, in->rail->index)) ||
	    getrandom(drawn, sizeof(drawn), GRND_NONBLOCK) != sizeof(drawn)) {
		incoming_drop(m, in);
		return false;
	}
	hca_reply_write(in->reply, verdict, port, same_version ? in->hello : NULL, &m->credentials,
			drawn);
	if (hca_socket_send(in->watch.fd, in->reply, sizeof(in->reply))) {
		incoming_drop(m, in);
		return false;
	}
	in->have = 0;
	in->state = same_version && verdict == HCA_VERDICT_MINE ? INCOMING_PROOF : INCOMING_LEAVES;
	if (in->state == INCOMING_LEAVES)
		shutdown(in->watch.fd, SHUT_WR);
	return true;
}

/* These return whether there may be more to read; false: also if the connection has gone. */

/* No hello: the greeting of a probe, perhaps. */
static bool greeting_arrives(struct hca_meet *m, struct hca_incoming *in)
{
	if (m->handovers.fd >= 0 && in->have < HCA_GREETING_BYTES && hca_greeting_is_likely(in->hello, in->have))
		return true;
	handed_to_group(m, in);
	incoming_drop(m, in);
	return false;
}

static bool hello_arrives(struct hca_meet *m, struct hca_incoming *in)
{
	struct hca_endpoint called;
	enum hca_verdict verdict;
	uint16_t port;

	switch (hca_hello_read(in->hello, in->have, &in->h, &called)) {
	case 0:
		verdict = incoming_judge(m, in, &called, &port);
		if (why_of(verdict))
			turn_away(in, why_of(verdict));
		if (verdict != HCA_VERDICT_NONE)
			return incoming_reply(m, in, verdict, port, true);
		incoming_drop(m, in);
		return false;
	case -EAGAIN:
		return true;
	case -EPROTONOSUPPORT:
		turn_away(in, "another version of railgauge (accepted: one version at both ends)");
		return incoming_reply(m, in, HCA_VERDICT_UNKNOWN, 0, false);
	default:
		return greeting_arrives(m, in);
	}
}

static bool proof_arrives(struct hca_meet *m, struct hca_incoming *in)
{
	const struct hca_hello h = in->h;
	int fd;

	if (in->have < sizeof(in->proof))
		return true;
	if (!hca_proof_is_valid(in->proof, in->hello, in->reply, &m->credentials)) {
		turn_away(in, other_secret);
		incoming_drop(m, in);
		return false;
	}
	turn_away(in, NULL);
	incoming_unlink(m, in);
	fd = hca_watch_release(m->epoll, &in->watch);
	free(in);
	m->config.arrived(m->config.arg, fd, &h);
	return false;
}

static bool leaver_goes_on(struct hca_meet *m, struct hca_incoming *in)
{
	if (in->have < DISCARD_MAX)
		return true;
	incoming_drop(m, in);
	return false;
}

static ssize_t incoming_read(struct hca_incoming *in)
{
	unsigned char nowhere[DISCARD_MAX];

	switch (in->state) {
	case INCOMING_HELLO:
		return hca_socket_fill(in->watch.fd, in->hello, sizeof(in->hello), &in->have);
	case INCOMING_PROOF:
		return hca_socket_fill(in->watch.fd, in->proof, sizeof(in->proof), &in->have);
	default:
		return hca_socket_fill(in->watch.fd, nowhere, sizeof(nowhere), &in->have);
	}
}

static bool incoming_step(struct hca_meet *m, struct hca_incoming *in)
{
	ssize_t bytes = incoming_read(in);

	/* A caller that finds another secret in the reply says nothing more. */
	if (bytes < 0 && in->state == INCOMING_PROOF && !in->have)
		turn_away(in, no_proof);
	if (bytes < 0)
		incoming_drop(m, in);
	if (bytes <= 0)
		return false;
	switch (in->state) {
	case INCOMING_HELLO:
		return hello_arrives(m, in);
	case INCOMING_PROOF:
		return proof_arrives(m, in);
	default:
		return leaver_goes_on(m, in);
	}
}

void hca_incoming_serve(struct hca_meet *m, struct hca_watch *w)
{
	struct hca_incoming *in = hca_container(w, struct hca_incoming, watch);

	while (incoming_step(m, in))
		continue;
}

/* ---- Handed over ------------------------------ */

/* The rail whose address is this end of the connection; NULL: none. */
static struct hca_rail *rail_of(struct hca_meet *m, int fd)
{
	struct sockaddr_storage own;
	socklen_t bytes = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)(void *)&own, &bytes))
		return NULL;
	for (unsigned i = 0; i < m->config.rails; i++)
		if (hca_address_is_same(&own, &m->rail[i].local))
			return &m->rail[i];
	return NULL;
}

void hca_incoming_take(struct hca_meet *m, const struct hca_handover *h)
{
	struct hca_rail *rail = rail_of(m, h->fd);
	struct hca_incoming *in;

	if (!rail) {
		hca_socket_close(h->fd);
		return;
	}
	in = incoming_make(m, rail, h->fd);
	if (!in)
		return;
	in->times = h->times;
	in->have = h->bytes;
	memcpy(in->hello, h->begin, h->bytes);
	if (hello_arrives(m, in))
		hca_incoming_serve(m, &in->watch);
}

/* ---- Time ------------------------------ */

static void crossed_look(struct hca_meet *m, uint64_t now_ns)
{
	const struct hca_incoming *in;

	m->crossed_ns = 0;
	for (in = m->incoming; in; in = in->next) {
		const uint64_t at_ns = in->due_ns - HCA_MEET_PATIENCE_NS + CROSSED_NS;

		if (!in->through || in->crossed)
			continue;
		if (rg_reached(at_ns, now_ns))
			crossed_tell(m, in);
		else if (!m->crossed_ns || at_ns < m->crossed_ns)
			m->crossed_ns = at_ns;
	}
}

void hca_incoming_progress(struct hca_meet *m, uint64_t now_ns)
{
	if (m->crossed_ns && rg_reached(m->crossed_ns, now_ns))
		crossed_look(m, now_ns);
	while (m->incoming && rg_reached(m->incoming->due_ns, now_ns))
		incoming_drop(m, m->incoming);
	if (m->listen_again_ns && rg_reached(m->listen_again_ns, now_ns))
		listeners_resume(m);
}

uint64_t hca_incoming_next_ns(const struct hca_meet *m)
{
	const uint64_t unproven = m->incoming ? m->incoming->due_ns : UINT64_MAX;
	const uint64_t listener = m->listen_again_ns ? m->listen_again_ns : UINT64_MAX;
	const uint64_t crossed = m->crossed_ns ? m->crossed_ns : UINT64_MAX;
	const uint64_t first = unproven < listener ? unproven : listener;

	return first < crossed ? first : crossed;
}

void hca_incoming_close(struct hca_meet *m)
{
	while (m->incoming)
		incoming_drop(m, m->incoming);
}
