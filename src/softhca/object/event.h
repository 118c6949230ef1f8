/*
 * event.h - asynchronous events: errors of objects, changes of ports.
 *
 * Whoever finds that something has happened to an object of this process calls
 * one of the functions below, with whatever locks held except fabric.slow and
 * that of a queue of events.  The event is queued at the context, whose
 * async_fd (a bell, bell.h) becomes readable.  What happens in other processes
 * is told by `attention` and the bell: who waits here, then looks.
 *
 * An object goes when each of its events that was handed out has been
 * acknowledged; those that were not are withdrawn.
 */
#ifndef HCA_EVENT_H
#define HCA_EVENT_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "object/wakeup.h"

struct hca_fabric;
struct hca_qp;
struct hca_cq;
struct hca_srq;

/* Of a context; all under lock, which is the innermost. */
struct hca_events {
	struct hca_lock lock;
	struct hca_wakeup wakeup;
	struct hca_event *first, **last;
	struct hca_reported *reported;	/* objects whose events were handed out */
	bool closing;			/* nobody acknowledges any more */
};

void hca_event_qp(struct hca_qp *qp, enum ibv_event_type type);
void hca_event_cq(struct hca_cq *cq, enum ibv_event_type type);
/* The structure begins with its struct ibv_srq. */
void hca_event_srq(struct hca_srq *srq, enum ibv_event_type type);
/* At every context of this process that has the adapter open.  fabric.slow not held. */
void hca_event_port(struct hca_fabric *f, uint32_t node, uint32_t hca, uint8_t port,
		    enum ibv_event_type type);

/*
 * The object is going, nobody raises events of it any more: withdraw what
 * waits, and wait for what is not acknowledged.  No lock held.
 */
void hca_event_forget_qp(struct hca_qp *qp);
void hca_event_forget_cq(struct hca_cq *cq);
void hca_event_forget_srq(struct hca_srq *srq);

/* Of a context: 0 or -errno. */
int hca_events_make(struct ibv_context *c, uint32_t adapter);
/* From here on no object waits to be acknowledged. */
void hca_events_close(struct ibv_context *c);
void hca_events_free(struct ibv_context *c);

/* The oldest that waits, if there is one, which is handed out. */
bool hca_events_take(struct ibv_context *c, struct ibv_async_event *event);
/* ibv_ack_async_event. */
void hca_event_ack(struct ibv_async_event *event);
/* The context that an event belongs to; NULL: a port's, which is nobody's to acknowledge. */
struct ibv_context *hca_event_context(const struct ibv_async_event *event);

#endif
