/* rail_net.c - railmpi_net: the network interface of a rail. */
#include <errno.h>
#include <string.h>

#include "mpi/job/progress.h"
#include "mpi/railmpi.h"
#include "rail/rail.h"
#include "softhca/softhca.h"

_Static_assert(sizeof(((struct railmpi_net *)NULL)->driver) ==
	      sizeof(((struct softhca_net_detail *)NULL)->driver) &&
	      sizeof(((struct railmpi_net *)NULL)->offloads) ==
	      sizeof(((struct softhca_net_detail *)NULL)->offloads) &&
	      sizeof(((struct railmpi_net *)NULL)->congestion_control) ==
	      sizeof(((struct softhca_net_detail *)NULL)->congestion_control), "the same text");

int railmpi_net(int rail, struct railmpi_net *out)
{
	struct softhca_net_detail detail;
	struct rail_info info;

	if (!layer.rails || rail < 0 || rail >= rail_count(layer.rails))
		return -ENOENT;
	rail_info(layer.rails, rail, &info);
	if (!*info.netdev || softhca_net_detail(info.netdev, &detail))
		return -ENOENT;
	memset(out, 0, sizeof(*out));
	memcpy(out->interface, info.netdev, sizeof(out->interface));
	memcpy(out->driver, detail.driver, sizeof(out->driver));
	memcpy(out->offloads, detail.offloads, sizeof(out->offloads));
	memcpy(out->congestion_control, detail.congestion_control,
	       sizeof(out->congestion_control));
	out->mtu_bytes = detail.mtu;
	memcpy(out->receive_buffer, detail.receive_buffer, sizeof(out->receive_buffer));
	memcpy(out->send_buffer, detail.send_buffer, sizeof(out->send_buffer));
	return 0;
}
