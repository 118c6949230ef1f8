/* versions.c - versions of libraries that are in this process, or on this machine. */
#include "config.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

static const char not_known[] = "not known";

/* A function of a library that is loaded, without loading it; NULL: it is not. */
static void *loaded(const char *library, const char *function)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *at;

	if (!handle)
		return NULL;
	at = dlsym(handle, function);
	dlclose(handle);	/* the process keeps its own use of it */
	return at;
}

static json_t *ucx_version(void)
{
	const char *(*version)(void);
	void *at = loaded("libucp.so.0", "ucp_get_version_string");

	if (!at)
		return json_string(not_known);
	memcpy(&version, &at, sizeof(version));
	return report_string(version());
}

static json_t *libfabric_version(void)
{
	uint32_t (*version)(void);
	void *at = loaded("libfabric.so.1", "fi_version");
	char text[24];

	if (!at)
		return json_string(not_known);
	memcpy(&version, &at, sizeof(version));
	snprintf(text, sizeof(text), "%u.%u", version() >> 16, version() & 0xffff);
	return json_string(text);
}

/* The file of libibverbs, loaded or installed; its name carries the version. */
static bool verbs_file(char path[PATH_MAX])
{
	static const char *const places[] = {
		"/usr/lib/*/libibverbs.so.1", "/usr/lib64/libibverbs.so.1",
		"/usr/lib/libibverbs.so.1", "/lib/*/libibverbs.so.1",
	};
	void *at = loaded("libibverbs.so.1", "ibv_get_device_list");
	Dl_info info;
	bool found = at && dladdr(at, &info) && info.dli_fname && realpath(info.dli_fname, path);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
		glob_t files;

		if (glob(places[i], 0, NULL, &files))
			continue;
		found = realpath(files.gl_pathv[0], path);
		globfree(&files);
	}
	return found;
}

/* libibverbs.so.1.14.50.0 is rdma-core 50.0. */
static json_t *rdma_core_version(void)
{
	char path[PATH_MAX], text[32];
	const char *name = verbs_file(path) ? strstr(path, "libibverbs.so.") : NULL;
	unsigned major, minor;

	if (!name || sscanf(name, "libibverbs.so.%*u.%*u.%u.%u", &major, &minor) != 2)
		return json_string(not_known);
	snprintf(text, sizeof(text), "%u.%u", major, minor);
	return json_string(text);
}

json_t *report_libraries(void)
{
	return json_pack("{s:o, s:o, s:o}", "ucx", ucx_version(), "libfabric",
			 libfabric_version(), "rdma_core", rdma_core_version());
}
