/* native.c - pointers to the MPI library's own functions, set when this library is loaded. */
#include "mpi/abi/native.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi/abi/bypass.h"
#include "util/err.h"

struct native native;

/* The function in the MPI library.  bypass.c handles a library that comes before this one. */
static void *native_find(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	Dl_info its, ours;

	if (f)
		return f;
	f = dlsym(RTLD_DEFAULT, name);
	if (!f || !dladdr(f, &its) || !dladdr(&native, &ours) || its.dli_fbase == ours.dli_fbase)
		return NULL;
	return f;
}

/*
 * Before main, because some programs call MPI_Initialized or create keyvals
 * first and because a lookup per call would cost more than the call.
 */
__attribute__((constructor)) static void native_resolve(void)
{
	const char *missing = NULL;

#define X(name)                                                                                   \
	*(void **)&native.name = native_find("PMPI_" #name);                                             \
	if (!native.name)                                                                         \
		missing = "PMPI_" #name;
	NATIVE_FUNCTIONS(X)
	NATIVE_LARGE_COUNT(X)
	NATIVE_ISENDRECV(X)
	NATIVE_BUFFERS(X)
	NATIVE_STATUSES(X)
	NATIVE_PARTITIONED(X)
	NATIVE_FORTRAN(X)
#undef X
#define X(name, params) *(void **)&native.name = native_find(#name);
	NATIVE_EXTENSIONS(X)
#undef X
	if (missing) {
		rg_set_quiet(rg_launch_rank() > 0);
		rg_error("librailmpi-" RG_MPI_FLAVOR ": %s not found in the MPI library: the program is not "
			 "linked (dynamically) to the one that this build is for", missing);
		rg_let_rank_0_speak();
		_Exit(RG_EXIT_FAULT);
	}
	bypass_start();
}

void native_abort(int code)
{
	/* The ranks of a step agree on an error no more. */
	rg_errors_release(true);
	rg_let_launcher_read();
	native.Abort(MPI_COMM_WORLD, code);
	_exit(code);
}

void native_end(const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	rg_error("%s", text);
	native_abort(RG_EXIT_FAULT);
}

bool native_refuses(int error)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int class, length;

	if (error == MPI_SUCCESS)
		return false;
	if (native.Error_class(error, &class) == MPI_SUCCESS && class != MPI_ERR_NO_MEM &&
	    class != MPI_ERR_INTERN && class != MPI_ERR_OTHER)
		return true;
	native.Error_string(error, text, &length);
	native_end("the MPI library cannot say whether it takes a type: %s", text);
}
