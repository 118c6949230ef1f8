/* hello.h - a rank's message to all others at the start. */
#ifndef RAILMPI_HELLO_H
#define RAILMPI_HELLO_H

#include <stdint.h>

#include "mpi/comm/peers.h"
#include "util/host.h"
#include "util/opt.h"

enum { HELLO_SECRET_BYTES = 32, HELLO_WHY_BYTES = 256 };

struct hello {
	char host[WORLD_HOST_BYTES];
	struct rg_host at;
	uint64_t option[OPT_ROWS_MAX];	/* opt_digest of each value, by row */
	uint64_t cpus[16];	/* affinity */
	uint64_t nonce;
	unsigned char secret[HELLO_SECRET_BYTES];	/* rank 0's is the job's */
	int32_t ports;		/* ACTIVE ports, or -errno */
	int32_t quiet;		/* rank 0's is the job's */
	int32_t model_node;	/* the host, of a software HCA in place of libibverbs; else 0 */
	int32_t soft;		/* --rails names a software HCA; rank 0's is the job's */
	char no_ports[HELLO_WHY_BYTES];	/* without ACTIVE ports: why; "": the kernel shows no device */
	int32_t net;		/* a software HCA would have network interfaces as ports */
	int32_t net_down;	/* SOFTHCA_NET_DOWN=port; rank 0's is the job's */
	uint8_t net_host[16];	/* softhca_net_host; zero: unknown */
	uint64_t probe_job;	/* the number of softhca_probe_open; rank 0's is the job's */
};

#pragma GCC visibility push(hidden)

/* Lines are to be held: a rank that cannot read its ports has the error in `ports`, and places.h tells. */
void hello_fill(struct hello *h);

/* -EINVAL, after a line, if two ranks have other values of an option. */
int hello_options_compare(const struct hello *all, int n);

#pragma GCC visibility pop

#endif
