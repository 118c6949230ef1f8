/* netif.c - see netif.h. */
#include "softhca/base/netif.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/gid.h"
#include "softhca/base/proc.h"
#include "softhca/base/rtnetlink.h"

enum { MAPPED_BITS = 8 * HCA_GID_IPV4_AT, GID_BITS = 128 };

/* ---- Names and subnets --------------------------------------------------- */

/* A subnet, or an address alone, as a prefix of GIDs. */
struct subnet {
	union ibv_gid gid;
	unsigned bits;
};

/* The first `bits` of a GID; the others are cleared. */
static void gid_cut(union ibv_gid *gid, unsigned bits)
{
	unsigned i;

	for (i = 0; i < sizeof(gid->raw); i++, bits -= bits < 8 ? bits : 8)
		if (bits < 8)
			gid->raw[i] &= (uint8_t)(0xff00 >> bits);
}

static bool subnet_holds(const struct subnet *s, const union ibv_gid *gid)
{
	union ibv_gid cut = *gid;

	gid_cut(&cut, s->bits);
	return memcmp(&cut, &s->gid, sizeof(cut)) == 0;
}

/* "24" of at most `most`; -1: another text. */
static int parse_bits(const char *text, unsigned most)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long bits = strtoul(text, NULL, 10);

	return digits && digits <= 3 && !text[digits] && bits <= most ? (int)bits : -1;
}

/* "10.0.1.0/24", "fd00::/64", or an address alone. */
static bool subnet_parse(const char *text, struct subnet *s)
{
	char address[INET6_ADDRSTRLEN];
	const size_t length = strcspn(text, "/");
	struct in_addr ipv4;
	int bits, mapped = 0;

	if (length >= sizeof(address))
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	if (inet_pton(AF_INET, address, &ipv4) == 1) {
		hca_gid_map_ipv4(&ipv4, &s->gid);
		mapped = MAPPED_BITS;
	} else if (inet_pton(AF_INET6, address, &s->gid) != 1 || hca_gid_is_ipv4(&s->gid)) {
		return false;
	}
	bits = text[length] ? parse_bits(text + length + 1, (unsigned)(GID_BITS - mapped))
			    : GID_BITS - mapped;
	s->bits = (unsigned)(bits + mapped);
	gid_cut(&s->gid, s->bits);
	return bits >= 0;
}

static bool is_name(const char *text)
{
	size_t length = strlen(text);

	return length > 0 && length < IFNAMSIZ && !strpbrk(text, "/: \t\r\n") &&
	       strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

int hca_netif_canonical(const char *text, char *buf, size_t size)
{
	char address[INET6_ADDRSTRLEN];
	unsigned whole;
	struct subnet s;
	int n;

	if (!subnet_parse(text, &s)) {
		n = is_name(text) ? snprintf(buf, size, "%s", text) : -1;
		return n >= 0 && (size_t)n < size ? 0 : -EINVAL;
	}
	whole = hca_gid_is_ipv4(&s.gid) && s.bits >= MAPPED_BITS ? MAPPED_BITS : 0;
	hca_gid_format(&s.gid, address, sizeof(address));
	n = s.bits == GID_BITS ? snprintf(buf, size, "%s", address)
			       : snprintf(buf, size, "%s/%u", address, s.bits - whole);
	return n >= 0 && (size_t)n < size ? 0 : -EINVAL;
}

/* ---- The kernel's addresses ---------------------------------------------- */

/* IFA_F_SECONDARY is IFA_F_TEMPORARY in IPv6. */
static bool flags_are_usable(uint32_t flags)
{
	return !(flags & (IFA_F_SECONDARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE | IFA_F_DADFAILED));
}

/* On a link to one peer IFA_ADDRESS is the peer's, IFA_LOCAL the own one. */
static bool read_address(struct nlmsghdr *h, struct hca_netif_address *a)
{
	struct ifaddrmsg *m = NLMSG_DATA(h);
	const size_t bytes = m->ifa_family == AF_INET ? 4 : 16;
	unsigned left = (unsigned)IFA_PAYLOAD(h);
	uint32_t flags = m->ifa_flags;
	const void *local = NULL;
	struct rtattr *r;

	if (h->nlmsg_type != RTM_NEWADDR ||
	    (m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
		return false;
	for (r = IFA_RTA(m); RTA_OK(r, left); r = RTA_NEXT(r, left)) {
		if (r->rta_type == IFA_FLAGS && RTA_PAYLOAD(r) == sizeof(flags))
			memcpy(&flags, RTA_DATA(r), sizeof(flags));
		if (RTA_PAYLOAD(r) == bytes &&
		    (r->rta_type == IFA_LOCAL || (r->rta_type == IFA_ADDRESS && !local)))
			local = RTA_DATA(r);
	}
	if (!local)
		return false;
	a->index = m->ifa_index;
	a->prefix = m->ifa_prefixlen;
	if (bytes == 4) {
		hca_gid_map_ipv4(local, &a->gid);
		a->prefix += MAPPED_BITS;
	} else {
		memcpy(&a->gid, local, sizeof(a->gid));
	}
	a->usable = flags_are_usable(flags);
	a->link_local = hca_gid_is_link_local(&a->gid);
	return true;
}

struct address_visit {
	int (*visit)(void *arg, const struct hca_netif_address *a);
	void *arg;
};

static int visit_address(void *arg, struct nlmsghdr *h)
{
	const struct address_visit *v = arg;
	struct hca_netif_address a;

	return read_address(h, &a) ? v->visit(v->arg, &a) : 0;
}

int hca_netif_each_address(int (*visit)(void *arg, const struct hca_netif_address *a), void *arg)
{
	struct address_visit v = { visit, arg };

	return hca_rtnetlink_dump(RTM_GETADDR, visit_address, &v);
}

/* ---- An interface -------------------------------------------------------- */

int hca_netif_ask(const char *name, unsigned long request, struct ifreq *r)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	snprintf(r->ifr_name, sizeof(r->ifr_name), "%s", name);
	rc = ioctl(fd, request, r) ? -errno : 0;
	close(fd);
	return rc;
}

/* IFF_UP and IFF_RUNNING, which says that there is a carrier. */
static short flags_of(const char *name)
{
	struct ifreq r = { 0 };

	return hca_netif_ask(name, SIOCGIFFLAGS, &r) ? 0 : r.ifr_flags;
}

static bool flags_are_up(short flags)
{
	return (flags & IFF_UP) && (flags & IFF_RUNNING);
}

/* The first call asks for the length of the bit maps. */
uint64_t hca_netif_rate(const char *name)
{
	union {
		struct ethtool_link_settings s;
		char bytes[sizeof(struct ethtool_link_settings) + 3 * INT8_MAX * sizeof(uint32_t)];
	} link = { .s = { .cmd = ETHTOOL_GLINKSETTINGS } };
	struct ifreq r = { .ifr_data = (char *)&link };

	if (hca_netif_ask(name, SIOCETHTOOL, &r) || link.s.link_mode_masks_nwords >= 0)
		return 0;
	link.s.cmd = ETHTOOL_GLINKSETTINGS;
	link.s.link_mode_masks_nwords = (int8_t)-link.s.link_mode_masks_nwords;
	if (hca_netif_ask(name, SIOCETHTOOL, &r) || link.s.speed == (uint32_t)SPEED_UNKNOWN)
		return 0;
	return (uint64_t)link.s.speed * (1000000 / 8);
}

static void set_address(struct hca_netif *n)
{
	hca_gid_address(&n->gid, &n->address);
	if (!hca_gid_is_ipv4(&n->gid) && hca_gid_is_link_local(&n->gid))
		((struct sockaddr_in6 *)(void *)&n->address)->sin6_scope_id = n->index;
}

static int describe(struct hca_netif *n)
{
	struct ifreq r = { 0 };
	int rc = hca_netif_ask(n->name, SIOCGIFMTU, &r);

	if (rc)
		return hca_fail(-rc, "net=%s: %s", n->name, strerror(-rc));
	n->mtu = (uint32_t)r.ifr_mtu;
	n->rate = hca_netif_rate(n->name);
	if (hca_netif_ask(n->name, SIOCGIFHWADDR, &r) == 0 &&
	    r.ifr_hwaddr.sa_family == ARPHRD_ETHER)
		memcpy(n->mac, r.ifr_hwaddr.sa_data, sizeof(n->mac));
	set_address(n);
	return 0;
}

static int is_present(void *arg, const struct hca_netif_address *a)
{
	const struct hca_netif *n = arg;

	return a->index == n->index && memcmp(&a->gid, &n->gid, sizeof(a->gid)) == 0;
}

const char *hca_netif_trouble(const struct hca_netif *n)
{
	struct hca_netif its = *n;
	char name[IFNAMSIZ];

	if (!if_indextoname(n->index, name))
		return "the interface has gone here";
	if (!flags_are_up(flags_of(name)))
		return "the interface is down here";
	if (hca_netif_each_address(is_present, &its) <= 0)
		return "the interface has lost its address here";
	return NULL;
}

bool hca_netif_is_up(const struct hca_netif *n)
{
	return !hca_netif_trouble(n);
}

/* ---- Finding ------------------------------------------------------------- */

/* The interface that is asked for, and those that exist, for the line of an error. */
struct search {
	const char *text;
	bool by_subnet;
	struct subnet subnet;
	struct hca_netif best;		/* index 0: none yet */
	unsigned other;			/* another interface with an address in the subnet */
	union ibv_gid others;
	bool unusable, link_local;	/* an address was passed over */
	char exist[256];		/* "eth0 10.0.1.1, eth1 10.0.2.1" */
	size_t used;
};

/* Note an interface that would be accepted; what does not fit is left out. */
static void note_existing(struct search *s, const struct hca_netif_address *a)
{
	char name[IFNAMSIZ], address[INET6_ADDRSTRLEN];
	int n;

	if (!if_indextoname(a->index, name) || !flags_are_up(flags_of(name)))
		return;
	n = snprintf(s->exist + s->used, sizeof(s->exist) - s->used, "%s%s %s",
		     s->used ? ", " : "", name, hca_gid_format(&a->gid, address, sizeof(address)));
	if (n > 0 && (size_t)n < sizeof(s->exist) - s->used)
		s->used += (size_t)n;
	s->exist[s->used] = '\0';
}

static bool is_wanted(struct search *s, const struct hca_netif_address *a)
{
	bool named = s->by_subnet ? subnet_holds(&s->subnet, &a->gid) : a->index == s->best.index;

	/* A link-local address is on every interface: its own text names it. */
	if (named && a->link_local && !(s->by_subnet && s->subnet.bits == GID_BITS)) {
		s->link_local = true;
		return false;
	}
	s->unusable |= named && !a->usable;
	return named && a->usable;
}

/* A name's address is its first, IPv4 before IPv6; a subnet's is the first of its interface. */
static int search_address(void *arg, const struct hca_netif_address *a)
{
	static const union ibv_gid none;
	struct search *s = arg;
	bool found = memcmp(&s->best.gid, &none, sizeof(none)) != 0;

	if (a->usable && !a->link_local)
		note_existing(s, a);
	if (!is_wanted(s, a))
		return 0;
	if (found && a->index != s->best.index) {
		s->other = a->index;
		s->others = a->gid;
	} else if (!found || (hca_gid_is_ipv4(&a->gid) && !hca_gid_is_ipv4(&s->best.gid))) {
		s->best.index = a->index;
		s->best.gid = a->gid;
	}
	return 0;
}

static int say_two(const struct search *s)
{
	char one[INET6_ADDRSTRLEN], two[INET6_ADDRSTRLEN], a[IFNAMSIZ] = "?", b[IFNAMSIZ] = "?";

	if_indextoname(s->best.index, a);
	if_indextoname(s->other, b);
	return hca_fail(ENOTUNIQ, "net=%s: %s %s and %s %s are in this subnet (accepted: the name of "
			"one, or a smaller subnet)", s->text, a,
			hca_gid_format(&s->best.gid, one, sizeof(one)), b,
			hca_gid_format(&s->others, two, sizeof(two)));
}

static int say_none(const struct search *s)
{
	const char *exist = *s->exist ? s->exist : "none exists";

	if (s->link_local)
		return hca_fail(EADDRNOTAVAIL, "net=%s: only a link-local address (accepted: that "
				"address itself, or one of: %s)", s->text, exist);
	if (s->unusable)
		return hca_fail(EADDRNOTAVAIL, "net=%s: only a temporary, deprecated, duplicate or "
				"tentative address (accepted: %s)", s->text, exist);
	if (s->by_subnet)
		return hca_fail(ENODEV, "net=%s: no interface has an address there (accepted: %s)",
				s->text, exist);
	return hca_fail(EADDRNOTAVAIL, "net=%s: this interface has no address (accepted: %s)",
			s->text, exist);
}

/* SOFTHCA_NET_DOWN=port: an interface that is down with its address is a port that is down. */
static bool is_port_too(const struct search *s)
{
	static const union ibv_gid none;
	const char *text = getenv("SOFTHCA_NET_DOWN");

	return text && strcmp(text, "port") == 0 && memcmp(&s->best.gid, &none, sizeof(none)) != 0;
}

static int check_up(const struct search *s)
{
	short flags = flags_of(s->best.name);

	if (flags_are_up(flags) || is_port_too(s))
		return 0;
	return hca_fail(ENETDOWN, "net=%s: interface %s %s (accepted: one that is up: %s)", s->text,
			s->best.name, flags & IFF_UP ? "has no carrier" : "is down",
			*s->exist ? s->exist : "none is");
}

/* Also for the line of an error, so the addresses of all interfaces are read in any case. */
static int search_all(struct search *s)
{
	static const union ibv_gid none;
	int rc = hca_netif_each_address(search_address, s);

	if (rc)
		return hca_fail(-rc, "net=%s: netlink: %s", s->text, strerror(-rc));
	if (!s->by_subnet && !s->best.index)
		return hca_fail(ENODEV, "net=%s: no such interface (accepted: %s)", s->text,
				*s->exist ? s->exist : "none exists");
	if (s->other)
		return say_two(s);
	if (!if_indextoname(s->best.index, s->best.name) &&
	    memcmp(&s->best.gid, &none, sizeof(none)) != 0)
		return hca_fail(ENODEV, "net=%s: the interface has gone", s->text);
	/* A down interface has lost its IPv6 addresses: its state is the cause to name. */
	rc = *s->best.name ? check_up(s) : 0;
	if (!rc && memcmp(&s->best.gid, &none, sizeof(none)) == 0)
		rc = say_none(s);
	return rc;
}

int hca_netif_find(const char *text, struct hca_netif *out)
{
	struct search s = { .text = text };
	int rc;

	s.by_subnet = subnet_parse(text, &s.subnet);
	if (!s.by_subnet && !is_name(text))
		return hca_fail(EINVAL, "net=%.60s: neither an interface nor a subnet (accepted: "
				"such as eth0, 10.0.1.0/24, fd00::/64)", text);
	if (!s.by_subnet)
		s.best.index = if_nametoindex(text);
	rc = search_all(&s);
	if (!rc)
		rc = describe(&s.best);
	if (rc)
		return rc;
	s.best.up = flags_are_up(flags_of(s.best.name));
	*out = s.best;
	return 0;
}

/* ---- Changes ------------------------------------------------------------- */

int hca_netif_watch(void)
{
	const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), rc;

	if (fd >= 0 && bind(fd, (const void *)&groups, sizeof(groups)) == 0)
		return fd;
	rc = hca_fail(errno, "net: netlink: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The reports themselves do not matter: states are read anew.  ENOBUFS: some were lost. */
bool hca_netif_watch_changed(int fd)
{
	bool changed = false;
	char some[256];

	while (fd >= 0) {
		if (recv(fd, some, sizeof(some), MSG_DONTWAIT) < 0 && errno != ENOBUFS &&
		    errno != EINTR)
			break;
		changed = true;
	}
	return changed;
}

/* ---- The host ------------------------------------------------------------ */

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	while (bytes--)
		h = (h ^ *at++) * 0x100000001b3ull;
	return h;
}

int hca_netif_host(uint8_t host[16])
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	struct stat net = { 0 };
	char boot[64];
	uint64_t word;
	ssize_t n;
	int fd = hca_proc_open(path, O_RDONLY);
	unsigned i;

	n = fd < 0 ? -1 : read(fd, boot, sizeof(boot));
	if (fd >= 0)
		close(fd);
	if (n <= 0 || hca_proc_stat("/proc/self/ns/net", &net))
		return hca_fail(errno ? errno : EIO, "net: %s: %s", path, strerror(errno));
	for (i = 0; i < 2; i++) {
		word = hash(0xcbf29ce484222325ull + i, boot, (size_t)n);
		word = hash(word, &net.st_dev, sizeof(net.st_dev));
		word = hash(word, &net.st_ino, sizeof(net.st_ino));
		memcpy(host + 8 * i, &word, sizeof(word));
	}
	return 0;
}
