/*
 * port_events.h - ports that have gone down or come back: events for users of their adapters, and
 * the slow path for queue pairs whose way is not clear any more (object/loss.h).
 */
#ifndef HCA_PORT_EVENTS_H
#define HCA_PORT_EVENTS_H

struct hca_fabric;

/* Have ports changed since the last look?  fabric.life held. */
void hca_fault_look(struct hca_fabric *f);

#endif
