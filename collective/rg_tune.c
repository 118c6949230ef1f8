/* tune - the quickest algorithm of each collective, as a table for --coll @FILE. */
#include "bench/bench.h"

static void bcast_run(struct bench *b)
{
	MPI_Bcast(b->sbuf, b->count, MPI_BYTE, 0, b->comm);
}

static void allgather_run(struct bench *b)
{
	MPI_Allgather(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, b->comm);
}

static void alltoall_run(struct bench *b)
{
	MPI_Alltoall(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, b->comm);
}

static void alltoallv_run(struct bench *b)
{
	MPI_Alltoallv(b->sbuf, b->counts, b->displs, MPI_UINT32_T, b->rbuf, b->counts, b->displs,
		      MPI_UINT32_T, b->comm);
}

static void allreduce_run(struct bench *b)
{
	MPI_Allreduce(b->sbuf, b->rbuf, b->counts[0], MPI_UINT32_T, MPI_SUM, b->comm);
}

static void reduce_run(struct bench *b)
{
	MPI_Reduce(b->sbuf, b->rbuf, b->counts[0], MPI_UINT32_T, MPI_SUM, 0, b->comm);
}

static void reduce_scatter_run(struct bench *b)
{
	MPI_Reduce_scatter(b->sbuf, b->rbuf, b->counts, MPI_UINT32_T, MPI_SUM, b->comm);
}

static void gather_run(struct bench *b)
{
	MPI_Gather(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, 0, b->comm);
}

static void scatter_run(struct bench *b)
{
	MPI_Scatter(b->sbuf, b->count, MPI_BYTE, b->rbuf, b->count, MPI_BYTE, 0, b->comm);
}

static void scan_run(struct bench *b)
{
	MPI_Scan(b->sbuf, b->rbuf, b->counts[0], MPI_UINT32_T, MPI_SUM, b->comm);
}

static void (*const runs[])(struct bench *b) = {
	bcast_run, allgather_run, alltoall_run, alltoallv_run, allreduce_run, reduce_run,
	reduce_scatter_run, gather_run, scatter_run, scan_run,
};

/* Collectives with several algorithms, as --coll names them; a value is an index of runs. */
static const struct opt_choice collectives[] = {
	{ "bcast", 0 }, { "allgather", 1 }, { "alltoall", 2 }, { "alltoallv", 3 },
	{ "allreduce", 4 }, { "reduce", 5 }, { "reduce_scatter", 6 }, { "gather", 7 },
	{ "scatter", 8 }, { "scan", 9 }, { NULL, 0 },
};

static struct {
	struct opt_list only;
	const char *out;
} values;

static const struct opt options[] = {
	{ .name = "collectives", .type = OPT_CHOICES, .arg = "LIST", .choices = collectives,
	  .help = "those to measure; default: all that have several algorithms" },
	{ .name = "out", .type = OPT_TEXT, .arg = "FILE", .offset = offsetof(__typeof__(values), out),
	  .check = opt_check_path,
	  .help = "write the table for --coll @FILE and RAILGAUGE_COSTS=FILE; its last rules hold for all larger "
		  "sizes; with --collectives it has no costs" },
	{ .name = NULL },
};

static const struct bench_tune tune = { collectives, runs, &values.only, &values.out };

const struct bench_def bench_def = {
	.name = "tune",
	.summary = "Quickest algorithms of collectives, for --coll @FILE",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.unit = 4,
	.lists = true,
	.sblocks = bench_per_rank,
	.rblocks = bench_per_rank,
	.sizes = "4:1M",
	.small = { 1000, 10 },
	.large = { 100, 4 },
	.time_cap = "40ms",
	.options = options,
	.values = &values,
	.tune = &tune,
};
