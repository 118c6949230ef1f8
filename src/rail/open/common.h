/* common.h - the rails that all hosts of a job have, in the context of one process. */
#ifndef RAIL_COMMON_H
#define RAIL_COMMON_H

struct rail_ctx;

/* Fills ctx->rail with this host's ends of the rails of ctx->cfg.hosts.  0, or -errno after a line. */
int rail_common_select(struct rail_ctx *ctx);

#endif
