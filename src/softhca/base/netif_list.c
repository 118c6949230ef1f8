/* netif_list.c - see netif_list.h, and softhca.h for the list. */
#include "softhca/base/netif_list.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/gid.h"
#include "softhca/base/netif.h"
#include "softhca/base/proc.h"
#include "softhca/base/rtnetlink.h"

enum { ADDRESSES_MAX = 4 };		/* in the list, of one interface */

/* ---- Kinds --------------------------------------------------------------- */

static bool is_one_of(const char *kind, const char *const *list)
{
	while (*list && strcmp(*list, kind) != 0)
		list++;
	return *list;
}

static bool is_tunnel(const struct hca_interface *i)
{
	static const char *const kinds[] = {
		"amt", "bareudp", "batadv", "erspan", "geneve", "gre", "gretap", "gtp", "ip6erspan",
		"ip6gre", "ip6gretap", "ip6tnl", "ipip", "ovpn", "ppp", "sit", "tun", "vti", "vti6",
		"vxlan", "wireguard", "xfrm", NULL,
	};

	return (i->flags & IFF_POINTOPOINT) || is_one_of(i->kind, kinds);
}

static bool is_dummy(const struct hca_interface *i)
{
	static const char *const kinds[] = { "dummy", "ifb", "nlmon", NULL };

	return is_one_of(i->kind, kinds);
}

/* An upper interface's packets go over IFLA_LINK alone.  A veth's IFLA_LINK is the other end of a wire of its own. */
static bool is_upper(const struct hca_interface *i)
{
	static const char *const kinds[] = {
		"ipvlan", "ipvtap", "macsec", "macvlan", "macvtap", "vlan", NULL,
	};

	return i->lower && is_one_of(i->kind, kinds);
}

/* Does it send the packets of its members, and receive theirs?  A VRF's members do so themselves. */
static bool is_master(const struct hca_interface *i)
{
	static const char *const kinds[] = { "bond", "bridge", "team", NULL };

	return is_one_of(i->kind, kinds);
}

/* ---- Stacks -------------------------------------------------------------- */

static struct hca_interface *by_index(struct hca_interface *all, unsigned count, unsigned index)
{
	for (unsigned i = 0; index && i < count; i++)
		if (all[i].index == index)
			return &all[i];
	return NULL;
}

/* Both have the lesser wire of the two.  True: one has changed. */
static bool wires_join(struct hca_interface *a, struct hca_interface *b)
{
	if (!b || a->wire == b->wire)
		return false;
	if (a->wire < b->wire)
		b->wire = a->wire;
	else
		a->wire = b->wire;
	return true;
}

static bool wires_spread(struct hca_interface *all, unsigned count)
{
	bool changed = false;

	for (unsigned i = 0; i < count; i++) {
		struct hca_interface *master = by_index(all, count, all[i].master);

		if (is_upper(&all[i]))
			changed |= wires_join(&all[i], by_index(all, count, all[i].lower));
		if (master && is_master(master))
			changed |= wires_join(&all[i], master);
	}
	return changed;
}

static uint8_t layers_below(struct hca_interface *all, unsigned count, unsigned i)
{
	const struct hca_interface *at = &all[i];
	unsigned layers = 0;

	while (at && is_upper(at) && layers < count && layers < UINT8_MAX) {
		at = by_index(all, count, at->lower);
		layers++;
	}
	return (uint8_t)layers;
}

static enum softhca_net_why judge(struct hca_interface *all, unsigned count,
				  const struct hca_interface *i)
{
	const struct hca_interface *master = by_index(all, count, i->master);

	if (i->flags & IFF_LOOPBACK)
		return SOFTHCA_NET_LOOPBACK;
	if (is_tunnel(i))
		return SOFTHCA_NET_TUNNEL;
	if (is_dummy(i))
		return SOFTHCA_NET_DUMMY;
	if (master && is_master(master))
		return SOFTHCA_NET_MEMBER;
	return (i->flags & IFF_UP) && (i->flags & IFF_RUNNING) ? SOFTHCA_NET_USABLE :
								 SOFTHCA_NET_DOWN;
}

void hca_interfaces_judge(struct hca_interface *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		all[i].wire = all[i].index;
	while (wires_spread(all, count))
		continue;
	for (unsigned i = 0; i < count; i++) {
		all[i].layers = layers_below(all, count, i);
		all[i].why = judge(all, count, &all[i]);
	}
}

bool hca_gid_is_private_ipv4(const union ibv_gid *gid)
{
	const uint8_t *a = gid->raw + HCA_GID_IPV4_AT;

	if (!hca_gid_is_ipv4(gid))
		return false;
	switch (a[0]) {
	case 10:
	case 127:
		return true;
	case 100:
		return (a[1] & 0xc0) == 64;
	case 169:
		return a[1] == 254;
	case 172:
		return (a[1] & 0xf0) == 16;
	case 192:
		return a[1] == 168;
	default:
		return false;
	}
}

/* ---- The kernel's table -------------------------------------------------- */

struct table {
	struct hca_interface *all;
	unsigned count, room;
};

static uint32_t word_of(const struct rtattr *r)
{
	uint32_t word = 0;

	if (RTA_PAYLOAD(r) == sizeof(word))
		memcpy(&word, RTA_DATA(r), sizeof(word));
	return word;
}

static void text_of(const struct rtattr *r, char *to, size_t size)
{
	snprintf(to, size, "%.*s", (int)RTA_PAYLOAD(r), (const char *)RTA_DATA(r));
}

static void read_kind(const struct rtattr *info, struct hca_interface *i)
{
	const struct rtattr *r = RTA_DATA(info);
	unsigned left = (unsigned)RTA_PAYLOAD(info);

	for (; RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == IFLA_INFO_KIND)
			text_of(r, i->kind, sizeof(i->kind));
}

/* IFLA_LINK is a number of the namespace that IFLA_LINK_NETNSID names, if there is one. */
static void read_interface(struct nlmsghdr *h, struct hca_interface *i)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	unsigned left = (unsigned)IFLA_PAYLOAD(h);
	const struct rtattr *r;
	bool foreign = false;

	*i = (struct hca_interface){ .index = (unsigned)m->ifi_index, .flags = m->ifi_flags };
	for (r = IFLA_RTA(m); RTA_OK(r, left); r = RTA_NEXT(r, left)) {
		switch (r->rta_type) {
		case IFLA_IFNAME:
			text_of(r, i->name, sizeof(i->name));
			break;
		case IFLA_MTU:
			i->mtu = word_of(r);
			break;
		case IFLA_LINK:
			i->lower = word_of(r);
			break;
		case IFLA_LINK_NETNSID:
			foreign = true;
			break;
		case IFLA_MASTER:
			i->master = word_of(r);
			break;
		case IFLA_LINKINFO:
			read_kind(r, i);
			break;
		default:
			break;
		}
	}
	if (foreign)
		i->lower = 0;
}

static int table_add(void *arg, struct nlmsghdr *h)
{
	struct table *t = arg;

	if (h->nlmsg_type != RTM_NEWLINK)
		return 0;
	if (t->count == t->room) {
		unsigned room = t->room ? 2 * t->room : 64;
		void *more = realloc(t->all, room * sizeof(*t->all));

		if (!more)
			return -ENOMEM;
		t->all = more;
		t->room = room;
	}
	read_interface(h, &t->all[t->count++]);
	return 0;
}

/* ---- The list ------------------------------------------------------------ */

struct listing {
	struct table table;
	struct softhca_net *list;
	unsigned most, count, more;
	bool usable;			/* the pass: those that can be ports, or the others */
};

/* The greater one of all interfaces' and the interface's, as the kernel takes it. */
static uint8_t setting_of(const char *name, const char *key)
{
	const char *const of[] = { "all", name };
	char path[96], text[16];
	int value = 0;

	for (unsigned i = 0; i < 2; i++) {
		int fd;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", of[i], key);
		fd = hca_proc_open(path, O_RDONLY);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[n > 0 ? n : 0] = '\0';
		value = atoi(text) > value ? atoi(text) : value;
	}
	return (uint8_t)value;
}

void hca_netif_driver(const char *name, char *driver, size_t size)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq r = { .ifr_data = (char *)&info };

	if (hca_netif_ask(name, SIOCETHTOOL, &r) == 0)
		snprintf(driver, size, "%.*s", (int)size - 1, info.driver);
}

static void fill(struct softhca_net *n, const struct hca_interface *i,
		 const struct hca_netif_address *a, enum softhca_net_why why)
{
	memset(n, 0, sizeof(*n));
	memcpy(n->name, i->name, sizeof(n->name));
	memcpy(n->kind, i->kind, sizeof(n->kind));
	hca_netif_driver(i->name, n->driver, sizeof(n->driver));
	n->gid = a->gid;
	n->rate = hca_netif_rate(i->name);
	n->index = i->index;
	n->wire = i->wire;
	n->mtu = i->mtu;
	n->prefix = (uint8_t)a->prefix;
	n->layers = i->layers;
	n->why = (uint8_t)why;
	n->arp_ignore = setting_of(i->name, "arp_ignore");
	n->arp_announce = setting_of(i->name, "arp_announce");
	n->rp_filter = setting_of(i->name, "rp_filter");
}

/* The number of its addresses in the list. */
static unsigned listed(const struct listing *l, unsigned index)
{
	unsigned have = 0;

	for (unsigned i = 0; i < l->count; i++)
		have += l->list[i].index == index;
	return have;
}

static void add(struct listing *l, struct hca_interface *i, const struct hca_netif_address *a,
		enum softhca_net_why why)
{
	const unsigned have = listed(l, i->index);

	if (have >= (l->usable ? ADDRESSES_MAX : 1))
		return;
	if (l->count < l->most) {
		fill(&l->list[l->count++], i, a, why);
	} else if (!have && !i->beyond) {
		i->beyond = true;
		l->more++;
	}
}

static enum softhca_net_why why_not(const struct hca_interface *i, const struct hca_netif_address *a)
{
	if (i->why == SOFTHCA_NET_USABLE && hca_gid_is_ipv4(&a->gid) &&
	    !hca_gid_is_private_ipv4(&a->gid))
		return SOFTHCA_NET_PUBLIC;
	return i->why;
}

/* A link-local IPv6 address is on every interface; an IPv4 one was wanted. */
static int list_address(void *arg, const struct hca_netif_address *a)
{
	struct listing *l = arg;
	struct hca_interface *i = by_index(l->table.all, l->table.count, a->index);
	enum softhca_net_why why;

	if (!i || !a->usable || (a->link_local && !hca_gid_is_ipv4(&a->gid)))
		return 0;
	why = why_not(i, a);
	if ((why == SOFTHCA_NET_USABLE) == l->usable)
		add(l, i, a, why);
	return 0;
}

HCA_EXPORT int softhca_net_list(struct softhca_net *list, unsigned most, unsigned *more)
{
	struct listing l = { .list = list, .most = most };
	int rc = hca_rtnetlink_dump(RTM_GETLINK, table_add, &l.table);

	if (!rc) {
		hca_interfaces_judge(l.table.all, l.table.count);
		l.usable = true;
		rc = hca_netif_each_address(list_address, &l);
	}
	if (!rc) {
		l.usable = false;
		rc = hca_netif_each_address(list_address, &l);
	}
	free(l.table.all);
	if (more)
		*more = l.more;
	return rc ? hca_fail(-rc, "interfaces: netlink: %s", strerror(-rc)) : (int)l.count;
}

HCA_EXPORT const char *softhca_net_why(enum softhca_net_why why)
{
	static const char *const words[] = {
		[SOFTHCA_NET_USABLE] = "usable",
		[SOFTHCA_NET_LOOPBACK] = "loopback",
		[SOFTHCA_NET_DOWN] = "down, or without carrier",
		[SOFTHCA_NET_TUNNEL] = "a tunnel",
		[SOFTHCA_NET_DUMMY] = "sends nothing",
		[SOFTHCA_NET_MEMBER] = "a member of a bond or bridge",
		[SOFTHCA_NET_PUBLIC] = "a public address",
		[SOFTHCA_NET_BUSY] = "other programs listen on all ports of SOFTHCA_PORTS",
	};

	return (unsigned)why < sizeof(words) / sizeof(*words) ? words[why] : "?";
}

HCA_EXPORT int softhca_net_host(uint8_t host[16])
{
	return hca_netif_host(host);
}
