/*
 * netif.h - the network interfaces that net= names: their addresses, MTU, speed and state.
 *
 * An interface is named by itself ("eth0") or by a subnet that holds one of its addresses
 * ("10.0.1.0/24", "fd00::/64").  Its address is the first permanent one: IPv4 before IPv6, no
 * secondary, deprecated, temporary, tentative or duplicate one; a link-local one only if a subnet
 * in its range names it.
 */
#ifndef HCA_NETIF_H
#define HCA_NETIF_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct hca_netif {
	char name[IFNAMSIZ];
	unsigned index;
	union ibv_gid gid;		/* the address; IPv4 mapped into IPv6 */
	struct sockaddr_storage address;	/* port 0; the scope of a link-local one */
	uint32_t mtu;			/* bytes of an IP packet */
	uint64_t rate;			/* bytes per second and direction; 0: unknown */
	uint8_t mac[6];			/* zero: it has none */
	bool up;			/* administratively, with carrier */
};

/*
 * The interface of a name or subnet: 0, or with hca_fail, which names those that exist: -ENODEV
 * (no such interface), -ENETDOWN, -EADDRNOTAVAIL (no usable address), -ENOTUNIQ (a subnet of
 * several interfaces), -EINVAL (text is neither name nor subnet), or another -errno.
 */
int hca_netif_find(const char *text, struct hca_netif *out);

/*
 * "10.0.1.7/24" -> "10.0.1.0/24": the canonical form of a name or subnet.  0 or -EINVAL.
 */
int hca_netif_canonical(const char *text, char *buf, size_t size);

/*
 * A descriptor that becomes readable when interfaces or their addresses change (netlink); -errno with
 * hca_fail.  The caller closes it.
 */
int hca_netif_watch(void);
/* Read what the kernel has reported: anything since the last call?  One thread at a time. */
bool hca_netif_watch_changed(int fd);
/* Is the interface up, with carrier and with its address?  A system call or two. */
bool hca_netif_is_up(const struct hca_netif *n);
/* The reason why the interface is not, for people; NULL: it is. */
const char *hca_netif_trouble(const struct hca_netif *n);

/* ---- For lists of interfaces --------------------------------------------- */

struct hca_netif_address {
	unsigned index;			/* of the interface */
	union ibv_gid gid;
	unsigned prefix;		/* bits of gid that are the subnet's */
	bool usable;			/* permanent, and no duplicate */
	bool link_local;
};
/* Visit the addresses of all interfaces until a result is not 0: that result, else 0 or -errno. */
int hca_netif_each_address(int (*visit)(void *arg, const struct hca_netif_address *a), void *arg);
/* Makes a SIOC... request about an interface: 0 or -errno, silent. */
int hca_netif_ask(const char *name, unsigned long request, struct ifreq *r);
uint64_t hca_netif_rate(const char *name);	/* bytes per second; 0: unknown */

/* ---- The host ------------------------------------------------------------ */

/* Boot and network namespace of this process, hashed: equal for processes of one host only. */
int hca_netif_host(uint8_t host[16]);	/* 0 or -errno with hca_fail */

#endif
