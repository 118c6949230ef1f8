/* memwatch.c - memwatch.h: sets and checks patches, calls listeners. */
#include "config.h"		/* _GNU_SOURCE */

#include "memwatch/memwatch.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memwatch/calls.h"
#include "memwatch/patch.h"

enum { LISTENERS_MAX = 4 };

enum state { UNTRIED, WATCHING, FAILED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* for changes of all below */
static _Atomic enum state state;
static int failure;
static const char *failure_text;
static void *function[CALLS];
static struct patch patch[CALLS];

static _Atomic(rg_memwatch_fn *) listener[LISTENERS_MAX];
static atomic_uint listeners;
/* The listener that this thread runs, + 1: it is not told of its own calls. */
static _Thread_local unsigned listening __attribute__((tls_model("initial-exec")));

/* ---- Listeners -------------------------------------------------------------- */

void call_report(enum rg_mem_call call, uintptr_t start, size_t bytes)
{
	unsigned count = atomic_load_explicit(&listeners, memory_order_acquire), outer = listening;

	for (unsigned i = 0; i < count; i++) {
		if (outer == i + 1)
			continue;
		listening = i + 1;
		listener[i](call, start, bytes);
	}
	listening = outer;
}

static int listener_add(rg_memwatch_fn *fn)
{
	unsigned count = atomic_load(&listeners);

	for (unsigned i = 0; i < count; i++)
		if (atomic_load(&listener[i]) == fn)
			return 0;
	if (count == LISTENERS_MAX)
		return -ENOSPC;
	atomic_store(&listener[count], fn);
	atomic_store_explicit(&listeners, count + 1, memory_order_release);
	return 0;
}

/* ---- Patches ------------------------------------------------------------------ */

static int fail(int rc, const char *text)
{
	failure = rc;
	failure_text = text;
	atomic_store(&state, FAILED);
	return rc;
}

/* A hook must not disappear.  The search fails where the hook is part of the program. */
static void stay_loaded(void)
{
	Dl_info self;

	if (dladdr((void *)rg_memwatch_check, &self))
		dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Find the C library's own function, even if another one of its name precedes it. */
static bool functions_find(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	if (!libc)
		return false;
	for (int i = 0; i < CALLS; i++) {
		function[i] = dlsym(libc, call_row[i].name);
		if (!function[i])
			return false;
	}
	return true;
}

/* start_brk, the 47th field of proc(5)'s stat; the second, the program's name, may hold spaces. */
static void heap_find(void)
{
	char text[2048] = "", *at;
	FILE *f = fopen("/proc/self/stat", "re");

	if (!f)
		return;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	at = strrchr(text, ')');
	for (int field = 2; at && field < 47; field++)
		at = strchr(at + 1, ' ');
	if (at && strtoull(at, NULL, 10))
		call_heap_start = strtoull(at, NULL, 10);
}

/* The hook that is there now, if any, is called next. */
static int patch_one(enum call call)
{
	call_set_next(call, patch_jump_target(function[call]));
	return patch_set(&patch[call], function[call], (void *)call_row[call].hook);
}

static int install(void)
{
	int rc;

	if (!PATCH_WORKS)
		return fail(-ENOTSUP, "not on this processor");
	/* Every sanitizer has it whose allocator makes system calls itself. */
	if (dlsym(RTLD_DEFAULT, "__sanitizer_get_ownership"))
		return fail(-ENOTSUP, "with a sanitizer, whose allocator cannot be watched");
	if (!functions_find())
		return fail(-ENOTSUP, "not with this C library");
	stay_loaded();
	heap_find();
	for (int i = 0; i < CALLS; i++) {
		rc = patch_one(i);
		if (rc)
			return fail(rc, "the C library's functions cannot be patched");
	}
	for (int i = 0; i < CALLS; i++)
		if (!call_is_seen(i, function[i]))
			return fail(-ENOTSUP, "patches of the C library have no effect");
	atomic_store(&state, WATCHING);
	return 0;
}

int rg_memwatch_start(rg_memwatch_fn *fn, const char **why)
{
	int rc;

	pthread_mutex_lock(&lock);
	rc = state == UNTRIED ? install() : state == FAILED ? failure : 0;
	if (!rc) {
		rc = listener_add(fn);
		if (rc && why)
			*why = "too many listeners";
	} else if (why) {
		*why = failure_text;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static bool all_stand(void)
{
	bool stand = true;

	for (int i = 0; i < CALLS; i++)
		stand &= patch_is_valid(&patch[i]);
	return stand;
}

/* After another patcher: run after its hook, if that calls the earlier hook, else before it. */
static bool repair_one(enum call call)
{
	if (call_is_seen(call, function[call])) {
		patch[call].jump = atomic_load(patch[call].at);
		return true;
	}
	return !patch_one(call) && call_is_seen(call, function[call]);
}

static _Atomic uint64_t repairs;

static bool repair(void)
{
	bool ok = true;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < CALLS && ok; i++)
		ok = patch_is_valid(&patch[i]) || repair_one(i);
	if (!ok)
		fail(-ENOTSUP, "another library has patched the C library's functions");
	pthread_mutex_unlock(&lock);
	/* Any call may have gone unseen meanwhile. */
	atomic_fetch_add(&repairs, 1);
	call_report(RG_MEM_SHARED, 0, SIZE_MAX);
	return ok;
}

uint64_t rg_memwatch_repairs(void)
{
	return atomic_load_explicit(&repairs, memory_order_relaxed);
}

bool rg_memwatch_check(void)
{
	if (atomic_load_explicit(&state, memory_order_relaxed) != WATCHING)
		return false;
	return __builtin_expect(all_stand(), 1) || repair();
}

/* ---- Shared objects -------------------------------------------------------------- */

struct look {
	uintptr_t start, end;
	uint64_t unloads;
	bool found, first;
};

static int count_unloads(struct dl_phdr_info *object, size_t bytes, void *out)
{
	*(uint64_t *)out = object->dlpi_subs;
	return 1;
}

uint64_t rg_memwatch_unloads(void)
{
	uint64_t unloads = 0;

	dl_iterate_phdr(count_unloads, &unloads);
	return unloads;
}

static int object_check(struct dl_phdr_info *object, size_t bytes, void *user)
{
	struct look *look = user;
	bool program = look->first;

	look->first = false;
	look->unloads = object->dlpi_subs;
	/* The first one is the program, which stays. */
	for (int i = 0; i < object->dlpi_phnum && !program; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && start < look->end && start + p->p_memsz > look->start)
			look->found = true;
	}
	return look->found;
}

bool rg_memwatch_in_library(uintptr_t start, size_t bytes, uint64_t *unloads)
{
	struct look look = { .start = start, .end = start + bytes, .first = true };

	dl_iterate_phdr(object_check, &look);
	*unloads = look.unloads;
	return look.found;
}
