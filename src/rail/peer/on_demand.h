/* on_demand.h - connections on demand. */
#ifndef RAIL_ON_DEMAND_H
#define RAIL_ON_DEMAND_H

struct rail_ctx;
struct rail_peer;

/* A connector is a datagram queue pair that makes connections; each kind of rail has one. */
enum { CONNECTOR_RAILS, CONNECTOR_LOCAL, RAIL_CONNECTORS };

void rail_on_demand_poll(struct rail_ctx *ctx);
/*
 * Before this process leaves: connect a peer whose message is here, also if the peer's last
 * datagram is lost or still waits to be polled.
 */
void rail_on_demand_settle(struct rail_ctx *ctx);
void rail_on_demand_close(struct rail_ctx *ctx);
/*
 * For a peer that is not connected: send its datagram, if messages wait and the datagram is due.
 * Datagrams are repeated for ever, unless reach.h finds the peer lost.
 */
void rail_on_demand_drive(struct rail_peer *peer);
void rail_on_demand_forget(struct rail_peer *peer);
/* The reason why requests to this peer fail, by vrb_ud_lost; 0: this host does not know. */
int rail_on_demand_why(const struct rail_peer *peer, const char **why);

#endif
