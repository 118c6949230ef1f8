/* progress_thread.c - see progress_thread.h. */
#include "softhca/engine/progress_thread.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "softhca/base/fd.h"
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
	WIRE_NS = 1000000000,	/* longest sleep while the thread serves a wire */
};

static bool needed(const struct hca_fabric *f)
{
	return hca_engine_waits(f) || atomic_load(&hca_engine_of(f)->progress_thread.alarm_ns);
}

static void serve_alarm(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;
	uint64_t at = atomic_load(&a->alarm_ns);

	if (!at || !rg_reached(at, rg_now_ns()) ||
	    !atomic_compare_exchange_strong(&a->alarm_ns, &at, 0))
		return;
	hca_channels_wake(f);
	if (hca_engine_waits(f))
		hca_engine_run(f);
}

/* The longest tick comes with another interrupt: one of its own would delay messages of the program. */
static void tick(struct hca_progress_thread *a, uint32_t seen, uint64_t tick_ns)
{
	const bool coarse = tick_ns >= TICK_MAX_NS;

	if (coarse)
		prctl(PR_SET_TIMERSLACK, TICK_MAX_NS);
	rg_wait_word(&a->alarm, seen, tick_ns, false);
	if (coarse)
		prctl(PR_SET_TIMERSLACK, 1);
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
		tick(a, seen, tick_ns);
	serve_alarm(f);
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

/* While the program runs the engine itself. */
static uint64_t longer(uint64_t tick_ns)
{
	return tick_ns * 2 < TICK_MAX_NS ? tick_ns * 2 : TICK_MAX_NS;
}

static void *memory_thread(void *arg)
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
			tick_ns = longer(tick_ns);
		} else {
			tick_ns = TICK_NS;
			if (hca_engine_waits(f)) {
				hca_engine_run(f);
				hca_engine_idle(f);	/* work may wait for a dead peer */
			}
		}
		seen = atomic_load(&hca_engine_of(f)->runs);
	}
	return NULL;
}

/* ---- A fabric with a wire ------------------------------------------------ */

/* The earlier of two times, as the time from now on; UINT64_MAX: neither. */
static uint64_t left_ns(uint64_t at, uint64_t alarm)
{
	uint64_t now;

	if (alarm && alarm < at)
		at = alarm;
	if (at == UINT64_MAX)
		return at;
	now = rg_now_ns();
	return at > now ? at - now : 0;
}

/*
 * Until the wire, the list or the alarm needs a turn.  What a wire owes leaves at once; requests that
 * wait for a peer are tried once a tick.
 */
static uint64_t wire_sleep_ns(const struct hca_fabric *f, uint64_t alarm)
{
	uint64_t at = hca_engine_next_ns(f), ns;

	if (!at)
		return atomic_load(&hca_engine_of(f)->wire_ns) ? TICK_NS : 0;
	ns = left_ns(at, alarm);
	return ns < WIRE_NS ? ns : WIRE_NS;
}

/* Does a verb that waits serve the wire? */
static bool stands_by(const struct hca_fabric *f)
{
	return atomic_load(&hca_engine_of(f)->progress_thread.waiting) && !hca_engine_waits(f);
}

static void wait_for_wire(struct hca_fabric *f, uint64_t alarm)
{
	f->wire->sleep_begins(f);
	rg_wait_either(hca_engine_of(f)->progress_thread.wake_fd, f->wire->wait_fd(f),
		       wire_sleep_ns(f, alarm));
	f->wire->sleep_ends(f);
}

/*
 * Sleep until there is work for this thread.  The maker of work reads `asleep` afterwards: one side
 * sees the other's store.
 */
static void wire_sleep(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;
	uint64_t alarm, woken;
	ssize_t n;

	atomic_store(&a->asleep, 1);
	alarm = atomic_load(&a->alarm_ns);
	if (atomic_load(&a->stop))
		;
	else if (stands_by(f))
		rg_wait_readable(a->wake_fd, left_ns(UINT64_MAX, alarm));
	else
		wait_for_wire(f, alarm);
	atomic_store(&a->asleep, 0);
	n = read(a->wake_fd, &woken, sizeof(woken));
	(void)n;			/* it does not block, and may be empty */
	serve_alarm(f);
}

/*
 * No verb has run the engine since *seen; one that does so during the sleep shows afterwards.  False:
 * a verb does so now, and for long, as the kernel takes a megabyte.
 */
static bool wire_serve(struct hca_fabric *f, uint32_t *seen)
{
	uint32_t before = *seen;

	hca_engine_run(f);
	*seen = atomic_load(&hca_engine_of(f)->runs);
	if (*seen == before)
		return false;
	if (hca_engine_waits(f))
		hca_engine_idle(f);	/* work may wait for a dead peer */
	wire_sleep(f);
	return true;
}

/* While verbs run the engine. */
static void wire_tick(struct hca_fabric *f, uint64_t *tick_ns)
{
	nap(f, *tick_ns);
	*tick_ns = longer(*tick_ns);
}

static void *wire_thread(void *arg)
{
	struct hca_fabric *f = arg;
	struct hca_engine *e = hca_engine_of(f);
	uint32_t seen = atomic_load(&e->runs), now;
	uint64_t tick_ns = TICK_NS;

	prctl(PR_SET_TIMERSLACK, 1);
	while (!atomic_load(&e->progress_thread.stop)) {
		now = atomic_load(&e->runs);
		if (now != seen) {
			seen = now;
			wire_tick(f, &tick_ns);
			continue;
		}
		if (stands_by(f))
			wire_sleep(f);
		else if (!wire_serve(f, &seen)) {
			wire_tick(f, &tick_ns);
			continue;
		}
		tick_ns = TICK_NS;
	}
	return NULL;
}

int hca_progress_thread_serve(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	a->wake_fd = hca_fd_raise(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (a->wake_fd < 0)
		return -errno;
	a->on_wire = true;
	atomic_fetch_add(&hca_engine_of(f)->pending, 1);
	hca_progress_thread_wake(f);
	return 0;
}

void hca_progress_thread_replace(struct hca_fabric *f)
{
	f->wire->sleep_begins(f);
	atomic_fetch_add(&hca_engine_of(f)->progress_thread.waiting, 1);
}

void hca_progress_thread_return(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	f->wire->sleep_ends(f);
	/* While messages come, the thread ticks: it is not woken for each. */
	if (atomic_fetch_sub(&a->waiting, 1) == 1)
		hca_progress_thread_wake(f);
}

/* ---- Life of the thread --------------------------------------------------- */

static void *progress_thread(void *arg)
{
	struct hca_fabric *f = arg;

	return f->wire ? wire_thread(f) : memory_thread(f);
}

static void wake(struct hca_progress_thread *a)
{
	const uint64_t one = 1;
	ssize_t n;

	if (!atomic_exchange(&a->asleep, 0))
		return;
	if (a->on_wire) {
		n = write(a->wake_fd, &one, sizeof(one));
		(void)n;		/* a counter at its limit is readable */
	} else {
		rg_wake_word(&a->asleep, false);
	}
}

void hca_progress_thread_wake(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	if (unlikely(!atomic_load_explicit(&a->started, memory_order_relaxed)) &&
	    !atomic_exchange(&a->started, true) && rg_thread_start(&a->thread, progress_thread, f))
		atomic_store(&a->started, false);	/* no thread now: perhaps next time */
	if (unlikely(atomic_load(&a->asleep)))
		wake(a);
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

static void stop_serving(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	if (!a->on_wire)
		return;
	a->on_wire = false;
	close(a->wake_fd);
	atomic_fetch_sub(&hca_engine_of(f)->pending, 1);
}

void hca_progress_thread_stop(struct hca_fabric *f)
{
	struct hca_progress_thread *a = &hca_engine_of(f)->progress_thread;

	if (!atomic_load(&a->started)) {
		stop_serving(f);
		return;
	}
	atomic_store(&a->stop, true);
	wake(a);
	atomic_fetch_add(&a->alarm, 1);
	rg_wake_word(&a->alarm, false);
	rg_thread_join(a->thread);
	atomic_store(&a->started, false);
	atomic_store(&a->stop, false);
	stop_serving(f);
}
