/* comm_suite.c - communicators: made, split, freed early, and never confused. */
#include "../capture.h"
#include "suite.h"

/* A ring over `comm`; every communicator has its own messages. */
static void ring(MPI_Comm comm, unsigned message, int bytes)
{
	static unsigned char out[300000], in[300000];
	int rank, size;
	MPI_Status st;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	suite_fill(out, (size_t)bytes, rank, message);
	suite_blank(in, (size_t)bytes + 32);
	MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 1, in, bytes + 32, MPI_BYTE,
		     (rank + size - 1) % size, MPI_ANY_TAG, comm, &st);
	suite_status(&st, (rank + size - 1) % size, 1, (size_t)bytes);
	suite_verify(in, (size_t)bytes, (size_t)bytes + 32, (rank + size - 1) % size, message);
}

static void rings(MPI_Comm comm, unsigned message)
{
	ring(comm, message, 8);
	ring(comm, message + 1, 5000);
	ring(comm, message + 2, 200000);
}

static void constructors(MPI_Comm comm)
{
	int dims[1] = {suite_size}, periods[1] = {1}, one[1] = {1}, i;
	int peer = (suite_rank + 1) % suite_size, from = (suite_rank + suite_size - 1) % suite_size;
	enum { MADE = 11, RANKS = 64 };
	int edge_end[RANKS], edges[RANKS];
	MPI_Comm c[MADE];
	MPI_Group group;
	MPI_Info info;

	CHECK(suite_size <= RANKS);
	for (i = 0; i < suite_size; i++) {
		edge_end[i] = i + 1;
		edges[i] = (i + 1) % suite_size;
	}
	MPI_Comm_group(comm, &group);
	MPI_Info_create(&info);
	MPI_Comm_dup(comm, &c[0]);
	MPI_Comm_dup_with_info(comm, info, &c[1]);
	MPI_Comm_split(comm, suite_rank % 2, -suite_rank, &c[2]);
	MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, info, &c[3]);
	MPI_Comm_create(comm, group, &c[4]);
	MPI_Comm_create_group(comm, group, 5, &c[5]);
	MPI_Cart_create(comm, 1, dims, periods, 0, &c[6]);
	MPI_Cart_sub(c[6], one, &c[7]);
	MPI_Dist_graph_create_adjacent(comm, 1, &from, one, 1, &peer, one, info, 0,
				       &c[8]);
	MPI_Dist_graph_create(comm, 1, &suite_rank, one, &peer, one, info, 0, &c[9]);
	MPI_Graph_create(comm, suite_size, edge_end, edges, 0, &c[10]);
	for (i = 0; i < MADE; i++)
		rings(c[i], (unsigned)(i * 10));
	/* Ranks of a part: only some are in it. */
	for (i = 0; i < MADE; i++)
		MPI_Comm_free(&c[i]);
	MPI_Comm_split(comm, suite_rank ? MPI_UNDEFINED : 0, 0, &c[0]);
	CHECK((c[0] == MPI_COMM_NULL) == (suite_rank != 0));
	if (!suite_rank) {
		rings(c[0], 99);
		MPI_Comm_free(&c[0]);
	}
	MPI_Group_free(&group);
	MPI_Info_free(&info);
}

/* The same tag and source on many communicators at once, received in another order. */
static void separate(MPI_Comm comm)
{
	enum { N = 12 };
	int i, out[N], in[N], right = (suite_rank + 1) % suite_size;
	int left = (suite_rank + suite_size - 1) % suite_size;
	MPI_Request q[N];
	MPI_Comm c[N];

	for (i = 0; i < N; i++)
		MPI_Comm_dup(comm, &c[i]);
	for (i = 0; i < N; i++) {
		out[i] = suite_rank * 100 + i;
		MPI_Isend(&out[i], 1, MPI_INT, right, 1, c[i], &q[i]);
	}
	for (i = N - 1; i >= 0; i--) {
		MPI_Recv(&in[i], 1, MPI_INT, left, 1, c[i], MPI_STATUS_IGNORE);
		CHECK(in[i] == left * 100 + i, "%d on communicator %d", in[i], i);
	}
	MPI_Waitall(N, q, MPI_STATUSES_IGNORE);
	for (i = 0; i < N; i++)
		MPI_Comm_free(&c[i]);
}

/* Handles come back after MPI_Comm_free; the route must follow the communicator. */
static void handles_reused(MPI_Comm comm)
{
	MPI_Info info;
	MPI_Comm c;
	int i;

	MPI_Info_create(&info);
	for (i = 0; i < 12; i++) {
		MPI_Info_set(info, "railgauge", i % 2 ? "native" : i % 4 ? "single" : "bind,threshold=4K");
		MPI_Comm_dup_with_info(comm, info, &c);
		rings(c, (unsigned)i);
		MPI_Comm_free(&c);
		MPI_Comm_dup(comm, &c);
		rings(c, (unsigned)i + 50);
		MPI_Comm_free(&c);
	}
	MPI_Info_free(&info);
}

/* Ranks that ask for different ways all learn it, also where one asks for a measurement first. */
static void ways_differ(MPI_Comm comm)
{
	static const char *const others[] = { "single", "stripe,threshold=16K", "stripe,threshold=auto" };
	MPI_Info info;
	MPI_Comm c;

	MPI_Info_create(&info);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		c = MPI_COMM_NULL;
		MPI_Info_set(info, "railgauge", suite_rank ? "stripe" : others[i]);
		CHECK(MPI_Comm_dup_with_info(comm, info, &c) != MPI_SUCCESS,
		      "ranks that ask for %s and stripe have made a communicator", others[i]);
		if (c != MPI_COMM_NULL)
			MPI_Comm_free(&c);
	}
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
	MPI_Info_free(&info);
}

/* Keys that make no sense: an error on each rank, a line on rank 0, and no communicator. */
static void way_refused(MPI_Comm comm)
{
	static const struct { const char *key, *says; } wrong[] = {
		{"sideways", "'sideways' (accepted: native, single"},
		{"stripe,speed=3", "'speed' (accepted after the way: threshold="},
		{"stripe,threshold", "'threshold' (accepted after the way: threshold="},
		{"stripe,soft=ports=2", "'soft' (accepted after the way: threshold="},
		{"stripe,threshold=many", "threshold"},
	};
	const char *text;
	MPI_Info info;
	MPI_Comm c;
	int rc, class;

	MPI_Info_create(&info);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		c = MPI_COMM_NULL;
		MPI_Info_set(info, "railgauge", wrong[i].key);
		capture_begin(2);
		rc = MPI_Comm_dup_with_info(comm, info, &c);
		text = capture_end();
		MPI_Error_class(rc, &class);
		CHECK(class == MPI_ERR_INFO_VALUE && c == MPI_COMM_NULL, "%s: error class %d",
		      wrong[i].key, class);
		CHECK(suite_rank ? !*text : strstr(text, wrong[i].says) &&
		      strchr(text, '\n') == strrchr(text, '\n'), "%s: said %s", wrong[i].key, text);
	}
	MPI_Info_set(info, "railgauge", "single");
	MPI_Comm_dup_with_info(comm, info, &c);
	rings(c, 1);
	MPI_Comm_free(&c);
	MPI_Info_free(&info);
}

static void freed_with_operations(MPI_Comm comm)
{
	static unsigned char out[100000], in[100000];
	int right = (suite_rank + 1) % suite_size, left = (suite_rank + suite_size - 1) % suite_size;
	MPI_Request q[2];
	MPI_Comm c;
	int n;

	for (n = 8; n <= 100000; n = n * 12 + 500) {
		MPI_Comm_dup(comm, &c);
		suite_fill(out, (size_t)n, suite_rank, (unsigned)n);
		MPI_Irecv(in, n, MPI_BYTE, left, 1, c, &q[0]);
		MPI_Isend(out, n, MPI_BYTE, right, 1, c, &q[1]);
		MPI_Comm_free(&c);
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		suite_verify(in, (size_t)n, (size_t)n, left, (unsigned)n);
	}
}

/* A message may be there before the receiver's constructor has returned. */
static void early_message(MPI_Comm comm)
{
	MPI_Comm c;
	int i;

	for (i = 0; i < 200; i++) {
		MPI_Comm_dup(comm, &c);
		ring(c, (unsigned)i, i % 3 ? 8 : 20000);
		MPI_Comm_free(&c);
	}
}

/* MPI_Comm_disconnect waits for messages, not for the calls that end their requests. */
static void disconnected(MPI_Comm comm)
{
	int right = (suite_rank + 1) % suite_size, left = (suite_rank + suite_size - 1) % suite_size;
	enum { SMALL = 8, LARGE = 100000 };
	static unsigned char out[LARGE], in[2][LARGE];
	MPI_Request q[4];
	MPI_Comm c;

	suite_fill(out, LARGE, suite_rank, 7);
	MPI_Comm_dup(comm, &c);
	MPI_Irecv(in[0], SMALL, MPI_BYTE, left, 1, c, &q[0]);
	MPI_Irecv(in[1], LARGE, MPI_BYTE, left, 2, c, &q[1]);
	MPI_Issend(out, SMALL, MPI_BYTE, right, 1, c, &q[2]);
	MPI_Isend(out, LARGE, MPI_BYTE, right, 2, c, &q[3]);
	MPI_Comm_disconnect(&c);
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
	suite_verify(in[0], SMALL, SMALL, left, 7);
	suite_verify(in[1], LARGE, LARGE, left, 7);
}

/* Communicators that this layer leaves to the library: both ends must agree on that. */
static void left_native(MPI_Comm comm)
{
	MPI_Request q;
	MPI_Comm c, inter;

	MPI_Comm_idup(comm, &c, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	rings(c, 1);
	MPI_Comm_free(&c);
	if (suite_size < 2)
		return;
	MPI_Comm_split(comm, suite_rank % 2, 0, &c);
	MPI_Intercomm_create(c, 0, comm, suite_rank % 2 ? 0 : 1, 3, &inter);
	{
		int rank, remote, v, w = -1;

		MPI_Comm_rank(inter, &rank);
		MPI_Comm_remote_size(inter, &remote);
		v = suite_rank;
		if (rank < remote)
			MPI_Sendrecv(&v, 1, MPI_INT, rank, 1, &w, 1, MPI_INT, rank, 1, inter,
				     MPI_STATUS_IGNORE);
		CHECK(rank >= remote || w == (suite_rank ^ 1), "got %d", w);
	}
	MPI_Comm_free(&inter);
	MPI_Comm_free(&c);
}

static void alloc_mem(MPI_Comm comm)
{
	unsigned char *p[8];
	int i, n;

	for (i = 0; i < 8; i++) {
		n = 100 + i * 90000;
		MPI_Alloc_mem(n, MPI_INFO_NULL, &p[i]);
		suite_fill(p[i], (size_t)n, suite_rank, (unsigned)i);
	}
	for (i = 0; i < 8; i++) {
		n = 100 + i * 90000;
		MPI_Sendrecv_replace(p[i], n, MPI_BYTE, (suite_rank + 1) % suite_size, 1,
				     (suite_rank + suite_size - 1) % suite_size, 1, comm, MPI_STATUS_IGNORE);
		suite_verify(p[i], (size_t)n, (size_t)n, (suite_rank + suite_size - 1) % suite_size,
			     (unsigned)i);
	}
	for (i = 0; i < 8; i++)
		MPI_Free_mem(p[i]);
}

static const struct suite_case cases[] = {
	{.name = "constructors", .run = constructors, .min_ranks = 1},
	{.name = "separate", .run = separate, .min_ranks = 1},
	{.name = "handles_reused", .run = handles_reused, .min_ranks = 1},
	{.name = "ways_differ", .run = ways_differ, .min_ranks = 2},
	{.name = "way_refused", .run = way_refused, .min_ranks = 1, .changes_errors = true},
	{.name = "freed_with_operations", .run = freed_with_operations, .min_ranks = 1},
	{.name = "disconnected", .run = disconnected, .min_ranks = 1},
	{.name = "early_message", .run = early_message, .min_ranks = 1},
	{.name = "left_native", .run = left_native, .min_ranks = 1},
	{.name = "alloc_mem", .run = alloc_mem, .min_ranks = 1},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
