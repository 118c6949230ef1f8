/*
 * mapped.h - receive buffers that peers map: --map-buffers.
 *
 * Between processes that the software HCA connects, the receive buffer of a message by
 * rendezvous is mapped when it is used a second time, where that is possible (softhca_map): then
 * the sender writes all of the message with one copy of its own.  Only bytes that belong to the
 * receive that is under way are moved, so each buffer has a registration of its own here, never
 * joined with neighbours as in the cache (mr.h); and only while no other operation
 * uses any of them.
 *
 * What is kept is bounded: MAPPED_MAX buffers, a quarter of the machine's memory.  The buffer that
 * was unused for longest is moved back first.
 */
#ifndef RAIL_MAPPED_H
#define RAIL_MAPPED_H

#include <stddef.h>

struct rail_buf;
struct rail_ctx;
struct rail_mapped;
struct rail_mr;

enum { MAPPED_MAX = 512 };

/* 0, or -ENOMEM.  ctx->map_from is set: the bytes from which on a buffer is worth it. */
int rail_mapped_open(struct rail_ctx *ctx);
void rail_mapped_close(struct rail_ctx *ctx);

/*
 * For a receive of `bytes` into buf that begins now: the buffer's own registration, mapped, with
 * one reference (rail_mr_put), or NULL: it is not mapped, the cache has to do.
 */
struct rail_mr *rail_mapped_get(struct rail_ctx *ctx, const struct rail_buf *buf, size_t bytes);

#endif
