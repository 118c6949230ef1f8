/* native.c - pointers to the MPI library's own functions, set when this library is loaded. */
#include "native.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "err.h"

struct native native;

/*
 * Before main, because some programs call MPI_Initialized or create keyvals
 * first and because a lookup per call would cost more than the call.
 */
__attribute__((constructor)) static void native_resolve(void)
{
	const char *missing = NULL;

#define X(name)                                                                                   \
	*(void **)&native.name = dlsym(RTLD_NEXT, "PMPI_" #name);                                 \
	if (!native.name)                                                                         \
		missing = "PMPI_" #name;
	NATIVE_FUNCTIONS(X)
	NATIVE_LARGE_COUNT(X)
	NATIVE_ISENDRECV(X)
	NATIVE_FORTRAN(X)
#undef X
	if (missing) {
		rg_error("librailmpi-" RG_MPI_FLAVOR ": %s not found behind this library: the program is not "
			 "linked (dynamically) to the MPI library that this build is for", missing);
		_Exit(RG_EXIT_FAULT);
	}
}
