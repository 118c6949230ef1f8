/*
 * unreached.c - preloaded before the layer: the MPI library's progress is out of the layer's reach, as
 * that of a library which calls no such function.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
int opal_progress_register_lp(int (*callback)(void));
unsigned ucp_worker_progress(void *worker);
#pragma GCC visibility pop

/* Open MPI's own callbacks are registered as ever. */
int opal_progress_register_lp(int (*callback)(void))
{
	int (*next)(int (*callback)(void));
	Dl_info info;

	*(void **)&next = dlsym(RTLD_NEXT, "opal_progress_register_lp");
	if (!next || (dladdr((void *)callback, &info) && strstr(info.dli_fname, "railmpi")))
		return -1;
	return next(callback);
}

/* UCX's, and not what the layer puts before it. */
unsigned ucp_worker_progress(void *worker)
{
	static unsigned (*ucx)(void *worker);
	void *library;

	if (!ucx) {
		library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			*(void **)&ucx = dlsym(library, "ucp_worker_progress");
		if (!ucx)
			abort();
	}
	return ucx(worker);
}
