/* test_clock.c - the virtual clock itself: order, jumps, deadlocks, replays. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "virtual.h"

static char trace[512];
static _Atomic uint32_t word;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *who)
{
	size_t n = strlen(trace);

	snprintf(trace + n, sizeof(trace) - n, "%s@%llu ", who,
		 (unsigned long long)(rg_now_ns() - VIRTUAL_START_NS));
}

static void sleeper(void *name)
{
	rg_sleep_ns(*(char *)name == 'a' ? 300 : 200);
	note(name);
	rg_sleep_ns(100);
	note(name);
}

static void run_two(uint64_t seed, void (*one)(void *), void (*other)(void *))
{
	*trace = '\0';
	atomic_store(&word, 0);
	virtual_begin(&(struct virtual_config){ .seed = seed });
	virtual_task("a", 0, one, "a");
	virtual_task("b", 0, other, "b");
	virtual_run();
}

static void test_sleep(void **state)
{
	(void)state;
	run_two(1, sleeper, sleeper);
	/* b first; the seed decides the first at 300. */
	assert_memory_equal(trace, "b@200 ", 6);
	assert_non_null(strstr(trace, "a@300 "));
	assert_non_null(strstr(trace, "b@300 "));
	assert_string_equal(strstr(trace, "a@400 "), "a@400 ");
}

static void test_seeds(void **state)
{
	char before[sizeof(trace)];
	bool differ = false;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		run_two(seed, sleeper, sleeper);
		differ |= seed > 1 && strcmp(before, trace) != 0;
		memcpy(before, trace, sizeof(trace));
		run_two(seed, sleeper, sleeper);
		assert_string_equal(trace, before);
	}
	assert_true(differ);
}

static void waiter(void *name)
{
	rg_wait_word(&word, 0, 1000, false);
	note(name);
	/* A comparison with a future time is enough to run at that time. */
	while (!rg_reached(VIRTUAL_START_NS + 750, rg_now_ns()))
		rg_yield();
	note(name);
	rg_wait_word(&word, atomic_load(&word), 250, false);
	note(name);
}

static void waker(void *name)
{
	rg_relax(VIRTUAL_START_NS + 40);
	while (!rg_reached(VIRTUAL_START_NS + 40, rg_now_ns()))
		rg_relax(VIRTUAL_START_NS + 40);
	note(name);
	atomic_store(&word, 1);
	rg_wake_word(&word, false);
}

static void test_wait(void **state)
{
	(void)state;
	run_two(3, waiter, waker);
	assert_string_equal(trace, "b@40 a@40 a@750 a@1000 ");
}

static void holder(void *name)
{
	pthread_mutex_lock(&mutex);
	note(name);
	rg_sleep_ns(50);
	pthread_mutex_unlock(&mutex);
}

static void test_mutex(void **state)
{
	(void)state;
	run_two(1, holder, holder);
	assert_non_null(strstr(trace, "@0 "));
	assert_non_null(strstr(trace, "@50 "));
}

static void *thread(void *arg)
{
	rg_sleep_ns(70);
	note("t");
	return arg;
}

static void starter(void *name)
{
	pthread_t t;

	assert_int_equal(rg_thread_start(&t, thread, NULL), 0);
	rg_thread_join(t);
	note(name);
}

static void test_thread(void **state)
{
	(void)state;
	run_two(1, starter, sleeper);
	assert_string_equal(trace, "t@70 a@70 b@200 b@300 ");
}

static void forever(void *name)
{
	(void)name;
	for (;;)
		rg_yield();
}

static void never(void *name)
{
	(void)name;
	rg_wait_word(&word, 0, UINT64_MAX, false);
}

static void ticks(void *name)
{
	(void)name;
	for (;;)
		rg_sleep_ns(1000000000);
}

/* The output of a run in a child before it exits with 1. */
static void dies(void (*one)(void *), void (*other)(void *), const char *words[])
{
	static char text[16384];
	int pipe_[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(pipe_), 0);
	pid = fork();
	if (pid == 0) {
		dup2(pipe_[1], STDERR_FILENO);
		alarm(60);
		run_two(1, one, other);
		_exit(0);
	}
	close(pipe_[1]);
	while ((got = read(pipe_[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(pipe_[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	for (; *words; words++)
		assert_non_null(strstr(text, *words));
}

static void test_deadlock(void **state)
{
	(void)state;
	dies(forever, never, (const char *[]){ "a deadlock", "a (member 0) looks again and again",
					       "b (member 0) waits for a word", NULL });
	dies(ticks, never, (const char *[]){ "no end within the time", "a (member 0) sleeps",
					     "b (member 0) waits for a word", NULL });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_mutex),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_deadlock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
