/* wait.h - the verbs that wait for an event; they run the engine before they sleep. */
#ifndef HCA_WAIT_H
#define HCA_WAIT_H

#include <infiniband/verbs.h>

/* ibv_get_cq_event: 0, or -1 and errno (EAGAIN: the channel's descriptor does not block). */
int hca_cq_event_get(struct ibv_comp_channel *c, struct ibv_cq **cq, void **cq_context);
/* ibv_get_async_event: the same. */
int hca_event_get(struct ibv_context *c, struct ibv_async_event *event);

#endif
