/* gid.h - GIDs as IP addresses: IPv6 ones, and IPv4 ones mapped into IPv6. */
#ifndef HCA_GID_H
#define HCA_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { HCA_GID_IPV4_AT = 12 };		/* offset of a mapped address */

bool hca_gid_is_ipv4(const union ibv_gid *gid);
bool hca_gid_is_multicast(const union ibv_gid *gid);
bool hca_gid_is_link_local(const union ibv_gid *gid);	/* also 169.254.0.0/16 */
/* Can it be another host's: neither unspecified, nor reserved, nor IPv6's loopback? */
bool hca_gid_is_host(const union ibv_gid *gid);

/* address: 4 bytes in network order. */
void hca_gid_map_ipv4(const void *address, union ibv_gid *gid);

/* Converts a GID to an address for bind and connect; port and scope are 0. */
void hca_gid_address(const union ibv_gid *gid, struct sockaddr_storage *address);

/* "10.0.1.1" or "fd00::1"; INET6_ADDRSTRLEN bytes suffice.  Returns buf. */
char *hca_gid_format(const union ibv_gid *gid, char *buf, size_t size);

#endif
