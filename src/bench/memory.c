/* memory.c - BENCH_APP: how much memory a process can allocate, and its allocation. */
#include "bench/memory.h"
#include "bench/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CACHE_LINE = 64, PATH_BYTES = 1024 };

/* ---- How much -------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Read the number after key in a line of DIR/FILE; key "": the file's first number. */
static bool number_read(const char *dir, const char *file, const char *key, uint64_t *out)
{
	char path[PATH_BYTES], line[256];
	bool found = false;
	FILE *in;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return false;
	in = fopen(path, "re");
	while (in && !found && fgets(line, sizeof(line), in)) {
		const char *at = line + strlen(key);
		char *end;

		if (strncmp(line, key, strlen(key)))
			continue;
		*out = strtoull(at, &end, 10);
		found = end != at;
	}
	if (in)
		fclose(in);
	return found;
}

/* Files of control groups: the group's limit, its use, and the part that can be dropped. */
static const struct group_kind {
	const char *controllers, *mount, *limit, *usage, *idle;
} group_kinds[] = {
	{ "", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file " },
	{ "memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	  "total_inactive_file " },
};

static uint64_t group_left(const struct group_kind *k, const char *dir)
{
	uint64_t limit, usage, idle = 0;

	/* No limit: "max" in the newer kind, a very large number in the older one. */
	if (!number_read(dir, k->limit, "", &limit) || limit > UINT64_C(1) << 60 ||
	    !number_read(dir, k->usage, "", &usage))
		return UINT64_MAX;
	number_read(dir, "memory.stat", k->idle, &idle);
	usage -= least(usage, idle);
	return limit - least(limit, usage);
}

/* Bytes left in the group at `path` and in all groups above it. */
static uint64_t groups_left(const struct group_kind *k, const char *path)
{
	char dir[PATH_BYTES];
	uint64_t left = UINT64_MAX;

	if (snprintf(dir, sizeof(dir), "%s%s", k->mount, path) >= (int)sizeof(dir))
		return left;
	for (;;) {
		left = least(left, group_left(k, dir));
		if (strlen(dir) <= strlen(k->mount))
			return left;
		*strrchr(dir, '/') = '\0';
	}
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; ; at += strcspn(at, ",") + 1) {
		if (strcspn(at, ",") == length && strncmp(at, word, length) == 0)
			return true;
		if (!at[strcspn(at, ",")])
			return false;
	}
}

/* Lines are "number:controllers:path". */
static uint64_t control_left(void)
{
	FILE *in = fopen("/proc/self/cgroup", "re");
	uint64_t left = UINT64_MAX;
	char line[PATH_BYTES];

	while (in && fgets(line, sizeof(line), in)) {
		char *controllers = strchr(line, ':'), *path;

		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		controllers++;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(group_kinds) / sizeof(group_kinds[0]); i++)
			if (has_word(controllers, group_kinds[i].controllers))
				left = least(left, groups_left(&group_kinds[i], path));
	}
	if (in)
		fclose(in);
	return left;
}

static uint64_t host_left(void)
{
	uint64_t kib;

	return number_read("/proc", "meminfo", "MemAvailable:", &kib) ? kib * 1024 : UINT64_MAX;
}

/* ulimit -v */
static uint64_t address_space_left(void)
{
	struct rlimit limit;
	uint64_t pages = 0;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    !number_read("/proc/self", "statm", "", &pages))
		return UINT64_MAX;
	return limit.rlim_cur - least(limit.rlim_cur, pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

uint64_t memory_available(int sharers)
{
	return least(least(host_left(), control_left()) / (uint64_t)sharers,
		     address_space_left());
}

/* ---- Some of it -------------------------------------------------------------------- */

/* The pointer of MPI_Alloc_mem is stored just before the returned memory. */
void *bench_alloc(size_t bytes)
{
	unsigned char *raw = NULL, *at = NULL;
	int rc;

	/* Running out of memory aborts inside some MPI libraries, unless told to return. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	rc = MPI_Alloc_mem((MPI_Aint)(bytes + 2 * CACHE_LINE), MPI_INFO_NULL, &raw);
	ranks_guard(MPI_COMM_WORLD);
	if (rc != MPI_SUCCESS || !raw)
		return NULL;
	at = raw + 2 * CACHE_LINE - (uintptr_t)raw % CACHE_LINE;
	memcpy(at - sizeof(raw), &raw, sizeof(raw));
#ifdef MADV_HUGEPAGE
	/* A failure has no effect. */
	if (bytes >= (size_t)4 << 20) {
		uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
		uintptr_t begin = ((uintptr_t)at + page - 1) / page * page;
		uintptr_t end = ((uintptr_t)at + bytes) / page * page;

		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	}
#endif
	return at;
}

void bench_free(void *memory)
{
	void *raw;

	if (!memory)
		return;
	memcpy(&raw, (unsigned char *)memory - sizeof(raw), sizeof(raw));
	MPI_Free_mem(raw);
}
