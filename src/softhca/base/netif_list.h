/*
 * netif_list.h - all interfaces of this host, and which of them can be ports.
 *
 * Interfaces that are stacked share a wire: a VLAN and its lower interface, the members of a bond or
 * a bridge and the master.  Tunnels are known by their kind; their packets go over any wire.
 */
#ifndef HCA_NETIF_LIST_H
#define HCA_NETIF_LIST_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "softhca/softhca.h"

/* A row of the kernel's table of interfaces. */
struct hca_interface {
	char name[IFNAMSIZ];
	char kind[16];			/* IFLA_INFO_KIND; "": none */
	unsigned index;
	unsigned lower;			/* IFLA_LINK in this namespace; 0: none */
	unsigned master;		/* IFLA_MASTER; 0: none */
	unsigned flags;			/* IFF_UP... */
	uint32_t mtu;

	/* hca_interfaces_judge */
	unsigned wire;			/* the least index of all that share it */
	uint8_t layers;
	enum softhca_net_why why;

	bool beyond;			/* softhca_net_list had no room for it */
};

/* Fill in wire, layers and why of all rows; pure. */
void hca_interfaces_judge(struct hca_interface *all, unsigned count);

/* The name of its driver; left as it is, if the kernel has none. */
void hca_netif_driver(const char *name, char *driver, size_t size);

/* 10/8, 172.16/12, 192.168/16, 100.64/10, 169.254/16, 127/8. */
bool hca_gid_is_private_ipv4(const union ibv_gid *gid);

#endif
