/* type_suite.c - datatypes: what looks contiguous and is not, what ends in the middle. */
#include "suite.h"

static int right(void)
{
	return (suite_rank + 1) % suite_size;
}

static int left(void)
{
	return (suite_rank + suite_size - 1) % suite_size;
}

/* ---- Types, and independently of MPI_Pack, where their bytes are ----------------------------- */

enum { ELEMENT_MAX = 4096 };

/* Byte k of an element's data lies at map[k] from its beginning; extent to the next element. */
struct shape {
	const char *name;
	MPI_Datatype type;
	int size, map[ELEMENT_MAX];
	MPI_Aint extent;
	int basic;	/* bytes of each of its basic types; 0: of several */
};

static void put(struct shape *s, int at, int bytes)
{
	int i;

	for (i = 0; i < bytes; i++)
		s->map[s->size++] = at + i;
}

static void contiguous(struct shape *s)
{
	s->name = "contiguous";
	MPI_Type_contiguous(25, MPI_INT, &s->type);
	put(s, 0, 100);
	s->extent = 100;
	s->basic = 4;
}

static void vector(struct shape *s)
{
	int i;

	s->name = "vector";
	MPI_Type_vector(7, 3, 5, MPI_INT, &s->type);
	for (i = 0; i < 7; i++)
		put(s, i * 20, 12);
	s->extent = 6 * 20 + 12;
	s->basic = 4;
}

/* Size equals extent, and yet the two halves are swapped. */
static void swapped(struct shape *s)
{
	int lengths[] = {1, 1}, at[] = {1, 0};

	s->name = "swapped";
	MPI_Type_indexed(2, lengths, at, MPI_INT, &s->type);
	put(s, 4, 4);
	put(s, 0, 4);
	s->extent = 8;
	s->basic = 4;
}

/* The same over blocks longer than one byte counts: positions 0 and 256 must not look alike. */
static void swapped_far(struct shape *s)
{
	int lengths[] = {1, 1}, at[] = {1, 0};
	MPI_Datatype block;

	s->name = "swapped_far";
	MPI_Type_contiguous(256, MPI_BYTE, &block);
	MPI_Type_indexed(2, lengths, at, block, &s->type);
	MPI_Type_free(&block);
	put(s, 256, 256);
	put(s, 0, 256);
	s->extent = 512;
	s->basic = 1;
}

static void structure(struct shape *s)
{
	int lengths[] = {1, 3, 2};
	MPI_Aint at[] = {0, 8, 40};
	MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT};

	s->name = "structure";
	MPI_Type_create_struct(3, lengths, at, types, &s->type);
	put(s, 0, 4);
	put(s, 8, 24);
	put(s, 40, 4);
	s->extent = 48;
}

static void resized(struct shape *s)
{
	s->name = "resized";
	MPI_Type_create_resized(MPI_INT, 0, 12, &s->type);
	put(s, 0, 4);
	s->extent = 12;
	s->basic = 4;
}

/* Data does not begin where the buffer does. */
static void shifted(struct shape *s)
{
	int length = 10;
	MPI_Aint at = 16;

	s->name = "shifted";
	MPI_Type_create_hindexed(1, &length, &at, MPI_BYTE, &s->type);
	put(s, 16, 10);
	s->extent = 10;
	s->basic = 1;
}

static void pair(struct shape *s)
{
	s->name = "MPI_DOUBLE_INT";
	MPI_Type_dup(MPI_DOUBLE_INT, &s->type);
	put(s, 0, 12);
	s->extent = 16;
}

/* Elements that fit into one another: together they have no gaps. */
static void columns(struct shape *s)
{
	MPI_Datatype column;
	int i;

	s->name = "columns";
	MPI_Type_vector(6, 2, 14, MPI_SHORT, &column);
	MPI_Type_create_resized(column, 0, 24, &s->type);
	MPI_Type_free(&column);
	for (i = 0; i < 6; i++)
		put(s, i * 28, 4);
	s->extent = 24;
	s->basic = 2;
}

static void backwards(struct shape *s)
{
	MPI_Datatype vector;
	int i;

	s->name = "backwards";
	MPI_Type_create_hvector(9, 1, -16, MPI_DOUBLE, &vector);
	MPI_Type_create_hindexed(1, &(int){1}, &(MPI_Aint){128}, vector, &s->type);
	MPI_Type_free(&vector);
	for (i = 8; i >= 0; i--)
		put(s, i * 16, 8);
	s->extent = 136;
	s->basic = 8;
}

static void (*const makers[])(struct shape *) = {
	contiguous, vector, swapped, swapped_far, structure, resized, shifted, pair, columns,
	backwards,
};
enum { SHAPES = sizeof(makers) / sizeof(makers[0]) };

static void make(int k, struct shape *s)
{
	memset(s, 0, sizeof(*s));
	makers[k](s);
	MPI_Type_commit(&s->type);
}

enum { ROOM = 2 << 20 };
static unsigned char from[ROOM], to[ROOM];

static void scatter_fill(const struct shape *s, int count, unsigned message)
{
	int e, i;

	memset(from, 0xaa, ROOM);
	for (e = 0; e < count; e++)
		for (i = 0; i < s->size; i++)
			from[e * s->extent + s->map[i]] =
				suite_byte(suite_rank, message, (size_t)(e * s->size + i));
}

/* `bytes` of data have come; everything else in `to` is untouched. */
static void scatter_verify(const struct shape *s, size_t bytes, size_t room, int source, unsigned message)
{
	static unsigned char want[ROOM];
	size_t i;

	memset(want, 0xee, room);
	for (i = 0; i < bytes; i++)
		want[(MPI_Aint)(i / (size_t)s->size) * s->extent + s->map[i % (size_t)s->size]] =
			suite_byte(source, message, i);
	for (i = 0; i < room; i++)
		CHECK(to[i] == want[i], "%s: byte %zu is %02x, not %02x", s->name, i, to[i], want[i]);
}

/* Typed to typed, typed to bytes, bytes to typed; short, eager, long. */
static void shapes(MPI_Comm comm)
{
	static const int counts[] = {1, 3, 40, 1500};
	int k, c, how;
	struct shape s;
	MPI_Status st;

	for (k = 0; k < SHAPES; k++) {
		make(k, &s);
		for (c = 0; c < 4; c++)
			for (how = 0; how < 4; how++) {
				int count = counts[c], bytes = count * s.size;
				unsigned message = (unsigned)(k * 100 + c * 10 + how);
				size_t room = (size_t)(count * s.extent + ELEMENT_MAX);
				MPI_Request q;

				if (room > ROOM)
					continue;
				memset(to, 0xee, ROOM);
				if (how < 2) {
					scatter_fill(&s, count, message);
					MPI_Isend(from, count, s.type, right(), 1, comm, &q);
				} else {
					suite_fill(from, (size_t)bytes, suite_rank, message);
					MPI_Isend(from, bytes, MPI_BYTE, right(), 1, comm, &q);
				}
				if (how % 2) {
					MPI_Recv(to, count, s.type, left(), 1, comm, &st);
					scatter_verify(&s, (size_t)bytes, room, left(), message);
				} else {
					MPI_Recv(to, bytes, MPI_BYTE, left(), 1, comm, &st);
					suite_verify(to, (size_t)bytes, room, left(), message);
				}
				suite_status(&st, left(), 1, (size_t)bytes);
				MPI_Wait(&q, MPI_STATUS_IGNORE);
			}
		MPI_Type_free(&s.type);
	}
}

/* A message that ends inside an element, and inside a member of it. */
static void partial(MPI_Comm comm)
{
	static const int lengths[] = {4, 12, 28, 30, 32, 36, 44};
	struct shape s;
	MPI_Request q;
	MPI_Status st;
	int i, count;

	make(4, &s);	/* structure: 32 bytes of data: int, 3 doubles, 2 shorts */
	for (i = 0; i < 7; i++) {
		memset(to, 0xee, ROOM);
		suite_fill(from, (size_t)lengths[i], suite_rank, (unsigned)i);
		MPI_Isend(from, lengths[i], MPI_BYTE, right(), 1, comm, &q);
		MPI_Recv(to, 10, s.type, left(), 1, comm, &st);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		scatter_verify(&s, (size_t)lengths[i], 2048, left(), (unsigned)i);
		MPI_Get_count(&st, s.type, &count);
		CHECK(count == (lengths[i] % 32 ? MPI_UNDEFINED : lengths[i] / 32), "count %d", count);
		MPI_Get_elements(&st, s.type, &count);
		CHECK(lengths[i] != 12 || count == 2, "elements %d", count);
	}
	MPI_Type_free(&s.type);
}

/* The same with types of one basic type, for each end within two elements; by rendezvous, too. */
static void partial_shapes(MPI_Comm comm)
{
	enum { COUNT = 3000, BEGINS = 3 };
	const size_t begins[BEGINS] = {0, 100 * sizeof(int), 60000};
	struct shape s;
	MPI_Status st;
	int k, b, more;

	for (k = 0; k < SHAPES; k++) {
		make(k, &s);
		for (b = 0; b < BEGINS && s.basic; b++)
			for (more = 0; more <= 2 * s.size && more < 200; more += s.basic) {
				size_t bytes = begins[b] / (size_t)s.size * (size_t)s.size + (size_t)more;
				size_t elements = bytes / (size_t)s.size + 1;
				size_t room = elements * (size_t)s.extent + ELEMENT_MAX;
				MPI_Request q;

				if (room > ROOM || elements > COUNT)
					continue;
				memset(to, 0xee, room);
				suite_fill(from, bytes, suite_rank, (unsigned)more);
				MPI_Isend(from, (int)bytes, MPI_BYTE, right(), 1, comm, &q);
				MPI_Recv(to, (int)elements, s.type, left(), 1, comm, &st);
				MPI_Wait(&q, MPI_STATUS_IGNORE);
				suite_status(&st, left(), 1, bytes);
				scatter_verify(&s, bytes, room, left(), (unsigned)more);
			}
		MPI_Type_free(&s.type);
	}
}

/* More data than the receive has room for: an error, and no byte but the type's is written. */
static void truncated(MPI_Comm comm)
{
	static const int counts[] = {1, 200};
	struct shape s;
	int k, c, rc, error;

	for (k = 0; k < SHAPES; k++)
		for (c = 0; c < 2; c++) {
			size_t bytes, room, i;
			MPI_Request q;

			make(k, &s);
			bytes = (size_t)(counts[c] * s.size);
			room = (size_t)counts[c] * (size_t)s.extent + ELEMENT_MAX;
			memset(to, 0xee, room);
			suite_fill(from, bytes + 9000, suite_rank, 5);
			MPI_Isend(from, (int)bytes + (c ? 9000 : 1), MPI_BYTE, right(), 1, comm, &q);
			rc = MPI_Recv(to, counts[c], s.type, left(), 1, comm, MPI_STATUS_IGNORE);
			MPI_Error_class(rc, &error);
			CHECK(error == MPI_ERR_TRUNCATE, "%s: error class %d", s.name, error);
			MPI_Wait(&q, MPI_STATUS_IGNORE);
			/* The received bytes are undefined: set them to the expected ones. */
			for (i = 0; i < bytes; i++)
				to[(MPI_Aint)(i / (size_t)s.size) * s.extent + s.map[i % (size_t)s.size]] =
					suite_byte(left(), 5, i);
			scatter_verify(&s, bytes, room, left(), 5);
			MPI_Type_free(&s.type);
		}
}

/* The type is gone before the operation is complete. */
static void freed_early(MPI_Comm comm)
{
	MPI_Request q[2];
	struct shape s;
	int k, n;

	for (k = 0; k < SHAPES; k++)
		for (n = 1; n <= 400; n *= 400) {
			make(k, &s);
			memset(to, 0xee, ROOM);
			scatter_fill(&s, n, (unsigned)(k + n));
			MPI_Irecv(to, n, s.type, left(), 1, comm, &q[0]);
			MPI_Barrier(comm);
			MPI_Isend(from, n, s.type, right(), 1, comm, &q[1]);
			MPI_Type_free(&s.type);
			MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
			scatter_verify(&s, (size_t)(n * s.size), (size_t)(n * s.extent + ELEMENT_MAX), left(),
				       (unsigned)(k + n));
		}
}

/* Receives complete while the program waits in the library: unpacking must still happen. */
static void typed_behind_collective(MPI_Comm comm)
{
	MPI_Request q[2];
	struct shape s;
	int n;

	make(1, &s);
	for (n = 1; n <= 4000; n *= 20) {
		memset(to, 0xee, ROOM);
		scatter_fill(&s, n, (unsigned)n);
		MPI_Irecv(to, n, s.type, left(), 1, comm, &q[0]);
		MPI_Isend(from, n, s.type, right(), 1, comm, &q[1]);
		MPI_Barrier(comm);
		MPI_Barrier(comm);
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		scatter_verify(&s, (size_t)(n * s.size), (size_t)(n * s.extent + ELEMENT_MAX), left(), (unsigned)n);
	}
	MPI_Type_free(&s.type);
}

static void bottom(MPI_Comm comm)
{
	static char out[64], in[64];
	int length = 64;
	MPI_Datatype there, here;
	MPI_Aint at;

	suite_fill(out, 64, suite_rank, 3);
	MPI_Get_address(out, &at);
	MPI_Type_create_hindexed(1, &length, &at, MPI_BYTE, &there);
	MPI_Get_address(in, &at);
	MPI_Type_create_hindexed(1, &length, &at, MPI_BYTE, &here);
	MPI_Type_commit(&there);
	MPI_Type_commit(&here);
	MPI_Sendrecv(MPI_BOTTOM, 1, there, right(), 1, MPI_BOTTOM, 1, here, left(), 1, comm,
		     MPI_STATUS_IGNORE);
	suite_verify(in, 64, 64, left(), 3);
	MPI_Type_free(&there);
	MPI_Type_free(&here);
}

/* Two pieces, by their absolute addresses; a duplicate of that type. */
static MPI_Datatype absolute_type(void *first, int first_bytes, void *second, int second_bytes)
{
	int lengths[2] = {first_bytes, second_bytes};
	MPI_Datatype made, copy;
	MPI_Aint at[2];

	MPI_Get_address(first, &at[0]);
	MPI_Get_address(second, &at[1]);
	MPI_Type_create_hindexed(2, lengths, at, MPI_BYTE, &made);
	MPI_Type_commit(&made);
	MPI_Type_dup(made, &copy);
	MPI_Type_free(&made);
	return copy;
}

enum { PIECE = 100, APART = 5000 };

static void absolute_verify(size_t rest, int source, unsigned message)
{
	unsigned char *all = malloc(PIECE + rest);

	memcpy(all, to + APART, PIECE);
	memcpy(all + PIECE, to + 2 * APART, rest);
	suite_verify(all, PIECE + rest, PIECE + rest, source, message);
	CHECK(to[APART - 1] == 0xee && to[APART + PIECE] == 0xee);
	CHECK(to[2 * APART - 1] == 0xee && to[2 * APART + rest] == 0xee);
	free(all);
	memset(to, 0xee, ROOM);
}

/* MPI_BOTTOM and types of absolute addresses, in every kind of call; short and long. */
static void absolute(MPI_Comm comm)
{
	static const size_t rests[] = {1, 300, 60000};
	static char buffer[200000];
	int bytes, root;
	size_t i;

	MPI_Buffer_attach(buffer, sizeof(buffer));
	for (i = 0; i < 3; i++) {
		const size_t rest = rests[i];
		MPI_Datatype out = absolute_type(from, PIECE, from + APART, (int)rest), in;
		MPI_Request q[2];
		MPI_Message message;
		MPI_Status st;

		in = absolute_type(to + APART, PIECE, to + 2 * APART, (int)rest);
		suite_fill(from, PIECE + rest, suite_rank, 8);
		memmove(from + APART, from + PIECE, rest);
		memset(to, 0xee, ROOM);
		MPI_Sendrecv(MPI_BOTTOM, 1, out, right(), 1, MPI_BOTTOM, 1, in, left(), 1, comm, &st);
		suite_status(&st, left(), 1, PIECE + rest);
		absolute_verify(rest, left(), 8);

		MPI_Bsend(MPI_BOTTOM, 1, out, right(), 2, comm);
		MPI_Mprobe(left(), 2, comm, &message, &st);
		MPI_Mrecv(MPI_BOTTOM, 1, in, &message, &st);
		suite_status(&st, left(), 2, PIECE + rest);
		absolute_verify(rest, left(), 8);

		MPI_Recv_init(MPI_BOTTOM, 1, in, left(), 3, comm, &q[0]);
		MPI_Ssend_init(MPI_BOTTOM, 1, out, right(), 3, comm, &q[1]);
		MPI_Startall(2, q);
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		absolute_verify(rest, left(), 8);
		MPI_Startall(2, q);
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		absolute_verify(rest, left(), 8);
		MPI_Request_free(&q[0]);
		MPI_Request_free(&q[1]);

		/* A message that ends in the second piece. */
		MPI_Isend(from, PIECE + 1, MPI_BYTE, right(), 4, comm, &q[0]);
		MPI_Recv(MPI_BOTTOM, 1, in, left(), 4, comm, &st);
		MPI_Wait(&q[0], MPI_STATUS_IGNORE);
		suite_status(&st, left(), 4, PIECE + 1);
		absolute_verify(1, left(), 8);

		for (root = 0; root < suite_size; root++) {
			MPI_Bcast(MPI_BOTTOM, 1, root == suite_rank ? out : in, root, comm);
			if (root != suite_rank)
				absolute_verify(rest, root, 8);
		}
		MPI_Type_free(&out);
		MPI_Type_free(&in);
	}
	MPI_Buffer_detach(&buffer, &bytes);
}

/*
 * MPI_BOTTOM in collectives.  A rank's part is every other int of a vector, and one more: a
 * struct of both, by absolute addresses.
 */
enum { VECTOR_INTS = 50, PART_INTS = VECTOR_INTS + 1, PARTS_MAX = 8 };

struct part {
	int vector[2 * VECTOR_INTS];
	int last;
};

static MPI_Datatype part_type(struct part *p)
{
	MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_INT}, made;
	int lengths[2] = {1, 1};
	MPI_Aint at[2];

	MPI_Type_vector(VECTOR_INTS, 1, 2, MPI_INT, &types[0]);
	MPI_Get_address(p->vector, &at[0]);
	MPI_Get_address(&p->last, &at[1]);
	MPI_Type_create_struct(2, lengths, at, types, &made);
	MPI_Type_commit(&made);
	MPI_Type_free(&types[0]);
	return made;
}

static void part_fill(struct part *p, int value)
{
	int i;

	for (i = 0; i < VECTOR_INTS; i++) {
		p->vector[2 * i] = value * 1000 + i;
		p->vector[2 * i + 1] = -7;
	}
	p->last = value * 1000 + VECTOR_INTS;
}

static void ints_check(const int *at, int value, const char *what)
{
	int i;

	for (i = 0; i < PART_INTS; i++)
		CHECK(at[i] == value * 1000 + i, "%s: int %d of rank %d's is %d", what, i, value, at[i]);
}

static void part_check(const struct part *p, int value, const char *what)
{
	int i;

	for (i = 0; i < VECTOR_INTS; i++)
		CHECK(p->vector[2 * i] == value * 1000 + i && p->vector[2 * i + 1] == -7,
		      "%s: int %d is %d, the one between %d", what, i, p->vector[2 * i],
		      p->vector[2 * i + 1]);
	CHECK(p->last == value * 1000 + VECTOR_INTS, "%s: the last is %d", what, p->last);
}

static void absolute_collectives(MPI_Comm comm)
{
	static struct part out, in, own;
	static int all[PARTS_MAX * PART_INTS];
	int counts[PARTS_MAX], displs[PARTS_MAX], ones[PARTS_MAX], zeros[PARTS_MAX], i, root;
	MPI_Datatype send = part_type(&out), recv = part_type(&in), same = part_type(&own);
	MPI_Datatype sends[PARTS_MAX], ints[PARTS_MAX];

	CHECK(suite_size <= PARTS_MAX);
	for (i = 0; i < PARTS_MAX; i++) {
		counts[i] = PART_INTS;
		displs[i] = i * PART_INTS;
		ones[i] = 1;
		zeros[i] = 0;
		sends[i] = send;
		ints[i] = MPI_INT;
	}
	part_fill(&out, suite_rank);
	part_fill(&in, 99);
	memset(all, 0, sizeof(all));
	MPI_Allgather(MPI_BOTTOM, 1, send, all, PART_INTS, MPI_INT, comm);
	for (i = 0; i < suite_size; i++)
		ints_check(all + displs[i], i, "allgather");
	memset(all, 0, sizeof(all));
	MPI_Allgatherv(MPI_BOTTOM, 1, send, all, counts, displs, MPI_INT, comm);
	for (i = 0; i < suite_size; i++)
		ints_check(all + displs[i], i, "allgatherv");
	for (root = 0; root < suite_size; root++) {
		memset(all, 0, sizeof(all));
		MPI_Gather(MPI_BOTTOM, 1, send, all, PART_INTS, MPI_INT, root, comm);
		for (i = 0; i < suite_size && root == suite_rank; i++)
			ints_check(all + displs[i], i, "gather");
		MPI_Bcast(all, suite_size * PART_INTS, MPI_INT, root, comm);
		MPI_Scatter(all, PART_INTS, MPI_INT, MPI_BOTTOM, 1, recv, root, comm);
		part_check(&in, suite_rank, "scatter");
		part_fill(&in, 99);
		MPI_Scatterv(all, counts, displs, MPI_INT, MPI_BOTTOM, 1, recv, root, comm);
		part_check(&in, suite_rank, "scatterv");
		part_fill(&in, 99);
		part_fill(&own, suite_rank == root ? root : 99);
		MPI_Bcast(MPI_BOTTOM, 1, same, root, comm);
		part_check(&own, root, "bcast");
	}
	/* The same part to all, by displacements of nothing. */
	memset(all, 0, sizeof(all));
	MPI_Alltoallv(MPI_BOTTOM, ones, zeros, send, all, counts, displs, MPI_INT, comm);
	for (i = 0; i < suite_size; i++) {
		ints_check(all + displs[i], i, "alltoallv");
		displs[i] *= (int)sizeof(int);
	}
	memset(all, 0, sizeof(all));
	MPI_Alltoallw(MPI_BOTTOM, ones, zeros, sends, all, counts, displs, ints, comm);
	for (i = 0; i < suite_size; i++)
		ints_check(all + i * PART_INTS, i, "alltoallw");
	MPI_Type_free(&send);
	MPI_Type_free(&recv);
	MPI_Type_free(&same);
}

/* Attributes of a type are the program's: nothing copies them, and they go with the type. */
static int copies, deletes;

static int count_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
	copies++;
	*flag = 0;
	return MPI_SUCCESS;
}

static int count_delete(MPI_Datatype type, int keyval, void *value, void *extra)
{
	deletes++;
	return MPI_SUCCESS;
}

static void attributes(MPI_Comm comm)
{
	MPI_Datatype type, outer;
	int keyval;

	copies = deletes = 0;
	MPI_Type_create_keyval(count_copy, count_delete, &keyval, NULL);
	MPI_Type_vector(100, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Type_set_attr(type, keyval, &copies);
	MPI_Sendrecv(from, 1, type, right(), 1, to, 1, type, left(), 1, comm, MPI_STATUS_IGNORE);
	MPI_Type_free(&type);
	CHECK(copies == 0 && deletes == 1, "copied %d times, deleted %d times", copies, deletes);

	/*
	 * The same for a type in another type: a question about the outer type keeps nothing of the
	 * inner.
	 */
	copies = deletes = 0;
	MPI_Type_vector(10, 1, 2, MPI_INT, &type);
	MPI_Type_set_attr(type, keyval, &copies);
	MPI_Type_create_hvector(5, 1, 100, type, &outer);
	MPI_Type_commit(&outer);
	MPI_Sendrecv(from, 1, outer, right(), 1, to, 1, outer, left(), 1, comm, MPI_STATUS_IGNORE);
	CHECK(deletes == 0, "deleted too early");
	MPI_Type_free(&outer);
	MPI_Type_free(&type);
	CHECK(copies == 0 && deletes == 1, "copied %d times, deleted %d times", copies, deletes);
	MPI_Type_free_keyval(&keyval);
}

/* A type of no bytes, and zero elements of others. */
static void empty(MPI_Comm comm)
{
	MPI_Datatype none;
	MPI_Status st;
	char c = 5;

	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_commit(&none);
	MPI_Sendrecv(&c, 4, none, right(), 1, &c, 4, none, left(), 1, comm, &st);
	suite_status(&st, left(), 1, 0);
	MPI_Sendrecv(NULL, 0, MPI_INT, right(), 1, NULL, 0, MPI_DOUBLE, left(), 1, comm, &st);
	suite_status(&st, left(), 1, 0);
	CHECK(c == 5);
	MPI_Type_free(&none);
}

static const struct suite_case cases[] = {
	{.name = "shapes", .run = shapes, .min_ranks = 1,
	 .native_defect = "MPICH 4.0 reports truncation where bytes fill 1500 structures exactly"},
	{.name = "partial", .run = partial, .min_ranks = 1},
	{.name = "partial_shapes", .run = partial_shapes, .min_ranks = 1},
	{.name = "truncated", .run = truncated, .min_ranks = 1, .changes_errors = true,
	 .native_defect = "Open MPI 4.1 writes behind the receive, MPICH 4.0 waits for ever"},
	{.name = "freed_early", .run = freed_early, .min_ranks = 1},
	{.name = "typed_behind_collective", .run = typed_behind_collective, .min_ranks = 1},
	{.name = "bottom", .run = bottom, .min_ranks = 1},
	{.name = "absolute", .run = absolute, .min_ranks = 1},
	{.name = "absolute_collectives", .run = absolute_collectives, .min_ranks = 1},
	{.name = "attributes", .run = attributes, .min_ranks = 1},
	{.name = "empty", .run = empty, .min_ranks = 1},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
