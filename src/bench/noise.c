/* noise.c - the machine's share in a row, over all ranks. */
#include "bench/noise.h"
#include "bench/job.h"

#include <string.h>

_Static_assert((int)NOISE_WAYS_MAX == (int)REPORT_WAYS_MAX, "a sum for each way");

/* Has this host a rank of a lower number? */
static bool is_first_on_host(const struct bench_job *job)
{
	for (int i = 0; i < job->b.rank; i++)
		if (strcmp(job->where.place[i].host, job->where.place[job->b.rank].host) == 0)
			return false;
	return true;
}

void noise_open(struct bench_job *job)
{
	struct noise *n = &job->got.noise;

	noise_files_open(&n->files, "/proc");
	n->counts_steal = is_first_on_host(job);
}

void noise_close(struct bench_job *job)
{
	noise_files_close(&job->got.noise.files);
}

/* ---- One rank ------------------------------------------------------------------------ */

static uint64_t steal_now(const struct noise *n)
{
	return n->counts_steal ? noise_steal_ticks(&n->files) : 0;
}

void noise_begin(struct bench_job *job)
{
	struct noise *n = &job->got.noise;

	memset(n->mine, 0, sizeof(n->mine));
	n->steal_begun = steal_now(n);
	n->span_begun = noise_now_ns();
}

void noise_batch_begin(struct bench_job *job)
{
	struct noise *n = &job->got.noise;

	if (!place_runs(job))
		return;
	n->waits_begun = noise_waits(&n->files);
	n->switches_begun = noise_switches();
	n->wall_begun = noise_now_ns();
}

static void count_add(uint64_t *total, uint64_t more)
{
	*total = *total == NOISE_UNKNOWN || more == NOISE_UNKNOWN ? NOISE_UNKNOWN : *total + more;
}

void noise_batch_end(struct bench_job *job, const struct bench_column *way)
{
	struct noise *n = &job->got.noise;
	struct noise_counts *c = &n->mine[way - job->where.way];
	struct noise_waits waits;

	if (!place_runs(job))
		return;
	c->wall_ns += noise_since(n->wall_begun, noise_now_ns());
	count_add(&c->switches, noise_since(n->switches_begun, noise_switches()));
	waits = noise_waits(&n->files);
	count_add(&c->wait_ns, noise_since(n->waits_begun.ns, waits.ns));
	count_add(&c->slices, noise_since(n->waits_begun.slices, waits.slices));
}

/* ---- All ranks ------------------------------------------------------------------------- */

static struct noise_sum sum_of(const struct noise_counts *c, int rank)
{
	return (struct noise_sum){
		.wait_ns = c->wait_ns, .slices = c->slices, .switches = c->switches, .steal_ticks = c->steal_ticks,
		.wait_ns_most = c->wait_ns, .rank = (uint64_t)rank,
		.wall_ns = c->wall_ns, .span_ns = c->span_ns,
	};
}

static uint64_t more_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* An operation of MPI: b[i] = a[i] and b[i] together.  NOISE_UNKNOWN is the largest wait. */
static void sums_join(void *a, void *b, int *count, MPI_Datatype *type)
{
	const struct noise_sum *from = a;
	struct noise_sum *into = b;

	(void)type;
	for (int i = 0; i < *count; i++) {
		if (from[i].wait_ns_most > into[i].wait_ns_most ||
		    (from[i].wait_ns_most == into[i].wait_ns_most && from[i].rank < into[i].rank)) {
			into[i].wait_ns_most = from[i].wait_ns_most;
			into[i].rank = from[i].rank;
		}
		count_add(&into[i].wait_ns, from[i].wait_ns);
		count_add(&into[i].slices, from[i].slices);
		count_add(&into[i].switches, from[i].switches);
		count_add(&into[i].steal_ticks, from[i].steal_ticks);
		into[i].wall_ns = more_of(into[i].wall_ns, from[i].wall_ns);
		into[i].span_ns = more_of(into[i].span_ns, from[i].span_ns);
	}
}

void noise_end(struct bench_job *job)
{
	struct noise *n = &job->got.noise;
	uint64_t steal = noise_since(n->steal_begun, steal_now(n)),
		 span_ns = noise_since(n->span_begun, noise_now_ns());
	struct noise_sum mine[NOISE_WAYS_MAX];
	MPI_Datatype type;
	MPI_Op join;

	for (int w = 0; w < job->where.way_count; w++) {
		n->mine[w].steal_ticks = steal;
		n->mine[w].span_ns = span_ns;
		mine[w] = sum_of(&n->mine[w], job->b.rank);
	}
	MPI_Type_contiguous(sizeof(mine[0]) / sizeof(uint64_t), MPI_UINT64_T, &type);
	MPI_Type_commit(&type);
	MPI_Op_create(sums_join, 1, &join);
	MPI_Reduce(mine, n->all, job->where.way_count, type, join, 0, job->where.comm);
	MPI_Op_free(&join);
	MPI_Type_free(&type);
}

/* ---- The record -------------------------------------------------------------------------- */

static json_t *count_json(uint64_t count)
{
	return count == NOISE_UNKNOWN ? json_null() : json_integer((json_int_t)count);
}

json_t *noise_record(const struct bench_job *job, int w)
{
	const struct noise_sum *s = &job->got.noise.all[w];
	json_t *rank = s->wait_ns == NOISE_UNKNOWN ? json_null() :
		       json_integer((json_int_t)s->rank);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "wait_ns", count_json(s->wait_ns),
			 "wait_ns_most", count_json(s->wait_ns_most), "rank", rank,
			 "slices", count_json(s->slices),
			 "switches", count_json(s->switches), "steal_ticks",
			 count_json(s->steal_ticks), "wall_ns", count_json(s->wall_ns),
			 "span_ns", count_json(s->span_ns));
}
