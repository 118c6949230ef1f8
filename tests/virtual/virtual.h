/*
 * virtual.h - several members of a fabric in one process, on a clock of their own.
 *
 * clock.c here stands in for src/util/clock.c: the library's threads and the members of a test
 * are tasks of one thread, each with a stack of its own, which change places where a wait of
 * clock.h is called and nowhere else.  Who is next, a seed decides.  Time stands still while
 * anything happens; when a number of rounds in a row have brought nothing, it jumps to the
 * nearest time that anyone waits for.  So a test takes none of the machine's time into account,
 * and the same seed gives the same run.
 *
 * When nothing is waited for by time, it is a deadlock; when more virtual time has gone by than
 * the test allows, it is taken for one.  Both end the process with exit code 1, after each task
 * has said where it waits.
 */
#ifndef TESTS_VIRTUAL_H
#define TESTS_VIRTUAL_H

#include <stdint.h>

struct virtual_config {
	uint64_t seed;			/* 0: RG_SEED of the environment, or 1 */
	/*
	 * Empty rounds before time moves; 0: 8.  A layer that looks at something only every
	 * n-th call needs more than n.
	 */
	unsigned rounds;
	uint64_t limit_ns;		/* 0: 100 virtual seconds */
};

/* Before the tasks; the clock starts at VIRTUAL_START_NS. */
void virtual_begin(const struct virtual_config *config);
/* One more task, which acts as this member of each fabric that it opens. */
void virtual_task(const char *name, unsigned member, void (*run)(void *arg), void *arg);
/* Until all of these have ended, and the library's threads with them. */
void virtual_run(void);

/* Of a task: it has found what it was looking for, so the round is not empty. */
void virtual_found(void);
/*
 * Which task this is; NULL: none, or one that waits.  For signal handlers: a task may wait in one
 * that has interrupted it anywhere but in a wait.
 */
const void *virtual_self(void);
/* A task goes on after a wait.  Weak: a test may have its own. */
void virtual_returns(void);
/* Of a task: it is over. */
void virtual_leave(void) __attribute__((noreturn));

#define VIRTUAL_START_NS 1000000000000ull

#endif
