/*
 * validate.c - validation of every received byte.
 *
 * Validation has runs of its own.  The send blocks of each run carry a pattern of this rank,
 * block and run; the receive blocks are first filled with bytes that are all wrong.  The
 * received data are compared with a pattern that is computed anew.
 */
#include "bench/validate.h"
#include "bench/buffers.h"
#include "bench/carrier.h"
#include "bench/ledger.h"
#include "bench/ranks.h"

#include <string.h>

#include "bench/pattern.h"

enum { RUNS_SMALL = 10, RUNS_LARGE = 3, GUARD_BYTE = 0xe7 };

/* The first wrong byte that a rank found. */
struct finding {
	int found, block;		/* -1: found by the carrier, in no block */
	unsigned long long offset;	/* count: just after the last block */
	int got, expected;
};

static struct pattern expected(const struct bench_job *job, int block)
{
	struct bench_origin o = job->def->expect(&job->b, block);

	/* Losses are unknown in advance: expect the peer's block. */
	if (o.rank == BENCH_LOST)
		o = bench_from_peer(&job->b, block);
	return o.rank == BENCH_SUM ? pattern_sum(job->b.size, o.block, job->got.generation) :
		pattern_of(o.rank, o.block, job->got.generation);
}

static void fill_blocks(struct bench_job *job)
{
	struct bench *b = &job->b;
	size_t bytes = (size_t)b->count;
	int sblocks = buffers_blocks(job, job->def->sblocks);
	int rblocks = buffers_blocks(job, job->def->rblocks);

	for (int i = 0; i < sblocks; i++)
		pattern_fill(pattern_of(b->rank, i, job->got.generation),
			     b->sbuf + (size_t)i * bytes,
			     bytes);
	for (int i = 0; i < rblocks; i++)
		pattern_fill_wrong(expected(job, i), b->rbuf + (size_t)i * bytes, bytes);
	memset(b->rbuf + (size_t)rblocks * bytes, GUARD_BYTE, BUFFERS_GUARD_BYTES);
}

static void check_blocks(const struct bench_job *job, struct finding *f)
{
	const struct bench *b = &job->b;
	size_t bytes = (size_t)b->count;
	int rblocks = buffers_blocks(job, job->def->rblocks);
	const unsigned char *guard = b->rbuf + (size_t)rblocks * bytes;

	for (int i = 0; i < rblocks && !f->found; i++) {
		struct pattern p = expected(job, i);
		size_t at = pattern_check(p, b->rbuf + (size_t)i * bytes, bytes);

		if (at < bytes && job->def->expect(b, i).rank != BENCH_LOST)
			*f = (struct finding){ 1, i, at, b->rbuf[(size_t)i * bytes + at],
					       pattern_byte(p, at) };
	}
	for (int i = 0; i < BUFFERS_GUARD_BYTES && !f->found; i++)
		if (guard[i] != GUARD_BYTE)
			*f = (struct finding){ 1, rblocks, (unsigned long long)i, guard[i],
					       GUARD_BYTE };
}

/* A single rank with an error reports it to rank 0, which prints it. */
static bool all_pass(const struct bench_job *job, const struct bench_column *way, uint64_t bytes,
		     struct finding *f)
{
	int who = (int)ranks_max(job, f->found ? (uint64_t)job->b.rank + 1 : 0);

	if (who == 0)
		return true;
	MPI_Bcast(f, sizeof(*f), MPI_BYTE, who - 1, job->where.comm);
	if (f->block < 0)
		rg_error("validation failed: %s, %llu bytes: rank %d: operations of the peer have "
			 "left a wrong value", way->name, (unsigned long long)bytes, who - 1);
	else
		rg_error("validation failed: %s, %llu bytes: rank %d, block %d, byte %llu: got "
			 "0x%02x, expected 0x%02x", way->name, (unsigned long long)bytes, who - 1,
			 f->block, f->offset, (unsigned)f->got, (unsigned)f->expected);
	return false;
}

int validate_way(struct bench_job *job, const struct bench_column *way, uint64_t bytes)
{
	struct finding f = { .found = 0 };
	int runs = bytes <= BENCH_SMALL_BYTES ? RUNS_SMALL : RUNS_LARGE;

	if (!job->opt.validate || !job->def->expect)
		return -1;
	buffers_set(job, way, bytes, true);
	for (int i = 0; i < runs; i++) {
		job->got.generation++;
		if (!place_runs(job))
			continue;
		fill_blocks(job);
		carrier_begin(job, 1);
		job->def->run(&job->b);
		if (!carrier_end(job, NULL) && !f.found)
			f = (struct finding){ 1, -1, 0, 0, 0 };
		check_blocks(job, &f);
	}
	job->got.wrong = f.found;
	ledger_take(job, NULL);
	return all_pass(job, way, bytes, &f);
}
