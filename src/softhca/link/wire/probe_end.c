/*
 * probe_end.c - one connection of a probe, at its caller and at its callee.
 *
 * Both exchange a greeting each: magic, job, host, MTU; the callee's has a verdict.
 * Then each sends full packets, and the callee at last one byte: are its packets as long as at the
 * begin?  Full packets that vanish leave the connection without progress until the limit.
 */
#include <errno.h>
#include <string.h>

#include "softhca/base/gid.h"
#include "softhca/link/wire/bytes.h"
#include "softhca/link/wire/ports.h"
#include "softhca/link/wire/probe_state.h"
#include "softhca/link/wire/socket.h"

#define HEDGE_NS 300000000u		/* for a process that shares its port to answer */
#define REFUSED_NS 50000000u		/* until a shared port that has refused is called again */

enum verdict { VERDICT_NONE, VERDICT_HERE, VERDICT_CROSSED, VERDICT_ASTRAY };

struct greeting {
	uint64_t job;
	uint8_t host[16];
	uint32_t mtu;
	uint8_t verdict, through;
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

static uint32_t mtu_of(const struct softhca_probe *p, const struct hca_probe_end *e)
{
	return p->list[e->net].mtu < HCA_PACKETS_MTU_MAX ? p->list[e->net].mtu : HCA_PACKETS_MTU_MAX;
}

static int greet(const struct softhca_probe *p, const struct hca_probe_end *e, enum verdict verdict,
		 uint8_t through)
{
	struct greeting g = { .job = p->job, .mtu = mtu_of(p, e), .verdict = (uint8_t)verdict,
			      .through = through };
	unsigned char out[HCA_GREETING_BYTES];

	memcpy(g.host, p->host, sizeof(g.host));
	greeting_write(out, &g);
	return hca_socket_send(e->fd, out, sizeof(out));
}

static void packets_begin(const struct softhca_probe *p, struct hca_probe_end *e, uint32_t peer_mtu)
{
	hca_packets_begin(&e->packets, e->fd, mtu_of(p, e), peer_mtu, e->caller);
	e->stage = HCA_PROBE_PACKETS;
}

/* ---- The caller's side --------------------------------------------------- */

enum softhca_probe_code hca_probe_code_of(enum hca_probe_stage stage, int rc)
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
		return stage == HCA_PROBE_PACKETS ? SOFTHCA_PROBE_MTU : SOFTHCA_PROBE_SILENT;
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

static int call_ends(const struct hca_probe_end *e, enum softhca_probe_code code, uint8_t through)
{
	*e->result = (struct softhca_probed){ (uint8_t)code, through };
	return 1;
}

static int answer_arrives(const struct softhca_probe *p, struct hca_probe_end *e)
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

int hca_probe_connect(const struct softhca_probe *p, unsigned from, const struct sockaddr_storage *there,
			int *fd)
{
	struct sockaddr_storage here;

	hca_gid_address(&p->list[from].gid, &here);
	return hca_socket_connect(there, &here, p->list[from].index, fd);
}

/* A process that shares the port is stopped, perhaps: the kernel there may give the next call to another. */
static void call_again(const struct softhca_probe *p, struct hca_probe_end *e)
{
	int fd, rc = hca_probe_connect(p, e->net, &e->there, &fd);

	e->again_ns = 0;
	if (rc && rc != -EINPROGRESS)
		return;
	if (e->fd >= 0)
		hca_socket_close(e->fd);
	e->fd = fd;
	e->stage = HCA_PROBE_CONNECT;
}

/*
 * A process that shares the port has ended, and the kernel has reset what its listener had not accepted.
 * False: the refusal is one of the host.
 */
static bool waits_for_another(const struct softhca_probe *p, struct hca_probe_end *e, int rc)
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
static int caller_step(const struct softhca_probe *p, struct hca_probe_end *e)
{
	ssize_t n;
	int rc;

	if (e->fd < 0)
		return 0;
	if (e->stage == HCA_PROBE_CONNECT) {
		rc = greet(p, e, VERDICT_NONE, UINT8_MAX);
		if (rc)
			return rc == -EAGAIN ? 0 : rc;
		e->stage = HCA_PROBE_GREETED;
		if (is_shared(p, &e->there))
			e->again_ns = rg_now_ns() + HEDGE_NS;
	}
	if (e->stage == HCA_PROBE_GREETED) {
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

static enum verdict verdict_of(const struct softhca_probe *p, const struct hca_probe_end *e, uint8_t *through)
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
static int greeting_arrives(const struct softhca_probe *p, struct hca_probe_end *e)
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
		e->stage = HCA_PROBE_ENDS;
	return 0;
}

/* To another process that shares the port: 1. */
static int hand_over(struct softhca_probe *p, const struct hca_probe_end *e, const unsigned char group[HCA_HASH_BYTES])
{
	struct hca_handover h = { .fd = e->fd, .times = 1, .bytes = e->have };

	if (p->handovers.listener < 0 || e->times)
		return -EPROTO;
	memcpy(h.begin, e->in, e->have);
	return hca_handover_to_any(&p->search, group, &h, rg_now_ns()) ? -EPROTO : 1;
}

static int greeting_step(struct softhca_probe *p, struct hca_probe_end *e)
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

static int callee_step(struct softhca_probe *p, struct hca_probe_end *e)
{
	unsigned char shrank;
	int rc;

	if (e->stage == HCA_PROBE_GREETED) {
		rc = greeting_step(p, e);
		if (rc || e->stage == HCA_PROBE_GREETED)
			return rc;
	}
	if (e->stage == HCA_PROBE_PACKETS) {
		rc = hca_packets_step(&e->packets, e->fd);
		if (rc <= 0)
			return rc;
		shrank = hca_packets_shrank(&e->packets, e->fd);
		rc = hca_socket_send(e->fd, &shrank, 1);
		if (rc)
			return rc;
		e->stage = HCA_PROBE_ENDS;
	}
	e->packets.to_read = 1;
	return hca_packets_read(&e->packets, e->fd);
}

/* ---- Both ---------------------------------------------------------------- */

bool hca_probe_end_is_done(struct softhca_probe *p, struct hca_probe_end *e, uint64_t now_ns)
{
	int rc = e->caller ? caller_step(p, e) : callee_step(p, e);

	if (rc < 0 && e->caller && waits_for_another(p, e, rc))
		rc = 0;
	if (rc == 0 && rg_reached(e->due_ns, now_ns))
		rc = e->fd < 0 ? e->refusal : -ETIMEDOUT;
	if (rc == 0 && e->again_ns && !e->have && rg_reached(e->again_ns, now_ns))
		call_again(p, e);
	if (rc < 0 && e->caller)
		call_ends(e, hca_probe_code_of(e->stage, rc), UINT8_MAX);
	return rc != 0;
}
