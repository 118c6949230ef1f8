/* wakeup_peer.c - sending wake-ups to other processes. */
#include "softhca/link/memory/wakeup_peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "softhca/base/spare.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/wakeup.h"
#include "softhca/link/memory/ask.h"

enum { CACHE_LINES = 64 };

/*
 * A descriptor number from a peer may name any file, even one whose file system
 * blocks every access.  Reading the link's text does not access the file.
 */
static bool is_pipe(const char *path, uint64_t ino)
{
	char want[40], text[40];
	ssize_t n = hca_proc_link(path, text, sizeof(text));

	return n == snprintf(want, sizeof(want), "pipe:[%llu]", (unsigned long long)ino) &&
	       memcmp(text, want, (size_t)n) == 0;
}

/*
 * The O_PATH descriptor pins the file, so that the opened file is the checked one.
 * O_RDWR: no SIGPIPE, and no waiting for a reader.
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
	pin = hca_proc_open(path, O_PATH);
	if (pin < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pin);
	got = -EPERM;
	if (is_pipe(path, ino) && fstat(pin, &st) == 0 && hca_segment_of_user(st.st_uid)) {
		got = hca_proc_reopen(pin, O_RDWR | O_NONBLOCK);
		if (got < 0)
			got = -errno;
	}
	close(pin);
	return got;
}

/* Is a descriptor that its owner has handed over of a kind that object/wakeup.c makes? */
static bool is_wakeup(int fd, uint64_t ino)
{
	struct statx st;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) &&
	       (S_ISFIFO(st.stx_mode) || S_ISSOCK(st.stx_mode)) && st.stx_ino == ino &&
	       (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* An open file of its own, if possible: the owner can change its flags. */
static int take_wakeup(int fd[HCA_ANSWER_MAX], int count, uint64_t ino)
{
	int got = -EPERM;

	if (count == 1 && is_wakeup(fd[0], ino)) {
		got = hca_proc_reopen(fd[0], O_RDWR | O_NONBLOCK);
		if (got < 0)
			return fd[0];
	}
	while (count > 0)
		close(fd[--count]);
	return got;
}

/* The peer's wake-up, through /proc or by asking it. */
static int open_wakeup(struct hca_peer *p, uint32_t index, int their_fd, uint64_t ino)
{
	int got[HCA_ANSWER_MAX], fd = p->is_far ? -EPERM : open_pipe(p->pid, their_fd, ino), count;

	if (fd >= 0 || fd == -EMFILE || !ino)
		return fd;
	count = hca_ask_slot(p->fabric->link_state, p->slot, &p->address, HCA_ASK_WAKEUP, index,
			     got);
	return take_wakeup(got, count, ino);
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
static int wakeup_find(struct hca_peer *p, uint32_t index, uint64_t ino, int their_fd)
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
	fd = open_wakeup(p, index, their_fd, ino);
	if (fd == -EMFILE && c->count) {
		/* No descriptor is left: give up a cached one. */
		close(c->line[--c->count].fd);
		c->next = 0;
		fd = open_wakeup(p, index, their_fd, ino);
	}
	if (fd == -EMFILE) {
		hca_spare_lend();
		fd = open_wakeup(p, index, their_fd, ino);
		hca_spare_return();
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
	fd = wakeup_find(p, wakeup - 1, ino, atomic_load(&b->fd));
	if (fd >= 0)
		fd = hca_wakeup_write(fd);
	hca_unlock(&p->wakeup_lock);
	errno = err;
	return fd;
}

/* ---- All members of the fabric ------------------------------------------- */

#define HEAD_BYTES offsetof(struct hca_shm_process, invalidated)

/* A member as a process sees it that need not be one. */
struct member {
	const struct hca_identity *me;
	const struct hca_shm_slot *s;
	uint64_t nonce;
	struct hca_address address;
	bool is_near;
};

static int wakeup_ask(const struct member *m, enum hca_question question, uint32_t index,
		      int fd[HCA_ANSWER_MAX])
{
	return m->address.bytes ? hca_ask(m->me, &m->address, m->nonce, question, index, fd) : -ENOENT;
}

static int open_process(const struct member *m)
{
	int fd[HCA_ANSWER_MAX], count, process = -EPERM;

	if (m->is_near)
		process = hca_segment_open(m->s->pid, m->s->process_fd, HCA_PROCESS_BYTES);
	if (process >= 0)
		return process;
	count = wakeup_ask(m, HCA_ASK_SEGMENTS, 0, fd);
	if (count > 0 && !hca_segment_check(fd[0], HCA_PROCESS_BYTES, 0))
		process = fcntl(fd[0], F_DUPFD_CLOEXEC, 0);
	while (count > 0)
		close(fd[--count]);
	return process;
}

static void wake(const struct member *m, const struct hca_shm_wakeup *w, uint32_t index)
{
	const uint64_t ino = atomic_load(&w->ino);
	int fd = -EPERM, got[HCA_ANSWER_MAX];

	if (m->is_near)
		fd = open_pipe(m->s->pid, atomic_load(&w->fd), ino);
	if (fd < 0)
		fd = take_wakeup(got, wakeup_ask(m, HCA_ASK_WAKEUP, index, got), ino);
	if (fd < 0)
		return;
	hca_wakeup_write(fd);
	close(fd);
}

static void wake_member(struct hca_shm_fabric *shm, const struct member *m, uint32_t adapter)
{
	int segment = open_process(m);
	struct hca_shm_process *p;
	uint32_t i;

	if (segment < 0)
		return;
	p = hca_segment_map(segment, 0, HEAD_BYTES);
	close(segment);
	if (!p)
		return;
	if (p->magic == HCA_PROCESS_MAGIC && p->abi == HCA_ABI && p->nonce == shm->nonce) {
		atomic_fetch_add(&p->attention, 1);
		for (i = 0; i < HCA_WAKEUPS_MAX; i++)
			if (atomic_load(&p->wakeup[i].ino) &&
			    atomic_load(&p->wakeup[i].adapter) == adapter)
				wake(m, &p->wakeup[i], i);
	}
	munmap(p, HEAD_BYTES);
}

void hca_wakeup_send_adapter(struct hca_shm_fabric *shm, uint32_t node, uint32_t hca)
{
	struct hca_identity me;
	uint32_t i;

	hca_identity_get(&me);
	for (i = 0; i < HCA_PROCS_MAX; i++) {
		struct member m = { .me = &me, .s = &shm->slot[i], .nonce = shm->nonce };

		if (atomic_load(&m.s->phase) != HCA_PRESENT)
			continue;
		m.is_near = hca_is_near(&me, m.s->pid_ns);
		hca_address_of_slot(&me, shm, i, &m.address);
		wake_member(shm, &m, hca_wakeup_adapter(node, hca));
	}
}
