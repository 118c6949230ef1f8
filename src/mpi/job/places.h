/* places.h - the hosts of all ranks, the fabric that joins them, and their nodes. */
#ifndef RAILMPI_PLACES_H
#define RAILMPI_PLACES_H

#include <stdbool.h>

#include "mpi/job/hello.h"

enum places_fabric {
	PLACES_DEVICES,		/* RDMA devices */
	PLACES_MEMORY,		/* the software HCA of one host, on virtual nodes */
	PLACES_NET,		/* the software HCA over TCP, between hosts */
	PLACES_NET_FOUND,	/* the same, and its interfaces are to be found (find_rails.h) */
};

#pragma GCC visibility push(hidden)

/* More ranks on this rank's machine than CPUs that any of them may use? */
bool places_oversubscribed(const struct hello *all, int n, int rank);

/*
 * Devices when every rank has an ACTIVE port; the software HCA when it was asked for, or when no
 * rank has one: over named interfaces, else in memory on one host, else over interfaces that are to
 * be found.  The same on all ranks.  0, or after a line -EINVAL, -ENODEV or the error of a rank that
 * cannot read its ports.
 */
int places_fabric(const struct hello *all, int n, bool asked, enum places_fabric *out);

/* A line, by the first rank of each host, where the kernel shows RDMA devices that have no port to use. */
void places_tell_no_ports(const struct hello *all, int rank);

/*
 * node_of[i]: ranks with equal numbers share memory.  In memory, blocks of ranks on `virtual_nodes`
 * of them; else the lowest rank of the host: the kernel, over TCP with its network, of devices with its
 * IPC namespace.
 */
void places_nodes(const struct hello *all, int n, enum places_fabric fabric, unsigned virtual_nodes,
		  unsigned node_of[]);

#pragma GCC visibility pop

#endif
