/* meet.c - see meet.h; incoming.c, recipient.c and call.c have the connections. */
#include "softhca/link/wire/meet.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "softhca/base/fd.h"
#include "softhca/link/wire/meet_state.h"
#include "softhca/link/wire/ports.h"

enum { EVENTS_AT_ONCE = 64 };

/* ---- Listeners ------------------------------ */

static void listeners_close(struct hca_meet *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		hca_watch_close(m->epoll, &m->rail[i].listener);
}

static int listener_open(struct hca_meet *m, struct hca_rail *rail, uint16_t port, enum hca_listen how)
{
	int rc, fd = hca_socket_listen(&rail->local, port, how);

	if (fd < 0)
		return fd;
	rail->listener = (struct hca_watch){ HCA_WATCH_LISTENER, fd };
	rc = hca_watch_add(m->epoll, &rail->listener, EPOLLIN);
	if (rc)
		hca_socket_close(fd);
	return rc;
}

/* All rails on one port: 0; -EADDRINUSE (silent); another error with the line set. */
static int listeners_open(struct hca_meet *m, uint16_t port, enum hca_listen how)
{
	char address[INET6_ADDRSTRLEN];
	unsigned i;
	int rc;

	for (i = 0; i < m->config.rails; i++) {
		rc = listener_open(m, &m->rail[i], port, how);
		if (!rc)
			continue;
		listeners_close(m, i);
		return rc == -EADDRINUSE ? rc :
		       hca_fail(-rc, "%s%s%s port %u: cannot listen: %s", m->rail[i].interface,
				*m->rail[i].interface ? " " : "",
				hca_address_text(&m->rail[i].local, address), (unsigned)port,
				strerror(-rc));
	}
	m->port = port;
	return 0;
}

static int listeners_open_any(struct hca_meet *m)
{
	const uint16_t first = m->config.port_first, last = m->config.port_last;
	char address[INET6_ADDRSTRLEN];
	int rc = -EADDRINUSE;
	enum hca_listen how;
	uint16_t port;

	for (uint32_t turn = 0; rc == -EADDRINUSE && hca_ports_attempt(turn, first, last, &port, &how); turn++)
		rc = listeners_open(m, port, how);
	if (rc == -EADDRINUSE)
		return hca_fail(EADDRINUSE, "%s: other programs or users listen on all TCP ports from %u to %u: "
				"the processes of a user on this host need one (accepted: more ports, by "
				"SOFTHCA_PORTS=FIRST-LAST)",
				hca_address_text(&m->rail[0].local, address), (unsigned)first, (unsigned)last);
	if (!rc && hca_port_is_shared(m->port, first, last)) {
		rc = hca_recipient_begin(m);
		if (rc)
			listeners_close(m, m->config.rails);
	}
	return rc;
}

/* ---- Life ------------------------------ */

static void meet_configure(struct hca_meet *m, const struct hca_meet_config *c)
{
	m->config = *c;
	sodium_memzero(m->config.secret, sizeof(m->config.secret));
	hca_credentials_make(&m->credentials, c->fabric, c->secret);
	for (unsigned i = 0; i < c->rails; i++) {
		m->rail[i].local = c->local[i];
		if (c->interface && c->interface[i])
			snprintf(m->rail[i].interface, sizeof(m->rail[i].interface), "%s",
				 c->interface[i]);
		m->rail[i].index = *m->rail[i].interface ? if_nametoindex(m->rail[i].interface) : 0;
	}
	m->handovers.fd = m->givers.listener = m->givers.giver = -1;
	m->incoming_end = &m->incoming;
	m->next_ns = UINT64_MAX;
}

static void meet_free(struct hca_meet *m)
{
	if (m->epoll >= 0)
		hca_socket_close(m->epoll);
	sodium_memzero(m, sizeof(*m));
	free(m);
}

static int epoll_open(struct hca_meet *m)
{
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll < 0)
		return hca_fail(errno, "no descriptor to wait for connections: %s", strerror(errno));
	m->epoll = hca_socket_raise(m->epoll);
	return 0;
}

int hca_meet_open(struct hca_meet **out, const struct hca_meet_config *c)
{
	struct hca_meet *m;
	int rc;

	if (c->rails < 1 || c->rails > HCA_PORTS_MAX || !c->port_first || c->port_last < c->port_first)
		return hca_fail(EINVAL, "%u rails, ports %u to %u: nothing to listen at", c->rails,
				(unsigned)c->port_first, (unsigned)c->port_last);
	if (sodium_init() < 0)
		return hca_fail(EIO, "libsodium cannot be used: no random numbers");
	m = calloc(1, sizeof(*m));
	if (!m)
		return hca_fail(ENOMEM, "no memory for connections");
	meet_configure(m, c);
	rc = epoll_open(m);
	if (!rc)
		rc = listeners_open_any(m);
	if (rc)
		meet_free(m);
	else
		*out = m;
	return rc;
}

/* The epoll set is also the parent's, if this is a child of fork: it is left as it is. */
void hca_meet_close(struct hca_meet *m)
{
	hca_socket_close(m->epoll);
	m->epoll = -1;
	hca_calls_cancel(m, NULL, true);
	hca_incoming_close(m);
	hca_recipient_end(m);
	listeners_close(m, m->config.rails);
	meet_free(m);
}

uint16_t hca_meet_port(const struct hca_meet *m)
{
	return m->port;
}

int hca_meet_shared(const struct hca_meet *m)
{
	return m->handovers.fd < 0 ? -1 : (int)m->number;
}

int hca_meet_fd(const struct hca_meet *m)
{
	return m->epoll;
}

/* ---- Progress ------------------------------ */

static void next_ns_update(struct hca_meet *m)
{
	const uint64_t unproven = hca_incoming_next_ns(m), calls = hca_calls_next_ns(m);
	const uint64_t shared = hca_recipient_next_ns(m);

	m->next_ns = unproven < calls ? unproven : calls;
	if (shared < m->next_ns)
		m->next_ns = shared;
}

static void meet_serve(struct hca_meet *m, struct hca_watch *w)
{
	switch (w->role) {
	case HCA_WATCH_LISTENER:
		hca_incoming_accept(m, hca_container(w, struct hca_rail, listener));
		break;
	case HCA_WATCH_INCOMING:
		hca_incoming_serve(m, w);
		break;
	case HCA_WATCH_ATTEMPT:
		hca_call_serve(m, w);
		break;
	case HCA_WATCH_HANDOVERS:
		hca_recipient_serve(m);
		break;
	}
}

/* Events are taken one by one: serving one may end the connection of another. */
void hca_meet_progress(struct hca_meet *m)
{
	struct epoll_event event;
	unsigned count = 0;
	uint64_t now_ns;

	while (count++ < EVENTS_AT_ONCE && epoll_wait(m->epoll, &event, 1, 0) == 1)
		meet_serve(m, event.data.ptr);
	now_ns = rg_now_ns();
	if (rg_reached(m->next_ns, now_ns)) {
		hca_incoming_progress(m, now_ns);
		hca_recipient_progress(m, now_ns);
		hca_calls_progress(m, now_ns);
	}
	next_ns_update(m);
}

uint64_t hca_meet_next_ns(const struct hca_meet *m)
{
	return m->next_ns;
}

int hca_meet_call(struct hca_meet *m, const struct sockaddr_storage *to, const struct hca_hello *h,
		  void *token)
{
	int rc;

	if (h->rail >= m->config.rails || h->rails != m->config.rails ||
	    to->ss_family != m->rail[h->rail].local.ss_family)
		return hca_fail(EINVAL, "rail %u of %u has no way to this address", (unsigned)h->rail,
				m->config.rails);
	rc = hca_call_start(m, to, h, token);
	next_ns_update(m);
	return rc;
}

void hca_meet_cancel(struct hca_meet *m, void *token)
{
	hca_calls_cancel(m, token, false);
	next_ns_update(m);
}
