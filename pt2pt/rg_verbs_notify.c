/*
 * verbs_notify - latency of an RDMA write that is found in memory, in the completion queue, or
 * announced by an event: the last two have an immediate.
 */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_PING_PONG;

static const struct opt options[] = { VBENCH_ROW_INLINE, { .name = NULL } };

static const struct opt_choice *notify_variants(void)
{
	static const struct opt_choice variants[] = {
		{ "memory", VBENCH_MEMORY, NULL }, { "cq", VBENCH_CQ, NULL },
		{ "event", VBENCH_EVENT, NULL }, { NULL },
	};

	vbench.op = VBENCH_WRITE;
	/* Completion queues are opened with events. */
	vbench.arrival = VBENCH_EVENT;
	return variants;
}

static void notify_prepare(struct bench *b)
{
	vbench.arrival = b->variant;
}

const struct bench_def bench_def = {
	VBENCH_DEF,
	.name = "verbs_notify",
	.summary = "Latency of queue pairs by completion notification",
	.metric = REPORT_LATENCY,
	.unit = 1,			/* the receiver polls the last byte */
	.variants = notify_variants,
	.messages = bench_two,
	.prepare = notify_prepare,
	.run = vbench_run,
	.sizes = "1:4K",
	.small = { 10000, 1000 },
	.large = { 10000, 1000 },
};
