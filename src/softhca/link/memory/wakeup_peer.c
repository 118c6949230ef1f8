/* wakeup_peer.c - sending wake-ups to other processes. */
#include "link/memory/wakeup_peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/segment.h"
#include "link/memory/peer.h"
#include "object/wakeup.h"

enum { CACHE_LINES = 64 };

/*
 * A descriptor number from a peer may name any file, even one whose file system
 * blocks every access.  Reading the link's text does not access the file.
 */
static bool is_pipe(const char *path, uint64_t ino)
{
	char want[40], text[40];
	ssize_t n = readlink(path, text, sizeof(text));

	return n == snprintf(want, sizeof(want), "pipe:[%llu]", (unsigned long long)ino) &&
	       memcmp(text, want, (size_t)n) == 0;
}

/*
 * The O_PATH descriptor pins the file, so that what is opened is what was
 * checked.  O_RDWR: no SIGPIPE, and no waiting for a reader.
 */
static int open_pipe(pid_t pid, int fd, uint64_t ino)
{
	char path[64];
	struct stat st;
	int pin, got;

	if (fd < 0 || !ino)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	if (!is_pipe(path, ino))
		return -EPERM;
	pin = open(path, O_PATH | O_CLOEXEC);
	if (pin < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pin);
	got = -EPERM;
	if (is_pipe(path, ino) && fstat(pin, &st) == 0 && st.st_uid == geteuid()) {
		got = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (got < 0)
			got = -errno;
	}
	close(pin);
	return got;
}

void hca_wakeup_cache_drop(struct hca_wakeup_cache *c)
{
	uint32_t i;

	for (i = 0; i < c->count; i++)
		close(c->line[i].fd);
	free(c->line);
	memset(c, 0, sizeof(*c));
}

/* This process's descriptor of the peer's wake-up; cached, in place of an older one if full. */
static int find(struct hca_peer *p, uint64_t ino, int their_fd)
{
	struct hca_wakeup_cache *c = &p->wakeups;
	uint32_t i;
	int fd;

	for (i = 0; i < c->count; i++)
		if (c->line[i].ino == ino)
			return c->line[i].fd;
	if (!c->line)
		c->line = calloc(CACHE_LINES, sizeof(*c->line));
	if (!c->line)
		return -ENOMEM;
	fd = open_pipe(p->pid, their_fd, ino);
	if (fd == -EMFILE && c->count) {
		/* No descriptor is left: give up a cached one. */
		close(c->line[--c->count].fd);
		c->next = 0;
		fd = open_pipe(p->pid, their_fd, ino);
	}
	if (fd < 0)
		return fd;
	if (c->count < CACHE_LINES) {
		i = c->count++;
	} else {
		i = c->next++ % CACHE_LINES;
		close(c->line[i].fd);
	}
	c->line[i].ino = ino;
	c->line[i].fd = fd;
	return fd;
}

int hca_wakeup_send_peer(struct hca_peer *p, uint32_t wakeup)
{
	const struct hca_shm_wakeup *b;
	int err = errno, fd;
	uint64_t ino;

	if (wakeup - 1 >= HCA_WAKEUPS_MAX)
		return -EINVAL;
	b = &p->shm->wakeup[wakeup - 1];
	ino = atomic_load(&b->ino);
	hca_lock(&p->wakeup_lock);
	fd = find(p, ino, atomic_load(&b->fd));
	if (fd >= 0)
		fd = hca_wakeup_write(fd);
	hca_unlock(&p->wakeup_lock);
	errno = err;
	return fd;
}

/* ---- All members of the fabric ------------------------------------------- */

#define HEAD_BYTES offsetof(struct hca_shm_process, taken)

static void wake_slot(struct hca_shm_fabric *shm, const struct hca_shm_slot *s, uint32_t adapter)
{
	int segment = hca_segment_open(s->pid, s->process_fd, HCA_PROCESS_BYTES), fd;
	struct hca_shm_process *p;
	uint32_t i;

	if (segment < 0)
		return;
	p = hca_segment_map(segment, 0, HEAD_BYTES);
	close(segment);
	if (!p)
		return;
	if (p->magic != HCA_PROCESS_MAGIC || p->abi != HCA_ABI || p->nonce != shm->nonce)
		goto out;
	atomic_fetch_add(&p->attention, 1);
	for (i = 0; i < HCA_WAKEUPS_MAX; i++) {
		uint64_t ino = atomic_load(&p->wakeup[i].ino);

		if (!ino || atomic_load(&p->wakeup[i].adapter) != adapter)
			continue;
		fd = open_pipe(s->pid, atomic_load(&p->wakeup[i].fd), ino);
		if (fd < 0)
			continue;
		hca_wakeup_write(fd);
		close(fd);
	}
out:
	munmap(p, HEAD_BYTES);
}

void hca_wakeup_send_adapter(struct hca_shm_fabric *shm, uint32_t node, uint32_t hca)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (atomic_load(&shm->slot[i].phase) == HCA_PRESENT)
			wake_slot(shm, &shm->slot[i], hca_wakeup_adapter(node, hca));
}
