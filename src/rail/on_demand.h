/* on_demand.h - connections on demand. */
#ifndef RAIL_ON_DEMAND_H
#define RAIL_ON_DEMAND_H

struct rail_ctx;
struct rail_peer;

/* Connections on demand go by a datagram queue pair of each kind. */
enum { WIRE_RAILS, WIRE_LOCAL, RAIL_WIRES };

void rail_wires_poll(struct rail_ctx *ctx);
void rail_wires_close(struct rail_ctx *ctx);
/* For a peer that is not connected: say so again, if messages wait and it is time. */
void rail_wire_drive(struct rail_peer *peer);
void rail_wire_forget(struct rail_peer *peer);

#endif
