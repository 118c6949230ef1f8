/*
 * progress.c - progress: where and when the transport is polled.
 *
 *  - In a thread that waits in a call of this layer: layer_poll.  Now and then it also drives
 *    the MPI library, because a peer may wait for that.
 *  - In the MPI library's own progress loop, while the program waits natively (Open MPI has a
 *    function to register a callback; MPICH has none).
 *  - In a progress thread, while the program computes or waits natively.  It drives the
 *    transport only, never MPI, and only while an operation of this layer is in flight or an
 *    offered message (RTS) has not been received.  Otherwise it polls once every LOOK_NS:
 *    MPI_Wait of a cancelled send returns whatever the receiver does, and what the receiver
 *    has not read yet may be such an offer.
 */
#include "layer.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "dump.h"
#include "world.h"

enum {
	TICK_NS = 500000,
	TICK_MAX_NS = 4000000,		/* while the program polls by itself */
	QUIET_TICKS = 16,		/* without anything in flight, before it sleeps */
	LOOK_NS = 100000000,		/* between looks of a progress thread that sleeps */
	DRIVE_NATIVE_ROUNDS = 1024,	/* empty rounds between looks at the MPI library */
	YIELD_ROUNDS = 8,		/* empty rounds before giving way on a crowded node */
	SHARE_ROUNDS = 64,		/* rounds with events before giving way: they may never cease */
};

struct layer layer = {.mutex = PTHREAD_MUTEX_INITIALIZER, .call = &calls[CALL_NONE]};

static pthread_t progress_thread;
static bool progress_thread_runs, biased;
/* Held by the progress thread while it polls, and by a thread that forks. */
static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool progress_thread_stop;

/* ---- Exclusion ---------------------------------------------------------------------- */

static long membarrier(int command)
{
	return syscall(__NR_membarrier, command, 0, 0);
}

/* Where the process has one thread, this waits for nothing; later for a grace period of RCU. */
__attribute__((constructor)) static void bias_early(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static long futex(_Atomic unsigned *word, int op, unsigned value)
{
	/* Of a wait; ignored by a wake. */
	static const struct timespec most = {.tv_nsec = LOOK_NS};

	return syscall(__NR_futex, word, op | FUTEX_PRIVATE_FLAG, value, &most, NULL, 0);
}

void layer_enter_slow(void)
{
	if (layer.multiple) {
		pthread_mutex_lock(&layer.mutex);
		calls_resume();
		return;
	}
	while (atomic_load_explicit(&layer.progress_thread_wants, memory_order_acquire))
		rg_yield();
}

void layer_leave_slow(void)
{
	if (layer_pending() &&
	    atomic_load_explicit(&layer.progress_thread_sleeps, memory_order_relaxed))
		layer_wake_progress_thread();
	pthread_mutex_unlock(&layer.mutex);
}

/*
 * The progress thread's half of the bias: announce, make every thread of the process
 * pass a barrier, look.  After that either the program saw the announcement or
 * we see that it is inside.
 */
static bool progress_thread_enter(void)
{
	if (layer.multiple)
		return pthread_mutex_trylock(&layer.mutex) == 0;
	if (atomic_load_explicit(&layer.busy, memory_order_relaxed))
		return false;
	atomic_store(&layer.progress_thread_wants, 1);
	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	if (!atomic_load_explicit(&layer.busy, memory_order_acquire))
		return true;
	atomic_store_explicit(&layer.progress_thread_wants, 0, memory_order_release);
	return false;
}

static void progress_thread_leave(void)
{
	if (layer.multiple)
		pthread_mutex_unlock(&layer.mutex);
	else
		atomic_store_explicit(&layer.progress_thread_wants, 0, memory_order_release);
}

/* ---- The progress thread ------------------------------------------------------------- */

void layer_wake_progress_thread(void)
{
	atomic_store(&layer.progress_thread_sleeps, 0);
	futex(&layer.progress_thread_sleeps, FUTEX_WAKE, INT_MAX);
}

/* Where calling the MPI library is forbidden. */
static int transport_progress(void)
{
	int events;

	layer.transport_only = true;
	events = rail_progress(layer.rails);
	layer.transport_only = false;
	return events;
}

static void progress_thread_look(void)
{
	pthread_mutex_lock(&fork_mutex);
	if (progress_thread_enter()) {
		transport_progress();
		progress_thread_leave();
	}
	pthread_mutex_unlock(&fork_mutex);
}

/* What the signal of --dump-signal asks for; if the program is inside, at the next look. */
static void progress_thread_dump(void)
{
	pthread_mutex_lock(&fork_mutex);
	if (progress_thread_enter()) {
		dump_print();
		progress_thread_leave();
	}
	pthread_mutex_unlock(&fork_mutex);
}

/* ---- Forks --------------------------------------------------------------------------- */

/*
 * The kernel copies pages that a device has pinned while it forks, one after the other, and other
 * threads go on meanwhile; the C library's free() takes no lock for small chunks.  So a child
 * has a damaged heap if a thread frees memory during the fork and heap pages are registered.  A
 * program with several threads may call no malloc in a child (POSIX, fork); one with a single
 * thread may, and does not know of the progress thread: it is kept out of the way.
 */
static void fork_begins(void)
{
	pthread_mutex_lock(&fork_mutex);
}

static void fork_ends(void)
{
	pthread_mutex_unlock(&fork_mutex);
}

static void fork_watch(void)
{
	pthread_atfork(fork_begins, fork_ends, fork_ends);
}

static void progress_thread_nap(void)
{
	atomic_store(&layer.progress_thread_sleeps, 1);
	if (biased)
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	if (!layer_pending() && !atomic_load(&progress_thread_stop) && !atomic_load(&dump_asked))
		futex(&layer.progress_thread_sleeps, FUTEX_WAIT, 1);
	atomic_store(&layer.progress_thread_sleeps, 0);
}

/* One round in each look: a flood of messages must not fill the memory of a busy receiver. */
static void progress_thread_sleep(void)
{
	unsigned seen;

	do {
		seen = layer_polls();
		progress_thread_nap();
		if (layer_polls() == seen && !atomic_load(&progress_thread_stop))
			progress_thread_look();
	} while (!layer_pending() && !atomic_load(&progress_thread_stop) &&
		 !atomic_load(&dump_asked));
}

static void *progress_thread_main(void *unused)
{
	unsigned seen = layer_polls(), now, quiet = 0;
	long tick_ns = TICK_NS;

	while (!atomic_load(&progress_thread_stop)) {
		nanosleep(&(struct timespec){.tv_nsec = tick_ns}, NULL);
		quiet = layer_pending() ? 0 : quiet + 1;
		if (quiet > QUIET_TICKS) {
			progress_thread_sleep();
			quiet = 0;
		}
		if (atomic_load(&dump_asked))
			progress_thread_dump();
		now = layer_polls();
		if (now != seen) {
			/* It polls by itself: keep out of its way. */
			tick_ns = tick_ns * 2 < TICK_MAX_NS ? tick_ns * 2 : TICK_MAX_NS;
			seen = now;
			continue;
		}
		tick_ns = TICK_NS;
		/* A while longer than needed: a program that has cancelled one send may cancel the next. */
		if (quiet <= QUIET_TICKS)
			progress_thread_look();
	}
	return NULL;
}

/* ---- Inside the MPI library's progress (Open MPI) --------------------------------------- */

static int (*opal_unregister)(int (*callback)(void));

static int native_progress_callback(void)
{
	int events;

	if (!layer_pending())
		return 0;
	if (layer.multiple) {
		if (pthread_mutex_trylock(&layer.mutex))
			return 0;
		events = transport_progress();
		pthread_mutex_unlock(&layer.mutex);
		return events;
	}
	if (atomic_load_explicit(&layer.busy, memory_order_relaxed))
		return 0;	/* we called the library ourselves */
	layer_enter();
	events = transport_progress();
	layer_leave();
	return events;
}

static void native_progress_register(void)
{
	int (*reg)(int (*callback)(void));

	*(void **)&reg = dlsym(RTLD_DEFAULT, "opal_progress_register_lp");
	*(void **)&opal_unregister = dlsym(RTLD_DEFAULT, "opal_progress_unregister");
	if (!reg || !opal_unregister || reg(native_progress_callback))
		opal_unregister = NULL;
}

/* ---- Waiting ---------------------------------------------------------------------------- */

/* A program that waits never leaves the layer by itself: the progress thread is to print the queues. */
static __attribute__((noinline, cold)) void give_way(void)
{
	if (layer.multiple)
		pthread_mutex_unlock(&layer.mutex);
	else
		atomic_store_explicit(&layer.busy, 0, memory_order_release);
	while (atomic_load(&dump_asked))
		nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
	layer_enter();
}

void layer_drive_native(void)
{
	int flag;

	native.Test(&layer.sentinel, &flag, MPI_STATUS_IGNORE);
	if (unlikely(atomic_load_explicit(&dump_asked, memory_order_relaxed)))
		give_way();
}

/* Another thread may hold what this one waits for. */
static void share(void)
{
	layer_leave_slow();
	rg_yield();
	layer_enter_slow();
}

static void poll_idle(unsigned *idle)
{
	unsigned n = ++*idle;

	if (n % DRIVE_NATIVE_ROUNDS == 0)
		layer_drive_native();
	if (n < YIELD_ROUNDS)
		return;
	if (layer.multiple && n % YIELD_ROUNDS == 0)
		share();
	else if (layer.oversubscribed)
		rg_yield();
}

void layer_poll(unsigned *idle)
{
	static unsigned busy;		/* inside layer_enter */

	if (unlikely(layer_progress() <= 0)) {
		poll_idle(idle);
		return;
	}
	*idle = 0;
	if (unlikely(layer.multiple) && ++busy % SHARE_ROUNDS == 0)
		share();
}

void layer_wait(struct req *r)
{
	unsigned idle = 0;

	do
		layer_poll(&idle);
	while (!r->done);
}

/* ---- Start and stop ------------------------------------------------------------------------ */

/* The program's signals are not the progress thread's: its handlers, and what it keeps pending. */
static bool progress_thread_start(void)
{
	sigset_t all, before;
	bool runs;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	runs = pthread_create(&progress_thread, NULL, progress_thread_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return runs;
}

int layer_start_progress(void)
{
	static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
	int level = MPI_THREAD_SINGLE;

	native.Query_thread(&level);
	biased = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
	layer.multiple = level == MPI_THREAD_MULTIPLE || !biased;
	native_progress_register();
	atomic_store(&progress_thread_stop, false);
	pthread_once(&fork_once, fork_watch);
	progress_thread_runs = progress_thread_start();
	if (!progress_thread_runs)
		return -EAGAIN;
	return dump_start(world_settings.dump_signal, layer_wake_progress_thread);
}

void layer_stop_progress(void)
{
	if (opal_unregister)
		opal_unregister(native_progress_callback);
	opal_unregister = NULL;
	if (!progress_thread_runs)
		return;
	atomic_store(&progress_thread_stop, true);
	layer_wake_progress_thread();
	pthread_join(progress_thread, NULL);
	progress_thread_runs = false;
	dump_stop();
}
