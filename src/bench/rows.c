/*
 * rows.c - rows from samples.
 *
 * Latency: a sample is divided by its messages.  Of several pairs the row is the pair with the
 * median of all pairs' medians, the slower of two in the middle, and the slowest pair is named.
 *
 * Bandwidth and rate: a sample is the time of a window.  Statistics are computed on times,
 * then converted to rates: quantity / mean time is the harmonic mean of the rates, the
 * largest time gives the smallest rate, and P99 is the rate that 99 % of the windows reached.
 *
 * Several pairs, bandwidth and rate: a sample is a batch, its time from the common start to the
 * last end of all pairs, by the number of windows that each pair moved in it.  So the rate is that
 * of the bytes moved in the time that passed, also where pairs take turns on a core or a port.
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
#include "bench/samples.h"
#include "bench/ways.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "util/text.h"

/* ---- Statistics ------------------------------------------------------------------------ */

/* Messages of a sample: of one pair, or of a master and all its slaves. */
static int messages(const struct bench_job *job)
{
	return job->def->messages ? job->def->messages(&job->b) : 1;
}

/* The factor of the metric's unit: latency = time / factor, other metrics = factor / time. */
static double unit_factor(const struct bench_job *job)
{
	int pairs = job->def->layout == BENCH_PAIRS ? job->where.pair_count : 1;

	switch (job->def->metric) {
	case REPORT_LATENCY:
		return messages(job) * 1e3;
	case REPORT_BANDWIDTH:
		return (double)messages(job) * pairs * job->b.count * 1e9 / 1e6;
	default:
		return (double)messages(job) * pairs * 1e9;
	}
}

static double value(const void *user, double ns)
{
	const struct bench_job *job = user;

	if (job->def->metric == REPORT_LATENCY)
		return ns / unit_factor(job);
	return unit_factor(job) / (ns < 1 ? 1 : ns);	/* NaN stays NaN */
}

/* The row of a series in the order of time. */
static struct report_row row_of(const struct bench_job *job, const uint64_t *ns, size_t n)
{
	uint64_t *sorted = bench_must(malloc(n * sizeof(sorted[0]) + 1));
	struct stats_samples samples;
	struct report_row row = {0};

	stats_order(ns, n, sorted, &samples);
	stats_summarise(&samples, job->def->metric != REPORT_LATENCY, value, job, row.stat);
	for (int i = 0; i < job->opt.percentile_count; i++)
		row.percentile[i] = value(job, stats_percentile(sorted, n,
								job->opt.percentile[i] / 100));
	free(sorted);
	return row;
}

struct pair_median { double ns; int pair; };

static int compare_pairs(const void *a, const void *b)
{
	const struct pair_median *x = a, *y = b;

	return x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns) : x->pair - y->pair;
}

/* Latency of several pairs: the row of the median pair. */
static struct report_row row_of_pairs(const struct bench_job *job, const struct samples *s)
{
	struct pair_median *by = bench_must(calloc((size_t)s->series, sizeof(by[0])));
	uint64_t *sorted = bench_must(malloc((size_t)s->n * sizeof(sorted[0])));
	struct report_row row;
	int slowest;

	for (int k = 0; k < s->series; k++) {
		memcpy(sorted, s->ns + (size_t)k * s->n, (size_t)s->n * sizeof(sorted[0]));
		stats_sort(sorted, (size_t)s->n);
		by[k] = (struct pair_median){ stats_median(sorted, (size_t)s->n), k };
	}
	qsort(by, (size_t)s->series, sizeof(by[0]), compare_pairs);
	row = row_of(job, s->ns + (size_t)by[s->series / 2].pair * s->n, (size_t)s->n);
	slowest = by[s->series - 1].pair;
	memcpy(row.slowest.rank, job->where.pair[slowest].rank, sizeof(row.slowest.rank));
	row.slowest.median = value(job, by[s->series - 1].ns);
	free(sorted);
	free(by);
	return row;
}

static struct report_row row_of_sums(const struct bench_job *job, int w)
{
	uint64_t *ns = bench_must(malloc(job->got.batches[w].count * sizeof(ns[0]) + 1));
	struct report_row row = row_of(job, ns, measure_sums(job, w, ns));

	free(ns);
	return row;
}

static struct report_row row_of_way(const struct bench_job *job, int w, const struct samples *s)
{
	if (place_sums(job))
		return row_of_sums(job, w);
	return s->series > 1 ? row_of_pairs(job, s) : row_of(job, s->ns, (size_t)s->n);
}

/* Members of a row record that say how it was measured. */
static json_t *row_extra(const struct bench_job *job, int w, const struct measure *m,
			 const struct report_row *row)
{
	uint64_t runs = m->warm_done + m->runs + collective_more_runs(job, w);

	return json_pack("{s:s, s:I, s:i, s:i, s:I, s:I}", "ci_of", "batches", "batches",
			 (json_int_t)stats_batch_count((size_t)row->stat[STATS_N]), "pairs",
			 job->where.pair_count, "messages", messages(job), "iterations", (json_int_t)m->done, "runs",
			 (json_int_t)runs);
}

static enum report_converged converged(const struct bench_job *job, const struct measure *m)
{
	if (job->got.acceptance || !measure_adapts(job))
		return REPORT_COUNTED;
	return m->converged ? REPORT_CONVERGED : REPORT_NOT_CONVERGED;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Add to a row the difference of its median from the first variant's, of the same size. */
static void added_record(struct bench_job *job, int w, const struct report_row *row, json_t *extra)
{
	if (!job->def->variants || job->def->metric != REPORT_LATENCY)
		return;
	job->got.median[w] = row->stat[STATS_MEDIAN];
	if (w)
		json_object_set_new(extra, "added", json_real(job->got.median[w] - job->got.median[0]));
}

static void added_tell(struct bench_job *job, uint64_t bytes)
{
	char text[512] = "";

	if (!job->got.report || !job->def->variants || job->def->metric != REPORT_LATENCY)
		return;
	for (int w = 1; w < job->where.way_count; w++)
		rg_text_add(text, sizeof(text), "%s%s %.4f us", w > 1 ? ", " : "",
			    job->where.way[w].name, job->got.median[w] - job->got.median[0]);
	report_note(job->got.report, "added to %s, %" PRIu64 " bytes: %s", job->where.way[0].name,
		    bytes, text);
}

/* Write a row, at rank 0.  0 or -errno. */
static int row_write(struct bench_job *job, int w, uint64_t bytes, const struct samples *s,
		     const struct measure *m, int valid, json_t *ledger,
		     const struct bench_arrivals *arrivals)
{
	struct report_row row = row_of_way(job, w, s);
	json_t *extra = row_extra(job, w, m, &row);
	int rc, written;

	samples_file_add(job, w, bytes, s);
	/* A row that is there has its samples. */
	rc = samples_file_flush(job);
	row.way = job->where.way[w].name;
	row.bytes = bytes;
	row.valid = valid;
	row.x = job->got.x;
	row.cut = m->cut;
	row.converged = converged(job, m);
	row.extra = extra;
	if (ledger)
		json_object_set(extra, "ledger", ledger);
	json_object_set_new(extra, "noise", noise_record(job, w));
	json_object_set_new(extra, "timing", collective_record(job, w));
	added_record(job, w, &row, extra);
	if (job->def->carrier)
		json_object_set_new(extra, "arrivals", json_pack("{s:I, s:I}", "expected",
			(json_int_t)arrivals->expected, "lost", (json_int_t)arrivals->lost));
	written = report_row(job->got.report, &row);
	json_decref(extra);
	if (arrivals->lost)
		report_note(job->got.report, "lost: %s, %" PRIu64 " bytes: %" PRIu64 " of %" PRIu64
			    " messages (%.3g %%)", row.way, bytes, arrivals->lost,
			    arrivals->expected,
			    100 * (double)arrivals->lost / (double)arrivals->expected);
	return rc ? rc : written;
}

/* Write the row of a pair in a tournament's round. */
static int pair_row_write(struct bench_job *job, int w, uint64_t bytes, int p, const uint64_t *ns,
			  const struct measure *m, int valid, json_t *more)
{
	const struct bench_column *way = &job->where.way[w];
	const int *rank = job->where.pair[p].rank;
	struct report_row row = row_of(job, ns, (size_t)m->done);
	json_t *cell = json_pack("{s:[i, i], s:[o, o], s:s?}", "ranks", rank[0], rank[1],
				 "hosts", report_string(job->where.place[rank[0]].host),
				 report_string(job->where.place[rank[1]].host),
				 "rail", way_rail(job, way));
	int rc;

	row.way = way->name;
	row.bytes = bytes;
	row.from = job->where.place[rank[0]].node;
	row.to = job->where.place[rank[1]].node;
	row.valid = valid;
	row.cut = m->cut;
	row.converged = converged(job, m);
	row.extra = row_extra(job, w, m, &row);
	json_object_update(row.extra, cell);
	if (more)
		json_object_update(row.extra, more);
	json_object_set_new(row.extra, "noise", noise_record(job, w));
	json_object_set_new(row.extra, "timing", collective_record(job, w));
	rc = report_row(job->got.report, &row);
	json_decref(row.extra);
	json_decref(cell);
	return rc;
}

int rows_write_pairs(struct bench_job *job, uint64_t bytes, const struct measure m[],
		     const int valid[])
{
	uint64_t failed = 0;

	for (int w = 0; w < job->where.way_count; w++) {
		int pairs = job->where.pair_count;
		struct samples s;

		/* Ledgers do not separate pairs: the call adds to the way's totals. */
		json_decref(ledger_row(job, &job->where.way[w]));
		buffers_set(job, &job->where.way[w], bytes, false);
		s = samples_gather(job, w, &m[w]);
		if (job->b.rank == 0)
			samples_file_add(job, w, bytes, &s);
		for (int p = 0; job->b.rank == 0 && p < pairs; p++)
			failed = pair_row_write(job, w, bytes, p, s.ns + (size_t)p * s.n, &m[w],
						valid[w * pairs + p], NULL) || failed;
		samples_free(&s);
	}
	return ranks_max(job, failed) ? RG_EXIT_FAULT : 0;
}

int rows_write_cell(struct bench_job *job, int w, const int rank[2], const struct measure *m,
		    const uint64_t *ns, int valid, json_t *more)
{
	struct bench_batches *turns = &job->got.batches[w];
	const struct samples s = { .ns = (uint64_t *)(uintptr_t)ns, .n = m->done, .series = 1 };
	uint64_t bytes = (uint64_t)job->b.count;

	if (!turns->list) {
		turns->list = bench_must(calloc(1, sizeof(turns->list[0])));
		turns->count = turns->room = 1;
	}
	turns->list[0].samples = m->done;
	job->where.pair[0] = (struct bench_pair){ { rank[0], rank[1] } };
	job->where.pair_count = 1;
	buffers_set(job, &job->where.way[w], bytes, false);
	samples_file_add(job, w, bytes, &s);
	return pair_row_write(job, w, bytes, 0, ns, m, valid, more);
}

double rows_median(struct bench_job *job, int w, uint64_t bytes, const struct measure *m)
{
	double median = NAN;
	struct samples s;

	buffers_set(job, &job->where.way[w], bytes, false);
	s = samples_gather(job, w, m);
	if (job->b.rank == 0)
		median = row_of_way(job, w, &s).stat[STATS_MEDIAN];
	samples_free(&s);
	return median;
}

int rows_write(struct bench_job *job, uint64_t bytes, const struct measure m[],
	       const int valid[])
{
	uint64_t failed = 0;

	for (int w = 0; w < job->where.way_count; w++) {
		struct bench_arrivals arrivals = carrier_row(job, &job->where.way[w]);
		json_t *ledger = ledger_row(job, &job->where.way[w]);
		struct samples s;

		buffers_set(job, &job->where.way[w], bytes, false);
		s = samples_gather(job, w, &m[w]);
		if (job->b.rank == 0)
			failed = failed || row_write(job, w, bytes, &s, &m[w], valid[w], ledger,
						     &arrivals);
		samples_free(&s);
		json_decref(ledger);
	}
	added_tell(job, bytes);
	failed = samples_file_flush(job) || failed;
	return ranks_max(job, failed) ? RG_EXIT_FAULT : 0;
}
