/* call_table.h - the table of --ledger: calls, bytes and rails of all ranks together. */
#ifndef RAILMPI_CALL_TABLE_H
#define RAILMPI_CALL_TABLE_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/*
 * Collective over MPI_COMM_WORLD, all messages being sent: rank 0 prints the sums on stderr.  Not
 * together: some ranks are lost, and no other calls it.
 */
void call_table_end(bool together);

#pragma GCC visibility pop

#endif
