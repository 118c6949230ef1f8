/* select.h - the choice of ports as rails. */
#ifndef RAIL_SELECT_H
#define RAIL_SELECT_H

struct rail_ctx;

/* Fills ctx->rail from ctx->ports and --rails.  0, or -errno after a line. */
int rail_select(struct rail_ctx *ctx);

#endif
