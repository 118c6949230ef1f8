/*
 * mapped.h - receive buffers that peers map: --map-buffers.
 *
 * Between processes that the software HCA connects, the receive buffer of a message by
 * rendezvous is mapped at its second use, where that is possible (softhca_map): then the sender
 * writes the whole message with one copy of its own.  Mapping moves only bytes of the receive that
 * is under way, and only while no other operation uses any of them.  So each buffer has a
 * registration of its own here, never joined with neighbours as in the cache (mr.h).
 *
 * At most MAPPED_MAX buffers and a quarter of the machine's memory are mapped.  The buffer that
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

/* 0, or -ENOMEM.  Sets ctx->map_from, the least bytes of a buffer to be mapped. */
int rail_mapped_open(struct rail_ctx *ctx);
void rail_mapped_close(struct rail_ctx *ctx);

/*
 * For a receive of `bytes` into buf that begins now: the buffer's own registration, mapped, with
 * one reference (rail_mr_put).  NULL: the buffer is not mapped; take a registration of the cache.
 */
struct rail_mr *rail_mapped_get(struct rail_ctx *ctx, const struct rail_buf *buf, size_t bytes);

#endif
