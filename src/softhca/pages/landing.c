/* landing.c - see landing.h. */
#include <signal.h>

#include "softhca/base/base.h"
#include "softhca/pages/landing.h"

enum { SPINS = 256 };		/* rounds before the awaited thread gets this very core */

static struct {
	alignas(64) _Atomic uint32_t count;	/* in progress */
	alignas(64) _Atomic uint32_t closed;	/* none begins */
	struct hca_lock closing;
} landings;

static FAST_THREAD_LOCAL unsigned depth;

static void pause_once(unsigned *spins)
{
	rg_relax(UINT64_MAX);
	if (++*spins % SPINS == 0)
		rg_yield();
}

void hca_landing_enter(void)
{
	unsigned spins = 0;

	while (!depth) {
		/* Either this thread sees `closed`, or its closer sees the count. */
		atomic_fetch_add(&landings.count, 1);
		if (likely(!atomic_load(&landings.closed)))
			break;
		atomic_fetch_sub(&landings.count, 1);
		while (atomic_load_explicit(&landings.closed, memory_order_relaxed))
			pause_once(&spins);
	}
	depth++;
	/* This thread finds from now on only regions that hca_landings_wait has not withdrawn. */
	atomic_thread_fence(memory_order_seq_cst);
}

void hca_landing_leave(void)
{
	if (--depth == 0)
		atomic_fetch_sub_explicit(&landings.count, 1, memory_order_release);
}

/* Is any other thread in a landing? */
static bool any_lands(void)
{
	return atomic_load(&landings.count) > (depth ? 1 : 0);
}

void hca_landings_exclude(void)
{
	unsigned spins = 0;

	hca_lock(&landings.closing);
	atomic_store(&landings.closed, 1);
	while (any_lands())
		pause_once(&spins);
}

void hca_landings_admit(void)
{
	atomic_store_explicit(&landings.closed, 0, memory_order_release);
	hca_unlock(&landings.closing);
}

/* Landings of several threads may overlap for ever: a pause ends that. */
static void make_pause(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	hca_landings_exclude();
	hca_landings_admit();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hca_landings_wait(void)
{
	unsigned spins = 0;

	atomic_thread_fence(memory_order_seq_cst);
	while (any_lands() && spins < SPINS)
		pause_once(&spins);
	if (any_lands())
		make_pause();
}

void hca_landings_in_child(void)
{
	atomic_store(&landings.count, depth ? 1 : 0);
	atomic_store(&landings.closed, 0);
	hca_unlock(&landings.closing);
}
