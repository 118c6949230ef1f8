/* select.h - the choice of ports as rails. */
#ifndef RAIL_SELECT_H
#define RAIL_SELECT_H

struct rail_ctx;
struct rail_settings;
struct vrb_port;
struct vrb_port_wish;
struct vrb_ports;

/* The port of that name, "mlx5_0:1"; NULL. */
struct vrb_port *rail_port_named(const struct vrb_ports *ports, const char *name);
/*
 * The ports of a host that --rails wants: all of them, or the named ones in their order, which are ACTIVE.
 * Returns their number, or -errno after a line.
 */
int rail_ports_wanted(const struct rail_settings *set, struct vrb_ports *ports, struct vrb_port **port,
		      int max);
/* What the settings say of a port of this host.  0 or -EINVAL after a line. */
int rail_port_wish(const struct rail_settings *set, const struct vrb_port *port,
		   struct vrb_port_wish *out);
/* Adds a port, with the MTU, SL and traffic class of the settings, to ctx->rail. */
int rail_select_port(struct rail_ctx *ctx, struct vrb_port *port);
/* Fills ctx->rail from ctx->ports and --rails.  0, or -errno after a line. */
int rail_select(struct rail_ctx *ctx);

#endif
