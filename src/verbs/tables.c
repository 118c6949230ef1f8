/* tables.c - the GIDs and P_Keys of a port, for a choice among the ports of several hosts. */
#include "config.h"		/* _GNU_SOURCE */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "util/err.h"
#include "verbs/vrb.h"

static unsigned mask_bits(const void *mask, size_t bytes)
{
	const unsigned char *at = mask;
	unsigned bits = 0;

	for (size_t i = 0; i < bytes; i++)
		bits += (unsigned)__builtin_popcount(at[i]);
	return bits;
}

/* The bits of a network in an address of that interface; 0: the interface does not have the GID. */
static unsigned bits_at(const struct ifaddrs *i, const unsigned char gid[VRB_GID_BYTES])
{
	const struct sockaddr_in6 *a6 = (const void *)i->ifa_addr, *m6 = (const void *)i->ifa_netmask;
	const struct sockaddr_in *a4 = (const void *)i->ifa_addr, *m4 = (const void *)i->ifa_netmask;

	if (!i->ifa_addr || !i->ifa_netmask)
		return 0;
	if (i->ifa_addr->sa_family == AF_INET && vrb_gid_scope(gid) == VRB_GID_IPV4)
		return memcmp(&a4->sin_addr, gid + 12, 4) ? 0 : 96 + mask_bits(&m4->sin_addr, 4);
	if (i->ifa_addr->sa_family == AF_INET6)
		return memcmp(&a6->sin6_addr, gid, 16) ? 0 : mask_bits(&m6->sin6_addr, 16);
	return 0;
}

static uint8_t network_bits(const struct ifaddrs *all, uint32_t ifindex,
			    const unsigned char gid[VRB_GID_BYTES])
{
	char name[IF_NAMESIZE] = "";
	unsigned bits = 0;

	if (ifindex && !if_indextoname(ifindex, name))
		return 0;
	for (const struct ifaddrs *i = all; i && !bits; i = i->ifa_next)
		if (!*name || !strcmp(name, i->ifa_name))
			bits = bits_at(i, gid);
	return (uint8_t)bits;
}

enum vrb_gid_scope vrb_gid_scope(const unsigned char gid[VRB_GID_BYTES])
{
	static const unsigned char zero[VRB_GID_BYTES], mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(gid, zero, sizeof(zero)))
		return VRB_GID_EMPTY;
	if (!memcmp(gid, mapped, sizeof(mapped)))
		return VRB_GID_IPV4;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? VRB_GID_LINK_LOCAL : VRB_GID_IPV6;
}

/* RoCE v2 before v1, IPv4 before IPv6, link-local last. */
static int gid_place(const struct ibv_gid_entry *e)
{
	const int v1 = e->gid_type != IBV_GID_TYPE_ROCE_V2;

	switch (vrb_gid_scope(e->gid.raw)) {
	case VRB_GID_IPV4:
		return 2 * v1;
	case VRB_GID_IPV6:
		return 2 * v1 + 1;
	case VRB_GID_LINK_LOCAL:
		return 4 + v1;
	default:
		return -1;
	}
}

/* The own end of a path is at fault if not even the port's own address is reached. */
static int handle_try(struct ibv_pd *pd, const struct vrb_port *port, const struct vrb_gid *own,
		      const unsigned char to[VRB_GID_BYTES])
{
	struct ibv_ah_attr path = {
		.port_num = port->number,
		.is_global = 1,
		.grh = { .sgid_index = own->index, .hop_limit = 64 },
	};
	struct ibv_ah *ah;

	memcpy(path.grh.dgid.raw, to, sizeof(path.grh.dgid.raw));
	errno = 0;
	ah = ibv_create_ah(pd, &path);
	if (!ah)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno ? errno : EIO;
	ibv_destroy_ah(ah);
	return 0;
}

static void gids_of_place(struct ibv_context *context, const struct vrb_port *port, int length,
			  int place, const struct ifaddrs *all, struct vrb_tables *t)
{
	struct ibv_gid_entry e;

	for (int i = 0; i < length && i < 256 && t->gids < VRB_TABLE_GIDS; i++) {
		struct vrb_gid *g = &t->gid[t->gids];

		if (ibv_query_gid_ex(context, port->number, (uint32_t)i, &e, 0) ||
		    gid_place(&e) != place)
			continue;
		memset(g, 0, sizeof(*g));
		memcpy(g->raw, e.gid.raw, sizeof(g->raw));
		g->index = (uint8_t)i;
		g->type = (uint8_t)e.gid_type;
		g->bits = network_bits(all, e.ndev_ifindex, g->raw);
		t->gids++;
	}
}

static void ethernet_gids(struct ibv_context *context, const struct vrb_port *port, int length,
			  struct vrb_tables *t)
{
	struct ifaddrs *all = NULL;
	struct ibv_pd *pd = ibv_alloc_pd(context);

	if (getifaddrs(&all))
		all = NULL;
	for (int place = 0; place < 6; place++)
		gids_of_place(context, port, length, place, all, t);
	for (unsigned i = 0; pd && i < t->gids; i++)
		t->gid[i].dead = (uint8_t)handle_try(pd, port, &t->gid[i], t->gid[i].raw);
	if (pd)
		ibv_dealloc_pd(pd);
	if (all)
		freeifaddrs(all);
}

/* InfiniBand: entry 0 is the port's own, others are aliases. */
static void infiniband_gid(struct vrb_tables *t, const struct vrb_port *port)
{
	if (port->gid_index < 0)
		return;
	t->gid[0] = (struct vrb_gid){ .index = (uint8_t)port->gid_index, .type = port->gid_type, .bits = 64 };
	memcpy(t->gid[0].raw, port->gid.raw, sizeof(t->gid[0].raw));
	t->gids = 1;
}

static void pkeys_read(struct ibv_context *context, const struct vrb_port *port, int length,
		       struct vrb_tables *t)
{
	__be16 key;

	for (int i = 0; i < length && t->pkeys < VRB_TABLE_PKEYS; i++) {
		if (ibv_query_pkey(context, port->number, i, &key) || !(ntohs(key) & 0x7fff))
			continue;
		t->pkey[t->pkeys].key = ntohs(key);
		t->pkey[t->pkeys++].index = (uint16_t)i;
	}
}

int vrb_port_tables(const struct vrb_port *port, struct vrb_tables *out)
{
	struct ibv_context *context = ibv_open_device(port->device);
	struct vrb_tables t = { 0 };
	struct ibv_port_attr attr;
	int rc;

	if (!context || ibv_query_port(context, port->number, &attr)) {
		rc = errno ? -errno : -EIO;
		rg_error("%s: cannot be asked for its tables: %s", port->name, strerror(-rc));
		if (context)
			ibv_close_device(context);
		return rc;
	}
	if (port->link_layer == IBV_LINK_LAYER_ETHERNET)
		ethernet_gids(context, port, attr.gid_tbl_len, &t);
	else
		infiniband_gid(&t, port);
	pkeys_read(context, port, attr.pkey_tbl_len, &t);
	ibv_close_device(context);
	*out = t;
	return 0;
}

void vrb_port_use_gid(struct vrb_port *port, const struct vrb_gid *gid)
{
	memcpy(port->gid.raw, gid->raw, sizeof(port->gid.raw));
	port->gid_index = gid->index;
	port->gid_type = gid->type;
	port->gid_link_local = vrb_gid_scope(gid->raw) == VRB_GID_LINK_LOCAL;
}

int vrb_port_try(const struct vrb_port *port, const struct vrb_gid *own,
		 const unsigned char to[VRB_GID_BYTES])
{
	struct ibv_context *context = ibv_open_device(port->device);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	int rc = pd ? handle_try(pd, port, own, to) : EIO;

	if (pd)
		ibv_dealloc_pd(pd);
	if (context)
		ibv_close_device(context);
	return -rc;
}
