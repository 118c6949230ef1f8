/* coll_suite.c - collectives that move data, compared with the library's, and among messages. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "against.h"

/* ---- What is moved: 12 bytes each, laid out in different ways ------------------------------- */

enum { UNIT = 12, UNITS = 5, STRETCH = 20 };

static MPI_Datatype units[UNITS];
static MPI_Aint extents[UNITS];

static void units_make(void)
{
	int half[] = {6, 6}, swapped[] = {6, 0}, below[] = {4, 8}, i;
	MPI_Aint lb, before[] = {-8, 4};
	MPI_Datatype plain;

	MPI_Type_contiguous(UNIT, MPI_BYTE, &units[0]);
	MPI_Type_vector(3, 4, 7, MPI_BYTE, &units[1]);
	MPI_Type_contiguous(UNIT, MPI_BYTE, &plain);
	MPI_Type_create_resized(plain, 0, STRETCH, &units[2]);
	MPI_Type_free(&plain);
	MPI_Type_create_hindexed(2, below, before, MPI_BYTE, &units[3]);
	MPI_Type_indexed(2, half, swapped, MPI_BYTE, &units[4]);
	for (i = 0; i < UNITS; i++) {
		MPI_Type_commit(&units[i]);
		MPI_Type_get_extent(units[i], &lb, &extents[i]);
		CHECK(extents[i] <= STRETCH);
	}
}

static void units_free(void)
{
	int i;

	for (i = 0; i < UNITS; i++)
		MPI_Type_free(&units[i]);
}

/* ---- A plan --------------------------------------------------------------------------------- */

enum move {
	BCAST, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, GATHER, GATHERV, SCATTER,
	SCATTERV, MOVES,
};
static const char *const move_names[] = {
	"Bcast", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Gather",
	"Gatherv", "Scatter", "Scatterv",
};

static struct {
	enum move what;
	int root, count;		/* in units */
	bool in_place;
	int stype, rtype;		/* choice of this rank alone */
	int scounts[AGAINST_RANKS], sdispls[AGAINST_RANKS];
	int rcounts[AGAINST_RANKS], rdispls[AGAINST_RANKS];
	MPI_Datatype stypes[AGAINST_RANKS], rtypes[AGAINST_RANKS];
} m;

/* Around the limits of the transport: eager 8 KiB, segments of 128 KiB. */
static int draw_units(void)
{
	static const int limits[] = {0,	   1,	 2,    5,     40,    682,  683,
				     1400, 5461, 5462, 12000, 33000, 90000};
	int most = AGAINST_ROOM / 2 / STRETCH / against_size;
	int n = limits[against_draw(against_draw(3) ? 8 : 13)];

	return n < most ? n : most;
}

/* Units from one rank to another; every third is none. */
static int amount(int from, int to)
{
	unsigned x = (unsigned)(from * 31 + to * 17) * 2654435761u;

	x += (unsigned)against_round * 40503u;
	x ^= x >> 15;
	return x % 3 ? (int)(x % (unsigned)(m.count + 1)) : 0;
}

/* In place, what goes to a rank has the place of what comes from it: as much. */
static void draw_counts(void)
{
	bool both_ways = m.what == ALLTOALLV || m.what == ALLTOALLW;
	int me = against_rank, i;

	for (i = 0; i < against_size; i++) {
		m.scounts[i] = both_ways ? amount(me, i) : amount(i, 0);
		m.rcounts[i] = !both_ways ? amount(i, 0) :
			       m.in_place && me < i ? amount(me, i) : amount(i, me);
	}
}

/* Blocks in another order than that of ranks, with gaps; how many units that takes. */
static int layout(const int counts[], int displs[])
{
	int i, who, at = 0;

	for (i = 0; i < against_size; i++) {
		who = (2 * against_size - 1 - i + (int)(against_round % 7)) % against_size;
		displs[who] = at;
		at += counts[who] + (i + against_rank) % 3;
	}
	return at;
}

/* Alltoallw counts displacements in bytes; a type in place is the same at both ends. */
static void draw_types(void)
{
	int i;

	for (i = 0; i < against_size; i++) {
		m.sdispls[i] *= STRETCH;
		m.rdispls[i] *= STRETCH;
		m.stypes[i] = units[(m.stype + i) % UNITS];
		m.rtypes[i] = units[(m.in_place ? i + against_rank : m.rtype + i * 2) % UNITS];
	}
}

/*
 * MPICH's ring of Allgatherv cuts blocks into pieces of so many extents, each rank of its own
 * type: where they differ, ranks wait for each other's pieces for ever (3 ranks of MPICH 4.0).
 */
#ifdef MPICH
enum { CUTS_BY_EXTENT = 1 };
#else
enum { CUTS_BY_EXTENT = 0 };
#endif

/* Room for the buffers. */
static size_t draw_move(void)
{
	int sent, received, most, of_its_own;

	m.what = (enum move)against_draw(MOVES);
	of_its_own = m.what == ALLGATHERV && CUTS_BY_EXTENT ? 0 : against_rank;
	m.root = (int)against_draw((unsigned)against_size);
	m.count = draw_units();
	m.in_place = against_draw(3) == 0;
	m.stype = ((int)against_draw(UNITS) + against_rank) % UNITS;
	m.rtype = ((int)against_draw(UNITS) + of_its_own * 3) % UNITS;
	draw_counts();
	sent = layout(m.scounts, m.sdispls);
	received = layout(m.rcounts, m.rdispls);
	if (m.what == ALLTOALLW)
		draw_types();
	most = sent > received ? sent : received;
	if (most < m.count * against_size)
		most = m.count * against_size;
	return 2 * AGAINST_MARGIN + (size_t)most * STRETCH;
}

static void run_move(MPI_Comm comm, unsigned char *buf)
{
	bool root = against_rank == m.root;
	void *in = buf + AGAINST_MARGIN, *out = against_given + AGAINST_MARGIN;
	void *placed = m.in_place ? MPI_IN_PLACE : out;
	void *at_root = root ? placed : out, *in_at_root = root && m.in_place ? MPI_IN_PLACE : in;
	MPI_Datatype st = units[m.stype], rt = units[m.rtype];
	int mine = m.rcounts[against_rank];

	switch (m.what) {
	case BCAST:
		MPI_Bcast(in, m.count, rt, m.root, comm);
		break;
	case ALLGATHER:
		MPI_Allgather(placed, m.count, st, in, m.count, rt, comm);
		break;
	case ALLGATHERV:
		MPI_Allgatherv(placed, mine, st, in, m.rcounts, m.rdispls, rt, comm);
		break;
	case ALLTOALL:
		MPI_Alltoall(placed, m.count, st, in, m.count, rt, comm);
		break;
	case ALLTOALLV:
		MPI_Alltoallv(placed, m.scounts, m.sdispls, st, in, m.rcounts, m.rdispls, rt, comm);
		break;
	case ALLTOALLW:
		MPI_Alltoallw(placed, m.scounts, m.sdispls, m.stypes, in, m.rcounts, m.rdispls,
			      m.rtypes, comm);
		break;
	case GATHER:
		MPI_Gather(at_root, m.count, st, in, m.count, rt, m.root, comm);
		break;
	case GATHERV:
		MPI_Gatherv(at_root, mine, st, in, m.rcounts, m.rdispls, rt, m.root, comm);
		break;
	case SCATTER:
		MPI_Scatter(out, m.count, st, in_at_root, m.count, rt, m.root, comm);
		break;
	case SCATTERV:
		MPI_Scatterv(out, m.scounts, m.sdispls, st, in_at_root, mine, rt, m.root, comm);
		break;
	case MOVES:
		break;
	}
}

/* Alltoallv and w in place by their definition: two ranks swap their blocks. */
static void swap_blocks(unsigned char *buf, size_t room)
{
	MPI_Request q[2 * AGAINST_RANKS];
	bool w = m.what == ALLTOALLW;
	int i;

	memcpy(against_given, buf, room);
	for (i = 0; i < against_size; i++) {
		MPI_Datatype t = w ? m.rtypes[i] : units[m.rtype];
		MPI_Aint at = AGAINST_MARGIN + m.rdispls[i] * (w ? 1 : extents[m.rtype]);

		MPI_Irecv(buf + at, m.rcounts[i], t, i, 0, against_native, &q[2 * i]);
		MPI_Isend(against_given + at, m.rcounts[i], t, i, 0, against_native, &q[2 * i + 1]);
	}
	MPI_Waitall(2 * against_size, q, MPI_STATUSES_IGNORE);
	memcpy(against_given, against_kept, room);
}

static void moves_on(MPI_Comm comm, unsigned long rounds)
{
	unsigned long i;
	size_t room;

	against_begin(comm);
	units_make();
	for (i = 0; i < rounds; i++) {
		against_round_begin(i, 7);
		room = draw_move();
		against_fill(room);
		if (m.in_place && (m.what == ALLTOALLV || m.what == ALLTOALLW))
			swap_blocks(against_theirs, room);
		else
			run_move(against_native, against_theirs);
		run_move(against_ours, against_mine);
		against_compare(move_names[m.what], room);
		against_check_kept(move_names[m.what], room);
	}
	units_free();
	against_end();
}

static void moves(MPI_Comm comm)
{
	moves_on(comm, against_rounds(AGAINST_ROUNDS));
}

/* Ranks in reverse, and one left out. */
static void moves_on_a_part(MPI_Comm comm)
{
	MPI_Comm part;

	MPI_Comm_split(comm, suite_rank == 1 && suite_size > 2, -suite_rank, &part);
	moves_on(part, against_rounds(AGAINST_ROUNDS) / 4);
	MPI_Comm_free(&part);
}

/* Memory that can only be read may be sent, beyond every limit of size. */
static void read_only(MPI_Comm comm)
{
	enum { BYTES = 256 << 10 };
	unsigned char *from = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *to = malloc(BYTES);
	int right = (suite_rank + 1) % suite_size;
	int left = (suite_rank + suite_size - 1) % suite_size;

	CHECK(from != MAP_FAILED && to);
	suite_fill(from, BYTES, suite_rank, 1);
	CHECK(!mprotect(from, BYTES, PROT_READ));
	MPI_Bcast(suite_rank ? to : from, BYTES, MPI_BYTE, 0, comm);
	if (suite_rank)
		suite_verify(to, BYTES, BYTES, 0, 1);
	MPI_Sendrecv(from, BYTES, MPI_BYTE, right, 1, to, BYTES, MPI_BYTE, left, 1, comm,
		     MPI_STATUS_IGNORE);
	suite_verify(to, BYTES, BYTES, left, 1);
	munmap(from, BYTES);
	free(to);
}

/* Limit the address space to its present size and a little more. */
static void memory_limit(bool on)
{
	static struct rlimit before;
	struct rlimit now;
	unsigned long pages = 0;
	FILE *f;

	if (!on) {
		setrlimit(RLIMIT_AS, &before);
		return;
	}
	f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	getrlimit(RLIMIT_AS, &before);
	now = before;
	now.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
	CHECK(!setrlimit(RLIMIT_AS, &now));
}

/*
 * A rank without memory to gather its bytes in cannot send.  No other rank waits for it: both ends
 * have an error, and all go on.
 */
static void unsendable(MPI_Comm comm)
{
	int counts[AGAINST_RANKS], displs[AGAINST_RANKS] = {0}, i, rc, all;
	enum { PIECE = 512 << 10, PIECES = 64 };	/* 32 MiB, all in one place */
	char *buf = malloc(PIECE);
	MPI_Datatype large;

#ifdef __SANITIZE_ADDRESS__
	free(buf);
	return;		/* the allocator does not return without memory */
#endif
	CHECK(buf);
	for (i = 0; i < suite_size; i++)
		counts[i] = 1;
	MPI_Type_create_hvector(PIECES, PIECE, 0, MPI_BYTE, &large);
	MPI_Type_commit(&large);
	if (suite_rank)
		memory_limit(true);
	rc = MPI_Gatherv(suite_rank ? buf : MPI_IN_PLACE, 1, large, buf, counts, displs, large, 0,
			 comm);
	if (suite_rank)
		memory_limit(false);
	CHECK(rc != MPI_SUCCESS);
	MPI_Type_free(&large);
	free(buf);
	MPI_Allreduce(&suite_rank, &all, 1, MPI_INT, MPI_SUM, comm);
	CHECK(all == suite_size * (suite_size - 1) / 2, "%d", all);
}

/* ---- Among messages, and in a row ----------------------------------------------------- */

/* A receive for anything is posted while collectives run: it must not take what is theirs. */
static void wildcard_beside(MPI_Comm comm)
{
	int right = (suite_rank + 1) % suite_size;
	int left = (suite_rank + suite_size - 1) % suite_size;
	int i, v, sum, in = -1, out = 1000 + suite_rank, all[AGAINST_RANKS];
	MPI_Request q;
	MPI_Status st;

	for (i = 0; i < 50; i++) {
		MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &q);
		MPI_Barrier(comm);
		v = suite_rank == i % suite_size ? i : -1;
		MPI_Bcast(&v, 1, MPI_INT, i % suite_size, comm);
		CHECK(v == i, "%d", v);
		MPI_Allreduce(&suite_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
		CHECK(sum == suite_size * (suite_size - 1) / 2, "%d", sum);
		MPI_Allgather(&suite_rank, 1, MPI_INT, all, 1, MPI_INT, comm);
		CHECK(all[suite_size - 1] == suite_size - 1);
		CHECK(in == -1 || in == 1000 + left, "a receive took %d", in);
		MPI_Send(&out, 1, MPI_INT, right, i, comm);
		MPI_Wait(&q, &st);
		suite_status(&st, left, i, sizeof(int));
		CHECK(in == 1000 + left, "%d", in);
		in = -1;
	}
}

/* A probe for anything does not see them either. */
static void probe_beside(MPI_Comm comm)
{
	int i, flag, v = suite_rank;

	for (i = 0; i < 200; i++) {
		MPI_Bcast(&v, 1, MPI_INT, i % suite_size, comm);
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag);
	}
	MPI_Barrier(comm);
}

/* Roots run ahead of each other; nothing of one broadcast may be taken for another's. */
static void behind_each_other(MPI_Comm comm)
{
	static unsigned char buf[20000];
	int i, n;

	for (i = 0; i < 300; i++) {
		n = i % 10 == 0 ? 20000 : i % 50;
		if (suite_rank == i % 3 % suite_size)
			suite_fill(buf, (size_t)n, i % 3 % suite_size, (unsigned)i);
		MPI_Bcast(buf, n, MPI_BYTE, i % 3 % suite_size, comm);
		suite_verify(buf, (size_t)n, (size_t)n, i % 3 % suite_size, (unsigned)i);
	}
}

/* The library's nonblocking collectives go on while one of ours waits, and the other way round. */
static void beside_nonblocking(MPI_Comm comm)
{
	int i, v, w, sum;
	MPI_Request q;

	for (i = 0; i < 20; i++) {
		w = i;
		MPI_Iallreduce(&w, &sum, 1, MPI_INT, MPI_SUM, comm, &q);
		v = suite_rank == 0 ? i : -1;
		MPI_Bcast(&v, 1, MPI_INT, 0, comm);
		CHECK(v == i);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		CHECK(sum == i * suite_size, "%d", sum);
	}
}

/* A long message that is under way arrives while its sender waits in a barrier. */
static void liveness(MPI_Comm comm)
{
	enum { BYTES = 1 << 20 };
	int right = (suite_rank + 1) % suite_size;
	int left = (suite_rank + suite_size - 1) % suite_size;
	unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
	MPI_Request q[2];

	CHECK(out && in);
	suite_fill(out, BYTES, suite_rank, 5);
	MPI_Irecv(in, BYTES, MPI_BYTE, left, 1, comm, &q[0]);
	MPI_Isend(out, BYTES, MPI_BYTE, right, 1, comm, &q[1]);
	MPI_Barrier(comm);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	suite_verify(in, BYTES, BYTES, left, 5);
	free(out);
	free(in);
}

/* The result of a collective on a communicator of one rank; the next one finds nothing of it. */
static void is_own(int *out, int count, const char *what)
{
	for (int i = 0; i < count; i++) {
		CHECK(out[i] == i, "%s: %d is %d", what, i, out[i]);
		out[i] = -1;
	}
}

static void themselves(MPI_Comm self, int *in, int *out, int count)
{
	const int none = 0;

	for (int i = 0; i < count; i++)
		in[i] = i, out[i] = -1;
	MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, self);
	is_own(out, count, "Allgather");
	MPI_Allgatherv(in, count, MPI_INT, out, &count, &none, MPI_INT, self);
	is_own(out, count, "Allgatherv");
	MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, self);
	is_own(out, count, "Alltoall");
	MPI_Alltoallv(in, &count, &none, MPI_INT, out, &count, &none, MPI_INT, self);
	is_own(out, count, "Alltoallv");
	MPI_Gatherv(in, count, MPI_INT, out, &count, &none, MPI_INT, 0, self);
	is_own(out, count, "Gatherv");
	MPI_Scatterv(in, &count, &none, MPI_INT, out, count, MPI_INT, 0, self);
	is_own(out, count, "Scatterv");
	MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, self);
	is_own(out, count, "Allreduce");
	MPI_Reduce_scatter(in, out, &count, MPI_INT, MPI_SUM, self);
	is_own(out, count, "Reduce_scatter");
	MPI_Scan(in, out, count, MPI_INT, MPI_SUM, self);
	is_own(out, count, "Scan");
	MPI_Bcast(in, count, MPI_INT, 0, self);
	is_own(in, count, "Bcast");
}

/* A later collective never writes to buffers of an earlier one: the write would be in `guard`. */
static __attribute__((noinline)) void themselves_deeper(MPI_Comm self, int *in, int *out, int count)
{
	volatile unsigned char guard[32768];

	memset((void *)(uintptr_t)guard, 0x5a, sizeof(guard));
	themselves(self, in, out, count);
	for (size_t i = 0; i < sizeof(guard); i++)
		CHECK(guard[i] == 0x5a, "the stack is damaged");
}

static void alone(MPI_Comm comm)
{
	enum { COUNT = 100000 };
	int *in = malloc(COUNT * sizeof(*in)), *out = malloc(COUNT * sizeof(*out));
	MPI_Comm self;

	CHECK(in && out);
	MPI_Comm_split(comm, suite_rank, 0, &self);
	for (int count = 1; count <= COUNT; count *= COUNT / 10) {
		themselves(self, in, out, count);
		themselves_deeper(self, in, out, count);
	}
	MPI_Comm_free(&self);
	free(in);
	free(out);
}

/* ---- Wrong arguments ------------------------------------------------------------------------ */

static int class_of(int error)
{
	int class;

	MPI_Error_class(error, &class);
	return class;
}

/* All ranks are wrong in the same way, and learn it as from the library. */
static void errors(MPI_Comm comm)
{
	int i, v[AGAINST_RANKS], w[AGAINST_RANKS];
	void *in = v, *out = w;
	MPI_Comm both[2];
	int class[2][6];

	against_begin(comm);
	both[0] = against_native;
	both[1] = comm;
	MPI_Comm_set_errhandler(against_native, MPI_ERRORS_RETURN);
	for (i = 0; i < 2; i++) {
		class[i][0] = class_of(MPI_Bcast(in, -1, MPI_INT, 0, both[i]));
		class[i][1] = class_of(MPI_Bcast(in, 1, MPI_INT, suite_size, both[i]));
		class[i][2] = class_of(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, both[i]));
		class[i][3] = class_of(MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, both[i]));
		class[i][4] = class_of(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, both[i]));
		class[i][5] = class_of(MPI_Alltoall(in, -1, MPI_INT, out, 1, MPI_INT, both[i]));
	}
	for (i = 0; i < 6; i++) {
		CHECK(class[0][i] != MPI_SUCCESS, "wrong call %d has no error", i);
		CHECK(class[0][i] == class[1][i], "wrong call %d: class %d, natively %d", i,
		      class[1][i], class[0][i]);
	}
	against_end();
}

static const struct suite_case cases[] = {
	{.name = "moves", .run = moves, .min_ranks = 1},
	{.name = "moves_on_a_part", .run = moves_on_a_part, .min_ranks = 1},
	{.name = "read_only", .run = read_only, .min_ranks = 1},
	{.name = "unsendable", .run = unsendable, .min_ranks = 2, .changes_errors = true,
	 .native_defect = "for the libraries it is not too large", .collective = true},
	{.name = "wildcard_beside", .run = wildcard_beside, .min_ranks = 1},
	{.name = "probe_beside", .run = probe_beside, .min_ranks = 1},
	{.name = "behind_each_other", .run = behind_each_other, .min_ranks = 1},
	{.name = "alone", .run = alone, .min_ranks = 1},
	{.name = "beside_nonblocking", .run = beside_nonblocking, .min_ranks = 1},
	{.name = "liveness", .run = liveness, .min_ranks = 1},
	{.name = "errors", .run = errors, .min_ranks = 1, .changes_errors = true},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
