/* list.h - objects of hwloc, and the arrays of a struct topo. */
#ifndef TOPO_LIST_H
#define TOPO_LIST_H

#include <hwloc.h>

#include "topo/topo.h"

/* The PCI function of obj, which may be a part of it; NULL: obj is on no PCI bus. */
hwloc_obj_t topo_pci_of(hwloc_obj_t obj);

bool topo_is_bridge(hwloc_obj_t obj, hwloc_obj_bridge_type_t upstream);

/* The address of a PCI function or PCI bridge; "" for other objects. */
void topo_pci_text(hwloc_obj_t obj, char text[TOPO_PCI_BYTES]);

/* The smallest NUMA node, or the package, that contains all of set; NULL: none does. */
hwloc_obj_t topo_numa_of(const struct topo *t, hwloc_const_cpuset_t set);
hwloc_obj_t topo_package_of(const struct topo *t, hwloc_const_cpuset_t set);

/* Set numa and package of a spot from the set of its cores. */
void topo_spot_home(const struct topo *t, struct topo_spot *s, hwloc_const_cpuset_t set);

/* Cores, or CPUs on a machine without core objects. */
hwloc_obj_type_t topo_core_type(const struct topo *t);

/* The next usable core; after NULL the first, after the last NULL. */
hwloc_obj_t topo_core_next(const struct topo *t, hwloc_obj_t core);

/* Fill the arrays of t.  0 or -ENOMEM. */
int topo_list(struct topo *t);

#endif
