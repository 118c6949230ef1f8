/* held.h - memory that is not moved: stacks; on request, nor what devices and the kernel hold. */
#ifndef HCA_HELD_H
#define HCA_HELD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Why no memory of the process should be moved now: it has a GPU, VFIO, KVM or verbs device,
 * io_uring or userfaultfd open, or locked memory.  NULL: nothing is known.
 */
const char *hca_held_by_process(void);

/*
 * Is `start` on the stack of a thread, or of the fiber whose frame this is?  Of fibers that do not
 * run, nothing is known.
 */
bool hca_held_by_stack(uint64_t start, const void *frame);

/*
 * Why [start, end), of private anonymous memory, should not be: it is on a stack, as above, or has
 * a NUMA policy of its own.  NULL: nothing is known.
 */
const char *hca_held_range(uint64_t start, uint64_t end, const void *frame);

#endif
