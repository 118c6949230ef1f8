/* pairs - every pair of nodes, or random ones, over each rail alone: finds a slow cable. */
#include "bench/bench.h"
#include "vbench/vbench.h"

static struct { uint64_t rounds, patience, leaf_nodes, cell_ns, slow; bool tournament; } values;

#define AT(member) .offset = offsetof(__typeof__(values), member)

static const struct opt rows[] = {
	{ .name = "rounds", .type = OPT_COUNT, AT(rounds), .arg = "K", .standard = "auto",
	  .special = "auto", .min = 1, .max = 1000,
	  .help = "random pairings of all nodes; auto: above 32 nodes 16, else every pair meets" },
	{ .name = "tournament", .type = OPT_FLAG, AT(tournament),
	  .help = "every pair meets, also of more than 32 nodes" },
	{ .name = "patience", .type = OPT_COUNT, AT(patience), .arg = "N", .standard = "4", .min = 2,
	  .max = 1000000,
	  .help = "times the median pair's time that a round waits; cells that take longer are cut" },
	{ .name = "leaf", .type = OPT_COUNT, AT(leaf_nodes), .arg = "N", .standard = "0", .max = 1024,
	  .help = "nodes of a leaf switch, in the order of ranks; 0: those of Slurm, if it knows" },
	{ .name = "cell-time", .type = OPT_TIME, AT(cell_ns), .arg = "TIME", .standard = "50ms",
	  .min = 1000000, .max = UINT64_C(10000000000), .bare = "s",
	  .help = "time of a cell's samples, without --iterations; at least one, 20 at most" },
	{ .name = "slow", .type = OPT_COUNT, AT(slow), .arg = "PERCENT", .standard = "auto",
	  .special = "auto", .min = 1, .max = 100,
	  .help = "percentage below the others from which a port is slow; 100: only what is down is "
		  "accused; auto: 2.5 on adapters, 100 in software, where processors set the pace" },
	{ .name = NULL },
};

static const struct bench_acceptance acceptance = {
	.cells = &vbench_cells, .rounds = &values.rounds, .tournament = &values.tournament,
	.patience = &values.patience, .leaf_nodes = &values.leaf_nodes, .cell_ns = &values.cell_ns,
	.slow_percent = &values.slow,
};

const struct bench_def bench_def = {
	.name = "pairs",
	.summary = "Bandwidth of every pair of nodes, each rail alone",
	.about = "A cell, one direction of a pair over a rail, has a queue pair of its own.  Without faults "
		 "the last\nline is \"accepted\"; else it names cables, ports, nodes, paths or switches, and "
		 "the nodes to\ndrain, and the exit status is 1.  With --over MPI carries the messages, and "
		 "nothing is accused.",
	.metric = REPORT_BANDWIDTH,
	.layout = BENCH_TOURNAMENT,
	.min_ranks = 2,
	.messages = bench_window,
	.sblocks = bench_window_side0,
	.rblocks = bench_window_side1,
	.run = bench_run_window,
	.expect = bench_from_peer,
	.sizes = "1M",
	.options = rows,
	.values = &values,
	.acceptance = &acceptance,
};
