/*
 * interfaces.h - the network interfaces that carry native messages: the bytes that their counters
 * gain while the native way has its turn.
 *
 * The counters are those of /sys/class/net and /sys/class/infiniband, of all users of a host; one
 * rank a host reads them.
 */
#ifndef BENCH_INTERFACES_H
#define BENCH_INTERFACES_H

#include "bench/job.h"

/* Begin, on each host's first rank, if the job has the native way. */
void interfaces_open(const struct bench_job *job);
/* The turn of a way begins, native or not. */
void interfaces_turn(bool native);
/*
 * End; collective.  Rank 0 gets {"alone": no other way ran, "interfaces": a list by name}, each
 * with hosts, sent_bytes and received_bytes, over all hosts; NULL on other ranks and without the
 * native way.
 */
json_t *interfaces_close(const struct bench_job *job);

#endif
