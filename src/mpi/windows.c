/*
 * windows.c - the memory of windows is never mapped (--map-buffers): the library, and through it other
 * processes, may know it by its pages.
 *
 * All that windows do is the library's.  These calls only tell librail of the memory.
 */
#include "layer.h"

static int keep(int rc, const void *base, size_t bytes)
{
	if (rc == MPI_SUCCESS && layer.rails && rail_keep(layer.rails, base, bytes))
		return MPI_ERR_NO_MEM;
	return rc;
}

#define GEN_CREATE(S, INT)                                                                         \
	int MPI_Win_create##S(void *base, MPI_Aint size, INT unit, MPI_Info info, MPI_Comm comm,   \
			      MPI_Win *win)                                                        \
	{                                                                                          \
		/* Before the library looks at its pages. */                                       \
		int rc = keep(MPI_SUCCESS, base, size > 0 ? (size_t)size : 0);                     \
                                                                                                   \
		return rc ? rc : native.Win_create##S(base, size, unit, info, comm, win);          \
	}                                                                                          \
	BOTH(Win_create##S);                                                                       \
                                                                                                   \
	int MPI_Win_allocate##S(MPI_Aint size, INT unit, MPI_Info info, MPI_Comm comm, void *base, \
				MPI_Win *win)                                                      \
	{                                                                                          \
		int rc = native.Win_allocate##S(size, unit, info, comm, base, win);                \
                                                                                                   \
		return keep(rc, rc ? NULL : *(void **)base, size > 0 ? (size_t)size : 0);          \
	}                                                                                          \
	BOTH(Win_allocate##S);

#ifdef HAVE_MPI_SEND_C
GEN_CREATE(, int) GEN_CREATE(_c, MPI_Aint)
#else
GEN_CREATE(, int)
#endif

int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
	int rc = keep(MPI_SUCCESS, base, size > 0 ? (size_t)size : 0);

	return rc ? rc : native.Win_attach(win, base, size);
}
BOTH(Win_attach);

int MPI_Win_detach(MPI_Win win, const void *base)
{
	int rc = native.Win_detach(win, base);

	if (!rc && layer.rails)
		rail_unkeep(layer.rails, base);
	return rc;
}
BOTH(Win_detach);

int MPI_Win_free(MPI_Win *win)
{
	void *base = NULL;
	int found = 0, rc;

	if (layer.rails && *win != MPI_WIN_NULL)
		native.Win_get_attr(*win, MPI_WIN_BASE, &base, &found);
	rc = native.Win_free(win);
	if (!rc && found && base && layer.rails)
		rail_unkeep(layer.rails, base);
	return rc;
}
BOTH(Win_free);
