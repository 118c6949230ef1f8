/* on_demand.h - connections on demand. */
#ifndef RAIL_ON_DEMAND_H
#define RAIL_ON_DEMAND_H

struct rail_ctx;
struct rail_peer;

/* A connector is a datagram queue pair that connections are made by; one for each kind of rail. */
enum { CONNECTOR_RAILS, CONNECTOR_LOCAL, RAIL_CONNECTORS };

void rail_on_demand_poll(struct rail_ctx *ctx);
/*
 * Before this process leaves: a peer whose message is here is connected, also if its last datagram
 * was not looked for yet, or is lost.
 */
void rail_on_demand_settle(struct rail_ctx *ctx);
void rail_on_demand_close(struct rail_ctx *ctx);
/*
 * For a peer that is not connected: send its datagram, if messages wait and it is due.  A peer that
 * does not answer is asked for ever, unless reach.h finds it lost.
 */
void rail_on_demand_drive(struct rail_peer *peer);
void rail_on_demand_forget(struct rail_peer *peer);
/* Why requests to this peer fail, as vrb_ud_lost says it; 0: this host does not know. */
int rail_on_demand_why(const struct rail_peer *peer, const char **why);

#endif
