/* link.h - PCIe links, kept with their objects. */
#ifndef TOPO_LINK_H
#define TOPO_LINK_H

#include <hwloc.h>

#include "topo/topo.h"

/* Add the links of all PCI functions and bridges to their infos. */
int topo_links_note(struct topo *t);

#endif
