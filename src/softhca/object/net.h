/*
 * net.h - a fabric whose ports are network interfaces (the spec's net=).
 *
 * Such a fabric has one node, this host: an adapter whose port n is the interface netif[n - 1].
 * The state of a port is a word of the fabric's segment like that of any port (model/loss.h); each
 * member writes what the kernel tells it, so that events, queries and `softhca list` see one state.
 */
#ifndef HCA_NET_H
#define HCA_NET_H

#include "softhca/base/netif.h"
#include "softhca/object/fabric.h"

/*
 * Find the interfaces and the host's identity, before the fabric is joined; without nets nothing.
 * 0 or -errno with hca_fail; hca_net_close in any case.
 */
int hca_net_open(struct hca_fabric *f);
/* The fabric is joined: write the states of its ports. */
void hca_net_start(struct hca_fabric *f);
/* The kernel's reports are no longer needed; also in a child of fork. */
void hca_net_close(struct hca_fabric *f);

static inline bool hca_is_net(const struct hca_fabric *f)
{
	return f->spec.nets != 0;
}

/*
 * Has the kernel reported changes since the last call?  The ports' words are then up to date, and
 * the attention of this process is raised, so that hca_engine_handle_events finds the ports that
 * changed (engine/port_events.h).  One system call if nothing has changed; one thread at a time.
 * f->net_fd is readable when the kernel has reported something; -1 without nets.
 */
bool hca_net_changed(struct hca_fabric *f);
/* Look at one port now, and bring its word up to date: is it up?  Any thread, some system calls. */
bool hca_net_look(struct hca_fabric *f, uint32_t port);

/*
 * Payload of a packet of the interface of a port, as an adapter would have it there: 256, 512, 1024,
 * 2048 or 4096 bytes.  Port 0: the least of all.
 */
uint32_t hca_net_mtu(const struct hca_fabric *f, uint32_t port);

/* The same for ports of any kind. */
static inline uint32_t hca_port_mtu(const struct hca_fabric *f, uint32_t port)
{
	return hca_is_net(f) ? hca_net_mtu(f, port) : (uint32_t)f->spec.mtu;
}

/* The port of this host that has this address, 1...; 0: none. */
uint32_t hca_net_port(const struct hca_fabric *f, const union ibv_gid *gid);

/* For people: "2 ports over TCP: eth0 10.0.1.1, eth1 10.0.2.1". */
void hca_net_describe(const struct hca_fabric *f, char *buf, size_t size);

#endif
