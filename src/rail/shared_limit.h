/* shared_limit.h - what bounds several rails together. */
#ifndef RAIL_SHARED_LIMIT_H
#define RAIL_SHARED_LIMIT_H

#include "rail.h"

struct topo;

/* rail_shares of real devices, by the name of each rail's. */
int rail_shared_limits_on(const struct topo *t, const char *const *device, int rails,
			  struct rail_share out[RAIL_SHARES_MAX]);

#endif
