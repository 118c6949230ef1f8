/* verbs_lat - latency of one operation between two queue pairs. */
#include "vbench.h"

const enum vbench_shape vbench_shape = VBENCH_PING_PONG;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops, "send"), VBENCH_ROW_TRANSPORT, VBENCH_ROW_BIDIR,
	VBENCH_ROW_ARRIVAL, VBENCH_ROW_INLINE, VBENCH_ROW_SWEEP(vbench_sweeps_of_reuse, "size"),
	VBENCH_ROW_SPREAD("1"), VBENCH_ROW_SHARE, { .name = NULL },
};

/* A round trip has two; what happens at once is one. */
static int lat_messages(const struct bench *b)
{
	return vbench_is_one_sided() || vbench.bidir ? 1 : 2;
}

const struct bench_def bench_def = {
	.name = "verbs_lat",
	.summary = "Latency of queue pairs",
	.metric = BENCH_LATENCY,
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.carrier = &vbench_carrier,
	.axis = vbench_axis,
	.apart = vbench_apart,
	.messages = lat_messages,
	.sblocks = vbench_sblocks,
	.rblocks = vbench_rblocks,
	.run = vbench_run,
	.expect = vbench_expect,
	.sizes = "0:4M",
	.small = { 10000, 1000 },
	.large = { 10000, 1000 },
	.options = options,
	.values = &vbench,
};
