/* wanted.h - the ports that --rails wants, and what other options want of them. */
#ifndef RAIL_WANTED_H
#define RAIL_WANTED_H

struct rail_ctx;
struct rail_settings;
struct vrb_port;
struct vrb_port_wish;
struct vrb_ports;

/* The list of --rails for this host, checked, and the host's name; NULL after a line. */
const char *rail_list_here(const struct rail_settings *set, char host[256]);
/* The port of that name, "mlx5_0:1"; NULL. */
struct vrb_port *rail_port_named(const struct vrb_ports *ports, const char *name);
/*
 * The ports of this host that --rails wants: all of them, or the named ones in their order, which are
 * ACTIVE.  Returns their number, or -errno after a line.
 */
int rail_ports_wanted(const struct rail_settings *set, struct vrb_ports *ports, struct vrb_port **port,
		      int max);
/* The settings for a port of this host.  0 or -EINVAL after a line. */
int rail_port_wish(const struct rail_settings *set, const struct vrb_port *port,
		   struct vrb_port_wish *out);
/* Adds a port to ctx->rail, as the settings want it.  0, or -errno after a line. */
int rail_add(struct rail_ctx *ctx, struct vrb_port *port);
/* The same without GID and P_Key, which the choice of all hosts has. */
int rail_select_port(struct rail_ctx *ctx, struct vrb_port *port);

#endif
