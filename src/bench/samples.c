/* samples.c - samples at rank 0, and the file of --samples. */
#include "bench/samples.h"
#include "bench/ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_TAG = 3 };

/* ---- Gathering ------------------------------------------------------------------------- */

/* The master's samples cover all its slaves; those of collectives are at rank 0. */
static int series_of(const struct bench_job *job)
{
	bool one = job->def->layout == BENCH_ALL || job->def->layout == BENCH_STAR;

	return one ? 1 : job->where.pair_count;
}

static int series_rank(const struct bench_job *job, int series)
{
	return job->def->layout == BENCH_ALL ? 0 : job->where.pair[series].rank[0];
}

struct samples samples_gather(const struct bench_job *job, int way, const struct measure *m)
{
	struct samples s = { .n = m->done, .series = series_of(job) };
	const uint64_t *mine = job->got.samples[way];
	size_t bytes = (size_t)s.n * sizeof(mine[0]);

	if (job->b.rank) {
		if (job->def->layout != BENCH_ALL && place_times(job))
			MPI_Send(mine, (int)s.n, MPI_UINT64_T, 0, SAMPLES_TAG, job->where.comm);
		return s;
	}
	s.ns = bench_must(malloc((size_t)s.series * bytes + 1));
	for (int k = 0; k < s.series; k++) {
		uint64_t *to = s.ns + (size_t)k * s.n;

		if (series_rank(job, k) == 0)
			memcpy(to, mine, bytes);
		else
			MPI_Recv(to, (int)s.n, MPI_UINT64_T, series_rank(job, k), SAMPLES_TAG,
				 job->where.comm, MPI_STATUS_IGNORE);
	}
	return s;
}

void samples_free(struct samples *s)
{
	free(s->ns);
	s->ns = NULL;
}

/* ---- The file ---------------------------------------------------------------------------- */

static int file_failed(const struct bench_job *job)
{
	int rc = -errno;

	rg_error("%s: cannot be written: %s", job->opt.samples, strerror(-rc));
	return rc;
}

int samples_file_flush(struct bench_job *job)
{
	return job->got.samples_file && fflush(job->got.samples_file) ? file_failed(job) : 0;
}

int samples_file_close(struct bench_job *job)
{
	return job->got.samples_file && fclose(job->got.samples_file) ? file_failed(job) : 0;
}

static void series_name(const struct bench_job *job, int series, char *text, size_t size)
{
	const int *rank = job->where.pair ? job->where.pair[series].rank : NULL;

	if (job->def->layout == BENCH_TOURNAMENT)
		snprintf(text, size, "%d-%d", job->where.place[rank[0]].node,
			 job->where.place[rank[1]].node);
	else if (job->def->layout == BENCH_PAIRS)
		snprintf(text, size, "%d", series);
	else
		snprintf(text, size, "all");
}

/* The batch of stats.h that sample i of n is in, at or after `from`. */
static size_t batch_of(size_t n, size_t i, size_t from)
{
	while (from + 1 < stats_batch_count(n) && i >= stats_batch_begin(n, from + 1))
		from++;
	return from;
}

static void line(const struct bench_job *job, const char *head, const char *pair, size_t turn,
		 size_t batch, size_t i, uint64_t ns)
{
	fprintf(job->got.samples_file, "%s%s,%zu,%zu,%zu,%" PRIu64 ",ns\n", head, pair, turn, batch, i,
		ns);
}

void samples_file_add(struct bench_job *job, int way, uint64_t bytes, const struct samples *s)
{
	const struct bench_batches *turns = &job->got.batches[way];
	char head[160], x[32] = "", pair[32];

	if (!job->got.samples_file)
		return;
	if (job->opt.axis)
		snprintf(x, sizeof(x), "%g", job->got.x);
	snprintf(head, sizeof(head), "%" PRIu64 ",%s,%" PRIu64 ",%s,", job->opt.launch,
		 job->where.way[way].name, bytes, x);
	for (int k = 0; k < s->series; k++) {
		size_t turn = 0, left = turns->list[0].samples, batch = 0;

		series_name(job, k, pair, sizeof(pair));
		for (size_t i = 0; i < s->n; i++, left--) {
			if (!left)
				left = turns->list[++turn].samples;
			batch = place_sums(job) ? batch_of(turns->count, turn, batch) :
				batch_of(s->n, i, batch);
			line(job, head, pair, turn, batch, i, s->ns[(size_t)k * s->n + i]);
		}
	}
	for (size_t t = 0, batch = 0; place_sums(job) && t < turns->count; t++) {
		batch = batch_of(turns->count, t, batch);
		line(job, head, "all", t, batch, t, turns->list[t].span_ns);
	}
}
