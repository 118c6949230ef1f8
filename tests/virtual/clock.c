/* clock.c - the functions of virtual.h and src/util/clock.h. */
#undef _FORTIFY_SOURCE		/* the fortified longjmp rejects other stacks */
#include "config.h"		/* _GNU_SOURCE */

#include <errno.h>
#include <execinfo.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include "util/clock.h"
#include "random.h"
#include "softhca/api/fabric.h"
#include "softhca/link/memory/descriptors.h"
#include "softhca/link/memory/service.h"
#include "virtual.h"

enum {
	TASKS_MAX = 64,
	STACK_BYTES = 1 << 20,
	ROUNDS = 8,
	DEEP_ROUNDS = 4096,	/* empty rounds before nothing due is a deadlock */
};

enum state { RUNS, WORD, READABLE, SLEEPS, JOINS, ENDED };

struct task {
	const char *name;
	bool library, joined;	/* a thread of the library's */
	unsigned member;
	void (*run)(void *arg);
	void *(*thread)(void *arg);
	void *arg;
	ucontext_t context;
	jmp_buf jump;
	bool begun;
	volatile bool waits;	/* the task's state is being changed, or another runs */
	void *stack, *fake_stack;
	int error;		/* errno while another runs */

	enum state state;
	uint64_t until_ns;	/* all states but RUNS and ENDED; UINT64_MAX: no limit */
	_Atomic uint32_t *word;
	uint32_t value;
	int fd, other_fd;
	const struct task *other;
};

static struct {
	struct virtual_config config;
	uint64_t now_ns, due_ns, random;
	struct task task[TASKS_MAX];
	unsigned tasks;
	struct task *current;	/* NULL: the scheduler, or a program that has none */
	ucontext_t scheduler;
	jmp_buf jump;
	void *fake_stack;
	const void *bottom;	/* the scheduler's stack */
	size_t bytes;
	bool found, reporting;
	pthread_t thread;
} v = { .now_ns = VIRTUAL_START_NS, .due_ns = UINT64_MAX };

/* ---- Changing places ------------------------------------------------------ */

static void leave_stack(void **fake, const void *bottom, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(fake, bottom, bytes);
#else
	(void)fake, (void)bottom, (void)bytes;
#endif
}

static void enter_stack(void *fake, const void **bottom, size_t *bytes)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(fake, bottom, bytes);
#else
	(void)fake, (void)bottom, (void)bytes;
#endif
}

/*
 * A sanitizer follows swapcontext.  Without one longjmp switches tasks that have begun: it makes no
 * system call, and tasks are switched millions of times.
 */
#ifdef __SANITIZE_ADDRESS__
static void to_task(struct task *t)
{
	swapcontext(&v.scheduler, &t->context);
}

static void to_scheduler(struct task *t)
{
	swapcontext(&t->context, &v.scheduler);
}
#else
static void to_task(struct task *t)
{
	if (_setjmp(v.jump))
		return;
	if (t->begun)
		_longjmp(t->jump, 1);
	t->begun = true;
	setcontext(&t->context);
}

static void to_scheduler(struct task *t)
{
	if (!_setjmp(t->jump))
		_longjmp(v.jump, 1);
}
#endif

static void task_main(void)
{
	struct task *t = v.current;

	enter_stack(NULL, &v.bottom, &v.bytes);
	if (t->thread)
		t->thread(t->arg);
	else
		t->run(t->arg);
	virtual_leave();
}

static void resume(struct task *t)
{
	v.current = t;
	hca_fabric_member = t->member;
	errno = t->error;
	leave_stack(&v.fake_stack, t->stack, STACK_BYTES);
	to_task(t);
	enter_stack(v.fake_stack, NULL, NULL);
	v.current = NULL;
}

static void say_where(const struct task *t)
{
	static const char *const words[] = { "looks again and again", "waits for a word",
					     "waits for a descriptor", "sleeps",
					     "waits for a thread", "has ended" };
	void *frame[24];
	int n = backtrace(frame, 24);

	fprintf(stderr, "%s (member %u) %s", t->name, t->member, words[t->state]);
	if (t->state != RUNS && t->until_ns != UINT64_MAX)
		fprintf(stderr, ", until %llu ns",
			(unsigned long long)(t->until_ns - VIRTUAL_START_NS));
	fputs(":\n", stderr);
	fflush(stderr);
	if (n > 3)
		backtrace_symbols_fd(frame + 3, n - 3, STDERR_FILENO);
}

/* Give the others their turns; returns when the state is RUNS again. */
static void change_places(struct task *t)
{
	do {
		t->error = errno;
		leave_stack(t->state == ENDED ? NULL : &t->fake_stack, v.bottom, v.bytes);
		to_scheduler(t);
		enter_stack(t->fake_stack, &v.bottom, &v.bytes);
		if (v.reporting)
			say_where(t);
	} while (v.reporting);
}

void virtual_leave(void)
{
	v.found = v.current->waits = true;
	v.current->state = ENDED;
	change_places(v.current);
	abort();
}

/* ---- Tasks ---------------------------------------------------------------- */

static void context_make(ucontext_t *context, void *stack)
{
	getcontext(context);
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK_BYTES;
	context->uc_link = NULL;
	makecontext(context, task_main, 0);
}

static struct task *task_new(const char *name, unsigned member)
{
	struct task *t = NULL;
	unsigned i;

	for (i = 0; i < v.tasks && !t; i++)
		if (v.task[i].joined)
			t = &v.task[i];
	if (!t && v.tasks < TASKS_MAX)
		t = &v.task[v.tasks++];
	if (!t) {
		fprintf(stderr, "more than %d tasks\n", TASKS_MAX);
		abort();
	}
	if (!t->stack) {
		t->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (t->stack == MAP_FAILED)
			abort();
		mprotect(t->stack, 4096, PROT_NONE);
	}
	t->name = name;
	t->member = member;
	t->state = RUNS;
	t->thread = NULL;
	t->library = t->joined = t->begun = t->waits = false;
	t->fake_stack = NULL;
	t->error = 0;
	context_make(&t->context, t->stack);
	v.found = true;
	return t;
}

void virtual_begin(const struct virtual_config *config)
{
	const char *seed = getenv("RG_SEED");
	unsigned i;

	for (i = 0; i < v.tasks; i++)
		munmap(v.task[i].stack, STACK_BYTES);
	memset(&v, 0, sizeof(v));
	hca_service_unwanted = true;
	v.config = *config;
	v.config.rounds = v.config.rounds ? v.config.rounds : ROUNDS;
	v.config.limit_ns = v.config.limit_ns ? v.config.limit_ns : 100000000000ull;
	v.now_ns = VIRTUAL_START_NS;
	v.due_ns = UINT64_MAX;
	v.random = config->seed ? config->seed : seed ? strtoull(seed, NULL, 0) : 1;
	v.thread = pthread_self();
}

void virtual_task(const char *name, unsigned member, void (*run)(void *arg), void *arg)
{
	struct task *t = task_new(name, member);

	t->run = run;
	t->arg = arg;
}

int rg_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	struct task *t;

	if (!v.current)
		return EAGAIN;
	t = task_new("a thread of the library", v.current->member);
	t->library = true;
	t->thread = run;
	t->arg = arg;
	*thread = (pthread_t)(uintptr_t)t;
	return 0;
}

/* ---- The scheduler -------------------------------------------------------- */

static bool ready(struct task *t)
{
	struct pollfd p[] = { { .fd = t->fd, .events = POLLIN },
			      { .fd = t->other_fd, .events = POLLIN } };
	bool yes;

	switch (t->state) {
	case RUNS:
		return true;
	case WORD:
		yes = atomic_load(t->word) != t->value;
		break;
	case READABLE:
		yes = poll(p, 2, 0) > 0;
		break;
	case JOINS:
		yes = t->other->state == ENDED;
		break;
	default:
		yes = false;
	}
	if (!yes && (t->until_ns > v.now_ns || t->state == ENDED))
		return false;
	v.found = true;
	t->state = RUNS;
	return true;
}

static void take_turns(void)
{
	unsigned order[TASKS_MAX], n = v.tasks, i;

	for (i = 0; i < n; i++) {
		unsigned j = (unsigned)random_below(&v.random, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < n; i++)
		if (ready(&v.task[order[i]]))
			resume(&v.task[order[i]]);
}

static bool all_ended(void)
{
	unsigned i;

	for (i = 0; i < v.tasks && v.task[i].state == ENDED; i++)
		;
	return i == v.tasks;
}

static void give_up(const char *why)
{
	unsigned i;

	fprintf(stderr, "after %llu virtual ns: %s\n",
		(unsigned long long)(v.now_ns - VIRTUAL_START_NS), why);
	v.reporting = true;
	for (i = 0; i < v.tasks; i++)
		if (v.task[i].state != ENDED)
			resume(&v.task[i]);
	_exit(1);
}

static uint64_t nearest(void)
{
	uint64_t due = v.due_ns;
	unsigned i;

	for (i = 0; i < v.tasks; i++) {
		const struct task *t = &v.task[i];

		if (t->state != RUNS && t->state != ENDED && t->until_ns < due)
			due = t->until_ns;
	}
	return due;
}

/*
 * A poller polls all the time: also right before an event, and knows then that it has not
 * happened yet.
 */
static void jump(uint64_t to_ns)
{
	v.now_ns = to_ns - 1;
	take_turns();
	v.now_ns = to_ns;
	v.due_ns = UINT64_MAX;	/* tasks that still wait check again */
}

void virtual_run(void)
{
	unsigned empty = 0;

	while (!all_ended()) {
		v.found = false;
		take_turns();
		empty = v.found ? 0 : empty + 1;
		if (empty < v.config.rounds)
			continue;
		if (nearest() != UINT64_MAX) {
			jump(nearest());
			empty = 0;
		} else if (empty > DEEP_ROUNDS) {
			give_up("a deadlock: nothing is waited for by time");
		}
		if (v.now_ns - VIRTUAL_START_NS > v.config.limit_ns)
			give_up("no end within the time that the test allows");
	}
}

void virtual_found(void)
{
	v.found = true;
}

__attribute__((weak)) void virtual_returns(void)
{
}

const void *virtual_self(void)
{
	return v.current && !v.current->waits ? v.current : NULL;
}

/* ---- src/util/clock.h ------------------------------------------------------- */

uint64_t rg_now_ns(void)
{
	return v.now_ns;
}

void rg_await(uint64_t due_ns)
{
	if (due_ns > v.now_ns && due_ns < v.due_ns)
		v.due_ns = due_ns;
}

/* A thread that a test has made is none of the tasks. */
static void check_thread(void)
{
	if (pthread_equal(pthread_self(), v.thread))
		return;
	static const char text[] = "  a thread that is no task waits on the virtual clock\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		abort();
	_exit(1);
}

static struct task *wait_until(enum state state, uint64_t until_ns)
{
	struct task *t = v.current;

	check_thread();
	t->waits = true;
	t->state = state;
	t->until_ns = until_ns;
	change_places(t);
	t->waits = false;
	virtual_returns();
	return t;
}

static uint64_t after(uint64_t ns)
{
	return ns > UINT64_MAX - v.now_ns ? UINT64_MAX : v.now_ns + ns;
}

void rg_relax(uint64_t due_ns)
{
	rg_await(due_ns);
	rg_yield();
}

/* Without tasks nothing else happens: a wait for a time is over. */
void rg_yield(void)
{
	if (v.current) {
		wait_until(RUNS, 0);
	} else if (v.due_ns != UINT64_MAX) {
		v.now_ns = v.due_ns;
		v.due_ns = UINT64_MAX;
	}
}

/* Without tasks there is nothing to wait for but the time. */
void rg_sleep_ns(uint64_t ns)
{
	if (v.current)
		wait_until(SLEEPS, after(ns));
	else
		v.now_ns += ns;
}

void rg_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t most_ns, bool shared)
{
	(void)shared;
	if (!v.current)
		return;
	v.current->word = word;
	v.current->value = value;
	wait_until(WORD, after(most_ns));
}

void rg_wake_word(_Atomic uint32_t *word, bool shared)
{
	(void)word, (void)shared;	/* waiting tasks check the word */
	v.found = true;
}

int rg_wait_readable(int fd, uint64_t most_ns)
{
	return rg_wait_either(fd, -1, most_ns);
}

int rg_wait_either(int fd, int other, uint64_t most_ns)
{
	if (!v.current)
		return 0;
	v.current->fd = fd;
	v.current->other_fd = other;
	wait_until(READABLE, after(most_ns));
	return 0;
}

void rg_thread_join(pthread_t thread)
{
	struct task *other = (struct task *)(uintptr_t)thread;

	v.current->other = other;
	wait_until(JOINS, UINT64_MAX);
	other->joined = true;
}

/*
 * A task that meets a mutex which another task holds waits as tasks do: the C library's function
 * would stop all of them.
 */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int rc;

	while ((rc = pthread_mutex_trylock(mutex)) == EBUSY) {
		if (!v.current)
			abort();
		rg_yield();
	}
	return rc;
}
