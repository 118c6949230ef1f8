/*
 * windows.c - the memory of windows is never mapped (--map-buffers): the library, and through it other
 * processes, may know it by its pages.
 *
 * All that windows do is the library's.  The calls of this file only tell librail of the memory.
 */
#include "mpi/abi/native.h"
#include "mpi/job/progress.h"

static int keep(const void *base, MPI_Aint size)
{
	return layer.rails && size > 0 && rail_keep(layer.rails, base, (size_t)size) ?
	       MPI_ERR_NO_MEM : MPI_SUCCESS;
}

static void unkeep(const void *base, MPI_Aint size)
{
	if (layer.rails && base)
		rail_unkeep(layer.rails, base, (size_t)size);
}

/* The library has refused the window whose memory was kept for it. */
static int kept_for(int rc, const void *base, MPI_Aint size)
{
	if (rc && size > 0)
		unkeep(base, size);
	return rc;
}

#define GEN_CREATE(S, INT)                                                                         \
	int MPI_Win_create##S(void *base, MPI_Aint size, INT unit, MPI_Info info, MPI_Comm comm,   \
			      MPI_Win *win)                                                        \
	{                                                                                          \
		/* Called before the library looks at the pages. */                                \
		int rc = keep(base, size);                                                         \
                                                                                                   \
		return rc ? rc : kept_for(native.Win_create##S(base, size, unit, info, comm, win), \
					  base, size);                                             \
	}                                                                                          \
	BOTH(Win_create##S);                                                                       \
                                                                                                   \
	int MPI_Win_allocate##S(MPI_Aint size, INT unit, MPI_Info info, MPI_Comm comm, void *base, \
				MPI_Win *win)                                                      \
	{                                                                                          \
		int rc = native.Win_allocate##S(size, unit, info, comm, base, win);                \
                                                                                                   \
		return rc ? rc : keep(*(void **)base, size);                                       \
	}                                                                                          \
	BOTH(Win_allocate##S);

#ifdef HAVE_MPI_SEND_C
GEN_CREATE(, int) GEN_CREATE(_c, MPI_Aint)
#else
GEN_CREATE(, int)
#endif

int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
	int rc = keep(base, size);

	return rc ? rc : kept_for(native.Win_attach(win, base, size), base, size);
}
BOTH(Win_attach);

int MPI_Win_detach(MPI_Win win, const void *base)
{
	int rc = native.Win_detach(win, base);

	if (!rc)
		unkeep(base, 0);
	return rc;
}
BOTH(Win_detach);

int MPI_Win_free(MPI_Win *win)
{
	MPI_Aint *size = NULL, bytes = 0;
	void *base = NULL;
	int found = 0, rc;

	if (layer.rails && *win != MPI_WIN_NULL &&
	    !native.Win_get_attr(*win, MPI_WIN_SIZE, &size, &found) && found) {
		bytes = *size;
		native.Win_get_attr(*win, MPI_WIN_BASE, &base, &found);
	}
	rc = native.Win_free(win);
	if (!rc && found && bytes > 0)
		unkeep(base, bytes);
	return rc;
}
BOTH(Win_free);
