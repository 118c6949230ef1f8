/*
 * deferred.h - for programs that poll memory on a timed fabric: the end of an RDMA write is
 * deferred until its arrival time.
 *
 * Data is copied when it leaves, before it arrives.  A receiver that waits for a completion does
 * not notice; a receiver that polls the last bytes would.  So the sender keeps the last line of a
 * write (without immediate) and writes it at the arrival time: in its next verb, in the progress
 * thread if it calls none, or in ibv_post_send itself if the wait is short and the sender is not
 * streaming.  The line is never early, except where later work of the same queue pair depends on
 * it: a message that completes at the receiver, or a message that touches the same bytes.
 */
#ifndef HCA_DEFERRED_H
#define HCA_DEFERRED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "softhca/base/layout.h"

/* HCA_HELD_NS: a held end is tried again after so long. */
enum { HCA_DEFERRED_MAX = 64, HCA_HELD_NS = 50000 };

struct hca_deferred {
	uint64_t due_ns;
	uint64_t remote;		/* the peer's address */
	unsigned char *local;		/* local address; NULL: not mapped */
	const _Atomic uint64_t *live, *invalidated;	/* hca_remote_is_valid */
	uint64_t stamp;
	uint32_t bytes;
	unsigned char data[HCA_LINE];
};

/* A queue pair's, on a timed fabric; the link makes it. */
struct hca_deferred_list {
	uint32_t first, count;
	/* A due end cannot be written yet: completions of the queue pair's requests wait, too. */
	_Atomic bool held;
	uint32_t reached;		/* the last access section in which no end had to wait */
	uint64_t posted_ns;		/* end of the last post */
	uint64_t complete_ns;		/* all earlier posts are complete at the sender then */
	struct hca_deferred entry[HCA_DEFERRED_MAX];
};

static inline void hca_deferred_clear(struct hca_deferred_list *l)
{
	l->count = 0;
	atomic_store_explicit(&l->held, false, memory_order_release);
}

/* Due times of the oldest and the youngest; the list is not empty. */
static inline uint64_t hca_deferred_first_ns(const struct hca_deferred_list *l)
{
	return l->entry[l->first].due_ns;
}

static inline uint64_t hca_deferred_last_ns(const struct hca_deferred_list *l)
{
	return l->entry[(l->first + l->count - 1) % HCA_DEFERRED_MAX].due_ns;
}

#endif
