/*
 * test_mr.c - the registration cache with a device that only keeps books: hits, evicted
 * and pinned entries; and memory that goes away.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../page.h"
#include "capture.h"
#include "memwatch/memwatch.h"
#include "rail/memory/mr.h"

/* The device: the live registrations, and the time to refuse. */
static struct {
	int live, made;
	size_t bytes, limit;
	int error;
} device;

static int device_attach(void *user, struct rail_mr *mr)
{
	assert_ptr_equal(user, &device);
	if (device.error)
		return device.error;
	if (device.limit && device.bytes + mr->bytes > device.limit)
		return -ENOMEM;
	device.live++;
	device.made++;
	device.bytes += mr->bytes;
	mr->on[0] = (struct ibv_mr *)mr;
	return 0;
}

static void device_detach(void *user, struct rail_mr *mr)
{
	assert_ptr_equal(user, &device);
	assert_ptr_equal(mr->on[0], mr);
	device.live--;
	device.bytes -= mr->bytes;
}

static int setup(void **state)
{
	struct rail_mr_cache *c = calloc(1, sizeof(*c));

	memset(&device, 0, sizeof(device));
	c->attach = device_attach;
	c->detach = device_detach;
	c->user = &device;
	c->max_entries = 16;
	c->max_bytes = 1 << 30;
	*state = c;
	return rail_mr_cache_init(c);
}

static int teardown(void **state)
{
	rail_mr_cache_fini(*state);
	assert_int_equal(device.live, 0);
	assert_int_equal(device.bytes, 0);
	free(*state);
	return 0;
}

static void *at(size_t page, size_t offset)
{
	return (void *)(0x10000000 + page * PAGE + offset);
}

/* Use a range once; returns the entry that served it, which may be gone. */
static struct rail_mr *touch(struct rail_mr_cache *c, void *addr, size_t bytes)
{
	struct rail_mr *mr = NULL;

	assert_int_equal(rail_mr_get(c, addr, bytes, &mr), 0);
	assert_true(mr->start <= (uintptr_t)addr);
	assert_true(mr->start + mr->bytes >= (uintptr_t)addr + bytes);
	rail_mr_put(c, mr);
	return mr;
}

static void test_hit(void **state)
{
	struct rail_mr_cache *c = *state;
	struct rail_mr *first = touch(c, at(1, 100), 1000);

	/* The same, a part, and the rest of its pages. */
	assert_ptr_equal(touch(c, at(1, 100), 1000), first);
	assert_ptr_equal(touch(c, at(1, 200), 8), first);
	assert_ptr_equal(touch(c, at(1, 0), PAGE), first);
	assert_int_equal(device.made, 1);
	assert_int_equal(c->hits, 3);
	assert_int_equal(c->misses, 1);
	touch(c, at(2, 0), 1);
	assert_int_equal(device.made, 2);
	touch(c, at(1, 0), 1);
	assert_int_equal(device.made, 2);
}

static void test_overlap_joins(void **state)
{
	struct rail_mr_cache *c = *state;

	touch(c, at(1, 0), PAGE);
	touch(c, at(5, 0), PAGE);
	touch(c, at(9, 0), PAGE);
	touch(c, at(1, 10), 8 * PAGE);
	assert_int_equal(device.live, 1);
	assert_int_equal(c->count, 1);
	touch(c, at(9, PAGE - 1), 1);
	assert_int_equal(device.made, 4);
}

/* An entry in use lives until its last user is done, even when detached. */
static void test_overlap_in_use(void **state)
{
	struct rail_mr_cache *c = *state;
	struct rail_mr *used;

	assert_int_equal(rail_mr_get(c, at(1, 0), PAGE, &used), 0);
	touch(c, at(1, 10), 2 * PAGE);
	assert_int_equal(device.live, 2);
	assert_int_equal(c->count, 1);
	rail_mr_put(c, used);
	assert_int_equal(device.live, 1);
}

/* Bytes that an operation may use; where the table does not know, all bytes. */
static void test_in_use(void **state)
{
	struct rail_mr_cache *c = *state;
	struct rail_mr *first, *second;

	touch(c, at(1, 0), 2 * PAGE);
	assert_false(rail_mr_in_use(c, (uintptr_t)at(0, 0), 20 * PAGE));
	assert_int_equal(rail_mr_get(c, at(5, 0), 2 * PAGE, &first), 0);
	assert_true(rail_mr_in_use(c, (uintptr_t)at(6, PAGE - 1), 1));
	assert_true(rail_mr_in_use(c, (uintptr_t)at(0, 0), 5 * PAGE + 1));
	assert_false(rail_mr_in_use(c, (uintptr_t)at(0, 0), 5 * PAGE));
	assert_false(rail_mr_in_use(c, (uintptr_t)at(7, 0), PAGE));
	/* Joined: the first has left the table and is still used. */
	assert_int_equal(rail_mr_get(c, at(6, 0), 4 * PAGE, &second), 0);
	rail_mr_put(c, second);
	assert_true(rail_mr_in_use(c, (uintptr_t)at(6, 0), PAGE));
	rail_mr_put(c, first);
	assert_false(rail_mr_in_use(c, (uintptr_t)at(0, 0), 20 * PAGE));
	c->each = true;
	assert_int_equal(rail_mr_get(c, at(30, 0), PAGE, &first), 0);
	assert_true(rail_mr_in_use(c, (uintptr_t)at(30, 0), PAGE));
	rail_mr_put(c, first);
	assert_false(rail_mr_in_use(c, (uintptr_t)at(30, 0), PAGE));
	c->each = false;
}

static void test_least_recently_used_goes(void **state)
{
	struct rail_mr_cache *c = *state;

	for (size_t i = 0; i < 16; i++)
		touch(c, at(2 * i, 0), 1);
	touch(c, at(0, 0), 1);
	touch(c, at(100, 0), 1);
	assert_int_equal(device.live, 16);
	assert_int_equal(device.made, 17);
	touch(c, at(0, 0), 1);				/* was used: still there */
	assert_int_equal(device.made, 17);
	touch(c, at(2, 0), 1);				/* was the oldest: gone */
	assert_int_equal(device.made, 18);
	assert_int_equal(c->evictions, 2);
}

static void test_bytes_bound(void **state)
{
	struct rail_mr_cache *c = *state;

	c->max_bytes = 4 * PAGE;
	for (size_t i = 0; i < 8; i++)
		touch(c, at(2 * i, 0), PAGE);
	assert_int_equal(device.bytes, 4 * PAGE);
}

/* Locked memory runs out: old entries make room, then one line says so. */
static void test_device_full(void **state)
{
	struct rail_mr_cache *c = *state;
	struct rail_mr *mr = NULL;

	device.limit = 4 * PAGE;
	for (size_t i = 0; i < 8; i++)
		touch(c, at(2 * i, 0), PAGE);
	assert_int_equal(device.live, 4);
	capture_begin(2);
	assert_int_equal(rail_mr_get(c, at(50, 0), 5 * PAGE, &mr), -ENOMEM);
	assert_non_null(strstr(capture_end(), "ulimit -l"));
	assert_null(mr);
	assert_int_equal(device.live, 0);
	device.error = -EACCES;
	capture_begin(2);
	assert_int_equal(rail_mr_get(c, at(50, 0), 1, &mr), -EACCES);
	assert_non_null(strstr(capture_end(), "cannot register 1 bytes"));
}

static void test_pinned(void **state)
{
	struct rail_mr_cache *c = *state;
	struct rail_mr *mr;
	size_t bytes = 0;

	assert_int_equal(rail_mr_pin(c, at(1, 0), 3 * PAGE), 0);
	assert_true(rail_mr_is_pinned(c, at(3, PAGE - 1)));
	assert_false(rail_mr_is_pinned(c, at(4, 0)));
	for (size_t i = 0; i < 40; i++)
		touch(c, at(10 + 2 * i, 0), 1);
	rail_mr_invalidate(at(0, 0), 100 * PAGE);
	assert_true(rail_mr_is_pinned(c, at(3, PAGE - 1)));
	touch(c, at(2, 0), PAGE);
	assert_int_equal(device.made, 42);
	/* A range that reaches beyond it is served, and not kept. */
	touch(c, at(3, 0), 2 * PAGE);
	assert_int_equal(device.made, 43);
	assert_int_equal(device.live, c->count);
	assert_int_equal(rail_mr_unpin(c, at(2, 0), &bytes), -ENOENT);
	assert_int_equal(rail_mr_get(c, at(1, 0), 8, &mr), 0);
	assert_int_equal(rail_mr_unpin(c, at(1, 0), &bytes), -EBUSY);
	rail_mr_put(c, mr);
	assert_int_equal(rail_mr_unpin(c, at(1, 0), &bytes), 0);
	assert_int_equal(bytes, 3 * PAGE);
	assert_false(rail_mr_is_pinned(c, at(1, 0)));
}

static void test_invalidate(void **state)
{
	struct rail_mr_cache *c = *state;

	for (size_t i = 0; i < 8; i++)
		touch(c, at(2 * i, 0), PAGE);
	rail_mr_invalidate(at(4, PAGE - 1), 2 * PAGE);	/* the third and the fourth */
	touch(c, at(0, 0), 1);
	assert_int_equal(device.live, 6);
	touch(c, at(2, 0), 1);
	touch(c, at(8, 0), 1);
	assert_int_equal(device.made, 8);
	touch(c, at(4, 0), 1);
	assert_int_equal(device.made, 9);
	/* More than the log holds: everything is forgotten. */
	for (size_t i = 0; i < 2000; i++)
		rail_mr_invalidate(at(1000 + i, 0), 1);
	touch(c, at(500, 0), 1);
	assert_int_equal(device.live, 1);
}

static void *unmap_forever(void *stop)
{
	for (size_t i = 0; !atomic_load((atomic_bool *)stop); i++)
		rail_mr_invalidate(at(2 * (i % 16), 0), PAGE);
	return NULL;
}

/* Another thread unmaps all the time; the books must balance (and TSan be silent). */
static void test_invalidate_concurrently(void **state)
{
	struct rail_mr_cache *c = *state;
	atomic_bool stop = false;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, unmap_forever, &stop), 0);
	for (size_t i = 0; i < 100000 || !c->invalidations; i++)
		touch(c, at(2 * (i % 16), 0), PAGE);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

/* Against an oracle: a byte map of what is registered, by the entries that live. */
static void test_random(void **state)
{
	struct rail_mr_cache *c = *state;
	unsigned seed = 5;

	for (int i = 0; i < 100000; i++) {
		size_t page = (size_t)rand_r(&seed) % 64, offset = (size_t)rand_r(&seed) % PAGE;
		size_t bytes = 1 + (size_t)rand_r(&seed) % (3 * PAGE);

		if (rand_r(&seed) % 8)
			touch(c, at(page, offset), bytes);
		else
			rail_mr_invalidate(at(page, offset), bytes);
		for (size_t k = 1; k < c->count; k++)
			assert_true(c->sorted[k - 1]->start + c->sorted[k - 1]->bytes <=
				    c->sorted[k]->start);
		assert_int_equal(device.live, c->count);
	}
	assert_true(c->hits > 1000 && c->misses > 1000 && c->invalidations > 1000);
}

/* Memory from rail_alloc stays registered; when its pages go, the new ones are registered. */
static void test_pinned_goes(void **state)
{
	struct rail_mr_cache *c = *state;
	struct rail_mr *mr, *other;
	size_t bytes;

	assert_int_equal(rail_mr_pin(c, at(1, 0), 2 * PAGE), 0);
	assert_int_equal(device.made, 1);
	rail_mr_invalidate(at(2, 0), PAGE);
	assert_int_equal(rail_mr_get(c, at(1, 0), 8, &mr), 0);
	assert_int_equal(device.made, 2);
	assert_int_equal(device.live, 1);
	assert_true(mr->pinned);
	/* While an operation uses the old pages the next one has a registration of its own. */
	rail_mr_invalidate(at(1, 0), PAGE);
	assert_int_equal(rail_mr_get(c, at(1, 0), 8, &other), 0);
	assert_ptr_not_equal(other, mr);
	assert_int_equal(device.live, 2);
	rail_mr_put(c, other);
	rail_mr_put(c, mr);
	assert_int_equal(device.live, 1);
	assert_int_equal(rail_mr_get(c, at(1, 0), 8, &other), 0);
	assert_ptr_equal(other, mr);
	assert_int_equal(device.made, 4);
	rail_mr_put(c, mr);
	assert_int_equal(rail_mr_unpin(c, at(1, 0), &bytes), 0);
}

/* Where memory cannot be watched, only pinned entries are kept. */
static void test_each(void **state)
{
	struct rail_mr_cache *c = *state;
	struct rail_mr *mr, *other;

	c->each = true;
	for (int i = 1; i <= 3; i++) {
		touch(c, at(4, 10), 3 * PAGE);
		assert_int_equal(device.made, i);
		assert_int_equal(device.live, 0);
	}
	assert_int_equal(rail_mr_get(c, at(4, 10), PAGE, &mr), 0);
	assert_int_equal(rail_mr_get(c, at(4, 20), PAGE, &other), 0);
	assert_ptr_not_equal(other, mr);
	assert_int_equal(mr->bytes, PAGE);
	rail_mr_put(c, mr);
	rail_mr_put(c, other);
	assert_int_equal(device.live, 0);
	assert_int_equal(rail_mr_pin(c, at(1, 0), 2 * PAGE), 0);
	touch(c, at(1, 8), PAGE);
	touch(c, at(2, 0), PAGE);
	assert_int_equal(device.made, 6);
	assert_int_equal(device.live, 1);
}

/* The watch has failed (here: never begun): one line, and no entry is kept from then on. */
static void test_unwatched(void **state)
{
	struct rail_mr_cache *c = *state;

	touch(c, at(4, 0), PAGE);
	assert_int_equal(device.live, 1);
	c->watched = true;
	capture_begin(2);
	touch(c, at(4, 0), PAGE);
	assert_non_null(strstr(capture_end(), "registered for each message"));
	assert_true(c->each);
	assert_int_equal(device.made, 2);
	assert_int_equal(device.live, 0);
	capture_begin(2);
	touch(c, at(4, 0), PAGE);
	assert_string_equal(capture_end(), "");
	assert_int_equal(device.made, 3);
}

static void goes(enum rg_mem_call call, uintptr_t start, size_t bytes)
{
	rail_mr_invalidate((const void *)start, bytes);
}

/* The program's calls on its memory reach the cache. */
static void test_watched(void **state)
{
	struct rail_mr_cache *c = *state;
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *a = mmap(NULL, 4 * PAGE, prot, flags, -1, 0), *b;
	uint64_t gone = 0;

	assert_true(a != MAP_FAILED);
	if (rg_memwatch_start(goes, NULL))
		skip();
	c->watched = true;
	touch(c, a, PAGE);
	touch(c, a, PAGE);
	assert_int_equal(c->invalidations, gone);
	assert_int_equal(madvise(a, PAGE, MADV_DONTNEED), 0);
	touch(c, a, PAGE);
	assert_int_equal(c->invalidations, ++gone);
	assert_true(mmap(a, PAGE, prot, flags | MAP_FIXED, -1, 0) == a);
	touch(c, a, PAGE);
	assert_int_equal(c->invalidations, ++gone);
	b = mremap(a, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	assert_true(b != MAP_FAILED);
	touch(c, b, PAGE);
	assert_int_equal(c->invalidations, ++gone);
	assert_int_equal(munmap(b, 8 * PAGE), 0);
	touch(c, at(0, 0), 1);
	assert_int_equal(c->invalidations, ++gone);
}

/* Static data of a library is registered anew when any library has been unloaded. */
static void test_library(void **state)
{
	struct rail_mr_cache *c = *state;
	void *lib, *data = dlsym(RTLD_DEFAULT, "stdout");

	if (rg_memwatch_start(goes, NULL))
		skip();
	c->watched = true;
	lib = dlopen("libBrokenLocale.so.1", RTLD_NOW);
	assert_non_null(lib);
	touch(c, data, 8);
	touch(c, at(0, 0), 8);
	touch(c, data, 8);
	assert_int_equal(device.made, 2);
	assert_int_equal(dlclose(lib), 0);
	touch(c, at(0, 0), 8);
	assert_int_equal(device.made, 2);
	touch(c, data, 8);
	touch(c, data, 8);
	assert_int_equal(device.made, 3);
	assert_int_equal(device.live, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap_joins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_least_recently_used_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_device_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pinned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_invalidate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_invalidate_concurrently, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pinned_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each, setup, teardown),
		/* Before the first that begins to watch. */
		cmocka_unit_test_setup_teardown(test_unwatched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_library, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
