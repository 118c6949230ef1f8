/*
 * members.c - both sides of a case (conformance.h) as members of one process, each a thread, for a
 * thread sanitizer: what members publish to each other it sees as it sees what threads publish.
 *
 * Each member has its own slot, table, process segment and engine.  A sanitizer knows words by their
 * addresses, so a segment has one address here: the mapping of a peer is the owner's own.  The link
 * editor puts the functions below in place of the library's (--wrap).
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "softhca/api/fabric.h"
#include "softhca/base/segment.h"
#include "softhca/link/memory/join.h"
#include "softhca/pages/memory.h"

void *__real_hca_segment_map(int fd, uint64_t offset, uint64_t bytes);
const void *__real_hca_segment_view(int fd, uint64_t bytes);
int __real_hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards);
int __real_munmap(void *at, size_t bytes);
int __real_hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node);
void __real_exit(int code) __attribute__((noreturn));

void *__wrap_hca_segment_map(int fd, uint64_t offset, uint64_t bytes);
const void *__wrap_hca_segment_view(int fd, uint64_t bytes);
int __wrap_hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node);
void __wrap_exit(int code) __attribute__((noreturn));

/* ---- One address for each segment ---------------------------------------- */

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
		if (++i == sizeof(mapping) / sizeof(*mapping))
			fail("too many mappings");
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

/* ---- The sides ----------------------------------------------------------- */

static _Atomic unsigned joined;
static _Thread_local bool is_side;

int __wrap_hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node)
{
	int rc = __real_hca_join(f, copy, node);

	atomic_fetch_add(&joined, 1);
	return rc;
}

/* A side that fails or skips ends the process, while the other one runs. */
void __wrap_exit(int code)
{
	if (is_side)
		_exit(code);
	__real_exit(code);
}

struct seat {
	void (*run)(int me, int sock, const void *arg);
	const void *arg;
	int me, sock;
};

static void *sit(void *arg)
{
	const struct seat *seat = arg;

	is_side = true;
	hca_fabric_member = (unsigned)seat->me;
	seat->run(seat->me, seat->sock, seat->arg);
	return NULL;
}

bool two_sides(void (*run)(int me, int sock, const void *arg), const void *arg)
{
	struct seat seat[2];
	pthread_t thread[2];
	int pair[2], me;

	require_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (me = 0; me < 2; me++) {
		seat[me] = (struct seat){ run, arg, me, pair[me] };
		require_equal(pthread_create(&thread[me], NULL, sit, &seat[me]), 0);
		/* Side 0 has read its environment, which side 1 changes. */
		while (!me && !atomic_load(&joined))
			usleep(1000);
	}
	for (me = 0; me < 2; me++)
		pthread_join(thread[me], NULL);
	close(pair[0]);
	close(pair[1]);
	return true;
}

void side_dies(struct side *s, int who)
{
	(void)who;
	if (s->me == 0)
		skip("a side dies: it takes the other one with it");
	pause();
}

void side_over(void)
{
	pthread_exit(NULL);
}

int case_start(const struct test *t, int log, pid_t pid[2])
{
	pid[0] = case_fork(log);
	if (pid[0])
		return pid[0] > 0;
	two_sides(case_side, t);
	exit(0);
}
