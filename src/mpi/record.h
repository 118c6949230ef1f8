/*
 * record.h - records of routed communicators, as comm.c makes them.  What others may ask of
 * them (comm_lookup, comm_by_context, comm_some, comm_unref_last) is in layer.h.
 */
#ifndef RAILMPI_RECORD_H
#define RAILMPI_RECORD_H

#include "layer.h"

/* The attribute of a routed communicator that points to its record. */
extern int comm_keyval;

/* Inside layer_enter.  From here on it is found by its context, which is set. */
void record_insert(struct comm *c);
/* One that was not inserted, or is not any more. */
void record_free(struct comm *c);
/* Before MPI_Finalize: all that are left, whose attributes are deleted. */
void records_end(void);

#endif
