/*
 * port_choice.h - which ports of the hosts of a job are its rails.  Pure: every process computes the
 * same from the same lists.
 *
 * A rail is one port of each host, with the GID and the P_Key that the port uses there.  --rails all:
 *
 *	link layer	the one that gives more rails
 *	left out	ports with link-local addresses alone where the host has others; ports below a
 *			quarter of the host's best rate
 *	one rate	the largest set of ports of one rate that all hosts have
 *	one prefix	InfiniBand: the prefixes with most ports (equal fabrics, one per rail, are kept)
 *	pairs		the ports of the host with fewest, in PCI order, each with a port of every other
 *			host: with a partition in common, one network first, then the same place on the
 *			bus, then PCI order; none where datagrams are lost between any two of its ports
 *			(port_probe.c), as of cables that are crossed
 *			where such a set has no rail at all, the next one by rate and prefix is tried
 *	at most 8	first ports of cards before second ones
 *
 * Named ports are rails in the order of their names.
 */
#ifndef RAIL_PORT_CHOICE_H
#define RAIL_PORT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rail/rail.h"
#include "verbs/vrb.h"

enum {
	CHOICE_PORTS = 32,		/* a host's */
	CHOICE_NONE = 255,
};

struct choice_port {
	char name[72];			/* "mlx5_0:1" */
	char place[40];			/* address on the bus and number; without one the name */
	uint64_t rate;			/* bytes per second; 0: unknown */
	uint64_t card;			/* sys_image_guid, equal for all functions of a card; 0: unknown */
	uint32_t queue_pairs;		/* its device's; 0: not known */
	uint32_t objects;		/* vrb_port.objects */
	uint32_t requests, cq_entries;	/* of a queue pair, of a completion queue there */
	uint16_t lid;
	uint8_t link_layer, state;	/* IBV_LINK_LAYER_..., enum ibv_port_state */
	uint8_t usable;			/* carries RC with immediates */
	uint8_t lag;			/* several cables under one name */
	uint8_t one_network;		/* vrb_port.one_network */
	uint8_t failed;			/* since it was listed: enum ibv_event_type, its state is DOWN; or 0 */
	struct vrb_tables tables;	/* Ethernet: in the order of preference */
};

struct choice_host {
	char name[64];
	uint32_t named;			/* --rails names its ports */
	uint32_t meets;			/* its processes reach each other over the rails, too */
	/*
	 * For bounds.c: the processes here; the bytes that each may pin for its peers, and lock for completion
	 * queues (0: no limit is met); --eager, --qps.
	 */
	uint32_t processes;
	uint64_t pinned, cq_bytes, eager, qps;
	uint32_t count;
	struct choice_port port[CHOICE_PORTS];	/* in PCI order, or that of the names */
};

/* The bit of a P_Key that makes its port a full member. */
enum { CHOICE_PKEY_FULL = 0x8000 };

/* The length of the device's name in "DEVICE:PORT". */
static inline size_t choice_device_length(const struct choice_port *port)
{
	return strcspn(port->name, ":");
}

/* Are they ports of one device of a host? */
static inline bool choice_same_device(const struct choice_port *a, const struct choice_port *b)
{
	const size_t length = choice_device_length(a);

	return length == choice_device_length(b) && strncmp(a->name, b->name, length) == 0;
}

/* Datagrams are lost between a port of host `a` and `ports`, as bits, of host `b`. */
struct choice_loss {
	uint32_t a, b, port, ports;
};

/* Sorted by `a`, `port` and `b`; each pair is there both ways. */
struct choice_losses {
	struct choice_loss *at;		/* free() */
	size_t count;
};

enum choice_why {
	CHOICE_USED,
	CHOICE_STATE,			/* not ACTIVE */
	CHOICE_TRANSPORT,		/* carries no RC with immediates */
	CHOICE_NO_GID,			/* no address, or none from which an address handle is made */
	CHOICE_LINK_LAYER,		/* the rails have the other one */
	CHOICE_LINK_LOCAL,
	CHOICE_SLOW,			/* below a quarter of port `other` */
	CHOICE_RATE,
	CHOICE_PREFIX,			/* fewer ports than another InfiniBand prefix has */
	CHOICE_ALONE,			/* `host` has no such port left */
	CHOICE_LOST,			/* nothing passes between ports of a rail, such as `pair` */
	CHOICE_NO_PATH,			/* no GIDs by which `pair` reach each other */
	CHOICE_PARTITION,		/* no P_Key in common of `pair`; a == b: of ranks of one host */
	CHOICE_PARTITIONS,		/* each pair has one, but not all hosts the same */
	CHOICE_MANY,			/* RAIL_MAX are in use */
};

/* Ports of two hosts. */
struct choice_pair {
	uint32_t a, b;
	uint8_t port_a, port_b;
};

struct choice_left {
	uint8_t why;			/* enum choice_why */
	uint8_t other;
	uint32_t host;
	struct choice_pair pair;	/* CHOICE_LOST, _NO_PATH, _PARTITION: perhaps of other hosts */
};

/* A host's indices into its list and the tables there. */
struct choice_end {
	uint8_t port, gid, pkey;
};

struct choice {
	const struct choice_host *const *host;
	const struct choice_losses *lost;	/* NULL: none is known */
	unsigned hosts, rails;
	unsigned ref;			/* the host by whose ports the rails are counted */
	bool named;
	bool pairwise[RAIL_MAX];	/* no GIDs that all hosts meet: choice_gid_pair has those of two */
	bool routed[RAIL_MAX];		/* RoCE v2 between networks */
	struct choice_end (*end)[RAIL_MAX];	/* [hosts] */
	struct choice_left (*left)[CHOICE_PORTS];	/* [hosts] */
	char why[640];			/* why there is no rail */
};

/*
 * 0 or -errno with choice.why: -ENODEV no port that all have, -ENETUNREACH no path, -EINVAL named
 * ports that do not fit each other, -ENOMEM.  `host` and `lost` remain the caller's.  choice_free in
 * either case.
 */
int choice_make(struct choice *c, const struct choice_host *const *host, unsigned hosts,
		const struct choice_losses *lost);
void choice_free(struct choice *c);

/* 2: of one network (InfiniBand: one prefix); 1: routed, or link-local alone; 0: no path. */
int choice_relation(const struct choice_port *a, const struct choice_port *b);
/* The full members of a P_Key of both, of the one with most; 0: no partition in common. */
int choice_partition(const struct choice_port *a, const struct choice_port *b);
/*
 * Match the ports in set[h] of host h with those in set[ref]: at[port of ref] is a port of h, or
 * CHOICE_NONE.  As many as can be; those that choice_make prefers come first.  Losses between h and
 * ref count, others do not.
 */
void choice_match(const struct choice *c, const uint32_t *set, unsigned ref, unsigned h,
		  uint8_t at[CHOICE_PORTS]);
/* The port of host h, of those in set, that port would meet first; at least one is in set. */
unsigned choice_nearest(const struct choice_port *port, const struct choice_host *h, uint32_t set);
/*
 * The same of all hosts with losses at once: at[h] of those changes, so that nothing is lost between any
 * two ports of a rail.  met: the rails that choice_match has found, as ports of ref, become those that
 * can be, as many as there can where losses are few.  Of one that is not, pair[port of ref] is a loss in
 * the way, unless both its hosts are one.  0 or -ENOMEM.
 */
int choice_untangle(const struct choice *c, const uint32_t *set, unsigned ref, uint32_t *met,
		    uint8_t (*at)[CHOICE_PORTS], struct choice_pair pair[CHOICE_PORTS]);
/*
 * A GID for each end of a rail, one for all others, or as pairwise says one for each other end; false,
 * with two hosts that have none for each other.
 */
bool choice_gids(struct choice *c, unsigned rail, struct choice_pair *without);
/* The GIDs by which two hosts meet over a rail, the same when asked the other way round; false: none. */
bool choice_gid_pair(const struct choice *c, unsigned rail, unsigned a, unsigned b, uint8_t *gid_a,
		     uint8_t *gid_b);
/* The first P_Key that all have, no two ends as limited members, nor one of a host that meets; false: none. */
bool choice_pkeys(struct choice *c, unsigned rail);
/* Why there is none: CHOICE_PARTITION, with a pair of hosts without one, or CHOICE_PARTITIONS. */
enum choice_why choice_pkeys_why(const struct choice *c, unsigned rail, struct choice_pair *without);

/* ---- port_loss.c ---- */

/* Adds pairs, told one way; news: some were not known.  0 or -ENOMEM. */
int choice_losses_add(struct choice_losses *l, const struct choice_loss *more, size_t count, bool *news);
/* The entries of a host's port. */
const struct choice_loss *choice_losses_of(const struct choice *c, unsigned host, unsigned port, size_t *count);
/* The ports of another host that it does not reach, as bits. */
uint32_t choice_lost_to(const struct choice *c, unsigned host, unsigned port, unsigned other);

/* ---- port_choice_text.c ---- */

/* Call `line` for each thing that is left out, and for each rail that is special. */
void choice_tell(const struct choice *c, void (*line)(void *arg, const char *text), void *arg);
/* Why this port is left out; "" if it is not. */
void choice_left_text(const struct choice *c, unsigned h, unsigned p, char *why, size_t size);
/* Sets c->why, where no rail is left. */
void choice_why_none(struct choice *c);

#endif
