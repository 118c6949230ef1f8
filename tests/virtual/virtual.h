/*
 * virtual.h - several members of a fabric in one process, on a virtual clock.
 *
 * clock.c here replaces src/util/clock.c: the library's threads and the members of a test are
 * tasks of one thread, each with its own stack, which are switched only in a wait of clock.h.
 * A seed determines the order.  Time rests while tasks make progress; after a number of
 * empty rounds in a row it jumps to the nearest time that a task waits for.  So a test does not
 * depend on the machine's time, and the same seed gives the same run.
 *
 * A state in which no task waits for a time is a deadlock; more virtual time than the test allows
 * counts as one.  Both end the process with exit code 1, after the waiting place of each task has
 * been printed.
 */
#ifndef TESTS_VIRTUAL_H
#define TESTS_VIRTUAL_H

#include <stdint.h>

struct virtual_config {
	uint64_t seed;			/* 0: RG_SEED of the environment, or 1 */
	/*
	 * Empty rounds before time advances; 0: 8.  A layer that checks something only every
	 * n-th call needs more than n.
	 */
	unsigned rounds;
	uint64_t limit_ns;		/* 0: 100 virtual seconds */
};

/* Call it before creating tasks; the clock starts at VIRTUAL_START_NS. */
void virtual_begin(const struct virtual_config *config);
/* Add a task, which acts as this member of each fabric that it opens. */
void virtual_task(const char *name, unsigned member, void (*run)(void *arg), void *arg);
/* Run until all tasks have ended, and the library's threads with them. */
void virtual_run(void);

/* Called by a task: its wait has succeeded, so the round is not empty. */
void virtual_found(void);
/*
 * The current task; NULL: none, or one that waits.  For signal handlers: a task may wait in one
 * that has interrupted it anywhere but in a wait.
 */
const void *virtual_self(void);
/* Called when a task continues after a wait.  Weak: a test may define its own. */
void virtual_returns(void);
/* Called by a task: ends it. */
void virtual_leave(void) __attribute__((noreturn));

#define VIRTUAL_START_NS 1000000000000ull

#endif
