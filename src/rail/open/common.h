/* common.h - the rails that all hosts of a job have, in the context of one process. */
#ifndef RAIL_COMMON_H
#define RAIL_COMMON_H

#include "rail/open/port_choice.h"

struct rail_ctx;
struct vrb_port;
struct vrb_ports;

struct rail_hosts {
	unsigned hosts, mine;
	struct choice_host **host;
	struct choice choice;
	struct choice_losses lost;
};

/* This host's port of a rail; NULL: it is gone. */
struct vrb_port *rail_hosts_port(const struct rail_hosts *h, const struct vrb_ports *ports, unsigned rail);
/* GID, P_Key and subnet that the choice has for it. */
void rail_hosts_port_use(const struct rail_hosts *h, unsigned rail, struct vrb_port *port);
/* Fills ctx->rail with this host's ends of the rails of ctx->cfg.hosts.  0, or -errno after a line. */
int rail_common_select(struct rail_ctx *ctx);

#endif
