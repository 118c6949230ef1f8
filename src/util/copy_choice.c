/* copy_choice.c - see copy_choice.h. */
#include "util/copy_choice.h"

/* Places in pages that are so near to each other are nearly the same, bytes. */
enum { PAGE = 4096, NEAR = 512 };

/* Few samples tell such a difference, percent. */
enum { CLEAR = 25 };

unsigned rg_copy_class(const void *to, const void *from, size_t bytes)
{
	const uintptr_t ahead = ((uintptr_t)to - (uintptr_t)from + NEAR) % PAGE;
	unsigned size = 0;

	while (bytes > 2 * RG_COPY_LEAST << size)
		size++;
	return RG_COPY_PLACES * size + (ahead < 2 * NEAR);
}

static void way_set(struct rg_copy_cell *cell, enum rg_copy_way way)
{
	atomic_store_explicit(&cell->way, (uint8_t)way, memory_order_relaxed);
}

bool rg_copy_next(struct rg_copy_cell *cell)
{
	if (cell->passed < RG_COPY_PASSED) {
		cell->passed++;
		return false;
	}
	way_set(cell, cell->samples[RG_COPY_WHOLE] < cell->samples[RG_COPY_BLOCKS] ? RG_COPY_WHOLE :
										      RG_COPY_BLOCKS);
	return true;
}

static void sample_add(struct rg_copy_cell *cell, enum rg_copy_way way, uint32_t ns)
{
	uint32_t *sample = cell->sample_ns[way];
	unsigned at = cell->samples[way]++;

	for (; at && sample[at - 1] > ns; at--)
		sample[at] = sample[at - 1];
	sample[at] = ns;
}

/*
 * A mean of many varies less than any one of them; most disturbances add time, so it leaves more above out.  Both
 * ways have as many samples.
 */
uint32_t rg_copy_cost(const struct rg_copy_cell *cell, enum rg_copy_way way)
{
	const unsigned n = cell->samples[way], first = n / 8, end = n * 5 / 8;
	uint64_t sum = 0;

	if (cell->given)
		return cell->given_ns[way];
	for (unsigned i = first; i < end; i++)
		sum += cell->sample_ns[way][i];
	return end > first ? (uint32_t)(sum / (end - first)) : 0;
}

static bool is_faster(const struct rg_copy_cell *cell, enum rg_copy_way way, enum rg_copy_way other, unsigned percent)
{
	return (uint64_t)rg_copy_cost(cell, way) * (100 + percent) < (uint64_t)rg_copy_cost(cell, other) * 100;
}

/* Is there nothing more to learn?  Ways that are near to each other take more samples. */
static bool is_decided(const struct rg_copy_cell *cell)
{
	const unsigned n = cell->samples[RG_COPY_WHOLE];

	return n == RG_COPY_SAMPLES || (n == RG_COPY_FEW && (is_faster(cell, RG_COPY_WHOLE, RG_COPY_BLOCKS, CLEAR) ||
							     is_faster(cell, RG_COPY_BLOCKS, RG_COPY_WHOLE, CLEAR)));
}

void rg_copy_give(struct rg_copy_cell *cell, enum rg_copy_way way, const uint32_t cost_ns[RG_COPY_WAYS])
{
	for (int w = 0; w < RG_COPY_WAYS; w++)
		cell->given_ns[w] = cost_ns[w];
	cell->given = true;
	way_set(cell, way);
	atomic_store_explicit(&cell->settled, true, memory_order_release);
}

void rg_copy_took(struct rg_copy_cell *cell, size_t bytes, uint64_t ns)
{
	const enum rg_copy_way way =
		(enum rg_copy_way)atomic_load_explicit(&cell->way, memory_order_relaxed);
	const uint64_t most = UINT32_MAX / RG_COPY_MOST;

	sample_add(cell, way, (uint32_t)((ns < most ? ns : most) * RG_COPY_MOST / bytes));
	if (cell->samples[RG_COPY_WHOLE] < cell->samples[RG_COPY_BLOCKS] || !is_decided(cell))
		return;
	way_set(cell, is_faster(cell, RG_COPY_WHOLE, RG_COPY_BLOCKS, RG_COPY_MARGIN) ? RG_COPY_WHOLE : RG_COPY_BLOCKS);
	atomic_store_explicit(&cell->settled, true, memory_order_release);
}
