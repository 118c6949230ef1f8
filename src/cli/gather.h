/* gather.h - values of all nodes of a job, for a command that is no MPI program. */
#ifndef CLI_GATHER_H
#define CLI_GATHER_H

#include <jansson.h>
#include <stdbool.h>

/* Ranks of the job that a launcher started this process in; 1: none did. */
int gather_ranks(void);
/* Is this the first rank of its node?  Yes, where the launcher tells no ranks of nodes. */
bool gather_leads(void);

/*
 * Collective over the ranks of a job, in a child of each that is an MPI program: rank 0 gets an array
 * of all values, in the order of ranks; others get NULL.  mine: this rank's, or NULL; stays the
 * caller's.  0 or -errno after one line.
 */
int gather(const json_t *mine, json_t **all);

#endif
