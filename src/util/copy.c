/* copy.c - see copy.h. */
#include "util/copy.h"

#include "util/clock.h"
#include "util/copy_choice.h"

enum { BLOCK = 1024, BLOCKS_MOST = 16 * BLOCK, SHORT_MOST = 2 * BLOCK, SHORT_BLOCK = 256 };

/*
 * From about 2 KiB on the C library copies by one string instruction, which some processors execute
 * four times slower where both ends have nearly the same place in their pages.  For long copies the
 * instruction is the better one.
 */
static void copy_in(size_t block, unsigned char *out, const unsigned char *in, size_t bytes)
{
	if (bytes <= BLOCKS_MOST)
		for (; bytes > block; bytes -= block) {
			memmove(out, in, block);
			out += block;
			in += block;
		}
	memmove(out, in, bytes);
}

void rg_copy_blocks(void *to, const void *from, size_t bytes)
{
	copy_in(BLOCK, to, from, bytes);
}

/* ---- To another core ------------------------------------------------------ */

_Static_assert((size_t)BLOCKS_MOST == RG_COPY_MOST, "a choice for each copy in blocks, above some");

static struct rg_copy_cell choice[RG_COPY_CLASSES];

struct rg_copy_cell *rg_copy_choice(unsigned class)
{
	return &choice[class];
}

/*
 * Up to 256 bytes the C library loads all before it stores; in its loop for more, loads wait for stores of
 * the same place in a page, which take long where another core has the line.
 */
static void copy_by_blocks(void *to, const void *from, size_t bytes)
{
	copy_in(bytes < SHORT_MOST ? SHORT_BLOCK : BLOCK, to, from, bytes);
}

static void copy_by(const struct rg_copy_cell *cell, void *to, const void *from, size_t bytes)
{
	if (atomic_load_explicit(&cell->way, memory_order_relaxed) == RG_COPY_WHOLE)
		memmove(to, from, bytes);
	else
		copy_by_blocks(to, from, bytes);
}

/* A copy from which a choice is learned, unless another thread makes one. */
static __attribute__((noinline)) void copy_and_learn(struct rg_copy_cell *cell, void *to, const void *from,
						     size_t bytes)
{
	uint64_t begun_ns;

	if (atomic_exchange_explicit(&cell->taken, true, memory_order_acquire)) {
		copy_by_blocks(to, from, bytes);
		return;
	}
	if (!atomic_load_explicit(&cell->settled, memory_order_relaxed) && rg_copy_next(cell)) {
		begun_ns = rg_now_ns();
		copy_by(cell, to, from, bytes);
		rg_copy_took(cell, bytes, rg_now_ns() - begun_ns);
	} else {
		copy_by(cell, to, from, bytes);
	}
	atomic_store_explicit(&cell->taken, false, memory_order_release);
}

void rg_copy_to_other_core(void *to, const void *from, size_t bytes)
{
	struct rg_copy_cell *cell;

	if (bytes < RG_COPY_LEAST || bytes > RG_COPY_MOST) {
		copy_by_blocks(to, from, bytes);
		return;
	}
	cell = &choice[rg_copy_class(to, from, bytes)];
	if (likely(atomic_load_explicit(&cell->settled, memory_order_relaxed)))
		copy_by(cell, to, from, bytes);
	else
		copy_and_learn(cell, to, from, bytes);
}
