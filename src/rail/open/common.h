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

/* ---- bounds.c ---- */

/* Bytes that each of so many processes of this host may pin for its peers. */
uint64_t rail_bound_pinned(unsigned processes);
/*
 * Bytes of completion queues that a process may lock, tried on the device; 0: enough for a job of so many
 * ranks with so many rails at most.
 */
uint64_t rail_bound_queues(const struct rail_settings *set, const struct vrb_port *port, unsigned rails,
			   unsigned ranks);
/*
 * Would the connections of all processes to all others take more queue pairs than an adapter of a host
 * has, or pin or lock more than such a share?  Peers then have one rail, and smaller shares.  All processes
 * compute the same.  why: a line about it; empty where adapters have too few pairs even for that.
 */
bool rail_hosts_narrow(const struct rail_hosts *h, char *why, size_t size);

/* A rail has a LAG at any host. */
bool rail_hosts_lag(const struct rail_hosts *h);

/* ---- common.c ---- */

/* This host's port of a rail; NULL: it is gone. */
struct vrb_port *rail_hosts_port(const struct rail_hosts *h, const struct vrb_ports *ports, unsigned rail);
/* GID, P_Key and subnet that the choice has for it. */
void rail_hosts_port_use(const struct rail_hosts *h, unsigned rail, struct vrb_port *port);
/* Fills ctx->rail with this host's ends of the rails of ctx->cfg.hosts.  0, or -errno after a line. */
int rail_common_select(struct rail_ctx *ctx);

#endif
