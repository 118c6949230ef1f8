/*
 * clock_waits.c - the waits of src/util/clock.h for test programs with a clock of their own.  Waits,
 * as the harness knows them, are for other ranks and not for a time.
 */
#include <sched.h>

#include "util/clock.h"

void rg_await(uint64_t due_ns)
{
	(void)due_ns;
}

void rg_relax(uint64_t due_ns)
{
	(void)due_ns;
}

void rg_yield(void)
{
	sched_yield();
}

void rg_sleep_ns(uint64_t ns)
{
	(void)ns;
	sched_yield();
}
