/*
 * fidelity.h - can this machine keep to the model?
 *
 * Data is copied by processors, so a modelled rate holds only well below the
 * speed at which they copy: up to a quarter of it.  A process that polls needs a
 * core, so a latency holds only while the machine has a core for each runnable
 * process.  All cores of the machine count, even if a process is bound to one.
 */
#ifndef HCA_FIDELITY_H
#define HCA_FIDELITY_H

#include "softhca/model/spec.h"

/*
 * 0: it can, as far as can be determined now; 1: buf holds one line with the reason.
 * `processes`: how many are known to poll; runnable processes are counted as well.
 */
int hca_fidelity(const struct hca_spec *spec, unsigned processes, char *buf, size_t size);

/* The number of CPUs in a list of the kernel's, such as 0-3,8; what follows an error is not counted. */
unsigned hca_cpus_count(const char *list);
/* Cores available to processes of this machine or container. */
unsigned hca_cores(void);
/* Copy rate of one core in bytes per second: measured once, in some milliseconds. */
uint64_t hca_copy_rate(void);
/* An adapter's highest rate in one direction; 0: no limit. */
uint64_t hca_adapter_rate(const struct hca_spec *spec);

#endif
