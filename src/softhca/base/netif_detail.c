/* netif_detail.c - how the kernel treats TCP streams over an interface: softhca_net_detail. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/netif.h"
#include "softhca/base/netif_list.h"
#include "softhca/base/proc.h"
#include "softhca/base/rtnetlink.h"
#include "softhca/softhca.h"

static void offloads_of(const char *name, char *text, size_t size)
{
	static const struct {
		uint32_t request;
		const char *name;
	} all[] = { { ETHTOOL_GTSO, "tso" }, { ETHTOOL_GGSO, "gso" }, { ETHTOOL_GGRO, "gro" } };
	size_t used = 0, i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct ethtool_value value = { .cmd = all[i].request };
		struct ifreq r = { .ifr_data = (char *)&value };

		if (hca_netif_ask(name, SIOCETHTOOL, &r) == 0 && value.data && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "",
						 all[i].name);
	}
}

/* A route's, else that of a new socket: of this namespace. */
static void congestion_control(const char *interface, char *text, socklen_t size)
{
	int fd;

	hca_rtnetlink_congestion(if_nametoindex(interface), text, size);
	fd = *text ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &size))
		*text = '\0';
	close(fd);
}

/* "4096 131072 6291456" */
static void limits_of(const char *path, uint64_t limit[3])
{
	uint64_t value[3];
	char text[96];
	int fd = hca_proc_open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &value[0], &value[1], &value[2]) == 3)
		memcpy(limit, value, sizeof(value));
}

HCA_EXPORT int softhca_net_detail(const char *interface, struct softhca_net_detail *out)
{
	struct ifreq r = { .ifr_mtu = 0 };
	int rc = hca_netif_ask(interface, SIOCGIFMTU, &r);

	memset(out, 0, sizeof(*out));
	if (rc)
		return hca_fail(ENODEV, "%s: no such interface", interface);
	out->mtu = (uint32_t)r.ifr_mtu;
	hca_netif_driver(interface, out->driver, sizeof(out->driver));
	offloads_of(interface, out->offloads, sizeof(out->offloads));
	congestion_control(interface, out->congestion_control, sizeof(out->congestion_control) - 1);
	limits_of("/proc/sys/net/ipv4/tcp_rmem", out->receive_buffer);
	limits_of("/proc/sys/net/ipv4/tcp_wmem", out->send_buffer);
	return 0;
}
