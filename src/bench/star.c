/* star.c - BENCH_STAR: a master, its slaves, and the slaves that take part in a row. */
#include "bench/star.h"
#include "bench/options_use.h"
#include "bench/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct bench_job *star_job;	/* an axis gets its value only */

static int slaves(void)
{
	return star_job->b.size - 1;
}

static bool slaves_value(int i, double *out)
{
	*out = i + 1;
	return i < slaves();
}

static void slaves_set(double value)
{
	struct bench *b = &star_job->b;

	star_job->where.pair_count = (int)value;
	b->side = b->rank > 0;
	b->peer = b->side ? 0 : 1;
	b->peers = b->side ? 1 : star_job->where.pair_count;
	b->pair = b->rank <= star_job->where.pair_count ? 0 : -1;
}

const struct bench_axis *bench_slaves(void)
{
	static const struct bench_axis axis = {
		"slaves", "ranks", "Slaves", slaves_value, slaves_set,
	};

	return &axis;
}

int star_nodes(struct bench_job *job)
{
	const struct opt_table *table;
	const struct opt *row = options_find(job, "nodes", &table);
	char text[16], why[OPT_WHY_BYTES];

	if (job->def->layout != BENCH_STAR || !row ||
	    table->origin[row - table->rows] != OPT_FROM_DEFAULT)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64,
		 (uint64_t)job->b.size < row->max ? (uint64_t)job->b.size : row->max);
	if (opt_set(table, "nodes", text, OPT_FROM_DEFAULT, why, sizeof(why)) ||
	    railmpi_option("nodes", text, why, sizeof(why))) {
		rg_error("--%s", why);
		return RG_EXIT_USAGE;
	}
	return 0;
}

int star_join(struct bench_job *job)
{
	if (job->opt.pairs != OPT_SPECIAL) {
		rg_error("--pairs %" PRIu64 ": rows differ by the number of slaves (accepted: "
			 "auto)", job->opt.pairs);
		return RG_EXIT_USAGE;
	}
	star_job = job;
	job->where.pair = bench_must(calloc((size_t)job->b.size, sizeof(job->where.pair[0])));
	for (int p = 0; p < slaves(); p++)
		job->where.pair[p] = (struct bench_pair){ { 0, p + 1 } };
	slaves_set(slaves());
	return 0;
}
