/* copy_choice.c - see copy_choice.h. */
#include "util/copy_choice.h"

/* Places in pages that are so near to each other are nearly the same, bytes. */
enum { PAGE = 4096, NEAR = 512 };

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

/* The lower quartile: disturbances only add time. */
uint32_t rg_copy_cost(const struct rg_copy_cell *cell, enum rg_copy_way way)
{
	return cell->sample_ns[way][(RG_COPY_SAMPLES - 1) / 4];
}

void rg_copy_give(struct rg_copy_cell *cell, enum rg_copy_way way, const uint32_t cost_ns[RG_COPY_WAYS])
{
	for (int w = 0; w < RG_COPY_WAYS; w++)
		cell->sample_ns[w][(RG_COPY_SAMPLES - 1) / 4] = cost_ns[w];
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
	if (cell->samples[RG_COPY_WHOLE] < RG_COPY_SAMPLES)
		return;
	way_set(cell, (uint64_t)rg_copy_cost(cell, RG_COPY_WHOLE) * (100 + RG_COPY_MARGIN) <
				(uint64_t)rg_copy_cost(cell, RG_COPY_BLOCKS) * 100 ?
		      RG_COPY_WHOLE : RG_COPY_BLOCKS);
	atomic_store_explicit(&cell->settled, true, memory_order_release);
}
