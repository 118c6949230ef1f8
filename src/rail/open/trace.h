/* trace.h - rail_config.on_eager: functions that replace others while it is set. */
#ifndef RAIL_TRACE_H
#define RAIL_TRACE_H

struct rail_ctx;
struct rail_tx;

/* Trace messages that arrive. */
void rail_trace_start(struct rail_ctx *ctx);
/* Trace messages sent by tx, once the lane's functions are set. */
void rail_trace_tx(struct rail_tx *tx);

#endif
