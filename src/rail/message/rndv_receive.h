/* rndv_receive.h - rendezvous, the end that receives: RTS and KEYS in, CTS and FIN out. */
#ifndef RAIL_RNDV_RECEIVE_H
#define RAIL_RNDV_RECEIVE_H

struct op;
struct rail_ctx;
struct rail_record;
struct rail_rx;

/* Fetch the wanted bytes: read them, or clear them to send. */
void rndv_receive(struct op *op);
/* All wanted bytes have been written, or have been read. */
void rndv_written_done(struct op *op);
void rndv_read_done(struct op *op);
/* The FIN is out. */
void rndv_fin_sent(struct op *op);
/* op has a landing: the sender may write. */
void rndv_clear_to_send(struct op *op);
/* The CTS is out.  RNDV_BOTH: the sender begins to write, and this end to read. */
void rndv_cts_sent(struct op *op);
/* This process polls: has the data come that senders owe (late.h)?  Called if ctx->watched. */
void rail_late_look_all(struct rail_ctx *ctx);
/* Records that have come. */
void rail_keys_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload);
void rail_rts_arrived(struct rail_rx *rx, const struct rail_record *record, const void *payload);

#endif
