/*
 * clock.h - time in uint64_t nanoseconds of CLOCK_MONOTONIC, and all waiting for a time or for
 * another thread.
 *
 * These functions are one object, clock.c.  Nothing else in librail, librailmpi and libsofthca
 * reads this clock, sleeps, yields or starts a thread.  So a test can link another object with
 * the same functions, tests/virtual/clock.c, in which time is a number that advances when nothing
 * else is left to do.  Such an object needs to know the times that are waited for: rg_reached tells
 * it.
 */
#ifndef RG_UTIL_CLOCK_H
#define RG_UTIL_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t rg_now_ns(void);

/* Announce that the caller does nothing before `due_ns` unless another event occurs. */
void rg_await(uint64_t due_ns);

/* Is `due_ns` reached at `now_ns` (of rg_now_ns)?  For every comparison with a future time. */
static inline bool rg_reached(uint64_t due_ns, uint64_t now_ns)
{
	if (due_ns <= now_ns)
		return true;
	rg_await(due_ns);
	return false;
}

/* A round of a spin loop that ends at `due_ns` at the latest; UINT64_MAX: no limit. */
void rg_relax(uint64_t due_ns);
/* Yield, or sleep for a moment: the awaited event may need this core. */
void rg_yield(void);
void rg_sleep_ns(uint64_t ns);

/*
 * Wait while *word is `value`, at most most_ns (UINT64_MAX: no limit); may return early.
 * shared: other processes may wake it, too.
 */
void rg_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t most_ns, bool shared);
void rg_wake_word(_Atomic uint32_t *word, bool shared);
/* Wait until fd is readable, at most most_ns.  0, or -1 and errno: EINTR. */
int rg_wait_readable(int fd, uint64_t most_ns);
/* The same until either of two is readable; -1: none. */
int rg_wait_either(int fd, int other, uint64_t most_ns);

/* Start a thread with all signals blocked.  0 or an errno value, as pthread_create. */
int rg_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
void rg_thread_join(pthread_t thread);

#endif
