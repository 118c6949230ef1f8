/* learned.h - what ranks have learned of costs, for --ledger. */
#ifndef RAILMPI_LEARNED_H
#define RAILMPI_LEARNED_H

/*
 * Lines of all ranks, at rank 0, for free(); NULL: there are none.  Collective over MPI_COMM_WORLD, by
 * the MPI library.
 */
char *learned_gather(void);

#endif
