/*
 * verbs_known - a program below MPI, RG_PROGRAM, in which 4 ms pass with every run of side 0, and
 * as much again by the value of a variant, by a clock of its own (known_clock.h).  So every number
 * of a row is known beforehand.
 */
#include "known_clock.h"
#include "vbench/vbench.h"

static void known_run(struct bench *b)
{
	vbench_run(b);
	if (b->side == 0)
		known_clock_pass(4000000 * (1 + (uint64_t)b->variant));
}

#define vbench_run known_run
#include RG_PROGRAM
