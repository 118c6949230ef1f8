/* wait.c - ibv_get_cq_event, ibv_get_async_event: the engine runs before and while they wait. */
#include "softhca/engine/wait.h"

#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/object/channel.h"
#include "softhca/object/cq.h"
#include "softhca/object/device.h"
#include "softhca/object/event.h"

enum {
	LOOK_NS = 100000000,	/* period in which a waiter checks its peers */
	WORK_NS = 50000,	/* the same while work waits in this process */
	SPIN_NS = 60000,	/* shorter waits spin: the kernel's timers are too coarse */
};

static void spin_until(struct hca_fabric *f, uint64_t due)
{
	while (rg_now_ns() < due) {
		if (hca_engine_due(f))
			hca_engine_run(f);
		rg_relax(due);
	}
}

static int wire_fd(struct hca_fabric *f)
{
	return f->wire ? f->wire->wait_fd(f) : -1;
}

/* At most until the list or a wire needs a turn; not shorter than WORK_NS if that is overdue. */
static uint64_t until_turn(uint64_t now, uint64_t turn_ns, uint64_t timeout)
{
	if (turn_ns >= now + timeout)
		return timeout;
	return turn_ns > now ? turn_ns - now : WORK_NS;
}

/* For a verb that does not run the engine but for a wire. */
static uint64_t wire_timeout(struct hca_fabric *f)
{
	return f->wire ? until_turn(rg_now_ns(), hca_engine_next_ns(f), LOOK_NS) : LOOK_NS;
}

/* Wait for a wake-up, due work, or the time of a check.  0, or -1 and errno. */
static int wait_for_event(struct hca_channel *ch, uint64_t due)
{
	struct hca_fabric *f = ch->fabric;
	uint64_t turn_ns = hca_engine_next_ns(f);
	uint64_t now = rg_now_ns(), timeout = LOOK_NS;

	if (hca_channel_left(ch))
		return 0;
	if (due <= now + SPIN_NS) {
		spin_until(f, due);
		return 0;
	}
	if (timeout > due - now - SPIN_NS)
		timeout = due - now - SPIN_NS;
	if (!turn_ns) {
		/* On a timed fabric work must be done when it is due. */
		timeout = f->spec.timed ? 0 : WORK_NS;
		rg_yield();
	} else {
		timeout = until_turn(now, turn_ns, timeout);
	}
	if (hca_wakeup_wait(&ch->wakeup, wire_fd(f), timeout)) {
		if (due != UINT64_MAX)
			hca_wakeup_send(&ch->wakeup);
		return -1;
	}
	hca_engine_idle(f);
	return 0;
}

/* For a non-blocking channel: the progress thread sends the wake-up when the event is due. */
static int postpone(struct hca_channel *ch, uint64_t due)
{
	if (due != UINT64_MAX) {
		if (due <= rg_now_ns() + SPIN_NS) {
			spin_until(ch->fabric, due);
			return 0;
		}
		atomic_store(&ch->postponed, true);
		hca_progress_thread_arm(ch->fabric, due);
	}
	errno = EAGAIN;
	return -1;
}

/* While a verb waits it serves the wire, not the progress thread; it may be cancelled. */
static void wait_ends(void *f)
{
	hca_progress_thread_return(f);
}

static int cq_event_await(struct hca_channel *ch, struct hca_cq **out)
{
	struct hca_cq *cq;
	uint64_t due;
	bool rung;

	for (;;) {
		/* In this order: a queue that fires after the check sends another wake-up. */
		rung = hca_wakeup_drain(&ch->wakeup);
		hca_engine_handle_events(ch->fabric);
		if (hca_engine_due(ch->fabric))
			hca_engine_run(ch->fabric);
		cq = hca_channel_take(ch, rung, &due);
		if (cq)
			break;
		if (hca_wakeup_blocks(&ch->wakeup) ? wait_for_event(ch, due) : postpone(ch, due))
			return -1;
	}
	*out = cq;
	return 0;
}

static int cq_event_serve(struct hca_channel *ch, struct hca_cq **out)
{
	int rc;

	hca_progress_thread_replace(ch->fabric);
	pthread_cleanup_push(wait_ends, ch->fabric);
	rc = cq_event_await(ch, out);
	pthread_cleanup_pop(true);
	return rc;
}

int hca_cq_event_get(struct ibv_comp_channel *ibv, struct ibv_cq **out, void **cq_context)
{
	struct hca_channel *ch = hca_channel_of(ibv);
	struct hca_cq *cq;
	int rc = ch->fabric->wire ? cq_event_serve(ch, &cq) : cq_event_await(ch, &cq);

	if (rc)
		return rc;
	*out = (struct ibv_cq *)&cq->ibv;
	*cq_context = cq->ibv.cq_context;
	return 0;
}

static int event_await(struct ibv_context *c, struct ibv_async_event *event)
{
	struct hca_fabric *f = hca_context_of(c)->fabric;
	const struct hca_wakeup *wakeup = &hca_context_of(c)->events.wakeup;

	for (;;) {
		/* In this order: an event after the check sends another wake-up. */
		hca_wakeup_drain(wakeup);
		if (f->wire)
			hca_engine_run(f);
		hca_engine_handle_events(f);
		if (hca_events_take(c, event))
			return 0;
		if (!hca_wakeup_blocks(wakeup)) {
			errno = EAGAIN;
			return -1;
		}
		if (hca_wakeup_wait(wakeup, wire_fd(f), wire_timeout(f)))
			return -1;
		hca_engine_idle(f);
	}
}

static int event_serve(struct ibv_context *c, struct ibv_async_event *event)
{
	struct hca_fabric *f = hca_context_of(c)->fabric;
	int rc;

	hca_progress_thread_replace(f);
	pthread_cleanup_push(wait_ends, f);
	rc = event_await(c, event);
	pthread_cleanup_pop(true);
	return rc;
}

int hca_event_get(struct ibv_context *c, struct ibv_async_event *event)
{
	return hca_context_of(c)->fabric->wire ? event_serve(c, event) : event_await(c, event);
}
