/*
 * call.c - connections that this process opens: the search for a process of the fabric at an
 * address, then for the owner of a number.
 *
 * A call makes attempts, each on one port.  A port that refuses costs a round trip.  A silent one
 * (a stopped process, or one that only inherited the listener) delays the next attempt by HEDGE_NS
 * and stays open: it may yet answer.  The first proven verdict decides the call.  A port that processes
 * share is called again meanwhile: the kernel there gives it to another one, perhaps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "softhca/base/fd.h"
#include "softhca/link/wire/meet_state.h"
#include "softhca/link/wire/ports.h"

enum {
	ATTEMPTS_MAX = 8,		/* of a call, at a time */
	PORTS_AT_ONCE = 64,		/* that refuse at once, in one turn */
	REPEATS_MAX = 20,		/* of a silent port that is shared, in HCA_MEET_PATIENCE_NS */
	HOPS_MAX = 4,			/* from a process to the one that it names */
	WHY_BYTES = 320,
};
#define HEDGE_NS 250000000u
#define CONNECT_NS 4000000000u		/* for any answer; the kernel has asked three times then */

/* The end of an attempt; of those of a call the highest is reported. */
enum outcome {
	NOTHING,
	CLOSED,				/* no listener */
	STRANGERS,			/* another fabric, another protocol */
	ENDED,
	SILENT,
	OTHER_VERSION,
	OTHER_SECRET,
};

static const struct {
	int error;
	const char *text;
} outcomes[] = {
	[NOTHING] = { ECONNREFUSED, "no port to call" },
	[CLOSED] = { ECONNREFUSED, "no process listens" },
	[STRANGERS] = { ECONNREFUSED, "no process of this fabric listens, others do" },
	[ENDED] = { ECONNRESET, "the process there ended the connection" },
	[SILENT] = { EBUSY, "the process there does not answer" },
	[OTHER_VERSION] = { EPROTONOSUPPORT, "the process there has another version of railgauge "
					     "(accepted: one version at both ends)" },
	[OTHER_SECRET] = { EACCES, "the process there has another secret (accepted: one "
				   "SOFTHCA_SECRET_FILE at both ends)" },
};

struct attempt {
	struct hca_watch watch;
	struct hca_call *call;
	uint64_t due_ns;
	uint16_t port;
	bool connected;
	size_t have;			/* of the reply */
	unsigned char hello[HCA_HELLO_BYTES], reply[HCA_REPLY_BYTES];
};

struct hca_call {
	struct hca_list_node on_meet;
	void *token;
	struct sockaddr_storage to;
	struct hca_hello h;
	bool to_this_host;
	bool answered;			/* the host has: a firewall is not its state */
	struct attempt *attempt[ATTEMPTS_MAX];
	unsigned attempts;

	/* Ports still to call: first, unless 0; then from next on. */
	uint16_t first, hint;
	uint32_t next, last;
	unsigned hops;
	uint64_t more_ns;		/* time of the next attempt */
	uint16_t silent;		/* a shared port that is connected, to call again at ...; 0: none */
	uint64_t again_ns;
	unsigned repeats;
	uint64_t turn;			/* of the meet, in which its times were checked */

	enum outcome outcome;
	uint16_t outcome_port;
	int error;			/* ends the call: a positive errno value, and its line */
	char why[WHY_BYTES];
};

/* ---- The ends of calls ------------------------------ */

static void attempt_free(struct hca_meet *m, struct attempt *a)
{
	struct hca_call *call = a->call;
	unsigned i = 0;

	while (call->attempt[i] != a)
		i++;
	call->attempt[i] = call->attempt[--call->attempts];
	if (a->watch.fd >= 0)
		hca_watch_close(m->epoll, &a->watch);
	free(a);
}

static void call_free(struct hca_meet *m, struct hca_call *call)
{
	while (call->attempts)
		attempt_free(m, call->attempt[0]);
	hca_list_remove(&call->on_meet);
	free(call);
}

static void call_refuse(struct hca_meet *m, struct hca_call *call)
{
	const int error = call->error;
	void *token = call->token;
	char why[WHY_BYTES];

	memcpy(why, call->why, sizeof(why));
	call_free(m, call);
	m->config.refused(m->config.arg, token, error, why);
}

static void call_fail(struct hca_call *call, uint16_t port, int error, const char *text)
{
	char address[INET6_ADDRSTRLEN];

	call->error = error;
	snprintf(call->why, sizeof(call->why), "%s port %u: %s",
		 hca_address_text(&call->to, address), (unsigned)port, text);
}

static bool ports_left(const struct hca_call *call)
{
	return call->first || call->next <= call->last;
}

/* Fails the call at all ports that were called, not at one. */
static void call_fail_at_all(const struct hca_meet *m, struct hca_call *call, int error,
			     const char *text)
{
	char address[INET6_ADDRSTRLEN];

	if (m->config.port_first == m->config.port_last) {
		call_fail(call, m->config.port_first, error, text);
		return;
	}
	call->error = error;
	snprintf(call->why, sizeof(call->why), "%s ports %u to %u: %s",
		 hca_address_text(&call->to, address), (unsigned)m->config.port_first,
		 (unsigned)m->config.port_last, text);
}

/* All ports were tried. */
static void call_fail_by_outcome(const struct hca_meet *m, struct hca_call *call)
{
	if (call->outcome <= STRANGERS && !call->hops)
		call_fail_at_all(m, call, outcomes[call->outcome].error, outcomes[call->outcome].text);
	else
		call_fail(call, call->outcome_port, outcomes[call->outcome].error,
			  outcomes[call->outcome].text);
}

static void attempt_end(struct hca_meet *m, struct attempt *a, enum outcome outcome)
{
	struct hca_call *call = a->call;

	if (outcome > call->outcome) {
		call->outcome = outcome;
		call->outcome_port = a->port;
	}
	call->more_ns = 0;
	attempt_free(m, a);
}

/* The attempt ended with an error of a socket; EACCES is kept for the secret. */
static void attempt_fail(struct hca_meet *m, struct attempt *a, int error)
{
	struct hca_call *call = a->call;
	char text[128];

	if (error == ECONNREFUSED || error == ECONNRESET || error == EPIPE) {
		call->answered = true;
		attempt_end(m, a, error == ECONNREFUSED ? CLOSED : ENDED);
		return;
	}
	call_fail(call, a->port, error == EACCES ? EPERM : error, hca_fd_error(error, text, sizeof(text)));
	attempt_free(m, a);
}

/* ---- Attempts ------------------------------ */

static struct hca_hint *hint_of(struct hca_meet *m, const struct hca_endpoint *e)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < sizeof(e->address); i++)
		sum = sum * 31 + e->address[i];
	return &m->hint[sum % HCA_HINTS];
}

static void hint_keep(struct hca_meet *m, const struct attempt *a)
{
	struct hca_endpoint e;
	struct hca_hint *hint;

	hca_address_endpoint(&a->call->to, &e);
	hint = hint_of(m, &e);
	memcpy(hint->address, e.address, sizeof(hint->address));
	hint->port = a->port;
}

static uint16_t hinted_port(struct hca_meet *m, const struct sockaddr_storage *to)
{
	struct hca_endpoint e;
	const struct hca_hint *hint;

	hca_address_endpoint(to, &e);
	hint = hint_of(m, &e);
	return memcmp(hint->address, e.address, sizeof(e.address)) == 0 ? hint->port : 0;
}

static uint16_t port_take(struct hca_call *call)
{
	uint16_t port = call->first;

	call->first = 0;
	if (!port)
		port = (uint16_t)call->next++;
	if (call->next == call->hint)
		call->next++;
	return port;
}

/* The hello names the address and port that it is sent to. */
static int attempt_introduce(const struct hca_meet *m, struct attempt *a)
{
	unsigned char drawn[HCA_RANDOM_BYTES];
	struct hca_endpoint called;

	if (getrandom(drawn, sizeof(drawn), GRND_NONBLOCK) != sizeof(drawn))
		return -EAGAIN;
	hca_address_endpoint(&a->call->to, &called);
	called.port = a->port;
	hca_hello_write(a->hello, &a->call->h, &called, &m->credentials, drawn);
	return hca_socket_send(a->watch.fd, a->hello, sizeof(a->hello));
}

static int attempt_connected(struct hca_meet *m, struct attempt *a)
{
	int rc = attempt_introduce(m, a);

	a->connected = true;
	a->due_ns = rg_now_ns() + HCA_MEET_PATIENCE_NS;
	a->call->answered = true;
	if (hca_port_is_shared(a->port, m->config.port_first, m->config.port_last)) {
		a->call->silent = a->port;
		a->call->again_ns = rg_now_ns() + HEDGE_NS;
	}
	if (!rc)
		hca_watch_change(m->epoll, &a->watch, EPOLLIN);
	return rc;
}

static int attempt_connect(struct hca_meet *m, struct attempt *a)
{
	const struct hca_call *call = a->call;
	const struct hca_rail *rail = &m->rail[call->h.rail];
	struct sockaddr_storage to = call->to;
	int rc, watched;

	hca_address_port_set(&to, a->port);
	rc = hca_socket_connect(&to, &rail->local, call->to_this_host ? 0 : rail->index, &a->watch.fd);
	if (rc && rc != -EINPROGRESS)
		return rc;
	watched = hca_watch_add(m->epoll, &a->watch, EPOLLOUT);
	if (watched)
		return watched;
	return rc ? 0 : attempt_connected(m, a);
}

static void attempt_start(struct hca_meet *m, struct hca_call *call, uint64_t now_ns)
{
	const uint16_t port = port_take(call);
	struct attempt *a = calloc(1, sizeof(*a));
	int rc;

	if (!a) {
		call_fail(call, port, ENOMEM, strerror(ENOMEM));
		return;
	}
	a->watch = (struct hca_watch){ HCA_WATCH_ATTEMPT, -1 };
	a->call = call;
	a->port = port;
	a->due_ns = now_ns + CONNECT_NS;
	call->attempt[call->attempts++] = a;
	call->more_ns = now_ns + HEDGE_NS;
	rc = attempt_connect(m, a);
	if (rc)
		attempt_fail(m, a, -rc);
}

static bool may_repeat(const struct hca_call *call)
{
	return call->silent && call->attempts && call->repeats < REPEATS_MAX && !ports_left(call);
}

/* The oldest attempt on the port goes for one more. */
static void attempts_make_room(struct hca_meet *m, struct hca_call *call, uint16_t port)
{
	struct attempt *oldest = NULL;

	for (unsigned i = 0; i < call->attempts; i++) {
		struct attempt *a = call->attempt[i];

		if (a->port == port && !a->have && (!oldest || a->due_ns < oldest->due_ns))
			oldest = a;
	}
	if (oldest && call->attempts == ATTEMPTS_MAX)
		attempt_free(m, oldest);
}

static void call_repeat(struct hca_meet *m, struct hca_call *call)
{
	attempts_make_room(m, call, call->silent);
	call->first = call->silent;
	call->silent = 0;
	call->repeats++;
}

/* Begin attempts that are due.  False: the call has failed, for call->error. */
static bool call_step(struct hca_meet *m, struct hca_call *call, uint64_t now_ns)
{
	unsigned count = 0;

	if (may_repeat(call) && call->again_ns <= now_ns)
		call_repeat(m, call);
	while (!call->error && ports_left(call) && call->attempts < ATTEMPTS_MAX &&
	       call->more_ns <= now_ns && count++ < PORTS_AT_ONCE)
		attempt_start(m, call, now_ns);
	if (!call->error && !call->attempts && !ports_left(call))
		call_fail_by_outcome(m, call);
	return !call->error;
}

static void call_go_on(struct hca_meet *m, struct hca_call *call)
{
	if (!call_step(m, call, rg_now_ns()))
		call_refuse(m, call);
}

/* ---- Replies ------------------------------ */

static void call_succeed(struct hca_meet *m, struct attempt *a)
{
	struct hca_call *call = a->call;
	unsigned char proof[HCA_PROOF_BYTES];
	const struct hca_hello h = call->h;
	void *token = call->token;
	int fd, rc;

	hca_proof_write(proof, a->hello, a->reply, &m->credentials);
	rc = hca_socket_send(a->watch.fd, proof, sizeof(proof));
	if (rc) {
		attempt_fail(m, a, -rc);
		call_go_on(m, call);
		return;
	}
	fd = hca_watch_release(m->epoll, &a->watch);
	call_free(m, call);
	m->config.reached(m->config.arg, token, fd, &h);
}

/* The process there has named the port of the owner: only the attempt on that port goes on. */
static void call_redirect(struct hca_meet *m, struct hca_call *call, uint16_t port)
{
	unsigned i = 0;

	call->first = port;
	call->next = call->last + 1;
	call->hint = call->silent = 0;
	call->more_ns = 0;
	call->outcome = NOTHING;
	while (i < call->attempts)
		if (call->attempt[i]->port == port && call->attempt[i]->have == 0) {
			call->first = 0;
			i++;
		} else {
			attempt_free(m, call->attempt[i]);
		}
	if (++call->hops > HOPS_MAX)
		call_fail(call, port, ENOENT, "the processes there name each other as the owner");
}

static void verdict_unknown(struct hca_call *call, uint16_t port)
{
	char text[64];

	snprintf(text, sizeof(text), "no process of this host has queue pair 0x%06x",
		 (unsigned)call->h.target_qpn);
	call_fail(call, port, ENOENT, text);
}

/* The verdict does not end the call by call_succeed. */
static void verdict_apply(struct hca_meet *m, struct attempt *a, enum hca_verdict verdict,
			  uint16_t port)
{
	struct hca_call *call = a->call;
	char text[96];

	switch (verdict) {
	case HCA_VERDICT_AT_PORT:
		a->have = HCA_REPLY_BYTES;
		call_redirect(m, call, port);
		break;
	case HCA_VERDICT_UNKNOWN:
		verdict_unknown(call, a->port);
		break;
	case HCA_VERDICT_OTHER_MTU:
		snprintf(text, sizeof(text), "the process there has another MTU than this "
			 "interface (%u)", (unsigned)call->h.mtu);
		call_fail(call, a->port, EINVAL, text);
		break;
	case HCA_VERDICT_OTHER_RAILS:
		snprintf(text, sizeof(text), "the process there has another number of rails than "
			 "this one (%u)", (unsigned)call->h.rails);
		call_fail(call, a->port, EINVAL, text);
		break;
	case HCA_VERDICT_CROSSED:
		call_fail(call, a->port, EINVAL, "packets of this interface arrive there on another one " HCA_CROSSED);
		break;
	default:
		attempt_end(m, a, STRANGERS);
	}
}

static void reply_arrives(struct hca_meet *m, struct attempt *a)
{
	struct hca_call *call = a->call;
	enum hca_verdict verdict;
	uint16_t port;

	switch (hca_reply_read(a->reply, a->have, a->hello, &m->credentials, &verdict, &port)) {
	case 0:
		if (verdict < HCA_VERDICT_OTHER_FABRIC)
			hint_keep(m, a);
		if (verdict == HCA_VERDICT_MINE) {
			call_succeed(m, a);
			return;
		}
		verdict_apply(m, a, verdict, port);
		break;
	case -EAGAIN:
		return;
	case -EACCES:
		attempt_end(m, a, OTHER_SECRET);
		break;
	case -EPROTONOSUPPORT:
		attempt_end(m, a, OTHER_VERSION);
		break;
	default:
		attempt_end(m, a, STRANGERS);
	}
	call_go_on(m, call);
}

static int connection_error(int fd)
{
	int error = 0;
	socklen_t bytes = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) ? -errno : -error;
}

void hca_call_serve(struct hca_meet *m, struct hca_watch *w)
{
	struct attempt *a = hca_container(w, struct attempt, watch);
	struct hca_call *call = a->call;
	ssize_t rc;

	if (a->connected) {
		rc = hca_socket_fill(w->fd, a->reply, sizeof(a->reply), &a->have);
		if (rc > 0)
			reply_arrives(m, a);
	} else {
		rc = connection_error(w->fd);
		if (!rc)
			rc = attempt_connected(m, a);
	}
	if (rc < 0) {
		attempt_fail(m, a, (int)-rc);
		call_go_on(m, call);
	}
}

/* ---- Time ------------------------------ */

/* The host has answered nothing at all, or this process there has not. */
static void attempt_expire(struct hca_meet *m, struct attempt *a)
{
	if (a->call->answered) {
		attempt_end(m, a, SILENT);
		return;
	}
	call_fail_at_all(m, a->call, ETIMEDOUT,
			 "the host does not answer: it is down, or a firewall drops these TCP ports "
			 "(open them on this interface of both hosts, or name open ones: "
			 "SOFTHCA_PORTS=FIRST-LAST)");
	attempt_free(m, a);
}

/* False: the call has ended. */
static bool call_check_times(struct hca_meet *m, struct hca_call *call, uint64_t now_ns)
{
	unsigned i = 0;

	while (i < call->attempts)
		if (rg_reached(call->attempt[i]->due_ns, now_ns))
			attempt_expire(m, call->attempt[i]);
		else
			i++;
	if (call_step(m, call, now_ns))
		return true;
	call_refuse(m, call);
	return false;
}

static struct hca_call *call_at(struct hca_list_node *node)
{
	return node ? hca_container(node, struct hca_call, on_meet) : NULL;
}

/* Callbacks may add calls and cancel others: after each, the list is read from its head. */
void hca_calls_progress(struct hca_meet *m, uint64_t now_ns)
{
	struct hca_call *call = call_at(m->calls);
	bool goes_on;

	m->turn++;
	while (call) {
		goes_on = call->turn == m->turn || call_check_times(m, call, now_ns);
		if (goes_on)
			call->turn = m->turn;
		call = call_at(goes_on ? call->on_meet.next : m->calls);
	}
}

static uint64_t call_next_ns(const struct hca_call *call)
{
	uint64_t next = UINT64_MAX;

	if (call->error)
		return 0;
	if (ports_left(call) && call->attempts < ATTEMPTS_MAX)
		next = call->more_ns;
	else if (may_repeat(call))
		next = call->again_ns;
	for (unsigned i = 0; i < call->attempts; i++)
		if (call->attempt[i]->due_ns < next)
			next = call->attempt[i]->due_ns;
	return call->attempts || ports_left(call) ? next : 0;
}

uint64_t hca_calls_next_ns(const struct hca_meet *m)
{
	uint64_t next = UINT64_MAX, ns;

	for (struct hca_call *call = call_at(m->calls); call; call = call_at(call->on_meet.next)) {
		ns = call_next_ns(call);
		if (ns < next)
			next = ns;
	}
	return next;
}

/* ---- The caller's side ------------------------------ */

int hca_call_start(struct hca_meet *m, const struct sockaddr_storage *to,
		   const struct hca_hello *h, void *token)
{
	struct hca_call *call = calloc(1, sizeof(*call));

	if (!call)
		return hca_fail(ENOMEM, "no memory for a connection");
	call->token = token;
	call->to = *to;
	call->h = *h;
	hca_address_scope_set(&call->to, &m->rail[h->rail].local);
	call->to_this_host = hca_address_is_local(&call->to);
	call->first = call->hint = hinted_port(m, to);
	call->next = m->config.port_first;
	call->last = m->config.port_last;
	if (call->next == call->hint)
		call->next++;
	hca_list_add(&m->calls, &call->on_meet);
	/* A failure is reported by hca_meet_progress, to which call_next_ns leads. */
	call_step(m, call, rg_now_ns());
	return 0;
}

void hca_calls_cancel(struct hca_meet *m, const void *token, bool any)
{
	struct hca_call *call = call_at(m->calls);

	while (call) {
		struct hca_call *next = call_at(call->on_meet.next);

		if (any || call->token == token)
			call_free(m, call);
		call = next;
	}
}
