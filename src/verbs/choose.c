/* choose.c - the default choice of rails among ports, and their order. */
#include <stdlib.h>
#include <string.h>

#include "verbs/vrb.h"

/* A network interface that is down is a port for who accuses it alone (SOFTHCA_NET_DOWN). */
static bool port_is_candidate(const struct vrb_port *port)
{
	return port->usable && (port->state == IBV_PORT_ACTIVE ||
				(port->net && port->state == IBV_PORT_DOWN));
}

/* The number of ports of the same adapter before this one. */
static int ports_before(const struct vrb_ports *ports, int which)
{
	int n = 0;

	for (int i = 0; i < which; i++)
		n += ports->port[i].device == ports->port[which].device;
	return n;
}

static int index_compare(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

int vrb_ports_choose(const struct vrb_ports *ports, int max, int *index, int *active)
{
	int count = 0, seen = 0;

	for (int turn = 0; turn < ports->count; turn++)
		for (int i = 0; i < ports->count; i++) {
			if (!port_is_candidate(&ports->port[i]) || ports_before(ports, i) != turn)
				continue;
			seen++;
			if (count < max)
				index[count++] = i;
		}
	qsort(index, (size_t)count, sizeof(*index), index_compare);
	if (active)
		*active = seen;
	return count;
}

int vrb_port_order(const struct vrb_port *a, const struct vrb_port *b)
{
	int rc = memcmp(a->subnet, b->subnet, sizeof(a->subnet));

	/* The table is sorted by PCI address and name. */
	return rc ? rc : a < b ? -1 : a > b;
}
