/* job.c - processes, their common page, their rails. */
#include "config.h"		/* _GNU_SOURCE */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/err.h"
#include "job.h"
#include "util/opt.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/connect.h"
#include "rail/peer/endpoint_info.h"
#include "rail/peer/peer.h"
#include "verbs/vrb.h"

struct job_shared {
	_Atomic unsigned arrived, generation, failed;
	_Atomic unsigned expected;
	unsigned char offer[JOB_MAX][JOB_MAX][ENDPOINT_INFO_BYTES];	/* [of][for] */
	unsigned char address[JOB_MAX][RAIL_ADDRESS_BYTES];
};

static int my_rank = -1;
static int console = 2;			/* also while a test captures stderr */
static _Thread_local struct job_shared *my_shared;	/* of each member: members.c */

struct job_seen job_seen;

void job_keep_handle(void *user, const struct rail_message *msg)
{
	(void)user;
	CHECK(!msg->payload && msg->rendezvous);
	job_seen.handle = msg->rendezvous;
}

void job_count_done(struct rail_op *op, int status)
{
	(void)op;
	job_seen.done++;
	job_seen.status = status;
}

void job_count_error(void *user, unsigned index, int error)
{
	(void)user;
	job_seen.errors++;
	job_seen.error = error;
	job_seen.lost = index;
}

void job_no_message(void *user, const struct rail_message *msg)
{
	(void)user;
	(void)msg;
	job_fail(__FILE__, __LINE__, "a message came");
}

void job_fail(const char *file, int line, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	dprintf(console, "%s:%d: process %d: %s\n", file, line, my_rank, text);
	if (my_shared)
		atomic_store(&my_shared->failed, 1);
	_exit(1);
}

/* ---- Processes ---------------------------------------------------------- */

static void defaults(struct job *job)
{
	const struct job_config *c = job->config;
	int nodes = c->nodes ? c->nodes : job->count;
	int per_node = (job->count + nodes - 1) / nodes;

	job->settings = (struct rail_settings){
		.rails = c->rails ? c->rails : "all",
		.soft = c->soft ? c->soft : "ideal",
		.threshold = c->threshold ? c->threshold : 8192,
		.qps = (uint64_t)c->qps,
		.chunk = c->chunk,
		.intranode = c->over_hca ? RAIL_INTRANODE_HCA : RAIL_INTRANODE_SOFT,
		.eager = c->eager == JOB_ZERO ? 0 : c->eager ? c->eager : 8192,
	};
	job->rail = (struct rail_config){
		.settings = &job->settings,
		.use_softhca = !getenv("RAIL_TEST_REAL"),
		.node = (unsigned)(job->rank / per_node),
		.index = (unsigned)job->rank,
		.local_rank = (unsigned)(job->rank % per_node),
		.peer_count = (unsigned)job->count,
		.user = job,
	};
}

void job_sit(const struct job_seat *seat, int rank)
{
	struct job job = {
		.rank = rank, .count = seat->count, .config = seat->config,
		.shared = seat->shared, .arg = seat->arg,
	};

	my_shared = seat->shared;
	defaults(&job);
	job.rail.fabric = seat->fabric;
	seat->body(&job);
}

static void child(const struct job_seat *seat, int rank)
{
	my_rank = rank;
	console = dup(2);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(seat->config->seconds ? (unsigned)seat->config->seconds : 300);
	job_sit(seat, rank);
	fflush(NULL);
	/* Sanitizers look for leaks at a normal exit. */
	exit(0);
}

static int reap(pid_t *pid, int count, unsigned killed)
{
	int bad = 0;

	for (int r = 0; r < count; r++) {
		int status = 0;

		while (waitpid(pid[r], &status, 0) < 0 && errno == EINTR)
			;
		if (WIFEXITED(status) && !WEXITSTATUS(status) && !(killed >> r & 1))
			continue;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && killed >> r & 1)
			continue;
		fprintf(stderr, "process %d %s %d\n", r,
			WIFSIGNALED(status) ? "ended by signal" : "exited with",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		bad = 1;
	}
	return bad;
}

/* Weak: tests/virtual/seats.c has all of them in one process. */
__attribute__((weak)) int job_spawn(const struct job_seat *seat, unsigned killed)
{
	pid_t pid[JOB_MAX];

	fflush(NULL);
	for (int r = 0; r < seat->count; r++) {
		pid[r] = fork();
		if (pid[r] < 0)
			abort();
		if (pid[r] == 0)
			child(seat, r);
	}
	return reap(pid, seat->count, killed);
}

int job_run(const struct job_config *config, void (*body)(struct job *), const void *arg,
	    unsigned killed)
{
	static int number;
	int count = config->count ? config->count : 2;
	struct job_shared *shared;
	struct job_seat seat;
	char fabric[64];
	int bad;

	snprintf(fabric, sizeof(fabric), "rail-test-%d-%d", (int)getpid(), number++);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	atomic_store(&shared->expected, (unsigned)count);
	seat = (struct job_seat){ config, shared, count, fabric, body, arg };
	bad = job_spawn(&seat, killed);
	munmap(shared, sizeof(*shared));
	return bad;
}

/* ---- Moving and waiting ------------------------------------------------- */

__attribute__((weak)) void virtual_found(void)
{
}

void job_progress(struct job *job)
{
	/* More processes than cores: the others must run, too. */
	if (!job->ctx || rail_progress(job->ctx) == 0)
		rg_yield();
	else
		virtual_found();
	if (atomic_load_explicit(&job->shared->failed, memory_order_relaxed))
		_exit(2);
}

void job_barrier(struct job *job)
{
	struct job_shared *s = job->shared;
	unsigned generation = atomic_load(&s->generation);

	if (atomic_fetch_add(&s->arrived, 1) + 1 == atomic_load(&s->expected)) {
		atomic_store(&s->arrived, 0);
		atomic_fetch_add(&s->generation, 1);
		return;
	}
	while (atomic_load(&s->generation) == generation)
		job_progress(job);
}

void job_lost(struct job *job, int processes)
{
	atomic_store(&job->shared->expected, (unsigned)(job->count - processes));
}

/* ---- Rails -------------------------------------------------------------- */

void job_open(struct job *job)
{
	int rc = rail_open(&job->rail, &job->ctx);

	if (rc)
		job_fail(__FILE__, __LINE__, "rail_open: %s", strerror(-rc));
}

/* Jobs that are not on demand connect as on_demand.c does, but through the page in common. */
void job_offer(struct job *job)
{
	for (unsigned p = 0; p < (unsigned)job->count; p++) {
		CHECK_EQUAL(rail_peer_new(job->ctx, p, &job->ctx->peer[p]), 0);
		job->peer[p] = job->ctx->peer[p];
		CHECK_EQUAL(rail_peer_prepare(job->peer[p], job->shared->offer[job->rank][p]), 0);
	}
	job_barrier(job);
}

int job_accept_offers(struct job *job)
{
	int rc = 0;

	for (int p = 0; p < job->count && !rc; p++) {
		rc = rail_peer_link(job->peer[p], job->shared->offer[p][job->rank]);
		if (!rc)
			rail_peer_start(job->peer[p]);
	}
	return rc;
}

unsigned char *job_address(const struct job *job, int rank)
{
	return job->shared->address[rank];
}

static void exchange_addresses(struct job *job)
{
	CHECK_EQUAL(rail_address(job->ctx, job->shared->address[job->rank]), 0);
	job_barrier(job);
	for (int p = 0; p < job->count; p++)
		CHECK_EQUAL(rail_peer_add(job->ctx, (unsigned)p, job->shared->address[p],
					  &job->peer[p]), 0);
	job_barrier(job);
	if (job->rank == 0)
		rail_all_attached(job->ctx);
}

void job_connect(struct job *job)
{
	if (!job->ctx)
		job_open(job);
	if (job->config->on_demand) {
		exchange_addresses(job);
		return;
	}
	job_offer(job);
	CHECK_EQUAL(job_accept_offers(job), 0);
	job_barrier(job);
	if (job->rank == 0)
		rail_all_attached(job->ctx);
}

void job_close(struct job *job)
{
	job_barrier(job);
	rail_close(job->ctx);
	job->ctx = NULL;
}

/* ---- Options that differ ------------------------------------------------ */

int job_run_mismatches(void (*body)(struct job *))
{
	static const struct job_mismatch cases[] = {
		{ .rails = { "all", "soft0:1" }, .says = "--rails" },
		{ .eager = { 8192, 4096 }, .says = "--eager" },
		{ .threshold = { 8192, 8193 }, .says = "--threshold" },
		{ .qps = { 1, 2 }, .says = "--qps" },
		{ .chunk = { 65536, 1 << 20 }, .says = "--chunk" },
		{ .subnet = true, .says = "rail 1 (soft0:2) is on another subnet" },
	};
	int bad = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		bad |= job_run(&(struct job_config){ 0 }, body, &cases[i], 0);
	return bad;
}

void job_open_mismatch(struct job *job)
{
	const struct job_mismatch *m = job->arg;

	job->rail.on_message = job_no_message;
	if (m->rails[0])
		job->settings.rails = m->rails[job->rank];
	if (m->eager[0])
		job->settings.eager = m->eager[job->rank];
	if (m->threshold[0])
		job->settings.threshold = m->threshold[job->rank];
	if (m->qps[0])
		job->settings.qps = m->qps[job->rank];
	if (m->chunk[0])
		job->settings.chunk = m->chunk[job->rank];
	job_open(job);
	if (m->subnet && job->rank == 1)
		job->ctx->rail[1].port->subnet[3] ^= 1;
}

void job_check_mismatch(const struct job *job, int rc, const char *text)
{
	const struct job_mismatch *m = job->arg;

	CHECK(rc < 0);
	if (!strstr(text, m->says) || strchr(text, '\n') != strrchr(text, '\n'))
		job_fail(__FILE__, __LINE__, "not one line with '%s': %s", m->says, text);
}
