/* compute.h - computation while messages are under way. */
#ifndef VBENCH_COMPUTE_H
#define VBENCH_COMPUTE_H

#include "vbench/lanes.h"

/* Keep the processor busy. */
void vb_compute(uint64_t ns);

#endif
