/*
 * threads.c - kinds of memory.h: memory that ends with a thread or a library, and memory
 * next to which another thread is at work.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"

/* ---- Stacks and thread-local data (the frames are in frame.c) ------------------------ */

/* Two copies of one library, so that a thread that closes one really closes it. */
static void *open_module(const char *name)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);

	if (n < 0)
		return NULL;
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void stack_body(struct life *l, size_t need)
{
	unsigned char *array = __builtin_alloca(need);

	frame_wait(l, array, need);
}

static void tls_body(struct life *l, size_t need)
{
	void *module = open_module("module_tls.so");
	unsigned char *(*of)(size_t) = NULL;

	if (module)
		*(void **)&of = dlsym(module, "module_tls");
	frame_wait(l, of ? of(need) : NULL, need);
	if (module)
		dlclose(module);
}

static size_t stack_room(struct life *l)
{
	return l->limit + 256 * 1024;
}

/* Stacks that the C library keeps and uses again, and one that it maps, as large as it gets. */
static const char *enter_stack(struct life *l, size_t need)
{
	return frame_enter(l, stack_body, need, stack_room(l) + (life_draw(l, 4) ? 0 : 48 << 20));
}

static const char *begin_stack(struct life *l)
{
	return enter_stack(l, l->limit);
}

static const char *change_stack(struct life *l, size_t need)
{
	frame_leave(l);
	return enter_stack(l, need);
}

static const char *begin_tls(struct life *l)
{
	return frame_enter(l, tls_body, l->limit, stack_room(l));
}

static const char *change_tls(struct life *l, size_t need)
{
	frame_leave(l);
	return frame_enter(l, tls_body, need, stack_room(l));
}

/* ---- Static data: of this program, which stays; of a library that goes ----------------- */

static unsigned char still[4 << 20];

static const char *begin_static(struct life *l)
{
	if (l->limit > sizeof(still))
		return "more than there is";
	life_is_unknown(l, still, 0, l->limit);
	return NULL;
}

static const char *change_static(struct life *l, size_t need)
{
	(void)l, (void)need;
	return NULL;
}

static void end_static(struct life *l)
{
	(void)l;
}

/* .bss, zeros; or .data, which is the file's and shorter. */
static const char *begin_library(struct life *l)
{
	unsigned char *(*of)(size_t, bool);

	l->own = open_module("module.so");
	if (!l->own)
		return dlerror();
	*(void **)&of = dlsym(l->own, "module_data");
	if (!of || !of(l->limit, false))
		return "no data in the library";
	life_is_zero(l, of(l->limit, false), l->limit);
	return NULL;
}

static void end_library(struct life *l)
{
	if (l->own)
		dlclose(l->own);
	else
		munmap(l->mem, l->bytes);
}

static const char *reopen_library(struct life *l, size_t need)
{
	unsigned char *(*of)(size_t, bool);
	bool initialized = life_draw(l, 2);
	unsigned char *p;

	l->own = open_module("module.so");
	if (!l->own)
		return dlerror();
	*(void **)&of = dlsym(l->own, "module_data");
	p = of(need, initialized);
	if (!p) {
		initialized = false;
		p = of(need, false);
	}
	life_is_zero(l, p, need);
	for (size_t i = 0; initialized && i < need; i++)
		l->shadow[i] = 0x5a;
	return NULL;
}

/* In its place something else is mapped meanwhile, now and then. */
static const char *change_library(struct life *l, size_t need)
{
	unsigned char *page = l->mem - (uintptr_t)l->mem % PAGE;
	void *p;

	if (!l->own)
		munmap(l->mem, l->bytes);
	else
		dlclose(l->own);
	if (!l->own || life_draw(l, 2))
		return reopen_library(l, need);
	l->own = NULL;
	p = mmap(page, l->limit, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		p = mmap(NULL, l->limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return life_failed("mmap");
	life_is_zero(l, p, l->limit);
	return NULL;
}

/* ---- A neighbour ------------------------------------------------------------------------ */

#define SIDE (16 * PAGE)

struct neighbour {
	pthread_t thread;
	atomic_bool ends;
	unsigned char *side[2];	/* directly before the buffer, and after it */
	bool lost[2];		/* another thread has mapped something there */
};

/* Where pages are gone for a moment, other threads may map theirs, which must not be replaced. */
static bool gone_and_back(unsigned char *at, bool lost)
{
	void *p;

	if (!lost)
		munmap(at, SIDE);
	p = mmap(at, SIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != MAP_FAILED && p != at)
		munmap(p, SIDE);	/* a kernel that does not know the flag */
	return p == at;
}

/* Pages come and go, all the time; those between them stay. */
static void *neighbour_run(void *argument)
{
	const struct timespec pause = {0, 100000};
	struct neighbour *n = argument;

	for (unsigned turn = 0; !atomic_load(&n->ends); turn++) {
		unsigned char *at = n->side[turn % 2];
		bool *lost = &n->lost[turn % 2];

		if (*lost || turn % 3 == 1)
			*lost = !gone_and_back(at, *lost);
		else if (turn % 3 == 0)
			madvise(at, SIDE, MADV_DONTNEED);
		else
			mmap(at, SIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (!*lost)
			*at = 1;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static const char *begin_neighbour(struct life *l)
{
	struct neighbour *n = calloc(1, sizeof(*n));
	void *p = mmap(NULL, l->limit + 2 * SIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (!n || p == MAP_FAILED)
		return life_failed("mmap");
	l->home = p;
	l->own = n;
	n->side[0] = l->home;
	n->side[1] = l->home + SIDE + l->limit;
	life_is_zero(l, l->home + SIDE, l->limit);
	return pthread_create(&n->thread, NULL, neighbour_run, n) ? "no thread" : NULL;
}

static void end_neighbour(struct life *l)
{
	struct neighbour *n = l->own;

	atomic_store(&n->ends, true);
	pthread_join(n->thread, NULL);
	munmap(l->home + SIDE, l->limit);
	for (int i = 0; i < 2; i++)
		if (!n->lost[i])
			munmap(n->side[i], SIDE);
	free(n);
}

/* The buffer's own pages go as well, every second time. */
static const char *change_neighbour(struct life *l, size_t need)
{
	(void)need;
	if (l->turn++ % 2)
		return NULL;
	if (mmap(l->mem, l->limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return life_failed("mmap with MAP_FIXED");
	life_is_zero(l, l->mem, l->limit);
	return NULL;
}

const struct kind thread_kinds[] = {
	{"stack", begin_stack, change_stack, frame_leave, NULL, 0},
	{"tls", begin_tls, change_tls, frame_leave, NULL, 0},
	{"static", begin_static, change_static, end_static, NULL, KIND_ALONE},
	{"dlclose", begin_library, change_library, end_library, NULL, KIND_ALONE},
	{"neighbour", begin_neighbour, change_neighbour, end_neighbour, NULL, 0},
	{NULL, NULL, NULL, NULL, NULL, 0},
};
