/*
 * real.c - the libibverbs of the system.
 *
 * Where libsofthca replaces libibverbs.so.1 (the drop-in directory), that
 * name resolves to libsofthca itself; then the next one on the search path is
 * used.  Drivers of real devices require the only libibverbs.so.1, so a drop-in
 * shows software devices alone (drivers cannot be loaded then).
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "softhca/api/real.h"
#include "softhca/api/verbs_names.h"

static void *library;

/* Does a name that both libraries export resolve to this library's function? */
static bool real_is_ours(void *handle)
{
	Dl_info theirs, ours;
	void *f = dlsym(handle, "ibv_get_device_list");

	return f && dladdr(f, &theirs) && dladdr((void *)(uintptr_t)&hca_real, &ours) &&
	       theirs.dli_fbase == ours.dli_fbase;
}

/* Another libibverbs.so.1 in the directories that dlopen searches. */
static void *open_another(void)
{
	void *self = dlopen(NULL, RTLD_NOW), *found = NULL;
	Dl_serinfo size, *path = NULL;
	char file[PATH_MAX];
	unsigned i;

	if (self && !dlinfo(self, RTLD_DI_SERINFOSIZE, &size))
		path = malloc(size.dls_size);
	if (path && (dlinfo(self, RTLD_DI_SERINFOSIZE, path) ||
		     dlinfo(self, RTLD_DI_SERINFO, path))) {
		free(path);
		path = NULL;
	}
	for (i = 0; path && !found && i < path->dls_cnt; i++) {
		snprintf(file, sizeof(file), "%s/libibverbs.so.1", path->dls_serpath[i].dls_name);
		found = dlopen(file, RTLD_NOW | RTLD_LOCAL);
		if (found && real_is_ours(found)) {
			dlclose(found);
			found = NULL;
		}
	}
	free(path);
	if (self)
		dlclose(self);
	return found;
}

static void open_library(void)
{
	library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library && real_is_ours(library)) {
		dlclose(library);
		library = open_another();
	}
}
void *hca_real(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_library);
	return library ? dlsym(library, name) : NULL;
}

struct ibv_device **hca_real_get_device_list(void)
{
	__typeof__(ibv_get_device_list) *get =
		(__typeof__(get))hca_real("ibv_get_device_list");

	errno = 0;
	return get ? get(NULL) : NULL;
}

void hca_real_free_device_list(struct ibv_device **list)
{
	__typeof__(ibv_free_device_list) *put =
		(__typeof__(put))hca_real("ibv_free_device_list");

	if (put)
		put(list);
}
