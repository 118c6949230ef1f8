/*
 * port_probe.c - do datagrams pass between the ports of each rail?  Cables may be crossed, a VLAN or a
 * filter may be in the way: ports of one network need not reach each other.
 *
 * A process of each host has a datagram queue pair for each of its rails.  First each rail by
 * itself, between all hosts, of many hosts to the hosts 1, 2, 4, ... further on: on nearly every cluster
 * nothing is missing, and the probe is over.  Else from each port to each one of some hosts, and back:
 * ports between which anything is lost are no rail (port_choice.h).  Those hosts are the reference
 * (choice.ref), by which crossed cables show; where it lacks nothing, those at the ends of what is
 * missing.
 *
 * A port whose adapter fails meanwhile, or that goes DOWN, is told as that, by its own host.
 *
 * No datagram is answered.  Between rounds all hosts meet, so that a datagram that has not come by the
 * end of the last one is lost, and not late.  Each is sent several times.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/common.h"
#include "rail/open/rail_ctx.h"
#include "rail/open/wanted.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/random.h"
#include "verbs/vrb.h"

enum {
	PROBE_SENDS = 8, PROBE_RECEIVES = 192,	/* or as many receives as the device has */
	PROBE_STRIDE = VRB_GRH_BYTES + 24,
	PROBE_TIMES = 4,		/* in a round */
	PROBE_STEPS = 32,		/* hosts that each one sends to, rail by rail */
	PROBE_MARKED = 64,		/* hosts whose ports are tried with all others' */
	PROBE_MARKED_PAIRS = 64 * 1024,	/* such hosts x all */
	PROBE_BATCH = 16,
	PROBE_UNKNOWN = 8,		/* address handles that fail; then none to unlike rails */
	PROBE_SENT_NS = 20000000,
};

/* A host, as the others need it. */
struct probe_address {
	uint64_t cookie;		/* datagrams to this host carry it */
	uint32_t rails, pad;		/* 0: it cannot probe */
	struct vrb_ud_address at[RAIL_MAX];
};

_Static_assert(sizeof(struct probe_address) <= RAIL_PROBE_BYTES, "an address fits");

struct datagram {
	uint64_t cookie;
	uint32_t host, rail;		/* the sender's */
};

struct probe_rail {
	struct rail_prober *prober;
	struct vrb_adapter *adapter;
	struct vrb_port *port;
	struct vrb_ud ud;
	unsigned char *memory;
	struct ibv_mr *mr;
	uint32_t receives;
	uint32_t out;			/* requests to send under way */
	uint32_t came;			/* from the host step(i) before this one, over this rail: bit i */
	enum ibv_event_type failed;	/* DEVICE_FATAL, PORT_ERR; 0: neither */
};

struct rail_prober {
	unsigned hosts, mine, ref;
	int rails, adapters;
	uint64_t cookie;
	struct vrb_ports ports;
	struct vrb_adapter adapter[RAIL_MAX];
	bool events[RAIL_MAX];		/* of the adapter, can be read */
	struct probe_rail rail[RAIL_MAX];
	struct probe_address *address;	/* [hosts] */
	bool pairs;			/* between unlike rails, too */
	unsigned char *marked;		/* [hosts]: with these */
	/* Rails of this host that a host's rail has reached. */
	uint32_t (*heard)[RAIL_MAX];	/* [hosts] */
	/*
	 * Rails of a host to which a rail of this host has no address handle.  Each took a second, where
	 * the kernel asks in vain for a hardware address.
	 */
	uint32_t (*unknown)[RAIL_MAX];	/* [hosts] */
	unsigned unknowns;
};

/* ---- Queue pairs ----------------------------------------------------------- */

static int adapter_find(struct rail_prober *p, const struct vrb_port *port, struct vrb_adapter **out)
{
	int rc;

	for (int a = 0; a < p->adapters; a++)
		if (p->adapter[a].context->device == port->device) {
			*out = &p->adapter[a];
			return 0;
		}
	rc = vrb_adapter_open(&p->adapter[p->adapters], port);
	if (rc)
		return rc;
	*out = &p->adapter[p->adapters];
	p->events[p->adapters++] = !vrb_events_open(*out);
	return 0;
}

static int receive(struct probe_rail *r, uint64_t which)
{
	return vrb_ud_receive(&r->ud, which, r->memory + which * PROBE_STRIDE, PROBE_STRIDE, r->mr->lkey);
}

static int rail_fill(struct probe_rail *r)
{
	const size_t bytes = (size_t)(PROBE_RECEIVES + PROBE_SENDS) * PROBE_STRIDE;
	int rc;

	r->memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	rc = r->memory ? vrb_mr_register(r->adapter, r->memory, bytes, VRB_MR_BULK, &r->mr) : -ENOMEM;
	for (uint64_t i = 0; i < r->receives && !rc; i++)
		rc = receive(r, i);
	return rc;
}

static uint32_t receives_of(const struct ibv_device_attr *device)
{
	int most = PROBE_RECEIVES;

	most = device->max_qp_wr < most ? device->max_qp_wr : most;
	most = device->max_cqe - PROBE_SENDS < most ? device->max_cqe - PROBE_SENDS : most;
	return most > 0 ? (uint32_t)most : 1;
}

static int rail_make(struct rail_prober *p, const struct rail_settings *set, const struct rail_hosts *h,
		     int rail)
{
	struct probe_rail *r = &p->rail[rail];
	struct vrb_port_wish wish;
	int rc;

	r->prober = p;
	r->port = rail_hosts_port(h, &p->ports, (unsigned)rail);
	rc = r->port ? rail_port_wish(set, r->port, &wish) : -ENODEV;
	if (rc)
		return rc;
	wish.gid_index = -1;
	wish.pkey = 0;
	rc = vrb_port_configure(r->port, &wish);
	if (rc)
		return rc;
	rail_hosts_port_use(h, (unsigned)rail, r->port);
	rc = adapter_find(p, r->port, &r->adapter);
	if (!rc) {
		r->receives = receives_of(&r->adapter->attr);
		rc = vrb_ud_create(r->adapter, r->port, PROBE_SENDS, r->receives, &r->ud);
	}
	return rc ? rc : rail_fill(r);
}

void rail_probe_close(struct rail_prober *p)
{
	if (!p)
		return;
	for (int r = 0; r < p->rails; r++) {
		vrb_ud_destroy(&p->rail[r].ud);
		vrb_mr_deregister(p->rail[r].mr);
		free(p->rail[r].memory);
	}
	for (int a = 0; a < p->adapters; a++)
		vrb_adapter_close(&p->adapter[a]);
	vrb_ports_free(&p->ports);
	free(p->address);
	free(p->marked);
	free(p->heard);
	free(p->unknown);
	free(p);
}

static int rails_make(struct rail_prober *p, const struct rail_settings *set, const struct rail_hosts *h)
{
	int rc = vrb_ports_scan_real(ibv_get_device_list(NULL), &p->ports);

	for (int r = 0; r < (int)h->choice.rails && !rc; r++) {
		p->rails = r + 1;
		rc = rail_make(p, set, h, r);
	}
	return rc;
}

static struct rail_prober *prober_make(const struct rail_settings *set, const struct rail_hosts *h)
{
	struct rail_prober *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->hosts = h->hosts;
	p->mine = h->mine;
	p->ref = h->choice.ref;
	p->cookie = rg_random();
	p->address = calloc(p->hosts, sizeof(*p->address));
	p->marked = calloc(p->hosts, sizeof(*p->marked));
	p->heard = calloc(p->hosts, sizeof(*p->heard));
	p->unknown = calloc(p->hosts, sizeof(*p->unknown));
	if (p->address && p->marked && p->heard && p->unknown && !rails_make(p, set, h))
		return p;
	rail_probe_close(p);
	return NULL;
}

/* Another port could take the place of one that does not reach the others. */
static bool has_choice(const struct choice *c)
{
	if (c->rails > 1)
		return true;
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned p = 0; p < c->host[h]->count; p++)
			switch (c->left[h][p].why) {
			case CHOICE_USED:
			case CHOICE_STATE:
			case CHOICE_TRANSPORT:
			case CHOICE_NO_GID:
				break;
			default:
				return true;
			}
	return false;
}

struct rail_prober *rail_probe_open(const struct rail_settings *set, const struct rail_hosts *h,
				    unsigned char address[RAIL_PROBE_BYTES])
{
	struct probe_address a = { .rails = 0 };
	struct rail_prober *p;

	memset(address, 0, RAIL_PROBE_BYTES);
	if (h->hosts < 2 || h->choice.named || !has_choice(&h->choice))
		return NULL;
	for (unsigned r = 0; r < h->choice.rails; r++)
		if (h->choice.pairwise[r])
			return NULL;
	/* The reason why there is no queue pair is told where the rails are opened. */
	rg_errors_hold();
	p = prober_make(set, h);
	rg_errors_release(false);
	if (!p)
		return NULL;
	a.cookie = p->cookie;
	a.rails = (uint32_t)p->rails;
	for (int r = 0; r < p->rails; r++)
		vrb_ud_address(&p->rail[r].ud, p->rail[r].port, &a.at[r]);
	memcpy(address, &a, sizeof(a));
	return p;
}

bool rail_probe_start(struct rail_prober *p, const unsigned char *addresses)
{
	for (unsigned h = 0; h < p->hosts; h++) {
		memcpy(&p->address[h], addresses + (size_t)h * RAIL_PROBE_BYTES, sizeof(p->address[h]));
		if (p->address[h].rails != (uint32_t)p->rails)
			return false;
	}
	return true;
}

/* ---- Datagrams --------------------------------------------------------------- */

/* How much further on the i-th host is that each one sends to; 0: there is no such. */
static unsigned step(const struct rail_prober *p, unsigned i)
{
	const uint64_t far = p->hosts <= PROBE_STEPS + 1 ? i + 1 : UINT64_C(1) << i;

	return i < PROBE_STEPS && far < p->hosts ? (unsigned)far : 0;
}

static unsigned before(const struct rail_prober *p, unsigned i)
{
	return (p->mine + p->hosts - step(p, i)) % p->hosts;
}

static void came_from(struct probe_rail *r, const struct datagram *d)
{
	struct rail_prober *p = r->prober;
	const uint32_t rail = (uint32_t)(r - p->rail);

	if (d->cookie != p->cookie || d->host >= p->hosts || d->rail >= (uint32_t)p->rails)
		return;
	for (unsigned i = 0; step(p, i) && d->rail == rail; i++)
		if (d->host == before(p, i))
			r->came |= UINT32_C(1) << i;
	p->heard[d->host][d->rail] |= UINT32_C(1) << rail;
}

static void rail_poll(struct probe_rail *r)
{
	struct ibv_wc wc[PROBE_BATCH];
	struct datagram d;
	int n;

	while ((n = ibv_poll_cq(r->ud.cq, PROBE_BATCH, wc)) > 0)
		for (int i = 0; i < n; i++) {
			if (wc[i].wr_id >= PROBE_RECEIVES) {
				r->out--;
				continue;
			}
			if (wc[i].status == IBV_WC_SUCCESS && wc[i].byte_len == VRB_GRH_BYTES + sizeof(d)) {
				memcpy(&d, r->memory + wc[i].wr_id * PROBE_STRIDE + VRB_GRH_BYTES, sizeof(d));
				came_from(r, &d);
			}
			receive(r, wc[i].wr_id);
		}
}

static void rails_poll(struct rail_prober *p)
{
	for (int r = 0; r < p->rails; r++)
		rail_poll(&p->rail[r]);
}

/* From a rail of this host to one of another. */
static void send_to(struct rail_prober *p, int rail, unsigned host, int to, uint64_t until_ns)
{
	struct probe_rail *r = &p->rail[rail];
	unsigned char *at = r->memory + (size_t)PROBE_RECEIVES * PROBE_STRIDE;
	const struct vrb_ud_address *address = &p->address[host].at[to];
	struct datagram d = { p->address[host].cookie, p->mine, (uint32_t)rail };
	struct ibv_ah *ah;

	if (p->unknown[host][rail] >> to & 1 || (rail != to && p->unknowns >= PROBE_UNKNOWN))
		return;
	if (vrb_ud_way(r->adapter, r->port, address, &ah)) {
		p->unknown[host][rail] |= UINT32_C(1) << to;
		p->unknowns++;
		return;
	}
	memcpy(at, &d, sizeof(d));
	if (!vrb_ud_send(&r->ud, ah, address->qpn, PROBE_RECEIVES, at, sizeof(d), r->mr->lkey))
		r->out++;
	/* The buffer and the address handle are the next one's, also when the round is over. */
	if (rg_reached(until_ns, rg_now_ns() + PROBE_SENT_NS))
		until_ns = rg_now_ns() + PROBE_SENT_NS;
	while (r->out && !rg_reached(until_ns, rg_now_ns()))
		rails_poll(p);
	ibv_destroy_ah(ah);
}

static void send_rails(struct rail_prober *p, uint64_t until_ns)
{
	for (unsigned i = 0; step(p, i); i++)
		for (int r = 0; r < p->rails; r++)
			send_to(p, r, (unsigned)((p->mine + (uint64_t)step(p, i)) % p->hosts), r, until_ns);
}

static bool is_tried_with(const struct rail_prober *p, unsigned h)
{
	return h != p->mine && (p->marked[h] || p->marked[p->mine]);
}

/* Nothing has come from a rail of host h to these rails of this host. */
static uint32_t unheard(const struct rail_prober *p, unsigned h, int rail)
{
	return ~p->heard[h][rail] & ((UINT32_C(1) << p->rails) - 1);
}

static bool rail_misses(const struct rail_prober *p, unsigned h)
{
	for (int r = 0; r < p->rails; r++)
		if (unheard(p, h, r) >> r & 1)
			return true;
	return false;
}

enum pass { PASS_RAILS, PASS_MISSING, PASS_OTHERS, PASSES };

static bool is_of_pass(const struct rail_prober *p, enum pass pass, unsigned h, int rail, int to)
{
	return rail == to ? pass == PASS_RAILS : pass == (rail_misses(p, h) ? PASS_MISSING : PASS_OTHERS);
}

/* Each rail by itself; a turn later also unlike ones, first with hosts from which a rail is missing. */
static void send_pairs(struct rail_prober *p, uint64_t turn, uint64_t until_ns)
{
	for (enum pass pass = 0; pass < (turn ? PASSES : PASS_MISSING); pass++)
		for (unsigned h = 0; h < p->hosts; h++)
			for (int r = 0; r < p->rails && is_tried_with(p, h); r++)
				for (int to = 0; to < p->rails; to++)
					if (is_of_pass(p, pass, h, r, to))
						send_to(p, r, h, to, until_ns);
}

static bool rails_miss(const struct rail_prober *p)
{
	for (int r = 0; r < p->rails; r++)
		for (unsigned i = 0; step(p, i); i++)
			if (!(p->rail[r].came >> i & 1))
				return true;
	return false;
}

static bool pairs_miss(const struct rail_prober *p)
{
	for (unsigned h = 0; h < p->hosts; h++)
		for (int r = 0; r < p->rails && is_tried_with(p, h); r++)
			if (unheard(p, h, r))
				return true;
	return false;
}

static void rails_poll_until(struct rail_prober *p, uint64_t ns)
{
	while (!rg_reached(ns, rg_now_ns())) {
		rails_poll(p);
		rg_yield();
	}
}

/* Does the turn send all that there is?  A late host has heard all before it has sent anything. */
static bool sends_all(const struct rail_prober *p, uint64_t turn)
{
	return !p->pairs || turn || p->rails == 1;
}

bool rail_probe_round(struct rail_prober *p, uint64_t most_ns)
{
	const uint64_t begin_ns = rg_now_ns(), turn_ns = most_ns / PROBE_TIMES;

	for (uint64_t turn = 0; turn < PROBE_TIMES; turn++) {
		const uint64_t until_ns = begin_ns + turn_ns * (turn + 1);

		/* A host has room for some datagrams: the others send one after the other. */
		if (p->pairs)
			rails_poll_until(p, until_ns - turn_ns + turn_ns / 2 * p->mine / p->hosts);
		if (p->pairs)
			send_pairs(p, turn, begin_ns + most_ns);
		else
			send_rails(p, begin_ns + most_ns);
		do {
			rails_poll(p);
			if (sends_all(p, turn) && !(p->pairs ? pairs_miss(p) : rails_miss(p)))
				return false;
			rg_yield();
		} while (!rg_reached(until_ns, rg_now_ns()));
	}
	return true;
}

void rail_probe_suspects(const struct rail_prober *p, unsigned char *marked)
{
	for (int r = 0; r < p->rails; r++)
		for (unsigned i = 0; step(p, i); i++)
			if (!(p->rail[r].came >> i & 1))
				marked[before(p, i)] = marked[p->mine] = 1;
}

void rail_probe_pairs(struct rail_prober *p, const unsigned char *marked)
{
	unsigned left = PROBE_MARKED_PAIRS / p->hosts;

	left = left < 1 ? 1 : left > PROBE_MARKED ? PROBE_MARKED : left;
	p->pairs = true;
	for (unsigned h = 0; h < p->hosts; h++) {
		p->marked[h] = left && (marked ? marked[h] : h == p->ref);
		left -= p->marked[h];
	}
}

/* ---- Losses ------------------------------------------------------------------ */

/* The ports of an adapter that has failed are DOWN as well. */
static void event_note(struct rail_prober *p, const struct vrb_adapter *adapter,
		       const struct vrb_event *event)
{
	for (int r = 0; r < p->rails; r++)
		if (p->rail[r].adapter == adapter && p->rail[r].failed != IBV_EVENT_DEVICE_FATAL &&
		    (event->type == IBV_EVENT_DEVICE_FATAL ||
		     (event->type == IBV_EVENT_PORT_ERR && event->port == p->rail[r].port->number)))
			p->rail[r].failed = event->type;
}

/* A port that goes DOWN before its adapter is open here has no event. */
static void failures_read(struct rail_prober *p)
{
	struct vrb_event event;

	for (int a = 0; a < p->adapters; a++)
		while (p->events[a] && vrb_event_next(&p->adapter[a], &event) == 0)
			event_note(p, &p->adapter[a], &event);
	for (int r = 0; r < p->rails; r++)
		if (!p->rail[r].failed &&
		    vrb_port_state_now(p->rail[r].adapter->context, p->rail[r].port) == IBV_PORT_DOWN)
			p->rail[r].failed = IBV_EVENT_PORT_ERR;
}

size_t rail_probe_lost(struct rail_prober *p, struct rail_loss *lost)
{
	size_t count = 0;

	rails_poll(p);		/* of hosts that had to wait for address handles */
	failures_read(p);
	for (int r = 0; r < p->rails; r++)
		if (p->rail[r].failed)
			lost[count++] = (struct rail_loss){ p->mine, p->mine, (uint32_t)r, p->rail[r].failed };
	for (unsigned h = 0; h < p->hosts; h++)
		for (int r = 0; r < p->rails && is_tried_with(p, h); r++)
			if (unheard(p, h, r))
				lost[count++] = (struct rail_loss){ h, p->mine, (uint32_t)r, unheard(p, h, r) };
	return count;
}
