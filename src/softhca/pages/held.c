/*
 * held.c - memory that is not moved, although it is private and anonymous: the stacks of threads
 * and fibers, and on request memory whose pages a device or the kernel may know.
 *
 * The functions are called once per buffer, before anything is moved, and allocate.  Later changes
 * of moved memory by the program are seen only as far as memwatch.h sees them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/layout.h"
#include "softhca/base/maps.h"
#include "softhca/base/proc.h"
#include "softhca/base/sys.h"
#include "softhca/pages/held.h"

/*
 * Beginnings of names of open files through which the process may have given pages to a device, to
 * a virtual machine or to a ring of the kernel, which go on using them; and userfaultfd, whose
 * handler takes part in each fault.  verbs: opened by a library that does not call this library's
 * ibv_reg_mr.
 */
static const char *const holders[] = {
	"/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/", "/dev/habanalabs", "/dev/vfio/",
	"/dev/iommu", "/dev/kvm", "/dev/infiniband/", "/dev/cxi", "/dev/video", "anon_inode:kvm",
	"anon_inode:[vfio", "anon_inode:[userfaultfd]", "/dev/userfaultfd", "anon_inode:[io_uring]",
};

static bool is_holder(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(holders) / sizeof(holders[0]); i++)
		if (!strncmp(name, holders[i], strlen(holders[i])))
			return true;
	return false;
}

static DIR *directory(const char *path)
{
	int fd = hca_proc_open(path, O_RDONLY | O_DIRECTORY);

	return fd < 0 ? NULL : fdopendir(fd);
}

const char *hca_held_by_process(void)
{
	static const char locked[] = "VmLck:";
	const char *why = NULL;
	struct dirent *entry;
	char line[128], name[64];
	DIR *fds = directory("/proc/self/fd");
	FILE *status = fdopen(hca_proc_open("/proc/self/status", O_RDONLY), "r");

	if (!fds || !status)
		why = "/proc cannot be read";
	while (!why && (entry = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, name, sizeof(name) - 1);

		name[n > 0 ? n : 0] = '\0';
		if (is_holder(name))
			why = "a device, a virtual machine, io_uring or userfaultfd is open";
	}
	while (!why && fgets(line, sizeof(line), status))
		if (!strncmp(line, locked, sizeof(locked) - 1) &&
		    strtoull(line + sizeof(locked) - 1, NULL, 10))
			why = "memory of the process is locked";
	if (fds)
		closedir(fds);
	if (status)
		fclose(status);
	return why;
}

/* ---- Stacks -------------------------------------------------------------- */

/* The end of the memory from `start` on that can be read and written without a gap. */
static uint64_t run_end(uint64_t start)
{
	struct hca_map map;
	struct hca_maps m;
	uint64_t at = start;

	if (hca_maps_open(start, HCA_MEMORY_BYTES - start, &m))
		return HCA_MEMORY_BYTES;
	while (hca_maps_next(&m, &map) && map.start <= at && map.readable && map.writable)
		at = map.end;
	hca_maps_close(&m);
	return at;
}

enum { THREADS_MAX = 512 };

/*
 * Addresses of the control blocks of the other threads: the C library puts them at the upper end of
 * stacks, also of stacks that a program provides.  The kernel knows a part of each, the list of
 * robust mutexes.  The first thread's is with the libraries.  Negative: unknown.
 */
static int control_blocks(uint64_t at[THREADS_MAX])
{
	DIR *tasks = directory("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	if (!tasks)
		return -1;
	while (count >= 0 && (entry = readdir(tasks))) {
		long tid = strtol(entry->d_name, NULL, 10), rc;
		uint64_t head = 0, bytes;

		if (tid <= 0 || tid == getpid())
			continue;
		rc = hca_sys(SYS_get_robust_list, tid, (long)&head, (long)&bytes, 0, 0, 0);
		if (rc == -ESRCH)
			continue;		/* the thread has ended */
		if (rc || count == THREADS_MAX)
			count = -1;
		else
			at[count++] = head;
	}
	closedir(tasks);
	return count;
}

static bool any_in(const uint64_t *at, int count, uint64_t start, uint64_t end)
{
	int i;

	for (i = 0; i < count; i++)
		if (at[i] >= start && at[i] < end)
			return true;
	return false;
}

/*
 * A thread's stack ends at its control block, with no gap.  A fiber's stack has no known end: all
 * memory above the frame of the caller counts, unless a control block is between.
 */
bool hca_held_by_stack(uint64_t start, const void *frame)
{
	const uint64_t below = (uintptr_t)frame;
	uint64_t at[THREADS_MAX];
	int count = control_blocks(at);

	if (count < 0 || any_in(at, count, start, run_end(start)))
		return true;
	return below < start && run_end(below) > start && !any_in(at, count, below, start);
}

/* ---- Ranges -------------------------------------------------------------- */

/* Has mbind been called for it?  False where the kernel has no such call. */
static bool held_by_policy(uint64_t addr)
{
	enum { DEFAULT = 0, OF_ADDRESS = 2 };	/* MPOL_DEFAULT, MPOL_F_ADDR: linux/mempolicy.h */
	int mode = DEFAULT;

	return !hca_sys(SYS_get_mempolicy, (long)&mode, 0, 0, (long)addr, OF_ADDRESS, 0) &&
	       mode != DEFAULT;
}

static bool any_bound(uint64_t start, uint64_t end)
{
	struct hca_map map;
	struct hca_maps m;
	bool bound = false;

	if (hca_maps_open(start, end - start, &m))
		return true;
	while (!bound && hca_maps_next(&m, &map))
		bound = held_by_policy(hca_later(map.start, start));
	hca_maps_close(&m);
	return bound;
}

const char *hca_held_range(uint64_t start, uint64_t end, const void *frame)
{
	if (hca_held_by_stack(start, frame))
		return "it is on a stack";
	if (any_bound(start, end))
		return "it is bound to NUMA nodes";
	return NULL;
}
