/* peer_failure.h - a peer that has failed. */
#ifndef RAIL_PEER_FAILURE_H
#define RAIL_PEER_FAILURE_H

struct rail_peer;

/* Advice after a failure of the rail itself. */
#define RAIL_ADVICE_AND(more) "check the link and the ports at both ends" more ", or leave the rail out (--rails)"
#define RAIL_ADVICE RAIL_ADVICE_AND("")

/* Fail the peer: its queue pairs stop, rail_progress ends its operations. */
void rail_peer_fail(struct rail_peer *peer, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The same for what all processes of this host meet: of those of the job the first one has the line.  path: the
 * rail_reach_ends of one that is cut, which is one line for all peers there; NULL: the peer's process has ended.
 */
void rail_peer_fail_together(struct rail_peer *peer, const char *path, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same without a line, for a reason that has been told. */
void rail_peer_lose(struct rail_peer *peer, int error, const char *why);

/* A step of its connection, with `rc` at the end: the error of it is one line, which names the peer. */
void rail_peer_connecting(const struct rail_peer *peer);
void rail_peer_connected(struct rail_peer *peer, int rc);

#endif
