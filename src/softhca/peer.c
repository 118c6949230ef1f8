/* peer.c - another process of the fabric, as this one sees it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include "clock.h"
#include "peer.h"
#include "qp.h"
#include "segment.h"

struct hca_window {
	struct hca_window *next;
	uint64_t start, bytes;
	unsigned char *base;
};

/* ---- Coming and going ---------------------------------------------------- */

static void peer_free(struct hca_peer *p)
{
	struct hca_window *w;

	while ((w = p->windows)) {
		p->windows = w->next;
		munmap(w->base, w->bytes);
		free(w);
	}
	if (p->shm && p->shm != p->fabric->self)
		munmap(p->shm, HCA_PROCESS_BYTES);
	if (p->memory_fd >= 0)
		close(p->memory_fd);
	if (p->watch >= 0)
		close(p->watch);
	free(p);
}

static int map_process(struct hca_peer *p, int their_fd)
{
	int fd;

	if (p->slot == p->fabric->slot) {
		p->shm = p->fabric->self;
		return 0;
	}
	fd = hca_segment_open(p->pid, their_fd, HCA_PROCESS_BYTES);
	if (fd < 0)
		return fd;
	p->shm = hca_segment_map(fd, 0, HCA_PROCESS_BYTES);
	close(fd);
	if (!p->shm)
		return -ENOMEM;
	if (p->shm->magic != HCA_PROCESS_MAGIC || p->shm->abi != HCA_ABI ||
	    p->shm->nonce != p->fabric->nonce || p->shm->generation != p->generation)
		return -EPROTO;
	return 0;
}

static struct hca_peer *peer_new(struct hca_fabric *f, uint32_t slot)
{
	struct hca_shm_slot *s = &f->shm->slot[slot];
	struct hca_peer *p = calloc(1, sizeof(*p));
	int their_fd;

	if (!p)
		return NULL;
	p->fabric = f;
	p->slot = slot;
	p->watch = p->memory_fd = -1;
	p->generation = atomic_load(&s->generation);
	if (atomic_load(&s->phase) != HCA_PRESENT)
		goto fail;
	p->pid = s->pid;
	p->start_time = s->start_time;
	their_fd = s->process_fd;
	atomic_thread_fence(memory_order_acquire);
	if (p->pid <= 0 || atomic_load(&s->generation) != p->generation)
		goto fail;
	p->here = slot == f->slot;
	if (!p->here)
		p->watch = hca_process_watch(p->pid, p->start_time);
	if (map_process(p, their_fd))
		goto fail;
	return p;
fail:
	peer_free(p);
	return NULL;
}

int hca_peer_get(struct hca_fabric *f, uint32_t slot, struct hca_peer **out)
{
	struct hca_peer *p;
	int rc = 0;

	pthread_mutex_lock(&f->slow);
	p = f->peer[slot];
	/* Queue pairs of a former holder of the slot keep their own reference. */
	if (!p || p->generation != atomic_load(&f->shm->slot[slot].generation)) {
		p = peer_new(f, slot);
		if (p)
			f->peer[slot] = p;
		else
			rc = -ENOTCONN;
	}
	if (!rc) {
		p->references++;
		*out = p;
	}
	pthread_mutex_unlock(&f->slow);
	return rc;
}

void hca_peer_put(struct hca_peer *p)
{
	struct hca_fabric *f = p->fabric;

	pthread_mutex_lock(&f->slow);
	if (--p->references == 0) {
		if (f->peer[p->slot] == p)
			f->peer[p->slot] = NULL;
		peer_free(p);
	}
	pthread_mutex_unlock(&f->slow);
}

void hca_peers_forget(struct hca_fabric *f)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (f->peer[i]) {
			peer_free(f->peer[i]);
			f->peer[i] = NULL;
		}
}

enum hca_fate hca_peer_fate(const struct hca_peer *p)
{
	const struct hca_shm_slot *s = &p->fabric->shm->slot[p->slot];

	if (atomic_load(&s->generation) != p->generation || atomic_load(&s->phase) == HCA_LEFT)
		return HCA_FATE_LEFT;
	if (p->here || hca_process_alive(p->pid, p->start_time, p->watch))
		return HCA_FATE_ALIVE;
	/* It may have said goodbye between the two looks. */
	return atomic_load(&s->phase) == HCA_PRESENT ? HCA_FATE_DEAD : HCA_FATE_LEFT;
}

void hca_peers_look(struct hca_fabric *f)
{
	uint32_t i;

	pthread_mutex_lock(&f->slow);
	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (f->peer[i])
			f->peer[i]->fate = hca_peer_fate(f->peer[i]);
	pthread_mutex_unlock(&f->slow);
}

enum hca_fate hca_slot_fate(struct hca_fabric *f, uint32_t slot)
{
	const struct hca_shm_slot *s;

	if (slot >= HCA_PROCS_MAX)
		return HCA_FATE_LEFT;
	s = &f->shm->slot[slot];
	if (atomic_load(&s->phase) != HCA_PRESENT)
		return HCA_FATE_LEFT;
	return hca_process_alive(s->pid, s->start_time, -1) ? HCA_FATE_ALIVE : HCA_FATE_DEAD;
}

/* ---- Its memory ---------------------------------------------------------- */

/* Large and aligned, so that few cover all buffers: address space is cheap. */
#define WINDOW_BYTES (1ull << 30)

static unsigned char *map_locked(struct hca_peer *p, uint64_t addr, uint64_t bytes)
{
	struct hca_window *w;
	uint64_t end;

	for (w = p->windows; w; w = w->next)
		if (addr >= w->start && addr - w->start <= w->bytes &&
		    bytes <= w->bytes - (addr - w->start))
			return w->base + (addr - w->start);
	if (p->memory_fd < 0)
		p->memory_fd = hca_segment_open(p->pid, p->fabric->shm->slot[p->slot].memory_fd,
						HCA_MEMORY_BYTES);
	w = p->memory_fd < 0 ? NULL : calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	end = hca_align_up(addr + bytes, WINDOW_BYTES);
	w->start = hca_align_down(addr, WINDOW_BYTES);
	w->bytes = end - w->start;
	w->base = hca_segment_map(p->memory_fd, w->start, w->bytes);
	if (!w->base) {
		free(w);
		return NULL;
	}
	w->next = p->windows;
	p->windows = w;
	return w->base + (addr - w->start);
}

unsigned char *hca_peer_map(struct hca_peer *p, uint64_t addr, uint64_t bytes)
{
	unsigned char *at;

	if (addr >= HCA_MEMORY_BYTES - WINDOW_BYTES ||
	    bytes > HCA_MEMORY_BYTES - WINDOW_BYTES - addr)
		return NULL;
	pthread_mutex_lock(&p->fabric->slow);
	at = map_locked(p, addr, bytes);
	pthread_mutex_unlock(&p->fabric->slow);
	return at;
}

/* ---- Waiting until nobody uses what was withdrawn ------------------------ */

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

void hca_quiesce_prepare(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

/* Until the queue pair that `qp` is connected to is out of its section. */
static void wait_for_peer_of(struct hca_qp *qp, uint64_t deadline)
{
	const struct timespec pause = { 0, 50000 };
	struct hca_fabric *f = qp->fabric;
	struct hca_shm_qp *theirs;
	uint32_t slot, index, seen;
	struct hca_peer *peer;

	if (!qp->dest_qpn || hca_fabric_find_qpn(f, qp->dest_qpn, &slot, &index) ||
	    hca_peer_get(f, slot, &peer))
		return;
	theirs = &peer->shm->qp[index];
	seen = atomic_load_explicit(&theirs->section, memory_order_acquire);
	while ((seen & 1) && rg_now_ns() < deadline && hca_peer_fate(peer) == HCA_FATE_ALIVE &&
	       atomic_load_explicit(&theirs->section, memory_order_acquire) == seen)
		nanosleep(&pause, NULL);
	hca_peer_put(peer);
}

void hca_quiesce(struct hca_fabric *f, struct hca_qp *only)
{
	const struct timespec pause = { 0, 1000000 };
	uint64_t deadline = rg_now_ns() + 1000000000u;
	uint32_t i, top = atomic_load(&f->qp_top);

	/* Without membarrier: far longer than any store stays in a buffer. */
	if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		nanosleep(&pause, NULL);
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (qp && (!only || qp == only))
			wait_for_peer_of(qp, deadline);
	}
}
