/* cq.c - completion queues with events, for receivers that sleep. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "util/clock.h"
#include "util/err.h"
#include "verbs/vrb.h"

int vrb_cq_create(struct vrb_adapter *adapter, int depth, bool events, struct vrb_cq *out)
{
	struct vrb_cq cq = { 0 };
	const char *what = "completion channel";
	char why[160];
	int rc;

	errno = 0;
	if (events) {
		cq.channel = ibv_create_comp_channel(adapter->context);
		if (!cq.channel)
			goto fail;
		/* Non-blocking, so that a wait can have an end. */
		if (fcntl(cq.channel->fd, F_SETFL, fcntl(cq.channel->fd, F_GETFL) | O_NONBLOCK))
			goto fail;
	}
	what = "completion queue";
	cq.cq = ibv_create_cq(adapter->context, depth, NULL, cq.channel, 0);
	if (!cq.cq)
		goto fail;
	*out = cq;
	return 0;
fail:
	rc = errno ? -errno : -EIO;
	rg_error("%s: cannot make a %s (%d entries): %s", ibv_get_device_name(adapter->context->device), what,
		 depth, vrb_cq_refused(adapter, (uint32_t)depth, rc, why, sizeof(why)));
	vrb_cq_destroy(&cq);
	return rc;
}

/* Queues with all entries of a power of two but one, as locked memory is rounded up. */
uint64_t vrb_cq_lockable(struct ibv_device *device, uint64_t most)
{
	enum { ENTRY_BYTES = 64, ENTRIES_LEAST = 64, ENTRIES_MOST = 65536, QUEUES = 256 };
	struct ibv_cq *cq[QUEUES];
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;
	uint64_t room = ENTRIES_MOST, bytes = 0;
	bool refused = false;
	int count = 0;

	if (!context || ibv_query_device(context, &attr))
		room = 0;
	while (room >= ENTRIES_LEAST && room > (uint64_t)attr.max_cqe)
		room /= 2;
	while (room >= ENTRIES_LEAST && bytes < most && count < QUEUES) {
		errno = 0;
		cq[count] = ibv_create_cq(context, (int)room - 1, NULL, NULL, 0);
		if (cq[count]) {
			bytes += room * ENTRY_BYTES;
			count++;
		} else {
			refused = errno == ENOMEM;
			room = refused ? room / 2 : 0;
		}
	}
	refused &= bytes < most && count < QUEUES;
	while (count)
		ibv_destroy_cq(cq[--count]);
	if (context)
		ibv_close_device(context);
	return !refused ? 0 : bytes ? bytes : 1;
}

void vrb_cq_destroy(struct vrb_cq *cq)
{
	/* A queue with unacknowledged events is not destroyed. */
	if (cq->cq && cq->events)
		ibv_ack_cq_events(cq->cq, cq->events);
	if (cq->cq)
		ibv_destroy_cq(cq->cq);
	if (cq->channel)
		ibv_destroy_comp_channel(cq->channel);
	memset(cq, 0, sizeof(*cq));
}

const char *vrb_wc_text(enum ibv_wc_status status)
{
	return ibv_wc_status_str(status);
}

int vrb_cq_wait(struct vrb_cq *cq, uint64_t most_ns)
{
	const uint64_t end_ns = rg_now_ns() + most_ns;
	struct ibv_cq *which;
	void *context;

	for (;;) {
		uint64_t now_ns;

		if (ibv_get_cq_event(cq->channel, &which, &context) == 0)
			break;
		if (errno != EAGAIN && errno != EINTR)
			return errno ? -errno : -EIO;
		now_ns = rg_now_ns();
		if (rg_reached(end_ns, now_ns))
			return -ETIMEDOUT;
		if (rg_wait_readable(cq->channel->fd, end_ns - now_ns) && errno != EINTR)
			return -errno;
	}
	cq->events++;
	return 0;
}
