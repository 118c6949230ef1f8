/* near.h - CPUs of a list. */
#ifndef TOPO_NEAR_H
#define TOPO_NEAR_H

#include <hwloc.h>

#include "topo/topo.h"

/* The CPUs of a list, or of the calling thread (NULL): 0 or -EINVAL. */
int topo_cpus_get(const struct topo *t, const char *cpus, hwloc_bitmap_t set);

#endif
