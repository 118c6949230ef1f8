/*
 * fork.c - registrations and child processes of fork.
 *
 * Kernels from 5.13 on report that a child gets copies of registered pages (5.12 made copies
 * without reporting it).  On older kernels ibv_fork_init keeps registered pages out of
 * children.  On newer kernels that only does harm: it splits mappings, so that mremap of the
 * program's memory fails, and a child that touches its copy is killed.  libibverbs before 51
 * does it whenever ibv_fork_init was called, and UCX in an MPI library calls that function for
 * the whole process.  So this file undoes the effect on a registration.
 */
#include "config.h"		/* _GNU_SOURCE */

#include <sys/mman.h>
#include <unistd.h>

#include "verbs/vrb.h"

void vrb_fork_init(void)
{
	if (ibv_is_fork_initialized() != IBV_FORK_UNNEEDED)
		ibv_fork_init();
}

/* Does the registration of a page split a mapping of three? */
static bool registering_splits(struct ibv_pd *pd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	bool splits = false;
	void *moved;

	if (at == MAP_FAILED)
		return false;
	mr = ibv_reg_mr(pd, at + page, page, IBV_ACCESS_LOCAL_WRITE);
	if (mr) {
		moved = mremap(at, 3 * page, 4 * page, MREMAP_MAYMOVE);
		splits = moved == MAP_FAILED;
		if (!splits)
			at = moved;
		ibv_dereg_mr(mr);
	}
	munmap(at, (splits || !mr ? 3 : 4) * page);
	return splits;
}

bool vrb_fork_must_undo(struct ibv_pd *pd)
{
	return ibv_is_fork_initialized() == IBV_FORK_UNNEEDED && registering_splits(pd);
}

static void range_advise(void *addr, size_t bytes, int advice)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1), end = (uintptr_t)addr + bytes;

	madvise((void *)start, ((end + page - 1) & ~(page - 1)) - start, advice);
}

/*
 * Touch all pages before: pages that are first touched in a part that was split off keep this
 * part from joining its neighbours again.  A registration would touch them anyway.
 */
void vrb_fork_prepare(void *addr, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
	range_advise(addr, bytes, MADV_POPULATE_WRITE);
#endif
}

void vrb_fork_undo(void *addr, size_t bytes)
{
	range_advise(addr, bytes, MADV_DOFORK);
}
