/* bounce.c - see bounce.h. */
#include "softhca/link/memory/bounce.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/clock.h"
#include "softhca/link/memory/state.h"
#include "softhca/link/memory/copy.h"
#include "softhca/object/device.h"
#include "softhca/link/memory/peer.h"
#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "softhca/link/memory/ask.h"

enum {
	PATIENCE_NS = 100000000,	/* timeout without progress of the copy service */
	LOOKS = 200,			/* checks by a claimer before it sleeps */
	NAP_NS = 10000000,		/* a claimer's sleep between checks */
	SERVICE_LOOKS = 50,		/* checks by a copy service after a request */
};

enum state { FREE, CLAIMED, ASKED, SERVED, DONE, LEFT, PROBE };

/* 31..18 count of claims, 17..8 claimer's slot, 7..0 enum state */
static uint32_t bounce_word(uint32_t count, uint32_t slot, enum state state)
{
	return count << 18 | slot << 8 | (uint32_t)state;
}

static enum state bounce_state(uint32_t w)
{
	return (enum state)(w & 0xff);
}

static uint32_t with_state(uint32_t w, enum state state)
{
	return (w & ~0xffu) | (uint32_t)state;
}

static_assert(HCA_PROCS_MAX <= 1024, "a slot has 10 bits");

/* ---- Is it needed? ------------------------------------------------------- */

int hca_copy_method(enum hca_copy_method *method)
{
	static const char *const names[] = { "auto", "kernel", "bounce" };
	const char *text = getenv("SOFTHCA_COPY");
	int i;

	*method = HCA_COPY_AUTO;
	if (!text || !*text)
		return 0;
	for (i = HCA_COPY_AUTO; i <= HCA_COPY_BOUNCE; i++)
		if (strcmp(text, names[i]) == 0) {
			*method = (enum hca_copy_method)i;
			return 0;
		}
	return hca_fail(EINVAL, "SOFTHCA_COPY: '%.40s' (accepted: auto, kernel, bounce)", text);
}

static bool ask_kernel(void)
{
	FILE *scope = fdopen(hca_proc_open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY), "r");
	char from = 1, to;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };
	int value = 0;

	if (scope) {
		if (fscanf(scope, "%d", &value) != 1)
			value = 1;
		fclose(scope);
	}
	return value == 0 && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/* Does the kernel let processes of a user copy from each other?  Tested once. */
static bool kernel_copies(struct hca_fabric *f)
{
	if (!f->link_state->kernel_asked)
		f->link_state->kernel_copies = ask_kernel();
	f->link_state->kernel_asked = true;
	return f->link_state->kernel_copies;
}

static bool wanted(struct hca_fabric *f, const struct hca_mr *mr)
{
	/* Moved memory may have to be moved back. */
	if (f->link_state->copy == HCA_COPY_KERNEL ||
	    (!mr->moved.listed && mr->mapped_end - mr->mapped >= mr->length))
		return false;
	return f->link_state->copy == HCA_COPY_BOUNCE || mr->kind == HCA_MR_DMABUF ||
	       !kernel_copies(f);
}

/* ---- The copy service ---------------------------------------------------- */

/* The memory that a request names, if its key allows it; else NULL. */
static unsigned char *allowed(struct hca_fabric *f, uint32_t key, uint64_t addr, uint32_t bytes,
			      bool to_us)
{
	const unsigned any = IBV_ACCESS_REMOTE_ATOMIC |
			     (to_us ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
				    : IBV_ACCESS_REMOTE_READ);
	const struct hca_mr *mr = hca_mr_find(f, key);
	uint64_t at;

	if (!mr || !(mr->access & any) || !hca_mr_is_valid(mr))
		return NULL;
	at = addr - (uintptr_t)mr->base;
	return at <= mr->length && bytes <= mr->length - at ? mr->base + at : NULL;
}

/*
 * Move bytes between this process's memory and a slot, through the segment's descriptor,
 * so that unmapped memory is an error, not the end of the program.  syscall() bypasses a
 * sanitizer's pread, which would reject bytes of other objects in whole pages.
 */
static int bounce_move(struct hca_fabric *f, bool to_us, unsigned char *at, uint64_t slot,
		       uint32_t bytes)
{
	uint32_t tail = bytes > 8 ? 8 : 0, first = bytes - tail;
	long request = to_us ? SYS_pread64 : SYS_pwrite64;

	if (syscall(request, f->self_fd, at, (size_t)first, (off_t)slot) != (long)first)
		return EFAULT;
	/* The end is written last, also where a processor reorders stores. */
	atomic_thread_fence(memory_order_release);
	if (tail && syscall(request, f->self_fd, at + first, (size_t)tail,
			    (off_t)(slot + first)) != (long)tail)
		return EFAULT;
	return 0;
}

/* volatile: the claimer may change it meanwhile, so each word is read once. */
static int bounce_serve(struct hca_fabric *f, volatile struct hca_shm_bounce *b)
{
	const uint32_t bytes = b->bytes, key = b->key;
	const bool to_us = b->to_owner;
	const uint64_t slot = (uint64_t)((uintptr_t)b->data - (uintptr_t)f->self);
	unsigned char *at;
	int rc = EFAULT;

	if (bytes > HCA_BOUNCE_BYTES)
		return EFAULT;
	pthread_mutex_lock(&f->link_state->copy_service.lock);
	at = allowed(f, key, b->addr, bytes, to_us);
	if (at)
		rc = bounce_move(f, to_us, at, slot, bytes);
	pthread_mutex_unlock(&f->link_state->copy_service.lock);
	return rc;
}

/* Serve all requests; returns their number. */
static unsigned serve_all(struct hca_fabric *f)
{
	unsigned i, served = 0;
	int result;

	for (i = 0; i < HCA_BOUNCES; i++) {
		struct hca_shm_bounce *b = &f->self->bounce[i];
		uint32_t w = atomic_load_explicit(&b->state, memory_order_acquire);

		if (bounce_state(w) == PROBE) {
			if (atomic_compare_exchange_strong(&b->state, &w, with_state(w, FREE)))
				served++;
			continue;
		}
		if (bounce_state(w) != ASKED ||
		    !atomic_compare_exchange_strong(&b->state, &w, with_state(w, SERVED)))
			continue;
		w = with_state(w, SERVED);
		result = bounce_serve(f, b);
		b->result = result;
		if (!atomic_compare_exchange_strong(&b->state, &w, with_state(w, DONE)))
			atomic_store(&b->state, with_state(w, FREE));
		rg_wake_word(&b->state, true);
		served++;
	}
	atomic_fetch_add(&f->self->copies_served, served);
	return served;
}

static void *copy_service(void *arg)
{
	struct hca_fabric *f = arg;
	struct hca_shm_process *self = f->self;
	unsigned idle = 0;

	while (!atomic_load(&f->link_state->copy_service.stop)) {
		uint32_t seen = atomic_load(&self->copy_wakeup);

		if (serve_all(f)) {
			idle = 0;
		} else if (++idle < SERVICE_LOOKS) {
			rg_yield();
		} else {
			/* A claimer counts up, then reads the state: one sees the other's store. */
			atomic_store(&self->copy_service, HCA_COPY_SERVICE_ASLEEP);
			if (!atomic_load(&f->link_state->copy_service.stop))
				rg_wait_word(&self->copy_wakeup, seen, UINT64_MAX, true);
			atomic_store(&self->copy_service, HCA_COPY_SERVICE_AWAKE);
			idle = 0;
		}
	}
	return NULL;
}

static void wake_copy_service(struct hca_shm_process *of)
{
	atomic_fetch_add(&of->copy_wakeup, 1);
	if (atomic_load(&of->copy_service) == HCA_COPY_SERVICE_ASLEEP)
		rg_wake_word(&of->copy_wakeup, true);
}

int hca_copy_service_start(struct hca_fabric *f)
{
	if (f->link_state->copy == HCA_COPY_KERNEL)
		return -EPERM;
	if (atomic_exchange(&f->link_state->copy_service.started, true))
		return 0;
	/* Before the thread runs: it writes the state itself from then on. */
	atomic_store(&f->self->copy_service, HCA_COPY_SERVICE_AWAKE);
	if (hca_segment_reserve(f->self_fd, offsetof(struct hca_shm_process, bounce),
				sizeof(f->self->bounce)) ||
	    rg_thread_start(&f->link_state->copy_service.thread, copy_service, f)) {
		atomic_store(&f->self->copy_service, HCA_COPY_SERVICE_NONE);
		atomic_store(&f->link_state->copy_service.started, false);	/* retry later */
		return -EPERM;
	}
	return 0;
}

void hca_copy_service_need(struct hca_fabric *f, const struct hca_mr *mr)
{
	if (!atomic_load(&f->link_state->copy_service.started) && wanted(f, mr))
		hca_copy_service_start(f);
}

void hca_copy_service_quiesce(struct hca_fabric *f)
{
	if (!atomic_load(&f->link_state->copy_service.started))
		return;
	pthread_mutex_lock(&f->link_state->copy_service.lock);
	pthread_mutex_unlock(&f->link_state->copy_service.lock);
}

void hca_copy_service_stop(struct hca_fabric *f)
{
	if (!atomic_load(&f->link_state->copy_service.started))
		return;
	atomic_store(&f->link_state->copy_service.stop, true);
	atomic_store(&f->self->copy_service, HCA_COPY_SERVICE_ASLEEP);
	wake_copy_service(f->self);
	rg_thread_join(f->link_state->copy_service.thread);
	atomic_store(&f->self->copy_service, HCA_COPY_SERVICE_NONE);
	atomic_store(&f->link_state->copy_service.stop, false);
	atomic_store(&f->link_state->copy_service.started, false);
}

/* ---- The claimer --------------------------------------------------------- */

static bool claim_slot(struct hca_shm_bounce *b, uint32_t seen, uint32_t me, uint32_t *mine)
{
	*mine = bounce_word((seen >> 18) + 1, me, CLAIMED);
	return atomic_compare_exchange_strong(&b->state, &seen, *mine);
}

static struct hca_shm_bounce *claim(struct hca_peer *p, uint32_t *mine)
{
	struct hca_fabric *f = p->fabric;
	uint32_t i, w;

	for (i = 0; i < HCA_BOUNCES; i++) {
		struct hca_shm_bounce *b = &p->shm->bounce[(f->slot + i) % HCA_BOUNCES];

		w = atomic_load(&b->state);
		if (bounce_state(w) == FREE && claim_slot(b, w, f->slot, mine))
			return b;
	}
	/* Not a slot that the copy service is serving or has yet to free. */
	for (i = 0; i < HCA_BOUNCES; i++) {
		struct hca_shm_bounce *b = &p->shm->bounce[i];

		w = atomic_load(&b->state);
		if (bounce_state(w) != SERVED && bounce_state(w) != LEFT &&
		    hca_slot_fate(f, w >> 8 & 0x3ff) != HCA_FATE_ALIVE &&
		    claim_slot(b, w, f->slot, mine))
			return b;
	}
	return NULL;
}

/* Wait until the request is done.  0 or -errno as hca_bounce. */
static int wait_done(struct hca_peer *p, struct hca_shm_bounce *b, uint32_t w)
{
	uint64_t deadline = 0;
	unsigned looks = 0;
	uint32_t now;

	for (;;) {
		now = atomic_load_explicit(&b->state, memory_order_acquire);
		if (now == with_state(w, DONE))
			return 0;
		if (now != with_state(w, ASKED) && now != with_state(w, SERVED))
			return -EBUSY;		/* another process has changed the word */
		if (++looks < LOOKS) {
			rg_yield();
			continue;
		}
		if (!deadline)
			deadline = rg_now_ns() + PATIENCE_NS;
		else if (hca_peer_fate(p) != HCA_FATE_ALIVE)
			return -ESRCH;
		else if (rg_reached(deadline, rg_now_ns()))
			return -EBUSY;
		rg_wait_word(&b->state, now, NAP_NS, true);
	}
}

/* Abandon the request: -EBUSY, it will not be done; -EINPROGRESS, it may be; 0, it just was. */
static int bounce_give_up(struct hca_shm_bounce *b, uint32_t w)
{
	uint32_t asked = with_state(w, ASKED), served = with_state(w, SERVED);

	if (atomic_compare_exchange_strong(&b->state, &asked, with_state(w, PROBE)))
		return -EBUSY;
	if (atomic_compare_exchange_strong(&b->state, &served, with_state(w, LEFT)))
		return -EINPROGRESS;
	return served == with_state(w, DONE) ? 0 : -EBUSY;
}

static int bounce_piece(struct hca_peer *p, bool to_peer, void *local, uint64_t remote,
			uint32_t key, uint32_t bytes)
{
	const uint64_t deadline = rg_now_ns() + PATIENCE_NS;
	struct hca_shm_bounce *b;
	uint32_t w;
	int rc;

	while (!(b = claim(p, &w))) {
		if (hca_peer_fate(p) != HCA_FATE_ALIVE)
			return -ESRCH;
		if (rg_reached(deadline, rg_now_ns()))
			return -EBUSY;
		rg_yield();
	}
	b->addr = remote;
	b->bytes = bytes;
	b->key = key;
	b->to_owner = to_peer;
	if (to_peer)
		memcpy(b->data, local, bytes);
	atomic_store_explicit(&b->state, with_state(w, ASKED), memory_order_release);
	wake_copy_service(p->shm);
	rc = wait_done(p, b, w);
	if (rc) {
		int left = bounce_give_up(b, w);

		if (left)
			return rc == -ESRCH ? rc : left;
	}
	rc = b->result ? -EFAULT : 0;
	if (!rc && !to_peer)
		memcpy(local, b->data, bytes);
	atomic_store_explicit(&b->state, with_state(w, FREE), memory_order_release);
	return rc;
}

/* A copy service that timed out gets no request until it has served one of any claimer. */
static bool is_silent(struct hca_peer *p)
{
	return atomic_load(&p->copy_service_silent) && hca_peer_fate(p) == HCA_FATE_ALIVE &&
	       atomic_load(&p->shm->copies_served) == atomic_load(&p->copies_served);
}

/*
 * Ask for the copy service: the peer does not know that the kernel denies its memory to this
 * process.  0: it runs; -EPERM: the peer refuses, or has no address; -EBUSY: no answer now.
 */
static int start_theirs(struct hca_peer *p)
{
	int none[HCA_ANSWER_MAX], rc = 0;
	bool answered;

	if (p->is_self)
		return -EPERM;
	/* Another thread may be asking. */
	hca_lock(&p->ask_lock);
	if (!p->asked_for_copies) {
		rc = hca_ask_slot(p->fabric->link_state, p->slot, &p->address, HCA_ASK_COPIES, 0,
				  none);
		p->asked_for_copies = rc != -ETIMEDOUT && rc != -EAGAIN;
	}
	answered = p->asked_for_copies;
	hca_unlock(&p->ask_lock);
	if (!answered)
		return -EBUSY;
	return atomic_load(&p->shm->copy_service) == HCA_COPY_SERVICE_NONE ? -EPERM : 0;
}

int hca_bounce(struct hca_peer *p, bool to_peer, void *local, uint64_t remote, uint32_t key,
	       size_t bytes)
{
	uint32_t served = atomic_load(&p->shm->copies_served);
	unsigned char *at = local;
	int rc = 0;

	if (atomic_load(&p->shm->copy_service) == HCA_COPY_SERVICE_NONE)
		rc = start_theirs(p);
	if (rc)
		return rc;
	if (is_silent(p))
		return -EBUSY;
	while (bytes && !rc) {
		uint32_t n = bytes < HCA_BOUNCE_BYTES ? (uint32_t)bytes : HCA_BOUNCE_BYTES;

		rc = bounce_piece(p, to_peer, at, remote, key, n);
		at += n;
		remote += n;
		bytes -= n;
	}
	if (rc == -EBUSY || rc == -EINPROGRESS)
		atomic_store(&p->copies_served, served);
	atomic_store(&p->copy_service_silent, rc == -EBUSY || rc == -EINPROGRESS);
	return rc;
}
