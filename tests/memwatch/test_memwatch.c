/*
 * test_memwatch.c - what a process does with its memory is seen from every caller, and
 * is done as before; other patchers, before and after, neither blind nor break it.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../page.h"
#include "memwatch/memwatch.h"
#include "memwatch/patch.h"

enum { HEARD_MAX = 4096 };

static const int RW = PROT_READ | PROT_WRITE, ANON = MAP_PRIVATE | MAP_ANONYMOUS;

/* ---- What was heard ----------------------------------------------------------- */

static struct { enum rg_mem_call call; uintptr_t start, end; } heard[HEARD_MAX];
static _Atomic unsigned heard_count;

static void listen(enum rg_mem_call call, uintptr_t start, size_t bytes)
{
	unsigned i = atomic_fetch_add(&heard_count, 1);

	if (i < HEARD_MAX) {
		heard[i].call = call;
		heard[i].start = start;
		heard[i].end = start + bytes;
	}
	errno = EXDEV;		/* must not be seen by the caller */
}

/* Has the loss of this page been reported since the last question? */
static bool was_heard(enum rg_mem_call call, const void *page)
{
	unsigned n = atomic_exchange(&heard_count, 0);
	uintptr_t at = (uintptr_t)page;
	bool found = false;

	for (unsigned i = 0; i < n && i < HEARD_MAX; i++)
		found |= heard[i].call == call && at >= heard[i].start && at < heard[i].end;
	return found;
}

static char *map_pages(size_t pages)
{
	char *at = mmap(NULL, pages * PAGE, RW, ANON, -1, 0);

	assert_true(at != MAP_FAILED);
	memset(at, 'x', pages * PAGE);
	heard_count = 0;
	return at;
}

/* ---- Calls of the program ------------------------------------------------------- */

static void test_program(void **state)
{
	char *a = map_pages(4), *b = map_pages(8), *c;

	errno = 0;
	assert_int_equal(madvise(a, PAGE, MADV_DONTNEED), 0);
	assert_int_equal(errno, 0);
	assert_true(was_heard(RG_MEM_DISCARD, a));
	assert_int_equal(a[0], 0);
	assert_int_equal(a[PAGE], 'x');
	assert_int_equal(madvise(a, PAGE, MADV_FREE), 0);
	assert_true(was_heard(RG_MEM_DISCARD, a));
	assert_int_equal(madvise(a, PAGE, MADV_NORMAL), 0);
	assert_false(was_heard(RG_MEM_DISCARD, a));

	assert_ptr_equal(mmap(a, PAGE, RW, ANON | MAP_FIXED, -1, 0), a);
	assert_true(was_heard(RG_MEM_REPLACE, a));
	c = mmap(a, PAGE, RW, ANON, -1, 0);
	assert_true(c != MAP_FAILED && c != a);
	assert_false(was_heard(RG_MEM_REPLACE, a));
	assert_int_equal(munmap(c, PAGE), 0);

	memcpy(a, "moved", 6);
	c = mremap(a, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, b);
	assert_ptr_equal(c, b);
	assert_string_equal(b, "moved");
	assert_int_equal(b[5 * PAGE], 'x');
	assert_ptr_equal(mremap(b + 1, PAGE, PAGE, 0), MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	heard_count = 0;
	c = mremap(b, 4 * PAGE, 2 * PAGE, 0);
	assert_ptr_equal(c, b);
	assert_true(was_heard(RG_MEM_MOVE, b + 3 * PAGE));
	c = mremap(b, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	assert_true(c != MAP_FAILED);
	assert_true(was_heard(RG_MEM_MOVE, b));
	assert_string_equal(c, "moved");

	assert_int_equal(munmap(c, 64 * PAGE), 0);
	assert_true(was_heard(RG_MEM_UNMAP, c + 63 * PAGE));
	assert_int_equal(munmap(c + 1, PAGE), -1);
	assert_int_equal(errno, EINVAL);
	munmap(b + 4 * PAGE, 4 * PAGE);
}

static void test_move_onto(void **state)
{
	char *a = map_pages(2), *b = map_pages(2);

	assert_ptr_equal(mremap(a, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, b), b);
	assert_true(was_heard(RG_MEM_REPLACE, b));
	munmap(b, 2 * PAGE);
}

static void test_brk(void **state)
{
	char *end = sbrk(0), *grown, *heap;

	grown = sbrk(16 * PAGE);
	assert_ptr_equal(grown, end);
	heard_count = 0;
	assert_ptr_equal(sbrk(-8 * PAGE), end + 16 * PAGE);
	assert_true(was_heard(RG_MEM_UNMAP, end + 8 * PAGE));
	assert_int_equal(brk(end), 0);
	assert_true(was_heard(RG_MEM_UNMAP, end));
	assert_ptr_equal(sbrk(0), end);
	assert_int_equal(brk(end + ((intptr_t)1 << 46)), -1);
	assert_int_equal(errno, ENOMEM);
	assert_ptr_equal(sbrk(0), end);
	/* Refused: nothing goes. */
	heap = malloc(1);
	heard_count = 0;
	brk((void *)PAGE);
	assert_ptr_equal(sbrk(0), end);
	assert_false(was_heard(RG_MEM_UNMAP, heap));
	free(heap);
}

static void test_shared(void **state)
{
	int id = shmget(IPC_PRIVATE, 4 * PAGE, 0600), fd = memfd_create("memwatch", 0);
	char *a = shmat(id, NULL, 0), *b;

	assert_true(id >= 0 && a != (void *)-1 && fd >= 0);
	heard_count = 0;
	b = shmat(id, a, SHM_REMAP);
	assert_ptr_equal(b, a);
	assert_true(was_heard(RG_MEM_REPLACE, a + 3 * PAGE));
	assert_int_equal(shmdt(a), 0);
	assert_true(was_heard(RG_MEM_SHARED, a));
	shmctl(id, IPC_RMID, NULL);

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	assert_false(was_heard(RG_MEM_SHARED, a));
	a = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
	assert_true(a != MAP_FAILED);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_true(was_heard(RG_MEM_SHARED, a));
	assert_int_equal(fallocate(fd, 0, 0, 4 * PAGE), 0);
	assert_false(was_heard(RG_MEM_SHARED, a));
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), 0);
	assert_true(was_heard(RG_MEM_SHARED, a));
	assert_int_equal(madvise(a, PAGE, MADV_REMOVE), 0);
	assert_true(was_heard(RG_MEM_SHARED, a));
	assert_int_equal(truncate("/nowhere/at/all", 0), -1);
	assert_int_equal(errno, ENOENT);
	munmap(a, 4 * PAGE);
	close(fd);
}

static void test_syscall(void **state)
{
	char *a = map_pages(4);

	assert_int_equal(syscall(SYS_madvise, a, PAGE, MADV_DONTNEED), 0);
	assert_true(was_heard(RG_MEM_DISCARD, a));
	assert_int_equal(syscall(SYS_getpid), getpid());
	/* All six arguments arrive. */
	assert_int_equal(syscall(SYS_mmap, a, PAGE, RW, ANON | MAP_FIXED, -1, 0), (intptr_t)a);
	assert_true(was_heard(RG_MEM_REPLACE, a));
	assert_int_equal(syscall(SYS_munmap, a, 4 * PAGE), 0);
	assert_true(was_heard(RG_MEM_UNMAP, a + 3 * PAGE));
	assert_int_equal(syscall(SYS_close, -1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(syscall(SYS_munmap, 1, PAGE), -1);
	assert_int_equal(errno, EINVAL);
}

/* A child that returns from the system call on a stack of its own. */
static void test_clone(void **state)
{
	int status;
	long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!child)
		_exit(7);
	assert_int_equal(waitpid((pid_t)child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
#if defined(__x86_64__)
	/* Where it returns to is what lies there. */
	static void *stack[512] = { [256] = (void *)abort };

	child = syscall(SYS_clone, SIGCHLD, &stack[256], 0, 0, 0);
	assert_true(child > 0);
	assert_int_equal(waitpid((pid_t)child, &status, 0), child);
	assert_int_equal(WTERMSIG(status), SIGABRT);
#endif
}

/* ---- Calls inside the C library --------------------------------------------------- */

static void *use_stack(void *out)
{
	volatile char local[3 * PAGE_MOST];

	memset((void *)local, 1, sizeof(local));
	*(uintptr_t *)out = (uintptr_t)&local[PAGE_MOST];
	return NULL;
}

static void test_libc(void **state)
{
	enum { BIG = 64 << 20, SMALL = 100000, COUNT = 64 };
	static char *small[COUNT];
	pthread_attr_t attr;
	uintptr_t stack;
	pthread_t thread;
	char *p = malloc(BIG);
	volatile uintptr_t at = (uintptr_t)p;

	assert_non_null(p);
	heard_count = 0;
	p = realloc(p, 3 * (size_t)BIG);
	assert_non_null(p);
	assert_true(was_heard(RG_MEM_MOVE, (void *)at));
	at = (uintptr_t)p;
	free(p);
	assert_true(was_heard(RG_MEM_UNMAP, (void *)(at + PAGE)));

	for (int i = 0; i < COUNT; i++)
		small[i] = malloc(SMALL);
	for (int i = 0; i < COUNT; i++)
		free(small[i]);
	heard_count = 0;
	malloc_trim(0);
	assert_true(atomic_load(&heard_count) > 0);

	/* Larger than what the C library keeps of stacks. */
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstacksize(&attr, BIG), 0);
	heard_count = 0;
	assert_int_equal(pthread_create(&thread, &attr, use_stack, &stack), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	assert_true(was_heard(RG_MEM_UNMAP, (void *)stack));
}

/* ---- Static data of libraries ------------------------------------------------------- */

static int first_segment(struct dl_phdr_info *object, size_t bytes, void *user)
{
	struct { const char *name; uintptr_t at; } *want = user;

	if (!strstr(object->dlpi_name, want->name))
		return 0;
	want->at = object->dlpi_addr;
	return 1;
}

static void test_libraries(void **state)
{
	struct { const char *name; uintptr_t at; } want = { "libBrokenLocale", 0 };
	static char here[PAGE_MOST];
	uint64_t unloads, after;
	void *heap = malloc(100), *lib = dlopen("libBrokenLocale.so.1", RTLD_NOW);

	assert_non_null(lib);
	assert_int_equal(dl_iterate_phdr(first_segment, &want), 1);
	assert_true(rg_memwatch_in_library(want.at, 1, &unloads));
	assert_true(rg_memwatch_in_library(want.at - PAGE, PAGE + 1, &unloads));
	assert_int_equal(unloads, rg_memwatch_unloads());
	assert_int_equal(dlclose(lib), 0);
	assert_int_equal(rg_memwatch_unloads(), unloads + 1);
	assert_false(rg_memwatch_in_library(want.at, 1, &after));
	assert_int_equal(after, unloads + 1);
	assert_false(rg_memwatch_in_library((uintptr_t)here, sizeof(here), &after));
	assert_false(rg_memwatch_in_library((uintptr_t)heap, 100, &after));
	free(heap);
}

/* ---- Listeners that make such calls themselves ----------------------------------------- */

static unsigned own_calls;
static bool calls_too;

static void unmap_too(enum rg_mem_call call, uintptr_t start, size_t bytes)
{
	own_calls++;
	if (calls_too)
		munmap(mmap(NULL, PAGE, RW, ANON, -1, 0), PAGE);
}

static void test_own_calls(void **state)
{
	char *a = map_pages(1);

	assert_int_equal(rg_memwatch_start(unmap_too, NULL), 0);
	heard_count = 0;
	own_calls = 0;
	calls_too = true;
	assert_int_equal(munmap(a, PAGE), 0);
	calls_too = false;
	/* The hook in front of ours makes it by syscall(): twice, and no more. */
	assert_in_range(own_calls, 1, 2);
	assert_true(atomic_load(&heard_count) > own_calls);
}

/* ---- Threads, and children of fork --------------------------------------------------------- */

static void *churn(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		char *a = mmap(NULL, 2 * PAGE, RW, ANON, -1, 0);

		a[0] = 1;
		if (madvise(a, PAGE, MADV_DONTNEED) || a[0] || munmap(a, 2 * PAGE))
			return (void *)1;
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[4];
	void *bad;
	int status;
	pid_t child;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, churn, NULL), 0);
	for (int i = 0; i < 20; i++) {
		child = fork();
		if (!child)
			_exit(churn(NULL) != NULL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_true(rg_memwatch_check());
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(thread[i], &bad), 0);
		assert_null(bad);
	}
}

/* ---- Other patchers -------------------------------------------------------------------------- */

static unsigned theirs;
static int (*original)(void *, size_t);

/* As UCX does it: the system call, whatever stood there before. */
static int their_munmap(void *addr, size_t bytes)
{
	theirs++;
	return (int)syscall(SYS_munmap, addr, bytes);
}

/* As others do it. */
static int their_kind_munmap(void *addr, size_t bytes)
{
	theirs++;
	return original(addr, bytes);
}

static void *libc(const char *name)
{
	return dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
}

static void *libc_munmap(void)
{
	return libc("munmap");
}

/* UCX's sbrk: neither brk nor syscall() is called. */
static void *their_sbrk(intptr_t change)
{
#if defined(__x86_64__)
	char *now, *end = NULL;

	__asm__ volatile("syscall" : "=a"(now) : "a"(SYS_brk), "D"(end) : "rcx", "r11", "memory");
	end = now + change;
	__asm__ volatile("syscall" : "=a"(end) : "a"(SYS_brk), "D"(end) : "rcx", "r11", "memory");
	return now;
#else
	return (void *)-1;
#endif
}

/* One that was there before (main patched it) is still called. */
static void test_patched_before(void **state)
{
	char *a = map_pages(1);

	theirs = 0;
	assert_int_equal(munmap(a, PAGE), 0);
	assert_true(was_heard(RG_MEM_UNMAP, a));
	assert_int_equal(theirs, 1);
	assert_true(rg_memwatch_check());
	assert_int_equal(atomic_load(&heard_count), 0);
}

static void test_patched_after(void **state)
{
	static struct patch mine;
	char *a = map_pages(1), *b = map_pages(1);

	assert_int_equal(patch_set(&mine, libc_munmap(), (void *)their_munmap), 0);
	heard_count = 0;
	assert_true(rg_memwatch_check());
	assert_true(was_heard(RG_MEM_SHARED, a));	/* what went meanwhile */
	theirs = 0;
	assert_int_equal(munmap(a, PAGE), 0);
	assert_true(was_heard(RG_MEM_UNMAP, a));
	assert_int_equal(theirs, 1);
	assert_true(rg_memwatch_check());

	/* One that calls what was there before: it may stay in front. */
	original = (int (*)(void *, size_t))patch_jump_target(libc_munmap());
	assert_non_null(original);
	memset(&mine, 0, sizeof(mine));
	assert_int_equal(patch_set(&mine, libc_munmap(), (void *)their_kind_munmap), 0);
	assert_true(rg_memwatch_check());
	assert_true(patch_is_valid(&mine));
	heard_count = theirs = 0;
	assert_int_equal(munmap(b, PAGE), 0);
	assert_true(was_heard(RG_MEM_UNMAP, b));
	assert_int_equal(theirs, 2);
}

static void test_sbrk_patched(void **state)
{
	static struct patch mine;
	char *end;

#if !defined(__x86_64__)
	skip();
#endif
	assert_int_equal(patch_set(&mine, libc("sbrk"), (void *)their_sbrk), 0);
	assert_true(rg_memwatch_check());
	end = sbrk(4 * PAGE);
	heard_count = 0;
	assert_ptr_equal(sbrk(-4 * PAGE), end + 4 * PAGE);
	assert_true(was_heard(RG_MEM_UNMAP, end + 3 * PAGE));
}

/* A hook in front that takes ours for the original, and ours it: no endless loop. */
static void test_loop(void **state)
{
	static struct patch mine;
	char *a = map_pages(1);

	original = (int (*)(void *, size_t))libc_munmap();
	assert_int_equal(patch_set(&mine, libc_munmap(), (void *)their_munmap), 0);
	assert_true(rg_memwatch_check());
	assert_int_equal(munmap(a, PAGE), 0);
	assert_true(was_heard(RG_MEM_UNMAP, a));
}

/* ---- A process that may not patch ----------------------------------------------- */

static const char no_patch[] = "the C library's functions cannot be patched";

/* In a child whose system denies memory that is writable and executable: refused, with the reason. */
static int denied_start(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };
	const char *why = "";

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	if (rg_memwatch_start(listen, &why) != -EACCES || strcmp(why, no_patch))
		return 1;
	/* As often as it is asked, and the calls of the program go on. */
	why = "";
	if (rg_memwatch_start(listen, &why) != -EACCES || strcmp(why, no_patch))
		return 2;
	return rg_memwatch_check() || munmap(map_pages(1), PAGE) || heard_count;
}

/* What it returns in a child; -1: the child did not exit. */
static int in_child(int (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		exit(body());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool denied_holds(void)
{
	const int code = in_child(denied_start);

	if (code == 77)
		printf("not tried: a filter of calls\n");
	else if (code)
		printf("a start without patches: %d\n", code);
	return !code || code == 77;
}

/* ---- Code that has run ---------------------------------------------------------- */

/* One in each 4 KiB: an emulator keeps its translations by these, whatever the size of pages. */
#define RAN(n) \
	__attribute__((aligned(4096), noinline)) static int ran_##n(void) \
	{ \
		__asm__ volatile("" ::: "memory"); \
		return n; \
	}
RAN(0)
RAN(1)
RAN(2)
RAN(3)
RAN(4)
RAN(5)
RAN(6)
RAN(7)

static int patched(void)
{
	return -1;
}

/*
 * The functions that still do what they did, once each has run and is patched: the last one first.  Stubs
 * lie near the functions that a process patches first, so this one is a child, in which these come first.
 */
static int patch_ran(void)
{
	static int (*volatile const ran[])(void) = { ran_7, ran_6, ran_5, ran_4, ran_3, ran_2, ran_1, ran_0 };
	enum { FUNCTIONS = sizeof(ran) / sizeof(*ran) };
	static struct patch patches[FUNCTIONS];
	int old = 0;

	for (int i = 0; i < FUNCTIONS; i++) {
		if (ran[i]() != FUNCTIONS - 1 - i)
			return 100;
		if (patch_set(&patches[i], (void *)ran[i], (void *)patched))
			return 101;
		old += ran[i]() != -1;
	}
	return old;
}

static bool ran_holds(void)
{
	const int code = in_child(patch_ran);

	if (code)
		printf("functions that run on as before: %d\n", code);
	return !code;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patched_before),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_move_onto),
		cmocka_unit_test(test_brk),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_syscall),
		cmocka_unit_test(test_clone),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_own_calls),
		cmocka_unit_test(test_patched_after),
		cmocka_unit_test(test_sbrk_patched),
		cmocka_unit_test(test_loop),
	};
	static struct patch before;
	const char *why = "";
	int rc;

	if (PATCH_WORKS && !ran_holds())
		return 1;
	if (PATCH_WORKS)
		patch_set(&before, libc_munmap(), (void *)their_munmap);
	/* A sanitizer is refused for another reason. */
	if (PATCH_WORKS && !dlsym(RTLD_DEFAULT, "__sanitizer_get_ownership") && !denied_holds())
		return 1;
	rc = rg_memwatch_start(listen, &why);
	if (rc == -ENOTSUP && !strstr(why, "no effect")) {
		printf("memory cannot be watched %s\n", why);
		return 77;
	}
	if (rc) {
		printf("rg_memwatch_start: %s (%s)\n", why, strerror(-rc));
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
