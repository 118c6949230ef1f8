/*
 * event.h - asynchronous events: errors of objects, changes of ports.
 *
 * A function that detects an event of an object of this process calls one of the
 * functions below.  The caller may hold any lock except fabric.slow and that of an event queue.
 * The event is queued at the context, whose async_fd (a wake-up, wakeup.h) becomes readable.
 * Other processes announce events by `attention` and the wake-up: a thread that waits for events
 * then checks for them.
 *
 * An object is destroyed when each of its delivered events has been acknowledged;
 * undelivered events are withdrawn.
 */
#ifndef HCA_EVENT_H
#define HCA_EVENT_H

#include <infiniband/verbs.h>

#include "softhca/base/base.h"
#include "softhca/object/wakeup.h"

struct hca_fabric;
struct hca_qp;
struct hca_cq;
struct hca_srq;

/* A context's events; all under lock, which is innermost. */
struct hca_events {
	struct hca_lock lock;
	struct hca_wakeup wakeup;
	struct hca_event *first, **last;
	struct hca_reported *reported;	/* objects with delivered events */
	bool closing;			/* acknowledgements are no longer awaited */
};

void hca_event_qp(struct hca_qp *qp, enum ibv_event_type type);
void hca_event_cq(struct hca_cq *cq, enum ibv_event_type type);
/* The structure begins with its struct ibv_srq. */
void hca_event_srq(struct hca_srq *srq, enum ibv_event_type type);
/* To every context of this process that has the adapter open.  fabric.slow not held. */
void hca_event_port(struct hca_fabric *f, uint32_t node, uint32_t hca, uint8_t port,
		    enum ibv_event_type type);

/*
 * The object is being destroyed and raises no more events: withdraw queued events, and wait until
 * delivered events are acknowledged.  No lock held.
 */
void hca_event_forget_qp(struct hca_qp *qp);
void hca_event_forget_cq(struct hca_cq *cq);
void hca_event_forget_srq(struct hca_srq *srq);

/* Create the event queue of a context: 0 or -errno. */
int hca_events_make(struct ibv_context *c, uint32_t adapter);
/* From now on, no object waits for acknowledgements. */
void hca_events_close(struct ibv_context *c);
void hca_events_free(struct ibv_context *c);

/* Deliver the oldest queued event; false: none. */
bool hca_events_take(struct ibv_context *c, struct ibv_async_event *event);
/* ibv_ack_async_event. */
void hca_event_ack(struct ibv_async_event *event);
/* The context that an event belongs to; NULL: a port event, which is not acknowledged. */
struct ibv_context *hca_event_context(const struct ibv_async_event *event);

#endif
