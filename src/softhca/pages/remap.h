/*
 * remap.h - moving memory onto the segment, in place, and back.
 *
 * To the program it stays private anonymous memory.  Pages are moved back before calls
 * that would show the difference: mremap, madvise, mmap and mremap onto them (reported by
 * memwatch.h), and fork.  Unmapping frees the segment's pages at once.
 *
 * A registration remains a range of addresses: the part of it that peers map (struct
 * hca_moved) shrinks when pages of it are moved back, and peers reach the rest by address
 * (copy.h), with the pages that are mapped by then.  An adapter would go on using the original
 * pages.  Pages next to those moved back stay where they are, so that transfers to them are not
 * disturbed.
 *
 * Only fork and hca_remap_back wait for peers that are copying to pages that are moved back; other
 * calls do not: there the program removes pages while they are being written to.
 *
 * Landings (landing.h) are excluded while pages are moved onto the segment, 32 MiB at a time.  A
 * fork moves pages atomically, which needs no exclusion.
 */
#ifndef HCA_REMAP_H
#define HCA_REMAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memwatch/memwatch.h"

/* The part of a registration that peers can map.  Zeros: nothing. */
struct hca_moved {
	struct hca_moved *next, **at;
	bool listed;			/* on the list; the two above are valid */
	uint64_t from, to;		/* addresses of all that is registered */
	uint64_t start, end;		/* the part's; equal: nothing */
	bool moving;			/* temporarily not to be copied to by address either */
	/* Called when start, end or moving has changed; locked, perhaps inside malloc; or NULL. */
	void (*changed)(struct hca_moved *m);
};

/*
 * Move memory of this process onto the segment: the whole pages of the range, or with
 * `edges` also the pages that it shares with its neighbours.  Private anonymous memory
 * only.  *m is the part that peers can map from now on: all of these pages, or nothing.
 * Nothing also when a real device has pinned pages of it, and during a fork.
 *
 * A concurrent write of the program to those pages can be lost; no landing is.
 */
void hca_remap(struct hca_moved *m, void *addr, size_t bytes, bool edges);

/* If all of the range is on the segment already, readable and writable: set *m, and true. */
bool hca_remap_again(struct hca_moved *m, void *addr, size_t bytes);

/*
 * On request, move one buffer that only the caller uses until the return: its whole pages, unless
 * they are held (held.h), pinned, or not private anonymous.  *m may be in use; its `changed` is
 * called.  NULL, or the reason why nothing of *m has changed: a text in static storage.
 */
const char *hca_remap_requested(struct hca_moved *m, const void *addr, size_t bytes,
				const void *frame);
/*
 * Move the whole pages around a range back, while the program and peers go on using them:
 * they are private copies afterwards, as after a fork.
 */
void hca_remap_back(const void *addr, size_t bytes);

/*
 * The registration has no mapped part, but may get one on request, and is not to be copied to by
 * address while pages are moved back.
 */
void hca_moved_none(struct hca_moved *m, void *addr, size_t bytes);
/* The part of `from` in [start, end), for a window of it. */
void hca_moved_part(struct hca_moved *m, const struct hca_moved *from, uint64_t start,
		    uint64_t end);
/* Put `from` in the place of m. */
void hca_moved_replace(struct hca_moved *m, struct hca_moved *from);
void hca_moved_drop(struct hca_moved *m);

/*
 * While it is held, m->changed is not called and nothing moves.  All signals are blocked:
 * a handler may unmap memory.  The holder must not allocate, since malloc may be waiting
 * for this lock.
 */
void hca_remap_lock(sigset_t *before);
void hca_remap_unlock(const sigset_t *before);

/*
 * Start watching the calls that change mappings, so that moved memory stays ordinary
 * memory to the program.  False: not possible (reported once on stderr); nothing should
 * be moved.
 */
bool hca_remap_watch(void);
/* The listener: for hca_remap_watch, and for tests that call it themselves. */
rg_memwatch_fn hca_remap_hear;

/*
 * Fork handlers.  Before fork all moved memory becomes private, by way of a private
 * mapping of the segment whose pages are copied at once: no write of another thread is
 * lost, and the kernel makes the child's snapshot as usual.  hca_remap_quiesce waits for
 * the users of mappings, after struct hca_moved has marked them moving; NULL: there are none.
 */
extern void (*hca_remap_quiesce)(void);
void hca_remap_before_fork(void);
void hca_remap_after_fork(void);
void hca_remap_in_child(void);

#endif
