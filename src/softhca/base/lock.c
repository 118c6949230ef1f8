/* lock.c - waiting for a lock of base.h. */
#include "softhca/base/base.h"

void hca_lock_wait(struct hca_lock *l)
{
	unsigned spins = 0;

	do {
		while (atomic_load_explicit(&l->held, memory_order_relaxed)) {
			rg_relax(UINT64_MAX);
			if (++spins % 256 == 0)
				rg_yield();	/* the holder may need this very core */
		}
	} while (!hca_trylock(l));
}
