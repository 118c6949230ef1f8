/*
 * host.c - the time that a processor spends on messages, without waiting for them.
 *
 * Both sides send at once and then leave the queues alone until the other side's message has surely
 * arrived: for several times the first run's time.  The time in the calls before and after this
 * rest counts: a message posted, a message found, a completion taken.  On the software HCA it
 * includes the adapter's work.
 */
#include "vbench/compute.h"

#include "util/clock.h"

enum { TIMES = 4 };
#define REST_MIN_NS UINT64_C(20000)

static uint64_t rest_ns;		/* 0: not known yet */
static uint64_t busy_ns, clock_ns;	/* in calls of the last run; to read the clock */

void vbench_host_prepare(struct bench *b)
{
	(void)b;
	clock_ns = bench_clock_ns();
	rest_ns = 0;
}

void vbench_host_run(struct bench *b)
{
	uint64_t begin = rg_now_ns(), posted, found;

	/* The harness has an untimed run before the timed ones. */
	if (!rest_ns || b->validating) {
		vbench_run(b);
		busy_ns = rg_now_ns() - begin;
		if (!b->validating)
			rest_ns = busy_ns * TIMES > REST_MIN_NS ? busy_ns * TIMES : REST_MIN_NS;
		return;
	}
	vbench_post(b);
	posted = rg_now_ns();
	vb_compute(rest_ns);
	found = rg_now_ns();
	vbench_arrive(b);
	vbench_complete(b, 0);
	busy_ns = rg_now_ns() - found + posted - begin;
	busy_ns = busy_ns > 2 * clock_ns ? busy_ns - 2 * clock_ns : 0;
}

uint64_t vbench_host_took(void)
{
	return busy_ns;
}
