/*
 * test_remap.c - memory that was moved onto the segment remains ordinary memory: each
 * call that changes mappings has the effect that it has on private anonymous memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../page.h"
#include "cmocka_all.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/remap.h"

enum { PAGES = 16 };

/* Under a sanitizer no call is heard: then the test reports calls. */
static bool watched;

static void tell(enum rg_mem_call call, const void *at, size_t bytes)
{
	if (!watched)
		hca_remap_hear(call, (uintptr_t)at, bytes);
}

static int advise(void *at, size_t bytes, int advice)
{
	tell(RG_MEM_DISCARD, at, bytes);
	return madvise(at, bytes, advice);
}

static int unmap(void *at, size_t bytes)
{
	tell(RG_MEM_UNMAP, at, bytes);
	return munmap(at, bytes);
}

static void *resize(void *at, size_t from, size_t to, int flags, void *there)
{
	tell(RG_MEM_MOVE, at, from);
	if (flags & MREMAP_FIXED)
		tell(RG_MEM_REPLACE, there, to);
	return mremap(at, from, to, flags, there);
}

static void *place(void *at, size_t bytes, int flags, int fd)
{
	tell(RG_MEM_REPLACE, at, bytes);
	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | flags, fd, 0);
}

/* ---- Memory -------------------------------------------------------------- */

static unsigned char *fresh(size_t pages)
{
	void *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

/* The value of byte i of page p. */
static unsigned char value(size_t page, size_t i, unsigned seed)
{
	return (unsigned char)(page * 31 + i * 7 + seed + 1);
}

static void fill(unsigned char *at, size_t pages, unsigned seed)
{
	size_t i;

	for (i = 0; i < pages * PAGE; i++)
		at[i] = value(i / PAGE, i, seed);
}

/* Are pages [first, first + pages) of the filled memory at `at`? */
static bool is_filled(const unsigned char *at, size_t first, size_t pages, unsigned seed)
{
	size_t i;

	for (i = 0; i < pages * PAGE; i++)
		if (at[i] != value(first + i / PAGE, first * PAGE + i, seed))
			return false;
	return true;
}

static bool is_zero(const unsigned char *at, size_t pages)
{
	size_t i;

	for (i = 0; i < pages * PAGE; i++)
		if (at[i])
			return false;
	return true;
}

static void move(void *at, size_t bytes)
{
	struct hca_moved m = { .start = 0 };

	hca_remap(&m, at, bytes, false);
	assert_int_equal(m.end - m.start, bytes);
	hca_moved_drop(&m);
}

static bool is_moved(void *at, size_t bytes)
{
	struct hca_moved m = { .start = 0 };
	bool done = hca_remap_again(&m, at, bytes);

	hca_moved_drop(&m);
	return done;
}

/* Does the segment hold pages of this memory? */
static bool takes_memory(const void *at, size_t bytes)
{
	off_t start = (off_t)(uintptr_t)at, data = lseek(hca_memory_fd(), start, SEEK_DATA);

	return data >= 0 && data < start + (off_t)bytes;
}

/* PAGES with data, of which [4, 12) are moved. */
static unsigned char *partly_moved(unsigned seed)
{
	unsigned char *at = fresh(PAGES);

	fill(at, PAGES, seed);
	move(at + 4 * PAGE, 8 * PAGE);
	assert_true(is_filled(at, 0, PAGES, seed));
	return at;
}

/* ---- madvise ------------------------------------------------------------- */

static void test_dontneed(void **state)
{
	unsigned char *at = partly_moved(1);

	assert_int_equal(advise(at + 2 * PAGE, 4 * PAGE, MADV_DONTNEED), 0);
	assert_true(is_filled(at, 0, 2, 1));
	assert_true(is_zero(at + 2 * PAGE, 4));
	assert_true(is_filled(at + 6 * PAGE, 6, 10, 1));
	/* The neighbours are still where peers have them; the removed pages are not kept. */
	assert_true(is_moved(at + 6 * PAGE, 6 * PAGE));
	assert_false(is_moved(at + 5 * PAGE, PAGE));
	assert_false(takes_memory(at + 4 * PAGE, 2 * PAGE));
	assert_true(takes_memory(at + 6 * PAGE, PAGE));
	/* And again, with new data. */
	fill(at, PAGES, 2);
	move(at, PAGES * PAGE);
	assert_true(is_filled(at, 0, PAGES, 2));
	unmap(at, PAGES * PAGE);
}

static void test_advise_free(void **state)
{
	unsigned char *at = partly_moved(3);
	size_t i;

	assert_int_equal(advise(at, PAGES * PAGE, MADV_FREE), 0);
	/* The old data or zeros, both valid. */
	for (i = 0; i < PAGES; i++)
		assert_true(is_filled(at + i * PAGE, i, 1, 3) || is_zero(at + i * PAGE, 1));
	fill(at, PAGES, 4);
	assert_true(is_filled(at, 0, PAGES, 4));
	unmap(at, PAGES * PAGE);
}

/* MADV_REMOVE is for shared memory only. */
static void test_remove(void **state)
{
	unsigned char *at = partly_moved(5);

	assert_int_equal(advise(at + 4 * PAGE, 8 * PAGE, MADV_REMOVE), -1);
	assert_int_equal(errno, EINVAL);
	assert_true(is_filled(at, 0, PAGES, 5));
	unmap(at, PAGES * PAGE);
}

static int wipe_on_fork(void *at, size_t bytes)
{
	return advise(at, bytes, MADV_WIPEONFORK);
}

static void test_other_advice(void **state)
{
	unsigned char *at = partly_moved(6);

	assert_int_equal(madvise(at, PAGES * PAGE, MADV_DONTFORK), 0);
	assert_int_equal(madvise(at, PAGES * PAGE, MADV_DOFORK), 0);
	assert_int_equal(madvise(at, PAGES * PAGE, MADV_WILLNEED), 0);
	assert_int_equal(mlock(at, PAGES * PAGE), 0);
	assert_int_equal(munlock(at, PAGES * PAGE), 0);
	assert_int_equal(msync(at, PAGES * PAGE, MS_SYNC), 0);
	assert_int_equal(wipe_on_fork(at, PAGES * PAGE), 0);
	assert_true(is_filled(at, 0, PAGES, 6));
	unmap(at, PAGES * PAGE);
}

/* ---- mremap -------------------------------------------------------------- */

static void test_grow_and_shrink(void **state)
{
	unsigned char *at = partly_moved(7), *again;

	again = resize(at, PAGES * PAGE, 1000 * PAGE, MREMAP_MAYMOVE, NULL);
	assert_true(again != MAP_FAILED);
	assert_true(is_filled(again, 0, PAGES, 7));
	assert_true(is_zero(again + PAGES * PAGE, 1000 - PAGES));
	move(again + 10 * PAGE, 20 * PAGE);
	again = resize(again, 1000 * PAGE, 12 * PAGE, MREMAP_MAYMOVE, NULL);
	assert_true(again != MAP_FAILED);
	assert_true(is_filled(again, 0, 12, 7));
	assert_false(takes_memory(again + 12 * PAGE, 18 * PAGE));
	/* In place, if there is room: or not at all. */
	move(again, 12 * PAGE);
	if (resize(again, 12 * PAGE, 13 * PAGE, 0, NULL) == MAP_FAILED)
		assert_int_equal(errno, ENOMEM);
	assert_true(is_filled(again, 0, 12, 7));
	unmap(again, 13 * PAGE);
}

static void test_move_to(void **state)
{
	unsigned char *at = partly_moved(8), *to = partly_moved(9);

	assert_ptr_equal(resize(at + 2 * PAGE, 8 * PAGE, 9 * PAGE,
				MREMAP_MAYMOVE | MREMAP_FIXED, to + 3 * PAGE), to + 3 * PAGE);
	assert_true(is_filled(to, 0, 3, 9));
	assert_true(is_filled(to + 3 * PAGE, 2, 8, 8));
	assert_true(is_zero(to + 11 * PAGE, 1));
	assert_true(is_filled(to + 12 * PAGE, 12, 4, 9));
	assert_true(is_filled(at + 10 * PAGE, 10, 6, 8));
	assert_true(is_filled(at, 0, 2, 8));
	unmap(at, PAGES * PAGE);
	unmap(to, PAGES * PAGE);
}

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static void test_move_from(void **state)
{
	unsigned char *at = partly_moved(10), *to;

	to = resize(at, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (to == MAP_FAILED && errno == EINVAL)
		skip();			/* before Linux 5.7 */
	assert_true(to != MAP_FAILED);
	assert_true(is_filled(to, 0, PAGES, 10));
	assert_true(is_zero(at, PAGES));
	fill(at, PAGES, 11);
	move(at, PAGES * PAGE);
	move(to, PAGES * PAGE);
	assert_true(is_filled(at, 0, PAGES, 11));
	assert_true(is_filled(to, 0, PAGES, 10));
	unmap(at, PAGES * PAGE);
	unmap(to, PAGES * PAGE);
}

/* Pieces were moved, discarded, moved again: to mremap the memory is still one mapping. */
static void test_move_pieces(void **state)
{
	unsigned char *at = fresh(PAGES), *to;
	size_t i;

	fill(at, PAGES, 12);
	for (i = 1; i < PAGES; i += 2)
		move(at + i * PAGE, PAGE);
	for (i = 1; i < PAGES; i += 4)
		assert_int_equal(advise(at + i * PAGE, PAGE, MADV_DONTNEED), 0);
	to = resize(at, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE, NULL);
	assert_true(to != MAP_FAILED);
	for (i = 0; i < PAGES; i++)
		assert_true(i % 4 == 1 ? is_zero(to + i * PAGE, 1)
				       : is_filled(to + i * PAGE, i, 1, 12));
	/* Nothing is moved now, but all private memory was in several pieces. */
	to = resize(to, 2 * PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE, NULL);
	assert_true(to != MAP_FAILED);
	unmap(to, PAGES * PAGE);
}

/* A range of no bytes duplicates shared memory; moved memory is not shared. */
static void test_duplicate(void **state)
{
	unsigned char *at = partly_moved(13);

	assert_true(resize(at + 5 * PAGE, 0, PAGE, MREMAP_MAYMOVE, NULL) == MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_true(is_filled(at, 0, PAGES, 13));
	unmap(at, PAGES * PAGE);
}

static void test_protected(void **state)
{
	unsigned char *at = partly_moved(14), *to;

	assert_int_equal(mprotect(at, PAGES * PAGE, PROT_NONE), 0);
	to = resize(at, PAGES * PAGE, 4 * PAGES * PAGE, MREMAP_MAYMOVE, NULL);
	assert_true(to != MAP_FAILED);
	assert_int_equal(mprotect(to, PAGES * PAGE, PROT_READ), 0);
	assert_true(is_filled(to, 0, PAGES, 14));
	unmap(to, 4 * PAGES * PAGE);
}

static void test_realloc_moved(void **state)
{
	const size_t small = 1 << 20, large = 3 << 20;
	unsigned char *at = malloc(small), *page;
	size_t i, round, bytes;

	for (round = 0; round < 20; round++) {
		bytes = round % 2 ? large : small;
		at = realloc(at, bytes);
		assert_non_null(at);
		for (i = 0; round && i < small; i++)
			assert_int_equal(at[i], value(round - 1, i, 15));
		for (i = 0; i < bytes; i++)
			at[i] = value(round, i, 15);
		page = at + PAGE - (uintptr_t)at % PAGE;
		/* The sanitizers have their own realloc, which is not heard. */
		if (watched)
			move(page + round % 3 * PAGE, small / 2);
	}
	free(at);
}

/* ---- mmap, munmap, brk --------------------------------------------------- */

static void test_place(void **state)
{
	unsigned char *at = partly_moved(16);

	/* A failed call leaves the memory unchanged. */
	assert_true(place(at + 3 * PAGE, 4 * PAGE, 0, -1) == MAP_FAILED);
	assert_true(is_filled(at, 0, PAGES, 16));
	assert_true(place(at + 3 * PAGE, 4 * PAGE, MAP_ANONYMOUS, -1) != MAP_FAILED);
	assert_true(is_filled(at, 0, 3, 16));
	assert_true(is_zero(at + 3 * PAGE, 4));
	assert_true(is_filled(at + 7 * PAGE, 7, 9, 16));
	assert_true(is_moved(at + 7 * PAGE, 5 * PAGE));
	assert_false(takes_memory(at + 3 * PAGE, 4 * PAGE));
	unmap(at, PAGES * PAGE);
}

static void test_unmap(void **state)
{
	unsigned char *at = partly_moved(17);

	/* Refused: nothing changes. */
	assert_int_equal(unmap(at, SIZE_MAX - PAGE), -1);
	assert_int_equal(unmap(at, 0), -1);
	assert_int_equal(advise(at + 4 * PAGE + 1, PAGE, MADV_DONTNEED), -1);
	assert_true(is_filled(at, 0, PAGES, 17));
	assert_true(is_moved(at + 4 * PAGE, 8 * PAGE));
	/* An unaligned range might end the heap: it is moved back, perhaps in vain. */
	assert_int_equal(unmap(at + 4 * PAGE + 1, PAGE), -1);
	assert_true(is_filled(at, 0, PAGES, 17));
	assert_int_equal(unmap(at + 6 * PAGE, 2 * PAGE - 100), 0);
	assert_true(is_filled(at, 0, 6, 17));
	assert_true(is_filled(at + 8 * PAGE, 8, 8, 17));
	assert_false(takes_memory(at + 6 * PAGE, 2 * PAGE));
	assert_true(is_moved(at + 8 * PAGE, 4 * PAGE));
	/* Other memory may come there; its calls are ignored. */
	assert_true(place(at + 6 * PAGE, 2 * PAGE, MAP_ANONYMOUS, -1) == at + 6 * PAGE);
	fill(at, PAGES, 18);
	move(at, PAGES * PAGE);
	assert_true(is_filled(at, 0, PAGES, 18));
	unmap(at, PAGES * PAGE);
	assert_false(takes_memory(at, PAGES * PAGE));
}

static void test_brk(void **state)
{
	unsigned char *at;

	if (!watched)
		skip();			/* an allocator of its own uses it, perhaps */
	at = sbrk(40 * PAGE);
	assert_true(at != (void *)-1);
	at += PAGE - (uintptr_t)at % PAGE;
	fill(at, PAGES, 19);
	move(at + 2 * PAGE, 8 * PAGE);
	assert_int_equal(brk(at + 5 * PAGE + 100), 0);
	assert_true(is_filled(at, 0, 5, 19));
	assert_false(takes_memory(at + 6 * PAGE, 4 * PAGE));
	assert_int_equal(brk(at + 39 * PAGE), 0);
	assert_true(is_zero(at + 6 * PAGE, 33));
	assert_true(is_filled(at, 0, 5, 19));
	move(at, 20 * PAGE);
	assert_true(is_filled(at, 0, 5, 19));
	assert_int_equal(brk(at - PAGE), 0);
	assert_false(takes_memory(at, 20 * PAGE));
}

/* ---- What peers map ------------------------------------------------------ */

static struct {
	struct hca_moved m;
	unsigned changes;
} seen;

static void count_changes(struct hca_moved *m)
{
	assert_ptr_equal(m, &seen.m);
	seen.changes++;
}

/* A registration of several buffers: the larger remaining part is still mapped. */
static void test_shrinks(void **state)
{
	unsigned char *at = fresh(PAGES);

	fill(at, PAGES, 20);
	seen.m = (struct hca_moved){ .changed = count_changes };
	seen.changes = 0;
	hca_remap(&seen.m, at, PAGES * PAGE, false);
	unmap(at + 3 * PAGE, PAGE);
	assert_int_equal(seen.changes, 1);
	assert_int_equal(seen.m.start, (uintptr_t)at + 4 * PAGE);
	assert_int_equal(seen.m.end, (uintptr_t)at + PAGES * PAGE);
	advise(at, PAGE, MADV_DONTNEED);
	assert_int_equal(seen.changes, 1);
	advise(at + 14 * PAGE, PAGE, MADV_DONTNEED);
	assert_int_equal(seen.changes, 2);
	assert_int_equal(seen.m.start, (uintptr_t)at + 4 * PAGE);
	assert_int_equal(seen.m.end, (uintptr_t)at + 14 * PAGE);
	unmap(at, PAGES * PAGE);
	assert_int_equal(seen.m.start, seen.m.end);
	assert_int_equal(seen.changes, 3);
	hca_moved_drop(&seen.m);
}

static int watch(void **state)
{
	watched = hca_remap_watch();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dontneed), cmocka_unit_test(test_advise_free),
		cmocka_unit_test(test_remove), cmocka_unit_test(test_other_advice),
		cmocka_unit_test(test_grow_and_shrink), cmocka_unit_test(test_move_to),
		cmocka_unit_test(test_move_from), cmocka_unit_test(test_move_pieces),
		cmocka_unit_test(test_duplicate), cmocka_unit_test(test_protected),
		cmocka_unit_test(test_realloc_moved),
		cmocka_unit_test(test_place), cmocka_unit_test(test_unmap),
		cmocka_unit_test(test_brk), cmocka_unit_test(test_shrinks),
	};

	return cmocka_run_group_tests(tests, watch, NULL);
}
