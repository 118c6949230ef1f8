/*
 * ah.h - address handles: where a datagram goes, and what its headers say.
 *
 * A port is reached by GID (RoCE v2) or, without a GRH, by LID; all at a
 * multicast GID by that.  What no port of the fabric has cannot be reached,
 * as when an address is not resolved: ibv_create_ah fails with EHOSTUNREACH.
 */
#ifndef HCA_AH_H
#define HCA_AH_H

#include <infiniband/verbs.h>

#include "object/device.h"

enum { HCA_GRH_BYTES = 40 };

struct hca_ah {
	struct ibv_ah ibv;		/* first */
	struct hca_list_node link;		/* of the context */
	_Atomic int references;		/* the user's, and requests that wait */
	uint32_t pd;
	uint32_t from, to;		/* addresses on the fabric; to: unless multicast */
	bool multicast, global;
	uint8_t sl;
	uint16_t slid;
	bool ipv4;			/* the form of the header */
	union ibv_gid dgid;
	/* In front of each message, but for its length (and the checksum that covers it). */
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

/* A request that waits needs it, even if its user does not. */
void hca_ah_hold(struct ibv_ah *ah);
void hca_ah_let_go(struct ibv_ah *ah);

/*
 * What a receiver finds in wc.sl.  A packet of RoCE v2 carries no SL; adapters of
 * the ConnectX family say there what its header is, and UCX relies on it.
 */
static inline uint8_t hca_ah_sl(const struct hca_ah *ah)
{
	enum { IPV6 = 1, IPV4 = 2 };

	return !ah->global ? ah->sl : ah->ipv4 ? IPV4 : IPV6;
}

/* What the receiver finds in front of a message of so many bytes; zero without a GRH. */
void hca_ah_header(const struct hca_ah *ah, uint32_t bytes, unsigned char header[HCA_GRH_BYTES]);

/* The Ethernet address of the port (or the multicast group) that attr leads to: 0 or an errno. */
int hca_ah_resolve_l2(struct ibv_context *c, struct ibv_ah_attr *attr, uint8_t mac[6],
		      uint16_t *vid);

/* An IPv6 multicast address, or an IPv4 one mapped into IPv6. */
bool hca_gid_is_multicast(const union ibv_gid *gid);

#endif
