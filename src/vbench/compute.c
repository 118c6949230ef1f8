/*
 * compute.c - computation while messages are under way.
 *
 * The row without computation comes first.  The mean of its runs, including untimed ones, is the
 * base of the shares in other rows.  A computation keeps the processor busy for its time without a
 * call, so only the adapter works meanwhile.  On the software HCA its progress thread works, too,
 * and needs a processor.
 */
#include "vbench/compute.h"

#include "util/clock.h"

static double share;			/* computation of the current row, in percent */
static uint64_t alone_ns, alone_runs;	/* time and runs of side 0 without computation */
static volatile uint64_t result;	/* keeps the compiler from dropping the work */

bool vbench_compute_value(int i, double *out)
{
	*out = i < 10 ? 10 * i : i == 10 ? 95 : i == 11 ? 99 : 100;
	return i <= 12;
}

void vbench_compute_set(double value)
{
	share = value;
	if (value == 0)
		alone_ns = alone_runs = 0;
}

void vb_compute(uint64_t ns)
{
	const uint64_t end_ns = rg_now_ns() + ns;
	uint64_t x = 1;

	do
		for (int i = 0; i < 64; i++)
			x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	while (rg_now_ns() < end_ns);
	result = x;
}

void vbench_compute_run(struct bench *b)
{
	uint64_t begin_ns = rg_now_ns();

	if (b->side == 0 && share > 0 && alone_runs && !b->validating) {
		vbench_post(b);
		vb_compute((uint64_t)(share / 100 * (double)alone_ns / (double)alone_runs));
		vbench_finish(b);
		return;
	}
	vbench_run(b);
	if (share == 0 && !b->validating) {
		alone_ns += rg_now_ns() - begin_ns;
		alone_runs++;
	}
}
