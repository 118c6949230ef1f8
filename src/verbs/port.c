/* port.c - the table of ports: names, reachable networks, rates. */
#include "config.h"		/* _GNU_SOURCE */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/err.h"
#include "softhca/softhca.h"
#include "verbs/sysfs.h"
#include "verbs/vrb.h"

enum { SPEED_NDR = 128 };		/* the last code of active_speed */

/* Vendor ids of the kernel's software devices (drivers rxe and siw). */
enum { VENDOR_RXE = 0xffffff, VENDOR_SIW = 0x626d74 };

const char *vrb_port_state_text(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_ACTIVE:
		return "ACTIVE";
	case IBV_PORT_ARMED:
		return "ARMED";
	case IBV_PORT_INIT:
		return "INIT";
	case IBV_PORT_ACTIVE_DEFER:
		return "ACTIVE_DEFER";
	case IBV_PORT_DOWN:
		return "DOWN";
	default:
		return "in no known state";
	}
}

uint32_t vrb_mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

/*
 * Data rate of a link from its encoded speed and width.  SDR to QDR carry 8 data
 * bits in 10 line bits on InfiniBand; Ethernet drivers report the same codes for the data
 * rate itself.
 */
static uint64_t link_rate(const struct ibv_port_attr *attr)
{
	static const struct { uint8_t code; uint32_t line_mb, data_mb; } speeds[] = {
		{ 1, 2500, 2000 },	{ 2, 5000, 4000 },	{ 4, 10000, 8000 },
		{ 8, 10000, 10000 },	{ 16, 14000, 13640 },	{ 32, 25000, 25000 },
		{ 64, 50000, 50000 },	{ 128, 100000, 100000 },
	};
	static const struct { uint8_t code; uint32_t lanes; } widths[] = {
		{ 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 },
	};
	uint64_t mb = 0, lanes = 0;

	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i].code == attr->active_speed)
			mb = attr->link_layer == IBV_LINK_LAYER_ETHERNET ? speeds[i].line_mb :
									   speeds[i].data_mb;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (widths[i].code == attr->active_width)
			lanes = widths[i].lanes;
	return mb * lanes * 1000000 / 8;
}

static bool gid_is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

static bool gid_is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool gid_is_ipv4(const union ibv_gid *gid)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/* The interface with that address; "" if there is none. */
static void netdev_of(const union ibv_gid *gid, char name[16])
{
	struct ifaddrs *all, *i;

	if (getifaddrs(&all))
		return;
	for (i = all; i && !*name; i = i->ifa_next) {
		const void *a = i->ifa_addr;
		bool found = false;

		if (a && i->ifa_addr->sa_family == AF_INET)
			found = gid_is_ipv4(gid) &&
				!memcmp(&((const struct sockaddr_in *)a)->sin_addr, gid->raw + 12, 4);
		else if (a && i->ifa_addr->sa_family == AF_INET6)
			found = !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, gid->raw, 16);
		if (found)
			snprintf(name, 16, "%.15s", i->ifa_name);
	}
	freeifaddrs(all);
}

/* The netdev's own network: its address under its mask, as IPv4-mapped bytes. */
static bool ipv4_network(uint32_t ifindex, const union ibv_gid *gid, unsigned char *subnet)
{
	struct ifaddrs *all, *i;
	char name[IF_NAMESIZE] = "";
	bool found = false;

	if (ifindex && !if_indextoname(ifindex, name))
		return false;
	if (getifaddrs(&all))
		return false;
	for (i = all; i && !found; i = i->ifa_next) {
		struct sockaddr_in addr, mask;

		if (!i->ifa_addr || !i->ifa_netmask || i->ifa_addr->sa_family != AF_INET)
			continue;
		if (*name && strcmp(name, i->ifa_name))
			continue;
		memcpy(&addr, i->ifa_addr, sizeof(addr));
		memcpy(&mask, i->ifa_netmask, sizeof(mask));
		if (memcmp(&addr.sin_addr, gid->raw + 12, 4))
			continue;
		addr.sin_addr.s_addr &= mask.sin_addr.s_addr;
		memcpy(subnet, gid->raw, 12);
		memcpy(subnet + 12, &addr.sin_addr, 4);
		found = true;
	}
	freeifaddrs(all);
	return found;
}

static void port_subnet(struct vrb_port *port, uint32_t ifindex)
{
	memset(port->subnet, 0, sizeof(port->subnet));
	if (port->gid_index < 0 || port->net)
		return;
	if (gid_is_ipv4(&port->gid) && ipv4_network(ifindex, &port->gid, port->subnet))
		return;
	memcpy(port->subnet, port->gid.raw, 8);
}

/*
 * The preference for a GID of an Ethernet port: RoCE v2 before v1, IPv4 before routable
 * IPv6 before link-local.  The index says nothing: index 0 usually is a v1 link-local GID.
 */
static int gid_rank(const struct ibv_gid_entry *e)
{
	int rank = e->gid_type == IBV_GID_TYPE_ROCE_V2 ? 4 : 0;

	if (gid_is_zero(&e->gid))
		return -1;
	if (gid_is_ipv4(&e->gid))
		return rank + 2;
	return gid_is_link_local(&e->gid) ? rank / 4 : rank + 1;
}

static void port_gid(struct ibv_context *context, struct vrb_port *port, int table_length)
{
	uint32_t ifindex = 0;
	int best = -1;

	port->gid_index = -1;
	for (int i = 0; i < table_length; i++) {
		struct ibv_gid_entry e;
		int rank;

		if (ibv_query_gid_ex(context, port->number, (uint32_t)i, &e, 0))
			continue;
		/* InfiniBand: entry 0 is the port's own, the others are aliases. */
		rank = port->link_layer == IBV_LINK_LAYER_ETHERNET ? gid_rank(&e) : 8;
		if (rank <= best)
			continue;
		best = rank;
		port->gid = e.gid;
		port->gid_index = i;
		port->gid_type = (uint8_t)e.gid_type;
		ifindex = e.ndev_ifindex;
	}
	port->gid_link_local = port->link_layer == IBV_LINK_LAYER_ETHERNET &&
			       port->gid_index >= 0 && gid_is_link_local(&port->gid);
	port_subnet(port, ifindex);
}

static void device_pci(const char *device, char *pci, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", device);
	vrb_link_name(path, pci, size);
}

static enum vrb_kind device_kind(struct ibv_device *device, const struct ibv_device_attr *attr)
{
	char path[PATH_MAX];

	if (softhca_is_device(device))
		return VRB_SOFTHCA;
	if (attr->vendor_id == VENDOR_RXE || attr->vendor_id == VENDOR_SIW)
		return VRB_KERNEL_SOFTWARE;
	/* Only devices made by `rdma link add` on a netdev have a parent of that kind. */
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent",
		 ibv_get_device_name(device));
	return access(path, R_OK) == 0 ? VRB_KERNEL_SOFTWARE : VRB_HARDWARE;
}

/*
 * The first key of a full member: index 0 is often the limited one of the management partition,
 * by which no two hosts reach each other.
 */
static uint16_t pkey_choose(struct ibv_context *context, const struct vrb_port *port, int length)
{
	__be16 key;

	for (int i = 0; i < length; i++)
		if (!ibv_query_pkey(context, port->number, i, &key) && ntohs(key) > 0x8000)
			return (uint16_t)i;
	return 0;
}

/* Codes of verbs end at NDR, which faster links have, too. */
static void port_sysfs(struct vrb_port *port, const struct ibv_port_attr *attr)
{
	const char *name = ibv_get_device_name(port->device);
	const bool ends = attr->active_speed >= SPEED_NDR || !port->rate_bytes_per_s;
	const uint64_t rate = ends ? vrb_sysfs_rate(name, port->number) : 0;

	device_pci(name, port->pci, sizeof(port->pci));
	port->objects = vrb_cgroup_objects(name, "");
	if (rate)
		port->rate_bytes_per_s = rate;
	if (port->link_layer != IBV_LINK_LAYER_ETHERNET)
		return;
	port->lag = vrb_sysfs_is_lag(name, port->number);
	port->host_tclass = vrb_sysfs_tclass(name, port->number);
}

static int port_query(struct ibv_context *context, const struct ibv_device_attr *dev, int number,
		      struct vrb_port *port)
{
	struct softhca_model model;
	struct ibv_port_attr attr;
	int rc;

	memset(port, 0, sizeof(*port));
	memset(&attr, 0, sizeof(attr));
	rc = ibv_query_port(context, (uint8_t)number, &attr);
	if (rc)
		return rc > 0 ? -rc : -EIO;
	port->device = context->device;
	snprintf(port->name, sizeof(port->name), "%s:%d", ibv_get_device_name(context->device),
		 number);
	port->number = (uint8_t)number;
	port->card = be64toh(dev->sys_image_guid);
	port->queue_pairs = dev->max_qp > 0 ? (uint32_t)dev->max_qp : 0;
	port->requests = dev->max_qp_wr > 0 ? (uint32_t)dev->max_qp_wr : 0;
	port->cq_entries = dev->max_cqe > 0 ? (uint32_t)dev->max_cqe : 0;
	snprintf(port->firmware, sizeof(port->firmware), "%.63s", dev->fw_ver);
	port->kind = device_kind(context->device, dev);
	port->usable = context->device->transport_type == IBV_TRANSPORT_IB;
	port->link_layer = attr.link_layer ? attr.link_layer : IBV_LINK_LAYER_INFINIBAND;
	port->state = attr.state;
	port->mtu = port->active_mtu = attr.active_mtu;
	port->message_max = attr.max_msg_sz;
	port->lid = attr.lid;
	port->grh = attr.flags & IBV_QPF_GRH_REQUIRED;
	port->rate_bytes_per_s = link_rate(&attr);
	if (port->kind == VRB_SOFTHCA && softhca_query_model(context->device, &model) == 0) {
		port->rate_bytes_per_s = model.port_rate[number - 1];
		port->net = model.net;
	}
	port->host_tclass = -1;
	if (port->kind != VRB_SOFTHCA)
		port_sysfs(port, &attr);
	port->pkey_index = pkey_choose(context, port, attr.pkey_tbl_len);
	port_gid(context, port, attr.gid_tbl_len);
	if (port->net && port->gid_index >= 0)
		netdev_of(&port->gid, port->netdev);
	return 0;
}

enum ibv_port_state vrb_port_state_now(struct ibv_context *context, const struct vrb_port *port)
{
	struct ibv_port_attr attr = { .state = IBV_PORT_NOP };

	return ibv_query_port(context, port->number, &attr) ? IBV_PORT_NOP : attr.state;
}

static void unopened_count(struct ibv_device *device, int error, struct vrb_ports *out)
{
	if (out->unopened++)
		return;
	out->unopened_error = error ? error : EIO;
	snprintf(out->unopened_name, sizeof(out->unopened_name), "%s", ibv_get_device_name(device));
}

void vrb_ports_tell_unopened(const struct vrb_ports *ports)
{
	char more[32] = "";

	if (ports->unopened > 1)
		snprintf(more, sizeof(more), " and %d more", ports->unopened - 1);
	if (ports->unopened)
		rg_warn("%s%s: cannot be opened (%s), left out", ports->unopened_name, more,
			strerror(ports->unopened_error));
}

/* A line for a process that cannot learn of a device, as one that is out of descriptors; NULL: of all. */
static int unknown(const char *device, int error)
{
	char most[48] = "";
	struct rlimit limit;

	if (error == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		snprintf(most, sizeof(most), " (ulimit -n: %llu)", (unsigned long long)limit.rlim_cur);
	rg_error("%s cannot be %s: %s%s", device ? device : "the RDMA devices", device ? "opened" : "listed",
		 strerror(error), most);
	return -error;
}

static int device_scan(struct ibv_device *device, struct vrb_ports *out)
{
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct vrb_port *grown;
	int rc = 0;

	errno = 0;
	context = ibv_open_device(device);
	if (!context && (errno == EMFILE || errno == ENFILE))
		return unknown(ibv_get_device_name(device), errno);
	if (!context) {
		unopened_count(device, errno, out);
		return 0;
	}
	rc = ibv_query_device(context, &attr);
	if (rc) {
		unopened_count(device, rc, out);
		rc = 0;
		goto out;
	}
	grown = realloc(out->port, (size_t)(out->count + attr.phys_port_cnt) * sizeof(*grown));
	if (!grown) {
		rc = attr.phys_port_cnt ? -ENOMEM : 0;
		if (rc)
			rg_error("no memory for the table of ports");
		goto out;
	}
	out->port = grown;
	for (int n = 1; n <= attr.phys_port_cnt; n++)
		if (port_query(context, &attr, n, &out->port[out->count]) == 0)
			out->count++;
out:
	ibv_close_device(context);
	return rc;
}

/* ---- Wishes ------------------------------------------------------------- */

static int gid_wish(struct ibv_context *context, struct vrb_port *port, int index, int length)
{
	char accepted[128] = "";
	struct ibv_gid_entry e;

	if (index < length && !ibv_query_gid_ex(context, port->number, (uint32_t)index, &e, 0) &&
	    !gid_is_zero(&e.gid)) {
		port->gid = e.gid;
		port->gid_index = index;
		port->gid_type = (uint8_t)e.gid_type;
		port->gid_link_local = gid_is_link_local(&e.gid);
		port_subnet(port, e.ndev_ifindex);
		return 0;
	}
	for (int i = 0; i < length; i++)
		if (!ibv_query_gid_ex(context, port->number, (uint32_t)i, &e, 0) &&
		    !gid_is_zero(&e.gid) && strlen(accepted) < sizeof(accepted) - 16)
			snprintf(accepted + strlen(accepted), 16, "%s%d", *accepted ? ", " : "", i);
	rg_error("--gid-index %d: %s has no such GID (accepted: %s)", index, port->name,
		 *accepted ? accepted : "none");
	return -EINVAL;
}

/* The top bit of a key is its membership, full or limited; the others name the partition. */
static int pkey_wish(struct ibv_context *context, struct vrb_port *port, uint16_t key, int length)
{
	char accepted[128] = "";

	for (int i = 0; i < length; i++) {
		uint16_t have;

		if (ibv_query_pkey(context, port->number, i, (__be16 *)&have))
			continue;
		have = ntohs(have);
		if ((have & 0x7fff) == (key & 0x7fff)) {
			port->pkey_index = (uint16_t)i;
			return 0;
		}
		if (have & 0x7fff && strlen(accepted) < sizeof(accepted) - 12)
			snprintf(accepted + strlen(accepted), 12, "%s0x%04x",
				 *accepted ? ", " : "", have);
	}
	rg_error("--pkey 0x%04x: %s is in no such partition (accepted: %s)", key, port->name,
		 *accepted ? accepted : "none");
	return -EINVAL;
}

int vrb_port_configure(struct vrb_port *port, const struct vrb_port_wish *wish)
{
	struct ibv_context *context;
	struct ibv_port_attr attr;
	int rc = 0;

	port->sl = wish->sl;
	port->tclass = (uint8_t)(wish->tclass >= 0 ? wish->tclass :
				 port->host_tclass >= 0 ? port->host_tclass : 0);
	while (wish->mtu_bytes && port->mtu > IBV_MTU_256 &&
	       vrb_mtu_bytes(port->mtu) > wish->mtu_bytes)
		port->mtu--;
	if (wish->gid_index < 0 && !wish->pkey)
		return 0;
	context = ibv_open_device(port->device);
	if (!context || ibv_query_port(context, port->number, &attr)) {
		rg_error("%s: cannot be asked for its tables: %s", port->name, strerror(errno));
		rc = -EIO;
	}
	if (!rc && wish->gid_index >= 0)
		rc = gid_wish(context, port, wish->gid_index, attr.gid_tbl_len);
	if (!rc && wish->pkey)
		rc = pkey_wish(context, port, wish->pkey, attr.pkey_tbl_len);
	if (context)
		ibv_close_device(context);
	return rc;
}

static int port_compare(const void *left, const void *right)
{
	const struct vrb_port *a = left, *b = right;
	int rc = strcmp(a->pci, b->pci);

	/* strverscmp: mlx5_2 before mlx5_10, and soft0:2 before soft0:10. */
	return rc ? rc : strverscmp(a->name, b->name);
}

/* Two ports with addresses in one IP network, of /24 where the network of an IPv4 address is not known. */
static bool share_network(const struct vrb_port *a, const struct vrb_port *b)
{
	static const unsigned char unknown[VRB_GID_BYTES];
	const bool ipv4 = gid_is_ipv4(&a->gid);
	const bool by_gid = ipv4 && !memcmp(a->subnet, unknown, sizeof(unknown));

	if (a->kind == VRB_SOFTHCA || a->link_layer != IBV_LINK_LAYER_ETHERNET || b->link_layer != IBV_LINK_LAYER_ETHERNET ||
	    a->gid_index < 0 || b->gid_index < 0 || a->gid_link_local || b->gid_link_local ||
	    ipv4 != gid_is_ipv4(&b->gid))
		return false;
	return by_gid ? !memcmp(a->gid.raw, b->gid.raw, VRB_GID_BYTES - 1) :
			!memcmp(a->subnet, b->subnet, sizeof(a->subnet));
}

static void networks_compare(struct vrb_ports *ports)
{
	for (int i = 0; i < ports->count; i++)
		for (int k = 0; k < ports->count; k++)
			ports->port[i].one_network |= i != k && share_network(&ports->port[i], &ports->port[k]);
}

static int ports_scan(struct ibv_device **list, bool soft, struct vrb_ports *out)
{
	struct vrb_ports ports = { .list = list };
	const int error = errno;
	int rc = 0;

	/* A libibverbs of no device says ENOSYS; the software HCA has refused its spec, and has told why. */
	if (!list && error != ENOSYS &&
	    (error == EMFILE || error == ENFILE || error == ENOMEM || softhca_exposed_node() >= 0))
		return unknown(NULL, error ? error : EIO);
	for (int i = 0; list && list[i] && rc == 0; i++)
		if (soft || !softhca_is_device(list[i]))
			rc = device_scan(list[i], &ports);
	if (rc) {
		vrb_ports_free(&ports);
		return rc;
	}
	if (ports.count)
		qsort(ports.port, (size_t)ports.count, sizeof(*ports.port), port_compare);
	networks_compare(&ports);
	*out = ports;
	return 0;
}

int vrb_ports_scan(struct ibv_device **list, struct vrb_ports *out)
{
	return ports_scan(list, true, out);
}

int vrb_ports_scan_real(struct ibv_device **list, struct vrb_ports *out)
{
	return ports_scan(list, false, out);
}

void vrb_ports_free(struct vrb_ports *ports)
{
	free(ports->port);
	if (ports->list)
		ibv_free_device_list(ports->list);
	memset(ports, 0, sizeof(*ports));
}
