/*
 * copy_choice.h - is memory that another core has read written in blocks, or by one call of the C library?
 *
 * The C library copies some KiB by one string instruction.  Some processors execute it several times slower
 * than loads and stores where both ends have nearly the same place in their pages; others write lines
 * that another core has by it alone without reading them first, at twice the rate.  So the first copies of
 * each class, of sizes and places, are made in both ways in turn, and then in the faster one.  Blocks stay
 * unless the other way is faster by more than RG_COPY_MARGIN percent, such as on a clock that does not
 * advance during a copy.
 *
 * Pure: no clock.  One thread at a time may have a cell.
 */
#ifndef RG_UTIL_COPY_CHOICE_H
#define RG_UTIL_COPY_CHOICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rg_copy_way { RG_COPY_BLOCKS, RG_COPY_WHOLE, RG_COPY_WAYS };

enum {
	RG_COPY_PASSED = 40,		/* copies before learning: memory of a ring is new at first */
	RG_COPY_FEW = 12,		/* samples of each way, where one is clearly faster; */
	RG_COPY_SAMPLES = 96,		/* else */
	RG_COPY_MARGIN = 1,		/* percent */
	RG_COPY_PLACES = 2,
	RG_COPY_CLASSES = 4 * RG_COPY_PLACES,	/* to 2, 4, 8, 16 KiB */
};

/* The sizes that are chosen for: bytes. */
#define RG_COPY_LEAST ((size_t)1024)
#define RG_COPY_MOST ((size_t)16384)

struct rg_copy_cell {
	_Atomic uint8_t way;		/* enum rg_copy_way, now */
	_Atomic bool settled;
	_Atomic bool taken;		/* by a thread, while it is not settled */
	bool given;
	uint8_t passed;
	uint8_t samples[RG_COPY_WAYS];
	uint32_t sample_ns[RG_COPY_WAYS][RG_COPY_SAMPLES];	/* of RG_COPY_MOST bytes, in order */
	uint32_t given_ns[RG_COPY_WAYS];	/* by rg_copy_give */
};

/* The class of a copy: RG_COPY_PLACES times that of its size, and 1 if both ends are near in their pages. */
unsigned rg_copy_class(const void *to, const void *from, size_t bytes);
/* The way of the next copy by a cell that is not settled.  True: rg_copy_took follows. */
bool rg_copy_next(struct rg_copy_cell *cell);
/* The copy that follows rg_copy_next has taken so long. */
void rg_copy_took(struct rg_copy_cell *cell, size_t bytes, uint64_t ns);
/* The cost of a way that decided, ns for RG_COPY_MOST bytes; of a settled cell. */
uint32_t rg_copy_cost(const struct rg_copy_cell *cell, enum rg_copy_way way);
/* A choice of before, for good, with its costs; no copy is under way. */
void rg_copy_give(struct rg_copy_cell *cell, enum rg_copy_way way, const uint32_t cost_ns[RG_COPY_WAYS]);

#endif
