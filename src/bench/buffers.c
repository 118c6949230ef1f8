/*
 * buffers.c - memory for messages: allocated once, in the way of --buffers.  The default is malloc,
 * as in most programs; the devices know memory of MPI_Alloc_mem.
 */
#include "bench/buffers.h"
#include "bench/options.h"
#include "bench/place.h"
#include "bench/ranks.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "topo/topo.h"

/* Limit for the blocks of a window that are validated at once. */
#define VALIDATE_BYTES ((size_t)64 << 20)

static int window_validated(const struct bench_job *job, uint64_t bytes)
{
	uint64_t fit = bytes ? VALIDATE_BYTES / bytes : job->opt.window;

	return (int)(fit < 2 ? 2 : fit < job->opt.window ? fit : job->opt.window);
}

int buffers_blocks(const struct bench_job *job, int (*blocks)(const struct bench *b))
{
	return blocks ? blocks(&job->b) : 0;
}

static size_t bytes_needed(const struct bench_job *job, int (*blocks)(const struct bench *b))
{
	size_t count = (size_t)buffers_blocks(job, blocks) * (size_t)job->b.count;

	if (job->def->layout != BENCH_ALL && job->b.step == 0 && count)
		count = (size_t)job->b.count;
	return count;
}

/* ---- A buffer ------------------------------------------------------------------- */

static size_t pages_of(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Allocate whole pages of a NUMA node; *refused: the machine has no such node. */
static unsigned char *bound_alloc(const struct topo *t, size_t bytes, enum bench_memory kind,
				  bool *refused)
{
	enum topo_side side = kind == BENCH_FAR ? TOPO_FAR : TOPO_NEAR;
	void *at = mmap(NULL, pages_of(bytes), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (topo_bind(t, at, pages_of(bytes), side) == 0)
		return at;
	munmap(at, pages_of(bytes));
	*refused = true;
	return NULL;
}

/* Allocate and touch a buffer, so that timed runs find all pages.  t: for BENCH_NEAR, BENCH_FAR. */
static unsigned char *buffer_alloc(const struct topo *t, size_t bytes, enum bench_memory kind,
				   bool *refused)
{
	unsigned char *buffer = NULL;

	switch (kind) {
	case BENCH_MALLOC:
		buffer = malloc(bytes);
		break;
	case BENCH_ARENA:
		if (MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &buffer) != MPI_SUCCESS)
			buffer = NULL;
		break;
	default:
		buffer = t ? bound_alloc(t, bytes, kind, refused) : NULL;
	}
	if (buffer)
		memset(buffer, 0, bytes);
	return buffer;
}

static void buffer_free(unsigned char *buffer, size_t bytes, enum bench_memory kind)
{
	if (!buffer)
		return;
	if (kind == BENCH_MALLOC)
		free(buffer);
	else if (kind == BENCH_ARENA)
		MPI_Free_mem(buffer);
	else
		munmap(buffer, pages_of(bytes));
}

const char *buffers_text(const struct bench_job *job)
{
	static const char *const text[] = {
		[BENCH_MALLOC] = "malloc", [BENCH_ARENA] = "arena (MPI_Alloc_mem)",
		[BENCH_NEAR] = "near (the NUMA node of each rank)",
		[BENCH_FAR] = "far (the NUMA node farthest from each rank)",
	};

	return text[job->opt.buffers];
}

/* ---- All of them ---------------------------------------------------------------- */

/* Does this rank record samples, in a tournament in any of its rounds? */
static bool times(const struct bench_job *job)
{
	return job->def->layout == BENCH_TOURNAMENT ? place_plays(job) : place_times(job);
}

static void samples_alloc(struct bench_job *job, bool *failed)
{
	int series = job->def->tune ? BENCH_CANDIDATES : job->where.way_count;
	uint64_t most = 0;

	for (uint64_t s = job->opt.sizes.min; s <= job->opt.sizes.max; s = options_next_size(s))
		if (options_counts(job, s).iterations > most)
			most = options_counts(job, s).iterations;
	for (int w = 0; w < series && times(job); w++) {
		job->got.samples[w] = malloc(most * sizeof(uint64_t));
		job->got.room[w] = most;
		*failed = *failed || !job->got.samples[w];
	}
}

/* Bytes for the largest size, validated or timed. */
static void bytes_find_here(struct bench_job *job, size_t *send, size_t *receive)
{
	for (uint64_t s = job->opt.sizes.min; s <= job->opt.sizes.max; s = options_next_size(s))
		for (int validating = 0; validating <= job->opt.validate; validating++) {
			size_t needed;

			buffers_set(job, &job->where.way[0], s, validating);
			needed = bytes_needed(job, job->def->sblocks);
			*send = needed > *send ? needed : *send;
			needed = bytes_needed(job, job->def->rblocks);
			*receive = needed > *receive ? needed : *receive;
		}
}

static void bytes_find(struct bench_job *job, size_t *send, size_t *receive)
{
	double x;

	if (!job->opt.axis)
		bytes_find_here(job, send, receive);
	for (int i = 0; job->opt.axis && job->opt.axis->value(i, &x); i++) {
		job->opt.axis->set(x);
		bytes_find_here(job, send, receive);
	}
}

static int unit_of(const struct bench_job *job)
{
	return job->def->unit ? job->def->unit : 1;
}

/* Allocate counts and displacements, which are ints. */
static int lists_open(struct bench_job *job, bool *failed)
{
	uint64_t most = (uint64_t)INT_MAX / (uint64_t)job->b.size * (uint64_t)unit_of(job);

	if (!job->def->lists)
		return 0;
	if (options_last_size(job) > most) {
		rg_error("--sizes: blocks of %" PRIu64 " bytes for %d ranks lie further apart than "
			 "an int can say (accepted: up to %" PRIu64 ")", options_last_size(job),
			 job->b.size, most);
		return RG_EXIT_USAGE;
	}
	job->b.counts = malloc(2 * (size_t)job->b.size * sizeof(int));
	job->b.displs = job->b.counts + job->b.size;
	*failed = *failed || !job->b.counts;
	return 0;
}

/*
 * Allocate both buffers; an exit code on all ranks if a rank cannot have the memory of --buffers.
 */
static int buffers_alloc(struct bench_job *job)
{
	const enum bench_memory kind = (enum bench_memory)job->opt.buffers;
	const bool bound = kind == BENCH_NEAR || kind == BENCH_FAR;
	struct topo *t = NULL;
	bool refused = false;

	if (bound)
		topo_open(TOPO_RAILS, &t);	/* prints the error; allocation then fails */
	job->b.sbuf = buffer_alloc(t, job->sbuf_bytes, kind, &refused);
	job->b.rbuf = buffer_alloc(t, job->rbuf_bytes, kind, &refused);
	topo_close(t);
	if (!bound || !ranks_max(job, refused))
		return 0;
	rg_error("--buffers %s: a node has %s (accepted: malloc, arena%s)",
		 kind == BENCH_FAR ? "far" : "near",
		 kind == BENCH_FAR ? "no other NUMA node than the rank's" :
				     "no NUMA node that memory can be bound to",
		 kind == BENCH_FAR ? ", near" : "");
	return RG_EXIT_USAGE;
}

int buffers_open(struct bench_job *job)
{
	size_t send = 0, receive = 0;
	bool failed = false;
	int rc = lists_open(job, &failed);

	if (rc)
		return rc;

	/* In a tournament each rank is on either side in turn. */
	for (int side = 0; job->def->layout == BENCH_TOURNAMENT && side < 2; side++) {
		job->b.side = side;
		bytes_find(job, &send, &receive);
	}
	if (job->def->layout != BENCH_TOURNAMENT)
		bytes_find(job, &send, &receive);
	/* Running out of memory aborts inside some MPI libraries, unless told to return. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	job->sbuf_bytes = send + BUFFERS_GUARD_BYTES;
	job->rbuf_bytes = receive + BUFFERS_GUARD_BYTES;
	rc = buffers_alloc(job);
	ranks_guard(MPI_COMM_WORLD);
	if (rc)
		return rc;
	job->b.request = malloc((2 * (size_t)job->opt.window + 1) * sizeof(job->b.request[0]));
	samples_alloc(job, &failed);
	failed = failed || !job->b.sbuf || !job->b.rbuf || !job->b.request;
	if (ranks_max(job, failed)) {
		rg_error("no memory: messages up to %llu bytes need %zu bytes of buffers per rank "
			 "(use smaller --sizes or --iterations)",
			 (unsigned long long)job->opt.sizes.max, send + receive);
		return RG_EXIT_FAULT;
	}
	return 0;
}

void buffers_close(struct bench_job *job)
{
	for (int w = 0; w < REPORT_WAYS_MAX; w++)
		free(job->got.samples[w]);
	for (int w = 0; w < REPORT_WAYS_MAX; w++)
		free(job->got.batches[w].list);
	free(job->b.request);
	free(job->b.counts);
	buffer_free(job->b.sbuf, job->sbuf_bytes, (enum bench_memory)job->opt.buffers);
	buffer_free(job->b.rbuf, job->rbuf_bytes, (enum bench_memory)job->opt.buffers);
}

void buffers_set(struct bench_job *job, const struct bench_column *way, uint64_t bytes,
		 bool validating)
{
	struct bench *b = &job->b;

	b->comm = way->comm;
	b->way = (int)way->id;
	b->variant = way->variant;
	b->validating = validating;
	b->count = (int)bytes;
	b->window = validating ? window_validated(job, bytes) : (int)job->opt.window;
	b->step = validating || (job->def->apart && job->def->apart()) ? bytes : 0;
	for (int i = 0; b->counts && i < b->size; i++) {
		b->counts[i] = b->count / unit_of(job);
		b->displs[i] = i * b->counts[i];
	}
	if (job->def->prepare && b->sbuf)
		job->def->prepare(b);
}
