/* acceptance.c - an acceptance, in the order of events. */
#include "bench/acceptance.h"
#include "bench/ranks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/clock.h"

static const struct bench_acceptance *asked(const struct bench_job *job)
{
	return job->def->acceptance;
}

/* ---- The order of events ------------------------------------------------------------------- */

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void estimate_tell(struct bench_job *job, const struct accept_shape *shape)
{
	struct acceptance *acc = job->got.acceptance;
	const struct accept_costs costs = { acc->cell_ns, UINT64_C(1200000000), 1000000 };

	acc->estimates = accept_estimate(shape, &costs);
	snprintf(acc->estimate, sizeof(acc->estimate), "%d rounds, %.1f s; suspects up to %.1f s more, "
		 "each bad port up to %.1f s", accept_rounds(shape),
		 seconds(acc->estimates.rounds_ns), seconds(acc->estimates.suspects_ns),
		 seconds(acc->estimates.bad_port_ns));
	report_note(job->got.report, "estimate: %s", acc->estimate);
	fflush(stdout);
}

static double least_slow(const struct bench_job *job)
{
	if (*asked(job)->slow_percent != OPT_SPECIAL)
		return (double)*asked(job)->slow_percent / 100;
	return job->where.fabric.hardware ? 0 : 1;
}

/* Have rails the same nominal rate?  Then one of them is not to be slower than another. */
static bool are_alike(const struct bench_job *job)
{
	const struct railmpi_fabric *f = &job->where.fabric;

	for (int r = 1; r < f->rail_count; r++)
		if (f->rail[r].rate_bytes_per_s != f->rail[0].rate_bytes_per_s)
			return false;
	return true;
}

/* Rank 0's part. */
static int lead(struct bench_job *job)
{
	struct acceptance *acc = job->got.acceptance;
	int *leaf = acceptance_leaves(job), rc;
	const struct accept_shape shape = {
		.nodes = job->where.node_count, .rails = acc->rails,
		.rounds = acceptance_rounds(job), .seed = UINT64_C(0x5261696c),
		.alike = are_alike(job), .least = least_slow(job), .leaf = leaf, .missing = acc->missing,
	};

	acc->a = bench_must(accept_new(&shape));
	free(leaf);
	acc->begun_ns = rg_now_ns();
	acceptance_try(job);
	estimate_tell(job, &shape);
	rc = accept_run(acc->a, &acceptance_ops, job);
	acc->took_ns = rg_now_ns() - acc->begun_ns;
	acceptance_dismiss(job);
	return rc;
}

static void error_add(void *user, const char *name, uint64_t value)
{
	(void)name;
	*(uint64_t *)user += value;
}

/* The counters of this node's ports, before the first cell. */
static void counters_take(struct bench_job *job)
{
	struct acceptance *acc = job->got.acceptance;
	struct bench_port port[BENCH_PORTS_MAX];
	int count = asked(job)->cells->ports(port, BENCH_PORTS_MAX);

	acc->errors = bench_must(calloc(BENCH_PORTS_MAX, sizeof(acc->errors[0])));
	acc->retries = bench_must(calloc(BENCH_PORTS_MAX, sizeof(acc->retries[0])));
	for (int i = 0; i < count; i++) {
		asked(job)->cells->errors(i, error_add, &acc->errors[i]);
		acc->retries[i] = port[i].retries;
	}
}

int acceptance_run(struct bench_job *job, uint64_t bytes, json_t **end)
{
	struct acceptance *acc = job->got.acceptance;
	int rc = 0;

	job->b.count = (int)bytes;
	acceptance_ports_assign(job);
	counters_take(job);
	if (job->b.rank == 0)
		rc = lead(job);
	else
		acceptance_serve(job);
	*end = acceptance_record(job);
	if (ranks_max(job, rc != 0))
		return RG_EXIT_FAULT;
	rc = job->got.validation_failed || (acc->a && accept_fault_count(acc->a)) ? RG_EXIT_FAILED : 0;
	return (int)ranks_max(job, (uint64_t)rc);
}

void acceptance_close(struct bench_job *job)
{
	struct acceptance *acc = job->got.acceptance;

	if (!acc)
		return;
	asked(job)->cells->close();
	accept_free(acc->a);
	free(acc->ports);
	free(acc->port);
	free(acc->missing);
	free(acc->errors);
	free(acc->retries);
	free(acc->latency);
	free(acc->latency_rail);
	free(acc);
	job->got.acceptance = NULL;
}
