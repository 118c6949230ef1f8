/* query.h - device, port and address queries. */
#ifndef HCA_QUERY_H
#define HCA_QUERY_H

#include "softhca/object/device.h"

uint64_t hca_device_guid(const struct hca_device *d);	/* host byte order */
int hca_query_device(struct ibv_context *c, struct ibv_device_attr *attr);
int hca_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
			struct ibv_device_attr_ex *attr, size_t size);
int hca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size);
int hca_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid);
int hca_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry, uint32_t flags, size_t size);
ssize_t hca_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entries, size_t max,
			    uint32_t flags, size_t size);
int hca_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey);

enum {
	HCA_GIDS = 2,		/* per port: link-local, IPv4-mapped; both RoCE v2 */
	HCA_GID_TABLE = 16,	/* length of the table; the rest is empty */
};

#define HCA_ADDRESS_REMOTE 0x80000000u	/* a port of another host, which only a wire reaches */

/*
 * Address of the port that `ah` leads to: 0, or -EHOSTUNREACH.  Of network interfaces only a GID
 * is an address: without GRH -EHOSTUNREACH; not of this host: HCA_ADDRESS_REMOTE.
 */
int hca_route(const struct hca_fabric *f, const struct ibv_ah_attr *ah, uint32_t *address);

#endif
