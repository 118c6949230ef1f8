/* held.h - memory that is not moved: stacks; on request, also memory of devices and the kernel. */
#ifndef HCA_HELD_H
#define HCA_HELD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The reason why no memory of the process should be moved now: it has a GPU, VFIO, KVM or verbs
 * device, io_uring or userfaultfd open, or locked memory.  NULL: no reason is known.
 */
const char *hca_held_by_process(void);

/*
 * Is `start` on the stack of a thread, or of the fiber of `frame`?  Stacks of fibers that do not run
 * are unknown.
 */
bool hca_held_by_stack(uint64_t start, const void *frame);

/*
 * The reason why [start, end), private anonymous memory, should not be moved: it is on a stack, as
 * above, or has a NUMA policy of its own.  NULL: no reason is known.
 */
const char *hca_held_range(uint64_t start, uint64_t end, const void *frame);

#endif
