/*
 * spec.h - what adapters a node has and how they are timed, in one string.
 *
 *	[PROFILE][,key=value...]		"ports=2,rate=1GB/s,latency=2us"
 *
 * A profile is a name for such a string; keys given after it override its own.
 * What the keys mean for time is in model.h.
 */
#ifndef HCA_SPEC_H
#define HCA_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/* Rates in bytes per second; times in nanoseconds; 0 = no limit, no cost. */
struct hca_spec {
	uint64_t hcas;			/* adapters per node */
	uint64_t ports;			/* per adapter */
	uint64_t rate;			/* of a port, per direction */
	uint64_t latency_ns;		/* one way */
	uint64_t bus_read, bus_write;	/* the adapter's host bus */
	bool bus_half;			/* both directions share it */
	uint64_t cap;			/* of an adapter, per direction */
	uint64_t msg_ns, pkt_ns;	/* cost per message, per packet */
	uint64_t mtu;			/* bytes */
	uint64_t window;		/* unacknowledged packets per queue pair */
	uint64_t outstanding;		/* unacknowledged messages per queue pair */
	uint64_t reads;			/* RDMA reads in flight per queue pair */
	bool timed;			/* any of the above costs time */
	char text[HCA_SPEC_MAX];	/* canonical: every key, its effective value */
};

/* 0, or -EINVAL with "spec: key=value: what is wrong (accepted: ...)" in why. */
int hca_spec_parse(const char *text, struct hca_spec *spec, char *why, size_t why_size);

/* For people: "2 ports, 1 GB/s per port and direction, 2 us". */
void hca_spec_describe(const struct hca_spec *spec, char *buf, size_t size);

struct hca_profile {
	const char *name, *spec, *summary;
};
extern const struct hca_profile hca_profiles[];	/* ends with a NULL name */

/* The keys, for `softhca profiles`: name, what is accepted, meaning.  NULL at the end. */
bool hca_spec_key(unsigned i, const char **name, const char **accepted, const char **meaning);

#endif
