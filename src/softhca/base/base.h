/* base.h - definitions for every file of libsofthca: errors, locks, arithmetic. */
#ifndef HCA_BASE_H
#define HCA_BASE_H

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/clock.h"
#include "util/compiler.h"

#define hca_container(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* libsofthca.so exports functions with this mark; all others are hidden. */
#define HCA_EXPORT __attribute__((visibility("default")))

/*
 * Stores one line about a failure for softhca_last_error (per thread) and returns
 * -err.  The line is complete: no newline, no program name.
 */
int hca_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "softhca: ...\n" on stderr in one write. */
void hca_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline uint64_t hca_align_down(uint64_t x, uint64_t to)
{
	return x & ~(to - 1);
}

static inline uint64_t hca_align_up(uint64_t x, uint64_t to)
{
	return (x + to - 1) & ~(to - 1);
}

static inline uint32_t hca_pow2(uint32_t x)
{
	return x <= 1 ? 1 : 1u << (32 - __builtin_clz(x - 1));
}

static inline unsigned hca_log2(uint32_t pow2)
{
	return (unsigned)__builtin_ctz(pow2);
}

static inline unsigned hca_log2_64(uint64_t pow2)
{
	return (unsigned)__builtin_ctzll(pow2);
}

/* A list node: an object on its context's list. */
struct hca_list_node {
	struct hca_list_node *next, **at;
};

static inline void hca_list_add(struct hca_list_node **list, struct hca_list_node *l)
{
	l->next = *list;
	l->at = list;
	if (l->next)
		l->next->at = &l->next;
	*list = l;
}

static inline void hca_list_remove(struct hca_list_node *l)
{
	*l->at = l->next;
	if (l->next)
		l->next->at = l->at;
}

static inline uint64_t hca_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * A word of a description that another word publishes, or withdraws (ORDER.md).  A description is withdrawn
 * before it is written anew: a reader that finds a new word finds it withdrawn, too, when it looks again.
 */
#define hca_put(word, value) atomic_store_explicit(&(word), value, memory_order_release)
#define hca_get(word) atomic_load_explicit(&(word), memory_order_acquire)

/* Does this processor show stores to others in program order, the kernel's stores as well? */
#if defined(__x86_64__) || defined(__i386__)
enum { HCA_STORES_IN_ORDER = 1 };
#else
enum { HCA_STORES_IN_ORDER = 0 };
#endif

/*
 * A lock between the threads of this process, never in shared memory: one
 * exchange when free.
 */
struct hca_lock {
	_Atomic int held;
};

static inline bool hca_trylock(struct hca_lock *l)
{
	return !atomic_exchange_explicit(&l->held, 1, memory_order_acquire);
}

void hca_lock_wait(struct hca_lock *l);		/* lock.c: it is held */

static inline void hca_lock(struct hca_lock *l)
{
	if (unlikely(!hca_trylock(l)))
		hca_lock_wait(l);
}

static inline void hca_unlock(struct hca_lock *l)
{
	atomic_store_explicit(&l->held, 0, memory_order_release);
}

#endif
