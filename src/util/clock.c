/* clock.c - the functions of clock.h on the machine's own clock. */
#include "config.h"		/* _GNU_SOURCE */

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

#define SECOND_NS 1000000000u
#define CLOSED_NS 1000000u

uint64_t rg_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

void rg_await(uint64_t due_ns)
{
	(void)due_ns;
}

void rg_relax(uint64_t due_ns)
{
	(void)due_ns;
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/*
 * The scheduler gives a thread that computes and never yields the core for milliseconds, and from
 * Linux 6.18 on also before threads that yield.  A thread that slept goes first: after a yield that
 * took so long the next ones are the shortest possible sleep (some 55 us), first a few, and twice
 * as many each time when the yield after them took long again.  (30 us of work, a round trip with
 * one such thread on the core: 3,850 us by yields, 200 us so, 66 us without it by either.)
 */
void rg_yield(void)
{
	enum { LONG_NS = 300000, NAPS_LEAST = 8, NAPS_MOST = 256 };
	/* initial-exec: the first use allocates nothing, and may be inside of malloc. */
	static _Thread_local unsigned naps __attribute__((tls_model("initial-exec"))),
		next __attribute__((tls_model("initial-exec"))) = NAPS_LEAST;
	uint64_t began;

	if (naps) {
		naps--;
		rg_sleep_ns(1);
		return;
	}
	began = rg_now_ns();
	sched_yield();
	if (rg_now_ns() - began < LONG_NS) {
		next = NAPS_LEAST;
		return;
	}
	naps = next;
	next = next < NAPS_MOST ? 2 * next : NAPS_MOST;
}

static struct timespec span(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / SECOND_NS),
				  .tv_nsec = (long)(ns % SECOND_NS) };
}

void rg_sleep_ns(uint64_t ns)
{
	struct timespec t = span(ns);

	nanosleep(&t, NULL);
}

void rg_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t most_ns, bool shared)
{
	struct timespec t = span(most_ns);

	syscall(SYS_futex, word, FUTEX_WAIT | (shared ? 0 : FUTEX_PRIVATE_FLAG), value,
		most_ns == UINT64_MAX ? NULL : &t, NULL, 0);
}

void rg_wake_word(_Atomic uint32_t *word, bool shared)
{
	syscall(SYS_futex, word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), INT_MAX, NULL,
		NULL, 0);
}

int rg_wait_readable(int fd, uint64_t most_ns)
{
	return rg_wait_either(fd, -1, most_ns);
}

int rg_wait_either(int fd, int other, uint64_t most_ns)
{
	struct pollfd p[] = { { .fd = fd, .events = POLLIN }, { .fd = other, .events = POLLIN } };
	struct timespec t = span(most_ns);

	if (ppoll(p, 2, most_ns == UINT64_MAX ? NULL : &t, NULL) < 0)
		return -1;
	/* The program has closed one: no wait would last. */
	if ((p[0].revents | p[1].revents) & POLLNVAL)
		rg_sleep_ns(most_ns < CLOSED_NS ? most_ns : CLOSED_NS);
	return 0;
}

#ifdef __SANITIZE_ADDRESS__
/*
 * A thread that begins allocates in AddressSanitizer's runtime, which before GCC 14 has no
 * pthread_atfork handlers: the child of a fork at this moment inherits a locked allocator.
 */
struct begin {
	void *(*run)(void *);
	void *arg;
	_Atomic uint32_t begun;
};

static void *begin_run(void *arg)
{
	struct begin *b = arg;
	void *(*run)(void *) = b->run, *run_arg = b->arg;

	atomic_store(&b->begun, 1);
	rg_wake_word(&b->begun, false);
	return run(run_arg);
}

static int thread_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	struct begin b = { .run = run, .arg = arg };
	int rc = pthread_create(thread, NULL, begin_run, &b);

	while (!rc && !atomic_load(&b.begun))
		rg_wait_word(&b.begun, 0, UINT64_MAX, false);
	return rc;
}
#else
#define thread_create(thread, run, arg) pthread_create(thread, NULL, run, arg)
#endif

int rg_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = thread_create(thread, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void rg_thread_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}
