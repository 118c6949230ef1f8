/*
 * nas.h - common parts of the NAS-style kernels: classes, and the resources that they need.
 *
 * Problems are those of D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007,
 * with the classes and the verification values of NPB 3.4.  The code is Railgauge's
 * own.  This room does not use MPI: the programs in apps/ exchange the messages.
 */
#ifndef RG_NAS_H
#define RG_NAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/opt.h"

enum nas_class { NAS_S, NAS_W, NAS_A, NAS_B, NAS_C, NAS_CLASSES };

/* Choices of --class. */
extern const struct opt_choice nas_classes[];
const char *nas_class_name(enum nas_class c);	/* "S" */

struct nas_kernel {
	const char *name;				/* "IS" */
	int (*ranks_max)(enum nas_class c);		/* a power of two */
	uint64_t (*memory_bytes)(enum nas_class c, int ranks);	/* allocated by each rank */
};

/*
 * Check that this class runs on so many ranks, each of which can still allocate `available` bytes.
 * 0, or -EINVAL with one line in why that names the accepted values.  Pure: the same numbers give
 * the same answer on all ranks.
 */
int nas_check(const struct nas_kernel *k, enum nas_class c, int ranks, uint64_t available,
	      char *why, size_t why_size);

#endif
