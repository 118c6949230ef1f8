/*
 * verbs_known_host - the same of pt2pt/rg_verbs_host.c: posting takes 1 ms, finding a message 2 ms,
 * taking a completion 3 ms, and 40 ms go by until the message is there, which do not count.
 */
#include "known_clock.h"
#include "vbench/vbench.h"

void __real_vbench_post(struct bench *b);
void __real_vbench_arrive(struct bench *b);
void __real_vbench_complete(struct bench *b, unsigned left);
void __wrap_vbench_post(struct bench *b);
void __wrap_vbench_arrive(struct bench *b);
void __wrap_vbench_complete(struct bench *b, unsigned left);
void __wrap_vb_compute(uint64_t ns);

void __wrap_vbench_post(struct bench *b)
{
	__real_vbench_post(b);
	known_clock_pass(1000000);
}

void __wrap_vbench_arrive(struct bench *b)
{
	__real_vbench_arrive(b);
	known_clock_pass(2000000);
}

void __wrap_vbench_complete(struct bench *b, unsigned left)
{
	__real_vbench_complete(b, left);
	known_clock_pass(3000000);
}

void __wrap_vb_compute(uint64_t ns)
{
	(void)ns;
	known_clock_pass(40000000);
}

#include "pt2pt/rg_verbs_host.c"
