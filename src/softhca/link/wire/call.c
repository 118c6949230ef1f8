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
#include "softhca/link/wire/call_state.h"
#include "softhca/link/wire/ports.h"

enum {
	PORTS_AT_ONCE = 64,		/* that refuse at once, in one turn */
	REPEATS_MAX = 20,		/* of a silent port that is shared, in HCA_MEET_PATIENCE_NS */
};
#define HEDGE_NS 250000000u
#define CONNECT_NS 4000000000u		/* for any answer; the kernel has asked three times then */

static const struct {
	int error;
	const char *text;
} outcomes[] = {
	[HCA_CALL_NOTHING] = { ECONNREFUSED, "no port to call" },
	[HCA_CALL_CLOSED] = { ECONNREFUSED, "no process listens" },
	[HCA_CALL_STRANGERS] = { ECONNREFUSED, "no process of this fabric listens, others do" },
	[HCA_CALL_ENDED] = { ECONNRESET, "the process there ended the connection" },
	[HCA_CALL_SILENT] = { EBUSY, "the process there does not answer" },
	[HCA_CALL_OTHER_VERSION] = { EPROTONOSUPPORT, "the process there has another version of railgauge "
					     "(accepted: one version at both ends)" },
	[HCA_CALL_OTHER_SECRET] = { EACCES, "the process there has another secret (accepted: one "
				   "SOFTHCA_SECRET_FILE at both ends)" },
};

/* ---- The ends of calls ------------------------------ */

void hca_attempt_free(struct hca_meet *m, struct hca_attempt *a)
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

void hca_call_free(struct hca_meet *m, struct hca_call *call)
{
	while (call->attempts)
		hca_attempt_free(m, call->attempt[0]);
	hca_list_remove(&call->on_meet);
	free(call);
}

static void call_refuse(struct hca_meet *m, struct hca_call *call)
{
	const int error = call->error;
	void *token = call->token;
	char why[HCA_CALL_WHY_BYTES];

	memcpy(why, call->why, sizeof(why));
	hca_call_free(m, call);
	m->config.refused(m->config.arg, token, error, why);
}

void hca_call_fail(struct hca_call *call, uint16_t port, int error, const char *text)
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
		hca_call_fail(call, m->config.port_first, error, text);
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
	if (call->outcome <= HCA_CALL_STRANGERS && !call->hops)
		call_fail_at_all(m, call, outcomes[call->outcome].error, outcomes[call->outcome].text);
	else
		hca_call_fail(call, call->outcome_port, outcomes[call->outcome].error,
			  outcomes[call->outcome].text);
}

void hca_attempt_end(struct hca_meet *m, struct hca_attempt *a, enum hca_call_outcome outcome)
{
	struct hca_call *call = a->call;

	if (outcome > call->outcome) {
		call->outcome = outcome;
		call->outcome_port = a->port;
	}
	call->more_ns = 0;
	hca_attempt_free(m, a);
}

/* The attempt ended with an error of a socket; EACCES is kept for the secret. */
void hca_attempt_fail(struct hca_meet *m, struct hca_attempt *a, int error)
{
	struct hca_call *call = a->call;
	char text[128];

	if (error == ECONNREFUSED || error == ECONNRESET || error == EPIPE) {
		call->answered = true;
		hca_attempt_end(m, a, error == ECONNREFUSED ? HCA_CALL_CLOSED : HCA_CALL_ENDED);
		return;
	}
	hca_call_fail(call, a->port, error == EACCES ? EPERM : error, hca_fd_error(error, text, sizeof(text)));
	hca_attempt_free(m, a);
}

/* ---- Attempts ------------------------------ */

struct hca_hint *hca_call_hint(struct hca_meet *m, const struct hca_endpoint *e)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < sizeof(e->address); i++)
		sum = sum * 31 + e->address[i];
	return &m->hint[sum % HCA_HINTS];
}

static uint16_t hinted_port(struct hca_meet *m, const struct sockaddr_storage *to)
{
	struct hca_endpoint e;
	const struct hca_hint *hint;

	hca_address_endpoint(to, &e);
	hint = hca_call_hint(m, &e);
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
static int attempt_introduce(const struct hca_meet *m, struct hca_attempt *a)
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

int hca_attempt_connected(struct hca_meet *m, struct hca_attempt *a)
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

static int attempt_connect(struct hca_meet *m, struct hca_attempt *a)
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
	return rc ? 0 : hca_attempt_connected(m, a);
}

static void attempt_start(struct hca_meet *m, struct hca_call *call, uint64_t now_ns)
{
	const uint16_t port = port_take(call);
	struct hca_attempt *a = calloc(1, sizeof(*a));
	int rc;

	if (!a) {
		hca_call_fail(call, port, ENOMEM, strerror(ENOMEM));
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
		hca_attempt_fail(m, a, -rc);
}

static bool may_repeat(const struct hca_call *call)
{
	return call->silent && call->attempts && call->repeats < REPEATS_MAX && !ports_left(call);
}

/* The oldest attempt on the port goes for one more. */
static void attempts_make_room(struct hca_meet *m, struct hca_call *call, uint16_t port)
{
	struct hca_attempt *oldest = NULL;

	for (unsigned i = 0; i < call->attempts; i++) {
		struct hca_attempt *a = call->attempt[i];

		if (a->port == port && !a->have && (!oldest || a->due_ns < oldest->due_ns))
			oldest = a;
	}
	if (oldest && call->attempts == HCA_ATTEMPTS_MAX)
		hca_attempt_free(m, oldest);
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
	while (!call->error && ports_left(call) && call->attempts < HCA_ATTEMPTS_MAX &&
	       call->more_ns <= now_ns && count++ < PORTS_AT_ONCE)
		attempt_start(m, call, now_ns);
	if (!call->error && !call->attempts && !ports_left(call))
		call_fail_by_outcome(m, call);
	return !call->error;
}

void hca_call_go_on(struct hca_meet *m, struct hca_call *call)
{
	if (!call_step(m, call, rg_now_ns()))
		call_refuse(m, call);
}

/* ---- Time ------------------------------ */

/* The host has answered nothing at all, or this process there has not. */
static void attempt_expire(struct hca_meet *m, struct hca_attempt *a)
{
	if (a->call->answered) {
		hca_attempt_end(m, a, HCA_CALL_SILENT);
		return;
	}
	call_fail_at_all(m, a->call, ETIMEDOUT,
			 "the host does not answer: it is down, or a firewall drops these TCP ports "
			 "(open them on this interface of both hosts, or name open ones: "
			 "SOFTHCA_PORTS=FIRST-LAST)");
	hca_attempt_free(m, a);
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
	if (ports_left(call) && call->attempts < HCA_ATTEMPTS_MAX)
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

bool hca_calls_address(const struct hca_meet *m, const struct sockaddr_storage *peer)
{
	struct hca_endpoint e, to;

	hca_address_endpoint(peer, &e);
	for (const struct hca_call *call = call_at(m->calls); call; call = call_at(call->on_meet.next)) {
		hca_address_endpoint(&call->to, &to);
		if (call->h.kind != HCA_MEET_QUESTION && memcmp(to.address, e.address, sizeof(e.address)) == 0)
			return true;
	}
	return false;
}

void hca_calls_cancel(struct hca_meet *m, const void *token, bool any)
{
	struct hca_call *call = call_at(m->calls);

	while (call) {
		struct hca_call *next = call_at(call->on_meet.next);

		if (any || call->token == token)
			hca_call_free(m, call);
		call = next;
	}
}
