/*
 * events.h - asynchronous events of adapters: rails that end, or go on.
 *
 * Events are read once a second, and before a failed request is told.  A line tells of each, from
 * one process of a host, which is the first one that knows where a rail ends:
 *
 *  - DEVICE_FATAL, CQ_ERR and SRQ_ERR end all rails of the adapter.
 *  - PORT_ERR: requests are tried again for some seconds, so that a cable may come back; a port that
 *    is DOWN for EVENTS_DOWN_NS ends its rail.  A connection that is lost meanwhile tells why.
 *  - After any other event of a port its LID, GID and P_Key are read.  Where one has changed the rail
 *    ends, since connections were made by them; else the rail goes on.
 *
 * All peers over a rail that ends have failed (peer_failure.h), also where other rails to them live.
 * Chunks of a rendezvous could be written again over another rail; the records of eager lanes could
 * not:
 *
 *  - A record without its acknowledgement may have been taken or not.  Sent again it would be a message
 *    received twice, left out a message lost.  Only the receiver knows the number that it has taken,
 *    and no record tells it.
 *  - The sender has no copy of it: inline data are in the request alone, and a staging buffer is for
 *    the next record once its request is out.
 *  - Packets that the network holds may land after their queue pair has failed at the sender, until
 *    the receiver has stopped its own: the same slot must not be written before over another rail.
 *  - Every rail carries records: with two hosts one rail those of each direction (rail_peer_bound).
 *    RTS, CTS and FIN of all chunks are among them.
 *
 * To go on, a peer would need an eager lane on a second rail, a copy of each record until it is
 * granted, and an exchange of the numbers taken after both ends have stopped the first.
 *
 * The software HCA tells of paths by itself (vrb_ud_lost): its events are not read.
 */
#ifndef RAIL_EVENTS_H
#define RAIL_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct rail_ctx;

#define EVENTS_DOWN_NS 10000000000ull

/* The adapters are open before. */
void rail_events_open(struct rail_ctx *ctx);
void rail_events_read(struct rail_ctx *ctx, uint64_t now_ns);

#endif
