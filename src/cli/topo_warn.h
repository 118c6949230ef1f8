/* topo_warn.h - warnings about conditions that limit the rails. */
#ifndef CLI_TOPO_WARN_H
#define CLI_TOPO_WARN_H

#include "cli/topo_report.h"

/* Fill the report's warnings.  0 or -ENOMEM. */
int topo_warn(struct topo_report *r);

/* The rails, in order, and the links that they share. */
struct topo_shared {
	const struct topo_rail *rail[TOPO_RAILS_MAX];
	int rails, count;
	struct topo_share share[TOPO_SHARES_MAX];
};
void topo_shares_find(const struct topo_report *r, struct topo_shared *s);

#endif
