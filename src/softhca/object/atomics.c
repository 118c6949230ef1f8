/* atomics.c - see atomics.h. */
#include "softhca/object/atomics.h"

#include "util/clock.h"
#include "softhca/base/proc.h"
#include "softhca/model/model.h"
#include "softhca/object/device.h"
#include "softhca/object/link.h"

enum {
	LOOK_NS = 20000,	/* after so long the fate of the holder is checked */
	WAIT_NS = 200000,	/* after so long other queue pairs have their turn */
	STOPPED_NS = 1000000000, /* limit of the wait for a stopped holder */
};

/* The limit for a running holder: a turn takes microseconds, and a processor is free some time. */
#define RUNNING_NS 5000000000ull

/* A process always reaches its own memory, also memory that its peers cannot map. */
bool hca_atomic_is_mapped(const struct hca_fabric *f, uint32_t key, uint64_t at)
{
	const struct hca_mr *mr = hca_mr_find(f, key);

	return mr && at >= mr->mapped && at + HCA_WORD <= mr->mapped_end;
}

/* The holder: generation << 32 | turn << 12 | slot + 1; a value recurs after 2^20 turns only. */
static uint64_t my_turn(const struct hca_fabric *f)
{
	static _Atomic uint32_t turns;
	uint32_t turn = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);

	static_assert(HCA_PROCS_MAX < 1 << 12, "a slot fits");
	return (uint64_t)f->generation << 32 | (turn & 0xfffff) << 12 | (f->slot + 1);
}

static uint32_t holder_slot(uint64_t holder)
{
	return ((uint32_t)holder & 0xfff) - 1;
}

static bool holder_is_gone(struct hca_fabric *f, uint64_t holder)
{
	uint32_t slot = holder_slot(holder);

	return f->link->slot_fate(f, slot) != HCA_FATE_ALIVE ||
	       atomic_load(&f->shm->slot[slot].generation) != (uint32_t)(holder >> 32);
}

/* Do pids mean the same to the process in a slot and to this one?  Else its state is unknown. */
static bool holder_is_stopped(const struct hca_fabric *f, uint64_t holder)
{
	const struct hca_shm_slot *s = &f->shm->slot[holder_slot(holder)];

	return s->pid_ns && s->pid_ns == f->shm->slot[f->slot].pid_ns &&
	       hca_process_stopped(s->pid, s->start_time);
}

/*
 * Has this holder, which is not gone, had its turn for so long, over all tries of the
 * operation, that the lock is taken from it?  A holder that only waits for a processor is
 * about to write, and gets a processor sooner.
 */
static bool waited_enough(const struct hca_fabric *f, struct hca_atomic_wait *wait, uint64_t holder,
			  uint64_t now)
{
	if (wait->holder != holder) {
		wait->holder = holder;
		wait->since_ns = now;
	}
	return rg_reached(wait->since_ns + RUNNING_NS + 1, now) ||
	       (rg_reached(wait->since_ns + STOPPED_NS + 1, now) && holder_is_stopped(f, holder));
}

bool hca_atomic_lock(struct hca_fabric *f, uint32_t address, struct hca_atomic_wait *wait,
		     struct hca_atomic_lock *lock)
{
	uint64_t start = 0, holder = 0;
	bool looked = false;
	uint32_t port;

	lock->turn = my_turn(f);
	lock->word = &hca_adapter(f->shm, &f->spec, address, &port)->atomics;
	while (!atomic_compare_exchange_weak_explicit(lock->word, &holder, lock->turn,
						      memory_order_acquire, memory_order_relaxed)) {
		uint64_t now = rg_now_ns();

		if (!start)
			start = now;
		if (holder && !looked && now - start > LOOK_NS) {
			/* The next try takes the lock, unless another process was faster. */
			if (holder_is_gone(f, holder) || waited_enough(f, wait, holder, now))
				continue;
			looked = true;
		}
		if (now - start > WAIT_NS)
			return false;
		holder = 0;
		rg_relax(start + (looked ? WAIT_NS : LOOK_NS) + 1);
		if (looked)
			rg_yield();	/* the holder may need this very core */
	}
	*wait = (struct hca_atomic_wait){ 0 };
	return true;
}

void hca_atomic_unlock(const struct hca_atomic_lock *lock)
{
	uint64_t mine = lock->turn;

	/* Unless another process has taken the lock. */
	atomic_compare_exchange_strong_explicit(lock->word, &mine, 0, memory_order_release,
						memory_order_relaxed);
}
