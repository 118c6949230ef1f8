/*
 * tap.c - tap NAME MBIT: an interface with carrier that says it is so fast, until this process ends.
 */
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int speed_set(struct ifreq *r, unsigned mbit)
{
	/* Like the kernel's answer to a request without room for bit maps, it has none. */
	struct ethtool_cmd link = { .cmd = ETHTOOL_SSET, .duplex = DUPLEX_FULL };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ethtool_cmd_speed_set(&link, mbit);
	r->ifr_data = (char *)&link;
	return ioctl(fd, SIOCETHTOOL, r);
}

int main(int argc, char **argv)
{
	struct ifreq r = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR);

	if (argc != 3 || fd < 0)
		return 77;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", argv[1]);
	if (ioctl(fd, TUNSETIFF, &r) || speed_set(&r, (unsigned)atoi(argv[2]))) {
		perror("tap");
		return 77;
	}
	for (;;)
		pause();
}
