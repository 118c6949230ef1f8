/* collective.c - the timed loop of BENCH_ALL; see collective.h. */
#include "bench/collective.h"
#include "bench/ranks.h"

#include <stdlib.h>

#include "util/clock.h"

enum {
	CLOCKS_TAG = 4,
	BARRIER_LOOPS = 5, BARRIERS = 50,
	/* A wait as long as this yields its core; a yield may take milliseconds. */
	YIELD_NS = 10000000,
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

/* The time of a barrier, as in a loop that the rest of the machine leaves alone. */
static uint64_t barrier_ns(const struct bench_job *job)
{
	uint64_t least = UINT64_MAX;

	for (int k = 0; k < BARRIER_LOOPS; k++) {
		uint64_t begin = rg_now_ns(), took;

		for (int i = 0; i < BARRIERS; i++)
			MPI_Barrier(job->where.comm);
		took = (rg_now_ns() - begin) / BARRIERS;
		least = took < least ? took : least;
	}
	return least;
}

void collective_synchronise(struct bench_job *job)
{
	struct collective *c = job->got.collective;

	if (c->synchronised)
		return;
	c->link = (struct clocks_link){
		.rank = job->b.rank, .size = job->b.size, .user = job, .now = link_now,
		.relax = link_relax, .send = link_send, .receive = link_receive,
		.most = link_most,
	};
	if (clocks_open(&c->clocks, &c->link, kernel_key()))
		bench_must(NULL);
	roundtime_open(&c->round, &c->clocks, c->clock_ns);
	c->barrier_ns = barrier_ns(job);
	c->synchronised = true;
}

/* ---- Loops: each returns the time of the runs on this rank ---------------------------------- */

/* The barrier is the MPI library's for all ways, so that ranks leave it equally unevenly. */
static uint64_t loop_barrier(struct bench_job *job, uint64_t count, uint64_t *samples)
{
	uint64_t clock = job->got.collective->clock_ns, runs = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin, took;

		ranks_barrier(job);
		begin = rg_now_ns();
		job->def->run(&job->b);
		took = rg_now_ns() - begin;
		samples[i] = took > clock ? took - clock : 0;
		runs += took;
	}
	return runs;
}

static uint64_t loop_osu(struct bench_job *job, uint64_t count, uint64_t *samples)
{
	uint64_t runs = 0;

	ranks_barrier(job);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = rg_now_ns();

		job->def->run(&job->b);
		samples[i] = rg_now_ns() - begin;
		ranks_barrier(job);
		runs += samples[i];
	}
	return runs;
}

/* Rounds until there are `count`, or no hope of more; their number goes to *done. */
static uint64_t loop_sync(struct bench_job *job, struct collective_row *row, uint64_t count,
			  uint64_t *samples, uint64_t *done)
{
	struct roundtime *round = &job->got.collective->round;
	struct roundtime_sample s;
	uint64_t runs = 0;

	roundtime_pause(round);
	for (*done = 0; *done < count && !roundtime_is_vain(round); ) {
		uint64_t begin = roundtime_start(round), end;

		job->def->run(&job->b);
		end = rg_now_ns();
		runs += end - begin;
		if (!roundtime_end(round, begin, end, &s)) {
			row->voided++;
			row->more_runs++;
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
	if (done < count)
		row->runs_ns += loop_barrier(job, count - done, samples + done);
	row->spent_ns += rg_now_ns() - begin;
}

/* ---- State and results -------------------------------------------------------------------- */

struct collective *collective_open(struct bench_job *job)
{
	if (!job->got.collective)
		job->got.collective = bench_must(calloc(1, sizeof(struct collective)));
	return job->got.collective;
}

void collective_reduce(const struct bench_job *job, uint64_t *samples, uint64_t n)
{
	bool mean = job->got.collective->method == BENCH_OSU;
	uint64_t ranks = (uint64_t)job->b.size;

	ranks_reduce(job, samples, (int)n, mean ? MPI_SUM : MPI_MAX);
	for (uint64_t i = 0; !job->b.rank && mean && i < n; i++)
		samples[i] = (samples[i] + ranks / 2) / ranks;
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
	return json_pack("{s:s, s:s, s:s?, s:I, s:f, s:i, s:i, s:o, s:o, s:o, s:o}",
		"method", methods[c->method].name, "asked", methods[job->opt.timing].name,
		"why", *c->why ? c->why : NULL,
		"correction_ns", (json_int_t)(c->method == BENCH_OSU ? 0 : c->clock_ns),
		"cost_s", (double)(c->before_ns + extra) / 1e9,
		"clocks", c->synchronised ? c->clocks.count : 0, "renewed", c->renewed,
		"residual_ns", sync ? json_integer((json_int_t)row->residual_ns) : json_null(),
		"skew_ns", sync ? mean_over(row->skew_ns, row->rounds) : json_null(),
		"local_ns", sync ? mean_over(row->local_ns, row->rounds) : json_null(),
		"voided", sync ? json_integer((json_int_t)row->voided) : json_null());
}

uint64_t collective_extra_ns(const struct bench_job *job)
{
	const struct collective *c = job->got.collective;
	uint64_t extra = 0;

	for (int w = 0; c && w < job->where.way_count; w++) {
		const struct collective_row *row = &c->row[w];
		uint64_t by_barrier = row->runs_ns + (row->rounds + row->voided) * c->barrier_ns;

		if (row->rounds && row->spent_ns > by_barrier)
			extra += row->spent_ns - by_barrier;
	}
	return extra;
}

uint64_t collective_more_runs(const struct bench_job *job, int way)
{
	return job->got.collective ? job->got.collective->row[way].more_runs : 0;
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
