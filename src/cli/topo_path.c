/* topo_path.c - the path between two rails of a report. */
#include "cli/topo_path.h"

enum topo_path topo_rail_path(const struct topo_report *r, int a, int b)
{
	enum topo_path path = topo_path(r->topo, &r->rail[a].spot, &r->rail[b].spot);

	if (a == b)
		return TOPO_SELF;
	if (path != TOPO_SELF)
		return path;
	/* Two ports of one adapter. */
	return *r->rail[a].spot.pci ? TOPO_PIX : TOPO_UNKNOWN;
}
