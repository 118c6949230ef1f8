/* cores.h - the cores of a set of CPUs. */
#ifndef BENCH_CORES_H
#define BENCH_CORES_H

#include <sched.h>
#include <stdbool.h>

/*
 * A core is named by its lowest CPU (hardware thread).  root: "/sys/devices/system/cpu".  false:
 * not known, and *cores is empty.
 */
bool cores_of(const char *root, const cpu_set_t *cpus, cpu_set_t *cores);

#endif
