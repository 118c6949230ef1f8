/*
 * remap.h - moving memory onto the segment, in place, and back.
 *
 * To the program it stays private anonymous memory.  What would show the difference is
 * preceded by moving the pages back: mremap, madvise, mmap and mremap onto them (told by
 * memwatch.h), and fork.  What is unmapped gives its pages back at once.
 *
 * A registration is a range of addresses all the same: the part of it that peers map
 * (struct hca_moved) shrinks when pages of it are moved back, and what is not mapped
 * they reach by address (copy.h), whatever pages are there by then.  An adapter would go
 * on using the pages that it found.  Pages beside those that go stay where they are, so
 * that what is under way there is not disturbed.
 *
 * Except for fork, nobody waits for peers that are just copying to pages that are
 * moved back: the program takes these pages away while they are being written to.
 */
#ifndef HCA_REMAP_H
#define HCA_REMAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memwatch.h"

/* Of a registration: the part that peers can map.  Zeros: nothing. */
struct hca_moved {
	struct hca_moved *next, **at;
	bool listed;			/* the two above mean something: it is kept account of */
	uint64_t start, end;		/* addresses; equal: nothing */
	bool away;			/* just now nobody may copy to it by address either */
	/* One of start and end, or away, has changed.  Locked, inside malloc perhaps; or NULL. */
	void (*changed)(struct hca_moved *m);
};

/*
 * Move memory of this process onto the segment: the whole pages of the range, or with
 * `edges` also the pages that it shares with its neighbours.  Private anonymous memory
 * only.  *m is what peers can map from now on: all of that, or nothing.  Nothing also
 * when a real device has pages of it, and during a fork.
 *
 * Nobody may write to those pages meanwhile: the write could be lost.
 */
void hca_remap(struct hca_moved *m, void *addr, size_t bytes, bool edges);

/* If all of it is on the segment already, readable and writable: the same, and true. */
bool hca_remap_again(struct hca_moved *m, void *addr, size_t bytes);

/* The part of `from` in [start, end), for a window of it. */
void hca_moved_part(struct hca_moved *m, const struct hca_moved *from, uint64_t start,
		    uint64_t end);
/* `from`, in the place of m. */
void hca_moved_replace(struct hca_moved *m, struct hca_moved *from);
void hca_moved_drop(struct hca_moved *m);

/*
 * m->changed is not called and nothing moves meanwhile.  All signals wait: a handler may
 * unmap memory.  Nothing is allocated inside, since malloc may be waiting for us.
 */
void hca_remap_lock(sigset_t *before);
void hca_remap_unlock(const sigset_t *before);

/*
 * See to it that moved memory stays ordinary memory to the program.  False: it cannot be
 * (said once on stderr), so nothing should be moved.
 */
bool hca_remap_watch(void);
/* The listener: for hca_remap_watch, and for tests that call it themselves. */
rg_memwatch_fn hca_remap_hear;

/*
 * Around fork.  Before it all that was moved becomes private, by way of a private mapping
 * of the segment whose pages are copied at once: no write of another thread is lost, and
 * the kernel makes the child's snapshot as ever.  `quiesce` waits for those who use
 * mappings (struct hca_moved has told them); NULL: nobody does.
 */
extern void (*hca_remap_quiesce)(void);
void hca_remap_before_fork(void);
void hca_remap_after_fork(void);
void hca_remap_in_child(void);

/*
 * Memory whose pages others hold on to: a real device goes on with the pages
 * that it found when they were registered there, so these stay where they are.
 * A range from before it is registered until after it is deregistered; `owner`
 * names it.  NULL: no memory.
 */
struct hca_pinned;
struct hca_pinned *hca_pin(const void *addr, size_t bytes);
void hca_pin_set_owner(struct hca_pinned *p, const void *owner);
void hca_unpin(struct hca_pinned *p);
/* What its owner is the only one to know: NULL, nothing. */
struct hca_pinned *hca_pin_of(const void *owner);
/* Locked. */
bool hca_is_pinned(uint64_t start, uint64_t end);

#endif
