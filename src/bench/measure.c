/*
 * measure.c - the samples of one size.
 *
 * Ways take turns, batch by batch, so that drift of the machine affects all ways alike.  All
 * ranks compute the length of a batch from the same numbers, which are agreed on outside the
 * timed part.
 */
#include "bench/measure.h"
#include "bench/buffers.h"
#include "bench/carrier.h"
#include "bench/collective.h"
#include "bench/ledger.h"
#include "bench/options.h"
#include "bench/ranks.h"
#include "bench/ways.h"

#include <stdlib.h>

#include "util/clock.h"

enum {
	BATCHES = 10, BATCHES_FEW = 4, FEW = 50,
	/* a shorter batch shows the ranks' uneven start */
	BATCH_NS_MIN = 1000000,
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

/* Run a batch; returns its time on the slowest rank. */
static uint64_t batch(struct bench_job *job, struct bench_column *way, uint64_t bytes,
		      uint64_t untimed, uint64_t timed, uint64_t *samples)
{
	uint64_t begin;

	noise_batch_begin(job);
	begin = rg_now_ns();
	way_switch(way);
	if (place_runs(job)) {
		buffers_set(job, way, bytes, false);
		carrier_begin(job, untimed + timed);
		batch_untimed(job, untimed);
		if (timed && job->def->layout == BENCH_ALL)
			collective_batch(job, way, timed, samples);
		else if (timed && samples)
			batch_timed(job, timed, samples);
		else
			batch_untimed(job, timed);
	}
	begin = rg_now_ns() - begin;
	if (timed)
		noise_batch_end(job, way);
	if (place_runs(job))
		carrier_end(job, way);
	ledger_take(job, way);
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
		m->warm_spent_ns += batch(job, way, bytes, count, 0, NULL);
		m->warm_done += count;
	}
}

/* The length of the next batch; 0: the row is finished, or cut. */
static uint64_t next_batch(const struct bench_job *job, struct measure *m)
{
	uint64_t batches = m->wanted < FEW ? BATCHES_FEW : BATCHES, run_ns = 0, spent, count;

	if (m->cut || m->done == m->wanted)
		return 0;
	spent = m->spent_ns;
	if (m->runs)
		run_ns = m->spent_ns / m->runs;
	else if (m->warm_done)
		run_ns = m->warm_spent_ns / m->warm_done;
	if (m->done && spent + 2 * run_ns > job->opt.time_cap_ns) {
		m->cut = true;
		return 0;
	}
	if (!run_ns)
		return 1;
	count = (m->wanted + batches - 1) / batches;
	if (count * run_ns < BATCH_NS_MIN)
		count = BATCH_NS_MIN / run_ns + 1;
	count = min_u64(count, m->wanted - m->done);
	/* The next batch has an untimed run. */
	spent += run_ns;
	return fitting(count, spent < job->opt.time_cap_ns ? job->opt.time_cap_ns - spent : 0,
		       run_ns);
}

static void batch_note(struct bench_batches *b, uint64_t samples, uint64_t run_ns)
{
	if (b->count == b->room) {
		b->room = b->room ? 2 * b->room : 64;
		b->list = realloc(b->list, b->room * sizeof(b->list[0]));
		if (!b->list)
			MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
	}
	b->list[b->count++] = (struct bench_batch){ samples, run_ns };
}

/* Run a timed batch of the way; returns its time on the slowest rank. */
static uint64_t sample(struct bench_job *job, int w, uint64_t bytes, struct measure *m,
		       uint64_t count)
{
	uint64_t *samples = job->got.samples[w] ? job->got.samples[w] + m->done : NULL;
	/* The untimed run absorbs the uneven start of ranks after the last agreement. */
	uint64_t spent_ns = batch(job, &job->where.way[w], bytes, 1, count, samples);

	batch_note(&job->got.batches[w], count, spent_ns / (count + 1));
	m->done += count;
	m->runs += count + 1;
	return spent_ns;
}

void measure_size(struct bench_job *job, uint64_t bytes, struct measure m[])
{
	struct bench_counts counts = options_counts(job, bytes);
	bool busy = true;

	bench_clock_ns();	/* the first call, outside of batches, measures */
	for (int w = 0; w < job->where.way_count; w++) {
		m[w] = (struct measure){ .wanted = counts.iterations,
					 .warm_wanted = counts.warmup };
		job->got.batches[w].count = 0;
		warm_up(job, &job->where.way[w], bytes, &m[w]);
	}
	noise_begin(job);
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
	noise_end(job);
}
