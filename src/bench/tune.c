/*
 * tune.c - the quickest algorithm of each collective, as rules for --coll @FILE, and costs for
 * RAILGAUGE_COSTS in the same file (tune_costs.c).
 *
 * The candidates of a collective take the places of ways: samples of one size, in turns
 * (measure.c), over one communicator.  After a collective the transport reports whether the
 * candidate was possible, and which number of bytes rules compare.
 */
#include "bench/tune.h"
#include "bench/buffers.h"
#include "bench/describe.h"
#include "bench/options.h"
#include "bench/ranks.h"
#include "bench/rows.h"
#include "bench/timing.h"
#include "bench/tune_costs.h"
#include "bench/ways.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/units.h"

/* A candidate slower by at most this share counts as equal to the best. */
#define NOISE 0.03

/* The calibration of a collective. */
struct tune {
	struct bench_job *job;
	struct bench_def def;			/* with the collective's run */
	const char *name;
	/* State of one size, the same on all ranks. */
	const char *candidate[BENCH_CANDIDATES];
	char force[BENCH_CANDIDATES][64];
	int count;
	const char *now;			/* the transport's choice without a rule */
	size_t m;
	/* State of rank 0. */
	double median[BENCH_CANDIDATES];	/* us */
	double score[BENCH_CANDIDATES];		/* sums of logarithms */
	int sizes;				/* number of summed sizes */
	const char *rule;			/* chosen up to rule_m */
	size_t rule_m;
	FILE *rules;
};

/* ---- The file, at rank 0 ------------------------------------------------------------ */

/* A device or a directory, which no file may replace. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static FILE *temporary_create(const char *path, char **temporary)
{
	FILE *f = NULL;
	int fd;

	*temporary = NULL;
	if (is_special(path))
		return NULL;
	if (asprintf(temporary, "%s.new.%ld", path, (long)getpid()) < 0) {
		*temporary = NULL;
		return NULL;
	}
	fd = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0)
		f = fdopen(fd, "w");
	return f;
}

/* Write the whole file or none; rules NULL: only try. */
static int out_write(const char *path, const char *rules)
{
	char *temporary;
	FILE *f = temporary_create(path, &temporary);
	int failed = !f, error;

	if (f && rules)
		failed = fputs(rules, f) < 0;
	if (f)
		failed = fclose(f) != 0 || failed;
	if (!failed && rules)
		failed = rename(temporary, path) != 0;
	error = errno;
	if (failed)
		rg_error("--out %s: cannot be written: %s", path, is_special(path) ?
			 "the file exists and is no regular file" : strerror(error));
	if (f && (failed || !rules))
		unlink(temporary);
	free(temporary);
	return failed;
}

static const char *out_path(const struct bench_job *job)
{
	return job->b.rank == 0 ? *job->def->tune->out : NULL;
}

int tune_check(const struct bench_job *job)
{
	int failed = out_path(job) && out_write(out_path(job), NULL);

	return ranks_max(job, (uint64_t)failed) ? RG_EXIT_USAGE : 0;
}

static void head_write(const struct bench_job *job, FILE *rules)
{
	char fabric[512], date[32];
	time_t now = time(NULL);
	struct tm utc;

	describe_fabric(job, fabric, sizeof(fabric));
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &utc));
	fprintf(rules, "# Made by %s, %s: for --coll @FILE, --costs FILE\n", rg_program(), date);
	fprintf(rules, "# fabric: %s\n", fabric);
	fprintf(rules, "# %d ranks on %d node%s%s, over %s\n", job->b.size, job->where.node_count,
		job->where.node_count == 1 ? "" : "s",
		job->where.oversubscribed ? ", oversubscribed" : "",
		job->where.way[0].name);
	fprintf(rules, "# COLLECTIVE RANKS BYTES ALGORITHM (up to so many ranks and bytes; 0: any)\n");
}

/* ---- Rules, at rank 0 ---------------------------------------------------------------- */

/* Write a rule for up to m bytes; m 0: any number. */
static void rule_write(const struct tune *t, size_t m)
{
	char bytes[RG_UNIT_TEXT];

	fprintf(t->rules, "%s %d %s %s\n", t->name, t->job->b.size,
		rg_format_size(m, bytes, sizeof(bytes)), t->rule);
}

/* Is the candidate as good as the best? */
static bool holds(const struct tune *t, const char *name, int best)
{
	for (int i = 0; name && i < t->count; i++)
		if (strcmp(t->candidate[i], name) == 0)
			return t->score[i] - t->score[best] <= log1p(NOISE) * t->sizes;
	return false;
}

/*
 * Choose among candidates as good as the best: first the transport's choice, then the rule of the
 * size before.
 */
static const char *choose(struct tune *t)
{
	int best = 0;

	/* If rules count no bytes, all sizes together decide. */
	if (t->m)
		t->sizes = 0;
	for (int i = 0; i < t->count; i++) {
		t->score[i] = (t->sizes ? t->score[i] : 0) + log(fmax(t->median[i], 1e-6));
		if (t->score[i] < t->score[best])
			best = i;
	}
	t->sizes++;
	return holds(t, t->now, best) ? t->now : holds(t, t->rule, best) ? t->rule :
	       t->candidate[best];
}

static void size_note(struct tune *t)
{
	const char *chosen = choose(t);

	printf("%-15s%12zu  %-16s", t->name, t->m, chosen);
	for (int i = 0; i < t->count; i++)
		printf("  %s%s %.2f", t->candidate[i], strcmp(t->candidate[i], t->now) ? "" : "*",
		       t->median[i]);
	printf("\n");
	fflush(stdout);
	if (t->rule && t->m && strcmp(t->rule, chosen))
		rule_write(t, t->rule_m);
	t->rule = chosen;
	t->rule_m = t->m;
}

/* ---- Measuring ------------------------------------------------------------------------- */

/* The algorithm that the transport uses when `force` is requested. */
static const char *used(struct tune *t, const char *force)
{
	way_switch(&(struct bench_column){ .coll = force });
	t->def.run(&t->job->b);
	return railmpi_coll_used(&t->m);
}

/* Find the candidates that the transport does not replace by another algorithm here. */
static void candidates_find(struct tune *t, uint64_t bytes)
{
	const char *name;

	buffers_set(t->job, &t->job->where.way[0], bytes, false);
	t->now = used(t, "table");
	t->count = 0;
	for (int i = 0; (name = railmpi_coll_candidate(t->name, i)) && i < BENCH_CANDIDATES; i++) {
		snprintf(t->force[t->count], sizeof(t->force[0]), "%s=%s", t->name, name);
		if (strcmp(used(t, t->force[t->count]), name) == 0)
			t->candidate[t->count++] = name;
	}
}

static void size_run(struct tune *t, uint64_t bytes)
{
	struct bench_job *job = t->job;
	struct measure m[REPORT_WAYS_MAX];

	candidates_find(t, bytes);
	job->where.way_count = t->count;
	for (int i = 0; i < t->count; i++) {
		job->where.way[i].comm = job->where.way[0].comm;
		job->where.way[i].coll = t->force[i];
	}
	timing_measure(job, bytes, m);
	for (int i = 0; i < t->count; i++)
		t->median[i] = rows_median(job, i, bytes, &m[i]);
	job->where.way_count = 1;
	job->where.way[0].coll = NULL;
	if (job->b.rank == 0)
		size_note(t);
}

static void collective_run(struct bench_job *job, const struct opt_choice *c, FILE *rules)
{
	const struct bench_def *def = job->def;
	struct tune t = { .job = job, .def = *def, .name = c->name, .rules = rules };

	t.def.run = def->tune->run[c->value];
	job->def = &t.def;
	for (uint64_t s = job->opt.sizes.min; s <= job->opt.sizes.max; s = options_next_size(s))
		size_run(&t, s);
	job->def = def;
	if (rules)
		rule_write(&t, 0);
}

static bool is_wanted(const struct opt_list *only, int value)
{
	for (int i = 0; i < only->count; i++)
		if (only->item[i] == value)
			return true;
	return only->count == 0;
}

int tune_run(struct bench_job *job)
{
	const struct bench_tune *tune = job->def->tune;
	char *text = NULL;
	size_t bytes;
	FILE *rules = job->b.rank == 0 ? bench_must(open_memstream(&text, &bytes)) : NULL;
	int failed = 0;

	if (rules) {
		head_write(job, rules);
		printf("%-15s%12s  %-16s  %s\n", "# Collective", "Bytes", "Chosen",
		       "Medians in us of each; *: used until now");
	}
	for (const struct opt_choice *c = tune->collectives; c->name; c++)
		if (is_wanted(tune->only, c->value))
			collective_run(job, c, rules);
	if (!tune->only->count)
		tune_costs(job, rules);
	if (rules) {
		failed = fclose(rules) != 0;
		failed = failed || (out_path(job) && out_write(out_path(job), text));
		free(text);
	}
	return ranks_max(job, (uint64_t)failed) ? RG_EXIT_FAULT : 0;
}
