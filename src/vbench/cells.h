/* cells.h - one end of a cell: a queue pair that lives as long as its measurement. */
#ifndef VBENCH_CELLS_H
#define VBENCH_CELLS_H

#include "mpi/railmpi.h"
#include "vbench/vbench.h"
#include "verbs/vrb.h"

/* A cell under way at this end. */
struct cell {
	const struct bench_cell *of;
	struct bench_cell_result *out;
	struct vrb_adapter *adapter;
	const struct vrb_port *port;
	struct vrb_cq cq;
	struct vrb_qp qp;
	uint64_t begun_ns;
	uint64_t seen_ns;		/* last completion */
	bool failed;			/* by an error, a limit or a stop */
	/* Memory, and the peer's. */
	unsigned char *sbuf, *rbuf;
	uint64_t bytes;			/* of a message */
	uint32_t lkey, rkey;
	uint64_t their_rbuf;
	uint32_t their_rkey;
};

/* cell_data.c: what the two ends do once they are connected. */
void cell_send(struct cell *c);
/* cell_meet.c: addresses, readiness and the end, by MPI. */
void cell_meet(struct cell *c);

#endif
