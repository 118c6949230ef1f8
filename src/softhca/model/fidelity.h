/*
 * doubt.h - can the model be kept on this machine?
 *
 * Data is copied by processors, so a modelled rate holds only well below the
 * speed at which they copy: up to a quarter of it.  Whoever polls needs a core,
 * so a latency holds only while no more processes want to run than the machine
 * has cores - the whole machine: that a process is bound to one of them says
 * nothing.
 */
#ifndef HCA_FIDELITY_H
#define HCA_FIDELITY_H

#include "model/spec.h"

/*
 * 0: it can, as far as can be seen now; 1: one line in buf says why not.
 * `processes`: how many are known to poll; those that run anyway are counted.
 */
int hca_fidelity(const struct hca_spec *spec, unsigned processes, char *buf, size_t size);

/* Cores that this machine, or the container, gives its processes. */
unsigned hca_cores(void);
/* How fast one of them copies memory: measured once, some milliseconds.  Bytes per second. */
uint64_t hca_copy_rate(void);
/* The most that an adapter moves in one direction; 0: no limit. */
uint64_t hca_adapter_rate(const struct hca_spec *spec);

#endif
