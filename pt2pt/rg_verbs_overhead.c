/*
 * verbs_overhead - bandwidth of queue pairs while the sender computes: between posting a window and
 * looking for its completion, for a share of the time that a window takes without computation.
 */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_ONE_WAY;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops_moving, "write"), VBENCH_ROW_TRANSPORT, VBENCH_ROW_QPS,
	VBENCH_ROW_INLINE, { .name = NULL },
};

static const struct bench_axis *overhead_axis(void)
{
	static const struct bench_axis share = {
		"share", "%", "Time given to computation (% of a window's)", vbench_compute_value,
		vbench_compute_set,
	};

	return &share;
}

const struct bench_def bench_def = {
	VBENCH_DEF,
	.name = "verbs_overhead",
	.summary = "Bandwidth of queue pairs against computation",
	.metric = REPORT_BANDWIDTH,
	.axis = overhead_axis,
	.messages = vbench_group,
	.run = vbench_compute_run,
	.sizes = "64K",
	.small = { 100, 10 },
	.large = { 100, 10 },
};
