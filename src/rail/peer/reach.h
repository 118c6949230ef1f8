/*
 * reach.h - a peer that does not answer datagrams: is it lost?
 *
 * Silence proves nothing.  The progress thread answers for a peer that computes; a peer that is
 * stopped (SIGSTOP, a debugger, a suspended machine) answers when it goes on, after minutes.  The
 * sender of a datagram learns nothing of its loss.  vrb_ud_lost decides, by this host's knowledge
 * of the path and of the process at its end.  A process that has ended is lost at once.  A path
 * that is cut may come back, as a cable does: the peer is lost when every check has found the path
 * cut for REACH_LIMIT_NS, on an adapter REACH_PORT_NS: after events.h has ended the rail of a port
 * that stays DOWN.  Checks with a gap between them begin anew: this process may have been
 * stopped.
 *
 * An adapter knows nothing of the path beyond its port.  There a peer that has been silent for
 * REACH_TELL_NS is named in a line, and is lost after REACH_SILENCE_NS: a wrong partition, VLAN or
 * fabric would else be waited for without end.
 *
 * The first check is late, since nearly all peers answer before it.
 */
#ifndef RAIL_REACH_H
#define RAIL_REACH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum { REACH_FIRST_NS = 400000000, REACH_EVERY_NS = 200000000 };
#define REACH_LIMIT_NS 3000000000ull
#define REACH_PORT_NS 12000000000ull
#define REACH_GAP_NS 2500000000ull
#define REACH_TELL_NS 5000000000ull
#define REACH_SILENCE_NS 60000000000ull

struct vrb_port;
struct vrb_ud_address;

struct rail_reach {
	uint64_t due_ns;		/* time of the next check; 0: none yet */
	uint64_t cut_ns;		/* first of the checks that found the path cut; 0: none */
	uint64_t silent_ns;		/* first check; 0: none yet */
	bool told;			/* that it is silent */
};

/* Is a check due? */
bool rail_reach_due(struct rail_reach *r, uint64_t now_ns);
/* A check has found `rc` (vrb_ud_lost): is the peer lost, after limit_ns without a path? */
bool rail_reach_is_lost(struct rail_reach *r, int rc, uint64_t now_ns, uint64_t limit_ns);
/* True once: a peer that no check finds lost has been silent for so long that a line is due. */
bool rail_reach_tell(struct rail_reach *r, uint64_t now_ns);
/* And so long that it counts as lost. */
bool rail_reach_is_silent(const struct rail_reach *r, uint64_t now_ns);
/* The line: the peer's index, the port here, the address there. */
void rail_reach_warn(unsigned peer, const struct vrb_port *port, const struct vrb_ud_address *to);

/* ---- For lines about a rail that carries nothing ---- */

/* The address of a network interface, whose GID it is: "10.0.1.1". */
const char *rail_net_address(const unsigned char *gid, char text[INET6_ADDRSTRLEN]);
enum { REACH_ENDS_BYTES = 160 };
/*
 * Both ends, as the administrator of a fabric finds them: "LID 1, GID fe80::1; there LID 3, GID fe80::3",
 * "eth0 10.0.1.1; there 10.0.1.2".
 */
const char *rail_reach_ends(const struct vrb_port *port, const struct vrb_ud_address *there,
			    char buf[REACH_ENDS_BYTES]);
/* The advice for a line, where datagrams from this port get no answer: "check ..., or leave the rail out". */
const char *rail_reach_advice(const struct vrb_port *port);
/* The advice where a connection over it is lost. */
const char *rail_link_advice(const struct vrb_port *port);

#endif
