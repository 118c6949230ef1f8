/*
 * ah.h - address handles: the destination of a datagram and its headers.
 *
 * A port is reached by GID (RoCE v2) or, without a GRH, by LID; the members of a
 * multicast group by its GID.  For an address that no port of the fabric has,
 * ibv_create_ah fails with EHOSTUNREACH, as when address resolution fails.
 */
#ifndef HCA_AH_H
#define HCA_AH_H

#include <infiniband/verbs.h>

#include "softhca/object/device.h"

enum { HCA_GRH_BYTES = 40 };

struct hca_ah {
	struct ibv_ah ibv;		/* first */
	struct hca_list_node link;		/* the context's list */
	_Atomic int references;		/* the user's and those of waiting requests */
	uint32_t pd;
	uint32_t from, to;		/* addresses on the fabric; to: unless multicast */
	bool multicast, global;
	uint8_t sl;
	uint16_t slid;
	bool routable, ipv4;		/* RoCE v2; the header is IPv4 */
	union ibv_gid dgid;
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit;
	/* Header of each message, without its length and the checksum that covers it. */
	unsigned char header[HCA_GRH_BYTES];
};

static inline struct hca_ah *hca_ah_of(struct ibv_ah *ah)
{
	return (struct hca_ah *)(void *)ah;
}

struct ibv_ah *hca_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr);
struct ibv_ah *hca_ah_create_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port);
int hca_ah_init_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr);
int hca_ah_destroy(struct ibv_ah *ah);

/* A reference by a waiting request, which outlives ibv_destroy_ah. */
void hca_ah_hold(struct ibv_ah *ah);
void hca_ah_let_go(struct ibv_ah *ah);

/*
 * The receiver's wc.sl.  A RoCE v2 packet carries no SL; adapters of the ConnectX
 * family report the type of its header there, and UCX relies on it.
 */
static inline uint8_t hca_ah_sl(const struct hca_ah *ah)
{
	enum { IPV6 = 1, IPV4 = 2 };

	return !ah->global || !ah->routable ? ah->sl : ah->ipv4 ? IPV4 : IPV6;
}

/* The 40 bytes in front of a received message of so many bytes; zero without a GRH. */
void hca_ah_header(const struct hca_ah *ah, uint32_t bytes, unsigned char header[HCA_GRH_BYTES]);

/* The same for a message from sgid, which a wire has brought. */
void hca_grh_make(const union ibv_gid *sgid, const struct ibv_global_route *to, uint32_t bytes,
		  unsigned char header[HCA_GRH_BYTES]);

/* The Ethernet address of the port or multicast group of attr: 0 or an errno value. */
int hca_ah_resolve_l2(struct ibv_context *c, struct ibv_ah_attr *attr, uint8_t mac[6],
		      uint16_t *vid);

#endif
