/* main.c - main(): the order of events, the same in every program. */
#include "bench/acceptance.h"
#include "bench/app.h"
#include "bench/buffers.h"
#include "bench/carrier.h"
#include "bench/collective.h"
#include "bench/describe.h"
#include "bench/hosts.h"
#include "bench/interfaces.h"
#include "bench/learned.h"
#include "bench/ledger.h"
#include "bench/options.h"
#include "bench/options_use.h"
#include "bench/outputs.h"
#include "bench/place.h"
#include "bench/rail_baseline.h"
#include "bench/ranks.h"
#include "bench/rows.h"
#include "bench/samples.h"
#include "bench/timing.h"
#include "bench/tournament.h"
#include "bench/tune.h"
#include "bench/validate.h"
#include "bench/ways.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rank 0 opens the outputs; all ranks get its exit code. */
static int report_begin(struct bench_job *job)
{
	static const char *names[REPORT_WAYS_MAX];	/* the report keeps it */
	struct report_table table = {
		.text = stdout, .json_path = job->opt.json, .program = rg_program(),
		.title = job->def->summary, .metric = job->def->metric,
		.quantity = job->def->quantity, .ways = names, .way_count = job->where.way_count,
		.validate = job->opt.validate && job->def->expect, .full = job->opt.full,
		.layout = (enum report_layout)job->opt.layout,
		.percentiles = job->opt.percentile, .percentile_count = job->opt.percentile_count,
		.redact = job->where.redact,
	};
	static struct report_axis axis;		/* the report keeps it, too */
	static struct report_matrix matrix;	/* the report keeps it, too */
	json_t *hosts = hosts_describe(job);
	int rc = 0;

	for (int w = 0; w < job->where.way_count; w++)
		names[w] = job->where.way[w].name;
	if (job->opt.axis) {
		axis = (struct report_axis){ job->opt.axis->name, job->opt.axis->unit,
					     job->opt.axis->title };
		table.axis = &axis;
	}
	if (job->def->layout == BENCH_TOURNAMENT) {
		tournament_matrix(job, &matrix);
		table.matrix = &matrix;
	}
	if (job->b.rank == 0)
		rc = outputs_open(job, &table, describe_run(job, hosts));
	interfaces_open(job);
	job->got.kept_sizes = ranks_max(job, job->got.kept_sizes);
	return ranks_max(job, rc != 0) ? RG_EXIT_USAGE : 0;
}

static int outputs_close(struct bench_job *job, int status, json_t *end)
{
	int failed = 0;

	if (job->got.report)
		failed = report_close(job->got.report, status, end);
	failed = samples_file_close(job) || failed;
	report_file_free(&job->got.kept);
	return ranks_max(job, failed != 0) && !status ? RG_EXIT_FAULT : status;
}

static int size_run(struct bench_job *job, uint64_t bytes)
{
	struct measure m[REPORT_WAYS_MAX];
	int valid[REPORT_WAYS_MAX];

	if (job->def->layout == BENCH_TOURNAMENT)
		return tournament_run(job, bytes);
	for (int w = 0; w < job->where.way_count; w++) {
		valid[w] = validate_way(job, &job->where.way[w], bytes);
		job->got.validation_failed = job->got.validation_failed || valid[w] == 0;
	}
	timing_measure(job, bytes, m);
	return rows_write(job, bytes, m, valid);
}

static int sizes_run(struct bench_job *job)
{
	uint64_t kept = job->got.kept_sizes, n = 0;
	int rc = 0;

	for (int i = 0; job->opt.axis && !rc && job->opt.axis->value(i, &job->got.x); i++) {
		job->opt.axis->set(job->got.x);
		rc = n++ < kept ? 0 : size_run(job, job->opt.sizes.min);
	}
	if (job->opt.axis)
		return rc;
	for (uint64_t s = job->opt.sizes.min; s <= job->opt.sizes.max && !rc;
	     s = options_next_size(s))
		rc = n++ < kept ? 0 : size_run(job, s);
	return rc;
}

/* Add a member to the end record, if there is one. */
static void end_add(json_t **end, const char *name, json_t *member)
{
	if (!member)
		return;
	if (!*end)
		*end = json_object();
	json_object_set_new(*end, name, member);
}

static int job_measure(struct bench_job *job)
{
	json_t *end, *baseline, *native;
	int rc;

	ledger_open(job);
	rc = job->def->tune ? tune_check(job) : 0;
	if (!rc)
		rc = report_begin(job);
	if (rc)
		return rc;
	rc = app_is(job) ? app_run(job) : job->def->tune ? tune_run(job) : sizes_run(job);
	native = interfaces_close(job);
	end = ledger_close(job);
	end_add(&end, "native", native);
	end_add(&end, "learned", learned_close(job));
	if (!rc && !app_is(job)) {
		baseline = rail_baseline_compare(job);
		if (end && baseline)
			json_object_set(end, "aggregate", baseline);
		json_decref(baseline);
	}
	if (!rc && job->got.validation_failed)
		rc = RG_EXIT_FAILED;
	return outputs_close(job, rc, end);
}

/* Cells of pairs on queue pairs of their own: no ledger, since the transport carries nothing. */
static int job_accept(struct bench_job *job)
{
	json_t *end = NULL;
	int rc = report_begin(job);

	if (rc)
		return rc;
	rc = acceptance_run(job, job->opt.sizes.max, &end);
	return outputs_close(job, rc, end);
}

/* Between MPI_Init and MPI_Finalize. */
static int job_run(struct bench_job *job)
{
	int rc;

	ranks_guard(MPI_COMM_WORLD);
	MPI_Comm_rank(MPI_COMM_WORLD, &job->b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job->b.size);
	rg_set_quiet(job->b.rank != 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &job->where.comm);
	rc = options_agree(job);
	if (!rc)
		rc = place_find(job);
	if (!rc)
		rc = app_check(job);
	/* A port that is down is accused, so the software HCA has it. */
	if (acceptance_is(job))
		setenv("SOFTHCA_NET_DOWN", "port", 0);
	if (!rc)
		rc = ways_open(job);
	if (!rc && acceptance_is(job))
		rc = acceptance_open(job);
	if (!rc)
		rc = place_join(job);
	if (!rc)
		rc = carrier_open(job);
	if (!rc)
		rc = app_is(job) ? app_open(job) : buffers_open(job);
	if (!rc)
		rc = carrier_memory(job);
	if (!rc) {
		noise_open(job);
		rc = acceptance_is(job) ? job_accept(job) : job_measure(job);
		noise_close(job);
	}
	app_close(job);
	carrier_close(job);
	acceptance_close(job);
	collective_close(job);
	buffers_close(job);
	ways_close(job);
	MPI_Comm_free(&job->where.comm);
	free(job->where.place);
	free(job->where.pair);
	free(job->where.player);
	redact_free(job->where.redact);
	return rc;
}

int main(int argc, char **argv)
{
	static struct bench_job job;
	int rc;

	job.def = &bench_def;
	job.opt.argc = argc;
	job.opt.argv = argv;
	rg_set_program(argv[0]);
	/* Until MPI_Init the rank comes from the launcher: only rank 0 prints errors. */
	rg_set_quiet(rg_launch_rank() > 0);
	if (rg_launch_rank() > 0 && !freopen("/dev/null", "w", stdout))
		return RG_EXIT_FAULT;
	rc = options_parse(&job);
	if (!rc)
		rc = options_to_transport(&job);
	if (rc) {
		options_free(&job);
		if (rc < 0)
			rg_let_rank_0_speak();
		return rc > 0 ? rg_end(RG_EXIT_OK) : RG_EXIT_USAGE;
	}
	MPI_Init(&argc, &argv);
	rc = job_run(&job);
	MPI_Finalize();
	options_free(&job);
	return rc;
}
