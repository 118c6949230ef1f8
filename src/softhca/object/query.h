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

/* ---- Addresses (address.c) ------------------------------------------------ */

/* The address of a port of the device, on the fabric. */
uint32_t hca_context_address(const struct ibv_context *c, uint32_t port);
/* 0: the port has no LID. */
uint16_t hca_lid_of(const struct hca_spec *s, uint32_t address);

/* Is entry `index` of a port's GID table no gap?  RoCE v2, so that its header may be IPv4? */
bool hca_gid_exists(const struct ibv_context *c, uint32_t port, uint32_t index);
bool hca_gid_is_routable(const struct ibv_context *c, uint32_t port, uint32_t index);
/* Has the address no GRH, or a source GID that exists?  Of a network interface a line says that it has not. */
bool hca_source_exists(const struct ibv_context *c, const struct ibv_ah_attr *ah);

/* The address of a port of another host, which only a wire reaches. */
#define HCA_ADDRESS_REMOTE	UINT32_C(0x80000000)

/*
 * Address of the port that `ah` leads to: 0, or -EHOSTUNREACH; -EINVAL: the port needs a GRH.  Of
 * network interfaces only a GID is an address: without GRH -EHOSTUNREACH; not of this host:
 * HCA_ADDRESS_REMOTE.  A port that is not reached (hca_reaches) has a route: packets are lost.
 */
int hca_route(const struct ibv_context *c, const struct ibv_ah_attr *ah, uint32_t *address);

#endif
