/*
 * impl.h - the internal interface of src/bench: the job, and one step per file.
 *
 *	main.c		the order of events
 *	options.c	the tables of options, and their parsing
 *	options_use.c	parsed options: look-up, comparison among ranks, transport
 *	preset.c	--experiment: values of a paper
 *	ranks.c		operations of all ranks together
 *	place.c		hosts, nodes, pairs of ranks
 *	star.c		a master and its slaves
 *	ways.c		a communicator per way
 *	carrier.c	what carries messages in place of MPI
 *	buffers.c	memory for messages
 *	describe.c	the run record and the '#' lines
 *	validate.c	validation of every received byte
 *	measure.c	the samples of one size
 *	tournament.c	the same for every pair of nodes
 *	rounds.c	the pairs of each round (pure)
 *	rows.c		rows from samples
 *	ledger.c	what each rail carried
 *	rail_baseline.c	each rail alone, measured beside the ways over all rails
 *	bound.c		upper bounds of several rails (pure)
 *	app.c		BENCH_APP: computations over each way, in turns
 *	tune.c		the quickest algorithms of collectives
 *	memory.c	BENCH_APP: available memory, and its allocation
 *
 * A step that can fail returns 0 or an exit code (RG_EXIT_...), the same on
 * all ranks, after one error line on one of them.
 */
#ifndef BENCH_IMPL_H
#define BENCH_IMPL_H

#include "config.h"	/* first: it asks for all of the C library */

#include <sched.h>
#include <stdio.h>

#include "bench.h"
#include "err.h"
#include "experiment.h"
#include "railmpi.h"
#include "report.h"

enum { BENCH_SMALL_BYTES = 8192 };	/* up to here the counts for small messages apply */

/* Where buffers of messages come from. */
enum bench_memory { BENCH_MALLOC, BENCH_ARENA, BENCH_NEAR, BENCH_FAR };

struct bench_options {
	struct opt_range sizes;
	uint64_t iterations, warmup;	/* OPT_SPECIAL: by size */
	uint64_t window, pairs, time_cap_ns;
	bool validate, full, ledger;
	uint64_t runs;			/* BENCH_APP */
	struct opt_list over;
	const char *percentiles, *json, *samples, *experiment;
	int buffers;			/* enum bench_memory */
};

struct bench_way {
	const char *name;
	enum railmpi_way id;
	bool foreign;			/* does not run on the fabric of the others */
	MPI_Comm comm;
	int variant;			/* of bench_def.variants */
	const char *coll;		/* tune.c: the value of --coll in its turn; or NULL */
	struct railmpi_ledger ledger[RAILMPI_LEDGERS];	/* this rank's, one size */
	struct bench_arrivals arrivals;	/* this rank's of a carrier, one size */
	struct railmpi_ledger total[RAILMPI_LEDGERS];	/* rank 0: of the whole job */
};

/* The place of one rank; every rank has those of all. */
struct bench_place {
	char host[64];
	cpu_set_t cpus;
	int node;			/* virtual or real, counted from 0 */
};

struct bench_pair { int rank[2]; };

/* Consecutive samples of one way. */
struct bench_batch {
	uint64_t samples;
	uint64_t run_ns;	/* wall time of the batch over all ranks / its runs, timed or not */
};
struct bench_batches {
	struct bench_batch *list;
	size_t count, room;
};

/* BENCH_APP: one rank in one turn. */
struct bench_times { uint64_t total_ns, communication_ns, sent_bytes; };

struct bench_job {
	struct bench b;			/* the part that the program sees */
	size_t sbuf_bytes, rbuf_bytes;
	const struct bench_def *def;
	int argc;
	char **argv;

	struct bench_options opt;
	struct opt_table table[3];	/* measurement, transport, the program's own */
	int table_count;
	const struct experiment *experiment;	/* or NULL */
	double percentile[REPORT_PERCENTILES_MAX];	/* 99 for P99 */
	int percentile_count;

	const struct bench_axis *axis;	/* NULL: rows go by message size */
	double x;			/* the value of the axis */

	MPI_Comm comm;			/* native; for the harness itself */
	struct railmpi_fabric fabric;	/* as this rank sees it */
	int common_rails;		/* rails that every rank has; the same on all ranks */
	struct bench_way way[REPORT_WAYS_MAX];
	int way_count;

	struct bench_place *place;
	int node_count, host_count;
	bool oversubscribed;
	struct bench_pair *pair;	/* tournament: those of the round; star: master and slave */
	int pair_count;
	int *player;			/* tournament: the rank that takes part, by node */

	struct railmpi_ledger ledger_seen[RAILMPI_LEDGERS];	/* at the last ledger_take */
	bool some_local;		/* a rank has a rail to others on its node */
	json_t *counters;		/* of this node's ports, at the start; or NULL */

	uint64_t generation;		/* of the pattern; the same on all ranks */
	uint64_t *samples[REPORT_WAYS_MAX];	/* in ns, of one size; timing ranks */
	struct bench_batches batches[REPORT_WAYS_MAX];	/* of one size */

	struct bench_times *times;	/* BENCH_APP, rank 0: by way, run and rank */
	bool way_wrong[REPORT_WAYS_MAX];	/* BENCH_APP: in any run; the same on all ranks */

	bool validation_failed;		/* of any rank, in any row: the same on all */
	bool wrong;			/* this rank found wrong bytes in the last validate_way */

	/* Rank 0 only. */
	struct report *report;
	FILE *samples_file;
	double mean[REPORT_WAYS_MAX];	/* of one size, where columns are variants */
};

/* ---- The part of a rank, by the layout; place.c has set its pair ---- */

static inline bool app_is(const struct bench_job *job)
{
	return job->def->layout == BENCH_APP;
}

/* Does this rank call run? */
static inline bool place_runs(const struct bench_job *job)
{
	return job->def->layout == BENCH_ALL || app_is(job) || job->b.pair >= 0;
}

/* Are its samples the row's? */
static inline bool place_times(const struct bench_job *job)
{
	return job->def->layout == BENCH_ALL || app_is(job) ||
	       (job->b.pair >= 0 && job->b.side == 0);
}

/* ---- ranks.c ---- */
/* Returns memory, the result of an allocation; NULL ends the job after one line. */
void *bench_must(void *memory);
/* Errors of MPI on comm: one line, then the end of the job with RG_EXIT_FAULT. */
void ranks_guard(MPI_Comm comm);
/* The largest of all ranks' values, on all ranks; ranks that do not run sleep meanwhile. */
uint64_t ranks_max(const struct bench_job *job, uint64_t mine);
/*
 * The end of a step that can fail, between rg_errors_hold and here: the lowest rank that failed
 * prints its error line.  Did any fail?
 */
bool ranks_failed(const struct bench_job *job, int rc);

/* ---- options.c: no MPI call in here ---- */

/* 0; 1: help or version was printed; -EINVAL after one error line. */
int options_parse(struct bench_job *job);
void options_free(struct bench_job *job);
struct bench_counts options_counts(const struct bench_job *job, uint64_t bytes);
uint64_t options_next_size(uint64_t bytes);
/* The largest measured size. */
uint64_t options_last_size(const struct bench_job *job);

/* ---- options_use.c ---- */
/*
 * Compare the options of all ranks.  0 or an exit code, on all ranks, after a line that
 * names the option.  Collective over job->comm, natively.
 */
int options_agree(const struct bench_job *job);
/* Pass job-wide options to the transport, before MPI_Init.  0 or -EINVAL after a line. */
int options_to_transport(const struct bench_job *job);
/* ",name=value" for every option that belongs to a communicator. */
void options_of_communicator(const struct bench_job *job, char *text, size_t size);
/* The row of an option and its table, or NULL. */
const struct opt *options_find(const struct bench_job *job, const char *name,
			       const struct opt_table **table);

/* ---- preset.c ---- */
/*
 * Apply the values of --experiment to options that are not set.  program: "rg_bw".
 * 0 or -EINVAL after one error line.
 */
int preset_apply(struct bench_job *job, const char *program);
void preset_free(struct bench_job *job);
/* Differences from the experiment: "2 ranks (4), sizes 8:64 (1:1M)", presets in brackets. */
char *preset_changes(const struct bench_job *job, char *buf, size_t size);

/* ---- place.c ---- */
int place_find(struct bench_job *job);		/* hosts and CPUs; before rails are opened */
int place_join(struct bench_job *job);		/* nodes and pairs; after */
bool place_plays(const struct bench_job *job);	/* this rank takes part in a tournament */

/* ---- star.c: BENCH_STAR ---- */
/* Each rank is a node of its own, unless --nodes says otherwise; before rails are opened. */
int star_nodes(struct bench_job *job);
int star_join(struct bench_job *job);		/* in place of pairs; all slaves take part */

/* ---- ways.c ---- */
int ways_open(struct bench_job *job);		/* rails, fabric, communicators */
/* Open one more.  id: enum railmpi_way, or RAILMPI_SINGLE_RAIL + N.  way: the job's next. */
int way_open(struct bench_job *job, struct bench_way *way, int id);
void ways_close(struct bench_job *job);
/* The largest message that may be sent eagerly, over any way: --eager. */
uint64_t ways_eager_limit(const struct bench_job *job);
/* The rail of a way over one rail alone ("mlx5_1:1"), or NULL. */
const char *way_rail(const struct bench_job *job, const struct bench_way *way);
/* Set the algorithm of the way, if it has one; before each of its batches. */
void way_switch(const struct bench_way *way);

/* ---- carrier.c: no effect without a carrier ---- */
int carrier_open(struct bench_job *job);	/* behind place_join; may limit --sizes */
int carrier_memory(struct bench_job *job);	/* behind buffers_open */
void carrier_close(struct bench_job *job);
/* Around runs of this rank; way NULL: what arrives is of no way. */
void carrier_begin(struct bench_job *job, uint64_t runs);
bool carrier_end(struct bench_job *job, struct bench_way *way);
/* Messages expected and lost by all ranks for one row; at rank 0, else zeros. */
struct bench_arrivals carrier_row(struct bench_job *job, struct bench_way *way);
/* As railmpi_ledger, of the carrier or the transport. */
int carrier_ledger(const struct bench_job *job, int rail, struct railmpi_ledger *out);

/* ---- buffers.c ---- */
enum { BUFFERS_GUARD_BYTES = 64 };		/* behind the last block of rbuf */
int buffers_open(struct bench_job *job);
const char *buffers_text(const struct bench_job *job);	/* of --buffers, for the heading */
void buffers_close(struct bench_job *job);
/* Set the members for a size and way; validating: each message has its own place. */
void buffers_set(struct bench_job *job, const struct bench_way *way, uint64_t bytes,
		 bool validating);
int buffers_blocks(const struct bench_job *job, int (*blocks)(const struct bench *b));

/* ---- describe.c ---- */
json_t *describe_run(const struct bench_job *job);
void describe_fabric(const struct bench_job *job, char *text, size_t size);

/* ---- validate.c ---- */
/* -1: not asked for, 0: Fail after one error line on rank 0, 1: Pass; the same on all ranks. */
int validate_way(struct bench_job *job, const struct bench_way *way, uint64_t bytes);

/* ---- measure.c ---- */
struct measure {			/* of one size and way */
	uint64_t wanted, done;		/* samples */
	uint64_t runs;			/* done, and one untimed per batch; without warm-up */
	uint64_t warm_wanted, warm_done;
	uint64_t spent_ns, warm_spent_ns;
	bool cut;
};
/* Fills m[way] and job->samples[way]. */
void measure_size(struct bench_job *job, uint64_t bytes, struct measure m[]);

/* ---- rows.c ---- */
/* Rows of one size, in way order.  valid: results of validate_way. */
int rows_write(struct bench_job *job, uint64_t bytes, const struct measure m[],
	       const int valid[]);
/* The median of one way, at rank 0, in the metric's unit; writes no row. */
double rows_median(struct bench_job *job, int w, uint64_t bytes, const struct measure *m);
/* Rows of a tournament's round; valid[way * pair_count + pair], at rank 0. */
int rows_write_pairs(struct bench_job *job, uint64_t bytes, const struct measure m[],
		     const int valid[]);

/* ---- tournament.c ---- */
/* Names of nodes and ways; they live as long as the process. */
void tournament_matrix(const struct bench_job *job, struct report_matrix *out);
int tournament_run(struct bench_job *job, uint64_t bytes);

/* ---- ledger.c: no effect without --ledger ---- */
void ledger_open(struct bench_job *job);	/* before anything is validated or measured */
/*
 * Count what this rank has moved since the last call for this way (NULL: for none).  Call
 * it before a collective that all ranks enter before any sends more over rails.
 */
void ledger_take(struct bench_job *job, struct bench_way *way);
/* The sums over all ranks of one size; at rank 0, else NULL. */
json_t *ledger_row(struct bench_job *job, struct bench_way *way);
/* Print the '#' lines; returns the member of the end record, at rank 0, else NULL. */
json_t *ledger_close(struct bench_job *job);

/* ---- tune.c ---- */
int tune_check(const struct bench_job *job);	/* can the table be written? */
int tune_run(struct bench_job *job);

/* ---- app.c: BENCH_APP; app_check and app_close do nothing in other layouts ---- */
/* Before rails are opened: is the problem possible?  0 or an exit code, on all ranks. */
int app_check(struct bench_job *job);
int app_open(struct bench_job *job);		/* instead of buffers_open */
void app_close(struct bench_job *job);
/* The "app" member of the run record. */
json_t *app_describe(const struct bench_job *job);
/* All turns, then a row per way.  0 or an exit code; failed verification is noted in job. */
int app_run(struct bench_job *job);

/* ---- memory.c ---- */
/* Bytes that this process can allocate, if `sharers` processes of its host want as much. */
uint64_t memory_available(int sharers);

/* ---- rail_baseline.c: no effect without --ledger ---- */
/* Measures; prints '#' lines and returns a member of the end record, at rank 0; else NULL. */
json_t *rail_baseline_compare(struct bench_job *job);

#endif
