/*
 * spec.h - the adapters of a node and their timing, in one string.
 *
 *	[PROFILE][,key=value...]		"ports=2,rate=1GB/s,latency=2us"
 *
 * A profile is a name for such a string; keys given after it override its own.
 * model.h defines the effect of the keys on time.
 *
 * With net=eth0+eth1 the ports are network interfaces (base/netif.h), one for each name.  Of the
 * other keys only rate, as declared speed, and reads have a meaning there; all others are refused.
 *
 * personality.h has the keys by which the adapters of vendors differ.
 */
#ifndef HCA_SPEC_H
#define HCA_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/base/layout.h"
#include "softhca/model/fraction.h"
#include "softhca/model/personality.h"
#include "softhca/model/profile.h"
#include "softhca/model/schedule.h"

enum {
	HCA_NET_NAME = 48,		/* interface or subnet, with its NUL */
	HCA_PAIRS_MAX = 16,
	HCA_WHY_MAX = 640,		/* bytes for the longest line of an error: all keys */
};

struct hca_port_pair {
	struct hca_port_name a, b;
};

/* Rates in bytes per second; times in nanoseconds; 0 = no limit, no cost. */
struct hca_spec {
	uint64_t hcas;			/* adapters per node */
	uint64_t ports;			/* per adapter */
	uint64_t rate[HCA_PORTS_MAX];	/* port 1, 2, ..., per direction */
	uint64_t rate_count;		/* values given; the others are like the last */
	uint64_t latency_ns;		/* in one direction */
	uint64_t bus_read, bus_write;	/* the adapter's host bus */
	bool bus_half;			/* both directions share it */
	uint64_t cap;			/* an adapter's, per direction */
	uint64_t msg_ns, pkt_ns;	/* cost per message, per packet */
	uint64_t cqe_ns;		/* until a completion is written */
	uint64_t mtu;			/* bytes */
	uint64_t window;		/* unacknowledged packets per queue pair */
	uint64_t outstanding;		/* unacknowledged messages per queue pair */
	uint64_t reads;			/* RDMA reads in flight per queue pair */
	uint64_t loss_ppb;		/* packets lost, of HCA_ALL_PPB */
	uint64_t jitter_ns;
	uint64_t seed;
	struct hca_schedule schedule;	/* ports go down and up, adapters fail, events */
	uint32_t unreached_count;
	struct hca_port_pair unreached[HCA_PAIRS_MAX];	/* between these all is lost */
	struct hca_personality personality[HCA_PERSONALITIES];	/* hca_personality_of */
	bool divided;			/* some ports do not reach some others: hca_reaches */
	unsigned nets;			/* 0: ports of a model; else as many as ports */
	char net[HCA_PORTS_MAX][HCA_NET_NAME];	/* port 1, 2, ...: "eth0", "10.0.1.0/24" */
	bool timed;			/* any of the above costs time */
	char text[HCA_SPEC_MAX];	/* canonical: every key with a meaning, its effective value */
};

/* 0, or -EINVAL with "spec: key=value: the error (accepted: ...)" in why. */
int hca_spec_parse(const char *text, struct hca_spec *spec, char *why, size_t why_size);
/* The same with these profiles instead of all (profile.h). */
int hca_spec_parse_with(const struct hca_profiles *profiles, const char *text,
			struct hca_spec *spec, char *why, size_t why_size);

/* The number of virtual nodes of a fabric, 1 with net=; whether it has such a port. */
uint32_t hca_spec_nodes(const struct hca_spec *spec);
bool hca_spec_has_port(const struct hca_spec *spec, const struct hca_port_name *name);

/* The number of rates to show: equal ones at the end are shown once. */
uint64_t hca_spec_rates(const struct hca_spec *spec);

/* The personality of a node's adapters. */
static inline const struct hca_personality *hca_personality_of(const struct hca_spec *s,
							       uint32_t node)
{
	return &s->personality[node < HCA_PERSONALITIES ? node : HCA_PERSONALITIES - 1];
}

/* For people: "2 ports, 1 GB/s per port and direction, 2 us". */
void hca_spec_describe(const struct hca_spec *spec, char *buf, size_t size);

/* Key number i, for `softhca profiles`: name, accepted values, meaning.  False at the end. */
bool hca_spec_key(unsigned i, const char **name, const char **accepted, const char **meaning);

/*
 * Address of a port on the fabric: 0, 1, 2, ... over nodes, adapters, ports.
 * The LID is the address + 1.
 */
static inline uint32_t hca_address(const struct hca_spec *s, uint32_t node, uint32_t hca,
				   uint32_t port)
{
	return (node * (uint32_t)s->hcas + hca) * (uint32_t)s->ports + port - 1;
}

static inline bool hca_address_exists(const struct hca_spec *s, uint32_t address)
{
	return address < (uint32_t)(HCA_NODES_MAX * s->hcas * s->ports);
}

/* RDMA reads and atomics that a queue pair answers at once. */
static inline uint64_t hca_rd_atom(const struct hca_spec *s, const struct hca_personality *p)
{
	return p->rd_atom == HCA_NONE ? s->reads : p->rd_atom;
}

/* The same, that it asks. */
static inline uint64_t hca_rd_init(const struct hca_spec *s, const struct hca_personality *p)
{
	return p->rd_init == HCA_NONE ? s->reads : p->rd_init;
}

/* The personality and the port's index (number - 1) at an address. */
static inline const struct hca_personality *hca_personality_at(const struct hca_spec *s,
							       uint32_t address, uint32_t *port)
{
	*port = address % (uint32_t)s->ports;
	return hca_personality_of(s, address / (uint32_t)(s->hcas * s->ports));
}

/* Ports of one link layer and, on InfiniBand, one prefix, that are no pair of `reach`. */
bool hca_reaches(const struct hca_spec *s, uint32_t from, uint32_t to);

#endif
