/*
 * verbs_hotspot - bandwidth of a master and its slaves: it sends to all of them, or all of them to
 * it, by the number of slaves.
 *
 * A sample is a window to each slave, message by message in turn, or a window from each.  A reply
 * follows each window.  The master measures the time.
 */
#include "vbench/vbench.h"

const enum vbench_shape vbench_shape = VBENCH_ONE_WAY;

static const struct opt options[] = {
	VBENCH_ROW_DIRECTION, VBENCH_ROW_OP(vbench_ops_sending, "send"), VBENCH_ROW_QPS,
	VBENCH_ROW_THRESHOLD, VBENCH_ROW_INLINE, { .name = NULL },
};

static int hotspot_messages(const struct bench *b)
{
	return b->peers * vbench_group(b);
}

const struct bench_def bench_def = {
	VBENCH_DEF_OF(BENCH_STAR),
	.name = "verbs_hotspot",
	.summary = "Bandwidth of one master by the number of its slaves",
	.about = "Rank 0 is the master.  Its bandwidth is the bytes to, or from, all slaves of a\n"
		 "row by the time of a sample.  A sample is a window of messages to, or from, each\n"
		 "slave and the window's reply.  Each rank of one host is a virtual node unless\n"
		 "--nodes is given.",
	.metric = REPORT_BANDWIDTH,
	.axis = bench_slaves,
	.messages = hotspot_messages,
	.run = vbench_run,
	.sizes = "4K",
	.small = { 100, 10 },
	.large = { 100, 10 },
};
