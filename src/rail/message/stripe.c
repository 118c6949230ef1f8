/* stripe.c - the table of chunks. */
#include <errno.h>

#include "rail/message/stripe.h"

static uint64_t align_down(uint64_t x)
{
	return x & ~(uint64_t)(RAIL_STRIPE_ALIGN - 1);
}

static uint64_t align_up(uint64_t x)
{
	return align_down(x + RAIL_STRIPE_ALIGN - 1);
}

/* ---- Pulled ------------------------------------------------------------- */

enum {
	PULL_SHARE = 4,			/* chunks for each rail ... */
	PULL_LEAST = 8192,		/* ... of at least so many bytes */
	PULL_TAIL_LEAST = 16384,	/* smaller chunks are not halved */
};

/*
 * The last rail_count chunks are cut: the first half of their bytes into halves, the second
 * into quarters, so 2 x rail_count chunks more.  Small messages have the same number of
 * chunks for each rail: equal rails share a small message evenly.
 */
static void pull_plan(struct rail_stripe *s, uint64_t bytes, uint32_t rails)
{
	uint64_t share = (bytes + rails * PULL_LEAST - 1) / (rails * PULL_LEAST);
	uint64_t n = share ? rails * (share < PULL_SHARE ? share : PULL_SHARE) : 1;
	uint32_t most = RAIL_CHUNKS_MAX - 2 * rails;
	bool tail;

	if (n * RAIL_PULL_BYTES < bytes)
		n = (bytes + RAIL_PULL_BYTES - 1) / RAIL_PULL_BYTES;
	n = n < most ? n : most;
	tail = bytes / n >= PULL_TAIL_LEAST;
	if (bytes / n > RAIL_CHUNK_MAX_BYTES) {
		n = RAIL_CHUNKS_MAX;
		tail = false;
	}
	if (bytes < n * RAIL_STRIPE_ALIGN)
		n = bytes < RAIL_STRIPE_ALIGN ? 1 : bytes / RAIL_STRIPE_ALIGN;
	s->pull = true;
	s->bytes = bytes;
	s->units = (uint32_t)n * 4;
	s->wholes = (uint32_t)n - (tail ? rails : 0);
	s->halves = tail ? rails : 0;
	s->chunk_count = bytes ? s->wholes + s->halves + (tail ? 2 * rails : 0) : 0;
}

/* The first byte of chunk n; n = chunk_count: the end. */
static uint64_t pull_begin(const struct rail_stripe *s, uint32_t n)
{
	uint64_t unit;

	if (n == s->chunk_count)
		return s->bytes;
	if (n <= s->wholes)
		unit = (uint64_t)n * 4;
	else if (n <= s->wholes + s->halves)
		unit = s->wholes * 4 + (n - s->wholes) * 2;
	else
		unit = s->wholes * 4 + s->halves * 2 + (n - s->wholes - s->halves);
	/* No overflow: 2^36 bytes times 2^8 units. */
	return align_down(s->bytes * unit / s->units);
}

/* ---- A piece for each rail ---------------------------------------------- */

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
	s->rail_count = cut->rail_count;
	s->pull = false;
	if (cut->pull) {
		pull_plan(s, bytes, (uint32_t)cut->rail_count);
		return 0;
	}
	limit = chunk_limit(bytes, cut->chunk_bytes);
	for (int r = 0; r < cut->rail_count; r++)
		total += cut->weight[r];
	s->chunk_count = 0;
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

	if (s->pull) {
		begin = pull_begin(s, n);
		return (struct rail_chunk){
			.offset = begin,
			.bytes = pull_begin(s, n + 1) - begin,
			.rail = RAIL_ANY,
		};
	}
	while (n - p->first >= p->count)
		p++;
	begin = part_begin(p, n - p->first);
	return (struct rail_chunk){
		.offset = p->offset + begin,
		.bytes = part_begin(p, n - p->first + 1) - begin,
		.rail = (int)(p - s->piece),
	};
}
