/* carrier.c - the steps of a carrier of messages in place of MPI, in the order of events. */
#include "bench/carrier.h"
#include "bench/options_use.h"
#include "bench/ranks.h"

#include <inttypes.h>

#include "util/units.h"

static const struct bench_carrier *carrier_of(const struct bench_job *job)
{
	return job->def->carrier;
}

/* Limit sizes to the carrier's: a size that the user gave is refused, a default size left out. */
static int sizes_limit(struct bench_job *job)
{
	struct opt_range can, *sizes = &job->opt.sizes;
	const char *why = carrier_of(job)->sizes(&can);
	const struct opt_table *table;
	const struct opt *row = options_find(job, "sizes", &table);
	char min[RG_UNIT_TEXT], max[RG_UNIT_TEXT], wanted[64];

	MPI_Allreduce(MPI_IN_PLACE, &can.max, 1, MPI_UINT64_T, MPI_MIN, job->where.comm);
	can.min = can.min < row->min ? row->min : can.min;
	if (sizes->min >= can.min && sizes->max <= can.max)
		return 0;
	if (table->origin[row - table->rows] == OPT_FROM_DEFAULT) {
		sizes->min = sizes->min < can.min ? can.min : sizes->min;
		sizes->max = sizes->max > can.max ? can.max : sizes->max;
		return 0;
	}
	opt_text(table, row, wanted, sizeof(wanted));
	rg_format_size(can.min, min, sizeof(min));
	rg_format_size(can.max, max, sizeof(max));
	if (can.min == can.max)
		rg_error("--sizes %s: %s (accepted: %s)", wanted, why, min);
	else
		rg_error("--sizes %s: %s (accepted: %s to %s)", wanted, why, min, max);
	return RG_EXIT_USAGE;
}

int carrier_open(struct bench_job *job)
{
	int rc;

	if (!carrier_of(job))
		return 0;
	job->b.window = (int)job->opt.window;
	rg_errors_hold();
	rc = carrier_of(job)->open(&job->b, job->where.common_rails);
	if (ranks_failed(job, rc))
		return RG_EXIT_USAGE;
	rg_errors_hold();
	rc = carrier_of(job)->agree(job->where.comm);
	if (ranks_failed(job, rc))
		return RG_EXIT_USAGE;
	return sizes_limit(job);
}

int carrier_memory(struct bench_job *job)
{
	int rc;

	if (!carrier_of(job))
		return 0;
	rg_errors_hold();
	rc = carrier_of(job)->memory(&job->b, job->sbuf_bytes, job->rbuf_bytes);
	if (ranks_failed(job, rc))
		return RG_EXIT_FAULT;
	rg_errors_hold();
	rc = carrier_of(job)->connect(&job->b);
	return ranks_failed(job, rc) ? RG_EXIT_FAULT : 0;
}

void carrier_close(struct bench_job *job)
{
	if (carrier_of(job))
		carrier_of(job)->close();
}

void carrier_begin(struct bench_job *job, uint64_t runs)
{
	if (carrier_of(job) && runs)
		carrier_of(job)->begin(&job->b, runs);
}

bool carrier_end(struct bench_job *job, struct bench_column *way)
{
	struct bench_arrivals arrivals = { 0 };
	bool right;

	if (!carrier_of(job))
		return true;
	right = carrier_of(job)->end(&job->b, &arrivals);
	if (way) {
		way->arrivals.expected += arrivals.expected;
		way->arrivals.lost += arrivals.lost;
	}
	return right;
}

struct bench_arrivals carrier_row(struct bench_job *job, struct bench_column *way)
{
	struct bench_arrivals sum = { 0 };

	if (carrier_of(job))
		MPI_Reduce(&way->arrivals, &sum, 2, MPI_UINT64_T, MPI_SUM, 0, job->where.comm);
	way->arrivals = (struct bench_arrivals){ 0 };
	return sum;
}

int carrier_ledger(const struct bench_job *job, int rail, struct rail_ledger *out)
{
	return carrier_of(job) ? carrier_of(job)->ledger(rail, out) : railmpi_ledger(rail, out);
}
