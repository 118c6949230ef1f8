/* launched.c - see launched.h. */
#include "config.h"

#include "mpi/job/launched.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/abi/loaded.h"
#include "mpi/abi/native.h"
#include "util/err.h"
#include "util/launcher.h"

static bool tell(enum rg_mpi built_for)
{
	char text[RG_LAUNCHER_TEXT_BYTES];
	const char *why = rg_launcher_refusal(built_for, text);

	if (!why)
		return false;
	rg_set_quiet(rg_launch_rank() > 0);
	rg_error("%s", why);
	return true;
}

#if RG_OPENMPI
#define BUILT_FOR RG_MPI_OPENMPI

/*
 * Open MPI before version 5 has components for PMI-1 and PMI-2, if it was built with them: files next
 * to the library, or a part of it.
 */
static bool has_pmi(void)
{
	const char *library = loaded_file((const void *)native.Init), *slash = strrchr(library, '/');
	char pattern[PATH_MAX];
	glob_t found;
	bool has;

	if (dlsym(RTLD_DEFAULT, "mca_pmix_s1_component") ||
	    dlsym(RTLD_DEFAULT, "mca_pmix_s2_component"))
		return true;
	snprintf(pattern, sizeof(pattern), "%.*s/openmpi*/mca_pmix_s[12].so",
		 slash ? (int)(slash - library) : 0, library);
	has = !glob(pattern, 0, NULL, &found);
	globfree(&found);
	return has;
}

/*
 * Started by another library's launcher, this Open MPI is sure to be alone.  Its MPI_Init would say so
 * in a page about its own configuration, or start a daemon for each rank.
 */
void launched_check(void)
{
	struct rg_launcher by;

	if (!rg_launcher_find(BUILT_FOR, &by) || by.serves || has_pmi() || !tell(BUILT_FOR))
		return;
	rg_let_rank_0_speak();
	exit(RG_EXIT_USAGE);
}
#else
#define BUILT_FOR RG_MPI_MPICH

/* MPICH can be built with any process manager's interface: its MPI_Init tries. */
void launched_check(void)
{
}
#endif

bool launched_alone(void)
{
	int world = 0;

	native.Comm_size(MPI_COMM_WORLD, &world);
	return world == 1 && tell(BUILT_FOR);
}
