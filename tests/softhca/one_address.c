/*
 * one_address.c - members of one process, for a thread sanitizer: a segment has one address, and the
 * mapping of a peer is the owner's own.
 *
 * A sanitizer knows words by their addresses.  The link editor puts the functions below in place of
 * the library's (--wrap; ONE_ADDRESS in local.mk).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/base/segment.h"
#include "softhca/pages/memory.h"

void *__real_hca_segment_map(int fd, uint64_t offset, uint64_t bytes);
const void *__real_hca_segment_view(int fd, uint64_t bytes);
int __real_hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards);
int __real_munmap(void *at, size_t bytes);

void *__wrap_hca_segment_map(int fd, uint64_t offset, uint64_t bytes);
const void *__wrap_hca_segment_view(int fd, uint64_t bytes);
int __wrap_hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards);
int __wrap_munmap(void *at, size_t bytes);

struct mapping {
	ino_t ino;
	void *at;
	uint64_t bytes;
	unsigned count;			/* 0: free */
};

static struct mapping mapping[4096];
static pthread_mutex_t mappings = PTHREAD_MUTEX_INITIALIZER;

static ino_t ino_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* A mapping with all these bytes gets another user; NULL: there is none. */
static void *mapping_share(ino_t ino, uint64_t bytes)
{
	for (unsigned i = 0; i < sizeof(mapping) / sizeof(*mapping); i++)
		if (mapping[i].count && mapping[i].ino == ino && mapping[i].bytes >= bytes) {
			mapping[i].count++;
			return mapping[i].at;
		}
	return NULL;
}

static void mapping_keep(ino_t ino, void *at, uint64_t bytes)
{
	unsigned i = 0;

	while (mapping[i].count)
		if (++i == sizeof(mapping) / sizeof(*mapping)) {
			fprintf(stderr, "too many mappings\n");
			abort();
		}
	mapping[i] = (struct mapping){ ino, at, bytes, 1 };
}

void *__wrap_hca_segment_map(int fd, uint64_t offset, uint64_t bytes)
{
	const ino_t ino = ino_of(fd);
	void *at;

	/* The memory of this process: its offsets are its addresses. */
	if (offset && ino == ino_of(hca_memory_fd()))
		return (void *)(uintptr_t)offset;
	pthread_mutex_lock(&mappings);
	at = offset ? NULL : mapping_share(ino, bytes);
	if (!at) {
		at = __real_hca_segment_map(fd, offset, bytes);
		if (at && !offset)
			mapping_keep(ino, at, bytes);
	}
	pthread_mutex_unlock(&mappings);
	return at;
}

const void *__wrap_hca_segment_view(int fd, uint64_t bytes)
{
	const void *at;

	pthread_mutex_lock(&mappings);
	at = mapping_share(ino_of(fd), bytes);
	pthread_mutex_unlock(&mappings);
	return at ? at : __real_hca_segment_view(fd, bytes);
}

int __wrap_hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards)
{
	int fd = __real_hca_segment_create_own(name, bytes, at, guards);

	if (fd >= 0) {
		pthread_mutex_lock(&mappings);
		mapping_keep(ino_of(fd), *at, bytes);
		pthread_mutex_unlock(&mappings);
	}
	return fd;
}

/* The last user's: 1, it may go; 0, others use it; -1, none of these mappings. */
static int mapping_drop(const void *at)
{
	for (unsigned i = 0; i < sizeof(mapping) / sizeof(*mapping); i++)
		if (mapping[i].count && mapping[i].at == at)
			return --mapping[i].count == 0;
	return -1;
}

int __wrap_munmap(void *at, size_t bytes)
{
	const uint64_t window = 1ull << 30;	/* of peer.c */
	int last;

	pthread_mutex_lock(&mappings);
	last = mapping_drop(at);
	pthread_mutex_unlock(&mappings);
	if (last == 0 || (last < 0 && bytes >= window && bytes % window == 0))
		return 0;
	return __real_munmap(at, bytes);
}
