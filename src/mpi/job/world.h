/* world.h - the job: options, virtual nodes, rails, peers by world rank. */
#ifndef RAILMPI_WORLD_H
#define RAILMPI_WORLD_H

#include "mpi/job/layer.h"
#include "util/opt.h"

/* Values of the layer's option table.  `rail` is first: librail's rows have offsets into it. */
struct world_settings {
	struct rail_settings rail;
	uint64_t nodes;
	int over;		/* enum railmpi_way of MPI_COMM_WORLD, or WORLD_OVER_AUTO */
	const char *coll;	/* algorithms of collectives, see coll.h; NULL: by their table */
	const char *trace;	/* a file for each rank, see trace.h; NULL: none */
	int dump_signal;	/* see dump.h; 0: none */
	uint64_t start_limit_ns;	/* see greet.c */
	bool ledger;		/* of calls, at the end; see call_count.h */
};
enum { WORLD_OVER_AUTO = -1 };

extern struct world_settings world_settings;
extern struct opt_table world_table;

/* Read the environment once, unless a program has set the options itself.  0 or -EINVAL. */
int world_options(void);

/*
 * After the native MPI_Init: returns when all ranks of MPI_COMM_WORLD have called it, and ends the
 * job with one line when one does not within --start-limit.
 */
void greet(void);

struct rail_way world_way(const struct world_settings *s, int way);

/*
 * --threshold auto (calibrate.c): measure.  Collective over a communicator that is about to
 * be routed in this way.  0 or -errno on all its ranks.
 */
int calibrate(MPI_Comm handle, const struct rail_way *way, uint64_t *threshold);
/* The result as text for people; "": not measured. */
const char *calibrate_text(void);

/* By world rank; world.c fills them in. */
enum { WORLD_HOST_BYTES = 64 };
extern char (*world_host_of)[WORLD_HOST_BYTES];
extern struct rail_peer **world_peer;
extern unsigned *world_node_of;

/* The first rank of the communicator that is not on the node of its rank 0; -1: none. */
int world_far_rank(MPI_Comm comm, int size);

/* peer[r] of the communicator's rank r.  0 or -errno. */
int world_peers(MPI_Comm comm, int size, struct rail_peer **peer);

#endif
