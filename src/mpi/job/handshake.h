/* handshake.h - the handshake of all ranks of the job at the start. */
#ifndef RAILMPI_HANDSHAKE_H
#define RAILMPI_HANDSHAKE_H

/*
 * After the native MPI_Init: returns when all ranks of MPI_COMM_WORLD have called it, and ends the
 * job with one line when one does not within --start-limit.
 */
void handshake(void);

#endif
