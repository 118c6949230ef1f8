/* copy.c - moving bytes between two lists of spans. */
#include <sys/uio.h>

#include "util/clock.h"
#include "softhca/link/memory/state.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/bounce.h"
#include "softhca/link/memory/copy.h"
#include "softhca/base/proc.h"

enum { BATCH = 4 * HCA_SGE_MAX };	/* pieces per system call */

/*
 * The kernel copies from the process of a pid, which may be another's by now.  Pids are given in
 * turn, at least 1,024 for each processor (PIDS_PER_CPU_DEFAULT in include/linux/threads.h, unless
 * kernel.pid_max was lowered).  If a process were made in 10 us, each processor would use ten pids
 * in 100 us: a peer that lived then still has its pid, or no process has it.
 */
enum { LIVES_NS = 100000 };

/* A place in a list of spans. */
struct cursor {
	const struct hca_span *span;
	size_t offset;
};

static struct cursor cursor_at(const struct hca_span *span, size_t skip)
{
	for (; skip && skip >= span->bytes; span++)
		skip -= span->bytes;
	return (struct cursor){ span, skip };
}

static size_t cursor_left(struct cursor *c)
{
	while (c->offset == c->span->bytes) {
		c->span++;
		c->offset = 0;
	}
	return c->span->bytes - c->offset;
}

/* Pieces that are not mapped, gathered for one system call. */
struct batch {
	struct iovec local[BATCH], remote[BATCH];
	uint32_t key[BATCH];
	unsigned count;
	size_t bytes;
};

static bool owns_its_number(struct hca_peer *peer)
{
	uint64_t now = rg_now_ns();

	if (now - atomic_load_explicit(&peer->lived_ns, memory_order_relaxed) < LIVES_NS)
		return true;
	if (!hca_process_alive(peer->pid, peer->start_time, peer->watch))
		return false;
	atomic_store_explicit(&peer->lived_ns, now, memory_order_relaxed);
	return true;
}

/* -EPERM: the kernel does not permit or support it. */
static int by_kernel(const struct batch *b, struct hca_peer *peer, enum hca_direction direction)
{
	ssize_t done;

	if (!owns_its_number(peer))
		return -ESRCH;
	if (direction == HCA_TO_REMOTE) {
		/* All that this thread has read and written comes before; the kernel has no fence. */
		atomic_thread_fence(memory_order_release);
		done = process_vm_writev(peer->pid, b->local, b->count, b->remote, b->count, 0);
	} else {
		done = process_vm_readv(peer->pid, b->local, b->count, b->remote, b->count, 0);
		atomic_thread_fence(memory_order_acquire);
	}
	if (done < 0)
		return errno == ENOSYS ? -EPERM : -errno;
	return (size_t)done == b->bytes ? 0 : -EFAULT;
}

static int by_peer(const struct batch *b, struct hca_peer *peer, enum hca_direction direction)
{
	unsigned i;
	int rc = 0;

	for (i = 0; i < b->count && !rc; i++)
		rc = hca_bounce(peer, direction == HCA_TO_REMOTE, b->local[i].iov_base,
				(uintptr_t)b->remote[i].iov_base, b->key[i], b->local[i].iov_len);
	return rc;
}

bool hca_copy_bounces(const struct hca_peer *peer)
{
	return peer->fabric->link_state->copy == HCA_COPY_BOUNCE ||
	       atomic_load_explicit(&peer->bounces, memory_order_relaxed);
}

/* Are any of its pages being moved?  Bytes copied to them meanwhile would be lost. */
static bool any_away(const struct batch *b, const struct hca_peer *peer)
{
	unsigned i;

	for (i = 0; i < b->count; i++)
		if (hca_peer_memory_moving(peer, b->key[i]))
			return true;
	return false;
}

static int batch_copy(struct batch *b, struct hca_peer *peer, enum hca_direction direction)
{
	int rc = -EPERM;

	if (!hca_copy_bounces(peer))
		rc = by_kernel(b, peer, direction);
	/* EFAULT: only its own process can access some memory, in spite of others' rights. */
	if ((rc == -EPERM || rc == -EFAULT) && peer->fabric->link_state->copy != HCA_COPY_KERNEL) {
		int again = by_peer(b, peer, direction);

		if (rc == -EPERM && again != -EPERM)
			atomic_store(&peer->bounces, true);
		if (rc == -EPERM || again != -EPERM)
			rc = again;
	}
	if (!rc)
		b->count = b->bytes = 0;
	return rc;
}

static int batch_flush(struct batch *b, struct hca_peer *peer, enum hca_direction direction)
{
	if (!b->count)
		return 0;
	return any_away(b, peer) ? -EBUSY : batch_copy(b, peer, direction);
}

static int batch_add(struct batch *b, struct hca_peer *peer, enum hca_direction direction,
		     unsigned char *local, uint64_t remote, uint32_t key, size_t n)
{
	b->local[b->count] = (struct iovec){ local, n };
	b->remote[b->count] = (struct iovec){ (void *)(uintptr_t)remote, n };
	b->key[b->count] = key;
	b->bytes += n;
	return ++b->count == BATCH ? batch_flush(b, peer, direction) : 0;
}

/* Copy a run that is contiguous at both ends; `last`: a peer may poll for its end. */
static int copy_run(struct batch *b, struct hca_peer *peer, enum hca_direction direction,
		    unsigned char *local, const struct hca_span *remote, size_t offset, size_t n,
		    bool last)
{
	/*
	 * The kernel copies the pieces of a call in order, which only some processors show to others:
	 * then the last 8 bytes have a call of their own.  A peer that copies writes its last 8 last.
	 */
	const size_t tail = last && n > 8 && !hca_copy_bounces(peer) ? 8 : 0;
	int rc;

	if (remote->local) {
		unsigned char *at = remote->local + offset;

		if (direction == HCA_FROM_REMOTE)
			memmove(local, at, n);
		else if (last)
			hca_copy_last_last(at, local, n);
		else
			memmove(at, local, n);
		return 0;
	}
	rc = batch_add(b, peer, direction, local, remote->remote + offset, remote->key, n - tail);
	if (!rc && tail && !HCA_STORES_IN_ORDER)
		rc = batch_flush(b, peer, direction);
	if (!rc && tail)
		rc = batch_add(b, peer, direction, local + n - tail,
			       remote->remote + offset + n - tail, remote->key, tail);
	return rc;
}

int hca_copy_reached(struct hca_peer *peer, void *local, uint64_t remote, uint32_t key, size_t n)
{
	struct batch b;

	b.count = 0;
	b.bytes = 0;
	batch_add(&b, peer, HCA_TO_REMOTE, local, remote, key, n);
	return batch_copy(&b, peer, HCA_TO_REMOTE);
}

int hca_copy_remote(struct hca_peer *peer, enum hca_direction direction, void *local,
		    uint64_t remote, uint32_t key, size_t n)
{
	struct batch b;

	b.count = 0;
	b.bytes = 0;
	batch_add(&b, peer, direction, local, remote, key, n);
	return batch_flush(&b, peer, direction);
}

int hca_copy(struct hca_peer *peer, const struct hca_message *m, enum hca_direction direction,
	     size_t skip, size_t n, bool last)
{
	struct cursor local = cursor_at(m->local, skip), remote = cursor_at(m->remote, skip);
	struct batch b;
	int rc = 0;

	b.count = 0;
	b.bytes = 0;
	/* A read comes after the writes before it in the queue: a store and a load need this fence. */
	if (direction == HCA_FROM_REMOTE)
		atomic_thread_fence(memory_order_seq_cst);
	while (n && !rc) {
		size_t local_left = cursor_left(&local), remote_left = cursor_left(&remote);
		size_t run = local_left < remote_left ? local_left : remote_left;

		if (run > n)
			run = n;
		/* Earlier pieces must be in place before the end of the message. */
		if (run == n && b.count && remote.span->local)
			rc = batch_flush(&b, peer, direction);
		if (!rc)
			rc = copy_run(&b, peer, direction, local.span->local + local.offset,
				      remote.span, remote.offset, run, run == n && last);
		local.offset += run;
		remote.offset += run;
		n -= run;
	}
	if (!rc)
		rc = batch_flush(&b, peer, direction);
	/* What a request after it reads or writes comes after what it has read. */
	if (direction == HCA_FROM_REMOTE)
		atomic_thread_fence(memory_order_acquire);
	/* Copying it once more does no harm. */
	return rc == -EINPROGRESS ? -EBUSY : rc;
}
