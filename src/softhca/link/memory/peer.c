/* peer.c - see peer.h. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include "softhca/link/memory/state.h"
#include "softhca/link/memory/numbers.h"
#include "util/clock.h"
#include "softhca/link/memory/mr_table.h"
#include "softhca/link/memory/peer.h"
#include "softhca/object/qp.h"
#include "softhca/base/proc.h"
#include "softhca/pages/landing.h"
#include "softhca/base/segment.h"
#include "softhca/base/spare.h"
#include "softhca/link/memory/ask.h"

enum { PAUSE_NS = 50000 };	/* between checks of an access section */

struct hca_view {
	struct hca_view *next;
	uint64_t start, bytes;
	unsigned char *base;
};

/* ---- Coming and going ---------------------------------------------------- */

static void peer_free(struct hca_peer *p)
{
	struct hca_view *w;

	while ((w = p->windows)) {
		p->windows = w->next;
		munmap(w->base, w->bytes);
		free(w);
	}
	if (p->shm && p->shm != p->fabric->self)
		munmap(p->shm, sizeof(*p->shm) + p->heap_bytes);
	if (p->table != p->fabric->table)
		hca_table_close(p->table);
	hca_wakeup_cache_drop(&p->wakeups);
	if (p->memory_fd >= 0)
		close(p->memory_fd);
	if (p->watch >= 0)
		close(p->watch);
	free(p);
}

/* A member may pass off this process as itself, so that it writes to its own memory. */
static bool is_own(const struct hca_fabric *f, int fd)
{
	struct stat own, other;

	return fstat(f->self_fd, &own) || fstat(fd, &other) ||
	       (own.st_ino == other.st_ino && own.st_dev == other.st_dev);
}

/* The size of the peer's heap, read once: the peer may change it.  0: implausible. */
static uint64_t heap_bytes_of(int fd)
{
	uint64_t bytes;

	if (pread(fd, &bytes, sizeof(bytes), offsetof(struct hca_shm_process, heap_bytes)) !=
	    sizeof(bytes))
		return 0;
	return bytes > HCA_HEAP_BYTES || bytes % HCA_PAGE ? 0 : bytes;
}

/* Map the peer's process segment; the descriptor is closed. */
static int map_process(struct hca_peer *p, int fd)
{
	if (is_own(p->fabric, fd)) {
		close(fd);
		return -EPROTO;
	}
	p->heap_bytes = heap_bytes_of(fd);
	if (p->heap_bytes)
		p->shm = hca_segment_map(fd, 0, sizeof(*p->shm) + p->heap_bytes);
	close(fd);
	if (!p->heap_bytes)
		return -EPROTO;
	if (!p->shm)
		return -ENOMEM;
	if (p->shm->magic != HCA_PROCESS_MAGIC || p->shm->abi != HCA_ABI ||
	    p->shm->nonce != p->fabric->link_state->nonce || p->shm->generation != p->generation)
		return -EPROTO;
	return 0;
}

/* Map through /proc.  The table first: only the table shows that the process is the right one. */
static int map_near(struct hca_peer *p, const struct hca_shm_slot *s)
{
	int rc = hca_table_open(p->fabric, p->slot, s, &p->table), fd;

	if (rc)
		return rc;
	p->watch = hca_process_watch(p->pid, p->start_time);
	fd = hca_segment_open(p->pid, s->process_fd, HCA_PROCESS_BYTES);
	return fd < 0 ? fd : map_process(p, fd);
}

/* Check a descriptor that is to be polled: only a pidfd never blocks a reader of its state. */
static int take_pidfd(int fd)
{
	char path[40], text[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (hca_proc_link(path, text, sizeof(text) - 1) > 0 && strstr(text, "pidfd"))
		return fd;
	close(fd);
	return -1;
}

static int ask_for_segments(struct hca_peer *p, int fd[HCA_ANSWER_MAX])
{
	return hca_ask_slot(p->fabric->link_state, p->slot, &p->address, HCA_ASK_SEGMENTS, 0, fd);
}

/* Map by asking the peer. */
static int map_far(struct hca_peer *p, const struct hca_shm_slot *s)
{
	int fd[HCA_ANSWER_MAX], count = ask_for_segments(p, fd), rc = -EPROTO;

	if (count < 0)
		return count;
	p->is_far = true;
	atomic_store(&p->bounces, true);
	if (count == HCA_ANSWER_MAX)
		p->watch = take_pidfd(fd[--count]);
	if (count == 3) {
		p->table = hca_table_take(p->fabric, p->slot, s, fd[1]);
		if (p->table && !hca_segment_check(fd[0], HCA_PROCESS_BYTES, 0))
			rc = map_process(p, fcntl(fd[0], F_DUPFD_CLOEXEC, 0));
		if (!rc && !hca_segment_check(fd[2], p->memory_bytes, 0)) {
			p->memory_fd = fd[2];
			count--;
		}
	}
	while (count)
		close(fd[--count]);
	return rc;
}

/* Undo a map that failed half-way. */
static void unmap(struct hca_peer *p)
{
	if (p->shm)
		munmap(p->shm, sizeof(*p->shm) + p->heap_bytes);
	hca_table_close(p->table);
	if (p->watch >= 0)
		close(p->watch);
	p->shm = NULL;
	p->table = NULL;
	p->watch = -1;
}

/* Report once: a message is tried again and again. */
static void say_why(const struct hca_peer *p, int near, int far)
{
	static _Atomic bool said;
	const struct hca_fabric *f = p->fabric;
	char why[512];

	if (!hca_slot_alive(&f->link_state->me, f->shm, p->slot) || atomic_exchange(&said, true))
		return;
	hca_unreachable(why, sizeof(why), f->name, p->pid, near, far);
	hca_say("%s", why);
}

/* No descriptor is left, and none is kept to watch the peer: its start time is looked up instead. */
static int map_by_spares(struct hca_peer *p, const struct hca_shm_slot *s)
{
	int rc;

	unmap(p);
	hca_spare_lend();
	rc = map_near(p, s);
	if (p->watch >= 0)
		close(p->watch);
	p->watch = -1;
	hca_spare_return();
	return rc;
}

static int map_segments(struct hca_peer *p, const struct hca_shm_slot *s)
{
	struct hca_fabric *f = p->fabric;
	int near = -EXDEV, far;

	if (p->is_self) {
		p->shm = f->self;
		p->heap_bytes = f->self_bytes - sizeof(*p->shm);
		p->table = f->table;
		return 0;
	}
	if (hca_is_near(&f->link_state->me, s->pid_ns))
		near = map_near(p, s);
	if (near == -EMFILE)
		near = map_by_spares(p, s);
	if (!near)
		return 0;
	unmap(p);
	far = map_far(p, s);
	/* A file that is no segment of this fabric is not the surroundings' fault. */
	if (far && (near == -EMFILE || near == -ENFILE || ((near == -EACCES || near == -EXDEV) && far != -EPROTO)))
		say_why(p, near, p->address.bytes || !s->address ? far : -EXDEV);
	return far;
}

/* Words of one member, if the generation is still the same after an acquire fence. */
static void copy_slot(struct hca_shm_slot *to, const struct hca_shm_slot *from)
{
	hca_put(to->generation, hca_get(from->generation));
	hca_put(to->pid, hca_get(from->pid));
	hca_put(to->start_time, hca_get(from->start_time));
	hca_put(to->pid_ns, hca_get(from->pid_ns));
	hca_put(to->net_ns, hca_get(from->net_ns));
	hca_put(to->address, hca_get(from->address));
	hca_put(to->process_fd, hca_get(from->process_fd));
	hca_put(to->table_fd, hca_get(from->table_fd));
	hca_put(to->memory_fd, hca_get(from->memory_fd));
	hca_put(to->memory_bits, hca_get(from->memory_bits));
}

static struct hca_peer *peer_new(struct hca_fabric *f, uint32_t slot)
{
	struct hca_shm_slot *s = &f->shm->slot[slot], copy;
	struct hca_peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fabric = f;
	p->slot = slot;
	p->watch = p->memory_fd = -1;
	p->generation = atomic_load(&s->generation);
	if (atomic_load(&s->phase) != HCA_PRESENT)
		goto fail;
	copy_slot(&copy, s);
	p->pid = copy.pid;
	p->start_time = copy.start_time;
	p->memory_bytes = 1ull << copy.memory_bits % 64;
	hca_address_of_slot(&f->link_state->me, f->shm, slot, &p->address);
	if (p->pid <= 0 || atomic_load(&s->generation) != p->generation)
		goto fail;
	p->is_self = slot == f->slot;
	if (map_segments(p, &copy))
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
	p = f->link_state->peer[slot];
	/* Queue pairs of a former holder of the slot keep their own reference. */
	if (!p || p->generation != atomic_load(&f->shm->slot[slot].generation)) {
		p = peer_new(f, slot);
		if (p)
			f->link_state->peer[slot] = p;
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
		if (f->link_state->peer[p->slot] == p)
			f->link_state->peer[p->slot] = NULL;
		peer_free(p);
	}
	pthread_mutex_unlock(&f->slow);
}

void hca_peers_forget(struct hca_fabric *f)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (f->link_state->peer[i]) {
			peer_free(f->link_state->peer[i]);
			f->link_state->peer[i] = NULL;
		}
}

static bool is_alive(const struct hca_peer *p)
{
	return p->is_far && p->watch < 0 ? hca_address_lives(&p->address) :
	       hca_process_alive(p->pid, p->start_time, p->watch);
}

enum hca_fate hca_peer_fate(const struct hca_peer *p)
{
	const struct hca_shm_slot *s = &p->fabric->shm->slot[p->slot];

	if (atomic_load(&s->generation) != p->generation || atomic_load(&s->phase) == HCA_LEFT)
		return HCA_FATE_LEFT;
	if (p->is_self || is_alive(p))
		return HCA_FATE_ALIVE;
	/* The process may have left between the two checks. */
	return atomic_load(&s->phase) == HCA_PRESENT ? HCA_FATE_DEAD : HCA_FATE_LEFT;
}

void hca_peers_look(struct hca_fabric *f)
{
	uint32_t i;

	pthread_mutex_lock(&f->slow);
	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (f->link_state->peer[i])
			f->link_state->peer[i]->fate = hca_peer_fate(f->link_state->peer[i]);
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
	return hca_slot_alive(&f->link_state->me, f->shm, slot) ? HCA_FATE_ALIVE : HCA_FATE_DEAD;
}

enum hca_fate hca_claim_fate(struct hca_fabric *f, uint32_t claim)
{
	uint32_t slot = claim % HCA_PROCS_MAX;

	if (claim != hca_shm_claim(slot, atomic_load(&f->shm->slot[slot].generation)))
		return HCA_FATE_LEFT;
	return hca_slot_fate(f, slot);
}

/* ---- Its memory ---------------------------------------------------------- */

/* Windows are large and aligned, so that few cover all buffers: address space is cheap. */
#define WINDOW_BYTES (1ull << 30)
/* Limits per peer; the rest is not mapped. */
#define WINDOWS_MAX 1024
#define WINDOWS_BYTES (1ull << 43)

/* The memory is opened later than the rest: /proc may be closed by now, after setuid. */
static int open_memory(struct hca_peer *p)
{
	int fd[HCA_ANSWER_MAX], count, memory = -EPERM;

	if (!p->is_far)
		memory = hca_segment_open(p->pid, p->fabric->shm->slot[p->slot].memory_fd,
					  p->memory_bytes);
	if (memory >= 0)
		return memory;
	count = ask_for_segments(p, fd);
	if (count >= 3 && !hca_segment_check(fd[2], p->memory_bytes, 0))
		memory = fcntl(fd[2], F_DUPFD_CLOEXEC, 0);
	while (count > 0)
		close(fd[--count]);
	return memory;
}

static unsigned char *map_locked(struct hca_peer *p, uint64_t addr, uint64_t bytes)
{
	struct hca_view *w;
	uint64_t end;

	for (w = p->windows; w; w = w->next)
		if (addr >= w->start && addr - w->start <= w->bytes &&
		    bytes <= w->bytes - (addr - w->start))
			return w->base + (addr - w->start);
	if (p->memory_fd < 0)
		p->memory_fd = open_memory(p);
	w = p->memory_fd < 0 ? NULL : calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	end = hca_align_up(addr + bytes, WINDOW_BYTES);
	w->start = hca_align_down(addr, WINDOW_BYTES);
	w->bytes = end - w->start;
	/* A peer that declares memory everywhere gets no more address space. */
	w->base = p->window_count < WINDOWS_MAX && w->bytes <= WINDOWS_BYTES - p->window_bytes ?
		  hca_segment_map(p->memory_fd, w->start, w->bytes) : NULL;
	if (!w->base) {
		free(w);
		return NULL;
	}
	p->window_count++;
	p->window_bytes += w->bytes;
	w->next = p->windows;
	p->windows = w;
	return w->base + (addr - w->start);
}

unsigned char *hca_peer_map(struct hca_peer *p, uint64_t addr, uint64_t bytes)
{
	unsigned char *at;

	if (p->memory_bytes < WINDOW_BYTES || addr >= p->memory_bytes - WINDOW_BYTES ||
	    bytes > p->memory_bytes - WINDOW_BYTES - addr)
		return NULL;
	pthread_mutex_lock(&p->fabric->slow);
	at = map_locked(p, addr, bytes);
	pthread_mutex_unlock(&p->fabric->slow);
	return at;
}

/* ---- Waiting until no peer uses withdrawn memory ----------------------- */

static int peer_membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

int hca_quiesce_prepare(void)
{
	return peer_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) ? -errno : 0;
}

/*
 * A process with several threads waits here for a grace period of RCU (10 to 20 ms), a process with
 * one thread does not: so the call comes at load, before the program starts threads.
 */
__attribute__((constructor)) static void prepare_early(void)
{
	hca_quiesce_prepare();
}

/* Every earlier store of another core becomes visible. */
static void fence_all(const struct hca_fabric *f)
{
	/* Without membarrier: far longer than any store stays in a buffer. */
	if (atomic_load(&f->shm->unfenced) || peer_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		rg_sleep_ns(1000000);
}

/* Wait until a queue pair leaves its access section; false: it is still in the same one. */
static bool wait_outside(const struct hca_shm_qp *qp, const struct hca_peer *peer,
			 uint32_t seen, uint64_t deadline)
{
	while ((seen & 1) && (!peer || hca_peer_fate(peer) == HCA_FATE_ALIVE) &&
	       atomic_load_explicit(&qp->access_section, memory_order_acquire) == seen) {
		if (rg_reached(deadline, rg_now_ns()))
			return false;
		rg_sleep_ns(PAUSE_NS);
	}
	return true;
}

/* Wait for a peer's queue pair; a wait that timed out for a section is not repeated. */
static bool wait_for_peers(struct hca_peer *peer, uint32_t index, uint64_t deadline)
{
	const struct hca_shm_qp *qp = &peer->shm->qp[index];
	uint32_t seen = atomic_load_explicit(&qp->access_section, memory_order_acquire);
	_Atomic uint64_t *given_up = &peer->given_up[index % HCA_GIVEN_UP];
	const uint64_t this = (uint64_t)index << 32 | seen;

	if (!(seen & 1))
		return true;
	if (atomic_load(given_up) == this)
		return false;
	if (wait_outside(qp, peer, seen, deadline))
		return true;
	atomic_store(given_up, this);
	return false;
}

static bool wait_for_number(struct hca_fabric *f, uint32_t qpn, uint64_t deadline)
{
	uint32_t slot, index;
	struct hca_peer *peer;
	bool outside;

	if (!qpn || hca_number_find(f, qpn, &slot, &index) || hca_peer_get(f, slot, &peer))
		return true;
	outside = wait_for_peers(peer, index, deadline);
	hca_peer_put(peer);
	return outside;
}

/* A queue pair is not freed while a thread that found it here holds `slow`. */
static uint32_t peer_of(struct hca_fabric *f, uint32_t index)
{
	struct hca_qp *qp;
	uint32_t qpn;

	pthread_mutex_lock(&f->slow);
	qp = atomic_load(&f->qp[index]);
	qpn = qp ? qp->conn.qpn : 0;
	pthread_mutex_unlock(&f->slow);
	return qpn;
}

/*
 * A UD queue pair accepts any sender: there a claim on a receive has the role of the
 * access section between connected queue pairs.
 */
static void wait_for_claimers(struct hca_fabric *f, uint32_t index, uint64_t deadline)
{
	struct hca_shared_view view = { NULL };
	struct hca_qp *qp;

	pthread_mutex_lock(&f->slow);
	qp = atomic_load(&f->qp[index]);
	if (qp && qp->datagram)
		view = qp->shared->view;
	pthread_mutex_unlock(&f->slow);
	if (view.shm)
		hca_shared_quiesce(f, &view, deadline);
}

bool hca_peer_in_access_section(struct hca_qp *qp)
{
	uint32_t slot, index;
	struct hca_peer *peer;
	bool inside;

	if (!qp->conn.qpn || hca_number_find(qp->fabric, qp->conn.qpn, &slot, &index) ||
	    hca_peer_get(qp->fabric, slot, &peer))
		return false;
	fence_all(qp->fabric);
	inside = (atomic_load_explicit(&peer->shm->qp[index].access_section, memory_order_acquire) &
		  1) &&
		 hca_peer_fate(peer) == HCA_FATE_ALIVE;
	hca_peer_put(peer);
	return inside;
}

bool hca_quiesce(struct hca_fabric *f, struct hca_qp *only)
{
	uint64_t deadline = rg_now_ns() + 1000000000u;
	uint32_t i, top = atomic_load(&f->qp_top);
	bool outside = true;

	hca_landings_wait();
	fence_all(f);
	if (only) {
		outside = wait_for_number(f, only->conn.qpn, deadline);
		wait_for_claimers(f, only->index, deadline);
		return outside && rg_now_ns() < deadline;
	}
	for (i = 0; i < top; i++) {
		outside &= wait_for_number(f, peer_of(f, i), deadline);
		wait_for_claimers(f, i, deadline);
		wait_outside(&f->self->qp[i], NULL, atomic_load(&f->self->qp[i].access_section),
			     deadline);
	}
	return outside && rg_now_ns() < deadline;
}
