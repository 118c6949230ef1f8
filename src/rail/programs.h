/*
 * programs.h - calls of librail for librailmpi and the programs of this package.
 *
 * The header is not installed, since these calls show types of headers that are not.
 */
#ifndef RAIL_PROGRAMS_H
#define RAIL_PROGRAMS_H

#include "rail/rail.h"

#pragma GCC visibility push(default)

struct opt;
struct vrb_port;
struct vrb_ports;

/* The rows (util/opt.h), offsets into struct rail_settings; ends with a NULL name. */
const struct opt *rail_options(void);
/* The part of a `soft` that all hosts have in common: net= as the number of its names. */
void rail_soft_terms(const char *spec, char *terms, size_t size);
/*
 * Why this host has no ACTIVE port that is usable, though the kernel shows RDMA devices; "" where it
 * shows none, or some port is.  Returns why.
 */
const char *rail_probe_why(char *why, size_t size);
/*
 * Once all peers are added: a connection is made and undone, and what connections with all peers
 * would need is compared with what the adapter has.  0, or -errno after a line when not even one
 * fits; a warning, with the arithmetic, when not all do.  The software HCA has no such limits.
 */
int rail_limits_check(struct rail_ctx *ctx);
/* Do processors copy the data of messages to and from a peer, in calls that return when it has moved? */
bool rail_peer_copies(const struct rail_peer *peer);
/* After rail_peer_add: where a peer of this host is.  Without: RAIL_PLACE_HOST. */
void rail_peer_place(struct rail_peer *peer, enum rail_place place);
/* The name of a peer's place, as in struct rail_learned. */
const char *rail_place_name(const struct rail_peer *peer);
/* Does a message wait for a connection? */
bool rail_connects(const struct rail_ctx *ctx);
/* Is that a file of costs of this processor?  0, or -EINVAL with why. */
int rail_costs_check(const char *path, char *why, size_t why_size);
/* Messages of this process that it has read because their senders were late (message/late.h). */
uint64_t rail_reads_of_late(const struct rail_ctx *ctx);
/*
 * The rails that --rails all takes of a host's ports, without those of other hosts: index has them in their order,
 * at most RAIL_MAX.  why[port], if not NULL: why an ACTIVE port is none; "" elsewhere.  Returns their number, or
 * -errno after a line.
 */
enum { RAIL_WHY_BYTES = 200 };
int rail_ports_all(const struct vrb_ports *ports, int index[RAIL_MAX], char (*why)[RAIL_WHY_BYTES]);
/*
 * The bytes that each of so many processes of this host may pin for its peers, and, tried on the port's device, lock
 * for completion queues in a job of so many ranks; 0: no limit.
 */
void rail_host_bounds(const struct vrb_port *port, unsigned rails, unsigned processes, unsigned ranks,
		      uint64_t *pinned, uint64_t *queues);
/* The port itself (verbs/vrb.h), for users of verbs in addition to this library. */
const struct vrb_port *rail_port(const struct rail_ctx *ctx, int rail);
/* All ports that were found, those that are no rails, too. */
const struct vrb_ports *rail_ports(const struct rail_ctx *ctx);

#pragma GCC visibility pop

#endif
