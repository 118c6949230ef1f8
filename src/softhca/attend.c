/* attend.c - see attend.h. */
#include "attend.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

enum {
	TICK_NS = 200000,
	TICK_MAX_NS = 4000000,	/* while the program runs the engine itself */
	QUIET_TICKS = 32,	/* with nothing on the list, before it sleeps */
};

static long futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static bool work_waits(const struct hca_fabric *f)
{
	return atomic_load(&f->engine.pending) != 0;
}

static void rest(struct hca_fabric *f)
{
	struct hca_attendant *a = &f->attendant;

	atomic_store(&a->asleep, 1);
	/* Whoever adds work looks at `asleep` after that: one of us sees the other. */
	if (!work_waits(f) && !atomic_load(&a->stop))
		futex(&a->asleep, FUTEX_WAIT, 1);
	atomic_store(&a->asleep, 0);
}

static void *attend(void *arg)
{
	struct hca_fabric *f = arg;
	struct hca_attendant *a = &f->attendant;
	uint32_t seen = atomic_load(&f->engine.runs), now;
	unsigned quiet = 0;
	long tick_ns = TICK_NS;

	while (!atomic_load(&a->stop)) {
		nanosleep(&(struct timespec){ .tv_nsec = tick_ns }, NULL);
		quiet = work_waits(f) ? 0 : quiet + 1;
		if (quiet > QUIET_TICKS) {
			rest(f);
			quiet = 0;
		}
		now = atomic_load(&f->engine.runs);
		if (now != seen) {
			tick_ns = tick_ns * 2 < TICK_MAX_NS ? tick_ns * 2 : TICK_MAX_NS;
		} else {
			tick_ns = TICK_NS;
			if (work_waits(f))
				hca_engine_run(f);
		}
		seen = atomic_load(&f->engine.runs);
	}
	return NULL;
}

/* The program's signals are the program's. */
static int thread_start(struct hca_fabric *f)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&f->attendant.thread, NULL, attend, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void hca_attend(struct hca_fabric *f)
{
	struct hca_attendant *a = &f->attendant;

	if (hca_unlikely(!atomic_load_explicit(&a->started, memory_order_relaxed)) &&
	    !atomic_exchange(&a->started, true) && thread_start(f))
		atomic_store(&a->started, false);	/* no thread now: perhaps next time */
	if (hca_unlikely(atomic_load(&a->asleep))) {
		atomic_store(&a->asleep, 0);
		futex(&a->asleep, FUTEX_WAKE, INT_MAX);
	}
}

void hca_attend_stop(struct hca_fabric *f)
{
	struct hca_attendant *a = &f->attendant;

	if (!atomic_load(&a->started))
		return;
	atomic_store(&a->stop, true);
	atomic_store(&a->asleep, 0);
	futex(&a->asleep, FUTEX_WAKE, INT_MAX);
	pthread_join(a->thread, NULL);
	atomic_store(&a->started, false);
	atomic_store(&a->stop, false);
}
