/*
 * net.h - a fabric whose ports are network interfaces (the spec's net=).
 *
 * Such a fabric has one node, this host: an adapter whose port n is the interface netif[n - 1].
 * The state of a port is a word of the fabric's segment like that of any port (model/loss.h); each
 * member writes what the kernel tells it, so that events, queries and `softhca list` see one state.
 */
#ifndef HCA_NET_H
#define HCA_NET_H

#include "softhca/object/fabric.h"

/* Find the interfaces and the host's identity; before the fabric is joined.  0 or -errno, hca_fail. */
int hca_net_open(struct hca_fabric *f);
/* The fabric is joined: write the states of its ports. */
void hca_net_start(struct hca_fabric *f);
void hca_net_close(struct hca_fabric *f);

static inline bool hca_is_net(const struct hca_fabric *f)
{
	return f->spec.nets != 0;
}

/*
 * Has the state of a port changed since the last look?  The words are then up to date, and
 * hca_port_events_handle is to be called.  A system call; one thread at a time.
 * f->net_watch.fd is readable when a look is worth its call.
 */
bool hca_net_changed(struct hca_fabric *f);

/* The port of this host that has this address, 1...; 0: none. */
uint32_t hca_net_port(const struct hca_fabric *f, const union ibv_gid *gid);

/* For people: "2 ports over TCP: eth0 10.0.1.1, eth1 10.0.2.1". */
void hca_net_describe(const struct hca_fabric *f, char *buf, size_t size);

#endif
