/* test_memory.c - the arena, remapping in place, and both after fork. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../page.h"
#include "cmocka_all.h"
#include "softhca/base/maps.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/pinned.h"
#include "softhca/pages/remap.h"
#include "softhca/softhca.h"

/* Read an address of this process as a peer would. */
static void read_as_peer(const void *addr, void *to, size_t bytes)
{
	assert_int_equal(pread(hca_memory_fd(), to, bytes, (off_t)(uintptr_t)addr), bytes);
}

static void remap(void *at, size_t bytes, bool edges, uint64_t *start, uint64_t *end)
{
	struct hca_moved m = { .start = 0 };

	hca_remap(&m, at, bytes, edges);
	*start = m.start;
	*end = m.end;
	hca_moved_drop(&m);
}

static bool is_done(void *at, size_t bytes)
{
	struct hca_moved m = { .start = 0 };
	bool done = hca_remap_again(&m, at, bytes);

	hca_moved_drop(&m);
	return done;
}

static unsigned char *fresh(size_t pages)
{
	void *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static bool all(const unsigned char *at, unsigned char value, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* ---- The arena ----------------------------------------------------------- */

static void test_arena(void **state)
{
	unsigned char *a = softhca_arena_alloc(10000), *b = softhca_arena_alloc(1), *c;
	unsigned char byte;

	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal((uintptr_t)a % PAGE, 0);
	assert_true(all(a, 0, 10000));
	memset(a, 7, 10000);
	read_as_peer(a + 9999, &byte, 1);
	assert_int_equal(byte, 7);
	assert_true(softhca_arena_contains(a, 10000));
	assert_true(hca_memory_in_arena(a + 100, 9000));
	assert_false(hca_memory_in_arena(a, (size_t)1 << 40));
	assert_false(softhca_arena_contains(&byte, 1));
	softhca_arena_free(a);
	assert_false(hca_memory_in_arena(a, 1));
	/* The same address again, without its old contents. */
	c = softhca_arena_alloc(10000);
	assert_ptr_equal(c, a);
	assert_true(all(c, 0, 10000));
	softhca_arena_free(c);
	softhca_arena_free(b);
	softhca_arena_free(&byte);	/* not ours: nothing happens */
	assert_null(softhca_arena_alloc(SIZE_MAX));
	assert_null(softhca_arena_alloc(SIZE_MAX - PAGE));
}

static void test_arena_many(void **state)
{
	unsigned char *p[200];
	unsigned round, i;

	srand(1);
	memset(p, 0, sizeof(p));
	for (round = 0; round < 5000; round++) {
		i = (unsigned)rand() % 200;
		if (p[i]) {
			assert_true(all(p[i], (unsigned char)i, 1 + i * 40));
			softhca_arena_free(p[i]);
			p[i] = NULL;
		} else {
			p[i] = softhca_arena_alloc(1 + i * 40);
			assert_non_null(p[i]);
			assert_true(all(p[i], 0, 1 + i * 40));
			memset(p[i], (int)i, 1 + i * 40);
		}
	}
	for (i = 0; i < 200; i++)
		softhca_arena_free(p[i]);
}

/* ---- Remapping ----------------------------------------------------------- */

static void test_interior(void **state)
{
	unsigned char *at = fresh(6), copy[6 * PAGE_MOST];
	uint64_t start, end;
	unsigned i;

	for (i = 0; i < 6 * PAGE; i++)
		at[i] = (unsigned char)(i * 7 + i / PAGE);
	memcpy(copy, at, 6 * PAGE);
	remap(at + 100, 4 * PAGE, false, &start, &end);
	assert_int_equal(start, (uintptr_t)at + PAGE);
	assert_int_equal(end, (uintptr_t)at + 4 * PAGE);
	assert_memory_equal(at, copy, 6 * PAGE);
	at[2 * PAGE] = 99;
	read_as_peer(at + 2 * PAGE, copy, 1);
	assert_int_equal(copy[0], 99);
	/* The process sees peers' writes. */
	copy[0] = 42;
	assert_int_equal(pwrite(hca_memory_fd(), copy, 1, (off_t)(uintptr_t)(at + 3 * PAGE)), 1);
	assert_int_equal(at[3 * PAGE], 42);
	munmap(at, 6 * PAGE);
}

static void test_edges(void **state)
{
	unsigned char *at = fresh(3), byte;
	uint64_t start, end;

	memset(at, 5, 3 * PAGE);
	/* Not a whole page: nothing without edges, the page with. */
	remap(at + PAGE + 10, 100, false, &start, &end);
	assert_int_equal(start, end);
	remap(at + PAGE + 10, 100, true, &start, &end);
	assert_int_equal(start, (uintptr_t)at + PAGE + 10);
	assert_int_equal(end, (uintptr_t)at + PAGE + 110);
	read_as_peer(at + PAGE + 10, &byte, 1);
	assert_int_equal(byte, 5);
	assert_true(all(at, 5, 3 * PAGE));
	munmap(at, 3 * PAGE);
}

/* Again, overlapping, and over memory that is partly moved already. */
static void test_overlapping(void **state)
{
	unsigned char *at = fresh(64);
	uint64_t start, end;
	unsigned i;

	for (i = 0; i < 64 * PAGE; i += 100)
		at[i] = (unsigned char)(i / 100);
	remap(at + 10 * PAGE, 10 * PAGE, false, &start, &end);
	remap(at + 30 * PAGE, 5 * PAGE, false, &start, &end);
	remap(at, 64 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 64 * PAGE);
	remap(at, 64 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 64 * PAGE);
	for (i = 0; i < 64 * PAGE; i += 100)
		assert_int_equal(at[i], (unsigned char)(i / 100));
	munmap(at, 64 * PAGE);
}

/* Another mapping at the address of a former one starts with its own contents. */
static void test_address_reused(void **state)
{
	unsigned char *at = fresh(8), *again;
	uint64_t start, end;

	memset(at, 1, 8 * PAGE);
	remap(at, 8 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 8 * PAGE);
	munmap(at, 8 * PAGE);
	again = mmap(at, 8 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(again, at);
	again[3 * PAGE] = 9;		/* the others were never touched: zeros */
	remap(again, 8 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 8 * PAGE);
	assert_int_equal(again[3 * PAGE], 9);
	again[3 * PAGE] = 0;
	assert_true(all(again, 0, 8 * PAGE));
	munmap(again, 8 * PAGE);
}

/* Memory of other kinds stays where it is. */
static void test_not_movable(void **state)
{
	unsigned char stack[3 * PAGE_MOST], *file, *hole, *only;
	uint64_t start, end;
	FILE *f = tmpfile();

	remap(stack, sizeof(stack), true, &start, &end);
	assert_int_equal(start, end);
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), 4 * PAGE), 0);
	file = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(f), 0);
	remap(file, 4 * PAGE, true, &start, &end);
	assert_int_equal(start, end);
	munmap(file, 4 * PAGE);
	fclose(f);
	hole = fresh(4);
	munmap(hole + PAGE, PAGE);
	remap(hole, 4 * PAGE, true, &start, &end);
	assert_int_equal(start, end);
	munmap(hole, 4 * PAGE);
	only = fresh(4);
	mprotect(only + PAGE, PAGE, PROT_READ);
	remap(only, 4 * PAGE, true, &start, &end);
	assert_int_equal(start, end);
	munmap(only, 4 * PAGE);
	remap(NULL, 0, true, &start, &end);
	assert_int_equal(start, end);
}

struct stack {			/* an array on a thread's stack, until told to end */
	pthread_barrier_t there, done;
	unsigned char *array;
};

static void *stand(void *argument)
{
	unsigned char array[8 * PAGE_MOST];
	struct stack *s = argument;

	s->array = array;
	pthread_barrier_wait(&s->there);
	pthread_barrier_wait(&s->done);
	return NULL;
}

/* The thread writes to it at any time: a write during the move would be lost. */
static void test_thread_stack(void **state)
{
	uint64_t start, end;
	pthread_t thread;
	struct stack s;

	pthread_barrier_init(&s.there, NULL, 2);
	pthread_barrier_init(&s.done, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, stand, &s), 0);
	pthread_barrier_wait(&s.there);
	remap(s.array, 8 * PAGE, false, &start, &end);
	assert_int_equal(start, end);
	pthread_barrier_wait(&s.done);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&s.there);
	pthread_barrier_destroy(&s.done);
}

/* A real device goes on with the pages that it found: they stay. */
static void test_pinned(void **state)
{
	unsigned char *at = fresh(8), *moved = fresh(4);
	struct hca_pinned *p = hca_pin(at + 3 * PAGE + 10, 100), *q;
	uint64_t start, end;
	int owner;

	assert_non_null(p);
	hca_pin_set_owner(p, &owner);
	assert_ptr_equal(hca_pin_of(&owner), p);
	remap(at, 8 * PAGE, false, &start, &end);
	assert_int_equal(start, end);
	remap(at + 3 * PAGE, PAGE, true, &start, &end);
	assert_int_equal(start, end);
	remap(at + 4 * PAGE, 4 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 4 * PAGE);
	hca_unpin(p);
	assert_null(hca_pin_of(&owner));
	remap(at, 8 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 8 * PAGE);
	/* Memory that the device found on the segment already may be registered again. */
	remap(moved, 4 * PAGE, false, &start, &end);
	q = hca_pin(moved, 4 * PAGE);
	remap(moved, 4 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 4 * PAGE);
	hca_unpin(q);
	munmap(moved, 4 * PAGE);
	munmap(at, 8 * PAGE);
}

/* Moved and unmapped memory does not occupy the segment for ever. */
static void test_sweep(void **state)
{
	enum { PAGES = 4096, ROUNDS = 40 };	/* 16 MiB, 40 times */
	struct { unsigned long blocks; } most = { 0 };
	unsigned round;

	for (round = 0; round < ROUNDS; round++) {
		unsigned char *at = fresh(PAGES);
		uint64_t start, end;
		off_t data = 0, hole;
		unsigned long used = 0;

		memset(at, 1, PAGES * PAGE);
		/* Other addresses each time: keep one page of each. */
		remap(at, PAGES * PAGE, false, &start, &end);
		assert_int_equal(end - start, PAGES * PAGE);
		munmap(at + PAGE, (PAGES - 1) * PAGE);
		for (; (data = lseek(hca_memory_fd(), data, SEEK_DATA)) >= 0; data = hole) {
			hole = lseek(hca_memory_fd(), data, SEEK_HOLE);
			used += (unsigned long)(hole - data) / PAGE;
		}
		if (used > most.blocks)
			most.blocks = used;
		assert_int_equal(at[0], 1);
	}
	/* 640 MiB went through; only memory since the last sweep stays. */
	assert_true(most.blocks < 350ul << 20 >> 12);
}

/* ---- Fork ---------------------------------------------------------------- */

static int in_child(int (*run)(unsigned char *at), unsigned char *at)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(run(at));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int scribble(unsigned char *at)
{
	if (at[0] != 3 || at[PAGE] != 3)
		return 1;
	memset(at, 8, 4 * PAGE);
	return at[PAGE] == 8 ? 0 : 2;
}

static int own_segment(unsigned char *at)
{
	uint64_t start, end;
	unsigned char *mine = softhca_arena_alloc(PAGE), byte;

	/* A segment and an arena of its own; the inherited one is just memory. */
	if (!mine || hca_memory_in_arena(at, 1))
		return 1;
	mine[0] = 1;
	memset(at, 8, 4 * PAGE);
	remap(at, 4 * PAGE, false, &start, &end);
	if (pread(hca_memory_fd(), &byte, 1, (off_t)(uintptr_t)mine) != 1 || byte != 1)
		return 2;
	return 0;
}

static void test_fork_private(void **state)
{
	unsigned char *at = fresh(4);
	uint64_t start, end;

	memset(at, 3, 4 * PAGE);
	remap(at, 4 * PAGE, false, &start, &end);
	assert_int_equal(end - start, 4 * PAGE);
	assert_int_equal(in_child(scribble, at), 0);
	assert_true(all(at, 3, 4 * PAGE));
	assert_int_equal(in_child(own_segment, at), 0);
	assert_true(all(at, 3, 4 * PAGE));
	munmap(at, 4 * PAGE);
}

/* Memory next to the arena is one mapping with it, and still not the arena's. */
static void test_beside_arena(void **state)
{
	unsigned char *arena = softhca_arena_alloc(PAGE), *start = (void *)hca_memory.start, *at;
	uint64_t from, to;

	assert_non_null(arena);
	at = mmap(start - 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED || arena != start)
		skip();
	memset(at, 3, 4 * PAGE);
	remap(at, 4 * PAGE, false, &from, &to);
	assert_int_equal(to - from, 4 * PAGE);
	assert_true(is_done(at, 4 * PAGE));
	remap(at, 4 * PAGE, false, &from, &to);
	assert_int_equal(to - from, 4 * PAGE);
	assert_int_equal(in_child(scribble, at), 0);
	assert_true(all(at, 3, 4 * PAGE));
	munmap(at, 4 * PAGE);
	softhca_arena_free(arena);
}

static int write_arena(unsigned char *at)
{
	at[0] = 77;
	return 0;
}

static void test_fork_arena(void **state)
{
	unsigned char *at = softhca_arena_alloc(PAGE);

	assert_int_equal(in_child(write_arena, at), 0);
	assert_int_equal(at[0], 77);	/* shared, as documented */
	softhca_arena_free(at);
}

/* ---- Maps ---------------------------------------------------------------- */

static void test_maps_check(void **state)
{
	unsigned char *at = fresh(4);

	assert_int_equal(hca_maps_check(at, 4 * PAGE, true), 0);
	assert_int_equal(hca_maps_check(at + 1, 4 * PAGE - 1, true), 0);
	mprotect(at + 2 * PAGE, PAGE, PROT_READ);
	assert_int_equal(hca_maps_check(at, 4 * PAGE, false), 0);
	assert_int_equal(hca_maps_check(at, 4 * PAGE, true), EFAULT);
	mprotect(at + 2 * PAGE, PAGE, PROT_NONE);
	assert_int_equal(hca_maps_check(at, 4 * PAGE, false), EFAULT);
	munmap(at + 2 * PAGE, PAGE);
	assert_int_equal(hca_maps_check(at, 4 * PAGE, false), EFAULT);
	assert_int_equal(hca_maps_check(at, 2 * PAGE, true), 0);
	assert_int_equal(hca_maps_check(NULL, 1, false), EFAULT);
	assert_int_equal(hca_maps_check(NULL, 0, true), 0);
	munmap(at, 4 * PAGE);
}

/* The kernel's request and its printed list say the same. */
static void test_maps_both_ways(void **state)
{
	struct hca_maps by_query, by_text;
	struct hca_map a, b;
	bool more;

	assert_int_equal(hca_maps_open(0, 1ull << 47, &by_query), 0);
	assert_int_equal(hca_maps_open(0, 1ull << 47, &by_text), 0);
	by_text.text = true;
	do {
		more = hca_maps_next(&by_query, &a);
		assert_int_equal(hca_maps_next(&by_text, &b), more);
		if (!more)
			break;
		assert_int_equal(a.start, b.start);
		assert_int_equal(a.end, b.end);
		assert_int_equal(a.offset, b.offset);
		assert_int_equal(a.inode, b.inode);
		assert_int_equal(a.readable, b.readable);
		assert_int_equal(a.writable, b.writable);
		assert_int_equal(a.executable, b.executable);
		assert_int_equal(a.shared, b.shared);
		assert_int_equal(a.stack, b.stack);
	} while (more);
	hca_maps_close(&by_query);
	hca_maps_close(&by_text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arena), cmocka_unit_test(test_arena_many),
		cmocka_unit_test(test_interior), cmocka_unit_test(test_edges),
		cmocka_unit_test(test_overlapping), cmocka_unit_test(test_address_reused),
		cmocka_unit_test(test_not_movable), cmocka_unit_test(test_thread_stack),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_fork_private), cmocka_unit_test(test_beside_arena),
		 cmocka_unit_test(test_fork_arena),
		cmocka_unit_test(test_maps_check), cmocka_unit_test(test_maps_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
