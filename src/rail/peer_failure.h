/* peer_failure.h - a peer that has failed. */
#ifndef RAIL_PEER_FAILURE_H
#define RAIL_PEER_FAILURE_H

struct rail_peer;

/* It has failed from now on: its queue pairs stop, rail_progress ends what is under way. */
void rail_peer_fail(struct rail_peer *peer, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
