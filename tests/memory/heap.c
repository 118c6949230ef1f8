/* heap.c - kinds of memory.h: memory of allocators, the C library's or one that is preloaded. */
#include <dlfcn.h>
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#include "memory.h"

/* Make the allocator give back all that it can; each has a call of its own. */
static void trim(void)
{
	void (*tcmalloc)(void), (*mimalloc)(bool);
	int (*jemalloc)(const char *, void *, size_t *, void *, size_t);

	*(void **)&tcmalloc = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
	*(void **)&mimalloc = dlsym(RTLD_DEFAULT, "mi_collect");
	*(void **)&jemalloc = dlsym(RTLD_DEFAULT, "mallctl");
	if (tcmalloc)
		tcmalloc();
	if (mimalloc)
		mimalloc(true);
	/* 4096: all arenas (MALLCTL_ARENAS_ALL). */
	if (jemalloc)
		jemalloc("arena.4096.purge", NULL, NULL, NULL, 0);
	malloc_trim(0);
}

static void trim_now_and_then(struct life *l)
{
	if (life_draw(l, 2))
		trim();
}

static const char *is_fresh(struct life *l, void *p, size_t bytes)
{
	l->own = p;
	if (!p)
		return "no memory";
	life_is_unknown(l, p, 0, bytes);
	return NULL;
}

static const char *begin_malloc(struct life *l)
{
	return is_fresh(l, malloc(l->limit), l->limit);
}

static void end_malloc(struct life *l)
{
	free(l->own);
}

static const char *change_malloc(struct life *l, size_t need)
{
	free(l->own);
	trim_now_and_then(l);
	return is_fresh(l, malloc(need), need);
}

static const char *change_calloc(struct life *l, size_t need)
{
	const char *failed;

	free(l->own);
	trim_now_and_then(l);
	failed = is_fresh(l, calloc(1, need), need);
	memset(l->shadow, 0, need);
	return failed;
}

static const char *change_aligned(struct life *l, size_t need)
{
	size_t alignment = (size_t)64 << life_draw(l, 12), bytes = life_round(need, alignment);

	if (bytes > l->limit)
		bytes = need, alignment = 64;
	free(l->own);
	trim_now_and_then(l);
	return is_fresh(l, aligned_alloc(alignment, life_round(bytes, alignment)), bytes);
}

static const char *change_realloc(struct life *l, size_t need)
{
	size_t bytes = need + life_draw(l, l->limit - need + 1);
	size_t kept = bytes < l->bytes ? bytes : l->bytes;
	void *p = realloc(l->own, bytes);

	if (!p)
		return "no memory";
	trim_now_and_then(l);
	l->own = p;
	life_is_unknown(l, p, kept, bytes);
	return NULL;
}

/* ---- Allocated before MPI_Init -------------------------------------------------------- */

static struct {
	void *block;
	size_t bytes;
} early;

void heap_early(size_t bytes)
{
	early.block = malloc(bytes);
	early.bytes = bytes;
	/*
	 * Under another allocator, a sanitizer's, the C library's has served no call yet, and two threads must not
	 * be the first together: it calls itself ready before it is.
	 */
	malloc_trim(0);
}

static const char *begin_early(struct life *l)
{
	void *p = early.block;

	if (!p || early.bytes < l->limit)
		return "used up";
	early.block = NULL;
	return is_fresh(l, p, l->limit);
}

/* Free early, for the next life. */
static void end_early(struct life *l)
{
	early.block = realloc(l->own, early.bytes);
}

/* ---- Other arenas: those of threads ------------------------------------------------------ */

static void *new_arena(void *argument)
{
	struct life *l = argument;

	free(l->own);
	l->own = malloc(l->bytes);
	/* A block after it, so that not all of this is given back at once. */
	free(malloc(100000));
	return NULL;
}

static const char *change_arena(struct life *l, size_t need)
{
	pthread_t thread;

	l->bytes = need;
	if (pthread_create(&thread, NULL, new_arena, l))
		return "no thread";
	pthread_join(thread, NULL);
	trim_now_and_then(l);
	return is_fresh(l, l->own, need);
}

/* ---- Many blocks, large and small, of which one is the buffer ------------------------------ */

enum { BLOCKS = 12 };
struct heap {
	unsigned char *block[BLOCKS];
	int used;
};

static void end_churn(struct life *l)
{
	struct heap *heap = l->own;

	for (int i = 0; heap && i < BLOCKS; i++)
		free(heap->block[i]);
	free(heap);
}

static const char *change_churn(struct life *l, size_t need)
{
	struct heap *heap = l->own;

	for (int n = 0; n < BLOCKS / 2; n++) {
		size_t i = life_draw(l, BLOCKS), bytes = (size_t)64 << life_draw(l, 14);

		if ((int)i != heap->used && life_draw(l, 3)) {
			free(heap->block[i]);
			heap->block[i] = NULL;
		} else if ((int)i != heap->used) {
			heap->block[i] = realloc(heap->block[i], bytes);
			memset(heap->block[i], 0x77, bytes);
		}
	}
	trim_now_and_then(l);
	heap->used = (int)life_draw(l, BLOCKS);
	free(heap->block[heap->used]);
	l->mem = heap->block[heap->used] = malloc(need);
	if (!l->mem)
		return "no memory";
	life_is_unknown(l, l->mem, 0, need);
	return NULL;
}

static const char *begin_churn(struct life *l)
{
	l->own = calloc(1, sizeof(struct heap));
	return l->own ? change_churn(l, l->limit) : "no memory";
}

/* ---- The program's break --------------------------------------------------------------------- */

static const char *begin_break(struct life *l)
{
	unsigned char *at = sbrk((intptr_t)(l->limit + PAGE));

	if (at == (void *)-1)
		return life_failed("sbrk");
	l->home = at;
	life_is_zero(l, (void *)life_round((uintptr_t)at, PAGE), l->limit);
	return NULL;
}

/* Lower the end only while it is ours, without other memory after it. */
static bool break_down(struct life *l)
{
	return sbrk(0) == l->home + l->limit + PAGE && !brk(l->home);
}

static const char *change_break(struct life *l, size_t need)
{
	(void)need;
	if (!break_down(l))
		return NULL;
	return begin_break(l);
}

static void end_break(struct life *l)
{
	break_down(l);
}

/* ---- MPI's ------------------------------------------------------------------------------------ */

static const char *begin_mpi(struct life *l)
{
	void *p = NULL;

	MPI_Alloc_mem((MPI_Aint)l->limit, MPI_INFO_NULL, &p);
	return is_fresh(l, p, l->limit);
}

static void end_mpi(struct life *l)
{
	MPI_Free_mem(l->own);
}

static const char *change_mpi(struct life *l, size_t need)
{
	(void)need;
	end_mpi(l);
	return begin_mpi(l);
}

const struct kind heap_kinds[] = {
	{"malloc", begin_malloc, change_malloc, end_malloc, NULL, 0},
	{"calloc", begin_malloc, change_calloc, end_malloc, NULL, 0},
	{"aligned", begin_malloc, change_aligned, end_malloc, NULL, 0},
	{"realloc", begin_malloc, change_realloc, end_malloc, NULL, 0},
	{"realloc-early", begin_early, change_realloc, end_early, NULL, KIND_ALONE},
	{"arena", begin_malloc, change_arena, end_malloc, NULL, 0},
	{"churn", begin_churn, change_churn, end_churn, NULL, 0},
	{"brk", begin_break, change_break, end_break, NULL, KIND_ALONE},
	{"mpi-alloc-mem", begin_mpi, change_mpi, end_mpi, NULL, 0},
	{NULL, NULL, NULL, NULL, NULL, 0},
};
