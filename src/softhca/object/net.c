/* net.c - see net.h. */
#include "softhca/object/net.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/base/fd.h"
#include "softhca/base/gid.h"
#include "softhca/model/loss.h"
#include "softhca/model/text.h"
#include "util/clock.h"

int hca_net_open(struct hca_fabric *f)
{
	unsigned i, other;
	int rc;

	if (!f->spec.nets)
		return 0;
	/* Before the states are read, so that no change is missed. */
	f->net_fd = hca_fd_raise(hca_netif_watch());
	if (f->net_fd < 0)
		return f->net_fd;
	f->netif = calloc(f->spec.nets, sizeof(*f->netif));
	if (!f->netif)
		return hca_fail(ENOMEM, "no memory");
	rc = hca_netif_host(f->host);
	for (i = 0; !rc && i < f->spec.nets; i++) {
		rc = hca_netif_find(f->spec.net[i], &f->netif[i]);
		for (other = 0; !rc && other < i; other++)
			if (f->netif[other].index == f->netif[i].index)
				rc = hca_fail(EINVAL, "net=%s+%s: both are interface %s (accepted: "
					      "each interface once)", f->spec.net[other],
					      f->spec.net[i], f->netif[i].name);
	}
	return rc;
}

void hca_net_close(struct hca_fabric *f)
{
	if (f->net_fd >= 0)
		close(f->net_fd);
	f->net_fd = -1;
}

/*
 * Each member writes what it sees; the time is taken before the look, so that of two members the one
 * that looked later wins.
 */
bool hca_net_look(struct hca_fabric *f, uint32_t port)
{
	const uint64_t now_ns = rg_now_ns();
	struct hca_shm_port *p = hca_shm_port_at(f->shm, &f->spec, port - 1);

	if (hca_port_change(f->shm, p, !hca_netif_is_up(&f->netif[port - 1]), now_ns))
		atomic_fetch_add(&f->self->attention, 1);
	return !hca_port_is_down(atomic_load(&p->state));
}

static void look_at_all(struct hca_fabric *f)
{
	uint32_t port;

	for (port = 1; port <= f->spec.nets; port++)
		hca_net_look(f, port);
}

void hca_net_start(struct hca_fabric *f)
{
	look_at_all(f);
}

/* Another member may have written the change: it raises the attention of its own process alone. */
bool hca_net_changed(struct hca_fabric *f)
{
	if (!hca_netif_watch_changed(f->net_fd))
		return false;
	look_at_all(f);
	atomic_fetch_add(&f->self->attention, 1);
	return true;
}

/* Headers of a RoCE v2 packet, the largest that Linux subtracts for the MTU of an adapter's port. */
enum { ROCE_HEADERS = 96 };

uint32_t hca_net_mtu(const struct hca_fabric *f, uint32_t port)
{
	uint32_t mtu = 256, least = UINT32_MAX, i;

	for (i = 1; i <= f->spec.nets; i++)
		if ((!port || i == port) && f->netif[i - 1].mtu < least)
			least = f->netif[i - 1].mtu;
	while (mtu < 4096 && 2 * mtu + ROCE_HEADERS <= least)
		mtu *= 2;
	return mtu;
}

uint32_t hca_net_port(const struct hca_fabric *f, const union ibv_gid *gid)
{
	uint32_t port;

	for (port = 1; port <= f->spec.nets; port++)
		if (memcmp(&f->netif[port - 1].gid, gid, sizeof(*gid)) == 0)
			return port;
	return 0;
}

void hca_net_describe(const struct hca_fabric *f, char *buf, size_t size)
{
	struct hca_text t = { buf, size, 0 };
	char address[INET6_ADDRSTRLEN];
	unsigned i;

	hca_append(&t, "%u port%s over TCP: ", f->spec.nets, f->spec.nets > 1 ? "s" : "");
	for (i = 0; i < f->spec.nets; i++)
		hca_append(&t, "%s%s %s", i ? ", " : "", f->netif[i].name,
			   hca_gid_format(&f->netif[i].gid, address, sizeof(address)));
}
