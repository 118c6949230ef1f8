/*
 * mapped.h - receive buffers that peers map: --map-buffers.
 *
 * Between processes that the software HCA connects, the receive buffer of a message by
 * rendezvous can be mapped (softhca_map): then the sender writes the message, or half of it, with a copy of
 * its own.  Whether a class of sizes is mapped, and from which use of a buffer on, follows from
 * measured costs (map_choice.h); before the measurement ends it is the second one.  Mapping moves only bytes of the receive that
 * is under way, and only while no other operation uses any of them.  So each buffer has a
 * registration of its own here, never joined with neighbours as in the cache (mr.h).
 *
 * At most MAPPED_MAX buffers and a quarter of the machine's memory are mapped.  The buffer that
 * was unused for longest is moved back first.
 */
#ifndef RAIL_MAPPED_H
#define RAIL_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/memory/map_choice.h"

struct rail_buf;
struct rail_ctx;
struct rail_mapped;
struct rail_mr;

enum { MAPPED_MAX = 512 };

/* 0, or -ENOMEM.  Sets ctx->map_from, the least bytes of a buffer to be mapped. */
int rail_mapped_open(struct rail_ctx *ctx);
void rail_mapped_close(struct rail_ctx *ctx);

/* The state of a receive's buffer. */
enum rail_map_use {
	MAP_USE_NONE,			/* cannot be mapped */
	MAP_USE_COULD,			/* plain, may be mapped later */
	MAP_USE_IS,			/* it is mapped */
	MAP_USE_MOVED,			/* it is mapped for this receive */
};

/*
 * For a receive of `bytes` into buf that begins now, from a peer of this place: the buffer's own
 * registration, mapped, with one reference (rail_mr_put).  NULL: the buffer is not mapped; take a registration of
 * the cache.
 */
struct rail_mr *rail_mapped_get(struct rail_ctx *ctx, const struct rail_buf *buf, size_t bytes, unsigned place,
				enum rail_map_use *use);
/* The scheme of a message into a mapped buffer: MAP_WRITTEN or MAP_HALVES. */
enum rail_map_scheme rail_mapped_scheme(const struct rail_ctx *ctx, size_t bytes, unsigned place);
/* The receive begins so.  True: its end is told by rail_mapped_done. */
bool rail_mapped_take(struct rail_ctx *ctx, size_t bytes, unsigned place, enum rail_map_use use,
		      enum rail_map_scheme as, uint8_t *batch);
void rail_mapped_done(struct rail_ctx *ctx, size_t bytes, unsigned place, uint8_t batch);
/* Messages under way are lost. */
void rail_mapped_forget(struct rail_ctx *ctx);

/* The table of choices; ctx->mapped is set. */
struct rail_map_choice *rail_mapped_choice(const struct rail_ctx *ctx);

#endif
