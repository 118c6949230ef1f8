/* peers.c - see peers.h. */
#include "softhca/link/wire/peers.h"

#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/base/netif.h"
#include "softhca/link/wire/socket.h"
#include "softhca/object/fabric.h"
#include "util/clock.h"

enum { SPARE = 64 };			/* so many peers go at once when there are too many */
#define AGAIN_NS 100000000ull		/* between calls of a process that is not there yet */
#define STUCK_NS 5000000000ull		/* TCP needs so long to overcome losses */
#define FORGET_NS 10000000000ull	/* a peer that cannot be called */
#define TELL_NS 2000000000ull		/* refusals so long are told; librail waits for 3 s */

/* ---- The table; peers.lock held ------------------------------------------ */

static uint64_t hash(unsigned rail, const union ibv_gid *gid, uint32_t qpn)
{
	uint64_t words[2];

	memcpy(words, gid->raw, sizeof(words));
	return (words[0] ^ words[1] ^ qpn ^ (uint64_t)rail << 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static struct hca_wire_peer **bucket_of(struct hca_wire *wire, unsigned rail,
					const union ibv_gid *gid, uint32_t qpn)
{
	return &wire->peers.bucket[hash(rail, gid, qpn) & (HCA_WIRE_BUCKETS - 1)];
}

/* Peers with the same hash share a place: the last one called has it. */
static struct hca_wire_fate *fate_of(struct hca_wire *wire, unsigned rail, const union ibv_gid *gid,
				     uint32_t qpn)
{
	return &wire->peers.fate[hash(rail, gid, qpn) & (HCA_WIRE_FATES - 1)];
}

static void fate_put(const struct hca_wire_peer *p, enum hca_fate fate, bool stuck)
{
	*fate_of(p->wire, p->rail, &p->gid, p->qpn) =
		(struct hca_wire_fate){ p->gid, p->qpn, p->rail, fate, stuck };
}

static bool is_stuck(const struct hca_wire_peer *p)
{
	const struct hca_wire_fate *f = fate_of(p->wire, p->rail, &p->gid, p->qpn);

	return f->stuck && f->qpn == p->qpn && f->rail == p->rail &&
	       memcmp(&f->gid, &p->gid, sizeof(f->gid)) == 0;
}

/* A new connection says nothing of packets that the path does not pass. */
static void fate_keep(const struct hca_wire_peer *p, enum hca_fate fate)
{
	if (fate != HCA_FATE_ALIVE || !is_stuck(p))
		fate_put(p, fate, false);
}

static bool is_peer(const struct hca_wire_peer *p, unsigned rail, const union ibv_gid *gid,
		    uint32_t qpn)
{
	return p->qpn == qpn && p->rail == rail && memcmp(&p->gid, gid, sizeof(*gid)) == 0;
}

static void link_newest(struct hca_wire_peer *p)
{
	struct hca_wire_peers *all = &p->wire->peers;

	p->newer = NULL;
	p->older = all->newest;
	*(p->older ? &p->older->newer : &all->oldest) = p;
	all->newest = p;
}

static void unlink_by_use(struct hca_wire_peer *p)
{
	struct hca_wire_peers *all = &p->wire->peers;

	*(p->older ? &p->older->newer : &all->oldest) = p->newer;
	*(p->newer ? &p->newer->older : &all->newest) = p->older;
}

void hca_wire_peer_used(struct hca_wire_peer *p)
{
	if (!p->newer)
		return;
	unlink_by_use(p);
	link_newest(p);
}

static struct hca_wire_peer *peer_add(struct hca_wire *wire, unsigned rail,
				      const union ibv_gid *gid, uint32_t qpn)
{
	struct hca_wire_peer **bucket = bucket_of(wire, rail, gid, qpn), *p = calloc(1, sizeof(*p));

	if (!p || hca_stream_open(&p->stream, -1)) {
		free(p);
		return NULL;
	}
	p->source = HCA_WIRE_PEER;
	p->wire = wire;
	p->gid = *gid;
	p->qpn = qpn;
	p->rail = rail;
	p->since_ns = rg_now_ns();
	p->next = *bucket;
	*bucket = p;
	link_newest(p);
	atomic_fetch_add(&wire->peers.count, 1);
	return p;
}

void hca_wire_peer_remove(struct hca_wire_peer *p)
{
	struct hca_wire *wire = p->wire;
	struct hca_wire_peer **at = bucket_of(wire, p->rail, &p->gid, p->qpn);

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	unlink_by_use(p);
	atomic_fetch_sub(&wire->peers.count, 1);
	if (p->called && !p->open)
		hca_meet_cancel(wire->meet, p);
	hca_wire_unwatch(wire, &p->stream);
	hca_stream_close(&p->stream);
	p->source = HCA_WIRE_GONE;	/* an event that was taken may name it */
	p->next = wire->peers.gone;
	wire->peers.gone = p;
}

/* fabric.life held.  Room for a new one. */
static void make_room(struct hca_wire *wire, unsigned most)
{
	while (atomic_load(&wire->peers.count) > most)
		hca_wire_peer_remove(wire->peers.oldest);
}

struct hca_wire_peer *hca_wire_peer_for(struct hca_wire *wire, unsigned rail,
					const union ibv_gid *gid, uint32_t qpn, uint32_t from)
{
	struct hca_wire_peer *p = *bucket_of(wire, rail, gid, qpn);

	while (p && !is_peer(p, rail, gid, qpn))
		p = p->next;
	if (p) {
		hca_wire_peer_used(p);
		return p;
	}
	atomic_store(&wire->peers.look_ns, 0);
	if (atomic_load(&wire->peers.count) >= HCA_WIRE_PEERS_MAX)
		return NULL;
	p = peer_add(wire, rail, gid, qpn);
	if (p)
		p->from = from;
	return p;
}

/* ---- Streams; fabric.life held ------------------------------------------- */

static bool peer_open(struct hca_wire_peer *p, int fd)
{
	p->stream.fd = fd;
	p->open = hca_wire_watch(p->wire, fd, p);
	return p->open;
}

static void peer_call(struct hca_wire_peer *p)
{
	struct hca_hello h = { .kind = HCA_MEET_DATAGRAMS, .source_qpn = p->from,
			       .target_qpn = p->qpn, .target = p->gid };

	p->called = !hca_wire_call(p->wire, p->rail, &h, p);
	if (!p->called)
		p->again_ns = rg_now_ns() + AGAIN_NS;
}

/* A peer without a stream, perhaps younger than the time: when to look again, or UINT64_MAX. */
static uint64_t peer_look(struct hca_wire_peer *p, uint64_t now_ns)
{
	if (rg_reached(p->since_ns + FORGET_NS, now_ns)) {
		hca_wire_peer_remove(p);
		return UINT64_MAX;
	}
	if (rg_reached(p->again_ns, now_ns))
		peer_call(p);
	return p->called ? UINT64_MAX : p->again_ns;
}

/*
 * An open stream: packets that are sent again and again keep all datagrams after them.  Then it is closed,
 * and the next call tells whether the host answers.
 */
static uint64_t peer_look_at_life(struct hca_wire_peer *p, uint64_t now_ns)
{
	const struct linger dropped = { .l_onoff = 1 };
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(p->stream.fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		return UINT64_MAX;
	if (!info.tcpi_unacked || !info.tcpi_retransmits)
		p->stuck_ns = 0;
	else if (!p->stuck_ns)
		p->stuck_ns = now_ns;
	if (p->stream.out_total && !info.tcpi_unacked && is_stuck(p))
		fate_put(p, HCA_FATE_ALIVE, false);
	if (!p->stuck_ns || !rg_reached(p->stuck_ns + STUCK_NS, now_ns))
		return info.tcpi_unacked ? now_ns + HCA_WIRE_LIFE_NS : UINT64_MAX;
	fate_put(p, HCA_FATE_UNREACHED, true);
	setsockopt(p->stream.fd, SOL_SOCKET, SO_LINGER, &dropped, sizeof(dropped));
	hca_wire_peer_remove(p);
	return UINT64_MAX;
}

void hca_wire_peers_look(struct hca_wire *wire, uint64_t now_ns)
{
	struct hca_wire_peers *all = &wire->peers;
	struct hca_wire_peer *p, *older;
	uint64_t again_ns = UINT64_MAX, at_ns;

	hca_lock(&all->lock);
	if (atomic_load(&all->count) >= HCA_WIRE_PEERS_MAX)
		make_room(wire, HCA_WIRE_PEERS_MAX - SPARE);
	for (p = all->newest; p; p = older) {
		older = p->older;
		if (p->called)
			continue;
		at_ns = p->open ? peer_look_at_life(p, now_ns) : peer_look(p, now_ns);
		if (at_ns < again_ns)
			again_ns = at_ns;
	}
	atomic_store(&all->look_ns, again_ns);
	hca_unlock(&all->lock);
}

static unsigned rail_of(const struct hca_fabric *f, const union ibv_gid *gid)
{
	unsigned rail = 0;

	while (rail < f->spec.ports && memcmp(&f->netif[rail].gid, gid, sizeof(*gid)) != 0)
		rail++;
	return rail;
}

void hca_wire_peer_opened(struct hca_wire *wire, int fd, const struct hca_hello *h)
{
	const unsigned rail = rail_of(wire->fabric, &h->target);
	struct hca_wire_peer *p = NULL;

	hca_lock(&wire->peers.lock);
	make_room(wire, HCA_WIRE_PEERS_MAX - 1);
	if (rail < wire->fabric->spec.ports)
		p = peer_add(wire, rail, &h->source, h->source_qpn);
	if (!p) {
		hca_socket_close(fd);
	} else if (!peer_open(p, fd)) {
		hca_wire_peer_remove(p);
		p = NULL;
	}
	if (p)
		fate_keep(p, HCA_FATE_ALIVE);
	hca_unlock(&wire->peers.lock);
	if (p)
		hca_wire_peer_serve(p);
}

void hca_wire_peer_reached(struct hca_wire_peer *p, int fd)
{
	struct hca_wire *wire = p->wire;

	hca_lock(&wire->peers.lock);
	p->called = false;
	if (is_stuck(p))
		hca_wire_say_too_long(wire, p->rail, &p->gid, STUCK_NS);
	fate_keep(p, HCA_FATE_ALIVE);
	if (peer_open(p, fd))
		hca_stream_flush(&p->stream);
	else
		hca_wire_peer_remove(p);
	hca_unlock(&wire->peers.lock);
}

static enum hca_fate fate_by(int error)
{
	switch (error) {
	case ENOENT:
		return HCA_FATE_LEFT;
	case EBUSY:			/* stopped */
	case ECONNRESET:
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
		return HCA_FATE_ALIVE;
	default:
		return HCA_FATE_UNREACHED;
	}
}

/* A process may begin or end at this moment; a host that does not answer has had its time. */
static bool is_told(const struct hca_wire_peer *p, int error)
{
	return error == ETIMEDOUT ||
	       (fate_by(error) == HCA_FATE_UNREACHED && rg_reached(p->since_ns + TELL_NS, rg_now_ns()));
}

void hca_wire_peer_refused(struct hca_wire_peer *p, int error, const char *why)
{
	struct hca_wire *wire = p->wire;
	char text[HCA_WIRE_WHY_BYTES];

	hca_lock(&wire->peers.lock);
	p->called = false;
	fate_keep(p, fate_by(error));
	if (error == EACCES || error == EPROTONOSUPPORT || error == EINVAL || error == EXDEV) {
		hca_wire_say_refused(wire, p->rail, &p->gid, error, why);
		hca_wire_peer_remove(p);
	} else if (error == ENOENT) {
		hca_wire_peer_remove(p);	/* no process there has the number: its datagrams are lost */
	} else {
		if (is_told(p, error))
			hca_wire_say(wire, p->rail, &p->gid, HCA_WIRE_UNCONNECTED, "%s",
				     hca_wire_why(wire, p->rail, &p->gid, error, why, text));
		p->again_ns = rg_now_ns() + AGAIN_NS;
		hca_wire_look_at(&wire->peers.look_ns, p->again_ns);
	}
	hca_unlock(&wire->peers.lock);
}

enum hca_fate hca_wire_datagram_fate(struct hca_fabric *f, uint32_t port, const union ibv_gid *gid,
				     uint32_t qpn)
{
	struct hca_wire *wire = f->wire_state;
	enum hca_fate fate = HCA_FATE_ALIVE;
	const struct hca_wire_fate *last;

	hca_lock(&wire->peers.lock);
	last = fate_of(wire, port - 1, gid, qpn);
	if (last->qpn == qpn && last->rail == port - 1 && memcmp(&last->gid, gid, sizeof(*gid)) == 0)
		fate = last->fate;
	hca_unlock(&wire->peers.lock);
	return fate == HCA_FATE_ALIVE ? hca_wire_stream_fate(wire, port, gid, qpn) : fate;
}

void hca_wire_peers_sweep(struct hca_wire *wire)
{
	struct hca_wire_peer *p;

	while (wire->peers.gone) {
		p = wire->peers.gone;
		wire->peers.gone = p->next;
		free(p);
	}
}

void hca_wire_peers_free(struct hca_wire *wire)
{
	make_room(wire, 0);
	hca_wire_peers_sweep(wire);
}
