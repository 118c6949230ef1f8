/*
 * rows.c - rows from samples.
 *
 * Latency: the samples of all pairs are pooled; a sample is divided by its messages.
 *
 * Bandwidth and rate: a sample is the time of a window.  Statistics are computed on times,
 * then converted to rates: quantity / mean time is the harmonic mean of the rates, the
 * largest time gives the smallest rate, and P99 is the rate that 99 % of the windows reached.
 *
 * Several pairs, aggregate: a sample is the mean time of the i-th windows of all k pairs, in
 * which k windows were moved.  The sum alone would be wrong where pairs take turns on a core or a
 * port, since each measures only its own turn.  So the samples of a batch are scaled by one
 * factor, such that their mean is the wall time of the batch, over all ranks, divided by its runs.
 * The reported rate therefore never exceeds the bytes moved in the time that passed.
 *
 * A master and its slaves: the samples are the master's.
 *
 * Collectives: see collective.h.
 */
#include "bench/rows.h"
#include "bench/buffers.h"
#include "bench/carrier.h"
#include "bench/collective.h"
#include "bench/ledger.h"
#include "bench/measure.h"
#include "bench/ranks.h"
#include "bench/ways.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "util/text.h"

/* Samples of one row at rank 0, in nanoseconds. */
struct pool {
	uint64_t *ns;
	size_t count;
};

/* ---- Gathering --------------------------------------------------------------------- */

enum { SAMPLES_TAG = 3 };

/* Gather at rank 0 the samples of the first `pairs` pairs in sequence, n of each. */
static uint64_t *gather_pairs(const struct bench_job *job, uint64_t *mine, uint64_t n, int pairs)
{
	uint64_t *all;

	if (job->b.rank && place_times(job))
		MPI_Send(mine, (int)n, MPI_UINT64_T, 0, SAMPLES_TAG, job->where.comm);
	if (job->b.rank)
		return NULL;
	all = bench_must(malloc((size_t)pairs * n * sizeof(all[0])));
	for (int p = 0; p < pairs; p++) {
		int from = job->where.pair[p].rank[0];

		if (from == 0)
			memcpy(all + (size_t)p * n, mine, n * sizeof(all[0]));
		else
			MPI_Recv(all + (size_t)p * n, (int)n, MPI_UINT64_T, from, SAMPLES_TAG,
				 job->where.comm, MPI_STATUS_IGNORE);
	}
	return all;
}

/* The samples of one way at rank 0: `series` of them, n each. */
static uint64_t *gather(const struct bench_job *job, int way, uint64_t n, int *series)
{
	enum bench_layout layout = job->def->layout;

	/* The master's samples cover all its slaves. */
	*series = layout == BENCH_ALL || layout == BENCH_STAR ? 1 : job->where.pair_count;
	return layout != BENCH_ALL ? gather_pairs(job, job->got.samples[way], n, *series) :
		collective_gather(job, job->got.samples[way], n);
}

/* Write a series: of a pair, of a cell of a matrix (from * nodes + to), or of all ranks. */
static void samples_file_add(const struct bench_job *job, const char *way, uint64_t bytes,
			     const uint64_t *ns, uint64_t n, int series)
{
	for (uint64_t i = 0; job->got.samples_file && i < n; i++)
		fprintf(job->got.samples_file, "%s,%" PRIu64 ",%d,%" PRIu64 ",%" PRIu64 "\n", way,
			bytes, series, i, ns[i]);
}

/* ---- Statistics ------------------------------------------------------------------------ */

/* The mean time of the i-th samples of all pairs. */
static double mean_of_pairs(const struct pool *p, size_t n, int pairs, size_t i)
{
	double sum = 0;

	for (int k = 0; k < pairs; k++)
		sum += (double)p->ns[(size_t)k * n + i];
	return sum / pairs;
}

static void aggregate(struct pool *p, int pairs, const struct bench_batches *batches)
{
	size_t n = p->count / (size_t)pairs, at = 0;

	for (size_t b = 0; b < batches->count && pairs > 1; b++) {
		size_t end = at + batches->list[b].samples;
		double sum = 0, stretch;

		for (size_t i = at; i < end; i++)
			sum += mean_of_pairs(p, n, pairs, i);
		stretch = (double)batches->list[b].run_ns * (double)(end - at) / fmax(sum, 1);
		for (; at < end; at++)
			p->ns[at] = (uint64_t)llround(mean_of_pairs(p, n, pairs, at) * stretch);
	}
	p->count = n;
}

/* The factor of the metric's unit: latency = time / factor, other metrics = factor / time. */
static double unit_factor(const struct bench_job *job)
{
	int messages = job->def->messages ? job->def->messages(&job->b) : 1;
	int pairs = job->def->layout == BENCH_PAIRS ? job->where.pair_count : 1;

	switch (job->def->metric) {
	case REPORT_LATENCY:
		return messages * 1e3;
	case REPORT_BANDWIDTH:
		return (double)messages * pairs * job->b.count * 1e9 / 1e6;
	default:
		return (double)messages * pairs * 1e9;
	}
}

static double value(const void *user, double ns)
{
	const struct bench_job *job = user;

	if (job->def->metric == REPORT_LATENCY)
		return ns / unit_factor(job);
	return unit_factor(job) / (ns < 1 ? 1 : ns);	/* NaN stays NaN */
}

static struct report_row row_of(const struct bench_job *job, const struct pool *p)
{
	const struct stats_samples samples = {p->ns, p->count};
	struct report_row row = {0};

	stats_summarise(&samples, job->def->metric != REPORT_LATENCY, value, job, row.stat);
	for (int i = 0; i < job->opt.percentile_count; i++)
		row.percentile[i] = value(job, stats_percentile(p->ns, p->count,
								job->opt.percentile[i] / 100));
	return row;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Add to a row the difference of its mean from the first variant's, of the same size. */
static void added_record(struct bench_job *job, int w, const struct report_row *row, json_t *extra)
{
	if (!job->def->variants || job->def->metric != REPORT_LATENCY)
		return;
	job->got.mean[w] = row->stat[STATS_MEAN];
	if (w)
		json_object_set_new(extra, "added", json_real(job->got.mean[w] - job->got.mean[0]));
}

static void added_tell(struct bench_job *job, uint64_t bytes)
{
	char text[512] = "";

	if (!job->got.report || !job->def->variants || job->def->metric != REPORT_LATENCY)
		return;
	for (int w = 1; w < job->where.way_count; w++)
		rg_text_add(text, sizeof(text), "%s%s %.4f us", w > 1 ? ", " : "",
			    job->where.way[w].name, job->got.mean[w] - job->got.mean[0]);
	report_note(job->got.report, "added to %s, %" PRIu64 " bytes: %s", job->where.way[0].name,
		    bytes, text);
}

/* Write a row, at rank 0.  0 or -errno. */
static int row_write(struct bench_job *job, int w, uint64_t bytes, struct pool *pool, int series,
		     const struct measure *m, int valid, json_t *ledger,
		     const struct bench_arrivals *arrivals)
{
	struct report_row row;
	json_t *extra = json_pack("{s:i, s:I, s:I}", "pairs", job->where.pair_count, "iterations",
				  (json_int_t)m->done, "runs", (json_int_t)(m->warm_done +
				  m->runs + collective_more_runs(job, w)));
	int rc;

	for (int s = 0; s < series; s++)
		samples_file_add(job, job->where.way[w].name, bytes, pool->ns + (size_t)s * m->done,
				 m->done, s);
	if (job->def->metric != REPORT_LATENCY)
		aggregate(pool, series, &job->got.batches[w]);
	stats_sort(pool->ns, pool->count);
	row = row_of(job, pool);
	row.way = job->where.way[w].name;
	row.bytes = bytes;
	row.valid = valid;
	row.x = job->got.x;
	row.cut = m->cut;
	row.extra = extra;
	if (ledger)
		json_object_set(extra, "ledger", ledger);
	json_object_set_new(extra, "noise", noise_record(job, w));
	json_object_set_new(extra, "timing", collective_record(job, w));
	added_record(job, w, &row, extra);
	if (job->def->carrier)
		json_object_set_new(extra, "arrivals", json_pack("{s:I, s:I}", "expected",
			(json_int_t)arrivals->expected, "lost", (json_int_t)arrivals->lost));
	rc = report_row(job->got.report, &row);
	json_decref(extra);
	if (arrivals->lost)
		report_note(job->got.report, "lost: %s, %" PRIu64 " bytes: %" PRIu64 " of %" PRIu64
			    " messages (%.3g %%)", row.way, bytes, arrivals->lost,
			    arrivals->expected,
			    100 * (double)arrivals->lost / (double)arrivals->expected);
	return rc;
}

/* Write the row of a pair in a tournament's round. */
static int pair_row_write(struct bench_job *job, int w, uint64_t bytes, int p, uint64_t *ns,
			  const struct measure *m, int valid)
{
	const struct bench_column *way = &job->where.way[w];
	const int *rank = job->where.pair[p].rank;
	int from = job->where.place[rank[0]].node, to = job->where.place[rank[1]].node;
	const char *rail = way_rail(job, way);
	struct pool pool = { .ns = ns, .count = m->done };
	json_t *extra = json_pack("{s:[i, i], s:[o, o], s:s?, s:I, s:I}",
				  "ranks", rank[0], rank[1],
				  "hosts", report_string(job->where.place[rank[0]].host),
				  report_string(job->where.place[rank[1]].host), "rail", rail,
				  "iterations", (json_int_t)m->done,
				  "runs", (json_int_t)(m->warm_done + m->runs));
	struct report_row row;
	int rc;

	json_object_set_new(extra, "timing", collective_record(job, w));
	samples_file_add(job, way->name, bytes, ns, m->done, from * job->where.node_count + to);
	stats_sort(pool.ns, pool.count);
	row = row_of(job, &pool);
	row.way = way->name;
	row.bytes = bytes;
	row.from = from;
	row.to = to;
	row.valid = valid;
	row.cut = m->cut;
	row.extra = extra;
	json_object_set_new(extra, "noise", noise_record(job, w));
	rc = report_row(job->got.report, &row);
	json_decref(extra);
	return rc;
}

int rows_write_pairs(struct bench_job *job, uint64_t bytes, const struct measure m[],
		     const int valid[])
{
	uint64_t failed = 0;

	for (int w = 0; w < job->where.way_count; w++) {
		uint64_t n = m[w].done, *ns;
		int pairs;

		/* Ledgers do not separate pairs: the call adds to the way's totals. */
		json_decref(ledger_row(job, &job->where.way[w]));
		buffers_set(job, &job->where.way[w], bytes, false);
		ns = gather(job, w, n, &pairs);
		for (int p = 0; job->b.rank == 0 && p < pairs; p++)
			failed = pair_row_write(job, w, bytes, p, ns + (size_t)p * n, &m[w],
						valid[w * pairs + p]) || failed;
		free(ns);
	}
	return ranks_max(job, failed) ? RG_EXIT_FAULT : 0;
}

double rows_median(struct bench_job *job, int w, uint64_t bytes, const struct measure *m)
{
	struct pool pool;
	double median = NAN;
	int series;

	buffers_set(job, &job->where.way[w], bytes, false);
	pool.ns = gather(job, w, m->done, &series);
	pool.count = (size_t)series * m->done;
	if (job->b.rank == 0) {
		aggregate(&pool, series, &job->got.batches[w]);
		stats_sort(pool.ns, pool.count);
		median = row_of(job, &pool).stat[STATS_MEDIAN];
	}
	free(pool.ns);
	return median;
}

int rows_write(struct bench_job *job, uint64_t bytes, const struct measure m[],
	       const int valid[])
{
	uint64_t failed = 0;

	for (int w = 0; w < job->where.way_count; w++) {
		struct bench_arrivals arrivals = carrier_row(job, &job->where.way[w]);
		json_t *ledger = ledger_row(job, &job->where.way[w]);
		struct pool pool;
		int series;

		buffers_set(job, &job->where.way[w], bytes, false);
		pool.ns = gather(job, w, m[w].done, &series);
		pool.count = (size_t)series * m[w].done;
		if (job->b.rank == 0)
			failed = failed || row_write(job, w, bytes, &pool, series, &m[w], valid[w],
						     ledger, &arrivals);
		free(pool.ns);
		json_decref(ledger);
	}
	added_tell(job, bytes);
	if (job->got.samples_file && fflush(job->got.samples_file)) {
		rg_error("%s: cannot be written: %s", job->opt.samples, strerror(errno));
		failed = 1;
	}
	return ranks_max(job, failed) ? RG_EXIT_FAULT : 0;
}
