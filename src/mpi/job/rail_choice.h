/*
 * rail_choice.h - which interfaces of the hosts of a job are its rails.  Pure: all ranks compute the
 * same from the same tables.
 *
 * A column is one address of each host.  First come the subnets that all hosts have; addresses that
 * no common subnet has are matched by what probes say.  Each host probes the hosts 1, 2, 4, ...
 * further on, so that N hosts need N log N probes a column:
 *
 *	choice_begin	tables -> columns, and the rest of each host
 *	choice_finish	tables and results of probes -> rails
 *
 * A column is a rail if each probe passed, it has no wire in common with an earlier rail (a VLAN and
 * its lower interface), and a quarter of the best rate at least.
 */
#ifndef RAILMPI_RAIL_CHOICE_H
#define RAILMPI_RAIL_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/softhca.h"

#pragma GCC visibility push(hidden)

enum {
	CHOICE_COLUMNS = 32,
	CHOICE_REST = 8,		/* addresses of a host that are matched by probes */
	CHOICE_STEPS = 16,		/* distances of probes: 1, 2, 4, ... */
	CHOICE_RAILS = 8,
	CHOICE_NONE = 255,
	CHOICE_SPEC_BYTES = 8 + CHOICE_RAILS * 48,
};

struct choice_host {
	char name[64];
	uint8_t id[16];			/* softhca_net_host */
	char error[128];		/* its interfaces could not be read or listened at; "": no */
	uint32_t more;			/* interfaces beyond the table */
	uint32_t count;
	struct softhca_net net[SOFTHCA_NETS_MAX];
};

/* The results of one host: at step s it has called the host 2^s further on. */
struct choice_probes {
	struct softhca_probed column[CHOICE_STEPS][CHOICE_COLUMNS];
	struct softhca_probed rest[CHOICE_STEPS][CHOICE_REST][CHOICE_REST];	/* own, its */
};

enum choice_why {
	CHOICE_USED,			/* also: another address of a rail's interface */
	CHOICE_UNUSABLE,		/* by itself: softhca_net.why */
	CHOICE_TWIN,			/* `host` has the same address */
	CHOICE_PUBLIC,			/* global IPv6, and not all hosts are in its subnet */
	CHOICE_ALONE,			/* not all hosts have a match; `host` is known to have none */
	CHOICE_BEYOND,			/* not probed: the host has more than CHOICE_REST */
	CHOICE_UNREACHED,		/* a probe of the column: `host`, `other`, `probed` */
	CHOICE_STACKED,			/* at `host` it shares a wire with column `other` */
	CHOICE_SLOW,			/* column `other` is more than 4 times as fast */
	CHOICE_MANY,			/* CHOICE_RAILS are in use */
};

struct choice_left {
	uint8_t why;			/* enum choice_why */
	struct softhca_probed probed;
	unsigned host, other;
};

struct choice_column {
	bool subnet;			/* all addresses are in one */
	uint8_t *at;			/* [hosts]: indices into choice_host.net */
	struct choice_left left;
};

struct choice {
	const struct choice_host *host;
	unsigned hosts, steps;
	unsigned columns;
	struct choice_column column[CHOICE_COLUMNS];
	bool has_rest;
	uint8_t (*rest)[CHOICE_REST];	/* [hosts]: indices, then CHOICE_NONE */
	struct choice_left (*left)[SOFTHCA_NETS_MAX];	/* [hosts]: addresses in no column */
	unsigned rails, rail[CHOICE_RAILS];	/* columns, in the order of host 0's interfaces */
};

/*
 * 0 or -ENOMEM.  `host` remains the caller's.  choice_end in either case.  with_down: an interface
 * that is down is a port of the rail that other hosts have in its subnet, for programs that accuse
 * it; else the hosts have no such rail.
 */
int choice_begin(struct choice *c, const struct choice_host *host, unsigned hosts, bool with_down);
/* The least known rate of a column's interfaces, bytes per second; 0: none is known. */
uint64_t choice_rate(const struct choice *c, unsigned column);
void choice_finish(struct choice *c, const struct choice_probes *probes);
void choice_end(struct choice *c);

static inline const struct softhca_net *choice_net(const struct choice *c, unsigned column,
						   unsigned host)
{
	return &c->host[host].net[c->column[column].at[host]];
}

/* Can the host's interface of a column be probed? */
static inline bool choice_column_is_up(const struct choice *c, unsigned column, unsigned host)
{
	return !choice_net(c, column, host)->why;
}

static inline unsigned choice_peer(const struct choice *c, unsigned host, unsigned step)
{
	return (unsigned)((host + ((uint64_t)1 << step)) % c->hosts);
}

/* ---- rail_choice_text.c ---- */

/* "net=10.0.1.0/24+10.0.2.7": the rails as host `host` names them. */
void choice_spec(const struct choice *c, unsigned host, char spec[CHOICE_SPEC_BYTES]);
/* Call `line` with a line about each thing that is left out; hosts of the same kind share one. */
void choice_lines(const struct choice *c, void (*line)(void *arg, const char *text), void *arg);

#pragma GCC visibility pop

#endif
