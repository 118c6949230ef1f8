/* address.c - the GIDs of ports, and the port that an address leads to. */
#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "softhca/base/gid.h"
#include "softhca/object/loss.h"
#include "softhca/object/net.h"
#include "softhca/object/query.h"

static const struct hca_fabric *fabric_of(const struct ibv_context *c)
{
	return hca_context_of((struct ibv_context *)(uintptr_t)c)->fabric;
}

/* ---- GIDs ---------------------------------------------------------------- */

/* The EUI-64 of the MAC 02:53:48:xx:xx:xx, its local bit inverted, as an adapter forms it. */
#define INTERFACE_ID UINT64_C(0x005348fffe000000)

enum {
	ALT4 = 0x80,			/* in the second byte of an IPv4 address: another network */
	SAME4 = 0x40,			/* a network of all rails */
	IP6_RAIL_AT = 7, IP6_HOST_AT = 14,
};

static uint32_t rails_of(const struct hca_spec *s)
{
	return (uint32_t)(s->hcas * s->ports);
}

/*
 * IPv4: 10.<rail>.<host>, one network per rail (hca, port), so that pairing ports by subnet pairs
 * equal rails; alt4: 10.<128 + rail>.<host>; same4: 10.64.<address + 1>, a network of 255 ports; IPv6:
 * fd53:4800:0:<rail>::<host>.
 */
static void gid_of(const struct hca_spec *s, uint32_t address, enum hca_gid_kind kind,
		   union ibv_gid *gid)
{
	const uint32_t rail = address % rails_of(s);
	uint32_t host = address / rails_of(s) + 1, port;

	memset(gid, 0, sizeof(*gid));
	switch (kind) {
	case HCA_GID_GAP:
		return;
	case HCA_GID_LL:
	case HCA_GID_IB:
		gid->global.subnet_prefix = htobe64(kind == HCA_GID_LL ? 0xfe80000000000000ull :
			hca_personality_at(s, address, &port)->prefix[address % s->ports]);
		gid->global.interface_id = htobe64(INTERFACE_ID | address);
		return;
	case HCA_GID_IP6:
		memcpy(gid->raw, (const uint8_t[]){ 0xfd, 0x53, 0x48 }, 3);
		gid->raw[IP6_RAIL_AT] = (uint8_t)rail;
		break;
	default:
		gid->raw[10] = gid->raw[11] = 0xff;
		gid->raw[12] = 10;
		gid->raw[13] = (uint8_t)(kind == HCA_GID_SAME4 ? SAME4 : kind == HCA_GID_ALT4 ? rail | ALT4 : rail);
		host = kind == HCA_GID_SAME4 ? address + 1 : host;
	}
	gid->raw[14] = (uint8_t)(host >> 8);
	gid->raw[15] = (uint8_t)host;
}

/* Entry `index` of the table of a model's port; a gap beyond its end. */
static struct hca_gid_entry entry_of(const struct hca_spec *s, uint32_t address, uint32_t index)
{
	static const struct hca_gid_entry gap, ib = { .kind = HCA_GID_IB };
	uint32_t port;
	const struct hca_personality *p = hca_personality_at(s, address, &port);

	if (p->link[port] == HCA_LINK_IB)
		return index ? gap : ib;
	return index < p->gids[port] ? p->gid[port][index] : gap;
}

uint32_t hca_context_address(const struct ibv_context *c, uint32_t port)
{
	const struct hca_device *d = hca_context_of((struct ibv_context *)(uintptr_t)c)->device;

	return hca_address(&d->fabric->spec, d->node, d->hca, port);
}

static struct hca_gid_entry entry_at(const struct ibv_context *c, uint32_t port, uint32_t index)
{
	return entry_of(&fabric_of(c)->spec, hca_context_address(c, port), index);
}

bool hca_gid_exists(const struct ibv_context *c, uint32_t port, uint32_t index)
{
	return hca_is_net(fabric_of(c)) ? index == 0 :
					  entry_at(c, port, index).kind != HCA_GID_GAP;
}

bool hca_gid_is_routable(const struct ibv_context *c, uint32_t port, uint32_t index)
{
	return hca_is_net(fabric_of(c)) || entry_at(c, port, index).v2;
}

static uint32_t type_of(const struct hca_gid_entry *e)
{
	return e->kind == HCA_GID_IB ? IBV_GID_TYPE_IB :
	       e->v2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
}

int hca_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	const struct hca_fabric *f = fabric_of(c);
	struct ibv_gid_entry full = { .gid_index = index, .port_num = port,
				      .gid_type = IBV_GID_TYPE_ROCE_V2 };

	if (flags)
		return EOPNOTSUPP;
	if (port < 1 || port > f->spec.ports || index >= HCA_GIDS_MAX)
		return EINVAL;
	if (!hca_gid_exists(c, port, index))
		return ENODATA;
	if (hca_is_net(f)) {
		full.gid = f->netif[port - 1].gid;
		full.ndev_ifindex = f->netif[port - 1].index;
	} else {
		const struct hca_gid_entry e = entry_at(c, port, index);
		const uint32_t address = hca_context_address(c, port);

		full.gid_type = type_of(&e);
		gid_of(&f->spec, address, (enum hca_gid_kind)e.kind, &full.gid);
		/* The old one still leads to the port. */
		full.gid.raw[12] ^= (uint8_t)(hca_port_moves(hca_context_of(c)->fabric, address, IBV_EVENT_GID_CHANGE) % 2);
	}
	memset(entry, 0, size);
	memcpy(entry, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int hca_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int rc = index < 0 ? EINVAL : hca_query_gid_ex(c, port, (uint32_t)index, &entry, 0,
						       sizeof(entry));

	if (rc == ENODATA) {
		memset(gid, 0, sizeof(*gid));	/* an empty entry, like libibverbs */
		return 0;
	}
	if (rc) {
		errno = rc;
		return -1;
	}
	*gid = entry.gid;
	return 0;
}

ssize_t hca_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entries, size_t max,
			    uint32_t flags, size_t size)
{
	const uint32_t ports = (uint32_t)fabric_of(c)->spec.ports;
	uint32_t port, index;
	size_t n = 0;

	if (flags)
		return -EOPNOTSUPP;
	for (port = 1; port <= ports; port++)
		for (index = 0; index < HCA_GIDS_MAX; index++)
			n += hca_gid_exists(c, port, index);
	if (max < n)
		return -EINVAL;
	for (port = 1, n = 0; port <= ports; port++)
		for (index = 0; index < HCA_GIDS_MAX; index++)
			if (hca_gid_exists(c, port, index))
				hca_query_gid_ex(c, port, index,
						 (void *)((char *)entries + n++ * size), 0, size);
	return (ssize_t)n;
}

/* ---- LIDs ---------------------------------------------------------------- */

uint16_t hca_lid_of(const struct hca_spec *s, uint32_t address)
{
	uint32_t port;
	const struct hca_personality *p = hca_personality_at(s, address, &port);

	if (p->link[port] == HCA_LINK_ETH || !p->lid[port])
		return 0;
	return (uint16_t)(p->lid[port] + address);
}

/* Subnets may have the same LIDs: one that `from` reaches is preferred. */
static int route_lid(const struct hca_spec *s, uint32_t from, uint16_t lid, uint32_t *address)
{
	int rc = -EHOSTUNREACH;
	uint32_t rail, n, port;

	for (rail = 0; rail < rails_of(s); rail++)
		for (n = 0; n < HCA_PERSONALITIES; n++) {
			const uint64_t first = s->personality[n].lid[rail % s->ports];
			const uint32_t at = lid - (uint32_t)first;

			if (!first || lid < first || at >= hca_spec_nodes(s) * rails_of(s) ||
			    at % rails_of(s) != rail ||
			    hca_personality_at(s, at, &port) != &s->personality[n] ||
			    hca_lid_of(s, at) != lid)
				continue;
			*address = at;
			rc = 0;
			if (hca_reaches(s, from, at))
				return 0;
		}
	return rc;
}

/* ---- Routes -------------------------------------------------------------- */

#define INDEX_ZERO "GID index 0 at both ends, such as ib_write_bw -x 0, ibv_rc_pingpong -g 0"

/* A program says that a step has failed: the first such address of a process has a line with the cause. */
static int net_refuse(const struct hca_fabric *f, uint32_t port, const char *why, const char *accepted)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		hca_say("%s: %s; a network interface as a port has one GID and no LID (accepted: %s)",
			f->netif[port - 1].name, why, accepted);
	return -EHOSTUNREACH;
}

bool hca_source_exists(const struct ibv_context *c, const struct ibv_ah_attr *ah)
{
	const struct hca_fabric *f = fabric_of(c);

	if (!ah->is_global || hca_gid_exists(c, ah->port_num, ah->grh.sgid_index))
		return true;
	if (hca_is_net(f))
		net_refuse(f, ah->port_num, "an address with a GID index that does not exist", INDEX_ZERO);
	return false;
}

/* The GIDs of both ends are of one family: the own one is the source of the stream. */
static int route_net(const struct hca_fabric *f, const struct ibv_ah_attr *ah, uint32_t *address)
{
	const union ibv_gid *gid = &ah->grh.dgid;
	uint32_t port = hca_net_port(f, gid);

	if (ah->port_num < 1 || ah->port_num > f->spec.nets)
		return -EHOSTUNREACH;
	if (!ah->is_global)
		return net_refuse(f, ah->port_num, "an address without a GRH", INDEX_ZERO);
	if (!port && !hca_gid_is_host(gid))
		return net_refuse(f, ah->port_num, "an address whose GID is no host's", INDEX_ZERO);
	if (hca_gid_is_ipv4(gid) != hca_gid_is_ipv4(&f->netif[ah->port_num - 1].gid))
		return net_refuse(f, ah->port_num, "an address of another family than the port's",
				  "interfaces of one family at both ends, such as net=10.0.1.0/24");
	*address = port ? hca_address(&f->spec, 0, 0, port) : HCA_ADDRESS_REMOTE;
	return 0;
}

/* The port that a GID could be of. */
static uint32_t port_of(const struct hca_spec *s, const union ibv_gid *gid)
{
	const uint8_t *raw = gid->raw;
	const uint32_t host = (uint32_t)raw[14] << 8 | raw[15];

	if ((be64toh(gid->global.interface_id) & ~UINT64_C(0xffffff)) == INTERFACE_ID)
		return (uint32_t)be64toh(gid->global.interface_id) & 0xffffff;
	if (hca_gid_is_ipv4(gid) && raw[13] == SAME4)
		return host - 1;
	return (host - 1) * rails_of(s) +
	       (hca_gid_is_ipv4(gid) ? raw[13] & ~(unsigned)ALT4 : raw[IP6_RAIL_AT]);
}

/* Has a port such a GID, of the type that the source has? */
static bool has_gid(const struct hca_spec *s, uint32_t at, const union ibv_gid *gid, uint32_t type)
{
	union ibv_gid same;
	uint32_t i;

	for (i = 0; i < HCA_GIDS_MAX; i++) {
		const struct hca_gid_entry e = entry_of(s, at, i);

		gid_of(s, at, (enum hca_gid_kind)e.kind, &same);
		if (e.kind != HCA_GID_GAP && type_of(&e) == type &&
		    memcmp(&same, gid, sizeof(same)) == 0)
			return true;
	}
	return false;
}

/* An Ethernet port resolves addresses of the family, and of the scope, of its own one alone. */
static bool same_family(const struct ibv_context *c, const struct ibv_ah_attr *ah)
{
	const union ibv_gid *to = &ah->grh.dgid;
	union ibv_gid own;

	hca_query_gid((struct ibv_context *)(uintptr_t)c, ah->port_num, ah->grh.sgid_index, &own);
	return hca_gid_is_ipv4(&own) == hca_gid_is_ipv4(to) &&
	       hca_gid_is_link_local(&own) == hca_gid_is_link_local(to);
}

static int route_gid(const struct ibv_context *c, const struct ibv_ah_attr *ah, bool strict,
		     uint32_t *address)
{
	const struct hca_spec *s = &fabric_of(c)->spec;
	const struct hca_gid_entry own = entry_at(c, ah->port_num, ah->grh.sgid_index);
	const uint32_t at = port_of(s, &ah->grh.dgid);

	if (own.fails || at >= HCA_NODES_MAX * rails_of(s) ||
	    !has_gid(s, at, &ah->grh.dgid, type_of(&own)) || (strict && !same_family(c, ah)))
		return -EHOSTUNREACH;
	*address = at;
	return 0;
}

/* On InfiniBand the LID leads to the port, which takes what its GID agrees with. */
static int route_ib(const struct ibv_context *c, const struct ibv_ah_attr *ah, uint32_t *address)
{
	const struct hca_spec *s = &fabric_of(c)->spec;
	int rc;

	if (!ah->dlid)
		return route_gid(c, ah, false, address);
	rc = route_lid(s, hca_context_address(c, ah->port_num), ah->dlid, address);
	if (!rc && ah->is_global && !has_gid(s, *address, &ah->grh.dgid, IBV_GID_TYPE_IB))
		rc = -EHOSTUNREACH;
	return rc;
}

static bool requires_grh(const struct hca_spec *s, uint32_t at)
{
	uint32_t port;
	const struct hca_personality *p = hca_personality_at(s, at, &port);

	return p->grh[port];
}

int hca_route(const struct ibv_context *c, const struct ibv_ah_attr *ah, uint32_t *address)
{
	const struct hca_fabric *f = fabric_of(c);
	const struct hca_personality *p;
	uint32_t from, port;
	int rc;

	if (hca_is_net(f))
		return route_net(f, ah, address);
	if (ah->port_num < 1 || ah->port_num > f->spec.ports)
		return -EINVAL;
	from = hca_context_address(c, ah->port_num);
	p = hca_personality_at(&f->spec, from, &port);
	if (!ah->is_global && (p->link[port] == HCA_LINK_ETH || p->grh[port]))
		return -EINVAL;
	if (p->link[port] == HCA_LINK_IB)
		rc = route_ib(c, ah, address);
	else if (ah->is_global)
		rc = route_gid(c, ah, p->link[port] == HCA_LINK_ETH, address);
	else
		rc = route_lid(&f->spec, from, ah->dlid, address);
	/* A packet without a GRH would be lost at the other end; its sender is told at once. */
	if (!rc && !ah->is_global && requires_grh(&f->spec, *address))
		rc = -EHOSTUNREACH;
	return rc;
}
