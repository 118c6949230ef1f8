/* verbs_host - time that a processor spends on a message sent and one received. */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_ONE_EACH;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops_sending, "send"), VBENCH_ROW_INLINE, { .name = NULL },
};

const struct bench_def bench_def = {
	VBENCH_DEF,
	.name = "verbs_host",
	.summary = "Host overhead of queue pairs",
	.about = "The host overhead is the time in the calls that post a message, find a message\n"
		 "and take a completion, without the time until the message arrives.",
	.metric = REPORT_LATENCY,
	.quantity = "CPU time",
	.prepare = vbench_host_prepare,
	.run = vbench_host_run,
	.took = vbench_host_took,
	.sizes = "1:64K",
	.small = { 1000, 100 },
	.large = { 1000, 100 },
};
