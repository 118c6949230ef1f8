/*
 * progress.c - progress: where and when the transport is polled, and the MPI library driven.
 *
 *  - In a thread that waits in a call of this layer: layer_poll.  The thread also gives the MPI
 *    library its turns, because a peer may wait for that.
 *  - In the MPI library's own progress, while the program waits natively, if the library calls the
 *    layer there (library.c).
 *  - In a progress thread, while the program computes, and while it waits natively in another
 *    library.  The progress thread drives the transport only, never MPI.  The thread polls while an
 *    operation of this layer is in flight or an offered message (RTS) has not been received.
 *    Otherwise the thread polls once every LOOK_NS: MPI_Wait of a cancelled send returns whatever
 *    the receiver does, and a message that the receiver has not read yet may be such an offer.
 */
#include "mpi/job/progress.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mpi/abi/native.h"
#include "mpi/job/library.h"
#include "mpi/job/options.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/unexpected.h"
#include "mpi/watch/call_count.h"
#include "mpi/watch/dump.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "util/clock.h"
#include "util/compiler.h"

enum {
	TICK_NS = 500000,
	TICK_MAX_NS = 4000000,		/* while the program polls by itself */
	QUIET_TICKS = 16,		/* without anything in flight, before it sleeps */
	LOOK_NS = 200000000,		/* between looks of a progress thread that sleeps */
	SERVE_NS = 2000000,		/* ... of a thread that serves a waiting program */
	SERVE_SHARE = 150,		/* ... at most one part in so many of the time */
	SERVE_SAVED_NS = 5000000,	/* ... and so much is kept for a burst */
	SERVE_BYTES_MOST = 64 << 20,	/* ... and so many bytes of unexpected messages */
	LOOKS_DENSE = 64,		/* in the library's progress, without an event, before they are rare */
	CALLS_PER_LOOK = 32,		/* then: calls of the library's progress for each */
	DRIVE_NATIVE_EMPTY = 64,	/* empty rounds, about a microsecond, before the library's turns */
	YIELD_ROUNDS = 8,		/* empty rounds before giving way to other threads */
	CROWDED_NATIVE_EMPTY = 8,	/* empty rounds before the library's turns on a crowded node */
	CONNECT_ROUNDS = 64,		/* empty rounds before giving way to a peer that is to answer */
	SHARE_ROUNDS = 64,		/* rounds with events before giving way: they may never cease */
};

struct layer layer = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.call = &calls[CALL_NONE],
	.crowded_rounds = LAYER_CROWDED_ROUNDS_WIRE,
};

struct layer_looks layer_looks;

static FAST_THREAD_LOCAL bool turn_owed;	/* to the library, when the lock is given back */
static pthread_t progress_thread;
static bool progress_thread_runs, biased;
/* Held by the progress thread while it polls, and by a thread that forks. */
static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t progress_thread_stop;	/* a flag, on which its ticks wait */

/* ---- Exclusion ---------------------------------------------------------------------- */

static long process_barrier(int command)
{
	return syscall(__NR_membarrier, command, 0, 0);
}

/* The call waits for nothing while the process has one thread, later for a grace period of RCU. */
__attribute__((constructor)) static void bias_early(void)
{
	process_barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static uint64_t thread_used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
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
	if (turn_owed) {
		turn_owed = false;
		library_turn();
	}
}

/*
 * The progress thread's half of the bias: announce, make every thread of the process pass a
 * barrier, look.  After that either the program saw the announcement or we see that it is inside.
 */
static bool progress_thread_enter(void)
{
	if (layer.multiple)
		return pthread_mutex_trylock(&layer.mutex) == 0;
	if (atomic_load_explicit(&layer.busy, memory_order_relaxed))
		return false;
	atomic_store(&layer.progress_thread_wants, 1);
	process_barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
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

/* ---- Inside the MPI library's progress ------------------------------------------------- */

/* Progress of rails where calls of the MPI library are forbidden. */
static int transport_progress(int (*progress)(struct rail_ctx *rails))
{
	int events;

	layer.transport_only = true;
	events = progress(layer.rails);
	layer.transport_only = false;
	layer_events_add(events);
	return events;
}

static FAST_THREAD_LOCAL unsigned looks_empty;

/* A look costs as much as an empty call of the library's progress. */
static inline bool library_look_is_due(void)
{
	return layer_pending() || looks_empty < LOOKS_DENSE ||
	       ++looks_empty % CALLS_PER_LOOK == 0;
}

static int library_look_inside(void)
{
	int events;

	atomic_store_explicit(&layer.polls, layer_polls() + 1, memory_order_relaxed);
	layer_looks.library++;
	events = transport_progress(rail_progress);
	if (events > 0)
		looks_empty = 0;
	else if (looks_empty < LOOKS_DENSE)
		looks_empty++;
	return events;
}

static int library_look(void)
{
	int events;

	if (!library_look_is_due())
		return 0;
	if (layer.multiple) {
		if (pthread_mutex_trylock(&layer.mutex))
			return 0;
		events = library_look_inside();
		pthread_mutex_unlock(&layer.mutex);
		return events;
	}
	if (atomic_load_explicit(&layer.busy, memory_order_relaxed))
		return 0;	/* the library was called from the layer */
	layer_enter();
	events = library_look_inside();
	layer_leave();
	return events;
}

/* ---- The progress thread ------------------------------------------------------------- */

void layer_wake_progress_thread(void)
{
	atomic_store(&layer.progress_thread_sleeps, 0);
	rg_wake_word(&layer.progress_thread_sleeps, false);
}

/* At the progress thread's last look: unexpected messages fill as much memory as it may fill. */
static bool progress_thread_full;

static int progress_thread_look(int (*progress)(struct rail_ctx *rails))
{
	int events = 0;

	pthread_mutex_lock(&fork_mutex);
	if (progress_thread_enter()) {
		events = transport_progress(progress);
		layer_looks.thread++;
		progress_thread_full = unexpected_bytes >= SERVE_BYTES_MOST;
		progress_thread_leave();
	}
	pthread_mutex_unlock(&fork_mutex);
	return events;
}

/* Print the queues for --dump-signal; while the program is inside, that waits for the next look. */
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
 * threads go on meanwhile; the C library's free() takes no lock for small chunks.  So a child has a
 * damaged heap if a thread frees memory during the fork and heap pages are registered.  A program
 * with several threads may call no malloc in a child (POSIX, fork); a program with a single thread
 * may, and does not know of the progress thread.  So the progress thread is kept out of the way.
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

/* ---- Its sleep --------------------------------------------------------------------------- */

static void progress_thread_nap(uint64_t most_ns)
{
	atomic_store(&layer.progress_thread_sleeps, 1);
	if (biased)
		process_barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	if (!layer_pending() && !atomic_load(&progress_thread_stop) && !atomic_load(&dump_asked))
		rg_wait_word(&layer.progress_thread_sleeps, 1, most_ns, false);
	atomic_store(&layer.progress_thread_sleeps, 0);
}

/*
 * May the progress thread serve a program that may compute?  Where the library's waits drive rails,
 * the waits suffice.  Elsewhere such a program looks like one that waits, and the thread takes a
 * share of the time, saved up to a limit, and a limited amount of memory for messages that no
 * receive asks for.
 */
static bool progress_thread_may_serve(void)
{
	static uint64_t since_ns, since_used_ns;
	const uint64_t now_ns = rg_now_ns(), used_ns = thread_used_ns();
	const uint64_t earned_ns = (now_ns - since_ns) / SERVE_SHARE;

	if (library_calls() || progress_thread_full || earned_ns <= used_ns - since_used_ns)
		return false;
	if (earned_ns - (used_ns - since_used_ns) > SERVE_SAVED_NS) {
		since_ns = now_ns - (uint64_t)SERVE_SAVED_NS * SERVE_SHARE;
		since_used_ns = used_ns;
	}
	return true;
}

/* Looks at least once: the program may have cancelled a send, or a peer may want a connection. */
static void progress_thread_sleep(void)
{
	uint64_t seen;

	do {
		seen = layer_polls();
		progress_thread_nap(progress_thread_may_serve() ? SERVE_NS : LOOK_NS);
		while (layer_polls() == seen && !atomic_load(&progress_thread_stop) &&
		       progress_thread_look(rail_progress_whole) > 0 && progress_thread_may_serve())
			continue;
	} while (!layer_pending() && !atomic_load(&progress_thread_stop) &&
		 !atomic_load(&dump_asked));
}

/* Until the next look, after one that found nothing: such looks take a small share of the time. */
static uint64_t progress_thread_tick_ns(uint64_t look_ns)
{
	const uint64_t tick_ns = look_ns * SERVE_SHARE;

	return tick_ns < TICK_NS ? TICK_NS : tick_ns > TICK_MAX_NS ? TICK_MAX_NS : tick_ns;
}

/* The longest tick comes with another interrupt: one of its own would delay messages of the program. */
static void progress_thread_tick(uint64_t tick_ns)
{
	const bool coarse = tick_ns == TICK_MAX_NS;

	if (coarse)
		prctl(PR_SET_TIMERSLACK, TICK_MAX_NS);
	rg_wait_word(&progress_thread_stop, 0, tick_ns, false);
	if (coarse)
		prctl(PR_SET_TIMERSLACK, 0);
}

static void *progress_thread_main(void *unused)
{
	uint64_t seen = layer_polls(), now, used_ns, tick_ns = TICK_NS;
	unsigned quiet = 0;

	while (!atomic_load(&progress_thread_stop)) {
		used_ns = thread_used_ns();
		progress_thread_tick(tick_ns);
		quiet = layer_pending() ? 0 : quiet + 1;
		if (quiet > QUIET_TICKS) {
			progress_thread_sleep();
			quiet = 0;
			used_ns = thread_used_ns();
		}
		if (atomic_load(&dump_asked))
			progress_thread_dump();
		now = layer_polls();
		if (now != seen) {
			/* The program polls by itself: keep out of its way. */
			tick_ns = tick_ns * 2 < TICK_MAX_NS ? tick_ns * 2 : TICK_MAX_NS;
			seen = now;
			continue;
		}
		tick_ns = TICK_NS;
		/* A while longer than needed: a program that has cancelled one send may cancel the next. */
		if (quiet <= QUIET_TICKS && progress_thread_look(rail_progress) <= 0)
			tick_ns = progress_thread_tick_ns(thread_used_ns() - used_ns);
	}
	return NULL;
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
		rg_sleep_ns(TICK_NS);
	layer_enter();
}

void layer_drive_native(void)
{
	if (unlikely(layer.multiple))
		turn_owed = true;
	else
		library_turn();
}

/* keeps_core: the library is not to yield, because the caller does. */
static void drive_native(bool keeps_core)
{
	if (keeps_core && !layer.multiple)
		library_turns(1);
	else
		layer_drive_native();
	if (unlikely(atomic_load_explicit(&dump_asked, memory_order_relaxed)))
		give_way();
}

/* Another thread's call may end this thread's wait, so it gets the lock, and the core if `yield`. */
static void let_others_in(bool yield)
{
	const bool owed = turn_owed;

	turn_owed = false;
	layer_leave_slow();
	if (owed)
		library_turns(1);
	if (yield)
		rg_yield();
	layer_enter_slow();
}

/*
 * The MPI library gets no turn in the first microsecond, so that a message that is about to come is
 * found at once; then a turn in each round.  On a crowded node a round gives way once: between two
 * time slices there is a look at the rails, and the turns begin later than the yields, since they take as
 * long as several looks.  Elsewhere other threads get the core after the first
 * microsecond: one that begins a call meanwhile would keep it until that call ends.
 */
static void poll_idle(unsigned *idle)
{
	const unsigned n = ++*idle;
	const bool crowded = layer.oversubscribed && n >= layer.crowded_rounds;
	const bool late = n >= DRIVE_NATIVE_EMPTY;

	if (late || (crowded && n >= CROWDED_NATIVE_EMPTY))
		drive_native(crowded);
	if (layer.multiple && (crowded || late || n % YIELD_ROUNDS == 0))
		let_others_in(crowded || (late && n % YIELD_ROUNDS == 0));
	else if (crowded || (n % CONNECT_ROUNDS == 0 && rail_connects(layer.rails)))
		rg_yield();
}

void layer_poll(unsigned *idle)
{
	static unsigned busy;		/* inside layer_enter */

	if (likely(layer_progress() > 0)) {
		*idle = 0;
		if (unlikely(layer.multiple) && ++busy % SHARE_ROUNDS == 0)
			let_others_in(true);
	} else {
		poll_idle(idle);
	}
	if (unlikely(layer_owes_turn()))
		drive_native(false);
}

void layer_look_on(void)
{
	for (int n = 1; n < RAIL_BATCHES && layer_progress() >= RAIL_BATCH; n++)
		continue;
}

void layer_wait(struct req *r)
{
	unsigned idle = 0;

	do
		layer_poll(&idle);
	while (!r->done);
}

/* ---- Start and stop ------------------------------------------------------------------------ */

int layer_start_progress(void)
{
	static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
	int level = MPI_THREAD_SINGLE;

	native.Query_thread(&level);
	biased = process_barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
	layer.multiple = level == MPI_THREAD_MULTIPLE || !biased;
	layer_enter();
	library_start(library_look);
	layer_leave();
	atomic_store(&progress_thread_stop, 0);
	pthread_once(&fork_once, fork_watch);
	/* All signals stay the program's: its handlers, and the signals that it keeps pending. */
	progress_thread_runs = !rg_thread_start(&progress_thread, progress_thread_main, NULL);
	if (!progress_thread_runs)
		return -EAGAIN;
	return dump_start(world_settings.dump_signal, layer_wake_progress_thread);
}

/* The progress thread asks whether the library calls, so the thread ends first. */
void layer_stop_progress(void)
{
	if (progress_thread_runs) {
		atomic_store(&progress_thread_stop, 1);
		rg_wake_word(&progress_thread_stop, false);
		layer_wake_progress_thread();
		rg_thread_join(progress_thread);
		progress_thread_runs = false;
		dump_stop();
	}
	library_stop();
}
