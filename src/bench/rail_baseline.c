/*
 * rail_baseline.c - each rail alone, in turns with the ways that use all rails: the ratio of the
 * aggregate to the sum of the rails, and the bound that applies.
 *
 * Measured at the largest size, after the rows.  Rails and ways take turns as ways do in a
 * row, so the ratio is of one and the same state of the machine.  All values are medians.
 */
#include "bench/rail_baseline.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "bench/ranks.h"
#include "bench/rows.h"
#include "bench/ways.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bound.h"
#include "util/clock.h"

/* ---- What is compared ------------------------------------------------------------ */

/* Does side `side` of a pair send data? */
static bool sends(const struct bench_job *job, int side)
{
	struct bench b = job->b;

	b.side = side;
	b.window = 1;
	return job->def->sblocks && job->def->sblocks(&b) > 0;
}

static bool both_ways(const struct bench_job *job)
{
	return sends(job, 0) && sends(job, 1);
}

static bool shares_node(const struct bench_job *job)
{
	const struct bench_place *place = job->where.place;

	for (int p = 0; p < job->where.pair_count; p++) {
		const int *rank = job->where.pair[p].rank;

		if (place[rank[0]].node == place[rank[1]].node)
			return true;
	}
	return false;
}

/* The number of nodes that send data; as many receive. */
static int nodes_sending(const struct bench_job *job)
{
	int count = 0;

	for (int n = 0; n < job->where.node_count; n++) {
		bool found = false;

		for (int p = 0; p < job->where.pair_count; p++)
			found = found || job->where.place[job->where.pair[p].rank[0]].node == n;
		count += found;
	}
	return count;
}

/* The reason for no comparison ("": without a line); NULL: compare. */
static const char *why_not(const struct bench_job *job)
{
	bool all = false;

	if (!job->opt.ledger || job->opt.axis || job->def->layout != BENCH_PAIRS ||
	    job->def->metric != REPORT_BANDWIDTH || job->where.common_rails < 2)
		return "";
	for (int w = 0; w < job->where.way_count; w++)
		all = all || job->where.way[w].uses_all;
	if (!all)
		return "";
	if (options_last_size(job) <= ways_eager_limit(job))
		return "the largest size goes whole on one rail (--eager)";
	if (shares_node(job))
		return "pairs share a node";
	if (!way_is_possible(RAILMPI_SINGLE_RAIL + 1))
		return "each peer has one of the rails";
	return NULL;
}

/* ---- Measuring -------------------------------------------------------------------- */

/* Set up a separate job: the ways that use all rails, then each rail alone. */
static int side_open(const struct bench_job *job, struct bench_job *side)
{
	uint64_t iterations = options_counts(job, options_last_size(job)).iterations;
	int rc = 0;

	*side = *job;
	side->opt.ledger = false;
	side->opt.iterations = iterations;	/* given: the rule of stats/stop.h is off */
	side->got.report = NULL;
	side->got.samples_file = NULL;
	side->where.way_count = 0;
	memset(side->got.samples, 0, sizeof(side->got.samples));
	memset(side->got.batches, 0, sizeof(side->got.batches));
	for (int w = 0; w < job->where.way_count; w++)
		if (job->where.way[w].uses_all)
			side->where.way[side->where.way_count++] = job->where.way[w];
	for (int r = 0; r < job->where.common_rails && !rc; r++)
		rc = way_open(side, &side->where.way[side->where.way_count],
			      RAILMPI_SINGLE_RAIL + r);
	for (int w = 0; w < side->where.way_count && place_times(job); w++) {
		side->got.samples[w] = malloc(iterations * sizeof(uint64_t));
		side->got.room[w] = iterations;
		if (!side->got.samples[w])
			MPI_Abort(MPI_COMM_WORLD, RG_EXIT_FAULT);
	}
	return rc;
}

static void side_close(struct bench_job *side)
{
	for (int w = 0; w < side->where.way_count; w++) {
		if (!side->where.way[w].uses_all)
			MPI_Comm_free(&side->where.way[w].comm);
		free(side->got.samples[w]);
		free(side->got.batches[w].list);
	}
}

/* ---- Memory ------------------------------------------------------------------------ */

/*
 * Bytes per second that the sending ranks copy at best, all at once.  On a software fabric the
 * sender copies each byte at least once.  0: not known.
 */
static double memory_measure(const struct bench_job *job, size_t bytes)
{
	enum { ROUNDS = 9, ROUND_BYTES = 64 << 20 };
	bool copies = job->b.pair >= 0 && sends(job, job->b.side);
	unsigned char *from = copies ? malloc(bytes) : NULL, *to = copies ? malloc(bytes) : NULL;
	uint64_t best_ns = UINT64_MAX, senders = 0, mine = copies;
	size_t times = bytes < ROUND_BYTES ? ROUND_BYTES / bytes : 1;

	if (ranks_max(job, copies && (!from || !to)))
		goto out;
	if (copies)
		memset(from, 1, bytes);
	MPI_Allreduce(&mine, &senders, 1, MPI_UINT64_T, MPI_SUM, job->where.comm);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin = rg_now_ns(), ns;

		for (size_t i = 0; copies && i < times; i++) {
			memcpy(to, from, bytes);
			/* Keep the compiler from dropping the copy, whose result is unused. */
			__asm__ volatile("" : : "r"(to), "r"(from) : "memory");
		}
		ns = ranks_max(job, rg_now_ns() - begin);
		best_ns = ns < best_ns ? ns : best_ns;
	}
out:
	free(from);
	free(to);
	return senders ? (double)(senders * times * bytes) * 1e9 / (double)best_ns : 0;
}

/* ---- Bounds ------------------------------------------------------------------------ */

enum { LINK, SHARED, MEMORY, BOUNDS };

/* Bounds in MB/s, for all pairs together; NaN: not known. */
struct bounds {
	double value[BOUNDS];
	char name[BOUNDS][96];
	int least;			/* index, or -1 */
};

static const char *const bound_kinds[BOUNDS] = { "link", "shared", "memory" };

static void bounds_nominal(const struct bench_job *job, struct bounds *b)
{
	struct rail_share share[RAIL_SHARES_MAX];
	struct bound_share limit[RAIL_SHARES_MAX];
	double rate[RAILMPI_RAILS_MAX], nodes = nodes_sending(job);
	int shares = railmpi_shares(share);
	struct bound found;

	for (int r = 0; r < job->where.fabric.rail_count; r++)
		rate[r] = (double)job->where.fabric.rail[r].rate_bytes_per_s;
	for (int s = 0; s < shares; s++)
		limit[s] = (struct bound_share){ share[s].rails, (double)share[s].out,
						 (double)share[s].in, share[s].half };
	bound_find(rate, job->where.fabric.rail_count, limit, shares, both_ways(job), &found);
	if (isfinite(found.link)) {
		b->value[LINK] = nodes * found.link / 1e6;
		snprintf(b->name[LINK], sizeof(b->name[0]), "links, the sum of all ports");
	}
	if (found.share >= 0 && isfinite(found.shared)) {
		b->value[SHARED] = nodes * found.shared / 1e6;
		snprintf(b->name[SHARED], sizeof(b->name[0]), "%s%s, nominal",
			 share[found.share].name, found.sets > 1 ? " and the like" : "");
	}
}

static void bounds_find(const struct bench_job *job, uint64_t bytes, struct bounds *b)
{
	double memory = 0;

	*b = (struct bounds){ .value = { NAN, NAN, NAN }, .least = -1 };
	bounds_nominal(job, b);
	/* On the software HCA memory is the wire, unless it has a wire. */
	if (job->where.fabric.software_hca && !job->where.fabric.net)
		memory = memory_measure(job, (size_t)bytes);
	if (memory > 0) {
		b->value[MEMORY] = memory / 1e6;
		snprintf(b->name[MEMORY], sizeof(b->name[0]), "memory, as copied at best by %s",
			 job->where.pair_count > 1 || both_ways(job) ? "all senders at once" :
			 "the sender alone");
	}
	for (int i = 0; i < BOUNDS; i++)
		if (isfinite(b->value[i]) && (b->least < 0 || b->value[i] < b->value[b->least]))
			b->least = i;
}

static json_t *bounds_json(const struct bounds *b)
{
	json_t *list = json_array();

	for (int i = 0; i < BOUNDS; i++)
		if (isfinite(b->value[i]))
			json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:b, s:b}", "kind",
				bound_kinds[i], "name", b->name[i], "mb_per_s", b->value[i],
				"measured", i == MEMORY, "applies", i == b->least));
	return list;
}

/* ---- Words ------------------------------------------------------------------------- */

/* Print, at rank 0, a line about the rails and a line for each way. */
static json_t *tell(const struct bench_job *job, const struct bench_job *side, uint64_t bytes,
		    const double median[], const struct bounds *b)
{
	json_t *baseline = json_array(), *ways = json_array();
	char text[512] = "", bound[160] = "not known";
	double sum = 0;

	for (int w = 0; w < side->where.way_count; w++) {
		const char *rail = way_rail(side, &side->where.way[w]);
		size_t used = strlen(text);

		if (!rail)
			continue;
		sum += median[w];
		snprintf(text + used, sizeof(text) - used, "%s%s %.2f", used ? ", " : "", rail,
			 median[w]);
		json_array_append_new(baseline, json_pack("{s:s, s:f}", "rail", rail, "median",
							  median[w]));
	}
	report_note(job->got.report, "each rail alone, %" PRIu64 " bytes, measured after the rows, "
		    "in turns with the ways; medians: %s MB/s", bytes, text);
	if (b->least >= 0)
		snprintf(bound, sizeof(bound), "%.2f MB/s (%s)", b->value[b->least],
			 b->name[b->least]);
	for (int w = 0; w < side->where.way_count; w++) {
		if (!side->where.way[w].uses_all)
			continue;
		report_note(job->got.report, "%s: aggregate %.2f MB/s = %.2f of the sum of single "
			    "rails (%.2f MB/s); bound: %s", side->where.way[w].name, median[w],
			    median[w] / sum, sum, bound);
		json_array_append_new(ways, json_pack("{s:s, s:f, s:f}", "way",
			side->where.way[w].name, "median", median[w], "of_sum", median[w] / sum));
	}
	return json_pack("{s:I, s:o, s:f, s:o, s:o}", "bytes", (json_int_t)bytes, "alone", baseline,
			 "sum", sum, "ways", ways, "bounds", bounds_json(b));
}

json_t *rail_baseline_compare(struct bench_job *job)
{
	static struct bench_job side;	/* too large for a stack */
	struct measure m[REPORT_WAYS_MAX];
	double median[REPORT_WAYS_MAX];
	uint64_t bytes = options_last_size(job);
	const char *why = why_not(job);
	struct bounds bounds;
	json_t *said = NULL;

	if (why) {
		if (*why && job->got.report)
			report_note(job->got.report, "no comparison with each rail alone: %s", why);
		return NULL;
	}
	if (side_open(job, &side)) {
		side_close(&side);
		return NULL;
	}
	measure_size(&side, bytes, m);
	for (int w = 0; w < side.where.way_count; w++)
		median[w] = rows_median(&side, w, bytes, &m[w]);
	bounds_find(job, bytes, &bounds);
	if (job->got.report)
		said = tell(job, &side, bytes, median, &bounds);
	side_close(&side);
	return said;
}
