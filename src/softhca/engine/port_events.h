/*
 * port_events.h - ports that went down or came up: events for users of their adapters, and
 * the slow path for queue pairs whose path is no longer clear (object/loss.h).
 */
#ifndef HCA_PORT_EVENTS_H
#define HCA_PORT_EVENTS_H

struct hca_fabric;

/* Act on ports that have changed since the last call.  fabric.life held. */
void hca_port_events_handle(struct hca_fabric *f);

#endif
