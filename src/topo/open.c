/* open.c - opening a topology, of this machine or of a file. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/err.h"
#include "topo/link.h"
#include "topo/list.h"

/*
 * Drop components that topo does not need; a name that hwloc does not know is no error.  "linux"
 * finds the same in sysfs as "x86", which runs on each core in turn, and as "pci", whose
 * libpciaccess reads the names of all known devices and leaks them.  The others start drivers for
 * names; users know only names of the `slow` ones.
 */
static void components_drop(hwloc_topology_t hwloc, enum topo_want want)
{
#if HWLOC_API_VERSION >= 0x00020100
	static const char *const never[] = { "x86", "pci", "gl", "opencl" };
	static const char *const slow[] = { "cuda", "nvml", "rsmi", "levelzero" };

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      never[i]);
	for (size_t i = 0; want == TOPO_RAILS && i < sizeof(slow) / sizeof(slow[0]); i++)
		hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      slow[i]);
#else
	(void)hwloc;
	(void)want;
#endif
}

static struct topo *topo_make(enum topo_want want)
{
	struct topo *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (hwloc_topology_init(&t->hwloc)) {
		free(t);
		return NULL;
	}
	/* A job that may use one package also needs the devices near the other. */
#if HWLOC_API_VERSION >= 0x00020100
	hwloc_topology_set_flags(t->hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
#else
	hwloc_topology_set_flags(t->hwloc, HWLOC_TOPOLOGY_FLAG_WHOLE_SYSTEM);
#endif
	hwloc_topology_set_io_types_filter(t->hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	components_drop(t->hwloc, want);
	return t;
}

void topo_close(struct topo *t)
{
	if (!t)
		return;
	for (int i = 0; i < t->cores_count; i++) {
		free(t->cores[i].cores);
		free(t->cores[i].cpus);
		hwloc_bitmap_free(t->cores[i].set);
	}
	free(t->adapter);
	free(t->gpu);
	free(t->cores);
	hwloc_topology_destroy(t->hwloc);
	free(t);
}

int topo_open(enum topo_want want, struct topo **out)
{
	struct topo *t = topo_make(want);
	int rc = -ENOMEM;

	if (!t)
		goto fail;
	if (hwloc_topology_load(t->hwloc)) {
		rc = errno ? -errno : -EIO;
		goto fail;
	}
	t->live = hwloc_topology_is_thissystem(t->hwloc);
	rc = topo_list(t);
	if (rc)
		goto fail;
	*out = t;
	return 0;
fail:
	rg_error("the topology of this machine cannot be read: %s", strerror(-rc));
	topo_close(t);
	return rc;
}

/* Check that the file can be read, since hwloc returns EINVAL for any error. */
static int file_check(const char *path)
{
	struct stat st;
	int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (S_ISDIR(st.st_mode))
		rc = -EISDIR;
	close(fd);
	return rc;
}

/* The format of the hwloc that wrote the file; 0: not given. */
static unsigned format_of(const char *path)
{
	static const char mark[] = "<topology version=\"";
	char head[1024];
	FILE *in = fopen(path, "re");
	size_t n = in ? fread(head, 1, sizeof(head) - 1, in) : 0;
	const char *at;

	if (in)
		fclose(in);
	head[n] = '\0';
	at = strstr(head, mark);
	return at ? (unsigned)strtoul(at + sizeof(mark) - 1, NULL, 10) : 0;
}

static void saved_refuse(const char *path)
{
	const unsigned theirs = format_of(path), ours = HWLOC_API_VERSION >> 16;

	if (theirs > ours)
		rg_error("%s: in the format of hwloc %u; hwloc %u is installed here, which does not "
			 "read it (accepted: a file of lstopo --of xml --export-xml-flags v%u)", path,
			 theirs, ours, ours);
	else
		rg_error("%s: damaged, or no topology (accepted: a file of lstopo --of xml or of "
			 "railgauge topo --save)", path);
}

int topo_open_xml(const char *path, struct topo **out)
{
	struct topo *t = NULL;
	int rc = file_check(path);

	if (rc) {
		rg_error("%s: %s", path, strerror(-rc));
		return rc;
	}
	t = topo_make(TOPO_ALL);
	if (!t) {
		rg_error("%s: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	if (hwloc_topology_set_xml(t->hwloc, path) || hwloc_topology_load(t->hwloc)) {
		saved_refuse(path);
		rc = -EINVAL;
		goto fail;
	}
	rc = topo_list(t);
	if (rc) {
		rg_error("%s: %s", path, strerror(-rc));
		goto fail;
	}
	*out = t;
	return 0;
fail:
	topo_close(t);
	return rc;
}

int topo_save(struct topo *t, const char *path)
{
	char *tmp = NULL;
	int rc = topo_links_note(t);
	struct stat st;

	if (!rc && stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		rg_error("%s: the file exists and is no regular file", path);
		return -EEXIST;
	}
	if (!rc && asprintf(&tmp, "%s.%ld.tmp", path, (long)getpid()) < 0) {
		tmp = NULL;
		rc = -ENOMEM;
	}
	if (!rc && hwloc_topology_export_xml(t->hwloc, tmp, 0))
		rc = errno ? -errno : -EIO;
	if (!rc && rename(tmp, path))
		rc = -errno;
	if (rc) {
		rg_error("%s: cannot be written: %s", path, strerror(-rc));
		if (tmp)
			unlink(tmp);
	}
	free(tmp);
	return rc;
}
