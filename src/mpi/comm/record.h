/*
 * record.h - the table of communicators' records, for comm.c.  The look-ups that the rest of
 * the layer uses (comm_lookup, comm_by_context, comm_some, comm_unref_last) are in layer.h.
 */
#ifndef RAILMPI_RECORD_H
#define RAILMPI_RECORD_H

#include "mpi/job/layer.h"

/* The attribute of a routed communicator that points to its record. */
extern int comm_keyval;

/* Inside layer_enter.  c->context is set; messages find the record from here on. */
void record_insert(struct comm *c);
/* Free a record that is not in the table. */
void record_free(struct comm *c);
/* Inside layer_enter: each record, which visit may release its operations of. */
void comms_each(void (*visit)(struct comm *c, uint64_t arg), uint64_t arg);
/* Before MPI_Finalize: delete the attributes of all records that are left, and free them. */
void records_end(void);

#endif
