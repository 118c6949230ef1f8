/*
 * coll_job.h - the races of a job, of communicators that come and go: what coll_kept.h keeps, and the
 * messages by which the ranks of a new communicator begin alike.
 */
#ifndef RAILMPI_COLL_JOB_H
#define RAILMPI_COLL_JOB_H

#include <stdint.h>

#include "mpi/coll/coll.h"
#include "mpi/comm/comm.h"

/* Numbers of a rank for the exchange that routes a communicator, which takes the largest of all ranks. */
enum { COLL_JOB_DIGEST, COLL_JOB_NOT_DIGEST, COLL_JOB_TELLS, COLL_JOB_FIELDS };

/* c: a record of collectives that is not in the table yet; over: its way, in words. */
void coll_job_ask(struct comm *c, const char *over, uint64_t mine[COLL_JOB_FIELDS]);
/* The same c; all: the largest.  Collective over c->handle. */
void coll_job_begin(struct comm *c, const uint64_t all[COLL_JOB_FIELDS]);
/* A race of it has settled, and a communicator is freed.  Inside layer_enter. */
void coll_job_settled(struct comm *c, enum coll_id id, int class);
void coll_job_freed(struct comm *c);
void coll_job_stop(void);

#endif
