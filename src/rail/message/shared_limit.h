/* shared_limit.h - limits that several rails share. */
#ifndef RAIL_SHARED_LIMIT_H
#define RAIL_SHARED_LIMIT_H

#include "rail/rail.h"

struct topo;

/* rail_shares for real devices: device[i] is the name of rail i's device. */
int rail_shared_limits_on(const struct topo *t, const char *const *device, int rails,
			  struct rail_share out[RAIL_SHARES_MAX]);

#endif
