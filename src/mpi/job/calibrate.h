/* calibrate.h - the threshold of a communicator, measured. */
#ifndef RAILMPI_CALIBRATE_H
#define RAILMPI_CALIBRATE_H

#include <stdint.h>

#include "mpi/abi/native.h"
#include "rail/rail.h"

/*
 * Measure for --threshold auto.  Collective over a communicator that is about to be routed in this
 * way.  0 or -errno on all its ranks.
 */
int calibrate(MPI_Comm handle, const struct rail_way *way, uint64_t *threshold);
/* The result as text for people; "": not measured. */
const char *calibrate_text(void);

#endif
