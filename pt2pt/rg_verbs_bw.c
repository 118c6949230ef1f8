/* verbs_bw - bandwidth of queue pairs in one direction, in windows with a reply or by a queue. */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_ONE_WAY;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops_moving, "write"), VBENCH_ROW_TRANSPORT, VBENCH_ROW_QPS,
	VBENCH_ROW_QUEUE("none"), VBENCH_ROW_SWEEP(vbench_sweeps, "size"), VBENCH_ROW_THRESHOLD,
	VBENCH_ROW_COMPLETION, VBENCH_ROW_INLINE, { .name = NULL },
};

const struct bench_def bench_def = {
	VBENCH_DEF,
	.name = "verbs_bw",
	.summary = "Uni-directional bandwidth of queue pairs",
	.about = "Each row has the average bandwidth: the bytes of all samples by their time.\n"
		 "The peak bandwidth, Max of --full and max in result files, is that of the\n"
		 "quickest sample.\n"
		 "A sample is a window of messages and its reply, or with --queue half of the\n"
		 "queue, of all pairs together.",
	.metric = REPORT_BANDWIDTH,
	.axis = vbench_axis,
	.messages = vbench_group,
	.run = vbench_run,
	.small = { 100, 10 },
	.large = { 100, 10 },
};
