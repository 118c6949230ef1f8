/* event.c - asynchronous events of adapters, and what they change of a port. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "verbs/vrb.h"

static const struct { enum ibv_event_type type; const char *name; } names[] = {
	{ IBV_EVENT_CQ_ERR, "CQ_ERR" },
	{ IBV_EVENT_QP_FATAL, "QP_FATAL" },
	{ IBV_EVENT_SRQ_ERR, "SRQ_ERR" },
	{ IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL" },
	{ IBV_EVENT_PORT_ACTIVE, "PORT_ACTIVE" },
	{ IBV_EVENT_PORT_ERR, "PORT_ERR" },
	{ IBV_EVENT_LID_CHANGE, "LID_CHANGE" },
	{ IBV_EVENT_PKEY_CHANGE, "PKEY_CHANGE" },
	{ IBV_EVENT_SM_CHANGE, "SM_CHANGE" },
	{ IBV_EVENT_CLIENT_REREGISTER, "CLIENT_REREGISTER" },
	{ IBV_EVENT_GID_CHANGE, "GID_CHANGE" },
};

const char *vrb_event_name(enum ibv_event_type type)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].type == type)
			return names[i].name;
	return "another event";
}

static bool is_of_port(enum ibv_event_type type)
{
	return type == IBV_EVENT_GID_CHANGE ||
	       (type >= IBV_EVENT_PORT_ACTIVE && type <= IBV_EVENT_SM_CHANGE) ||
	       type == IBV_EVENT_CLIENT_REREGISTER;
}

int vrb_events_open(const struct vrb_adapter *adapter)
{
	const int fd = adapter->context->async_fd;
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

int vrb_event_next(const struct vrb_adapter *adapter, struct vrb_event *out)
{
	struct ibv_async_event event;

	errno = 0;
	if (ibv_get_async_event(adapter->context, &event))
		return errno ? -errno : -EIO;
	*out = (struct vrb_event){ .type = event.event_type };
	if (is_of_port(event.event_type))
		out->port = (uint8_t)event.element.port_num;
	ibv_ack_async_event(&event);
	return 0;
}

int vrb_port_place(const struct vrb_adapter *adapter, const struct vrb_port *port,
		   struct vrb_port_place *out)
{
	struct vrb_port_place now = { 0 };
	struct ibv_port_attr attr;
	union ibv_gid gid;
	__be16 key;

	memset(&attr, 0, sizeof(attr));
	if (ibv_query_port(adapter->context, port->number, &attr))
		return -EIO;
	now.lid = attr.lid;
	if (!ibv_query_pkey(adapter->context, port->number, port->pkey_index, &key))
		now.pkey = ntohs(key);
	if (port->gid_index >= 0 &&
	    !ibv_query_gid(adapter->context, port->number, port->gid_index, &gid))
		memcpy(now.gid, gid.raw, sizeof(now.gid));
	*out = now;
	return 0;
}

static void gid_text(const unsigned char *gid, char text[INET6_ADDRSTRLEN])
{
	static const unsigned char none[VRB_GID_BYTES];

	if (!memcmp(gid, none, sizeof(none)) || !inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN))
		snprintf(text, INET6_ADDRSTRLEN, "none");
}

/* The top bit of a key is its membership; a partition is the rest. */
static bool same_partition(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) == (b & 0x7fff);
}

bool vrb_port_moved(const struct vrb_port *port, const struct vrb_port_place *before,
		    const struct vrb_port_place *now, char *why, size_t size)
{
	const bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];

	if (!ethernet && now->lid != before->lid) {
		snprintf(why, size, "its LID has changed from %u to %u", before->lid, now->lid);
		return true;
	}
	if ((ethernet || port->grh) && memcmp(now->gid, before->gid, sizeof(now->gid))) {
		gid_text(before->gid, from);
		gid_text(now->gid, to);
		snprintf(why, size, "its GID %d has changed from %s to %s", port->gid_index, from, to);
		return true;
	}
	if (!same_partition(now->pkey, before->pkey)) {
		snprintf(why, size, "its P_Key %u has changed from 0x%04x to 0x%04x",
			 port->pkey_index, before->pkey, now->pkey);
		return true;
	}
	return false;
}
