/* verbs_lat - latency of one operation between two queue pairs. */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_PING_PONG;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops, "send"), VBENCH_ROW_TRANSPORT, VBENCH_ROW_BIDIR,
	VBENCH_ROW_ARRIVAL, VBENCH_ROW_INLINE, VBENCH_ROW_SWEEP(vbench_sweeps_of_reuse, "size"),
	VBENCH_ROW_BUFFER_COUNT("1"), VBENCH_ROW_REUSE, { .name = NULL },
};

/* A round trip has two messages; an exchange at the same time counts as one. */
static int lat_messages(const struct bench *b)
{
	return vbench_is_one_sided() || vbench.bidir ? 1 : 2;
}

const struct bench_def bench_def = {
	VBENCH_DEF,
	.name = "verbs_lat",
	.summary = "Latency of queue pairs",
	.metric = REPORT_LATENCY,
	.axis = vbench_axis,
	.apart = vbench_apart,
	.messages = lat_messages,
	.run = vbench_run,
	.sizes = "0:4M",
	.small = { 10000, 1000 },
	.large = { 10000, 1000 },
};
