/* real.c - the libibverbs of the system. */
#include <dlfcn.h>
#include <pthread.h>

#include "real.h"
#include "verbs_names.h"

static void *library;

static void open_library(void)
{
	library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
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

	return get ? get(NULL) : NULL;
}

void hca_real_free_device_list(struct ibv_device **list)
{
	__typeof__(ibv_free_device_list) *put =
		(__typeof__(put))hca_real("ibv_free_device_list");

	if (put)
		put(list);
}
