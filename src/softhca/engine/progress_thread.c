/* progress_thread.c - see progress_thread.h. */
#include "softhca/engine/progress_thread.h"

#include <sys/prctl.h>

#include "softhca/object/channel.h"
#include "util/clock.h"
#include "softhca/engine/engine.h"
#include "softhca/object/loss.h"
#include "softhca/object/net.h"

enum {
	TICK_NS = 200000,
	TICK_MAX_NS = 4000000,	/* while the program runs the engine itself */
	NET_LOOK_NS = 100000000,
	QUIET_TICKS = 32,	/* with nothing on the list, before the thread sleeps */
};

static bool work_waits(const struct hca_fabric *f)
{
	return atomic_load(&hca_engine_of(f)->pending) != 0;
}

static bool needed(const struct hca_fabric *f)
{
	return work_waits(f) || atomic_load(&hca_engine_of(f)->progress_thread.alarm_ns);
}

/* Sleep for a tick, or until the alarm if that is earlier; then serve the alarm if it is due. */
static void nap(struct hca_fabric *f, uint64_t tick_ns)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;
	uint32_t seen = atomic_load(&a->alarm);
	uint64_t at = atomic_load(&a->alarm_ns), now = at ? rg_now_ns() : 0;

	if (at && at < now + tick_ns)
		tick_ns = at > now ? at - now : 0;
	if (tick_ns)
		rg_wait_word(&a->alarm, seen, tick_ns, false);
	at = atomic_load(&a->alarm_ns);
	if (!at || !rg_reached(at, rg_now_ns()) ||
	    !atomic_compare_exchange_strong(&a->alarm_ns, &at, 0))
		return;
	hca_channels_wake(f);
	if (work_waits(f))
		hca_engine_run(f);
}

/* Sleep until there is work, for `most_ns` at most. */
static void rest(struct hca_fabric *f, uint64_t most_ns)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	atomic_store(&a->asleep, 1);
	/* Adding work reads `asleep` afterwards: one side sees the other's store. */
	if (!needed(f) && !atomic_load(&a->stop))
		rg_wait_word(&a->asleep, 1, most_ns, false);
	atomic_store(&a->asleep, 0);
}

/*
 * Ports change even if no verb is called, on schedule or as the kernel reports of network interfaces.
 * Returns the time until the next change or look.
 */
static uint64_t keep_schedule(struct hca_fabric *f)
{
	uint64_t left_ns;

	if (hca_is_net(f)) {
		if (hca_net_changed(f))
			hca_engine_handle_events(f);
		return NET_LOOK_NS;
	}
	if (!f->spec.schedule.count)
		return UINT64_MAX;
	left_ns = hca_loss_advance(f, rg_now_ns());
	hca_engine_handle_events(f);
	return left_ns;
}

static void *progress_thread(void *arg)
{
	struct hca_fabric *f = arg;
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;
	uint32_t seen = atomic_load(&hca_engine_of(f)->runs), now;
	unsigned quiet = 0;
	uint64_t tick_ns = TICK_NS, left_ns;

	prctl(PR_SET_TIMERSLACK, 1);		/* 50 us would be late */
	while (!atomic_load(&a->stop)) {
		left_ns = keep_schedule(f);
		nap(f, left_ns < tick_ns ? left_ns : tick_ns);
		quiet = needed(f) ? 0 : quiet + 1;
		if (quiet > QUIET_TICKS) {
			rest(f, keep_schedule(f));
			quiet = needed(f) ? 0 : QUIET_TICKS;	/* a look at the ports is no work */
		}
		now = atomic_load(&hca_engine_of(f)->runs);
		if (now != seen) {
			tick_ns = tick_ns * 2 < TICK_MAX_NS ? tick_ns * 2 : TICK_MAX_NS;
		} else {
			tick_ns = TICK_NS;
			if (work_waits(f)) {
				hca_engine_run(f);
				hca_engine_idle(f);	/* work may wait for a dead peer */
			}
		}
		seen = atomic_load(&hca_engine_of(f)->runs);
	}
	return NULL;
}

void hca_progress_thread_wake(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	if (unlikely(!atomic_load_explicit(&a->started, memory_order_relaxed)) &&
	    !atomic_exchange(&a->started, true) && rg_thread_start(&a->thread, progress_thread, f))
		atomic_store(&a->started, false);	/* no thread now: perhaps next time */
	if (unlikely(atomic_load(&a->asleep))) {
		atomic_store(&a->asleep, 0);
		rg_wake_word(&a->asleep, false);
	}
}

void hca_progress_thread_arm(struct hca_fabric *f, uint64_t at_ns)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;
	uint64_t at = atomic_load(&a->alarm_ns);

	do {
		if (at && at <= at_ns)
			return;
	} while (!atomic_compare_exchange_weak(&a->alarm_ns, &at, at_ns));
	atomic_fetch_add(&a->alarm, 1);
	rg_wake_word(&a->alarm, false);
	hca_progress_thread_wake(f);
}

void hca_progress_thread_stop(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	if (!atomic_load(&a->started))
		return;
	atomic_store(&a->stop, true);
	atomic_store(&a->asleep, 0);
	rg_wake_word(&a->asleep, false);
	atomic_fetch_add(&a->alarm, 1);
	rg_wake_word(&a->alarm, false);
	rg_thread_join(a->thread);
	atomic_store(&a->started, false);
	atomic_store(&a->stop, false);
}
