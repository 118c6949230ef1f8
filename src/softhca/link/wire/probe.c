/*
 * probe.c - do hosts reach each other over two of their interfaces?  See softhca.h.
 *
 * Caller and callee exchange a greeting each: magic, job, host, MTU; the callee's has a verdict.
 * Then each sends full packets, and the callee at last one byte: are its packets as long as at the
 * begin?  Full packets that vanish leave the connection without progress until the limit.
 *
 * All sockets are tried in each pass: they are few, and live for milliseconds.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/gid.h"
#include "softhca/base/netif.h"
#include "softhca/base/rtnetlink.h"
#include "softhca/link/wire/bytes.h"
#include "softhca/link/wire/handover.h"
#include "softhca/link/wire/packets.h"
#include "softhca/link/wire/ports.h"
#include "softhca/link/wire/socket.h"
#include "softhca/softhca.h"

enum {
	INCOMING_MAX = 256,		/* connections of others; beyond, the oldest silent one goes */
};
#define PATIENCE_NS 3000000000u		/* two lost SYNs, of the first three */
#define HEDGE_NS 300000000u		/* for a process that shares its port to answer */
#define REFUSED_NS 50000000u		/* until a shared port that has refused is called again */

enum verdict { VERDICT_NONE, VERDICT_HERE, VERDICT_CROSSED, VERDICT_ASTRAY };

struct greeting {
	uint64_t job;
	uint8_t host[16];
	uint32_t mtu;
	uint8_t verdict, through;
};

enum stage {
	STAGE_CONNECT,			/* caller: until the greeting can be sent */
	STAGE_GREETED,			/* expects the other's greeting */
	STAGE_PACKETS,
	STAGE_ENDS,			/* callee: the caller closes first */
};

struct end {
	struct end *next;
	int fd;
	bool caller;
	enum stage stage;
	unsigned net;			/* in the list */
	uint64_t due_ns;
	unsigned char in[HCA_HELLO_BYTES];	/* HCA_GREETING_BYTES, unless it is no probe's */
	size_t have;
	unsigned times;			/* that it has changed hands */
	struct hca_packets packets;	/* the last byte that the caller reads: the callee's shrank */
	/* The caller's. */
	struct sockaddr_storage there;
	uint64_t again_ns;		/* it is called again; 0: it is not */
	int refusal;			/* the last one of a shared port; fd is -1 then, or the next call's */
	uint8_t host[16];
	struct softhca_probed *result;
};

struct softhca_probe {
	const struct softhca_net *list;
	unsigned count;
	uint64_t job;
	uint8_t host[16];
	uint16_t first, last;		/* ports */
	int listener[SOFTHCA_NETS_MAX];
	struct hca_handover_poll handovers;	/* if a port is shared (handover.h) */
	struct hca_handover_search search;
	unsigned char group[HCA_HASH_BYTES];
	struct end *end;		/* all of both directions */
	unsigned calls, incoming;
};

/* ---- Greetings ----------------------------------------------------------- */

static void greeting_write(unsigned char out[HCA_GREETING_BYTES], const struct greeting *g)
{
	hca_greeting_begin(out, g->job);
	memcpy(out + 16, g->host, 16);
	hca_put32(out + 32, g->mtu);
	out[36] = g->verdict;
	out[37] = g->through;
	hca_put16(out + 38, 0);
}

static bool greeting_read(const unsigned char in[HCA_GREETING_BYTES], struct greeting *g)
{
	g->job = hca_get64(in + 8);
	memcpy(g->host, in + 16, 16);
	g->mtu = hca_get32(in + 32);
	g->verdict = in[36];
	g->through = in[37];
	return hca_greeting_is_likely(in, 8) && g->mtu > 0 && g->mtu <= HCA_PACKETS_MTU_MAX;
}

static uint32_t mtu_of(const struct softhca_probe *p, const struct end *e)
{
	return p->list[e->net].mtu < HCA_PACKETS_MTU_MAX ? p->list[e->net].mtu : HCA_PACKETS_MTU_MAX;
}

static int greet(const struct softhca_probe *p, const struct end *e, enum verdict verdict,
		 uint8_t through)
{
	struct greeting g = { .job = p->job, .mtu = mtu_of(p, e), .verdict = (uint8_t)verdict,
			      .through = through };
	unsigned char out[HCA_GREETING_BYTES];

	memcpy(g.host, p->host, sizeof(g.host));
	greeting_write(out, &g);
	return hca_socket_send(e->fd, out, sizeof(out));
}

static void packets_begin(const struct softhca_probe *p, struct end *e, uint32_t peer_mtu)
{
	hca_packets_begin(&e->packets, e->fd, mtu_of(p, e), peer_mtu, e->caller);
	e->stage = STAGE_PACKETS;
}

/* ---- The caller's side --------------------------------------------------- */

static enum softhca_probe_code code_of(const struct end *e, int rc)
{
	switch (-rc) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL:
	case EACCES:
	case EINVAL:			/* a blackhole */
	case ENODEV:
		return SOFTHCA_PROBE_NO_ROUTE;
	case ETIMEDOUT:
		return e->stage == STAGE_PACKETS ? SOFTHCA_PROBE_MTU : SOFTHCA_PROBE_SILENT;
	case EMSGSIZE:
		return SOFTHCA_PROBE_MTU;
	case EXDEV:
		return SOFTHCA_PROBE_ASTRAY;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOBUFS:
		return SOFTHCA_PROBE_FAILED;
	default:
		return SOFTHCA_PROBE_REFUSED;
	}
}

static int call_ends(const struct end *e, enum softhca_probe_code code, uint8_t through)
{
	*e->result = (struct softhca_probed){ (uint8_t)code, through };
	return 1;
}

static int answer_arrives(const struct softhca_probe *p, struct end *e)
{
	struct greeting g;

	if (!greeting_read(e->in, &g) || g.job != p->job)
		return call_ends(e, SOFTHCA_PROBE_OTHER, UINT8_MAX);
	if (memcmp(g.host, p->host, sizeof(g.host)) == 0)
		return call_ends(e, SOFTHCA_PROBE_SELF, UINT8_MAX);
	if (memcmp(g.host, e->host, sizeof(g.host)) != 0)
		return call_ends(e, SOFTHCA_PROBE_OTHER, UINT8_MAX);
	if (g.verdict == VERDICT_ASTRAY)
		return call_ends(e, SOFTHCA_PROBE_ASTRAY, UINT8_MAX);
	if (g.verdict != VERDICT_HERE)
		return call_ends(e, SOFTHCA_PROBE_CROSSED, g.through);
	packets_begin(p, e, g.mtu);
	return 0;
}

static bool is_shared(const struct softhca_probe *p, const struct sockaddr_storage *there)
{
	struct hca_endpoint e;

	hca_address_endpoint(there, &e);
	return hca_port_is_shared(e.port, p->first, p->last);
}

static int call_connect(const struct softhca_probe *p, unsigned from, const struct sockaddr_storage *there,
			int *fd)
{
	struct sockaddr_storage here;

	hca_gid_address(&p->list[from].gid, &here);
	return hca_socket_connect(there, &here, p->list[from].index, fd);
}

/* A process that shares the port is stopped, perhaps: the kernel there may give the next call to another. */
static void call_again(const struct softhca_probe *p, struct end *e)
{
	int fd, rc = call_connect(p, e->net, &e->there, &fd);

	e->again_ns = 0;
	if (rc && rc != -EINPROGRESS)
		return;
	if (e->fd >= 0)
		hca_socket_close(e->fd);
	e->fd = fd;
	e->stage = STAGE_CONNECT;
}

/*
 * A process that shares the port has ended, and the kernel has reset what its listener had not accepted.
 * False: the refusal is one of the host.
 */
static bool waits_for_another(const struct softhca_probe *p, struct end *e, int rc)
{
	if ((rc != -ECONNRESET && rc != -ECONNREFUSED && rc != -EPIPE) || e->have || !is_shared(p, &e->there))
		return false;
	hca_socket_close(e->fd);
	e->fd = -1;
	e->refusal = rc;
	e->again_ns = rg_now_ns() + REFUSED_NS;
	return true;
}

/* 1: the call has ended; 0: not yet; -errno: it has failed. */
static int caller_step(const struct softhca_probe *p, struct end *e)
{
	ssize_t n;
	int rc;

	if (e->fd < 0)
		return 0;
	if (e->stage == STAGE_CONNECT) {
		rc = greet(p, e, VERDICT_NONE, UINT8_MAX);
		if (rc)
			return rc == -EAGAIN ? 0 : rc;
		e->stage = STAGE_GREETED;
		if (is_shared(p, &e->there))
			e->again_ns = rg_now_ns() + HEDGE_NS;
	}
	if (e->stage == STAGE_GREETED) {
		n = hca_socket_fill(e->fd, e->in, HCA_GREETING_BYTES, &e->have);
		if (n <= 0 || e->have < HCA_GREETING_BYTES)
			return n < 0 ? (int)n : 0;
		rc = answer_arrives(p, e);
		if (rc)
			return rc;
	}
	rc = hca_packets_step(&e->packets, e->fd);
	if (rc <= 0)
		return rc;
	return call_ends(e, e->packets.last || hca_packets_shrank(&e->packets, e->fd) ? SOFTHCA_PROBE_MTU : SOFTHCA_PROBE_PASSED,
			 UINT8_MAX);
}

/* ---- The callee's side --------------------------------------------------- */

static enum verdict verdict_of(const struct softhca_probe *p, const struct end *e, uint8_t *through)
{
	const struct softhca_net *called = &p->list[e->net];
	unsigned index = hca_socket_arrived_on(e->fd, hca_gid_is_ipv4(&called->gid)), i;

	*through = UINT8_MAX;
	if (!index || index == called->index)
		return VERDICT_HERE;
	for (i = 0; i < p->count && *through == UINT8_MAX; i++)
		if (p->list[i].index == index)
			*through = (uint8_t)i;
	return VERDICT_CROSSED;
}

/* The verdict goes out as the packet came, whatever interface this is. */
static int greeting_arrives(const struct softhca_probe *p, struct end *e)
{
	enum verdict verdict;
	struct greeting g;
	uint8_t through;
	int rc;

	if (!greeting_read(e->in, &g) || g.job != p->job)
		return -EPROTO;
	verdict = verdict_of(p, e, &through);
	rc = verdict == VERDICT_HERE ? hca_socket_stay(e->fd, p->list[e->net].index) : 0;
	if (rc == -EXDEV) {
		verdict = VERDICT_ASTRAY;
		rc = 0;
	}
	if (!rc)
		rc = greet(p, e, verdict, through);
	if (rc)
		return rc;
	if (verdict == VERDICT_HERE)
		packets_begin(p, e, g.mtu);
	else
		e->stage = STAGE_ENDS;
	return 0;
}

/* To another process that shares the port: 1. */
static int hand_over(struct softhca_probe *p, const struct end *e, const unsigned char group[HCA_HASH_BYTES])
{
	struct hca_handover h = { .fd = e->fd, .times = 1, .bytes = e->have };

	if (p->handovers.listener < 0 || e->times)
		return -EPROTO;
	memcpy(h.begin, e->in, e->have);
	return hca_handover_to_any(&p->search, group, &h, rg_now_ns()) ? -EPROTO : 1;
}

static int greeting_step(struct softhca_probe *p, struct end *e)
{
	const size_t most = hca_greeting_is_likely(e->in, e->have) ? HCA_GREETING_BYTES : HCA_HELLO_BYTES;
	const ssize_t n = e->have < most ? hca_socket_fill(e->fd, e->in, most, &e->have) : 0;
	unsigned char group[HCA_HASH_BYTES];
	int rc;

	if (n < 0)
		return (int)n;
	rc = hca_handover_group(e->in, e->have, group);
	if (rc)
		return rc == -EAGAIN ? 0 : rc;
	if (memcmp(group, p->group, sizeof(group)) != 0)
		return hand_over(p, e, group);
	return greeting_arrives(p, e);
}

static int callee_step(struct softhca_probe *p, struct end *e)
{
	unsigned char shrank;
	int rc;

	if (e->stage == STAGE_GREETED) {
		rc = greeting_step(p, e);
		if (rc || e->stage == STAGE_GREETED)
			return rc;
	}
	if (e->stage == STAGE_PACKETS) {
		rc = hca_packets_step(&e->packets, e->fd);
		if (rc <= 0)
			return rc;
		shrank = hca_packets_shrank(&e->packets, e->fd);
		rc = hca_socket_send(e->fd, &shrank, 1);
		if (rc)
			return rc;
		e->stage = STAGE_ENDS;
	}
	e->packets.to_read = 1;
	return hca_packets_read(&e->packets, e->fd);
}

/* ---- Ends ---------------------------------------------------------------- */

static struct end *end_add(struct softhca_probe *p, int fd, unsigned net)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->fd = fd;
	e->net = net;
	e->due_ns = rg_now_ns() + PATIENCE_NS;
	e->next = p->end;
	p->end = e;
	return e;
}

static void end_free(struct softhca_probe *p, struct end **at)
{
	struct end *e = *at;

	*at = e->next;
	*(e->caller ? &p->calls : &p->incoming) -= 1;
	if (e->fd >= 0)
		hca_socket_close(e->fd);
	free(e);
}

static bool end_is_done(struct softhca_probe *p, struct end *e, uint64_t now_ns)
{
	int rc = e->caller ? caller_step(p, e) : callee_step(p, e);

	if (rc < 0 && e->caller && waits_for_another(p, e, rc))
		rc = 0;
	if (rc == 0 && rg_reached(e->due_ns, now_ns))
		rc = e->fd < 0 ? e->refusal : -ETIMEDOUT;
	if (rc == 0 && e->again_ns && !e->have && rg_reached(e->again_ns, now_ns))
		call_again(p, e);
	if (rc < 0 && e->caller)
		call_ends(e, code_of(e, rc), UINT8_MAX);
	return rc != 0;
}

/* The oldest connection that has said nothing goes for a new one. */
static void incoming_drop(struct softhca_probe *p)
{
	struct end **at, **oldest = NULL;

	for (at = &p->end; *at; at = &(*at)->next)
		if (!(*at)->caller && (*at)->stage == STAGE_GREETED)
			oldest = at;
	if (oldest)
		end_free(p, oldest);
}

static struct end *callee_add(struct softhca_probe *p, int fd, unsigned net)
{
	struct end *e;

	if (p->incoming >= INCOMING_MAX)
		incoming_drop(p);
	e = end_add(p, fd, net);
	if (!e) {
		hca_socket_close(fd);
		return NULL;
	}
	e->stage = STAGE_GREETED;
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
	struct end *e;
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
	struct end **at = &p->end;
	uint64_t now_ns = rg_now_ns();
	unsigned i;

	for (i = 0; i < p->count; i++)
		if (p->listener[i] >= 0)
			accept_all(p, i);
	take_all(p);
	while (*at) {
		if (end_is_done(p, *at, now_ns))
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
	struct end *e;
	int rc, fd;

	*result = (struct softhca_probed){ SOFTHCA_PROBE_NONE, UINT8_MAX };
	hca_gid_address(&to->gid, &there);
	hca_address_port_set(&there, to->port);
	rc = hca_rtnetlink_route(&p->list[from].gid, &to->gid, p->list[from].index);
	if (!rc)
		rc = call_connect(p, from, &there, &fd);
	if (rc && rc != -EINPROGRESS) {
		result->code = (uint8_t)code_of(&(struct end){ .stage = STAGE_CONNECT }, rc);
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
