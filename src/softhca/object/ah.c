/* ah.c - address handles, and the headers in front of a datagram. */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/base/gid.h"
#include "softhca/object/ah.h"
#include "softhca/object/mcast.h"
#include "softhca/object/net.h"
#include "softhca/object/query.h"

enum {
	IPV4_AT = HCA_GRH_BYTES - (int)sizeof(struct iphdr),	/* after reserved bytes */
	UDP_BYTES = 8,
	BTH_DETH_BYTES = 12 + 8,
	ICRC_BYTES = 4,
	IBA_BTH = 0x1b,			/* after a GRH that is no IP header: InfiniBand, RoCE v1 */
};

/* ---- Headers ------------------------------------------------------------- */

static uint16_t checksum(const struct iphdr *ip)
{
	uint16_t words[sizeof(*ip) / 2];
	uint32_t sum = 0;
	unsigned i;

	memcpy(words, ip, sizeof(*ip));
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

/* The header without its length and the checksum that covers it; true: an IPv4 header. */
static bool begin_header(const union ibv_gid *sgid, const struct ibv_global_route *to,
			 bool routable, unsigned char *header)
{
	bool ipv4 = routable && hca_gid_is_ipv4(sgid) && hca_gid_is_ipv4(&to->dgid);

	memset(header, 0, HCA_GRH_BYTES);
	if (ipv4) {
		struct iphdr ip = { .version = 4, .ihl = 5, .tos = to->traffic_class,
				    .frag_off = htons(IP_DF), .ttl = to->hop_limit,
				    .protocol = IPPROTO_UDP };

		memcpy(&ip.saddr, sgid->raw + 12, 4);
		memcpy(&ip.daddr, to->dgid.raw + 12, 4);
		memcpy(header + IPV4_AT, &ip, sizeof(ip));
	} else {
		struct ibv_grh grh = {
			.version_tclass_flow = htobe32(6u << 28 | (uint32_t)to->traffic_class << 20 |
						       (to->flow_label & 0xfffff)),
			.next_hdr = routable ? IPPROTO_UDP : IBA_BTH, .hop_limit = to->hop_limit,
			.sgid = *sgid, .dgid = to->dgid,
		};

		static_assert(sizeof(grh) == HCA_GRH_BYTES, "a GRH");
		memcpy(header, &grh, sizeof(grh));
	}
	return ipv4;
}

/* The rest, for a message of so many bytes. */
static void end_header(bool ipv4, uint32_t bytes, unsigned char *header)
{
	/* Bytes of the packet after the IP header, padded as on the wire. */
	uint32_t packet = UDP_BYTES + BTH_DETH_BYTES + ((bytes + 3) & ~3u) + ICRC_BYTES;
	uint16_t length;

	if (ipv4) {
		struct iphdr ip;

		memcpy(&ip, header + IPV4_AT, sizeof(ip));
		ip.tot_len = htons((uint16_t)(sizeof(ip) + packet));
		ip.check = checksum(&ip);
		memcpy(header + IPV4_AT, &ip, sizeof(ip));
	} else {
		length = htons((uint16_t)packet);
		memcpy(header + offsetof(struct ibv_grh, paylen), &length, sizeof(length));
	}
}

void hca_ah_header(const struct hca_ah *ah, uint32_t bytes, unsigned char header[HCA_GRH_BYTES])
{
	memcpy(header, ah->header, HCA_GRH_BYTES);
	if (ah->global)
		end_header(ah->ipv4, bytes, header);
}

void hca_grh_make(const union ibv_gid *sgid, const struct ibv_global_route *to, uint32_t bytes,
		  unsigned char header[HCA_GRH_BYTES])
{
	end_header(begin_header(sgid, to, true, header), bytes, header);
}

/* ---- Creation ------------------------------------------------------------ */

static int ah_check(const struct ibv_context *c, const struct ibv_ah_attr *a)
{
	const struct hca_context *context = hca_context_of((struct ibv_context *)(uintptr_t)c);

	if (a->port_num < 1 || a->port_num > context->fabric->spec.ports || a->sl > 15 ||
	    !hca_source_exists(c, a))
		return EINVAL;
	return 0;
}

struct ibv_ah *hca_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct hca_context *context = hca_context_of(pd->context);
	const struct hca_device *d = context->device;
	struct hca_fabric *f = context->fabric;
	int rc = ah_check(pd->context, attr);
	struct hca_ah *ah;
	union ibv_gid sgid;

	ah = rc ? NULL : calloc(1, sizeof(*ah));
	if (!ah) {
		errno = rc ? rc : ENOMEM;
		return NULL;
	}
	ah->global = attr->is_global;
	ah->multicast = ah->global && hca_gid_is_multicast(&attr->grh.dgid);
	rc = ah->multicast ? hca_mcast_check(f) : -hca_route(pd->context, attr, &ah->to);
	if (rc) {
		free(ah);
		errno = rc;
		return NULL;
	}
	ah->pd = hca_pd_of(pd)->id;
	ah->from = hca_address(&f->spec, d->node, d->hca, attr->port_num);
	ah->slid = hca_is_net(f) ? 0 : hca_lid_of(&f->spec, ah->from);
	ah->sl = attr->sl;
	if (ah->global) {
		ah->dgid = attr->grh.dgid;
		ah->flow_label = attr->grh.flow_label & 0xfffff;
		ah->traffic_class = attr->grh.traffic_class;
		ah->hop_limit = attr->grh.hop_limit;
		hca_query_gid(pd->context, attr->port_num, attr->grh.sgid_index, &sgid);
		ah->routable = hca_gid_is_routable(pd->context, attr->port_num, attr->grh.sgid_index);
		ah->ipv4 = begin_header(&sgid, &attr->grh, ah->routable, ah->header);
	}
	atomic_store(&ah->references, 1);
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	pthread_mutex_lock(&f->slow);
	ah->ibv.handle = ++f->ah_last;
	hca_list_add(&context->ahs, &ah->link);
	pthread_mutex_unlock(&f->slow);
	atomic_fetch_add(&hca_pd_of(pd)->objects, 1);
	return &ah->ibv;
}

void hca_ah_hold(struct ibv_ah *ibv)
{
	atomic_fetch_add(&hca_ah_of(ibv)->references, 1);
}

void hca_ah_let_go(struct ibv_ah *ibv)
{
	if (atomic_fetch_sub(&hca_ah_of(ibv)->references, 1) == 1)
		free(hca_ah_of(ibv));
}

int hca_ah_destroy(struct ibv_ah *ibv)
{
	struct hca_fabric *f = hca_context_of(ibv->context)->fabric;
	struct hca_ah *ah = hca_ah_of(ibv);

	pthread_mutex_lock(&f->slow);
	hca_list_remove(&ah->link);
	pthread_mutex_unlock(&f->slow);
	atomic_fetch_sub(&hca_pd_of(ibv->pd)->objects, 1);
	hca_ah_let_go(ibv);
	return 0;
}

/* ---- Handles from completions -------------------------------------------- */

/* Both GIDs of a received datagram, from the 40 bytes in front of it; true: it is of RoCE v2. */
static bool read_header(const struct ibv_grh *grh, union ibv_gid *sgid, union ibv_gid *dgid,
			uint8_t *traffic_class)
{
	struct iphdr ip;

	memcpy(&ip, (const char *)grh + IPV4_AT, sizeof(ip));
	if (be32toh(grh->version_tclass_flow) >> 28 != 6 && ip.version == 4 && ip.ihl == 5) {
		hca_gid_map_ipv4(&ip.saddr, sgid);
		hca_gid_map_ipv4(&ip.daddr, dgid);
		*traffic_class = ip.tos;
		return true;
	}
	*sgid = grh->sgid;
	*dgid = grh->dgid;
	*traffic_class = (uint8_t)(be32toh(grh->version_tclass_flow) >> 20);
	return grh->next_hdr != IBA_BTH;
}

/* Index of the local GID of that type that is dgid; for a multicast dgid, of the same family. */
static int own_index(struct ibv_context *c, uint8_t port, const union ibv_gid *dgid, bool routable)
{
	const struct hca_fabric *f = hca_context_of(c)->fabric;
	const bool group = hca_gid_is_multicast(dgid) && !hca_is_net(f);
	union ibv_gid mine;
	int i;

	for (i = 0; i < HCA_GIDS_MAX; i++)
		if (hca_gid_exists(c, port, (uint32_t)i) && hca_query_gid(c, port, i, &mine) == 0 &&
		    hca_gid_is_routable(c, port, (uint32_t)i) == routable &&
		    (group ? hca_gid_is_ipv4(&mine) == hca_gid_is_ipv4(dgid)
			   : memcmp(&mine, dgid, sizeof(mine)) == 0))
			return i;
	return -1;
}

int hca_ah_init_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid sgid, dgid;
	bool routable;
	int index;

	*attr = (struct ibv_ah_attr){ .dlid = wc->slid, .sl = wc->sl, .port_num = port,
				      .src_path_bits = wc->dlid_path_bits };
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	routable = read_header(grh, &sgid, &dgid, &attr->grh.traffic_class);
	if (routable)
		attr->sl = 0;		/* hca_ah_sl() */
	index = own_index(c, port, &dgid, routable);
	if (index < 0) {
		errno = EINVAL;
		return -1;
	}
	attr->is_global = 1;
	attr->grh.dgid = sgid;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.flow_label = be32toh(grh->version_tclass_flow) & 0xfffff;
	attr->grh.hop_limit = 0xff;
	return 0;
}

struct ibv_ah *hca_ah_create_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	struct ibv_ah_attr attr;

	return hca_ah_init_from_wc(pd->context, port, wc, grh, &attr) ? NULL
								      : hca_ah_create(pd, &attr);
}

int hca_ah_resolve_l2(struct ibv_context *c, struct ibv_ah_attr *attr, uint8_t mac[6],
		      uint16_t *vid)
{
	const struct hca_fabric *f = hca_context_of(c)->fabric;
	const uint8_t *raw = attr->grh.dgid.raw;
	uint32_t to = 0;

	if (ah_check(c, attr) || !attr->is_global)
		return EINVAL;
	*vid = 0xffff;			/* none */
	if (!hca_gid_is_multicast(&attr->grh.dgid)) {
		if (hca_route(c, attr, &to))
			return EHOSTUNREACH;
		/* The neighbours of an interface are the kernel's: a stream needs no address of theirs. */
		if (to == HCA_ADDRESS_REMOTE)
			return EOPNOTSUPP;
		if (hca_is_net(f)) {
			memcpy(mac, f->netif[to].mac, 6);
			return 0;
		}
		/* The address that the link-local GID is made from. */
		memcpy(mac, (const uint8_t[]){ 0x02, 0x53, 0x48, (uint8_t)(to >> 16),
					       (uint8_t)(to >> 8), (uint8_t)to }, 6);
	} else if (hca_gid_is_ipv4(&attr->grh.dgid)) {
		memcpy(mac, (const uint8_t[]){ 0x01, 0x00, 0x5e, raw[13] & 0x7f, raw[14],
					       raw[15] }, 6);
	} else {
		memcpy(mac, (const uint8_t[]){ 0x33, 0x33, raw[12], raw[13], raw[14], raw[15] }, 6);
	}
	return 0;
}
