/*
 * probe.c - do hosts reach each other over two of their interfaces?  See softhca.h.
 *
 * All sockets are tried in each pass: they are few, and live for milliseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "softhca/base/gid.h"
#include "softhca/base/netif.h"
#include "softhca/base/rtnetlink.h"
#include "softhca/link/wire/ports.h"
#include "softhca/link/wire/probe_state.h"
#include "softhca/link/wire/socket.h"

enum {
	INCOMING_MAX = 256,		/* connections of others; beyond, the oldest silent one goes */
};
#define PATIENCE_NS 3000000000u		/* two lost SYNs, of the first three */

/* ---- Ends ---------------------------------------------------------------- */

static struct hca_probe_end *end_add(struct softhca_probe *p, int fd, unsigned net)
{
	struct hca_probe_end *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->fd = fd;
	e->net = net;
	e->due_ns = rg_now_ns() + PATIENCE_NS;
	e->next = p->end;
	p->end = e;
	return e;
}

static void end_free(struct softhca_probe *p, struct hca_probe_end **at)
{
	struct hca_probe_end *e = *at;

	*at = e->next;
	*(e->caller ? &p->calls : &p->incoming) -= 1;
	if (e->fd >= 0)
		hca_socket_close(e->fd);
	free(e);
}

/* The oldest connection that has said nothing goes for a new one. */
static void incoming_drop(struct softhca_probe *p)
{
	struct hca_probe_end **at, **oldest = NULL;

	for (at = &p->end; *at; at = &(*at)->next)
		if (!(*at)->caller && (*at)->stage == HCA_PROBE_GREETED)
			oldest = at;
	if (oldest)
		end_free(p, oldest);
}

static struct hca_probe_end *callee_add(struct softhca_probe *p, int fd, unsigned net)
{
	struct hca_probe_end *e;

	if (p->incoming >= INCOMING_MAX)
		incoming_drop(p);
	e = end_add(p, fd, net);
	if (!e) {
		hca_socket_close(fd);
		return NULL;
	}
	e->stage = HCA_PROBE_GREETED;
	p->incoming++;
	return e;
}

static void accept_all(struct softhca_probe *p, unsigned net)
{
	int fd;

	for (unsigned turn = 0; turn < INCOMING_MAX; turn++) {
		fd = hca_socket_accept(p->listener[net]);
		if (fd < 0 || !callee_add(p, fd, net))
			return;
	}
}

/* The interface whose address is this end of the connection; count: none. */
static unsigned net_of(const struct softhca_probe *p, int fd)
{
	struct sockaddr_storage own, at;
	socklen_t bytes = sizeof(own);
	unsigned i;

	if (getsockname(fd, (struct sockaddr *)(void *)&own, &bytes))
		return p->count;
	for (i = 0; i < p->count; i++) {
		hca_gid_address(&p->list[i].gid, &at);
		if (p->listener[i] >= 0 && hca_address_is_same(&own, &at))
			break;
	}
	return i;
}

static void take_all(struct softhca_probe *p)
{
	struct hca_handover h;
	struct hca_probe_end *e;
	unsigned net;

	for (unsigned turn = 0; turn < INCOMING_MAX && !hca_handover_next(&p->handovers, &h, rg_now_ns()); turn++) {
		net = net_of(p, h.fd);
		e = net < p->count ? callee_add(p, h.fd, net) : NULL;
		if (net == p->count)
			hca_socket_close(h.fd);
		if (!e)
			continue;
		e->times = h.times;
		e->have = h.bytes;
		memcpy(e->in, h.begin, h.bytes);
	}
}

HCA_EXPORT unsigned softhca_probe_progress(struct softhca_probe *p)
{
	struct hca_probe_end **at = &p->end;
	uint64_t now_ns = rg_now_ns();
	unsigned i;

	for (i = 0; i < p->count; i++)
		if (p->listener[i] >= 0)
			accept_all(p, i);
	take_all(p);
	while (*at) {
		if (hca_probe_end_is_done(p, *at, now_ns))
			end_free(p, at);
		else
			at = &(*at)->next;
	}
	return p->calls;
}

HCA_EXPORT void softhca_probe_call(struct softhca_probe *p, unsigned from, const struct softhca_net *to,
			const uint8_t host[16], struct softhca_probed *result)
{
	struct sockaddr_storage there;
	struct hca_probe_end *e;
	int rc, fd;

	*result = (struct softhca_probed){ SOFTHCA_PROBE_NONE, UINT8_MAX };
	hca_gid_address(&to->gid, &there);
	hca_address_port_set(&there, to->port);
	rc = hca_rtnetlink_route(&p->list[from].gid, &to->gid, p->list[from].index);
	if (!rc)
		rc = hca_probe_connect(p, from, &there, &fd);
	if (rc && rc != -EINPROGRESS) {
		result->code = (uint8_t)hca_probe_code_of(HCA_PROBE_CONNECT, rc);
		return;
	}
	e = end_add(p, fd, from);
	if (!e) {
		hca_socket_close(fd);
		result->code = SOFTHCA_PROBE_FAILED;
		return;
	}
	e->caller = true;
	e->there = there;
	e->result = result;
	memcpy(e->host, host, sizeof(e->host));
	p->calls++;
}

/* ---- Opening ------------------------------------------------------------- */

/* The first port of the range that is free at this address; else the last one that is shared. */
static int listen_at(struct softhca_probe *p, struct softhca_net *n, unsigned i, uint16_t first,
		     uint16_t last)
{
	struct sockaddr_storage at;
	int fd = -EADDRINUSE;
	enum hca_listen how;
	unsigned number;
	uint16_t port;

	hca_gid_address(&n->gid, &at);
	for (uint32_t turn = 0; fd == -EADDRINUSE && hca_ports_attempt(turn, first, last, &port, &how); turn++)
		fd = hca_socket_listen(&at, port, how);
	p->listener[i] = fd;
	if (fd < 0)
		return hca_fail(-fd, "%s ports %u to %u: cannot listen: %s", n->name, first, last, strerror(-fd));
	n->port = port;
	if (how != HCA_LISTEN_ALONE && p->handovers.listener < 0)
		p->handovers.listener = hca_handover_open(p->group, &number);
	if (how != HCA_LISTEN_ALONE && p->handovers.listener < 0)
		return hca_fail(-p->handovers.listener, "no Unix socket to share TCP port %u: %s", (unsigned)port,
				strerror(-p->handovers.listener));
	return 0;
}

/* An address whose ports other programs have is left out, but for the last. */
static int listen_at_all(struct softhca_probe *p, struct softhca_net *list, uint16_t first, uint16_t last)
{
	unsigned listening = 0;
	int rc, busy = 0;

	for (unsigned i = 0; i < p->count; i++) {
		if (list[i].why != SOFTHCA_NET_USABLE)
			continue;
		rc = listen_at(p, &list[i], i, first, last);
		if (rc && rc != -EADDRINUSE)
			return rc;
		if (rc)
			list[i].why = SOFTHCA_NET_BUSY;
		busy = rc ? rc : busy;
		listening += !rc;
	}
	return listening ? 0 : busy;
}

HCA_EXPORT int softhca_probe_open(struct softhca_probe **out, struct softhca_net *list, unsigned count,
		       uint64_t job)
{
	struct softhca_probe *p;
	uint16_t first, last;
	int rc = hca_ports_parse(getenv("SOFTHCA_PORTS"), &first, &last);

	if (rc)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		return hca_fail(ENOMEM, "no memory");
	p->list = list;
	p->count = count < SOFTHCA_NETS_MAX ? count : SOFTHCA_NETS_MAX;
	p->job = job;
	p->first = first;
	p->last = last;
	p->handovers = (struct hca_handover_poll){ -1, -1, 0 };
	hca_handover_of_job(job, p->group);
	for (unsigned i = 0; i < p->count; i++)
		p->listener[i] = -1;
	rc = hca_netif_host(p->host);
	if (!rc)
		rc = listen_at_all(p, list, first, last);
	if (rc)
		softhca_probe_close(p);
	else
		*out = p;
	return rc;
}

HCA_EXPORT void softhca_probe_close(struct softhca_probe *p)
{
	if (!p)
		return;
	while (p->end)
		end_free(p, &p->end);
	for (unsigned i = 0; i < p->count; i++)
		if (p->listener[i] >= 0)
			hca_socket_close(p->listener[i]);
	hca_handover_poll_end(&p->handovers);
	free(p);
}
