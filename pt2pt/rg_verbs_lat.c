/* verbs_lat - latency of one operation between two queue pairs. */
#include "vbench.h"

const enum vbench_shape vbench_shape = VBENCH_PING_PONG;

static const struct opt options[] = {
	VBENCH_ROW_OP(vbench_ops, "send"), VBENCH_ROW_TRANSPORT, VBENCH_ROW_BIDIR,
	VBENCH_ROW_ARRIVAL, VBENCH_ROW_INLINE, VBENCH_ROW_SWEEP(vbench_sweeps_of_reuse, "size"),
	VBENCH_ROW_SPREAD("1"), VBENCH_ROW_SHARE, { .name = NULL },
};

static void lat_run(struct bench *b)
{
	if (vbench_is_one_sided() || vbench.bidir) {
		if (vbench_is_active(b))
			vbench_post(b);
		if (!vbench_is_one_sided())
			vbench_arrive(b);
		vbench_complete(b, 0);
		return;
	}
	/* The message before is complete by then: the answer to it is here. */
	if (b->side == 1)
		vbench_arrive(b);
	vbench_post(b);
	vbench_complete(b, 1);
	if (b->side == 0)
		vbench_arrive(b);
}

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
	.run = lat_run,
	.expect = vbench_expect,
	.sizes = "0:4M",
	.small = { 10000, 1000 },
	.large = { 10000, 1000 },
	.options = options,
	.values = &vbench,
};
