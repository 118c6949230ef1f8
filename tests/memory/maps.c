/* maps.c - kinds of memory.h: anonymous mappings. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum { HUGE_PAGE = 2 << 20 };

static void *map(void *at, size_t bytes, int flags)
{
	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* Map at the same address, unless another thread was faster. */
static void *map_again(void *at, size_t bytes, int flags)
{
	void *p = map(at, bytes, flags | MAP_FIXED_NOREPLACE);

	return p == MAP_FAILED ? map(NULL, bytes, flags) : p;
}

static const char *begin_with(struct life *l, int flags, size_t page)
{
	size_t bytes = life_round(l->limit, page);

	l->home = map(NULL, bytes, flags);
	if (l->home == MAP_FAILED)
		return life_failed(flags & MAP_HUGETLB ? "mmap of huge pages" : "mmap");
	life_is_zero(l, l->home, l->limit);
	return NULL;
}

static const char *begin(struct life *l)
{
	return begin_with(l, 0, PAGE);
}

static void end(struct life *l)
{
	munmap(l->mem, l->bytes);
}

/* Memory that stays: the same messages, without changes in between. */
static const char *change_nothing(struct life *l, size_t need)
{
	(void)l, (void)need;
	return NULL;
}

/* ---- Mapped anew -------------------------------------------------------------- */

static const char *change_mmap(struct life *l, size_t need)
{
	(void)need;
	munmap(l->mem, l->bytes);
	l->mem = map_again(l->mem, l->limit, 0);
	if (l->mem == MAP_FAILED)
		return life_failed("mmap");
	life_is_zero(l, l->mem, l->limit);
	return NULL;
}

static const char *change_fixed(struct life *l, size_t need)
{
	size_t at, bytes;

	(void)need;
	life_pages(l, PAGE, &at, &bytes);
	if (map(l->mem + at, bytes, MAP_FIXED) == MAP_FAILED)
		return life_failed("mmap with MAP_FIXED");
	memset(l->shadow + at, 0, bytes);
	return NULL;
}

/* Unmap by system call: through the C library's syscall, and past it. */
static const char *change_syscall(struct life *l, size_t need)
{
	(void)need;
	if (syscall(SYS_munmap, l->mem, l->bytes))
		return life_failed("SYS_munmap");
	l->mem = (void *)syscall(SYS_mmap, l->mem, l->limit, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (l->mem == MAP_FAILED)
		l->mem = map(NULL, l->limit, 0);
	if (l->mem == MAP_FAILED)
		return life_failed("SYS_mmap");
	life_is_zero(l, l->mem, l->limit);
	return NULL;
}

static const char *begin_instruction(struct life *l)
{
#ifdef __x86_64__
	return begin(l);
#else
	(void)l;
	return "the instruction is written for x86-64 only";
#endif
}

static const char *change_instruction(struct life *l, size_t need)
{
#ifdef __x86_64__
	long rc;

	__asm__ volatile("syscall" : "=a"(rc)
			 : "0"(SYS_madvise), "D"(l->mem), "S"(l->bytes), "d"(MADV_DONTNEED)
			 : "rcx", "r11", "memory");
	if (rc)
		return "madvise by an instruction failed";
#endif
	(void)need;
	life_is_zero(l, l->mem, l->bytes);
	return NULL;
}

/* ---- Moved --------------------------------------------------------------------- */

/* A little more than needed, so that some changes shrink and some grow. */
static const char *change_mremap(struct life *l, size_t need)
{
	size_t bytes = life_round(need, PAGE);
	void *p;

	bytes += life_draw(l, (l->limit - bytes) / PAGE + 1) * PAGE;
	p = mremap(l->mem, l->bytes, bytes, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		return life_failed("mremap");
	life_is_kept(l, p, bytes);
	return NULL;
}

/*
 * UCX before 1.15 loses the address where it has patched mremap (UCX issue 8820): the kernel is
 * told what the register holds by chance.
 */
static bool address_is_lost(void)
{
	void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
	void (*version)(unsigned int *, unsigned int *, unsigned int *);
	unsigned int v[3] = { 0 };

	if (!ucp)
		return false;
	version = (void (*)(unsigned int *, unsigned int *, unsigned int *))dlsym(ucp, "ucp_get_version");
	if (version)
		version(&v[0], &v[1], &v[2]);
	dlclose(ucp);
	return v[0] < 1 || (v[0] == 1 && v[1] < 15);
}

/*
 * Such a mremap fails with EINVAL, leaves the memory where it is, or moves it over what lies
 * elsewhere.  One thread has not been seen to suffer the last, two have: they make the system
 * call.  Where this project's hook stands before UCX's (src/memwatch), the first call is right.
 */
static void *move_to(void *old, size_t bytes, void *to)
{
	bool lost = address_is_lost();
	static atomic_bool told;
	void *p = old;

	if (!lost || !life_threaded) {
		p = mremap(old, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		if (!lost || p == to || (p == MAP_FAILED && errno != EINVAL))
			return p;
	}
	if (!atomic_exchange(&told, true))
		fprintf(stderr, "mremap-fixed: mremap loses its fifth argument (UCX issue 8820), "
			"the system call does not\n");
	return (void *)syscall(SYS_mremap, p == MAP_FAILED ? old : p, bytes, bytes,
			       MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

static const char *change_fixed_mremap(struct life *l, size_t need)
{
	unsigned char *old = l->mem, *to = l->own;
	void *p;

	(void)need;
	/* Memory mapped at the old address meanwhile must stay unwritten. */
	for (size_t i = 0; to && i < l->bytes; i++)
		if (to[i] != 0xdd)
			return "what is mapped where moved memory was has been written";
	if (!to)
		to = map(NULL, l->bytes, 0);
	if (to == MAP_FAILED)
		return life_failed("mmap");
	p = move_to(old, l->bytes, to);
	if (p == MAP_FAILED)
		return life_failed("mremap with MREMAP_FIXED");
	life_is_kept(l, p, l->bytes);
	l->own = map_again(old, l->bytes, 0);
	if (l->own == MAP_FAILED)
		l->own = NULL;
	else
		memset(l->own, 0xdd, l->bytes);
	return NULL;
}

static void end_fixed_mremap(struct life *l)
{
	end(l);
	if (l->own)
		munmap(l->own, l->limit);
}

/* The pages move, zeros stay: either is the buffer from now on. */
static const char *change_dontunmap(struct life *l, size_t need)
{
	unsigned char *old = l->mem, *p;

	(void)need;
	p = mremap(old, l->bytes, l->bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (p == MAP_FAILED && errno == EINVAL)
		p = (void *)syscall(SYS_mremap, old, l->bytes, l->bytes,
				    MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (p == MAP_FAILED)
		return life_failed("mremap with MREMAP_DONTUNMAP");
	if (memcmp(p, l->shadow, l->bytes))
		return "mremap has not kept what was there";
	if (life_draw(l, 2)) {
		life_is_kept(l, p, l->bytes);
		munmap(old, l->bytes);
	} else {
		life_is_zero(l, old, l->bytes);
		munmap(p, l->bytes);
	}
	return NULL;
}

/* ---- Emptied ------------------------------------------------------------------- */

static const char *advise(struct life *l, size_t page, int advice, const char *call)
{
	size_t at, bytes;

	life_pages(l, page, &at, &bytes);
	if (madvise(l->mem + at, bytes, advice))
		return life_failed(call);
	memset(l->shadow + at, 0, bytes);
	return NULL;
}

static const char *change_dontneed(struct life *l, size_t need)
{
	(void)need;
	return advise(l, PAGE, MADV_DONTNEED, "madvise MADV_DONTNEED");
}

static const char *begin_remove(struct life *l)
{
	void *p = mmap(NULL, l->limit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return life_failed("mmap of shared memory");
	life_is_zero(l, p, l->limit);
	return NULL;
}

static const char *change_remove(struct life *l, size_t need)
{
	(void)need;
	return advise(l, PAGE, MADV_REMOVE, "madvise MADV_REMOVE");
}

/*
 * The kernel takes such pages whenever it wants, until they are written: MADV_PAGEOUT asks it
 * to do so now.  What is there then, written, stays.
 */
static const char *change_free(struct life *l, size_t need)
{
	(void)need;
	if (madvise(l->mem, l->bytes, MADV_FREE))
		return life_failed("madvise MADV_FREE");
	madvise(l->mem, l->bytes, MADV_PAGEOUT);
	for (size_t i = 0; i < l->bytes; i += PAGE) {
		volatile unsigned char *p = l->mem + i;

		*p = *p;
	}
	for (size_t i = 0; i < l->bytes; i += PAGE) {
		bool kept = !memcmp(l->mem + i, l->shadow + i, PAGE);

		if (!kept)
			memset(l->shadow + i, 0, PAGE);
	}
	return NULL;
}

/* ---- Huge pages ------------------------------------------------------------------ */

static const char *begin_huge(struct life *l)
{
	return begin_with(l, MAP_HUGETLB, HUGE_PAGE);
}

static const char *change_huge(struct life *l, size_t need)
{
	(void)need;
	munmap(l->mem, life_round(l->limit, HUGE_PAGE));
	l->mem = map_again(l->mem, life_round(l->limit, HUGE_PAGE), MAP_HUGETLB);
	if (l->mem == MAP_FAILED)
		return life_failed("mmap of huge pages");
	life_is_zero(l, l->mem, l->limit);
	return NULL;
}

static void end_huge(struct life *l)
{
	munmap(l->mem, life_round(l->limit, HUGE_PAGE));
}

/* Transparent ones, where the kernel has them to give: whole, and split by what takes a part. */
static const char *begin_thp(struct life *l)
{
	size_t bytes = life_round(l->limit, HUGE_PAGE) + HUGE_PAGE;

	l->home = map(NULL, bytes, 0);
	if (l->home == MAP_FAILED)
		return life_failed("mmap");
	if (madvise(l->home, bytes, MADV_HUGEPAGE)) {
		munmap(l->home, bytes);
		return "the kernel has no transparent huge pages";
	}
	life_is_zero(l, (void *)life_round((uintptr_t)l->home, HUGE_PAGE), l->limit);
	return NULL;
}

static const char *change_thp(struct life *l, size_t need)
{
	size_t at, bytes;

	if (life_draw(l, 2))
		return change_dontneed(l, need);
	life_pages(l, PAGE, &at, &bytes);
	if (map(l->mem + at, bytes, MAP_FIXED) == MAP_FAILED)
		return life_failed("mmap with MAP_FIXED");
	madvise(l->mem + at, bytes, MADV_HUGEPAGE);
	memset(l->shadow + at, 0, bytes);
	return NULL;
}

static void end_thp(struct life *l)
{
	munmap(l->home, life_round(l->limit, HUGE_PAGE) + HUGE_PAGE);
}

/* ---- Read-only -------------------------------------------------------------------- */

static void store_readonly(struct life *l, size_t at, size_t bytes)
{
	mprotect(l->mem, l->bytes, PROT_READ | PROT_WRITE);
	memcpy(l->mem + at, l->shadow + at, bytes);
	mprotect(l->mem, l->bytes, PROT_READ);
}

const struct kind map_kinds[] = {
	{"kept", begin, change_nothing, end, NULL, 0},
	{"mmap", begin, change_mmap, end, NULL, 0},
	{"mmap-fixed", begin, change_fixed, end, NULL, 0},
	{"mremap", begin, change_mremap, end, NULL, 0},
	{"mremap-fixed", begin, change_fixed_mremap, end_fixed_mremap, NULL, 0},
	{"mremap-dontunmap", begin, change_dontunmap, end, NULL, 0},
	{"dontneed", begin, change_dontneed, end, NULL, 0},
	{"remove", begin_remove, change_remove, end, NULL, 0},
	{"free", begin, change_free, end, NULL, 0},
	{"hugetlb", begin_huge, change_huge, end_huge, NULL, 0},
	{"thp", begin_thp, change_thp, end_thp, NULL, 0},
	{"readonly", begin, change_mmap, end, store_readonly, KIND_SEND_ONLY},
	{"syscall", begin, change_syscall, end, NULL, 0},
	{"instruction", begin_instruction, change_instruction, end, NULL, KIND_SHOWN},
	{NULL, NULL, NULL, NULL, NULL, 0},
};
