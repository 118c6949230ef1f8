/* shared.c - kinds of memory.h: System V and POSIX shared memory, mapped files. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

/* ---- System V -------------------------------------------------------------------- */

/* Attach a new segment, whose name is gone at once: it lives while it is attached. */
static unsigned char *attach_new(struct life *l, void *at, int flags)
{
	int id = shmget(IPC_PRIVATE, l->limit, IPC_CREAT | 0600);
	void *p;

	if (id < 0)
		return NULL;
	p = shmat(id, at, flags);
	if (p == (void *)-1)
		p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	l->fd = id;
	return p == (void *)-1 ? NULL : p;
}

static const char *begin_sysv(struct life *l)
{
	unsigned char *p = attach_new(l, NULL, 0);

	if (!p)
		return life_failed("shmget, shmat");
	life_is_zero(l, p, l->limit);
	return NULL;
}

static void end_sysv(struct life *l)
{
	shmdt(l->mem);
}

/* Another segment at the same address; or the same one, elsewhere meanwhile, which keeps it. */
static const char *change_sysv(struct life *l, size_t need)
{
	unsigned char *p, *other;

	(void)need;
	if (life_draw(l, 2)) {
		shmdt(l->mem);
		p = attach_new(l, l->mem, 0);
		if (!p)
			return life_failed("shmat");
		life_is_zero(l, p, l->limit);
		return NULL;
	}
	other = shmat(l->fd, NULL, 0);
	if (other == (void *)-1)
		return life_failed("shmat");
	shmdt(l->mem);
	p = shmat(l->fd, l->mem, 0);
	if (p == (void *)-1)
		p = other;
	else
		shmdt(other);
	life_is_kept(l, p, l->limit);
	return NULL;
}

static const char *change_sysv_remap(struct life *l, size_t need)
{
	unsigned char *p = attach_new(l, l->mem, SHM_REMAP);

	(void)need;
	if (!p)
		return life_failed("shmat with SHM_REMAP");
	life_is_zero(l, p, l->limit);
	return NULL;
}

/* ---- An object that is mapped: POSIX shared memory, an unnamed one, a file ------------ */

static int posix_object(void)
{
	static atomic_int count;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/rg-lifecycle-%d-%d", (int)getpid(), atomic_fetch_add(&count, 1));
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	shm_unlink(name);
	return fd;
}

static int file_object(void)
{
	const char *place = getenv("TMPDIR");
	char name[300];
	int fd;

	snprintf(name, sizeof(name), "%s/rg-lifecycle-XXXXXX", place ? place : "/tmp");
	fd = mkstemp(name);
	if (fd >= 0)
		unlink(name);
	return fd;
}

static const char *map_object(struct life *l, void *at, int protection, int flags)
{
	void *p = mmap(at, l->limit, protection, flags | (at ? MAP_FIXED_NOREPLACE : 0), l->fd, 0);

	if (p == MAP_FAILED && at)
		p = mmap(NULL, l->limit, protection, flags, l->fd, 0);
	if (p == MAP_FAILED)
		return life_failed("mmap of a file");
	l->mem = p;
	l->bytes = l->limit;
	return NULL;
}

static const char *begin_object(struct life *l, int fd, int protection, int flags)
{
	const char *failed;

	l->fd = fd;
	if (fd < 0)
		return life_failed("open");
	if (ftruncate(fd, (off_t)l->limit))
		return life_failed("ftruncate");
	failed = map_object(l, NULL, protection, flags);
	memset(l->shadow, 0, l->limit);
	return failed;
}

static const char *begin_posix(struct life *l)
{
	return begin_object(l, posix_object(), PROT_READ | PROT_WRITE, MAP_SHARED);
}

static const char *begin_memfd(struct life *l)
{
	return begin_object(l, memfd_create("lifecycle", 0), PROT_READ | PROT_WRITE, MAP_SHARED);
}

static const char *begin_file(struct life *l)
{
	return begin_object(l, file_object(), PROT_READ | PROT_WRITE, MAP_SHARED);
}

static const char *begin_private_file(struct life *l)
{
	return begin_object(l, file_object(), PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static const char *begin_readonly_file(struct life *l)
{
	return begin_object(l, file_object(), PROT_READ, MAP_SHARED);
}

static void end_object(struct life *l)
{
	munmap(l->mem, l->limit);
	close(l->fd);
}

/* Data received through the mapping is in the object, for its readers. */
static bool object_has(const struct life *l, const unsigned char *expected)
{
	static _Thread_local unsigned char got[65536];

	for (size_t at = 0; at < l->bytes; at += sizeof(got)) {
		size_t n = l->bytes - at < sizeof(got) ? l->bytes - at : sizeof(got);

		if (pread(l->fd, got, n, (off_t)at) != (ssize_t)n || memcmp(got, expected + at, n))
			return false;
	}
	return true;
}

/* Unmapped and mapped: the same object, or one that is new and empty, at the same place. */
static const char *change_posix(struct life *l, size_t need)
{
	void *at = l->mem;

	(void)need;
	if (!object_has(l, l->shadow))
		return "the shared memory does not hold what the mapping had";
	munmap(l->mem, l->limit);
	if (life_draw(l, 2))
		return map_object(l, at, PROT_READ | PROT_WRITE, MAP_SHARED);
	close(l->fd);
	l->fd = posix_object();
	if (l->fd < 0 || ftruncate(l->fd, (off_t)l->limit))
		return life_failed("shm_open, ftruncate");
	memset(l->shadow, 0, l->limit);
	return map_object(l, at, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static const char *change_truncate(struct life *l, size_t need)
{
	size_t left = life_draw(l, 2) ? 0 : life_draw(l, l->limit / PAGE) * PAGE;
	char path[64];

	(void)need;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
	if (life_draw(l, 2) ? ftruncate(l->fd, (off_t)left) : truncate(path, (off_t)left))
		return life_failed("truncate");
	if (ftruncate(l->fd, (off_t)l->limit))
		return life_failed("ftruncate");
	memset(l->shadow + left, 0, l->limit - left);
	return NULL;
}

static const char *change_punch(struct life *l, size_t need)
{
	size_t at, bytes;

	(void)need;
	life_pages(l, PAGE, &at, &bytes);
	if (fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes))
		return life_failed("fallocate");
	memset(l->shadow + at, 0, bytes);
	return NULL;
}

/* Another process, which no library here can see: that this goes wrong is documented. */
static const char *change_foreign(struct life *l, size_t need)
{
	int status = 0;
	pid_t child = fork();

	(void)need;
	if (!child)
		_exit(ftruncate(l->fd, 0) || ftruncate(l->fd, (off_t)l->limit));
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return "a child that truncates has failed";
	memset(l->shadow, 0, l->limit);
	return NULL;
}

/* The pages in another order: the address of each half shows the other, or itself again. */
static const char *change_remap_pages(struct life *l, size_t need)
{
	size_t half = l->limit / 2 / PAGE, swapped = l->turn++ % 2 ? 0 : half;
	unsigned char *low = l->mem, *high = l->mem + half * PAGE;

	(void)need;
	if (remap_file_pages(low, half * PAGE, 0, swapped, 0) ||
	    remap_file_pages(high, half * PAGE, 0, half - swapped, 0))
		return life_failed("remap_file_pages");
	for (size_t i = 0; i < half * PAGE; i++) {
		unsigned char byte = l->shadow[i];

		l->shadow[i] = l->shadow[half * PAGE + i];
		l->shadow[half * PAGE + i] = byte;
	}
	return NULL;
}

static const char *change_file(struct life *l, size_t need)
{
	void *at = l->mem;

	(void)need;
	if (!object_has(l, l->shadow))
		return "the file does not hold what the mapping had";
	munmap(l->mem, l->limit);
	return map_object(l, at, PROT_READ | PROT_WRITE, MAP_SHARED);
}

/* Writes to a private mapping go with it: then the file's own data is there. */
static const char *change_private_file(struct life *l, size_t need)
{
	void *at = l->mem;

	(void)need;
	munmap(l->mem, l->limit);
	life_pattern(l->shadow, l->limit, l->random);
	if (pwrite(l->fd, l->shadow, l->limit, 0) != (ssize_t)l->limit)
		return life_failed("pwrite");
	return map_object(l, at, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static const char *change_readonly_file(struct life *l, size_t need)
{
	void *at = l->mem;

	(void)need;
	munmap(l->mem, l->limit);
	return map_object(l, at, PROT_READ, MAP_SHARED);
}

static void store_file(struct life *l, size_t at, size_t bytes)
{
	if (pwrite(l->fd, l->shadow + at, bytes, (off_t)at) != (ssize_t)bytes)
		perror("pwrite");
}

/* Anonymous memory and a file take turns at one address, none is unmapped before. */
static const char *change_file_fixed(struct life *l, size_t need)
{
	int flags = MAP_PRIVATE | MAP_FIXED | (l->turn++ % 2 ? MAP_ANONYMOUS : 0);

	(void)need;
	if (mmap(l->mem, l->limit, PROT_READ | PROT_WRITE, flags,
		 flags & MAP_ANONYMOUS ? -1 : l->fd, 0) == MAP_FAILED)
		return life_failed("mmap with MAP_FIXED");
	memset(l->shadow, 0, l->limit);
	return NULL;
}

const struct kind shared_kinds[] = {
	{"sysv", begin_sysv, change_sysv, end_sysv, NULL, 0},
	{"sysv-remap", begin_sysv, change_sysv_remap, end_sysv, NULL, 0},
	{"posix", begin_posix, change_posix, end_object, NULL, 0},
	{"truncate", begin_memfd, change_truncate, end_object, NULL, 0},
	{"punch", begin_memfd, change_punch, end_object, NULL, 0},
	{"remap-pages", begin_memfd, change_remap_pages, end_object, NULL, 0},
	{"file", begin_file, change_file, end_object, NULL, 0},
	{"file-private", begin_private_file, change_private_file, end_object, NULL, 0},
	{"file-readonly", begin_readonly_file, change_readonly_file, end_object, store_file,
	 KIND_SEND_ONLY},
	{"file-fixed", begin_private_file, change_file_fixed, end_object, NULL, 0},
	{"foreign", begin_memfd, change_foreign, end_object, NULL, KIND_SHOWN},
	{NULL, NULL, NULL, NULL, NULL, 0},
};
