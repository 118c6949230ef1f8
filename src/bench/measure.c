/*
 * measure.c - the samples of one size.
 *
 * Ways take turns, batch by batch, so that drift of the machine affects all ways alike.  All
 * ranks compute the length of a batch from the same numbers, which are agreed on outside the
 * timed part.  So is the end of a size: whether the samples are enough (stats/stop.h).
 */
#include "bench/measure.h"
#include "bench/buffers.h"
#include "bench/carrier.h"
#include "bench/collective.h"
#include "bench/ledger.h"
#include "bench/options.h"
#include "bench/options_use.h"
#include "bench/ranks.h"
#include "bench/ways.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stop.h"
#include "util/clock.h"

enum {
	BATCHES = 10, BATCHES_FEW = 4, FEW = 50,
	/* a shorter batch shows the ranks' uneven start */
	BATCH_NS_MIN = 1000000,
	/* more samples than the counts: at most so long, unless --time-cap is given, and so many */
	MORE_NS = 1000000000, SAMPLES_MAX = 1 << 20,
	/* of all rows together, at least: rows of short messages come first, and are short */
	MORE_ALL_NS = 200000000,
	/* further looks at a part of the samples would only be looks */
	MORE_SHARE = 4,
	WARMUP_SHARE = 10,
	CLOCK_READINGS = 1000,
};

/* ---- A sample ----------------------------------------------------------------------- */

/*
 * Each sample is corrected for the cost of reading the clock, a large part of a short message and
 * its answer.  The cost is the least of many readings, so that no sample becomes too short.
 */
uint64_t bench_clock_ns(void)
{
	static uint64_t least = UINT64_MAX;

	if (least != UINT64_MAX)
		return least;
	for (int i = 0; i < CLOCK_READINGS; i++) {
		uint64_t begin = rg_now_ns(), took = rg_now_ns() - begin;

		least = took < least ? took : least;
	}
	return least;
}

/* A sample: the time since `begin`, less the cost of the clock. */
static uint64_t sample_ns(uint64_t begin, uint64_t clock)
{
	uint64_t took = rg_now_ns() - begin;

	return took > clock ? took - clock : 0;
}

/* ---- Batches ------------------------------------------------------------------------ */

static void batch_untimed(struct bench_job *job, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		job->def->run(&job->b);
}

static void batch_timed(struct bench_job *job, uint64_t count, uint64_t *samples)
{
	void (*run)(struct bench *b) = job->def->run;
	uint64_t (*took)(void) = job->def->took;
	struct bench *b = &job->b;
	uint64_t clock = bench_clock_ns();

	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = rg_now_ns();

		run(b);
		samples[i] = took ? took() : sample_ns(begin, clock);
	}
}

/* A part of the time, by a rank's own clock; end_ns = 0: not there. */
struct span { uint64_t begin_ns, end_ns; };

/*
 * From the common start to the last end: rank 0 gets the longest time of all hosts, whose ranks
 * share a clock.  A rank that gets the core late has begun with the others of its host.
 */
static uint64_t span_ns(const struct bench_job *job, const struct span *mine)
{
	struct span *all = NULL;
	uint64_t most = 0;

	if (job->b.rank == 0)
		all = bench_must(malloc((size_t)job->b.size * sizeof(all[0])));
	MPI_Gather(mine, sizeof(*mine), MPI_BYTE, all, sizeof(*mine), MPI_BYTE, 0,
		   job->where.comm);
	for (int i = 0; all && i < job->b.size; i++) {
		struct span *host = &all[job->where.place[i].first_of_host];

		/* The first rank of a host comes first; it may have no pair. */
		if (!all[i].end_ns)
			continue;
		if (!host->end_ns || all[i].begin_ns < host->begin_ns)
			host->begin_ns = all[i].begin_ns;
		if (all[i].end_ns > host->end_ns)
			host->end_ns = all[i].end_ns;
		if (host->end_ns - host->begin_ns > most)
			most = host->end_ns - host->begin_ns;
	}
	free(all);
	return most;
}

static void batch_samples(struct bench_job *job, const struct bench_column *way, uint64_t timed,
			  uint64_t *samples)
{
	if (job->def->layout == BENCH_ALL)
		collective_batch(job, way, timed, samples);
	else if (samples)
		batch_timed(job, timed, samples);
	else
		batch_untimed(job, timed);
}

/* Run a batch; returns its time on the slowest rank, and to rank 0 the span of its samples. */
static uint64_t batch(struct bench_job *job, struct bench_column *way, uint64_t bytes,
		      uint64_t untimed, uint64_t timed, uint64_t *samples, uint64_t *all_ns)
{
	bool sums = timed && place_sums(job);
	uint64_t begin;
	struct span span = { 0 };

	noise_batch_begin(job);
	begin = rg_now_ns();
	way_switch(way);
	if (place_runs(job)) {
		buffers_set(job, way, bytes, false);
		carrier_begin(job, untimed + timed);
		batch_untimed(job, untimed);
	}
	if (sums)
		ranks_meet(job);
	if (timed && place_runs(job)) {
		span.begin_ns = rg_now_ns();
		batch_samples(job, way, timed, samples);
		span.end_ns = rg_now_ns();
	}
	begin = rg_now_ns() - begin;
	if (timed)
		noise_batch_end(job, way);
	if (place_runs(job))
		carrier_end(job, way);
	ledger_take(job, way);
	if (sums)
		*all_ns = span_ns(job, &span);
	if (timed && job->def->layout == BENCH_ALL)
		collective_reduce(job, samples, timed);
	return ranks_max(job, begin);
}

/* ---- How many ---------------------------------------------------------------------------- */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The number of runs, 1 to `count`, that fit into the time left. */
static uint64_t fitting(uint64_t count, uint64_t left_ns, uint64_t run_ns)
{
	uint64_t fit = run_ns ? left_ns / run_ns : count;

	return fit < 1 ? 1 : min_u64(fit, count);
}

static void warm_up(struct bench_job *job, struct bench_column *way, uint64_t bytes,
		    struct measure *m)
{
	uint64_t budget_ns = job->opt.time_cap_ns / WARMUP_SHARE;

	while (m->warm_done < m->warm_wanted && m->warm_spent_ns < budget_ns) {
		uint64_t count = 1;

		if (m->warm_done)
			count = fitting(m->warm_wanted - m->warm_done,
					budget_ns - m->warm_spent_ns,
					m->warm_spent_ns / m->warm_done);
		m->warm_spent_ns += batch(job, way, bytes, count, 0, NULL, NULL);
		m->warm_done += count;
	}
}

/*
 * Samples of a batch before the time is considered.  Where a batch is a sample of the row, the row
 * has 20 of one length, or more.
 */
static uint64_t batch_length(const struct bench_job *job, struct measure *m, uint64_t run_ns)
{
	uint64_t batches = m->wanted < FEW ? BATCHES_FEW : BATCHES, count;

	if (m->length)
		return m->length;
	if (place_sums(job))
		batches = STATS_BATCHES_MIN;
	count = (m->wanted + batches - 1) / batches;
	if (place_sums(job))
		count = m->wanted < batches ? 1 : m->wanted / batches;
	if (count * run_ns < BATCH_NS_MIN && (!place_sums(job) || measure_adapts(job)))
		count = BATCH_NS_MIN / run_ns + 1;
	if (place_sums(job)) {
		m->length = count;
		if (measure_adapts(job) && m->wanted < count * batches)
			m->wanted = count * batches;
	}
	return count;
}

/* The length of the next batch; 0: the row is finished, or cut. */
static uint64_t next_batch(const struct bench_job *job, struct measure *m)
{
	uint64_t run_ns = 0, spent = m->spent_ns;

	if (m->cut || m->done >= m->wanted)
		return 0;
	if (m->runs)
		run_ns = m->spent_ns / m->runs;
	else if (m->warm_done)
		run_ns = m->warm_spent_ns / m->warm_done;
	if (m->done && spent + 2 * run_ns > m->limit_ns) {
		m->cut = m->done < m->counted;
		m->wanted = m->done;
		return 0;
	}
	if (!run_ns)
		return 1;
	/* The next batch has an untimed run. */
	spent += run_ns;
	return fitting(min_u64(batch_length(job, m, run_ns), m->wanted - m->done),
		       spent < m->limit_ns ? m->limit_ns - spent : 0, run_ns);
}

static void batch_note(struct bench_batches *b, uint64_t samples, uint64_t span)
{
	if (b->count == b->room) {
		b->room = b->room ? 2 * b->room : 64;
		b->list = bench_must(realloc(b->list, b->room * sizeof(b->list[0])));
	}
	b->list[b->count++] = (struct bench_batch){ samples, span };
}

/* Room for so many samples of the way; written to, so that a timed batch meets no new page. */
static void room_make(struct bench_job *job, int w, uint64_t samples)
{
	uint64_t room = job->got.room[w];

	if (!job->got.samples[w] || samples <= room)
		return;
	samples = samples < 2 * room ? 2 * room : samples;
	job->got.samples[w] = bench_must(realloc(job->got.samples[w],
						 samples * sizeof(job->got.samples[w][0])));
	memset(job->got.samples[w] + room, 0, (samples - room) * sizeof(job->got.samples[w][0]));
	job->got.room[w] = samples;
}

/* Run a timed batch of the way; returns its time on the slowest rank. */
static uint64_t sample(struct bench_job *job, int w, uint64_t bytes, struct measure *m,
		       uint64_t count)
{
	uint64_t *samples, spent_ns, all_ns = 0;

	room_make(job, w, m->done + count);
	samples = job->got.samples[w] ? job->got.samples[w] + m->done : NULL;
	/* The untimed run absorbs the uneven start of ranks after the last agreement. */
	spent_ns = batch(job, &job->where.way[w], bytes, 1, count, samples, &all_ns);
	batch_note(&job->got.batches[w], count, all_ns);
	m->done += count;
	m->runs += count + 1;
	return spent_ns;
}

/* ---- Enough ------------------------------------------------------------------------------ */

bool measure_adapts(const struct bench_job *job)
{
	return job->opt.iterations == OPT_SPECIAL && job->opt.warmup == OPT_SPECIAL &&
	       !job->opt.experiment && !job->def->tune;
}

uint64_t measure_sums(const struct bench_job *job, int w, uint64_t *ns)
{
	const struct bench_batches *b = &job->got.batches[w];

	for (size_t i = 0; i < b->count; i++)
		ns[i] = (uint64_t)llround((double)b->list[i].span_ns / (double)b->list[i].samples);
	return b->count;
}

/* Does a series that this rank has need more samples? */
static bool is_open(const struct bench_job *job, int w, const struct measure *m)
{
	/* Collectives are spread more widely: twice as long would be too long. */
	const double half_width = job->def->layout == BENCH_ALL ? 0.025 : 0.01;
	bool mine = place_sums(job) || job->def->layout == BENCH_ALL ? job->b.rank == 0 :
		place_times(job);
	uint64_t n = m->done, *ns, *work;
	bool open;

	if (!mine)
		return false;
	ns = bench_must(malloc((size_t)n * sizeof(ns[0])));
	work = bench_must(malloc((size_t)n * sizeof(work[0])));
	if (place_sums(job))
		n = measure_sums(job, w, ns);
	else
		memcpy(ns, job->got.samples[w], (size_t)n * sizeof(ns[0]));
	open = !stop_has_converged(ns, (size_t)n, half_width, work);
	free(work);
	free(ns);
	return open;
}

static bool is_limit_given(const struct bench_job *job)
{
	const struct opt_table *t;
	const struct opt *row = options_find(job, "time-cap", &t);

	return t->origin[row - t->rows] != OPT_FROM_DEFAULT;
}

static uint64_t more_ns(const struct bench_job *job)
{
	return is_limit_given(job) ? job->opt.time_cap_ns :
		min_u64(job->opt.time_cap_ns, MORE_NS);
}

/*
 * Time left for samples beyond the counts, in all ways.  Without a limit of the user, such samples
 * and what synchronised starts cost beyond barriers take at most as long as the counts of the job so
 * far by barriers, or MORE_ALL_NS: a run takes at most twice the time of its counts.
 */
static uint64_t budget_ns(const struct bench_job *job)
{
	const struct bench_budget *b = &job->got.budget;
	uint64_t all = b->counted_ns > MORE_ALL_NS ? b->counted_ns : MORE_ALL_NS;

	if (is_limit_given(job))
		return UINT64_MAX;
	return b->added_ns < all ? all - b->added_ns : 0;
}

/* How many samples more: as many again, or those that there is time for. */
static uint64_t more_samples(const struct bench_job *job, const struct measure m[])
{
	uint64_t more = m[0].done, limit_ns = more_ns(job), all_ns = 0;

	for (int w = 0; w < job->where.way_count; w++) {
		uint64_t run_ns = m[w].spent_ns / m[w].runs + 1;

		if (m[w].cut || m[w].spent_ns >= limit_ns || m[w].done >= SAMPLES_MAX)
			return 0;
		more = min_u64(more, (limit_ns - m[w].spent_ns) / run_ns);
		more = min_u64(more, SAMPLES_MAX - m[w].done);
		all_ns += run_ns;
	}
	more = min_u64(more, budget_ns(job) / all_ns);
	return more < m[0].done / MORE_SHARE ? 0 : more;
}

/* Ask for more samples of all ways, unless all have converged or no time is left. */
static bool go_on(struct bench_job *job, struct measure m[])
{
	bool all = true;
	uint64_t more;

	for (int w = 0; w < job->where.way_count; w++) {
		m[w].converged = !m[w].cut && !ranks_max(job, is_open(job, w, &m[w]));
		all = all && m[w].converged;
	}
	more = all ? 0 : more_samples(job, m);
	for (int w = 0; w < job->where.way_count; w++) {
		m[w].wanted = m[w].done + more;
		m[w].limit_ns = more_ns(job);
	}
	return more > 0;
}

/* ---- A size -------------------------------------------------------------------------------- */

/* The ways take turns until each has the samples that it wants. */
static void turns(struct bench_job *job, uint64_t bytes, struct measure m[])
{
	bool busy = true;

	for (int round = 0; busy; round++) {
		busy = false;
		for (int i = 0; i < job->where.way_count; i++) {
			int w = (round + i) % job->where.way_count;
			uint64_t count = next_batch(job, &m[w]);

			if (!count)
				continue;
			m[w].spent_ns += sample(job, w, bytes, &m[w], count);
			busy = true;
		}
	}
}

/* In all ways. */
static uint64_t spent_ns(const struct bench_job *job, const struct measure m[])
{
	uint64_t ns = 0;

	for (int w = 0; w < job->where.way_count; w++)
		ns += m[w].spent_ns + m[w].warm_spent_ns;
	return ns;
}

/* Samples beyond the counts.  Looks at the samples take their time, too. */
static void more_turns(struct bench_job *job, uint64_t bytes, struct measure m[])
{
	uint64_t begin_ns = rg_now_ns(), counts_ns = spent_ns(job, m),
		 extra_ns = min_u64(counts_ns, ranks_max(job, collective_extra_ns(job))),
		 before_ns = job->got.budget.added_ns + extra_ns;
	bool more;

	job->got.budget.counted_ns += counts_ns - extra_ns;
	job->got.budget.added_ns = before_ns;
	do {
		more = go_on(job, m);
		if (more)
			turns(job, bytes, m);
		job->got.budget.added_ns = before_ns + ranks_max(job, rg_now_ns() - begin_ns);
	} while (more);
}

void measure_size(struct bench_job *job, uint64_t bytes, struct measure m[])
{
	struct bench_counts counts = options_counts(job, bytes);

	bench_clock_ns();	/* the first call, outside of batches, measures */
	for (int w = 0; w < job->where.way_count; w++) {
		m[w] = (struct measure){ .wanted = counts.iterations, .counted = counts.iterations,
					 .warm_wanted = counts.warmup,
					 .limit_ns = job->opt.time_cap_ns };
		job->got.batches[w].count = 0;
		warm_up(job, &job->where.way[w], bytes, &m[w]);
	}
	noise_begin(job);
	turns(job, bytes, m);
	if (measure_adapts(job))
		more_turns(job, bytes, m);
	noise_end(job);
}
