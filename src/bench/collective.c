/* collective.c - the timed loop of BENCH_ALL; see collective.h. */
#include "bench/collective.h"
#include "bench/ranks.h"
#include "bench/roundtime.h"

#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "util/clock.h"

enum {
	CLOCKS_TAG = 4,
	/* The clocks' error is at most the median / 20. */
	ERROR_SHARE = 20,
	/* A wait as long as this yields its core. */
	YIELD_NS = 100000,
	/* After so many rows without a common start no row tries it. */
	VAIN_ROWS = 2,
};

/* A row of a way. */
struct collective_row {
	uint64_t spent_ns, runs_ns;	/* on this rank: all of it; the runs alone */
	uint64_t residual_ns, voided;
	uint64_t rounds;
	double skew_ns, local_ns;	/* sums over rounds */
};

struct collective {
	struct clocks_link link;
	struct clocks clocks;
	struct roundtime round;
	bool synchronised;
	enum bench_timing method;	/* of this row */
	bool vain;			/* ranks did not start together in this row */
	int vain_rows;
	bool told;
	char why[160];			/* barrier in place of sync; "" */
	uint64_t before_ns;		/* cost of a first pass, or of the first synchronisation */
	struct collective_row row[REPORT_WAYS_MAX];
};

static const struct opt_choice methods[] = {
	{ "sync", BENCH_SYNC, "synchronised clocks, a common start, until the last rank's end" },
	{ "barrier", BENCH_BARRIER, "a barrier before each run; the largest of the ranks' times" },
	{ "osu", BENCH_OSU, "as OMB: a barrier after each run; the mean of the ranks' times" },
	{ NULL },
};

const struct opt_choice *collective_methods(void)
{
	return methods;
}

/* ---- Clocks by messages of MPI ----------------------------------------------------------- */

static uint64_t link_now(void *user)
{
	(void)user;
	return rg_now_ns();
}

static void link_relax(void *user, uint64_t now_ns, uint64_t due_ns)
{
	(void)user;
	if (due_ns - now_ns > YIELD_NS)
		rg_yield();
	else
		rg_relax(due_ns);
}

static void link_send(void *user, int to, const uint64_t *value, int count)
{
	const struct bench_job *job = user;

	MPI_Send(value, count, MPI_UINT64_T, to, CLOCKS_TAG, job->where.comm);
}

static void link_receive(void *user, int from, uint64_t *value, int count)
{
	const struct bench_job *job = user;

	MPI_Recv(value, count, MPI_UINT64_T, from, CLOCKS_TAG, job->where.comm, MPI_STATUS_IGNORE);
}

static void link_most(void *user, uint64_t *value, int count)
{
	const struct bench_job *job = user;

	MPI_Allreduce(MPI_IN_PLACE, value, count, MPI_UINT64_T, MPI_MAX, job->where.comm);
}

static void link_spread(void *user, uint64_t *value, int count)
{
	const struct bench_job *job = user;

	MPI_Bcast(value, count, MPI_UINT64_T, 0, job->where.comm);
}

/* This kernel, as a number; 0: unknown.  Hosts and containers may have equal names. */
static uint64_t kernel_key(void)
{
	char id[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f && !fgets(id, sizeof(id), f))
		*id = '\0';
	if (f)
		fclose(f);
	return *id ? opt_digest(id) : 0;
}

static void synchronise(struct bench_job *job, struct collective *c)
{
	uint64_t begin = rg_now_ns();

	c->link = (struct clocks_link){
		.rank = job->b.rank, .size = job->b.size, .user = job, .now = link_now,
		.relax = link_relax, .send = link_send, .receive = link_receive,
		.most = link_most, .spread = link_spread,
	};
	if (clocks_open(&c->clocks, &c->link, kernel_key()))
		bench_must(NULL);
	roundtime_open(&c->round, &c->clocks, bench_clock_ns());
	c->synchronised = true;
	c->before_ns += rg_now_ns() - begin;
}

/* ---- Loops: each returns the time of the runs on this rank ---------------------------------- */

static uint64_t less_clock(uint64_t took)
{
	uint64_t clock = bench_clock_ns();

	return took > clock ? took - clock : 0;
}

/* The barrier is the MPI library's for all ways, so that ranks leave it equally unevenly. */
static uint64_t loop_barrier(struct bench_job *job, uint64_t count, uint64_t *samples)
{
	uint64_t runs = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin;

		MPI_Barrier(job->where.comm);
		begin = rg_now_ns();
		job->def->run(&job->b);
		samples[i] = less_clock(rg_now_ns() - begin);
		runs += samples[i];
	}
	return runs;
}

static uint64_t loop_osu(struct bench_job *job, uint64_t count, uint64_t *samples)
{
	uint64_t runs = 0;

	MPI_Barrier(job->where.comm);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = rg_now_ns();

		job->def->run(&job->b);
		samples[i] = rg_now_ns() - begin;
		MPI_Barrier(job->where.comm);
		runs += samples[i];
	}
	return runs;
}

/* Rounds until there are `count`, or no hope of more; their number is at *done. */
static uint64_t loop_sync(struct bench_job *job, struct collective_row *row, uint64_t count,
			  uint64_t *samples, uint64_t *done)
{
	struct roundtime *round = &job->got.collective->round;
	struct roundtime_sample s;
	uint64_t runs = 0;

	for (*done = 0; *done < count && !roundtime_is_vain(round); ) {
		uint64_t begin = roundtime_start(round), end;

		job->def->run(&job->b);
		end = rg_now_ns();
		runs += end - begin;
		if (!roundtime_end(round, begin, end, &s)) {
			row->voided++;
			continue;
		}
		samples[(*done)++] = s.duration_ns;
		row->rounds++;
		row->skew_ns += (double)s.skew_ns;
		row->local_ns += (double)s.local_ns;
	}
	return runs;
}

void collective_batch(struct bench_job *job, const struct bench_column *way, uint64_t count,
		      uint64_t *samples)
{
	struct collective *c = job->got.collective;
	struct collective_row *row = &c->row[way - job->where.way];
	uint64_t begin = rg_now_ns(), done = 0, error;

	if (c->method == BENCH_OSU) {
		row->runs_ns += loop_osu(job, count, samples);
		done = count;
	} else if (c->method == BENCH_SYNC && !c->vain) {
		row->runs_ns += loop_sync(job, row, count, samples, &done);
		c->vain = done < count;
		error = clocks_check(&c->clocks);
		row->residual_ns = error > row->residual_ns ? error : row->residual_ns;
	}
	row->runs_ns += loop_barrier(job, count - done, samples + done);
	row->spent_ns += rg_now_ns() - begin;
}

/* ---- The method of a row --------------------------------------------------------------------- */

static struct collective *collective_of(struct bench_job *job)
{
	if (!job->got.collective)
		job->got.collective = bench_must(calloc(1, sizeof(struct collective)));
	return job->got.collective;
}

/* The median of a sync row, which all ranks have. */
static double median_ns(const uint64_t *samples, uint64_t n)
{
	uint64_t *sorted = bench_must(malloc((n + 1) * sizeof(sorted[0])));
	double median;

	memcpy(sorted, samples, n * sizeof(sorted[0]));
	stats_sort(sorted, n);
	median = stats_median(sorted, n);
	free(sorted);
	return median;
}

/* Why does sync not suffice for this row?  Sets c->why; false: it does. */
static bool is_doubtful(struct bench_job *job, struct collective *c, const struct measure m[])
{
	if (c->vain) {
		snprintf(c->why, sizeof(c->why), "ranks do not start together: %llu rounds void, "
			 "%llu not", (unsigned long long)c->round.voided,
			 (unsigned long long)c->round.rounds);
		c->vain_rows++;
		return true;
	}
	for (int w = 0; w < job->where.way_count; w++) {
		double median = median_ns(job->got.samples[w], m[w].done);
		double error = (double)c->row[w].residual_ns;

		if (error * ERROR_SHARE <= median)
			continue;
		snprintf(c->why, sizeof(c->why), "clocks are off by up to %.3f us, above 1/%d of "
			 "the median, %.3f us", error / 1e3, ERROR_SHARE, median / 1e3);
		return true;
	}
	return false;
}

static void tell_once(struct bench_job *job, struct collective *c, uint64_t bytes)
{
	if (!c->told && job->got.report)
		report_note(job->got.report, "timing: barrier at %llu bytes, and where a row's "
			    "record says so: %s", (unsigned long long)bytes, c->why);
	c->told = true;
}

static void pass(struct bench_job *job, struct collective *c, uint64_t bytes, struct measure m[])
{
	memset(c->row, 0, sizeof(c->row));
	c->vain = false;
	if (c->synchronised)
		roundtime_begin(&c->round);
	measure_size(job, bytes, m);
}

void collective_measure(struct bench_job *job, uint64_t bytes, struct measure m[])
{
	struct collective *c;
	uint64_t begin;

	if (job->def->layout != BENCH_ALL) {
		measure_size(job, bytes, m);
		return;
	}
	c = collective_of(job);
	c->method = job->opt.timing;
	c->before_ns = 0;
	bench_clock_ns();	/* the first call measures */
	if (c->method == BENCH_SYNC && job->where.oversubscribed) {
		c->method = BENCH_BARRIER;
		snprintf(c->why, sizeof(c->why), "oversubscribed");
	} else if (c->method == BENCH_SYNC && c->vain_rows >= VAIN_ROWS) {
		c->method = BENCH_BARRIER;	/* c->why is the last row's */
	} else {
		*c->why = '\0';
	}
	if (c->method == BENCH_SYNC && !c->synchronised)
		synchronise(job, c);
	if (c->method == BENCH_SYNC)
		clocks_check(&c->clocks);
	begin = rg_now_ns();
	pass(job, c, bytes, m);
	if (c->method != BENCH_SYNC || !is_doubtful(job, c, m))
		return;
	tell_once(job, c, bytes);
	c->before_ns += rg_now_ns() - begin;
	c->method = BENCH_BARRIER;
	pass(job, c, bytes, m);
}

/* ---- Results ------------------------------------------------------------------------------- */

uint64_t *collective_gather(const struct bench_job *job, const uint64_t *mine, uint64_t n)
{
	bool mean = job->got.collective->method == BENCH_OSU;
	uint64_t *all = NULL, ranks = (uint64_t)job->b.size;

	if (job->b.rank == 0)
		all = bench_must(malloc((n + 1) * sizeof(all[0])));
	MPI_Reduce(mine, all, (int)n, MPI_UINT64_T, mean ? MPI_SUM : MPI_MAX, 0, job->where.comm);
	for (uint64_t i = 0; all && mean && i < n; i++)
		all[i] = (all[i] + ranks / 2) / ranks;
	return all;
}

static json_t *mean_over(double sum, uint64_t n)
{
	return n ? json_real(sum / (double)n) : json_null();
}

json_t *collective_record(const struct bench_job *job, int way)
{
	const struct collective *c = job->got.collective;
	const struct collective_row *row;
	bool sync;
	uint64_t extra;

	if (!c)
		return json_pack("{s:s}", "method", "local");
	sync = c->method == BENCH_SYNC;
	row = &c->row[way];
	extra = row->spent_ns > row->runs_ns ? row->spent_ns - row->runs_ns : 0;
	return json_pack("{s:s, s:s, s:s?, s:I, s:f, s:i, s:o, s:o, s:o, s:o}",
		"method", methods[c->method].name, "asked", methods[job->opt.timing].name,
		"why", *c->why ? c->why : NULL,
		"correction_ns", (json_int_t)(c->method == BENCH_OSU ? 0 : bench_clock_ns()),
		"cost_s", (double)(c->before_ns + extra) / 1e9,
		"clocks", c->synchronised ? c->clocks.count : 0,
		"residual_ns", sync ? json_integer((json_int_t)row->residual_ns) : json_null(),
		"skew_ns", sync ? mean_over(row->skew_ns, row->rounds) : json_null(),
		"local_ns", sync ? mean_over(row->local_ns, row->rounds) : json_null(),
		"voided", sync ? json_integer((json_int_t)row->voided) : json_null());
}

const char *collective_text(const struct bench_job *job)
{
	if (job->def->layout != BENCH_ALL)
		return NULL;
	if (job->opt.timing == BENCH_SYNC && job->where.oversubscribed)
		return "barrier, not sync (oversubscribed): after a barrier, the largest of the "
		       "ranks' times";
	return methods[job->opt.timing].help;
}

void collective_close(struct bench_job *job)
{
	if (job->got.collective && job->got.collective->synchronised)
		clocks_close(&job->got.collective->clocks);
	free(job->got.collective);
	job->got.collective = NULL;
}
