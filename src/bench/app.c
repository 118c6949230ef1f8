/*
 * app.c - BENCH_APP: a computation timed as a whole, over each way in turn.
 *
 * Each way gets one row: its turn with the median time.  The time of a turn is that of the
 * slowest rank.  Each rank reports which part of its own time was communication.
 */
#include "bench/app.h"
#include "bench/ledger.h"
#include "bench/memory.h"
#include "bench/ranks.h"
#include "bench/ways.h"

#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "stats/stats.h"

/* ---- For programs -------------------------------------------------------------- */

void bench_turn_begin(struct bench_turn *t)
{
	MPI_Barrier(t->comm);
	t->communication_ns = t->sent_bytes = 0;
	t->begin_ns = rg_now_ns();
}

void bench_turn_end(struct bench_turn *t)
{
	t->total_ns = rg_now_ns() - t->begin_ns;
}

uint64_t bench_communication_begin(void)
{
	return rg_now_ns();
}

void bench_communication_end(struct bench_turn *t, uint64_t begun, uint64_t bytes)
{
	t->communication_ns += rg_now_ns() - begun;
	t->sent_bytes += bytes;
}

/* ---- Before ----------------------------------------------------------------------- */

static int ranks_here(const struct bench_job *job)
{
	int count = 0;

	for (int i = 0; i < job->b.size; i++)
		count += strcmp(job->where.place[i].host, job->where.place[job->b.rank].host) == 0;
	return count;
}

int app_check(struct bench_job *job)
{
	uint64_t mine, least;
	char why[384];

	if (!app_is(job))
		return 0;
	mine = memory_available(ranks_here(job));
	MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, job->where.comm);
	if (!job->def->app->check(job->b.size, least, why, sizeof(why)))
		return 0;
	rg_error("%s", why);
	return RG_EXIT_USAGE;
}

static size_t times_at(const struct bench_job *job, int w, uint64_t run)
{
	return ((size_t)w * (size_t)job->opt.runs + (size_t)run) * (size_t)job->b.size;
}

int app_open(struct bench_job *job)
{
	int failed = job->def->app->open(job->b.rank, job->b.size);

	if (job->b.rank == 0) {
		job->got.times = malloc(times_at(job, job->where.way_count, 0) *
					sizeof(job->got.times[0]));
		failed = failed || !job->got.times;
	}
	if (!ranks_max(job, failed != 0))
		return 0;
	rg_error("no memory: free memory has shrunk since the check (use a smaller problem, fewer "
		 "--runs or more hosts)");
	return RG_EXIT_FAULT;
}

void app_close(struct bench_job *job)
{
	if (!app_is(job))
		return;
	job->def->app->close();
	free(job->got.times);
	job->got.times = NULL;
}

json_t *app_describe(const struct bench_job *job)
{
	struct bench_problem p;

	job->def->app->problem(&p);
	return json_pack("{s:s, s:s, s:I, s:i, s:f, s:s, s:i, s:I}", "class", p.class,
			 "size", p.size, "bytes", (json_int_t)p.bytes, "iterations", p.iterations,
			 "operations", p.operations, "operation", p.operation,
			 "ranks", job->b.size, "runs", (json_int_t)job->opt.runs);
}

/* ---- Turns --------------------------------------------------------------------------- */

/* A single rank with an error reports it to rank 0, which prints it. */
static bool anything_wrong(const struct bench_job *job, const struct bench_column *way,
			   struct bench_turn *t)
{
	int who = (int)ranks_max(job, *t->wrong ? (uint64_t)job->b.rank + 1 : 0);

	if (who == 0)
		return false;
	MPI_Bcast(t->wrong, sizeof(t->wrong), MPI_CHAR, who - 1, job->where.comm);
	rg_error("verification failed: %s, rank %d: %s", way->name, who - 1, t->wrong);
	return true;
}

static void turn(struct bench_job *job, int w, uint64_t run)
{
	struct bench_turn t = { .comm = job->where.way[w].comm, .rank = job->b.rank,
				.size = job->b.size };
	struct bench_times mine;

	way_switch(&job->where.way[w]);
	noise_batch_begin(job);
	job->def->app->run(&t);
	noise_batch_end(job, &job->where.way[w]);
	ledger_take(job, &job->where.way[w]);
	if (anything_wrong(job, &job->where.way[w], &t))
		job->got.way_wrong[w] = job->got.validation_failed = true;
	mine = (struct bench_times){ t.total_ns, t.communication_ns, t.sent_bytes };
	MPI_Gather(&mine, sizeof(mine), MPI_BYTE,
		   job->got.times ? job->got.times + times_at(job, w, run) : NULL,
		   sizeof(mine), MPI_BYTE,
		   0, job->where.comm);
}

/* ---- Rows, at rank 0 ------------------------------------------------------------------ */

static uint64_t slowest(const struct bench_job *job, int w, uint64_t run)
{
	const struct bench_times *t = job->got.times + times_at(job, w, run);
	uint64_t most = 0;

	for (int i = 0; i < job->b.size; i++)
		most = t[i].total_ns > most ? t[i].total_ns : most;
	return most;
}

static double mops(const void *user, double ns)
{
	const struct bench_problem *p = user;

	return p->operations * 1e3 / (ns < 1 ? 1 : ns);	/* NaN stays NaN */
}

/* A row from the times of all runs, in the order of time; each run is a batch. */
static struct report_row row_of(const struct bench_problem *p, const uint64_t *in_order,
				uint64_t *sorted, uint64_t n)
{
	struct stats_samples samples;
	struct report_row row = {.bytes = p->bytes};

	stats_order(in_order, (size_t)n, sorted, &samples);
	stats_summarise(&samples, true, mops, p, row.stat);
	/*
	 * The median is an existing run, which is reported in full: the slower of two in the
	 * middle.
	 */
	row.stat[STATS_MEDIAN] = mops(p, (double)sorted[n / 2]);
	return row;
}

static json_t *times_json(const struct bench_job *job, int w, uint64_t run)
{
	const struct bench_times *t = job->got.times + times_at(job, w, run);
	json_t *total = json_array(), *communication = json_array(), *bytes = json_array();

	for (int i = 0; i < job->b.size; i++) {
		json_array_append_new(total, json_real((double)t[i].total_ns / 1e9));
		json_array_append_new(communication,
				      json_real((double)t[i].communication_ns / 1e9));
		json_array_append_new(bytes, json_integer((json_int_t)t[i].sent_bytes));
	}
	return json_pack("{s:o, s:o, s:o}", "total_s", total, "communication_s", communication,
			 "sent_bytes", bytes);
}

static int row_write(struct bench_job *job, int w, json_t *ledger)
{
	uint64_t runs = job->opt.runs, middle = 0;
	uint64_t *in_order = bench_must(malloc((size_t)runs * sizeof(in_order[0])));
	uint64_t *sorted = bench_must(malloc((size_t)runs * sizeof(sorted[0])));
	struct bench_problem p;
	struct report_row row;
	int rc;

	/* The first run has the highest number (app_run). */
	for (uint64_t r = 0; r < runs; r++)
		in_order[r] = slowest(job, w, runs - 1 - r);
	job->def->app->problem(&p);
	row = row_of(&p, in_order, sorted, runs);
	while (slowest(job, w, middle) != sorted[runs / 2])
		middle++;
	row.way = job->where.way[w].name;
	row.valid = !job->got.way_wrong[w];
	row.extra = json_pack("{s:o, s:s, s:I, s:o}", "app", times_json(job, w, middle), "ci_of",
			      "batches", "batches", (json_int_t)stats_batch_count((size_t)runs),
			      "noise", noise_record(job, w));
	if (ledger)
		json_object_set(row.extra, "ledger", ledger);
	rc = report_row(job->got.report, &row);
	json_decref(row.extra);
	free(in_order);
	free(sorted);
	return rc;
}

/* The last run takes ways in order, so that rows come in order and early. */
int app_run(struct bench_job *job)
{
	int ways = job->where.way_count;
	uint64_t failed = 0;

	noise_begin(job);
	for (uint64_t left = job->opt.runs; left-- > 0; )
		for (int i = 0; i < ways; i++) {
			int w = (int)((left + (uint64_t)i) % (uint64_t)ways);
			json_t *ledger;

			turn(job, w, left);
			if (left)
				continue;
			noise_end(job);
			ledger = ledger_row(job, &job->where.way[w]);
			if (job->b.rank == 0)
				failed = row_write(job, w, ledger) || failed;
			json_decref(ledger);
		}
	return ranks_max(job, failed) ? RG_EXIT_FAULT : 0;
}
