/*
 * job.h - the internal interface of src/bench: the job, and one step per file.
 *
 *	main.c		the order of events
 *	options.c	the tables of options, and their parsing
 *	options_use.c	parsed options: look-up, comparison among ranks, transport
 *	preset.c	--experiment: values of a paper
 *	ranks.c		operations of all ranks together
 *	place.c		hosts, nodes, pairs of ranks
 *	star.c		a master and its slaves
 *	ways.c		a communicator per way
 *	carrier.c	steps of the carrier of messages in place of MPI
 *	buffers.c	memory for messages
 *	describe.c	the run record and the '#' lines
 *	hosts.c		facts of all hosts
 *	interfaces.c	the interfaces that carry native messages
 *	outputs.c	the files of --json and --samples
 *	validate.c	validation of every received byte
 *	measure.c	the samples of one size
 *	collective.c	BENCH_ALL: the timed loops
 *	timing.c	BENCH_ALL: the loop that times a row
 *	clocks.c	synchronised clocks (without MPI)
 *	roundtime.c	rounds that begin at a common time (without MPI)
 *	tournament.c	the same for every pair of nodes
 *	acceptance.c	the same, or random pairs, on queue pairs of their own; acceptance_*.c
 *	rows.c		rows from samples
 *	samples.c	samples at rank 0; --samples
 *	ledger.c	what each rail carried
 *	learned.c	what ranks have learned of costs
 *	noise.c		what the machine took from ranks
 *	noise_read.c	the kernel's counters of it (pure)
 *	cores.c		the cores of CPUs (pure)
 *	rail_baseline.c	each rail alone, in turns with the ways over all rails
 *	bound.c		upper bounds of several rails (pure)
 *	app.c		BENCH_APP: computations over each way, in turns
 *	tune.c		the quickest algorithms of collectives; tune_costs.c
 *	memory.c	BENCH_APP: available memory, and its allocation
 *
 * A step that can fail returns 0 or an exit code (RG_EXIT_...), the same on
 * all ranks, after one error line on one of them.
 */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "config.h"	/* first: it asks for all of the C library */

#include <sched.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/noise.h"
#include "util/err.h"
#include "report/experiment.h"
#include "mpi/railmpi.h"
#include "report/redact.h"
#include "report/report.h"
#include "util/host.h"

enum { BENCH_SMALL_BYTES = 8192 };	/* up to here the counts for small messages apply */

/* The place of the buffers of messages. */
enum bench_memory { BENCH_MALLOC, BENCH_ARENA, BENCH_NEAR, BENCH_FAR };

/* Methods that time collectives; see collective.h. */
enum bench_timing { BENCH_SYNC, BENCH_BARRIER, BENCH_OSU };

/* The command line, parsed. */
struct bench_options {
	int argc;
	char **argv;
	struct opt_table table[3];	/* measurement, transport, the program's own */
	int table_count;

	struct opt_range sizes;
	uint64_t iterations, warmup;	/* OPT_SPECIAL: by size */
	uint64_t window, pairs, time_cap_ns;
	bool validate, full, ledger, overwrite, continues, redact;
	uint64_t runs;			/* BENCH_APP */
	uint64_t launch;		/* of several */
	struct opt_list over;
	const char *percentiles, *json, *samples, *experiment_id;
	int buffers;			/* enum bench_memory */
	int timing;			/* BENCH_ALL: enum bench_timing */
	int layout;			/* enum report_layout */

	const struct experiment *experiment;	/* or NULL */
	double percentile[REPORT_PERCENTILES_MAX];	/* 99 for P99 */
	int percentile_count;
	const struct bench_axis *axis;	/* NULL: rows go by message size */
};

struct bench_column {
	const char *name;
	enum railmpi_way id;
	const char *settings;		/* of --over, "name=value,..."; or NULL */
	bool foreign;			/* does not run on the other ways' fabric */
	bool uses_all;			/* RAILMPI_USES_ALL */
	MPI_Comm comm;
	int variant;			/* value in bench_def.variants */
	const char *coll;		/* the value of --coll in its turn (way_coll.h, tune.c); or NULL */
	struct rail_ledger ledger[RAILMPI_LEDGERS];	/* this rank's counts of one size */
	struct bench_arrivals arrivals;	/* this rank's counts of a carrier, one size */
	struct rail_ledger total[RAILMPI_LEDGERS];	/* rank 0: sums over the whole job */
};

/* The place of a rank; every rank knows the places of all ranks. */
struct bench_place {
	struct rg_host at;
	char host[64];
	cpu_set_t cpus;
	cpu_set_t cores;		/* by their lowest CPUs; empty: not known */
	int node;			/* virtual or real, counted from 0 */
	int first_of_host;		/* the lowest rank of the same host */
};

struct bench_pair { int rank[2]; };

/* A batch: consecutive samples of a way. */
struct bench_batch {
	uint64_t samples;
	uint64_t span_ns;	/* rank 0, if place_sums: common start to last end of its samples */
};
struct bench_batches {
	struct bench_batch *list;
	size_t count, room;
};

/*
 * Time of all rows so far, the same on all ranks: that of the counts; that of samples beyond them,
 * with the cost of synchronised starts beyond that of barriers.
 */
struct bench_budget { uint64_t counted_ns, added_ns; };

/* BENCH_APP: times of a rank in a turn. */
struct bench_times { uint64_t total_ns, communication_ns, sent_bytes; };

/* Where the job runs: its ranks, ways and rails.  Known before the first sample. */
struct bench_where {
	MPI_Comm comm;			/* native; for the harness itself */
	struct railmpi_fabric fabric;	/* this rank's view of it */
	int common_rails;		/* rails that every rank has; the same on all ranks */
	bool some_local;		/* a rank has a rail to others on its node */
	struct bench_column way[REPORT_WAYS_MAX];
	int way_count;

	struct bench_place *place;	/* per rank */
	int node_count, host_count;
	struct redact *redact;		/* --redact: the placeholders of names; or NULL */
	bool oversubscribed;
	struct bench_pair *pair;	/* tournament: pairs of the round; star: master and slave */
	int pair_count;
	int *player;			/* tournament: by node, the rank that takes part */
};

/* Measured values: those of one size, unless a member says otherwise. */
struct bench_results {
	double x;			/* the value of the axis */
	uint64_t generation;		/* number of the pattern, the same on all ranks */
	/* In ns, on ranks that measure time.  Of collectives rank 0 has all ranks' largest. */
	uint64_t *samples[REPORT_WAYS_MAX];
	uint64_t room[REPORT_WAYS_MAX];		/* samples that there is memory for */
	struct bench_batches batches[REPORT_WAYS_MAX];
	struct bench_budget budget;
	struct collective *collective;	/* BENCH_ALL, from the first row on; collective.c's */
	struct rail_ledger ledger_seen[RAILMPI_LEDGERS];	/* at the last ledger_take */
	struct noise noise;
	json_t *counters;		/* counters of this node's ports at the start; or NULL */

	struct bench_times *times;	/* BENCH_APP, rank 0: by way, run and rank */
	bool way_wrong[REPORT_WAYS_MAX];	/* BENCH_APP: in any run; the same on all ranks */
	bool validation_failed;		/* on any rank, in any row; the same on all ranks */
	bool wrong;			/* this rank found wrong bytes in the last validate_way */

	struct acceptance *acceptance;	/* acceptance.c's; NULL: MPI carries messages */

	uint64_t kept_sizes;		/* the first ones, from a run that was ended; on all ranks */

	/* Rank 0 only. */
	struct report_file kept;	/* the file of that run; path NULL: none */
	struct report *report;
	FILE *samples_file;
	double median[REPORT_WAYS_MAX];	/* if columns are variants */
};

struct bench_job {
	const struct bench_def *def;
	struct bench b;			/* the program's view of the job */
	size_t sbuf_bytes, rbuf_bytes;
	struct bench_options opt;
	struct bench_where where;
	struct bench_results got;
};

/* ---- The role of a rank in the layout; place.c has set its pair ---- */

static inline bool app_is(const struct bench_job *job)
{
	return job->def->layout == BENCH_APP;
}

/* Does this rank call run? */
static inline bool place_runs(const struct bench_job *job)
{
	return job->def->layout == BENCH_ALL || app_is(job) || job->b.pair >= 0;
}

/* Do this rank's samples make the row? */
static inline bool place_times(const struct bench_job *job)
{
	return job->def->layout == BENCH_ALL || app_is(job) ||
	       (job->b.pair >= 0 && job->b.side == 0);
}

/* Is a row's sample a batch of all pairs together?  Else it is a run of one pair or of all ranks. */
static inline bool place_sums(const struct bench_job *job)
{
	return job->def->layout == BENCH_PAIRS && job->def->metric != REPORT_LATENCY &&
	       job->where.pair_count > 1;
}

#endif
