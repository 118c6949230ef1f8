/*
 * topo_errors.c - error counters of a port and of its network interface, from sysfs.
 *
 * They count what a cable, a connector or a port causes.  Retransmissions and time-outs of queue
 * pairs, which also follow from a peer that ends, are not among them.
 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/topo_errors.h"
#include "verbs/vrb.h"

static const char *const of_port[] = {
	"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
	"port_rcv_remote_physical_errors", "port_xmit_discards", "port_xmit_constraint_errors",
	"port_rcv_constraint_errors", "local_link_integrity_errors",
	"excessive_buffer_overrun_errors", "rx_icrc_encapsulated",
};
/* Relative to the interface's directory; carrier_down_count is a port's link_downed. */
static const char *const of_netdev[] = {
	"statistics/rx_errors", "statistics/tx_errors", "carrier_down_count",
};

static void error_add(struct topo_rail *rail, const char *name, const uint64_t *value)
{
	if (rail->error_count < TOPO_ERRORS_MAX)
		rail->error[rail->error_count++] = (struct topo_error){
			.name = name, .value = value ? *value : 0, .at_end = !value };
}

static void of_port_take(void *user, const char *name, const uint64_t *value)
{
	for (size_t i = 0; i < sizeof(of_port) / sizeof(of_port[0]); i++)
		if (!strcmp(of_port[i], name))
			error_add(user, of_port[i], value);
}

/* The port's interface: RoCE ports have one for each GID, of which the first is the port's own. */
static void netdev_find(const char *port, struct topo_rail *rail)
{
	char path[PATH_MAX];
	FILE *in;

	if ((size_t)snprintf(path, sizeof(path), "%s/gid_attrs/ndevs/0", port) >= sizeof(path))
		return;
	in = fopen(path, "re");
	if (!in)
		return;
	if (!fgets(rail->netdev, sizeof(rail->netdev), in))
		*rail->netdev = '\0';
	rail->netdev[strcspn(rail->netdev, "\n/")] = '\0';
	fclose(in);
}

static void netdev_read(const char *sysfs, struct topo_rail *rail)
{
	for (size_t i = 0; i < sizeof(of_netdev) / sizeof(of_netdev[0]); i++) {
		const char *slash = strrchr(of_netdev[i], '/');
		char path[PATH_MAX];
		uint64_t value;
		FILE *in;

		if ((size_t)snprintf(path, sizeof(path), "%s/class/net/%s/%s", sysfs, rail->netdev,
				     of_netdev[i]) >= sizeof(path))
			continue;
		in = fopen(path, "re");
		if (in && fscanf(in, "%" SCNu64, &value) == 1)
			error_add(rail, slash ? slash + 1 : of_netdev[i], &value);
		if (in)
			fclose(in);
	}
}

void topo_errors_read(const char *sysfs, struct topo_rail *rail)
{
	char port[PATH_MAX];

	if (!rail->port.number || (size_t)snprintf(port, sizeof(port), "%s/class/infiniband/%s/ports/%u",
						   sysfs, rail->spot.name, rail->port.number) >=
				  sizeof(port))
		return;
	vrb_counters_read(port, of_port_take, rail);
	if (!*rail->netdev)
		netdev_find(port, rail);
	if (*rail->netdev)
		netdev_read(sysfs, rail);
}
