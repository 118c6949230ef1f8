/*
 * size_suite.c - messages, elements, displacements and numbers of requests that an int, or 32 bits,
 * cannot count.  Most of their memory is not there (size_memory.h).
 *
 *	SIZE_LONG in the environment: 8 GiB, too
 */
#include "config.h"		/* _GNU_SOURCE */
#include "size_memory.h"

#include <limits.h>
#include <sys/mman.h>

/* ---- Types ----------------------------------------------------------------------------------- */

/* The usual way to send more than INT_MAX bytes: as many blocks of INT_MAX as there are, and a rest. */
static MPI_Datatype big_type(size_t bytes)
{
	const int blocks = (int)(bytes / INT_MAX), rest = (int)(bytes % INT_MAX);
	MPI_Aint places[2] = {0, (MPI_Aint)blocks * INT_MAX};
	MPI_Datatype types[2], made;
	int ones[2] = {1, 1};

	MPI_Type_vector(blocks, INT_MAX, INT_MAX, MPI_BYTE, &types[0]);
	MPI_Type_contiguous(rest, MPI_BYTE, &types[1]);
	MPI_Type_create_struct(2, ones, places, types, &made);
	MPI_Type_free(&types[0]);
	MPI_Type_free(&types[1]);
	MPI_Type_commit(&made);
	return made;
}

/* All of a message in blocks with gaps, as one element: a structure of vectors, which are not alike. */
static MPI_Datatype gapped_type(size_t bytes)
{
	const int blocks = (int)(bytes / gapped.block), some = blocks / 3;
	const MPI_Aint turn = (MPI_Aint)(gapped.block + gapped.gap);
	int ones[3] = {1, 1, (int)(bytes % gapped.block)};
	MPI_Aint places[3] = {0, some * turn, blocks * turn};
	MPI_Datatype types[3] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_BYTE}, made;

	MPI_Type_create_hvector(some, (int)gapped.block, turn, MPI_BYTE, &types[0]);
	MPI_Type_create_hvector(blocks - some, (int)gapped.block, turn, MPI_BYTE, &types[1]);
	MPI_Type_create_struct(3, ones, places, types, &made);
	MPI_Type_free(&types[0]);
	MPI_Type_free(&types[1]);
	MPI_Type_commit(&made);
	return made;
}

static MPI_Datatype type_of(struct shape s, size_t bytes)
{
	return s.block ? gapped_type(bytes) : big_type(bytes);
}

static bool is_long(void)
{
	return getenv("SIZE_LONG");
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* The counts that an int cannot hold are undefined, and the others say them. */
static void status_check(MPI_Status *st, size_t bytes, MPI_Datatype type)
{
	MPI_Count elements = -1;
	int count = -1;

	CHECK(st->MPI_SOURCE == 0 && st->MPI_TAG == 7, "source %d, tag %d", st->MPI_SOURCE, st->MPI_TAG);
	MPI_Get_elements_x(st, MPI_BYTE, &elements);
	CHECK((size_t)elements == bytes, "%lld bytes, not %zu", (long long)elements, bytes);
	MPI_Get_count(st, MPI_BYTE, &count);
	CHECK(count == (bytes > INT_MAX ? MPI_UNDEFINED : (int)bytes), "count %d", count);
	MPI_Get_count(st, type, &count);
	CHECK(count == 1, "%d elements", count);
}

/* From rank 0 to rank 1, one element each way of putting it; blocking, and not. */
static void one_element(MPI_Comm comm, struct shape from, struct shape to, size_t bytes)
{
	struct memory m;
	MPI_Datatype type;
	MPI_Request q;
	MPI_Status st;

	if (suite_rank > 1)
		return;
	m = memory_make(suite_rank ? to : from, bytes, bytes);
	type = type_of(m.shape, bytes);
	memory_limit(true);
	if (suite_rank == 0) {
		memory_fill(&m, 1);
		MPI_Ssend(m.at, 1, type, 1, 7, comm);
	} else {
		memory_blank(&m);
		MPI_Irecv(m.at, 1, type, 0, 7, comm, &q);
		MPI_Wait(&q, &st);
		status_check(&st, bytes, type);
		memory_verify(&m, 0, 1);
	}
	memory_limit(false);
	MPI_Type_free(&type);
	memory_free(&m);
}

static void structure_2g(MPI_Comm comm)
{
	one_element(comm, plain, plain, 2 * GIB + 12345);
}

static void gaps_2g(MPI_Comm comm)
{
	one_element(comm, gapped, gapped, 2 * GIB + 12345);
}

static void gaps_to_plain(MPI_Comm comm)
{
	if (is_long())
		one_element(comm, gapped, plain, 8 * GIB + 4321);
}

static void plain_to_gaps(MPI_Comm comm)
{
	if (is_long())
		one_element(comm, plain, gapped, 8 * GIB + 4321);
}

/* More than INT_MAX bytes, and more than UINT_MAX, of few elements of a short type. */
static void count_4g(MPI_Comm comm)
{
	const size_t bytes = (is_long() ? 8 : 4) * GIB + 12000;
	const int count = (int)(bytes / sizeof(double));
	struct memory m;
	int got = -1;
	MPI_Count elements;
	MPI_Status st;

	if (suite_rank > 1)
		return;
	m = memory_make(plain, bytes, bytes);
	memory_limit(true);
	if (suite_rank == 0) {
		memory_fill(&m, 2);
		MPI_Send(m.at, count, MPI_DOUBLE, 1, 7, comm);
	} else {
		memory_blank(&m);
		MPI_Probe(0, 7, comm, &st);
		MPI_Get_count(&st, MPI_DOUBLE, &got);
		CHECK(got == count, "probed: %d elements, not %d", got, count);
		MPI_Recv(m.at, count, MPI_DOUBLE, 0, 7, comm, &st);
		MPI_Get_count(&st, MPI_DOUBLE, &got);
		CHECK(got == count, "%d elements, not %d", got, count);
		MPI_Get_elements_x(&st, MPI_BYTE, &elements);
		CHECK((size_t)elements == bytes, "%lld bytes, not %zu", (long long)elements, bytes);
		memory_verify(&m, 0, 2);
	}
	memory_limit(false);
	memory_free(&m);
}

/* A message that ends inside an element, beyond its first 2 GiB. */
static void partial(MPI_Comm comm)
{
	const size_t bytes = 2 * GIB + 50 * MIB + 777, room = 3 * GIB;
	MPI_Datatype type = type_of(suite_rank ? gapped : plain, suite_rank ? room : bytes);
	MPI_Count elements;
	struct memory m;
	MPI_Status st;
	int count;

	if (suite_rank == 0) {
		m = memory_make(plain, bytes, bytes);
		memory_fill(&m, 3);
		MPI_Send(m.at, 1, type, 1, 7, comm);
		memory_free(&m);
	} else if (suite_rank == 1) {
		m = memory_make(gapped, bytes, room);
		memory_blank(&m);
		MPI_Recv(m.at, 1, type, 0, 7, comm, &st);
		MPI_Get_elements_x(&st, MPI_BYTE, &elements);
		CHECK((size_t)elements == bytes, "%lld bytes, not %zu", (long long)elements, bytes);
		MPI_Get_count(&st, type, &count);
		CHECK(count == MPI_UNDEFINED, "%d elements", count);
		memory_verify(&m, 0, 3);
		memory_free(&m);
	}
	MPI_Type_free(&type);
}

/* A receive with less room than a long message has: an error, and nothing else is written. */
static void truncated(MPI_Comm comm)
{
	const size_t bytes = 2 * GIB + 12345, room = 40 * MIB + 99;
	MPI_Datatype type = type_of(suite_rank ? gapped : plain, suite_rank ? room : bytes);
	struct memory m;
	int rc, error;

	if (suite_rank == 0) {
		m = memory_make(plain, bytes, bytes);
		memory_fill(&m, 4);
		MPI_Send(m.at, 1, type, 1, 7, comm);
		memory_free(&m);
	} else if (suite_rank == 1) {
		m = memory_make(gapped, bytes, room);
		memory_blank(&m);
		rc = MPI_Recv(m.at, 1, type, 0, 7, comm, MPI_STATUS_IGNORE);
		MPI_Error_class(rc, &error);
		CHECK(error == MPI_ERR_TRUNCATE, "error class %d", error);
		memory_verify(&m, 0, 4);
		memory_free(&m);
	}
	MPI_Type_free(&type);
}

/* ---- Counts that cannot be ------------------------------------------------------------------- */

/* More bytes than 63 bits count: refused where it is sent; a receive of as many takes what comes. */
static void too_long(MPI_Comm comm)
{
	MPI_Datatype block, type;
	char byte = (char)suite_rank;
	int rc, count;
	MPI_Status st;

	MPI_Type_contiguous(1 << 30, MPI_BYTE, &block);
	MPI_Type_contiguous(16, block, &type);
	MPI_Type_commit(&type);
	if (suite_rank == 0) {
		rc = MPI_Send(&byte, 1 << 30, type, 1, 7, comm);
		CHECK(rc != MPI_SUCCESS);
		rc = MPI_Send(&byte, INT_MAX, type, 1, 7, comm);
		CHECK(rc != MPI_SUCCESS);
		byte = 77;
		MPI_Send(&byte, 1, MPI_BYTE, 1, 7, comm);
	} else if (suite_rank == 1) {
		rc = MPI_Recv(&byte, 1 << 30, type, 0, 7, comm, &st);
		MPI_Get_count(&st, MPI_BYTE, &count);
		CHECK(rc == MPI_SUCCESS && byte == 77 && count == 1, "%d: %d, %d bytes", rc, byte, count);
	}
	MPI_Type_free(&block);
	MPI_Type_free(&type);
}

/* More requests at once than 2^20: of one rank, for its own messages. */
static void requests(MPI_Comm comm)
{
	enum { MANY = (1 << 20) + 3000 };
	MPI_Request *q;
	int *in, i;

	if (suite_rank)
		return;
	q = malloc(MANY * sizeof(*q));
	in = malloc(MANY * sizeof(*in));
	CHECK(q && in);
	for (i = 0; i < MANY; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, 0, 7, comm, &q[i]);
	for (i = 0; i < MANY; i++)
		MPI_Send(&i, 1, MPI_INT, 0, 7, comm);
	MPI_Waitall(MANY, q, MPI_STATUSES_IGNORE);
	for (i = 0; i < MANY; i++)
		CHECK(in[i] == i, "request %d has got %d", i, in[i]);
	free(q);
	free(in);
}

/* ---- Collectives ----------------------------------------------------------------------------- */

/* The root has its data with gaps, and the others in one piece; or the other way round. */
static void bcast_one(MPI_Comm comm, size_t bytes, struct shape at_root, struct shape elsewhere)
{
	struct memory m = memory_make(suite_rank ? elsewhere : at_root, bytes, bytes);
	MPI_Datatype type = type_of(m.shape, bytes);

	if (suite_rank == 0)
		memory_fill(&m, 5);
	else
		memory_blank(&m);
	memory_limit(true);
	MPI_Bcast(m.at, 1, type, 0, comm);
	memory_limit(false);
	if (suite_rank)
		memory_verify(&m, 0, 5);
	MPI_Type_free(&type);
	memory_free(&m);
}

/* Between more than two ranks, long messages go in many pieces, which take their time. */
static void bcast(MPI_Comm comm)
{
	bcast_one(comm, 40 * MIB + 12345, gapped, plain);
	bcast_one(comm, 40 * MIB + 12345, plain, gapped);
	if (suite_size == 2 || is_long())
		bcast_one(comm, 2 * GIB + 12345, gapped, plain);
}

/* Displacements that are more than 2 GiB and 4 GiB away, of little data. */
static void displacements(MPI_Comm comm)
{
	enum { FAR = 600000000, EACH = 100, RANKS = 8 };
	const size_t room = (size_t)FAR * (RANKS + 1) * sizeof(double);
	int counts[RANKS], displs[RANKS], i, k;
	double own[EACH], *all;

	CHECK(suite_size <= RANKS);
	all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(all != MAP_FAILED);
	for (i = 0; i < suite_size; i++) {
		counts[i] = EACH;
		displs[i] = i < 3 ? (i + 1) * FAR : FAR + i * EACH;
	}
	for (k = 0; k < EACH; k++)
		own[k] = suite_rank * 1000 + k;
	MPI_Allgatherv(own, EACH, MPI_DOUBLE, all, counts, displs, MPI_DOUBLE, comm);
	for (i = 0; i < suite_size; i++)
		for (k = 0; k < EACH; k++)
			CHECK(all[(size_t)displs[i] + (size_t)k] == i * 1000 + k, "of rank %d, %d", i, k);
	MPI_Gatherv(own, EACH, MPI_DOUBLE, all, counts, displs, MPI_DOUBLE, 0, comm);
	for (k = 0; k < EACH; k++)
		own[k] = -1;
	MPI_Scatterv(all, counts, displs, MPI_DOUBLE, own, EACH, MPI_DOUBLE, 0, comm);
	for (k = 0; k < EACH; k++)
		CHECK(own[k] == suite_rank * 1000 + k, "scattered: %d is %f", k, own[k]);
	for (i = 0; i < suite_size; i++)
		for (k = 0; k < EACH; k++)
			all[(size_t)displs[i] + (size_t)k] = suite_rank * 1000 + i;
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DOUBLE, all, counts, displs, MPI_DOUBLE, comm);
	for (i = 0; i < suite_size; i++)
		for (k = 0; k < EACH; k++)
			CHECK(all[(size_t)displs[i] + (size_t)k] == i * 1000 + suite_rank,
			      "of rank %d, %d is %f", i, k, all[(size_t)displs[i] + (size_t)k]);
	munmap(all, room);
}

/* Blocks in place, one of them long, with gaps: they take turns with no copy of all. */
static void in_place(MPI_Comm comm)
{
	enum { RANKS = 8, SHORT = 1000 };
	const size_t longer = 40 * MIB + 24;		/* whole doubles */
	int counts[RANKS], displs[RANKS], i, n = suite_size;
	MPI_Datatype pairs;
	double *at;
	size_t k, place = 0;

	CHECK(n <= RANKS);
	MPI_Type_create_resized(MPI_DOUBLE, 0, 2 * sizeof(double), &pairs);
	MPI_Type_commit(&pairs);
	/* Long between ranks 0 and 1. */
	for (i = 0; i < n; i++) {
		counts[i] = suite_rank + i == 1 ? (int)(longer / sizeof(double)) : SHORT;
		displs[i] = (int)place;
		place += (size_t)counts[i];
	}
	at = malloc(2 * place * sizeof(double));
	CHECK(at);
	for (i = 0; i < n; i++)
		for (k = 0; k < (size_t)counts[i]; k++) {
			at[2 * ((size_t)displs[i] + k)] = (double)k + 1e9 * suite_rank + 1e10 * i;
			at[2 * ((size_t)displs[i] + k) + 1] = -1;
		}
	memory_limit(true);
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, pairs, at, counts, displs, pairs, comm);
	memory_limit(false);
	for (i = 0; i < n; i++)
		for (k = 0; k < (size_t)counts[i]; k++) {
			const double *d = &at[2 * ((size_t)displs[i] + k)];

			CHECK(d[0] == (double)k + 1e9 * i + 1e10 * suite_rank && d[1] == -1,
			      "of rank %d, %zu is %f, the one between %f", i, k, d[0], d[1]);
		}
	/* All blocks are long: of one rank alone, too. */
	for (k = 0; k < place; k++)
		at[k] = (double)k + 1e9 * suite_rank;
	if (n <= 2)
		MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DOUBLE, at, (int)(place / (size_t)n), MPI_DOUBLE, comm);
	for (i = 0; i < n && n <= 2; i++)
		for (k = 0; k < place / (size_t)n; k++)
			CHECK(at[(size_t)i * (place / (size_t)n) + k] ==
			      (double)((size_t)suite_rank * (place / (size_t)n) + k) + 1e9 * i,
			      "alltoall: of rank %d, %zu", i, k);
	free(at);
	MPI_Type_free(&pairs);
}

/* More elements, of a byte each, than an operation of the library is asked for at once. */
static void reduction(MPI_Comm comm)
{
	const size_t bytes = 2 * GIB - 5000;
	struct memory in = memory_make(plain, bytes, bytes), out = memory_make(plain, bytes, bytes);
	size_t i, x;

	memory_fill(&in, 6);
	memory_blank(&out);
	/* All ranks have the same filling, and what a window has is combined. */
	MPI_Allreduce(in.at, out.at, (int)bytes, MPI_BYTE, MPI_BOR, comm);
	for (i = 0; i < (size_t)out.windows; i++)
		for (x = out.window[i].begin; x < out.window[i].end && x < bytes; x++) {
			unsigned char want = 0;
			int r;

			for (r = 0; r < suite_size; r++)
				want |= memory_content(bytes, x, r, 6);
			CHECK(out.at[x] == want, "byte %zu is %02x, not %02x", x, out.at[x], want);
		}
	memory_free(&in);
	memory_free(&out);
}

/* ---- Large counts ------------------------------------------------------------------------------ */

#ifdef HAVE_MPI_SEND_C
static void large_counts(MPI_Comm comm)
{
	const size_t bytes = 4 * GIB + 4321;
	struct memory m;
	MPI_Count got = -1;
	MPI_Request q;
	MPI_Status st;

	if (suite_rank > 1)
		return;
	m = memory_make(plain, bytes, bytes);
	if (suite_rank == 0) {
		memory_fill(&m, 8);
		MPI_Isend_c(m.at, (MPI_Count)bytes, MPI_BYTE, 1, 7, comm, &q);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
	} else {
		memory_blank(&m);
		MPI_Recv_c(m.at, (MPI_Count)bytes + 1, MPI_BYTE, 0, 7, comm, &st);
		MPI_Get_count_c(&st, MPI_BYTE, &got);
		CHECK((size_t)got == bytes, "%lld bytes, not %zu", (long long)got, bytes);
		memory_verify(&m, 0, 8);
	}
	memory_free(&m);
}

static void large_bcast(MPI_Comm comm)
{
	const size_t bytes = 2 * GIB + 777;
	struct memory m;

	if (!is_long())
		return;
	m = memory_make(plain, bytes, bytes);
	if (suite_rank == 0)
		memory_fill(&m, 9);
	else
		memory_blank(&m);
	MPI_Bcast_c(m.at, (MPI_Count)bytes, MPI_BYTE, 0, comm);
	if (suite_rank)
		memory_verify(&m, 0, 9);
	memory_free(&m);
}

static void large_too_long(MPI_Comm comm)
{
	double d = 5;

	if (suite_rank == 0) {
		CHECK(MPI_Send_c(&d, INT64_MAX, MPI_DOUBLE, 1, 7, comm) != MPI_SUCCESS);
		CHECK(MPI_Send_c(&d, (MPI_Count)1 << 61, MPI_DOUBLE, 1, 7, comm) != MPI_SUCCESS);
		MPI_Send_c(&d, 1, MPI_DOUBLE, 1, 7, comm);
	} else if (suite_rank == 1) {
		d = 0;
		MPI_Recv_c(&d, INT64_MAX, MPI_DOUBLE, 0, 7, comm, MPI_STATUS_IGNORE);
		CHECK(d == 5);
	}
}
#endif

static const struct suite_case cases[] = {
	{.name = "structure_2g", .run = structure_2g, .min_ranks = 2},
	{.name = "gaps_2g", .run = gaps_2g, .min_ranks = 2},
	{.name = "gaps_to_plain", .run = gaps_to_plain, .min_ranks = 2},
	{.name = "plain_to_gaps", .run = plain_to_gaps, .min_ranks = 2},
	{.name = "count_4g", .run = count_4g, .min_ranks = 2},
	{.name = "partial", .run = partial, .min_ranks = 2},
	{.name = "truncated", .run = truncated, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "as in type_suite"},
	{.name = "too_long", .run = too_long, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "MPICH 4.0 and Open MPI 4.1 count modulo 2^64, or crash"},
	{.name = "requests", .run = requests, .min_ranks = 1,
	 .native_defect = "MPICH 4.0 ends at fewer, by an assertion"},
	{.name = "bcast", .run = bcast, .min_ranks = 2},
	{.name = "in_place", .run = in_place, .min_ranks = 1},
	{.name = "displacements", .run = displacements, .min_ranks = 2},
	{.name = "reduction", .run = reduction, .min_ranks = 2},
#ifdef HAVE_MPI_SEND_C
	{.name = "large_counts", .run = large_counts, .min_ranks = 2},
	{.name = "large_bcast", .run = large_bcast, .min_ranks = 2},
	{.name = "large_too_long", .run = large_too_long, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "as too_long"},
#endif
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
