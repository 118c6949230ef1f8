/* verbs_rate - messages per second that queue pairs carry, by size or by number of queue pairs. */
#include "vbench.h"

const enum vbench_shape vbench_shape = VBENCH_ONE_WAY;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops_moving, "write"), VBENCH_ROW_TRANSPORT, VBENCH_ROW_QPS,
	VBENCH_ROW_QUEUE("128"), VBENCH_ROW_SWEEP(vbench_sweeps, "size"), VBENCH_ROW_INLINE, { .name = NULL },
};

const struct bench_def bench_def = {
	.name = "verbs_rate",
	.summary = "Message rate of queue pairs",
	.metric = BENCH_RATE,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.carrier = &vbench_carrier,
	.axis = vbench_axis,
	.messages = vbench_group,
	.sblocks = vbench_sblocks,
	.rblocks = vbench_rblocks,
	.run = vbench_run,
	.expect = vbench_expect,
	.sizes = "1:8K",
	.small = { 1000, 100 },
	.large = { 1000, 100 },
	.options = options,
	.values = &vbench,
};
