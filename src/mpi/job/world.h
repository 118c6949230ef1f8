/* world.h - the job: start and end of the layer. */
#ifndef RAILMPI_WORLD_H
#define RAILMPI_WORLD_H

#pragma GCC visibility push(hidden)

int world_start(void);		/* after the native MPI_Init: options, MPI_COMM_WORLD */
void world_stop(void);		/* before the native MPI_Finalize */

#pragma GCC visibility pop

#endif
