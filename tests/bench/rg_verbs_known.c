/*
 * verbs_known - a program below MPI, RG_PROGRAM, in which 4 ms pass with every group that side 0
 * posts, by a clock of its own (known_clock.h).  So every number of a row is known beforehand.
 */
#include "known_clock.h"
#include "vbench.h"

__attribute__((unused))
static void known_post(struct bench *b)
{
	vbench_post(b);
	if (b->side == 0)
		known_clock_pass(4000000);
}

__attribute__((unused))
static void known_run(struct bench *b)
{
	vbench_run(b);
	if (b->side == 0)
		known_clock_pass(4000000);
}

#define vbench_post known_post
#define vbench_run known_run
#include RG_PROGRAM
