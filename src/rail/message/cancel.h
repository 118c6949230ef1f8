/* cancel.h - sends that are cancelled: the records, waiting and arrived. */
#ifndef RAIL_CANCEL_H
#define RAIL_CANCEL_H

struct op;
struct rail_peer;
struct rail_record;
struct rail_tx;

int rail_cancel_post(struct rail_tx *tx, const struct op *op);
void rail_cancel_arrived(struct rail_peer *peer, const struct rail_record *record);
void rail_cancelled_arrived(struct rail_peer *peer, const struct rail_record *record);

#endif
