/* held.h - memory that is not moved on request: what devices, the kernel and stacks hold. */
#ifndef HCA_HELD_H
#define HCA_HELD_H

#include <stdint.h>

/*
 * Why no memory of the process should be moved now: it has a GPU, VFIO, KVM or verbs device,
 * io_uring or userfaultfd open, or locked memory.  NULL: nothing is known.
 */
const char *hca_held_by_process(void);

/*
 * Why [start, end), of private anonymous memory, should not be: it is on the stack of a thread, or
 * of the fiber whose frame this is; or has a NUMA policy of its own.  NULL: nothing is known.  Of
 * fibers that do not run, nothing is.
 */
const char *hca_held_range(uint64_t start, uint64_t end, const void *frame);

#endif
