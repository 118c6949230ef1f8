/*
 * test_remap_fork.c - fork, and threads, with memory that was moved onto the segment: a
 * child has its contents at the time of fork, and later writes of either are private.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../page.h"
#include "cmocka_all.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/remap_int.h"

enum { PAGES = 64, PATIENCE_S = 120 };

/* Under a sanitizer no call is heard: then the test reports calls. */
static bool watched;

static void tell(enum rg_mem_call call, const void *at, size_t bytes)
{
	if (!watched)
		hca_remap_hear(call, (uintptr_t)at, bytes);
}

static unsigned char *fresh(size_t pages)
{
	void *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void move(void *at, size_t bytes)
{
	struct hca_moved m = { .start = 0 };

	hca_remap(&m, at, bytes, false);
	assert_int_equal(m.end - m.start, bytes);
	hca_moved_drop(&m);
}

static bool all(const unsigned char *at, unsigned char value, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* PAGES of 3: the second half is moved, and half of that is untouched. */
static unsigned char *partly_moved(void)
{
	unsigned char *at = fresh(PAGES);

	memset(at, 3, PAGES / 4 * 3 * PAGE);
	move(at + PAGES / 2 * PAGE, PAGES / 2 * PAGE);
	return at;
}

static bool is_as_before(const unsigned char *at)
{
	return all(at, 3, PAGES / 4 * 3 * PAGE) && all(at + PAGES / 4 * 3 * PAGE, 0,
						       PAGES / 4 * PAGE);
}

/* ---- A child ------------------------------------------------------------- */

/* Run in a child, which continues when the parent has written its part. */
static int in_child(int (*run)(unsigned char *at), unsigned char *at)
{
	int status, go[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(PATIENCE_S);
		close(go[1]);
		_exit(read(go[0], &byte, 1) == 1 ? run(at) : 99);
	}
	memset(at, 7, PAGES * PAGE);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	close(go[0]);
	close(go[1]);
	return WEXITSTATUS(status);
}

static int look(unsigned char *at)
{
	return !is_as_before(at);
}

static int look_and_write(unsigned char *at)
{
	if (!is_as_before(at))
		return 1;
	memset(at, 9, PAGES * PAGE);
	return all(at, 9, PAGES * PAGE) ? 0 : 2;
}

static int discard(unsigned char *at)
{
	tell(RG_MEM_DISCARD, at, PAGES * PAGE);
	if (madvise(at, PAGES * PAGE, MADV_DONTNEED))
		return 1;
	return all(at, 0, PAGES * PAGE) ? 0 : 2;
}

static int resize(unsigned char *at)
{
	unsigned char *to;

	tell(RG_MEM_MOVE, at, PAGES * PAGE);
	to = mremap(at, PAGES * PAGE, 10 * PAGES * PAGE, MREMAP_MAYMOVE);
	if (to == MAP_FAILED)
		return 1;
	return is_as_before(to) && all(to + PAGES * PAGE, 0, 9 * PAGES * PAGE) ? 0 : 2;
}

static int unmap(unsigned char *at)
{
	tell(RG_MEM_UNMAP, at, PAGES * PAGE);
	return munmap(at, PAGES * PAGE) != 0;
}

/* The child has a segment of its own, to which it moves the same memory, and a child. */
static int go_on(unsigned char *at)
{
	if (!is_as_before(at))
		return 1;
	move(at, PAGES * PAGE);
	if (!is_as_before(at))
		return 2;
	if (in_child(look_and_write, at))
		return 3;
	return all(at, 7, PAGES * PAGE) ? 0 : 4;
}

static int (*const deeds[])(unsigned char *at) = {
	look, look_and_write, discard, resize, unmap, go_on,
};

static void test_child(void **state)
{
	unsigned char *at;
	unsigned i;

	for (i = 0; i < sizeof(deeds) / sizeof(*deeds); i++) {
		at = partly_moved();
		assert_int_equal(in_child(deeds[i], at), 0);
		assert_true(all(at, 7, PAGES * PAGE));
		tell(RG_MEM_UNMAP, at, PAGES * PAGE);
		munmap(at, PAGES * PAGE);
	}
}

/* Memory that fork has made private is moved again, and again a child has its snapshot. */
static void test_again(void **state)
{
	unsigned char *at = partly_moved();
	unsigned i;

	for (i = 0; i < sizeof(deeds) / sizeof(*deeds); i++) {
		memset(at, 3, PAGES / 4 * 3 * PAGE);
		memset(at + PAGES / 4 * 3 * PAGE, 0, PAGES / 4 * PAGE);
		move(at, PAGES * PAGE);
		assert_true(is_as_before(at));
		assert_int_equal(in_child(deeds[i], at), 0);
		assert_true(all(at, 7, PAGES * PAGE));
	}
	/* In the parent, too, it is ordinary memory. */
	assert_int_equal(in_child(look, partly_moved()), 0);
	assert_int_equal(discard(at), 0);
	memset(at, 3, PAGES / 4 * 3 * PAGE);
	move(at, PAGES / 2 * PAGE);
	assert_int_equal(resize(at), 0);
}

static int resize_unchanging(unsigned char *at)
{
	return hca_remap_state.ranges.turn & 1 ? 5 : resize(at);
}

/*
 * Another thread was changing the set of moved ranges at the fork: the child finds them anew, and so
 * its mremap of one works.
 */
static void test_changing(void **state)
{
	unsigned char *at = partly_moved();

	atomic_fetch_add(&hca_remap_state.ranges.turn, 1);
	assert_int_equal(in_child(resize_unchanging, at), 0);
	assert_int_equal(in_child(go_on, partly_moved()), 0);
	atomic_fetch_add(&hca_remap_state.ranges.turn, 1);
	assert_true(all(at, 7, PAGES * PAGE));
	tell(RG_MEM_UNMAP, at, PAGES * PAGE);
	munmap(at, PAGES * PAGE);
}

static int killed(unsigned char *at)
{
	raise(SIGKILL);
	return 0;
}

/* A child that dies at once, and a fork that fails, change nothing. */
static void test_death(void **state)
{
	unsigned char *at = partly_moved();
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(killed(at));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_true(is_as_before(at));
	move(at, PAGES * PAGE);
	assert_true(is_as_before(at));
	tell(RG_MEM_UNMAP, at, PAGES * PAGE);
	munmap(at, PAGES * PAGE);
}

/* ---- Who maps it ------------------------------------------------------------ */

static struct {
	struct hca_moved m;
	unsigned away, back, waits;
} seen;

static void note(struct hca_moved *m)
{
	assert_int_equal(m->start, m->end);
	*(m->moving ? &seen.away : &seen.back) += 1;
}

static void note_wait(void)
{
	assert_true(seen.m.moving);
	seen.waits++;
}

static void test_quiesce(void **state)
{
	unsigned char *at = partly_moved();

	seen.m.changed = note;
	hca_remap_quiesce = note_wait;
	assert_true(hca_remap_again(&seen.m, at + PAGES / 2 * PAGE, PAGES / 2 * PAGE));
	assert_int_equal(in_child(look, at), 0);
	assert_int_equal(seen.away, 1);
	assert_int_equal(seen.waits, 1);
	assert_int_equal(seen.back, 1);
	/* No process has it mapped now. */
	assert_int_equal(in_child(unmap, at), 0);
	assert_int_equal(seen.waits, 1);
	hca_remap_quiesce = NULL;
	hca_moved_drop(&seen.m);
	tell(RG_MEM_UNMAP, at, PAGES * PAGE);
	munmap(at, PAGES * PAGE);
}

/* ---- Threads ------------------------------------------------------------- */

static _Atomic bool stop;

/* Counts in every page, and misses no count of its own. */
static void *count(void *arg)
{
	volatile unsigned char *at = arg;
	uint64_t round = 0;
	size_t i;

	while (!atomic_load(&stop)) {
		for (i = 0; i < PAGES; i++) {
			volatile uint64_t *word = (volatile uint64_t *)(at + i * PAGE);

			if (*word != round)
				return arg;
			*word = round + 1;
		}
		round++;
	}
	return NULL;
}

static void *fork_often(void *arg)
{
	unsigned char *at = arg;
	unsigned i;
	int status;

	for (i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			memset(at, 9, PAGES * PAGE);
			_exit(all(at, 9, PAGES * PAGE) ? 0 : 1);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return arg;
	}
	return NULL;
}

/* No write of a thread is lost while its pages are moved back together with others. */
static void test_threads_back(void **state)
{
	enum { ROUNDS = 30 };
	struct hca_moved m = { .start = 0 };
	unsigned char *at = fresh(PAGES), *other;
	pthread_t writer;
	unsigned round;
	void *failed;

	if (!watched)
		skip();
	for (round = 0; round < ROUNDS; round++) {
		other = partly_moved();
		memset(at, 0, PAGES * PAGE);
		hca_moved_none(&m, at, PAGES * PAGE);
		assert_null(hca_remap_requested(&m, at, PAGES * PAGE, __builtin_frame_address(0)));
		assert_int_equal(m.end - m.start, PAGES * PAGE);
		atomic_store(&stop, false);
		assert_int_equal(pthread_create(&writer, NULL, count, at), 0);
		usleep(500);
		hca_remap_back(at + PAGE + 1, PAGE);
		hca_remap_back(at, PAGES * PAGE);
		usleep(500);
		atomic_store(&stop, true);
		pthread_join(writer, &failed);
		assert_null(failed);
		assert_int_equal(m.start, m.end);
		assert_false(m.moving);
		hca_moved_drop(&m);
		hca_remap_back(other, PAGES * PAGE);
		assert_true(is_as_before(other));
		munmap(other, PAGES * PAGE);
	}
	munmap(at, PAGES * PAGE);
}

/* No write of a thread is lost while another thread forks. */
static void test_threads_fork(void **state)
{
	enum { WRITERS = 2, FORKERS = 3, ROUNDS = 5 };
	pthread_t writer[WRITERS], forker[FORKERS];
	unsigned char *at[WRITERS], *other;
	unsigned round, i;
	void *failed;

	for (round = 0; round < ROUNDS; round++) {
		atomic_store(&stop, false);
		other = partly_moved();
		for (i = 0; i < WRITERS; i++) {
			at[i] = fresh(PAGES);
			move(at[i], PAGES * PAGE);
			assert_int_equal(pthread_create(&writer[i], NULL, count, at[i]), 0);
		}
		for (i = 0; i < FORKERS; i++)
			assert_int_equal(pthread_create(&forker[i], NULL, fork_often, other), 0);
		for (i = 0; i < FORKERS; i++) {
			pthread_join(forker[i], &failed);
			assert_null(failed);
		}
		assert_true(is_as_before(other));
		atomic_store(&stop, true);
		for (i = 0; i < WRITERS; i++) {
			pthread_join(writer[i], &failed);
			assert_null(failed);
			tell(RG_MEM_UNMAP, at[i], PAGES * PAGE);
			munmap(at[i], PAGES * PAGE);
		}
		tell(RG_MEM_UNMAP, other, PAGES * PAGE);
		munmap(other, PAGES * PAGE);
	}
}

/* Allocates, moves what it has, and frees: mallocs of several threads hear of it. */
static void *allocate(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg, i;

	for (i = 0; i < 400; i++) {
		size_t bytes = (size_t)(rand_r(&seed) % 60 + 2) * PAGE;
		struct hca_moved m = { .start = 0 };
		unsigned char *at = malloc(bytes);

		if (!at)
			return &stop;
		memset(at, (int)i, bytes);
		hca_remap(&m, at, bytes, false);
		at = realloc(at, 2 * bytes);
		if (!at || !all(at, (unsigned char)i, bytes))
			return &stop;
		hca_moved_drop(&m);
		free(at);
	}
	return NULL;
}

static void test_threads_allocate(void **state)
{
	enum { THREADS = 4 };
	pthread_t thread[THREADS];
	unsigned char *at = partly_moved();
	uintptr_t i;
	void *failed;

	/* A sanitizer has its own realloc, which is not heard. */
	if (!watched)
		skip();
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, allocate, (void *)(i + 1)), 0);
	assert_null(fork_often(at));
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
}

/* ---- Signals ------------------------------------------------------------- */

static unsigned char *handlers;
static _Atomic unsigned handled;

static void handle(int number)
{
	if (handlers)
		munmap(handlers, PAGE);
	handlers = NULL;
	atomic_fetch_add(&handled, 1);
}

/* A handler that unmaps moved memory waits for no lock that its own thread holds. */
static void test_signal(void **state)
{
	struct sigaction act = { .sa_handler = handle };
	unsigned char *at = fresh(PAGES);
	unsigned i;

	if (!watched)
		skip();
	sigaction(SIGUSR1, &act, NULL);
	for (i = 0; i < 200; i++) {
		unsigned char *page = fresh(1);
		pid_t pid;

		move(page, PAGE);
		handlers = page;
		pid = vfork();
		if (pid == 0) {
			kill(getppid(), SIGUSR1);
			_exit(0);
		}
		move(at, PAGES * PAGE);
		assert_int_equal(madvise(at, PAGES * PAGE, MADV_DONTNEED), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	assert_true(atomic_load(&handled) > 0);
}

static int watch(void **state)
{
	alarm(PATIENCE_S);
	hca_memory_fd();
	watched = hca_remap_watch();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child), cmocka_unit_test(test_again),
		cmocka_unit_test(test_death), cmocka_unit_test(test_quiesce),
		cmocka_unit_test(test_changing),
		cmocka_unit_test(test_threads_back), cmocka_unit_test(test_threads_fork),
		cmocka_unit_test(test_threads_allocate), cmocka_unit_test(test_signal),
	};

	return cmocka_run_group_tests(tests, watch, NULL);
}
