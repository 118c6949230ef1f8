/*
 * verbs_reuse - bandwidth of queue pairs against the number of buffers that messages take in turn,
 * or against the share of messages that use one buffer again.
 */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_ONE_WAY;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops_moving, "write"), VBENCH_ROW_QUEUE("none"),
	VBENCH_ROW_SWEEP(vbench_sweeps_of_reuse, "buffers"), VBENCH_ROW_BUFFER_COUNT("64"),
	VBENCH_ROW_REUSE, VBENCH_ROW_REGISTRATION, { .name = NULL },
};

const struct bench_def bench_def = {
	VBENCH_DEF,
	.name = "verbs_reuse",
	.summary = "Bandwidth of queue pairs by reuse of buffers",
	.metric = REPORT_BANDWIDTH,
	.axis = vbench_axis,
	.messages = vbench_group,
	.run = vbench_run,
	.apart = vbench_apart,
	.sizes = "512K",
	.small = { 100, 10 },
	.large = { 100, 10 },
};
