/* rndv_send.h - rendezvous, the end that sends: RTS and KEYS out, CTS and FIN in. */
#ifndef RAIL_RNDV_SEND_H
#define RAIL_RNDV_SEND_H

struct rail_buf;
struct rail_header;
struct op;
struct rail_peer;
struct rail_record;
struct rail_way;

/* Send the RTS, and KEYS before it, with the results of rail_send. */
int rail_rndv_send(struct rail_peer *peer, const struct rail_way *way,
		   const struct rail_header *header, const struct rail_buf *buf,
		   struct op *op);
/* Records that have come. */
void rail_cts_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload);
void rail_ask_arrived(struct rail_peer *peer, const struct rail_record *record);
void rail_fin_arrived(struct rail_peer *peer, const struct rail_record *record,
		      const void *payload);

#endif
