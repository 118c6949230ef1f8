/* verbs_rate - messages per second that queue pairs carry, by size or by number of queue pairs. */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_ONE_WAY;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops_moving, "write"), VBENCH_ROW_TRANSPORT, VBENCH_ROW_QPS,
	VBENCH_ROW_QUEUE("128"), VBENCH_ROW_SWEEP(vbench_sweeps, "size"), VBENCH_ROW_INLINE,
	{ .name = NULL },
};

const struct bench_def bench_def = {
	VBENCH_DEF,
	.name = "verbs_rate",
	.summary = "Message rate of queue pairs",
	.metric = REPORT_RATE,
	.axis = vbench_axis,
	.messages = vbench_group,
	.run = vbench_run,
	.sizes = "1:8K",
	.small = { 1000, 100 },
	.large = { 1000, 100 },
};
