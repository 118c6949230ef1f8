/* stripe.c - the table of chunks. */
#include <errno.h>
#include <string.h>

#include "stripe.h"

static uint64_t align_down(uint64_t x)
{
	return x & ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
}

static uint64_t align_up(uint64_t x)
{
	return align_down(x + RAIL_STRIPE_ALIGN - 1);
}

void rail_stripe_weights(struct rail_cut *cut, enum rail_policy policy, uint64_t threshold,
			 uint64_t bytes, int bound_rail)
{
	memset(cut->weight, 0, sizeof(cut->weight));
	if (policy == RAIL_STRIPE && bytes > threshold)
		for (int r = 0; r < cut->rail_count; r++)
			cut->weight[r] = 1;
	else
		cut->weight[policy == RAIL_SINGLE ? 0 : bound_rail] = 1;
}

/*
 * Pieces of at most limit bytes are at most sum(piece / limit + 1) in number, so
 * this limit keeps them within RAIL_CHUNKS_MAX on up to RAIL_MAX rails.
 */
static uint64_t chunk_limit(uint64_t bytes, uint64_t chunk_bytes)
{
	uint64_t least = align_up(bytes / (RAIL_CHUNKS_MAX - RAIL_MAX) + 1);

	return least > chunk_bytes ? least : chunk_bytes;
}

int rail_stripe_plan(struct rail_stripe *s, uint64_t bytes, const struct rail_cut *cut)
{
	uint64_t limit, total = 0, sum = 0, begin = 0;

	if (bytes > RAIL_STRIPE_MAX_BYTES)
		return -EMSGSIZE;
	limit = chunk_limit(bytes, cut->chunk_bytes);
	for (int r = 0; r < cut->rail_count; r++)
		total += cut->weight[r];
	s->chunk_count = 0;
	s->rail_count = cut->rail_count;
	for (int r = 0; r < cut->rail_count; r++) {
		struct rail_piece *p = &s->piece[r];
		uint64_t end;

		/* No overflow: 2^36 bytes times 8 x 2^16. */
		sum += cut->weight[r];
		end = sum == total ? bytes : align_down(bytes * sum / total);
		p->offset = begin;
		p->bytes = end - begin;
		p->first = s->chunk_count;
		p->count = (uint32_t)((p->bytes + limit - 1) / limit);
		s->chunk_count += p->count;
		begin = end;
	}
	return 0;
}

static uint64_t part_begin(const struct rail_piece *p, uint32_t k)
{
	return k == p->count ? p->bytes : align_down(p->bytes * k / p->count);
}

struct rail_chunk rail_stripe_chunk(const struct rail_stripe *s, uint32_t n)
{
	const struct rail_piece *p = s->piece;
	uint64_t begin;

	while (n - p->first >= p->count)
		p++;
	begin = part_begin(p, n - p->first);
	return (struct rail_chunk){
		.offset = p->offset + begin,
		.bytes = part_begin(p, n - p->first + 1) - begin,
		.rail = (int)(p - s->piece),
	};
}
