/*
 * learn_suite.c - the same collectives again and again, while the layer tries their algorithms and
 * settles: every call moves the right bytes, and a sum has the same bits each time.
 */
#include <malloc.h>

#include "suite.h"

enum {
	CALLS = 240,			/* more than the layer takes to settle */
	BLOCK = 20000,			/* bytes */
	DOUBLES = 9000,
};

struct buffers {
	unsigned char *in, *out;
	double *terms, *sum, *first;
};

static void buffers_open(struct buffers *b)
{
	const size_t all = (size_t)suite_size * BLOCK;

	b->in = malloc(all);
	b->out = malloc(all);
	b->terms = malloc(DOUBLES * sizeof(double));
	b->sum = malloc(DOUBLES * sizeof(double));
	b->first = malloc(DOUBLES * sizeof(double));
	CHECK(b->in && b->out && b->terms && b->sum && b->first);
	for (int i = 0; i < DOUBLES; i++)
		b->terms[i] = 1.0 / (1 + i + suite_rank * 7919);
}

static void buffers_close(struct buffers *b)
{
	free(b->in);
	free(b->out);
	free(b->terms);
	free(b->sum);
	free(b->first);
}

static void spread(MPI_Comm comm, struct buffers *b, unsigned call)
{
	const int root = (int)call % suite_size;

	suite_blank(b->out, BLOCK);
	if (suite_rank == root)
		suite_fill(b->out, BLOCK, root, call);
	MPI_Bcast(b->out, BLOCK, MPI_BYTE, root, comm);
	suite_verify(b->out, BLOCK, BLOCK, root, call);
}

static void gather(MPI_Comm comm, struct buffers *b, unsigned call)
{
	suite_fill(b->in, BLOCK, suite_rank, call);
	suite_blank(b->out, (size_t)suite_size * BLOCK);
	MPI_Allgather(b->in, BLOCK, MPI_BYTE, b->out, BLOCK, MPI_BYTE, comm);
	for (int r = 0; r < suite_size; r++)
		suite_verify(b->out + r * BLOCK, BLOCK, BLOCK, r, call);
}

/* The message of a rank to another is a number of both. */
static unsigned number(unsigned call, int to)
{
	return call * 64 + (unsigned)to;
}

static void trade(MPI_Comm comm, struct buffers *b, unsigned call)
{
	for (int r = 0; r < suite_size; r++)
		suite_fill(b->in + r * BLOCK, BLOCK, suite_rank, number(call, r));
	suite_blank(b->out, (size_t)suite_size * BLOCK);
	MPI_Alltoall(b->in, BLOCK, MPI_BYTE, b->out, BLOCK, MPI_BYTE, comm);
	for (int r = 0; r < suite_size; r++)
		suite_verify(b->out + r * BLOCK, BLOCK, BLOCK, r, number(call, suite_rank));
}

static void reduce(MPI_Comm comm, struct buffers *b, unsigned call)
{
	const size_t bytes = DOUBLES * sizeof(double);

	MPI_Allreduce(b->terms, b->sum, DOUBLES, MPI_DOUBLE, MPI_SUM, comm);
	if (call == 0)
		memcpy(b->first, b->sum, bytes);
	CHECK(!memcmp(b->first, b->sum, bytes), "other bits in call %u", call);
}

static void all(MPI_Comm comm, struct buffers *b, unsigned call)
{
	spread(comm, b, call);
	gather(comm, b, call);
	trade(comm, b, call);
	reduce(comm, b, call);
}

static void again(MPI_Comm comm)
{
	struct buffers b;

	buffers_open(&b);
	for (unsigned call = 0; call < CALLS; call++)
		all(comm, &b, call);
	buffers_close(&b);
}

/* Under `railgauge exec` a ledger tells of this one: it lives until the end. */
static void world(MPI_Comm comm)
{
	(void)comm;
	again(MPI_COMM_WORLD);
}

/* A duplicate begins anywhere in its parent's race; both go on in turns. */
static void duplicates(MPI_Comm comm)
{
	struct buffers b;
	MPI_Comm more;

	buffers_open(&b);
	for (unsigned call = 0; call < CALLS; call += 6) {
		all(comm, &b, call);
		MPI_Comm_dup(comm, &more);
		for (unsigned i = 1; i < 6; i++)
			all(i % 2 ? more : comm, &b, call + i);
		MPI_Comm_free(&more);
	}
	buffers_close(&b);
}

/* Communicators of all ranks, one after the other: none of them sees the end of a race that it begins. */
static void splits_in_a_loop(MPI_Comm comm)
{
	struct buffers b;
	MPI_Comm part;

	buffers_open(&b);
	for (unsigned call = 0; call < CALLS; call += 4) {
		MPI_Comm_split(comm, 0, suite_rank, &part);
		for (unsigned i = 0; i < 4; i++)
			all(part, &b, call + i);
		MPI_Comm_free(&part);
	}
	buffers_close(&b);
}

/* The sum of two ranks is that of all pairs with the same terms. */
static void pair_sum(MPI_Comm comm, int left, unsigned call)
{
	const int color = suite_rank == left || suite_rank == left + 1 ? 0 : MPI_UNDEFINED;
	static double term[DOUBLES], sum[DOUBLES];
	MPI_Comm pair;

	MPI_Comm_split(comm, color, suite_rank, &pair);
	if (pair == MPI_COMM_NULL)
		return;
	for (unsigned i = 0; i < CALLS / 6; i++) {
		for (int d = 0; d < DOUBLES; d++)
			term[d] = suite_rank == left ? (double)d : (double)(call + i);
		MPI_Allreduce(term, sum, DOUBLES, MPI_DOUBLE, MPI_SUM, pair);
		for (int d = 0; d < DOUBLES; d++)
			CHECK(sum[d] == (double)d + (double)(call + i), "element %d of call %u", d, call + i);
	}
	MPI_Comm_free(&pair);
}

/* Ranks of a pair have been in other pairs before, so that they know different things. */
static void pairs_of_unlike_ranks(MPI_Comm comm)
{
	for (unsigned call = 0; call < 6; call++) {
		pair_sum(comm, 0, call);
		pair_sum(comm, 0, call);
		pair_sum(comm, suite_size - 2, call);
		pair_sum(comm, (int)call % (suite_size - 1), call);
	}
}

/* Sizes of one class in turns, and parts of the ranks beside all of them. */
static void sizes_in_turns(MPI_Comm comm)
{
	const unsigned rows = 40;
	struct buffers b;
	MPI_Comm part;

	buffers_open(&b);
	MPI_Comm_split(comm, suite_rank % 2, suite_rank, &part);
	for (unsigned call = 0; call < CALLS; call++) {
		const int bytes = BLOCK - (int)(call / 3 % rows) * 97 * (call % 2 ? 1 : 0);

		suite_fill(b.in, (size_t)bytes, 0, call);
		if (suite_rank != 0)
			suite_blank(b.in, BLOCK);
		MPI_Bcast(b.in, bytes, MPI_BYTE, 0, comm);
		suite_verify(b.in, (size_t)bytes, (size_t)bytes, 0, call);
		MPI_Allreduce(b.terms, b.sum, DOUBLES, MPI_DOUBLE, MPI_SUM, part);
		if (call == 0)
			memcpy(b.first, b.sum, DOUBLES * sizeof(double));
		CHECK(!memcmp(b.first, b.sum, DOUBLES * sizeof(double)), "call %u", call);
	}
	MPI_Comm_free(&part);
	buffers_close(&b);
}

/* ---- Calls that are refused ------------------------------------------------------------------- */

/*
 * The last rank from the root on passes nothing on, so the others complete such a call without it, if
 * what they send it is of eager size (eager=64K,threshold=64K).
 */
static void spread_refused(MPI_Comm comm, struct buffers *b, unsigned call)
{
	const int root = (int)(call / 3) % suite_size, last = (root + suite_size - 1) % suite_size;
	const int bytes = suite_size > 2 ? BLOCK : BLOCK / 4;	/* two ranks: one message */
	int rc;

	if (suite_rank == last) {
		rc = call % 2 ? MPI_Bcast(b->out, -1, MPI_BYTE, root, comm) :
				MPI_Bcast(b->out, bytes, MPI_DATATYPE_NULL, root, comm);
		CHECK(rc != MPI_SUCCESS, "call %u", call);
		return;
	}
	suite_blank(b->out, BLOCK);
	if (suite_rank == root)
		suite_fill(b->out, (size_t)bytes, root, call);
	rc = MPI_Bcast(b->out, bytes, MPI_BYTE, root, comm);
	CHECK(rc == MPI_SUCCESS, "call %u", call);
	suite_verify(b->out, (size_t)bytes, (size_t)bytes, root, call);
}

/* Calls that all ranks refuse, each for a reason of its own. */
static void all_refused(MPI_Comm comm, struct buffers *b, unsigned call)
{
	const MPI_Datatype type = suite_rank ? MPI_DATATYPE_NULL : MPI_BYTE;
	const int count = suite_rank ? BLOCK : -1;

	CHECK(MPI_Bcast(b->out, count, type, 0, comm) != MPI_SUCCESS, "call %u", call);
	CHECK(MPI_Allgather(b->in, count, type, b->out, count, type, comm) != MPI_SUCCESS);
	CHECK(MPI_Alltoall(b->in, count, type, b->out, count, type, comm) != MPI_SUCCESS);
	CHECK(MPI_Allreduce(b->terms, b->sum, count, type, MPI_SUM, comm) != MPI_SUCCESS);
}

/*
 * A rank whose call is refused stays at the same point of a race as the others; at any point of it,
 * before the first call, too.
 */
static void refused(MPI_Comm comm)
{
	struct buffers b;
	MPI_Comm more;

	buffers_open(&b);
	for (unsigned distance = 1; distance < 20; distance += 12) {
		MPI_Comm_dup(comm, &more);
		for (unsigned call = 0; call < CALLS; call++) {
			if (call % distance == 0)
				spread_refused(more, &b, call);
			if (call % 50 == distance)
				all_refused(more, &b, call);
			all(more, &b, call);
		}
		MPI_Comm_free(&more);
	}
	buffers_close(&b);
}

/*
 * Calls that all ranks refuse, and one rank alone: nothing takes what they leave behind, and it is not
 * kept.  The barrier waits for messages.
 */
static void refused_for_ever(MPI_Comm comm)
{
	enum { REFUSED = 1500, BESIDE = 50, KEPT = 64 << 10 };
	const bool last = suite_rank == suite_size - 1;
	size_t before = 0;
	char byte = 0;

	for (int call = 0; call < 2 * REFUSED; call++) {
		const bool mine = call < REFUSED || last;

		CHECK((MPI_Bcast(&byte, mine ? -1 : 1, MPI_BYTE, 0, comm) != MPI_SUCCESS) == mine);
		if (call % BESIDE == 0)
			MPI_Barrier(comm);
		if (call == BESIDE)
			before = mallinfo2().uordblks;
	}
	MPI_Barrier(comm);
	CHECK(mallinfo2().uordblks < before + KEPT, "%zu bytes more", mallinfo2().uordblks - before);
}

static const struct suite_case cases[] = {
	{.name = "again", .run = again, .min_ranks = 1},
	{.name = "world", .run = world, .min_ranks = 1},
	{.name = "duplicates", .run = duplicates, .min_ranks = 1},
	{.name = "splits_in_a_loop", .run = splits_in_a_loop, .min_ranks = 1},
	{.name = "pairs_of_unlike_ranks", .run = pairs_of_unlike_ranks, .min_ranks = 2},
	{.name = "sizes_in_turns", .run = sizes_in_turns, .min_ranks = 1},
	{.name = "refused", .run = refused, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "a block that a refused call leaves behind is the next call's", .collective = true},
	{.name = "refused_for_ever", .run = refused_for_ever, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "a byte that a refused call leaves behind is the next call's", .collective = true},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
