/* buffers.c - memory of every origin, with bytes around each message that must stay as they are. */
#include "../../page.h"
#include "programs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAME_BYTES = 16 << 20 };

const char *const origin_names[ORIGINS] = {
    "malloc",      "calloc", "realloc",      "inside malloc", "static", "stack",         "mmap",
    "shared mmap", "memfd",  "across pages", "mapped again",  "mremap", "MPI_Alloc_mem",
};

static inline uint64_t word(uint64_t key, uint64_t i)
{
	uint64_t w = key + i * 0xd6e8feb86659fd93u;

	w = (w ^ w >> 29) * 0xbf58476d1ce4e5b9u;
	return w ^ w >> 32;
}

void pattern(unsigned char *to, size_t bytes, uint64_t key)
{
	uint64_t i, w;

	key = mix(key);
	for (i = 0; bytes >= 8; i++, to += 8, bytes -= 8) {
		w = word(key, i);
		memcpy(to, &w, 8);
	}
	w = word(key, i);
	memcpy(to, &w, bytes);
}

unsigned char *scratch(int which, size_t bytes)
{
	static unsigned char *mem[3];
	static size_t room[3];

	if (bytes > room[which] || !mem[which]) {
		free(mem[which]);
		room[which] = bytes * 2 + PAGE;
		mem[which] = malloc(room[which]);
		CHECK(mem[which], "no memory for %zu bytes", room[which]);
	}
	return mem[which];
}

/* ---- Memory that is handed out piece by piece, and again when all have come back
 * ----------------- */

static unsigned char of_program[1 << 18];
static struct pool {
	unsigned char *mem;
	size_t bytes, used;
	int users;
} pools[2] = {
    {of_program, sizeof(of_program), 0, 0},
};

void buffers_stack(unsigned char *mem, size_t bytes)
{
	pools[1] = (struct pool){mem, bytes, 0, 0};
}

static void *pool_get(struct pool *pool, size_t bytes)
{
	void *mem = pool->mem + pool->used;

	bytes = (bytes + 15) / 16 * 16;
	if (!pool->mem || bytes > pool->bytes - pool->used)
		return NULL;
	pool->used += bytes;
	pool->users++;
	return mem;
}

static void pool_put(struct pool *pool)
{
	if (--pool->users == 0)
		pool->used = 0;
}

/* ---- Mappings
 * --------------------------------------------------------------------------------------- */

static void *map(size_t bytes, int flags, int fd)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static void *map_memfd(size_t bytes)
{
	int fd = memfd_create("random_programs", MFD_CLOEXEC);
	void *mem = NULL;

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		mem = map(bytes, MAP_SHARED, fd);
	if (fd >= 0)
		close(fd);
	return mem;
}

static void *map_moved(size_t bytes)
{
	void *small = map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), *mem;

	if (!small)
		return NULL;
	mem = mremap(small, PAGE, bytes, MREMAP_MAYMOVE);
	return mem == MAP_FAILED ? NULL : mem;
}

/* A place at which other pages are mapped each time. */
static unsigned char *same_place;
static bool same_taken;

static void *same_get(size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *mem;

	if (!same_place)
		same_place = mmap(NULL, SAME_BYTES, PROT_NONE, flags | MAP_NORESERVE, -1, 0);
	if (same_place == MAP_FAILED || same_taken || bytes > SAME_BYTES)
		return NULL;
	mem = mmap(same_place, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
	same_taken = mem != MAP_FAILED;
	return same_taken ? mem : NULL;
}

static void same_put(size_t bytes)
{
	mmap(same_place, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
	     -1, 0);
	same_taken = false;
}

/* ---- Buffers
 * ------------------------------------------------------------------------------------------- */

static void *heap(enum origin origin, size_t bytes)
{
	void *first, *mem;

	switch (origin) {
	case ORIGIN_CALLOC:
		return calloc(1, bytes);
	case ORIGIN_REALLOC:
		first = malloc(bytes / 2 + 1);
		mem = first ? realloc(first, bytes) : NULL;
		return mem;
	default:
		return malloc(bytes);
	}
}

static void *get(enum origin origin, size_t bytes)
{
	void *mem = NULL;

	switch (origin) {
	case ORIGIN_STATIC:
		return pool_get(&pools[0], bytes);
	case ORIGIN_STACK:
		return pool_get(&pools[1], bytes);
	case ORIGIN_MMAP:
	case ORIGIN_STRADDLE:
		return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	case ORIGIN_SHARED:
		return map(bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
	case ORIGIN_MEMFD:
		return map_memfd(bytes);
	case ORIGIN_SAME:
		return same_get(bytes);
	case ORIGIN_MOVED:
		return map_moved(bytes);
	case ORIGIN_ALLOC_MEM:
		DO(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &mem));
		return mem;
	default:
		return heap(origin, bytes);
	}
}

static bool is_mapped(enum origin origin)
{
	return origin >= ORIGIN_MMAP && origin <= ORIGIN_MOVED;
}

void buffer_get(struct buffer *b, enum origin origin, size_t bytes, unsigned align, uint64_t key)
{
	size_t whole = bytes + 2 * GUARD, shift = mix(key) % 64 / align * align, all = whole + 64;

	if (origin == ORIGIN_MIDDLE)
		shift += 1000 / align * align, all += 3000;
	if (is_mapped(origin))
		all = (all + 2 * PAGE - 1) / PAGE * PAGE;
	if (origin == ORIGIN_STRADDLE) /* the message, if it is short */
		shift = PAGE - GUARD - (bytes / 2 % (PAGE / 2) + align - 1) / align * align;
	b->own = get(origin, all);
	if (!b->own) { /* all memory is lent out */
		origin = ORIGIN_MALLOC;
		b->own = malloc(all);
	}
	CHECK(b->own, "no memory for %zu bytes (%s)", all, origin_names[origin]);
	b->origin = origin;
	b->own_bytes = all;
	b->mem = (unsigned char *)b->own + shift;
	b->room = bytes;
	b->key = key;
	pattern(b->mem, whole, key);
}

void buffer_put(struct buffer *b)
{
	switch (b->origin) {
	case ORIGIN_STATIC:
		pool_put(&pools[0]);
		break;
	case ORIGIN_STACK:
		pool_put(&pools[1]);
		break;
	case ORIGIN_SAME:
		same_put(b->own_bytes);
		break;
	case ORIGIN_ALLOC_MEM:
		DO(MPI_Free_mem(b->own));
		break;
	default:
		if (is_mapped(b->origin))
			munmap(b->own, b->own_bytes);
		else
			free(b->own);
	}
	b->own = NULL;
}

/* ---- Ends of messages
 * ----------------------------------------------------------------------------------- */

void half_get(struct half *h, const struct shape *shape, int unit, size_t units_count,
	      enum origin origin, uint64_t key)
{
	ptrdiff_t low, high;

	layout_make(&h->l, shape, unit, true);
	h->count = (int)((units_count + h->l.units - 1) / h->l.units);
	layout_span(&h->l, (size_t)h->count, &low, &high);
	buffer_get(&h->b, origin, (size_t)(high - low), units[unit].align, key ^ 0x5bd1e995u);
	h->q = MPI_REQUEST_NULL;
	h->open = true;
}

void *half_at(const struct half *h)
{
	ptrdiff_t low, high;

	layout_span(&h->l, (size_t)h->count, &low, &high);
	return h->b.mem + GUARD - low;
}

static void image(const struct half *h, unsigned char *to, uint64_t key, size_t bytes)
{
	unsigned char *data = scratch(1, bytes);
	ptrdiff_t low, high;

	pattern(to, h->b.room + 2 * GUARD, h->b.key);
	pattern(data, bytes, key);
	layout_span(&h->l, (size_t)h->count, &low, &high);
	layout_scatter(&h->l, to + GUARD - low, data, bytes);
}

void half_fill(struct half *h, uint64_t key, size_t bytes)
{
	image(h, h->b.mem, key, bytes);
	h->key = key;
	h->bytes = bytes;
}

void bytes_check(const unsigned char *is, const unsigned char *should, size_t bytes,
		 const char *what)
{
	size_t i = 0, wrong = 0, k;

	if (!memcmp(is, should, bytes))
		return;
	while (is[i] == should[i])
		i++;
	for (k = i; k < bytes; k++)
		wrong += is[k] != should[k];
	failed("%s: byte %ld of %zu is %02x, not %02x; %zu are wrong", what, (long)i - GUARD,
	       bytes - 2 * GUARD, is[i], should[i], wrong);
}

void half_check(const struct half *h, uint64_t key, size_t bytes, const char *what)
{
	unsigned char *should = scratch(0, h->b.room + 2 * GUARD);

	image(h, should, key, bytes);
	bytes_check(h->b.mem, should, h->b.room + 2 * GUARD, what);
}

void half_put(struct half *h)
{
	if (h->l.type != MPI_DATATYPE_NULL)
		MPI_Type_free(&h->l.type);
	buffer_put(&h->b);
	h->open = false;
}
