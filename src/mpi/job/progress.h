/*
 * progress.h - progress: where and when the transport is polled, and the MPI library driven.
 *
 * Between layer_enter and layer_leave there is one thread at a time.
 */
#ifndef RAILMPI_PROGRESS_H
#define RAILMPI_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/abi/native.h"
#include "mpi/watch/call_count.h"
#include "rail/rail.h"
#include "util/compiler.h"

#pragma GCC visibility push(hidden)

struct req;

/*
 * Where more ranks than cores wait, the peer whose message comes next needs this core.  A look at memory
 * costs less than a switch of ranks, and two in a row find what another core has just written.  Wires
 * take more looks, or an MPI_Allgather between hosts takes longer (`make bench-net`).
 */
enum { LAYER_CROWDED_ROUNDS_MEMORY = 2, LAYER_CROWDED_ROUNDS_WIRE = 8 };

extern struct layer {
	struct rail_ctx *rails;		/* NULL: nothing is routed */
	bool multiple;			/* MPI_THREAD_MULTIPLE: mutex instead of biased lock */
	_Atomic unsigned busy;		/* a thread is inside; see layer_enter */
	_Atomic unsigned progress_thread_wants;
	_Atomic unsigned progress_thread_sleeps;
	_Atomic uint64_t polls;		/* grows whenever the program polls the transport */
	_Atomic unsigned pending;	/* operations in flight, posted receives, open offers */
	_Atomic unsigned events;	/* events of rails, messages among them */
	_Atomic unsigned caught_up;	/* events after which the MPI library has had its turn */
	_Atomic bool collected;		/* a collective has ended since */
	unsigned looks;			/* calls in a row that polled once and found nothing */
	unsigned large;			/* nonblocking sends above eager size since the last poll */
	bool oversubscribed;
	unsigned crowded_rounds;	/* oversubscribed: empty rounds of a wait before it yields */
	bool transport_only;		/* progress thread, or inside the library: no MPI calls */
	struct call_count *call;	/* the call whose bytes are counted; see call_count.h */
	pthread_mutex_t mutex;
	int world_rank, world_size;
	int tag_ub;
	unsigned nodes;
	MPI_Request sentinel;		/* matches nothing: PMPI_Test of it drives the library */
	MPI_Comm self;			/* dup of MPI_COMM_SELF */
} layer;

/* Looks at rails, for the ledger; inside layer_enter. */
extern struct layer_looks {
	uint64_t library;		/* looks in the MPI library's progress */
	uint64_t thread;		/* looks of the progress thread */
} layer_looks;

void layer_enter_slow(void);
void layer_leave_slow(void);
void layer_wake_progress_thread(void);

/* A plain store: a single thread at a time writes, and the progress thread reads. */
static inline unsigned layer_pending(void)
{
	return atomic_load_explicit(&layer.pending, memory_order_relaxed);
}
static inline void layer_pending_add(int n)
{
	atomic_store_explicit(&layer.pending, layer_pending() + (unsigned)n, memory_order_relaxed);
}
static inline uint64_t layer_polls(void)
{
	return atomic_load_explicit(&layer.polls, memory_order_relaxed);
}

/*
 * Exclude the progress thread and, under MPI_THREAD_MULTIPLE, other threads.
 * Without MPI_THREAD_MULTIPLE the lock is biased: the progress thread executes a
 * membarrier, so that two plain stores are enough here.
 */
static inline void layer_enter(void)
{
	if (unlikely(layer.multiple)) {
		layer_enter_slow();
		return;
	}
	atomic_store_explicit(&layer.busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(atomic_load_explicit(&layer.progress_thread_wants, memory_order_acquire)))
		layer_enter_slow();
}

/*
 * The same without a call.  False: nothing is entered, since layer_enter has to wait or to lock.
 * True: the section may be entered once more.
 */
static inline bool layer_enter_straight(void)
{
	if (unlikely(layer.multiple))
		return false;
	atomic_store_explicit(&layer.busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return likely(!atomic_load_explicit(&layer.progress_thread_wants, memory_order_acquire));
}

static inline void layer_leave(void)
{
	if (unlikely(layer.multiple)) {
		layer_leave_slow();
		return;
	}
	if (unlikely(atomic_load_explicit(&layer.progress_thread_sleeps, memory_order_relaxed) &&
		     layer_pending()))
		layer_wake_progress_thread();
	atomic_store_explicit(&layer.busy, 0, memory_order_release);
}

/* Count a call that looks no communicator up (call_count.h).  Inside layer_enter. */
static inline void layer_count(enum call call)
{
	struct call_count *k = &calls[call];

	layer.call = k;
	atomic_store_explicit(&k->routed, atomic_load_explicit(&k->routed, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static inline void layer_events_add(int n)
{
	const unsigned before = atomic_load_explicit(&layer.events, memory_order_relaxed);

	atomic_store_explicit(&layer.events, before + (unsigned)n, memory_order_relaxed);
}

/* Progress of messages over rails.  Returns the number of events. */
static inline int layer_progress(void)
{
	int events;

	layer.large = 0;
	atomic_store_explicit(&layer.polls, layer_polls() + 1, memory_order_relaxed);
	events = rail_progress(layer.rails);
	layer_events_add(events);
	return events;
}

/* A round of a waiting loop: progress, or yield.  *idle counts rounds without an event. */
void layer_poll(unsigned *idle);
/*
 * A turn of the MPI library, for its own messages.  Under MPI_THREAD_MULTIPLE the turn comes at the
 * next layer_leave, since the library may hold a lock of its own while it calls the program.
 */
void layer_drive_native(void);

enum {
	/* Rounds between turns of the library, whatever happens; a power of two. */
	DRIVE_NATIVE_ROUNDS = 256,
	/* Calls in a row that find nothing, after which each gives the library a turn. */
	DRIVE_NATIVE_LOOKS = 16,
};

static inline bool layer_owes_turn(void)
{
	return layer_polls() % DRIVE_NATIVE_ROUNDS == 0;
}

void layer_look_on(void);

/*
 * Progress in a call that does not wait, such as MPI_Test; a loop of such calls is a wait.  All
 * events that came before are seen.
 */
static inline void layer_look(void)
{
	const int events = layer_progress();

	if (events > 0)
		layer.looks = 0;
	else
		layer.looks++;
	if (unlikely(events >= RAIL_BATCH))
		layer_look_on();
	if (unlikely(layer.looks >= DRIVE_NATIVE_LOOKS || layer_owes_turn()))
		layer_drive_native();
}

/* Poll until r is done. */
void layer_wait(struct req *r);
int layer_start_progress(void);
void layer_stop_progress(void);

#pragma GCC visibility pop

#endif
