/* ends.h - adapters, queue pairs, registrations; connected to the peer's. */
#ifndef VBENCH_ENDS_H
#define VBENCH_ENDS_H

#include "vbench/lanes.h"

int vb_open(const struct bench *b, int rails);
int vb_agree(MPI_Comm all);
const char *vb_sizes(struct opt_range *out);
int vb_memory(const struct bench *b, size_t sbuf_bytes, size_t rbuf_bytes);
int vb_connect(const struct bench *b);
void vb_close(void);
int vb_ledger(int rail, struct rail_ledger *out);
/* Return to the state after vb_connect, with no receive posted; both ends call it. */
void vb_reset(void);

#endif
