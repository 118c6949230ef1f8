/* trace.h - rail_config.on_eager: functions that take the place of others while it is wanted. */
#ifndef RAIL_TRACE_H
#define RAIL_TRACE_H

struct rail_ctx;
struct rail_tx;

/* What arrives. */
void rail_trace_start(struct rail_ctx *ctx);
/* What is sent there, once the lane's functions are set. */
void rail_trace_tx(struct rail_tx *tx);

#endif
