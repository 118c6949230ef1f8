/*
 * job.h - a few processes on one software fabric, without MPI: forked, with a page
 * in common for offers and barriers, connected all to all.  With RAIL_TEST_REAL in
 * the environment they use this machine's real ports instead.
 */
#ifndef TESTS_RAIL_JOB_H
#define TESTS_RAIL_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"
#include "rail/rail.h"

enum { JOB_MAX = 8 };
#define JOB_ZERO UINT64_MAX

struct job_config {
	int count;			/* processes; 2 when 0 */
	int nodes;			/* virtual nodes, block mapping; one each when 0 */
	const char *soft;		/* spec; "ideal" when NULL */
	const char *rails;		/* "all" when NULL */
	uint64_t eager, threshold;	/* 8192 when 0; 0 when JOB_ZERO */
	int qps;			/* per rail; 1 when 0 */
	uint64_t chunk;			/* the standard when 0 */
	bool over_hca;			/* peers on one node, too */
	bool on_demand;			/* connections when messages want them */
	int seconds;			/* time after which a process hangs; 300 when 0 */
};

struct job_shared;

struct job {
	int rank, count;
	const struct job_config *config;
	struct job_shared *shared;
	struct rail_ctx *ctx;
	struct rail_peer *peer[JOB_MAX];
	struct rail_settings settings;
	struct rail_config rail;	/* filled in before body runs; body may change it */
	const void *arg;
};

/*
 * Run body in config->count processes.  0 when all return (or exit 0), else 1
 * after a line for each that does not.  A child whose rank is in *killed (bits)
 * is expected to be killed.
 */
int job_run(const struct job_config *config, void (*body)(struct job *), const void *arg,
	    unsigned killed);

/* Start a process of a job: a forked process runs job_sit and exits. */
struct job_seat {
	const struct job_config *config;
	struct job_shared *shared;
	int count;
	const char *fabric;
	void (*body)(struct job *);
	const void *arg;
};

void job_sit(const struct job_seat *seat, int rank);
int job_spawn(const struct job_seat *seat, unsigned killed);

/* rail_open with job->rail; exits on failure. */
void job_open(struct job *job);
/* Offers to all, connections with all, barrier; or addresses, when on demand. */
void job_connect(struct job *job);
/* The two halves of job_connect; prepare may change the offer's terms.  0, or connect's error. */
void job_offer(struct job *job);
int job_accept_offers(struct job *job);
/* The memory in which a process leaves its address for the others. */
unsigned char *job_address(const struct job *job, int rank);
void job_close(struct job *job);

/* Wait for all processes (of mask, when not 0), moving messages meanwhile. */
void job_barrier(struct job *job);
void job_progress(struct job *job);
/* Something has come: tests/virtual/virtual.h. */
void virtual_found(void);
/* The barrier of the survivors, after some processes have been killed. */
void job_lost(struct job *job, int processes);

/* Messages that came, operations that ended, lost peers: on_message, op.done, on_peer_error. */
extern struct job_seen {
	uint64_t handle;		/* the last message's, a rendezvous */
	int done, status;		/* operations that have ended; status of the last */
	int errors, error;		/* peers that were lost; error and index of the last */
	unsigned lost;
} job_seen;

void job_keep_handle(void *user, const struct rail_message *msg);
void job_count_done(struct rail_op *op, int status);
void job_count_error(void *user, unsigned index, int error);

/* on_message of a job that must receive none. */
void job_no_message(void *user, const struct rail_message *msg);

/* A setting that differs between two processes, [rank], so that they must not connect. */
struct job_mismatch {
	const char *rails[2];
	uint64_t eager[2], threshold[2], qps[2], chunk[2];
	bool subnet;
	const char *says;		/* the error line, among other words */
};

/* job_run with body in two processes, for each mismatch: its job->arg. */
int job_run_mismatches(void (*body)(struct job *));
/* In body: job_open with the mismatch, then check the outcome of the try to connect. */
void job_open_mismatch(struct job *job);
void job_check_mismatch(const struct job *job, int rc, const char *text);

__attribute__((format(printf, 3, 4), noreturn))
void job_fail(const char *file, int line, const char *fmt, ...);

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			job_fail(__FILE__, __LINE__, "%s", #condition); \
	} while (0)

#define CHECK_EQUAL(a, b) \
	do { \
		long long a_ = (long long)(a), b_ = (long long)(b); \
		if (a_ != b_) \
			job_fail(__FILE__, __LINE__, "%s is %lld, should be %lld (%s)", #a, a_, \
				 b_, #b); \
	} while (0)

#endif
