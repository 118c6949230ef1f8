/* mapped.c - see mapped.h. */
#include "rail/memory/mapped.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/compiler.h"
#include "util/err.h"
#include "memwatch/memwatch.h"
#include "rail/memory/mr.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

enum {
	WAYS = 4,			/* entries of the table that may hold a buffer */
	SETS = MAPPED_MAX / WAYS,
	MAPPED_BYTES = 32 << 10,	/* smaller messages have few whole pages */
	CHECKED_NS = 10000000,		/* time between checks for the process's devices */
	DUE_MAX = 1024,			/* uses of a buffer before it is mapped, at most */
	SERVED = 16,			/* uses of a mapped buffer that repay the move of its pages */
};

/* A buffer that has been received into, known by its first address. */
struct buffer {
	struct rail_mr mr;		/* bytes 0: free; registered and mapped if on[0] is set */
	uint32_t uses, due;		/* before it is mapped; number that makes it mapped */
	uint32_t served;		/* uses since then */
	uint64_t repairs;		/* count of the watch on memory when it was mapped */
};

struct rail_mapped {
	struct buffer buffer[SETS][WAYS];
	size_t bytes, max_bytes;	/* mapped */
	uint64_t clock, checked_ns;
	bool held;			/* a device may know pages: no page is moved */
	uint64_t move_begun_ns;		/* of the last receive that moves pages */
	struct rail_map_count count;
	struct rail_map_choice choice;
};

int rail_mapped_open(struct rail_ctx *ctx)
{
	ctx->map_from = SIZE_MAX;
	if (!ctx->settings.map_buffers)
		return 0;
	if (!ctx->cfg.use_softhca || ctx->rail[0].port->net) {
		if (!ctx->cfg.index)
			rg_warn("--map-buffers: receive buffers are not mapped, since %s (accepted: with "
				"the software HCA in memory)", ctx->cfg.use_softhca ?
				"their data come over TCP" : "adapters know them");
		return 0;
	}
	ctx->mapped = calloc(1, sizeof(*ctx->mapped));
	if (!ctx->mapped)
		return -ENOMEM;
	ctx->mapped->max_bytes = (size_t)sysconf(_SC_PHYS_PAGES) / 4 *
				 (size_t)sysconf(_SC_PAGESIZE);
	rail_map_choice_init(&ctx->mapped->choice);
	ctx->map_from = MAPPED_BYTES;
	return 0;
}

void rail_map_count(const struct rail_ctx *ctx, struct rail_map_count *out)
{
	*out = ctx->mapped ? ctx->mapped->count : (struct rail_map_count){ .buffers = 0 };
}

int rail_keep(struct rail_ctx *ctx, const void *addr, size_t bytes)
{
	return ctx->mapped && bytes ? softhca_keep(addr, bytes) : 0;
}

void rail_unkeep(struct rail_ctx *ctx, const void *addr, size_t bytes)
{
	if (ctx->mapped)
		softhca_unkeep(addr, bytes);
}

/* ---- Registrations ------------------------------------------------------ */

static bool is_registered(const struct buffer *b)
{
	return b->mr.on[0];
}

/* A buffer that leaves the table is moved back, unless a device may know its pages. */
static void buffer_unregister(struct rail_ctx *ctx, struct buffer *b)
{
	if (!is_registered(b))
		return;
	if (!ctx->mapped->held)
		softhca_unmap(b->mr.on[0]);
	ctx->mr.detach(ctx->mr.user, &b->mr);
	ctx->mapped->bytes -= b->mr.bytes;
}

/* Start to count the uses of a buffer anew.  No operation uses it. */
static void buffer_begin(struct rail_ctx *ctx, struct buffer *b, uintptr_t start, size_t bytes)
{
	buffer_unregister(ctx, b);
	*b = (struct buffer){ .mr = { .start = start, .bytes = bytes }, .uses = 1, .due = 2 };
	b->mr.used = start ? ++ctx->mapped->clock : 0;
}

void rail_mapped_close(struct rail_ctx *ctx)
{
	struct buffer *first = ctx->mapped ? &ctx->mapped->buffer[0][0] : NULL;

	for (struct buffer *b = first; first && b < first + MAPPED_MAX; b++)
		buffer_unregister(ctx, b);
	free(ctx->mapped);
	ctx->mapped = NULL;
}

/* The buffer that was unused for longest and that no operation uses; NULL: none. */
static struct buffer *buffer_oldest(struct rail_mapped *m, struct buffer *first, int count,
			     bool registered)
{
	struct buffer *best = NULL;

	for (struct buffer *b = first; b < first + count; b++)
		if (!b->mr.refs && (is_registered(b) ? !m->held : !registered) &&
		    (!best || b->mr.used < best->mr.used))
			best = b;
	return best;
}

static bool make_room(struct rail_ctx *ctx, size_t bytes)
{
	struct rail_mapped *m = ctx->mapped;

	while (m->bytes + bytes > m->max_bytes) {
		struct buffer *b = buffer_oldest(m, &m->buffer[0][0], MAPPED_MAX, true);

		if (!b)
			return false;
		buffer_begin(ctx, b, 0, 0);
	}
	return true;
}

/* Does any operation use bytes of mr, through the cache or through a buffer here? */
static bool is_in_use(const struct rail_ctx *ctx, const struct rail_mr *mr)
{
	const struct buffer *first = &ctx->mapped->buffer[0][0];

	if (rail_mr_in_use(&ctx->mr, mr->start, mr->bytes))
		return true;
	for (const struct buffer *b = first; b < first + MAPPED_MAX; b++)
		if (b->mr.refs && b->mr.start < mr->start + mr->bytes &&
		    mr->start < b->mr.start + b->mr.bytes)
			return true;
	return false;
}

/* Register the buffer by itself, and map it. */
static bool buffer_map(struct rail_ctx *ctx, struct buffer *b, const void *frame)
{
	int a = 0;

	if (!make_room(ctx, b->mr.bytes) || ctx->mr.attach(ctx->mr.user, &b->mr))
		return false;
	/* The first adapter moves the pages, the others find them moved. */
	while (a < ctx->adapter_count && !softhca_map(b->mr.on[a], frame))
		a++;
	if (a < ctx->adapter_count) {
		if (a > 0)
			softhca_unmap(b->mr.on[0]);
		ctx->mr.detach(ctx->mr.user, &b->mr);
		return false;
	}
	b->repairs = rg_memwatch_repairs();
	ctx->mapped->bytes += b->mr.bytes;
	ctx->mapped->count.buffers++;
	ctx->mapped->count.bytes += b->mr.bytes;
	return true;
}

/* ---- Receives ----------------------------------------------------------- */

/*
 * A device that came after the first buffers were mapped may know their pages: these and all
 * others stay where they are.
 */
static void look_for_devices(struct rail_mapped *m)
{
	uint64_t now = rg_now_ns();

	if (now - m->checked_ns < CHECKED_NS)
		return;
	m->checked_ns = now;
	m->held = softhca_may_map();
}

/* Are the mapped pages still those at the buffer's addresses? */
static bool is_mapped(const struct buffer *b)
{
	return is_registered(b) && rg_memwatch_check() && b->repairs == rg_memwatch_repairs() &&
	       softhca_is_mapped(b->mr.on[0]);
}

/* The entry of the buffer that begins at start, perhaps a new one; NULL: all are in use. */
static struct buffer *buffer_find(struct rail_ctx *ctx, uintptr_t start)
{
	const uint64_t mixed = (uint64_t)(start >> 4) * 0x9e3779b97f4a7c15u;
	struct buffer *set = ctx->mapped->buffer[mixed >> 32 & (SETS - 1)], *b;

	for (b = set; b < set + WAYS; b++)
		if (b->mr.start == start)
			return b;
	b = buffer_oldest(ctx->mapped, set, WAYS, false);
	if (b)
		buffer_begin(ctx, b, start, 0);
	return b;
}

/* Count the uses of a buffer anew, up to `due`. */
static void buffer_recount(struct rail_ctx *ctx, struct buffer *b, size_t bytes, uint32_t due)
{
	buffer_begin(ctx, b, b->mr.start, bytes);
	b->due = due < DUE_MAX ? due : DUE_MAX;
}

/*
 * The program has unmapped the buffer, and perhaps frees it after each use; or it cannot be mapped
 * now.  The next mapping waits for twice as many uses.
 */
static void buffer_put_off(struct rail_ctx *ctx, struct buffer *b)
{
	buffer_recount(ctx, b, b->mr.bytes, 2 * b->due);
}

/* A receive is longer than a mapped buffer: lengths that change often cost more than they save. */
static void buffer_lengthen(struct rail_ctx *ctx, struct buffer *b, size_t bytes)
{
	buffer_recount(ctx, b, bytes, b->served < SERVED ? 2 * b->due - 1 : 2);
}

/*
 * A receive of a class that is plain: the mapped buffer moves back.  One of a longer class stays, since it would move with
 * each change of lengths.  After the measurement it is mapped again after twice as many uses, since peers of
 * another place may have another choice.
 */
static void buffer_move_back(struct rail_ctx *ctx, struct buffer *b, size_t bytes, struct rail_map_cell *cell)
{
	const uint64_t begun_ns = rg_now_ns();

	if (ctx->mapped->held || rail_scheme_class(b->mr.bytes) > rail_scheme_class(bytes) || is_in_use(ctx, &b->mr))
		return;
	buffer_recount(ctx, b, b->mr.bytes, rail_map_learns(cell) ? b->due : 2 * b->due);
	rail_map_moved_back(cell, rg_now_ns() - begun_ns);
}

/* A use of an unmapped buffer.  True: the buffer is mapped from now on. */
static bool map_in_turn(struct rail_ctx *ctx, struct buffer *b, size_t bytes, const void *frame,
			const struct rail_map_cell *cell)
{
	const uint32_t due = rail_map_due(cell);

	if (b->mr.bytes < bytes) {
		buffer_recount(ctx, b, bytes, b->due);
		return false;
	}
	/* This receive may be shorter than earlier ones, and the rest the program's. */
	b->mr.bytes = bytes;
	b->uses += b->uses < UINT32_MAX;
	if (rail_map_wanted(cell) == MAP_PLAIN || b->uses < b->due || b->uses < due || ctx->mapped->held ||
	    is_in_use(ctx, &b->mr))
		return false;
	ctx->mapped->move_begun_ns = rg_now_ns();
	if (buffer_map(ctx, b, frame))
		return true;
	ctx->mapped->count.refused++;
	buffer_put_off(ctx, b);
	return false;
}

/* A use of a mapped buffer.  True: it still is one, and long enough. */
static bool use_mapped(struct rail_ctx *ctx, struct buffer *b, size_t bytes, struct rail_map_cell *cell)
{
	const bool mapped = is_mapped(b);

	if (!b->mr.refs && !mapped)
		buffer_put_off(ctx, b);
	else if (!b->mr.refs && rail_map_wanted(cell) == MAP_PLAIN)
		buffer_move_back(ctx, b, bytes, cell);
	else if (!b->mr.refs && b->mr.bytes < bytes && !ctx->mapped->held)
		buffer_lengthen(ctx, b, bytes);
	if (!mapped || b->mr.bytes < bytes || !is_registered(b))
		return false;
	b->served++;
	return true;
}

struct rail_mr *rail_mapped_get(struct rail_ctx *ctx, const struct rail_buf *buf, size_t bytes, unsigned place,
				enum rail_map_use *use)
{
	struct rail_map_cell *cell = rail_map_cell(&ctx->mapped->choice, place, bytes);
	struct buffer *b;

	*use = MAP_USE_NONE;
	if (!buf->frame)
		return NULL;
	look_for_devices(ctx->mapped);
	b = buffer_find(ctx, (uintptr_t)buf->addr);
	if (!b)
		return NULL;
	b->mr.used = ++ctx->mapped->clock;
	*use = ctx->mapped->held ? MAP_USE_NONE : MAP_USE_COULD;
	if (is_registered(b)) {
		if (!use_mapped(ctx, b, bytes, cell))
			return NULL;
		*use = MAP_USE_IS;
	} else if (map_in_turn(ctx, b, bytes, buf->frame, cell)) {
		*use = MAP_USE_MOVED;
	} else {
		return NULL;
	}
	b->mr.refs++;
	return &b->mr;
}

/* ---- Choices ------------------------------------------------------------ */

struct rail_map_choice *rail_mapped_choice(const struct rail_ctx *ctx)
{
	return &ctx->mapped->choice;
}

enum rail_map_scheme rail_mapped_scheme(const struct rail_ctx *ctx, size_t bytes, unsigned place)
{
	return rail_map_mapped(rail_map_cell(&ctx->mapped->choice, place, bytes));
}

bool rail_mapped_take(struct rail_ctx *ctx, size_t bytes, unsigned place, enum rail_map_use use,
		      enum rail_map_scheme as, uint8_t *batch)
{
	struct rail_map_choice *choice = &ctx->mapped->choice;
	struct rail_map_cell *cell = rail_map_cell(choice, place, bytes);

	if (likely(!rail_map_learns(cell)))
		return false;
	if (use != MAP_USE_MOVED)
		return rail_map_take(choice, cell, as, rg_now_ns(), batch);
	rail_map_take_move(choice, cell, ctx->mapped->move_begun_ns, batch);
	return true;
}

void rail_mapped_done(struct rail_ctx *ctx, size_t bytes, unsigned place, uint8_t batch)
{
	struct rail_map_choice *choice = &ctx->mapped->choice;

	rail_map_done(choice, rail_map_cell(choice, place, bytes), batch, rg_now_ns());
}

void rail_mapped_forget(struct rail_ctx *ctx)
{
	if (ctx->mapped)
		rail_map_forget(&ctx->mapped->choice);
}
