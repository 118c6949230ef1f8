/* gid.c - see gid.h. */
#include "softhca/base/gid.h"

#include <arpa/inet.h>
#include <string.h>

bool hca_gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[HCA_GID_IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

bool hca_gid_is_multicast(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff ||
	       (hca_gid_is_ipv4(gid) && (gid->raw[HCA_GID_IPV4_AT] & 0xf0) == 0xe0);
}

bool hca_gid_is_link_local(const union ibv_gid *gid)
{
	const uint8_t *ipv4 = gid->raw + HCA_GID_IPV4_AT;

	return hca_gid_is_ipv4(gid) ? ipv4[0] == 169 && ipv4[1] == 254
				    : gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

bool hca_gid_is_host(const union ibv_gid *gid)
{
	static const union ibv_gid none, loopback = { .raw = { [15] = 1 } };

	if (hca_gid_is_multicast(gid))
		return false;
	if (hca_gid_is_ipv4(gid))
		return gid->raw[HCA_GID_IPV4_AT] != 0 && gid->raw[HCA_GID_IPV4_AT] < 0xf0;
	return memcmp(gid, &none, sizeof(none)) != 0 &&
	       memcmp(gid, &loopback, sizeof(loopback)) != 0;
}

void hca_gid_map_ipv4(const void *address, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + HCA_GID_IPV4_AT, address, 4);
}

void hca_gid_address(const union ibv_gid *gid, struct sockaddr_storage *address)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)address;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)address;

	memset(address, 0, sizeof(*address));
	if (hca_gid_is_ipv4(gid)) {
		four->sin_family = AF_INET;
		memcpy(&four->sin_addr, gid->raw + HCA_GID_IPV4_AT, sizeof(four->sin_addr));
		return;
	}
	six->sin6_family = AF_INET6;
	memcpy(&six->sin6_addr, gid, sizeof(six->sin6_addr));
}

char *hca_gid_format(const union ibv_gid *gid, char *buf, size_t size)
{
	const bool ipv4 = hca_gid_is_ipv4(gid);

	if (!inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? HCA_GID_IPV4_AT : 0), buf,
		       (socklen_t)size))
		*buf = '\0';
	return buf;
}
