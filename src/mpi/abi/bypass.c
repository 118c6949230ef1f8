/* bypass.c - see bypass.h. */
#include "config.h"

#include "mpi/abi/bypass.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "mpi/abi/loaded.h"
#include "mpi/abi/native.h"
#include "util/err.h"
#include "util/told.h"

#if RG_OPENMPI
#define LAYER_MAJOR OMPI_MAJOR_VERSION
#define LAYER_MINOR OMPI_MINOR_VERSION
#define VERSION_FORMAT "Open MPI v%d.%d"
#else
#define LAYER_MAJOR (MPICH_NUMVERSION / 10000000)
#define LAYER_MINOR (MPICH_NUMVERSION / 100000 % 100)
#define VERSION_FORMAT "MPICH Version: %d.%d"
#endif

static pid_t loaded_by;			/* a child of fork has nothing to tell */
static bool in_front;
static bool said;			/* set by MPI_Init and by refused rails: no more to tell */
static const char *not_redirected, *not_before;	/* why, or NULL */

static const char *library(void)
{
	return loaded_file((const void *)native.Init);
}

/* ---- The start ------------------------------------------------------------------------------- */

/* Messages begin with the program's name, "python3: ...", in place of "railgauge: ...". */
static void name_program(void)
{
	if (rg_launch_rank() >= 0 && !strcmp(rg_program(), "railgauge"))
		rg_set_program(program_invocation_short_name);
}

static void refuse_other(void)
{
	const char *other = loaded_other_mpi((const void *)native.Init, false);

	if (!other)
		return;
	name_program();
	said = true;
	told_say();
	rg_set_quiet(rg_launch_rank() > 0);
	rg_error("two MPI libraries in one process: %s, the library of librailmpi-" RG_MPI_FLAVOR
		 ", and %s (accepted: a program of the first alone; for the second, a railgauge that was "
		 "configured for that library)", library(), other);
	rg_let_rank_0_speak();
	exit(RG_EXIT_USAGE);
}

/*
 * A second copy of Open MPI that is opened by its path has functions and data of its own, but its
 * functions call the functions of the first by name: its MPI_Init starts the first library, and
 * its MPI_Send dies.
 */
#if RG_OPENMPI
static intptr_t guarded_init(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e);
static struct loaded_guard guard = { "ompi_mpi_init", (const void *)guarded_init, NULL };
#define GUARD (&guard)

/* Whatever its arguments are: words, of which it has five. */
static intptr_t guarded_init(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e)
{
	intptr_t (*init)(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e);

	if (!said)
		refuse_other();
	*(void **)&init = guard.before;
	return init(a, b, c, d, e);
}
#else
#define GUARD NULL
#endif

/* A layer that is loaded late comes into the program's search after its constructors. */
static void come_to_front(void)
{
	if (in_front)
		return;
	in_front = loaded_in_front();
	/* A second library that defines MPI may look for the next one by name, and find itself. */
	if (!in_front || loaded_other_mpi((const void *)native.Init, false))
		return;
	not_before = loaded_tools((const void *)native.Init);
	not_redirected = loaded_redirect((const void *)native.Init, GUARD);
}

void bypass_start(void)
{
	loaded_by = getpid();
	come_to_front();
}

void bypass_check(void)
{
	name_program();
	come_to_front();
	refuse_other();
	said = true;
	told_say();
}

void bypass_seen(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0, rank = 1, major, minor;

	native.Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank)
		return;
	if (not_redirected)
		rg_warn("functions that the program looks up in %s itself (dlsym, RTLD_DEEPBIND) are "
			"not the layer's: %s", library(), not_redirected);
	if (not_before)
		rg_warn("a profiling tool that the program is linked with sees no calls of MPI "
			"(accepted: the tool in LD_PRELOAD): %s", not_before);
	if (native.Get_library_version(text, &length) ||
	    (sscanf(text, VERSION_FORMAT, &major, &minor) == 2 && major == LAYER_MAJOR &&
	     minor == LAYER_MINOR))
		return;
	text[strcspn(text, ",\n")] = '\0';
	rg_warn("librailmpi-" RG_MPI_FLAVOR " was built with version %d.%d of its MPI library, and this "
		"program runs with %s (%s): this pair is untried", LAYER_MAJOR, LAYER_MINOR, text,
		library());
}

int bypass_refuse(void)
{
	come_to_front();
	if (in_front)
		return 0;
	name_program();
	said = true;
	rg_error("calls of MPI go to %s, past the layer (accepted: librailmpi-" RG_MPI_FLAVOR " before the "
		 "MPI library, in LD_PRELOAD and in the linker's arguments)", library());
	return -EINVAL;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* The program's end, if it has used MPI without the layer: rank 0 tells. */
__attribute__((destructor)) static void bypass_tell(void)
{
	const char *other = NULL;
	int flag = 0;

	if (said || getpid() != loaded_by || rg_launch_rank() > 0)
		return;
	if (native.Initialized(&flag) || !flag)
		other = loaded_other_mpi((const void *)native.Init, true);
	if (!flag && !other)
		return;
	name_program();
	told_say();
	if (flag)
		rg_warn("calls of MPI went to %s, past the layer: no message went over rails (accepted: "
			"librailmpi-" RG_MPI_FLAVOR " before the MPI library, in LD_PRELOAD and in the "
			"linker's arguments)", library());
	else
		rg_warn("calls of MPI went to %s, and librailmpi-" RG_MPI_FLAVOR " is for %s: no message "
			"went over rails (a railgauge that was configured for the former is needed)",
			other, library());
}
