/*
 * library.c - the progress of the MPI library, from both sides: a call of the layer's inside it, and
 * turns that the layer gives it.
 *
 * Open MPI calls functions that are registered with it.  MPICH over UCX calls UCX through the loader,
 * which finds the function here first.  No other library calls the layer.
 */
#include "mpi/job/library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "mpi/abi/native.h"
#include "mpi/job/progress.h"
#include "util/compiler.h"
#include "util/err.h"

static int (*look)(void);
static _Atomic uint64_t turns;

/* ---- Called by the library -------------------------------------------------------------- */

#if RG_OPENMPI

static int (*opal_unregister)(int (*callback)(void));
static void (*opal_progress)(void);
static bool (*opal_set_yield)(bool yield);

void library_start(int (*callback)(void))
{
	int (*reg)(int (*callback)(void));

	look = callback;
	*(void **)&reg = dlsym(RTLD_DEFAULT, "opal_progress_register_lp");
	*(void **)&opal_unregister = dlsym(RTLD_DEFAULT, "opal_progress_unregister");
	*(void **)&opal_progress = dlsym(RTLD_DEFAULT, "opal_progress");
	*(void **)&opal_set_yield = dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	if (!reg || !opal_unregister || reg(look))
		opal_unregister = NULL;
}

void library_stop(void)
{
	if (opal_unregister)
		opal_unregister(look);
	opal_unregister = NULL;
}

bool library_calls(void)
{
	return opal_unregister;
}

#else

typedef unsigned worker_progress_fn(void *worker);

static unsigned progress_first(void *worker);

/* UCX's function, once it is known. */
static _Atomic(worker_progress_fn *) ucx_progress = progress_first;
/* The worker of the MPI library: a program may use UCX, too, in threads of its own. */
static void *_Atomic library_worker;
static FAST_THREAD_LOCAL bool learning;

__attribute__((visibility("default"))) worker_progress_fn ucp_worker_progress;

/* In front of UCX's. */
unsigned ucp_worker_progress(void *worker)
{
	if (unlikely(worker == atomic_load_explicit(&library_worker, memory_order_relaxed)))
		look();
	return atomic_load_explicit(&ucx_progress, memory_order_relaxed)(worker);
}

/*
 * UCX does not follow this library in the order of the loader if the MPI library was loaded late.
 */
static worker_progress_fn *ucx_find(void)
{
	worker_progress_fn *found;
	void *ucx;

	*(void **)&found = dlsym(RTLD_NEXT, "ucp_worker_progress");
	if (!found && (ucx = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD)))
		*(void **)&found = dlsym(ucx, "ucp_worker_progress");
	if (!found) {
		rg_error("librailmpi-" RG_MPI_FLAVOR ": ucp_worker_progress was called, and UCX (libucp.so.0) "
			 "is not loaded as a shared library");
		abort();
	}
	return found;
}

static unsigned progress_first(void *worker)
{
	worker_progress_fn *found = ucx_find();

	atomic_store_explicit(&ucx_progress, found, memory_order_relaxed);
	return found(worker);
}

static unsigned progress_learning(void *worker)
{
	if (learning)
		atomic_store_explicit(&library_worker, worker, memory_order_relaxed);
	return ucx_find()(worker);
}

void library_start(int (*callback)(void))
{
	look = callback;
	learning = true;
	atomic_store(&ucx_progress, progress_learning);
	library_turn();
	atomic_store(&ucx_progress, progress_first);
	learning = false;
}

void library_stop(void)
{
	atomic_store(&library_worker, NULL);
}

bool library_calls(void)
{
	return atomic_load_explicit(&library_worker, memory_order_relaxed);
}

#endif

/* ---- Its turns ---------------------------------------------------------------------------- */

void library_turn(void)
{
	int flag;

	atomic_store_explicit(&turns, library_turn_count() + 1, memory_order_relaxed);
#if RG_OPENMPI
	if (likely(opal_progress)) {
		opal_progress();
		return;
	}
#endif
	native.Test(&layer.sentinel, &flag, MPI_STATUS_IGNORE);
}

/* None of them is to give its time slice away. */
void library_turns(unsigned rounds)
{
#if RG_OPENMPI
	bool yield = opal_set_yield && opal_set_yield(false);
#endif
	while (rounds--)
		library_turn();
#if RG_OPENMPI
	if (yield)
		opal_set_yield(true);
#endif
}

uint64_t library_turn_count(void)
{
	return atomic_load_explicit(&turns, memory_order_relaxed);
}
