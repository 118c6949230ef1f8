/* port_choice_text.c - what the choice of ports leaves out, and why, for people. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "rail/open/port_choice.h"
#include "util/units.h"

enum { LINE = 832 };

typedef void line_fn(void *arg, const char *text);

static const char *layer_name(const struct choice_port *p)
{
	return p->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

static const struct choice_port *same_place(const struct choice_host *h, const struct choice_port *as)
{
	for (unsigned p = 0; p < h->count; p++)
		if (!strcmp(h->port[p].place, as->place))
			return &h->port[p];
	return NULL;
}

static bool has_live_gid(const struct choice_port *p)
{
	for (unsigned i = 0; i < p->tables.gids; i++)
		if (!p->tables.gid[i].dead)
			return true;
	return false;
}

static void no_gid_why(const struct choice_port *p, char *why, size_t size)
{
	if (p->tables.gids)
		snprintf(why, size, "no address handle can be made from its GIDs (%s)",
			 strerror(p->tables.gid[0].dead));
	else
		snprintf(why, size, "its network interface has no address");
}

/* A port that is no longer what it was when it was listed has an event. */
static void state_why(const struct choice_port *p, char *why, size_t size)
{
	const enum ibv_event_type failed = (enum ibv_event_type)p->failed;

	if (failed == IBV_EVENT_DEVICE_FATAL)
		snprintf(why, size, "a port whose adapter has failed since the job began (%s; see the kernel's log)",
			 vrb_event_name(failed));
	else if (failed)
		snprintf(why, size, "DOWN since the job began");
	else
		snprintf(why, size, "%s", vrb_port_state_text((enum ibv_port_state)p->state));
}

/* Why a host has no port for this one. */
static void alone_why(const struct choice *c, const struct choice_port *port, unsigned on, char *why,
		      size_t size)
{
	const struct choice_host *h = c->host[on];
	const struct choice_port *same = same_place(h, port);
	char gid[128];

	if (same && same->state != IBV_PORT_ACTIVE) {
		state_why(same, gid, sizeof(gid));
		snprintf(why, size, "%s of %.40s is %s", same->name, h->name, gid);
	} else if (same && same->link_layer != port->link_layer)
		snprintf(why, size, "%s of %s is of %s", same->name, h->name, layer_name(same));
	else if (same && same->usable && !has_live_gid(same)) {
		no_gid_why(same, gid, sizeof(gid));
		snprintf(why, size, "%s of %.40s: %s", same->name, h->name, gid);
	} else if (same && same->usable && !choice_relation(port, same))
		snprintf(why, size, port->link_layer == IBV_LINK_LAYER_ETHERNET ?
			 "%s of %s has no GID of its kind" :
			 "%s of %s is on another subnet, to whose prefix only a router's LID leads",
			 same->name, h->name);
	else
		snprintf(why, size, "%s has no port left for it", h->name);
}

/* A port as the administrator of a fabric finds it. */
static const char *port_text(const struct choice_port *p, char *text, size_t size)
{
	char gid[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, p->tables.gid[0].raw, gid, sizeof(gid));
	snprintf(text, size, "%s (LID %u, GID %s)", p->name, p->lid, gid);
	return text;
}

/* The pair in the way; the host of the port itself is in the line already. */
static void lost_why(const struct choice *c, unsigned h, unsigned p, char *why, size_t size)
{
	const struct choice_pair *pair = &c->left[h][p].pair;
	const struct choice_host *a = c->host[pair->a], *b = c->host[pair->b];
	const struct choice_port *port_a = &a->port[pair->port_a], *port_b = &b->port[pair->port_b];
	char text_a[128], text_b[128], of[48] = "";

	if (pair->a != h || pair->port_a != p)
		snprintf(of, sizeof(of), " of %.40s", a->name);
	snprintf(why, size, "nothing passes between %s%s and %s of %.40s: check cables, partition, VLAN, UDP port "
		 "4791 in filters%s", port_text(port_a, text_a, sizeof(text_a)), of,
		 port_text(port_b, text_b, sizeof(text_b)), b->name,
		 port_a->one_network || port_b->one_network ? ", " VRB_ONE_NETWORK_ADVICE : "");
}

#define FULL_MEMBER ", with a full member at one end of each pair"
#define ONE_HOST ", also of ranks of one host (--intranode memory)"

/* The pair without GIDs or a partition; it may be of other hosts than this port's. */
static void unmet_why(const struct choice *c, unsigned h, unsigned p, char *why, size_t size)
{
	const struct choice_left *left = &c->left[h][p];
	const struct choice_pair *pair = &left->pair;
	const struct choice_host *a = c->host[pair->a], *to = c->host[pair->b == h ? pair->a : pair->b];
	char of[128] = "";

	if (pair->a != h && pair->b != h)
		snprintf(of, sizeof(of), "%s of %.40s has ", a->port[pair->port_a].name, a->name);
	if (left->why == CHOICE_NO_PATH)
		snprintf(why, size, "%sno GIDs by which it reaches %s", of, to->name);
	else
		snprintf(why, size, "%sno partition key in common with %s" FULL_MEMBER "%s", of, to->name,
			 pair->a == pair->b ? ONE_HOST : "");
}

static bool ranks_meet(const struct choice *c)
{
	for (unsigned h = 0; h < c->hosts; h++)
		if (c->host[h]->meets)
			return true;
	return false;
}

/* GIDs from which no address handle is made are none. */
static void link_local_why(const struct choice_host *host, const struct choice_port *port, char *why, size_t size)
{
	for (unsigned i = 0; i < port->tables.gids; i++) {
		const struct vrb_gid *gid = &port->tables.gid[i];

		if (!gid->dead || vrb_gid_scope(gid->raw) == VRB_GID_LINK_LOCAL)
			continue;
		snprintf(why, size, "no address handle can be made from its GIDs (%s) but from link-local ones",
			 strerror(gid->dead));
		return;
	}
	snprintf(why, size, "link-local addresses alone, other ports of %s have more", host->name);
}

static void why_text(const struct choice *c, unsigned h, unsigned p, char *why, size_t size)
{
	const struct choice_left *left = &c->left[h][p];
	const struct choice_host *host = c->host[h];
	const struct choice_port *port = &host->port[p];
	char best[32], own[32];

	switch (left->why) {
	case CHOICE_STATE:
		state_why(port, why, size);
		break;
	case CHOICE_LINK_LAYER:
		if (!c->rails)
			snprintf(why, size, "it is of %s, ports of other hosts are not", layer_name(port));
		else
			snprintf(why, size, "the rails are of %s", layer_name(&c->host[0]->port[c->end[0][0].port]));
		break;
	case CHOICE_LINK_LOCAL:
		link_local_why(host, port, why, size);
		break;
	case CHOICE_SLOW:
		snprintf(why, size, "%s, below a quarter of %s's %s",
			 rg_format_rate(port->rate, own, sizeof(own)), host->port[left->other].name,
			 rg_format_rate(host->port[left->other].rate, best, sizeof(best)));
		break;
	case CHOICE_RATE:
		snprintf(why, size, "%s, the rails are of another rate",
			 rg_format_rate(port->rate, own, sizeof(own)));
		break;
	case CHOICE_PREFIX:
		snprintf(why, size, "another InfiniBand prefix has more ports");
		break;
	case CHOICE_NO_PATH:
	case CHOICE_PARTITION:
		unmet_why(c, h, p, why, size);
		break;
	case CHOICE_PARTITIONS:
		snprintf(why, size, "no partition key that all hosts have" FULL_MEMBER "%s", ranks_meet(c) ? ONE_HOST : "");
		break;
	case CHOICE_NO_GID:
		no_gid_why(port, why, size);
		break;
	case CHOICE_LOST:
		lost_why(c, h, p, why, size);
		break;
	case CHOICE_MANY:
		snprintf(why, size, "%d rails are in use", RAIL_MAX);
		break;
	default:
		alone_why(c, port, left->host, why, size);
	}
}

void choice_left_text(const struct choice *c, unsigned h, unsigned p, char *why, size_t size)
{
	*why = 0;
	if (c->left[h][p].why != CHOICE_USED)
		why_text(c, h, p, why, size);
}

/* A line for the first port that is left out so, and how many more. */
static void left_tell(const struct choice *c, enum choice_why why, line_fn *line, void *arg)
{
	unsigned h1 = 0, p1 = 0, count = 0;
	char text[LINE], reason[480], more[48] = "";

	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned p = 0; p < c->host[h]->count; p++)
			if (c->left[h][p].why == why && !count++) {
				h1 = h;
				p1 = p;
			}
	if (!count)
		return;
	why_text(c, h1, p1, reason, sizeof(reason));
	snprintf(more, sizeof(more), count > 2 ? " and %u more ports are" : count > 1 ? " and another port are" :
		 " is", count - 1);
	snprintf(text, sizeof(text), "--rails all: %s of %s%s left out: %s", c->host[h1]->port[p1].name,
		 c->host[h1]->name, more, reason);
	line(arg, text);
}

/* Is the failure of a port in another port's line already, as the reason? */
static bool failure_is_told(const struct choice *c, unsigned host, const struct choice_port *failed)
{
	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned p = 0; p < c->host[h]->count; p++)
			if (c->left[h][p].why == CHOICE_ALONE && c->left[h][p].host == host &&
			    same_place(c->host[host], &c->host[h]->port[p]) == failed)
				return true;
	return false;
}

static void failed_tell(const struct choice *c, line_fn *line, void *arg)
{
	char text[LINE], why[128];

	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned p = 0; p < c->host[h]->count; p++) {
			const struct choice_port *port = &c->host[h]->port[p];

			if (!port->failed || failure_is_told(c, h, port))
				continue;
			state_why(port, why, sizeof(why));
			snprintf(text, sizeof(text), "--rails all: %s of %s is left out: it is %s", port->name,
				 c->host[h]->name, why);
			line(arg, text);
			return;
		}
}

static const struct vrb_gid *gid_of(const struct choice *c, unsigned h, unsigned rail)
{
	return &c->host[h]->port[c->end[h][rail].port].tables.gid[c->end[h][rail].gid];
}

static void routed_tell(const struct choice *c, line_fn *line, void *arg)
{
	char text[LINE], a[INET6_ADDRSTRLEN] = "", b[INET6_ADDRSTRLEN] = "";
	unsigned rail = 0, count = 0;

	for (unsigned r = 0; r < c->rails; r++)
		if (c->routed[r] && !count++)
			rail = r;
	if (!count)
		return;
	inet_ntop(AF_INET6, gid_of(c, 0, rail)->raw, a, sizeof(a));
	inet_ntop(AF_INET6, gid_of(c, c->hosts - 1, rail)->raw, b, sizeof(b));
	snprintf(text, sizeof(text), "%u of %u rails: RoCE v2 is routed between IP networks, such as %s of %s "
		 "and %s of %s", count, c->rails, a, c->host[0]->name, b, c->host[c->hosts - 1]->name);
	line(arg, text);
}

static void link_local_tell(const struct choice *c, line_fn *line, void *arg)
{
	char text[LINE];

	for (unsigned r = 0; r < c->rails; r++) {
		const struct choice_port *port = &c->host[0]->port[c->end[0][r].port];

		if (port->link_layer != IBV_LINK_LAYER_ETHERNET ||
		    vrb_gid_scope(gid_of(c, 0, r)->raw) != VRB_GID_LINK_LOCAL)
			continue;
		snprintf(text, sizeof(text), "rail %u (%s of %s) has link-local GIDs alone; give its network "
			 "interfaces addresses", r, port->name, c->host[0]->name);
		line(arg, text);
		return;
	}
}

/*
 * Does the rail take another port of host h than that of the reference's place, which does not reach a
 * port of the rail?
 */
static const struct choice_port *crossed(const struct choice *c, unsigned h, unsigned rail, unsigned *to)
{
	const struct choice_host *host = c->host[h];
	const struct choice_port *same = same_place(host, &c->host[c->ref]->port[c->end[c->ref][rail].port]);
	const struct choice_loss *loss;
	size_t count;

	if (!same || same == &host->port[c->end[h][rail].port])
		return NULL;
	loss = choice_losses_of(c, h, (unsigned)(same - host->port), &count);
	for (size_t i = 0; i < count; i++)
		if (loss[i].ports >> c->end[loss[i].b][rail].port & 1) {
			*to = loss[i].b;
			return same;
		}
	return NULL;
}

static void crossed_tell(const struct choice *c, line_fn *line, void *arg)
{
	const struct choice_port *same, *port, *used;
	char text[LINE], a[128], b[128];
	unsigned to = 0;

	for (unsigned h = 0; h < c->hosts; h++)
		for (unsigned rail = 0; rail < c->rails; rail++) {
			same = crossed(c, h, rail, &to);
			if (!same)
				continue;
			port = &c->host[to]->port[c->end[to][rail].port];
			used = &c->host[h]->port[c->end[h][rail].port];
			snprintf(text, sizeof(text), "--rails all: %s of %s meets %s of %s, since nothing passes to %s "
				 "there: are cables crossed?", port_text(port, a, sizeof(a)),
				 c->host[to]->name, used->name, c->host[h]->name,
				 port_text(same, b, sizeof(b)));
			line(arg, text);
			return;
		}
}

void choice_tell(const struct choice *c, line_fn *line, void *arg)
{
	static const enum choice_why told[] = {
		CHOICE_LOST, CHOICE_ALONE, CHOICE_NO_PATH, CHOICE_PARTITION, CHOICE_PARTITIONS, CHOICE_NO_GID,
		CHOICE_LINK_LAYER, CHOICE_LINK_LOCAL, CHOICE_SLOW, CHOICE_RATE, CHOICE_PREFIX, CHOICE_MANY,
	};

	for (size_t i = 0; !c->named && i < sizeof(told) / sizeof(*told); i++)
		left_tell(c, told[i], line, arg);
	failed_tell(c, line, arg);
	crossed_tell(c, line, arg);
	routed_tell(c, line, arg);
	link_local_tell(c, line, arg);
}

/* The reason that tells most: of a port that could be a rail but for its counterpart. */
void choice_why_none(struct choice *c)
{
	static const enum choice_why order[] = {
		CHOICE_LOST, CHOICE_PARTITION, CHOICE_PARTITIONS, CHOICE_NO_PATH, CHOICE_ALONE, CHOICE_NO_GID,
		CHOICE_LINK_LAYER, CHOICE_STATE,
	};
	char reason[480];

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		for (unsigned h = 0; h < c->hosts; h++)
			for (unsigned p = 0; p < c->host[h]->count; p++) {
				if (c->left[h][p].why != order[i])
					continue;
				why_text(c, h, p, reason, sizeof(reason));
				snprintf(c->why, sizeof(c->why), "--rails all: the hosts have no rail in common: "
					 "%s of %.40s: %s", c->host[h]->port[p].name, c->host[h]->name, reason);
				return;
			}
	snprintf(c->why, sizeof(c->why), "--rails all: no host has an ACTIVE port that can be a rail");
}
