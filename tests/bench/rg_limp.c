/*
 * limp - a matrix with known cells, by a clock of their own (known_clock.h): 2 ms each, 60 ms for
 * the way from one rank to another (--from, --to; one of them alone: all to or from that rank, and
 * both ways).
 */
#include "bench/bench.h"
#include "known_clock.h"

enum { ANY = 9999 };

static struct limp_values { uint64_t from, to; } values;

static const struct opt rows[] = {
	{ .name = "from", .type = OPT_COUNT, .offset = offsetof(struct limp_values, from),
	  .arg = "RANK", .standard = "9999", .max = ANY, .help = "who sends slowly" },
	{ .name = "to", .type = OPT_COUNT, .offset = offsetof(struct limp_values, to),
	  .arg = "RANK", .standard = "9999", .max = ANY, .help = "who receives slowly" },
	{ .name = NULL },
};

static bool limps(const struct bench *b)
{
	uint64_t from = (uint64_t)b->rank, to = (uint64_t)b->peer;

	if (values.to == ANY)
		return values.from == from || values.from == to;
	return values.from == from && values.to == to;
}

static void limp_run(struct bench *b)
{
	if (b->side == 0)
		known_clock_pass(limps(b) ? 60000000 : 2000000);
}

const struct bench_def bench_def = {
	.name = "limp",
	.summary = "A matrix of known times",
	.metric = REPORT_BANDWIDTH,
	.layout = BENCH_TOURNAMENT,
	.min_ranks = 2,
	.run = limp_run,
	.options = rows,
	.values = &values,
	.sizes = "1M",
};
