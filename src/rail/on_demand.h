/* on_demand.h - connections on demand. */
#ifndef RAIL_ON_DEMAND_H
#define RAIL_ON_DEMAND_H

struct rail_ctx;
struct rail_peer;

/* Connections on demand go by a datagram queue pair of each kind. */
enum { CONNECTOR_RAILS, CONNECTOR_LOCAL, RAIL_CONNECTORS };

void rail_on_demand_poll(struct rail_ctx *ctx);
void rail_on_demand_close(struct rail_ctx *ctx);
/* For a peer that is not connected: say so again, if messages wait and it is time. */
void rail_on_demand_drive(struct rail_peer *peer);
void rail_on_demand_forget(struct rail_peer *peer);

#endif
