/* copy.c - moving bytes between two lists of spans. */
#include <sys/uio.h>

#include "copy.h"

enum { BATCH = 4 * HCA_SGE_MAX };	/* pieces per system call */

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

/* What could not be copied here, gathered for one system call. */
struct batch {
	struct iovec local[BATCH], remote[BATCH];
	unsigned count;
	size_t bytes;
};

static int batch_flush(struct batch *b, const struct hca_peer *peer, enum hca_direction way)
{
	ssize_t done;

	if (!b->count)
		return 0;
	if (way == HCA_TO_REMOTE)
		done = process_vm_writev(peer->pid, b->local, b->count, b->remote, b->count, 0);
	else
		done = process_vm_readv(peer->pid, b->local, b->count, b->remote, b->count, 0);
	if (done < 0)
		return -errno;
	if ((size_t)done != b->bytes)
		return -EFAULT;
	b->count = 0;
	b->bytes = 0;
	return 0;
}

static int batch_add(struct batch *b, const struct hca_peer *peer, enum hca_direction way,
		     unsigned char *local, uint64_t remote, size_t n)
{
	b->local[b->count] = (struct iovec){ local, n };
	b->remote[b->count] = (struct iovec){ (void *)(uintptr_t)remote, n };
	b->bytes += n;
	return ++b->count == BATCH ? batch_flush(b, peer, way) : 0;
}

/* One run that is contiguous at both ends; `last`: it ends the message. */
static int copy_run(struct batch *b, const struct hca_peer *peer, enum hca_direction way,
		    unsigned char *local, const struct hca_span *remote, size_t offset, size_t n,
		    bool last)
{
	const size_t tail = last && n > 8 ? 8 : 0;
	int rc;

	if (remote->here) {
		unsigned char *at = remote->here + offset;

		if (way == HCA_FROM_REMOTE)
			memcpy(local, at, n);
		else if (last)
			hca_copy_last_last(at, local, n);
		else
			memcpy(at, local, n);
		return 0;
	}
	/* The kernel copies the pieces of a call in order. */
	rc = batch_add(b, peer, way, local, remote->there + offset, n - tail);
	if (!rc && tail)
		rc = batch_add(b, peer, way, local + n - tail, remote->there + offset + n - tail,
			       tail);
	return rc;
}

int hca_copy(const struct hca_peer *peer, const struct hca_message *m, enum hca_direction way,
	     size_t skip, size_t n)
{
	struct cursor local = cursor_at(m->local, skip), remote = cursor_at(m->remote, skip);
	struct batch b;
	int rc = 0;

	b.count = 0;
	b.bytes = 0;
	while (n && !rc) {
		size_t here = cursor_left(&local), there = cursor_left(&remote);
		size_t run = here < there ? here : there;

		if (run > n)
			run = n;
		/* What came before must be in place before the end of the message is. */
		if (run == n && b.count && remote.span->here)
			rc = batch_flush(&b, peer, way);
		if (!rc)
			rc = copy_run(&b, peer, way, local.span->here + local.offset, remote.span,
				      remote.offset, run, run == n);
		local.offset += run;
		remote.offset += run;
		n -= run;
	}
	return rc ? rc : batch_flush(&b, peer, way);
}
