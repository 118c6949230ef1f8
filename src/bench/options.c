/* options.c - options of all programs: one row each, and their parsing. */
#include "bench/options.h"
#include "bench/collective.h"
#include "bench/preset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/units.h"

enum { WINDOW_MAX = 65536, ITERATIONS_MAX = 10000000 };

static const char *const sizes_pairs = "1:4M", *const sizes_all = "1:1M";

static int check_percentiles(const char *text, char *why, size_t why_size);

#define AT(member) .offset = offsetof(struct bench_options, member)

static const struct opt_choice buffers[] = {
	{ "malloc", BENCH_MALLOC, "malloc, as in most programs" },
	{ "arena", BENCH_ARENA, "MPI_Alloc_mem: memory that the adapters know" },
	{ "near", BENCH_NEAR, "the NUMA node of the rank" },
	{ "far", BENCH_FAR, "the NUMA node farthest from the rank" },
	{ NULL },
};

static const struct opt_choice layouts[] = {
	{ "standard", REPORT_LAYOUT_STANDARD, "mean, median and its interval; medians of several ways" },
	{ "osu", REPORT_LAYOUT_OSU, "size and mean, as the OSU benchmarks print" },
	{ NULL },
};

/* Rows that options_parse completes from bench_def are marked. */
static struct opt rows[] = {
	/* The first row is that of programs that are timed as a whole; all others have the rest. */
	{ .name = "runs", .type = OPT_COUNT, AT(runs), .arg = "N", .standard = "1", .min = 1,
	  .max = 1000,
	  .help = "turns of each way; the turn of median time is printed in full" },
	{ .name = "over", .type = OPT_CHOICES, AT(over), .arg = "LIST", .settings = true,	/* choices */
	  .help = "ways to compare, each with options of its own if wanted, such as "
		  "single,single,rendezvous=read,single,coll=alltoall=linear; default: stripe with two or more rails, else single" },
	{ .name = "sizes", .letter = 'm', .type = OPT_SIZES, AT(sizes), .arg = "MIN:MAX", /* all */
	  .max = UINT64_C(1) << 30,
	  .help = "message sizes, each twice the previous" },
	{ .name = "iterations", .letter = 'i', .type = OPT_COUNT, AT(iterations), .arg = "N",
	  .standard = "auto", .special = "auto", .min = 1, .max = ITERATIONS_MAX,	/* help */
	},
	{ .name = "warmup", .letter = 'x', .type = OPT_COUNT, AT(warmup), .arg = "N",
	  .standard = "auto", .special = "auto", .max = ITERATIONS_MAX,		/* help */
	},
	{ .name = "window", .letter = 'W', .type = OPT_COUNT, AT(window), .arg = "N",
	  .standard = "64", .min = 1, .max = WINDOW_MAX,
	  .help = "messages in flight at once" },
	{ .name = "buffers", .type = OPT_CHOICE, AT(buffers), .arg = "KIND", .standard = "malloc",
	  .choices = buffers, .help = "where the buffers of messages come from" },
	{ .name = "timing", .type = OPT_CHOICE, AT(timing), .arg = "METHOD",	/* choices */
	  .standard = "sync",
	  .help = "times of a collective; sync: where nodes have a core for each rank, else "
		  "barrier" },
	{ .name = "pairs", .letter = 'p', .type = OPT_COUNT, AT(pairs), .arg = "N",
	  .standard = "auto", .special = "auto", .min = 1, .max = 1 << 20,
	  .help = "pairs of ranks that send at once; auto: all" },
	{ .name = "time-cap", .type = OPT_TIME, AT(time_cap_ns), .arg = "SECONDS",
	  .standard = "10s", .min = 1000000, .max = UINT64_C(86400000000000), .bare = "s",
	  .help = "limit for a row, which is cut and marked; not given: 1 s for samples beyond the "
		  "counts" },
	{ .name = "validate", .letter = 'c', .type = OPT_FLAG, AT(validate),
	  .help = "check every received byte, in separate runs before the timed runs" },
	{ .name = "full", .letter = 'f', .type = OPT_FLAG, AT(full),
	  .help = "also print all other statistics, such as P99, deviation and drift" },
	{ .name = "layout", .type = OPT_CHOICE, AT(layout), .arg = "LAYOUT", .standard = "standard",
	  .choices = layouts, .help = "columns of the table" },
	{ .name = "percentiles", .letter = 'z', .type = OPT_TEXT, AT(percentiles), .arg = "LIST",
	  .check = check_percentiles,
	  .help = "also print these percentiles, such as 50,90,99.9" },
	{ .name = "json", .type = OPT_TEXT, AT(json), .arg = "FILE", .check = opt_check_path,
	  .help = "write the result as JSON Lines, one record per size and way" },
	{ .name = "samples", .type = OPT_TEXT, AT(samples), .arg = "FILE", .check = opt_check_path,
	  .help = "write each sample as CSV" },
	{ .name = "launch", .type = OPT_COUNT, AT(launch), .arg = "N", .standard = "0",
	  .max = 1000000, .help = "number of this launch of several, for records and samples" },
	{ .name = "overwrite", .type = OPT_FLAG, AT(overwrite),
	  .help = "let --json and --samples replace files of other origin, too" },
	{ .name = "continue", .type = OPT_FLAG, AT(continues),
	  .help = "if the --json file is that of a run with these options that was ended, keep its "
		  "sizes and measure the others" },
	{ .name = "redact", .type = OPT_FLAG, AT(redact),
	  .help = "write host1, user1 and /path1 for names of hosts and users and for paths" },
	{ .name = "ledger", .type = OPT_FLAG, AT(ledger),
	  .help = "print the data and port counters of each rail; for bandwidths also its rate "
		  "alone" },
	{ .name = "experiment", .type = OPT_TEXT, AT(experiment_id), .arg = "ID",
	  .help = "use a paper's values for options that are not given; railgauge reproduce PAPER "
		  "--list lists them" },
	{ .name = NULL },
};

/* Programs that are timed as a whole have no sizes, windows and samples. */
static const char *const app_rows[] = {
	"runs", "over", "json", "launch", "overwrite", "redact", "ledger", "experiment", NULL,
};
/* Calibration has a way of its own and no rows of samples. */
static const char *const tune_rows[] = {
	"over", "sizes", "iterations", "warmup", "buffers", "time-cap", "timing", NULL,
};
/* Programs whose samples are not of all ranks together have all rows but --timing. */
static const char *apart_rows[OPT_ROWS_MAX];

/* A carrier's part of the transport's ways. */
static struct opt_choice carried_ways[RAILMPI_WAYS_MAX + 1];

static unsigned char origin[3][OPT_ROWS_MAX];

/* ---- Percentiles ---------------------------------------------------------------- */

static const char percentiles_accepted[] =
	"(accepted: up to 8 numbers above 0 and below 100, such as 50,90,99.9)";

/* Parse a list of percentiles into out, if it is not NULL; their number, or -1. */
static int percentiles_parse(const char *text, double *out)
{
	int count = 0;

	for (;; text++) {
		char *end;
		double p = strtod(text, &end);

		if (strspn(text, "0123456789.") != (size_t)(end - text) || end == text ||
		    !(p > 0 && p < 100) || count == REPORT_PERCENTILES_MAX)
			return -1;
		if (out)
			out[count] = p;
		count++;
		text = end;
		if (!*text)
			return count;
		if (*text != ',')
			return -1;
	}
}

static int check_percentiles(const char *text, char *why, size_t why_size)
{
	if (percentiles_parse(text, NULL) > 0)
		return 0;
	snprintf(why, why_size, "makes no sense %s", percentiles_accepted);
	return -EINVAL;
}

/* ---- Counts and sizes ---------------------------------------------------------------- */

/* Defaults are those of well-known suites, so that results can be compared. */
static struct bench_counts counts_default(const struct bench_def *def, bool small)
{
	const struct bench_counts *given = small ? &def->small : &def->large;

	if (given->iterations)
		return *given;
	if (def->metric == REPORT_LATENCY)
		return small ? (struct bench_counts){ 10000, 200 } :
			       (struct bench_counts){ 1000, 10 };
	return small ? (struct bench_counts){ 100, 10 } : (struct bench_counts){ 20, 2 };
}

struct bench_counts options_counts(const struct bench_job *job, uint64_t bytes)
{
	struct bench_counts c = counts_default(job->def, bytes <= BENCH_SMALL_BYTES);

	if (job->opt.iterations != OPT_SPECIAL)
		c.iterations = job->opt.iterations;
	if (job->opt.warmup != OPT_SPECIAL)
		c.warmup = job->opt.warmup;
	return c;
}

uint64_t options_next_size(uint64_t bytes)
{
	return bytes ? bytes * 2 : 1;
}

uint64_t options_last_size(const struct bench_job *job)
{
	uint64_t last = job->opt.sizes.min;

	while (options_next_size(last) <= job->opt.sizes.max)
		last = options_next_size(last);
	return last;
}

/* ---- Tables ------------------------------------------------------------------------------ */

static struct opt *row_named(const char *name)
{
	struct opt *row = rows;

	while (strcmp(row->name, name))
		row++;
	return row;
}

/* The ways that --over takes; "single" covers each "single:N". */
static const struct opt_choice *ways_of(const struct bench_carrier *carrier)
{
	int n = 0;

	for (const struct opt_choice *way = carrier->ways; way->name; way++)
		for (const struct opt_choice *c = railmpi_ways(); c->name; c++) {
			bool one = c->value >= RAILMPI_SINGLE_RAIL;

			if (strcmp(way->name, one ? "single" : c->name))
				continue;
			carried_ways[n] = *c;
			carried_ways[n++].help = way->help;
		}
	return carried_ways;
}

static void carrier_complete(const struct bench_carrier *carrier)
{
	row_named("over")->choices = ways_of(carrier);
	row_named("over")->settings = false;
	row_named("over")->help = "ways to compare; default: single";
	/* Arena memory needs no detour on any device. */
	row_named("buffers")->standard = "arena";
}

static void rows_complete(const struct bench_def *def)
{
	static char help[2][128];
	struct bench_counts small = counts_default(def, true), large = counts_default(def, false);
	bool latency = def->metric == REPORT_LATENCY;

	row_named("over")->choices = railmpi_ways();
	row_named("timing")->choices = collective_methods();
	row_named("sizes")->standard = def->sizes ? def->sizes :
		def->layout == BENCH_PAIRS ? sizes_pairs : sizes_all;
	/* An empty message has a latency, but no bandwidth. */
	row_named("sizes")->min = def->unit ? (uint64_t)def->unit : latency ? 0 : 1;
	snprintf(help[0], sizeof(help[0]), "timed samples per size; auto: %" PRIu64 ", above 8K %"
		 PRIu64 "%s", small.iterations, large.iterations,
		 def->tune ? "" : ", and more until the interval is narrow");
	snprintf(help[1], sizeof(help[1]), "untimed samples before them; auto: %" PRIu64 ", above 8K "
		 "%" PRIu64, small.warmup, large.warmup);
	row_named("iterations")->help = help[0];
	row_named("warmup")->help = help[1];
	if (def->time_cap)
		row_named("time-cap")->standard = def->time_cap;
	if (def->carrier)
		carrier_complete(def->carrier);
	if (def->tune) {
		row_named("over")->arg = "WAY";
		row_named("over")->help =
			"the way to measure; default: stripe with two or more rails, else single";
	}
}

static const char *const *rows_in_use(const struct bench_def *def)
{
	int n = 0;

	if (def->layout == BENCH_APP || def->tune)
		return def->tune ? tune_rows : app_rows;
	if (def->layout == BENCH_ALL)
		return NULL;
	for (const struct opt *row = rows + 1; row->name; row++)
		if (strcmp(row->name, "timing"))
			apart_rows[n++] = row->name;
	apart_rows[n] = NULL;
	return apart_rows;
}

static int tables_build(struct bench_job *job)
{
	const struct bench_def *def = job->def;
	void *values = opt_values_alloc(railmpi_options());

	if (!values) {
		rg_error("no memory for options");
		return -EINVAL;
	}
	rows_complete(def);
	job->opt.table[0] = (struct opt_table){
		.title = "Measurement", .rows = app_is(job) ? rows : rows + 1, .values = &job->opt,
		.origin = origin[0], .only = rows_in_use(def),
	};
	job->opt.table[1] = (struct opt_table){
		.title = "Transport", .rows = railmpi_options(), .values = values,
		.origin = origin[1], .only = def->carrier ? def->carrier->options : NULL,
	};
	job->opt.table[2] = (struct opt_table){
		.title = "Program", .rows = def->options, .values = def->values,
		.origin = origin[2],
	};
	job->opt.table_count = def->options ? 3 : 2;
	return 0;
}

/* Check the first size only: each further size is twice the one before. */
static int sizes_check(const struct bench_job *job)
{
	int unit = job->def->unit;

	if (!unit || job->opt.sizes.min % (uint64_t)unit == 0)
		return 0;
	rg_error("--sizes %" PRIu64 ": not a whole number of elements (accepted: multiples of %d)",
		 job->opt.sizes.min, unit);
	return -EINVAL;
}

/* Calibration cannot choose algorithms of the MPI library. */
static int over_check(const struct bench_job *job)
{
	const struct opt_list *over = &job->opt.over;
	char text[256];

	if (!job->def->tune || over->count == 0 ||
	    (over->count == 1 && over->item[0] != RAILMPI_NATIVE))
		return 0;
	rg_error("--over %s: makes no table (accepted: one way, not native)",
		 opt_text(&job->opt.table[0], row_named("over"), text, sizeof(text)));
	return -EINVAL;
}

static int axis_find(struct bench_job *job)
{
	job->opt.axis = job->def->axis ? job->def->axis() : NULL;
	if (!job->opt.axis || job->opt.sizes.min == job->opt.sizes.max)
		return 0;
	rg_error("--sizes: rows at several values of %s are of one message size (accepted: one, "
		 "such as 4K)", job->opt.axis->name);
	return -EINVAL;
}

int options_parse(struct bench_job *job)
{
	static char name[64];
	static char notes[1024];
	struct opt_program program = {
		.name = name, .summary = job->def->summary, .tables = job->opt.table, .notes = notes,
	};
	int rc = tables_build(job), first;

	snprintf(name, sizeof(name), "rg_%s", job->def->name);
	snprintf(notes, sizeof(notes), "Sizes take K, M, G (powers of 1024), rates kB/s, MB/s, GB/s "
		 "(powers of 1000)\nand Gb/s, times ns, us, ms, s.\n\n"
		 "Exit status: 0 well, 1 validation failed, 3 wrong use, 4 a fault.%s%s",
		 job->def->about ? "\n\n" : "", job->def->about ? job->def->about : "");
	if (rc)
		return rc;
	program.table_count = job->opt.table_count;
	rc = opt_parse(&program, job->opt.argc, job->opt.argv, &first);
	if (!rc)
		rc = preset_apply(job, name);
	if (!rc)
		rc = sizes_check(job);
	if (!rc)
		rc = over_check(job);
	if (!rc)
		rc = axis_find(job);
	if (!rc && job->def->carrier)
		rc = job->def->carrier->check();
	if (!rc && job->opt.percentiles)
		job->opt.percentile_count =
			percentiles_parse(job->opt.percentiles, job->opt.percentile);
	return rc;
}

void options_free(struct bench_job *job)
{
	preset_free(job);
	free(job->opt.table[1].values);
	job->opt.table[1].values = NULL;
}
