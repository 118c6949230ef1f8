/*
 * counted - a benchmark on ports whose counters are known: the ledger reads them before and after.
 * The software HCA's ports have none.
 */
#include <stddef.h>

#include "bench/bench.h"
#include "mpi/railmpi.h"

#define STOPPED UINT64_MAX

/* The values that a rail's counters have at the first look, and later. */
static const struct { const char *name; uint64_t before, after; } counters[2][7] = {
	{
		{ "port_xmit_data", 1000, 1500 },
		{ "port_rcv_data", 1000, STOPPED },
		{ "port_xmit_wait", 9, 4 },
		{ "local_ack_timeout_err", 5, 8 },
		{ "packet_seq_err", 1, 3 },
		{ "out_of_sequence", 7, 107 },
		{ "beyond_json", (uint64_t)INT64_MAX + 1, (uint64_t)INT64_MAX + 2 },
	},
	{
		{ "packet_seq_err", 1, 3 },
		{ "rnr_nak_retry_err", 1, STOPPED },
	},
};

/* The library's function, replaced. */
int railmpi_port_counters(int rail, railmpi_counter_fn *each, void *user)
{
	static int looks[2];
	const int later = looks[rail & 1]++;
	int i;

	for (i = 0; i < 7 && counters[rail & 1][i].name; i++) {
		const uint64_t value = later ? counters[rail & 1][i].after :
						counters[rail & 1][i].before;

		each(user, counters[rail & 1][i].name, value == STOPPED ? NULL : &value);
	}
	return i;
}

static void counted_run(struct bench *b)
{
	MPI_Bcast(b->sbuf, b->count, MPI_BYTE, 0, b->comm);
}

const struct bench_def bench_def = {
	.name = "counted",
	.summary = "MPI_Bcast on ports with known counters",
	.metric = REPORT_LATENCY,
	.min_ranks = 2,
	.run = counted_run,
};
