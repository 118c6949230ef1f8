/*
 * clock.h - time in uint64_t nanoseconds of CLOCK_MONOTONIC, and everything that waits for it
 * or for another thread.
 *
 * All of it is one object, clock.c, and nothing beside it looks at the clock, sleeps, yields or
 * starts a thread in librail and libsofthca.  So a test may link another object with the same
 * functions, where time is a number that moves when nothing else is left to do:
 * tests/virtual/clock.c.  Such an object must know what is being waited for; hence rg_reached.
 */
#ifndef RG_UTIL_CLOCK_H
#define RG_UTIL_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t rg_now_ns(void);

/* The caller does nothing before `due_ns`, unless something else happens. */
void rg_await(uint64_t due_ns);

/* At `now_ns`, which rg_now_ns said, has `due_ns` come?  Every comparison with a future time. */
static inline bool rg_reached(uint64_t due_ns, uint64_t now_ns)
{
	if (due_ns <= now_ns)
		return true;
	rg_await(due_ns);
	return false;
}

/* A turn of a spin that ends at `due_ns` at the latest; UINT64_MAX: not by time. */
void rg_relax(uint64_t due_ns);
/* What is waited for may need this very core. */
void rg_yield(void);
void rg_sleep_ns(uint64_t ns);

/*
 * While *word is `value`, at most so long (UINT64_MAX: no limit); may return early.  `shared`:
 * it is woken by other processes, too.
 */
void rg_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t most_ns, bool shared);
void rg_wake_word(_Atomic uint32_t *word, bool shared);
/* Until fd can be read, at most so long.  0, or -1 and errno: EINTR. */
int rg_wait_readable(int fd, uint64_t most_ns);

/* A thread that takes none of the program's signals.  0 or an errno value, as pthread_create. */
int rg_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
void rg_thread_join(pthread_t thread);

#endif
