/* gather_mpi.h - exit codes of railgauge-gather-openmpi and -mpich. */
#ifndef CLI_GATHER_MPI_H
#define CLI_GATHER_MPI_H

enum {
	GATHER_NO_MEMORY = 1,
	GATHER_OTHER_JOB = 2,		/* MPI has another number of ranks than the launcher */
	GATHER_NO_START = 127,
};

#endif
