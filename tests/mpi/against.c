/* against.c - see against.h. */
#include "against.h"

MPI_Comm against_ours, against_native;
int against_rank, against_size;
unsigned char *against_given, *against_kept, *against_mine, *against_theirs;
unsigned long against_round;

static uint64_t plan_state;
static unsigned long seed;

unsigned against_draw(unsigned n)
{
	plan_state = plan_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((plan_state >> 33) % n);
}

void against_round_begin(unsigned long round, unsigned salt)
{
	against_round = round;
	plan_state = (seed + salt) * 0x9e3779b97f4a7c15u + round * 0xda942042e4dd58b5u;
	against_draw(2);
}

unsigned long against_rounds(unsigned long standard)
{
	const char *text = getenv("SUITE_ROUNDS");

	return text ? strtoul(text, NULL, 10) : standard;
}

static unsigned char *buffer(void)
{
	unsigned char *p = malloc(AGAINST_ROOM);

	CHECK(p);
	return p;
}

void against_begin(MPI_Comm comm)
{
	const char *text = getenv("SUITE_SEED");
	MPI_Info info;

	against_ours = comm;
	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", "native");
	MPI_Comm_dup_with_info(comm, info, &against_native);
	MPI_Info_free(&info);
	MPI_Comm_rank(comm, &against_rank);
	MPI_Comm_size(comm, &against_size);
	CHECK(against_size <= AGAINST_RANKS);
	seed = text ? strtoul(text, NULL, 10) : 1;
	if (against_given)
		return;
	against_given = buffer();
	against_kept = buffer();
	against_mine = buffer();
	against_theirs = buffer();
}

void against_end(void)
{
	MPI_Comm_free(&against_native);
}

static void noise(unsigned char *p, size_t bytes, unsigned salt)
{
	uint64_t x = plan_state ^ ((uint64_t)(unsigned)suite_rank + 1) * 0xbf58476d1ce4e5b9u ^ salt;
	size_t i;

	for (i = 0; i + 8 <= bytes; i += 8) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		memcpy(p + i, &x, 8);
	}
	memset(p + i, (int)salt, bytes - i);
}

void against_fill(size_t room)
{
	CHECK(room <= AGAINST_ROOM, "%zu bytes", room);
	noise(against_given, room, 1);
	memcpy(against_kept, against_given, room);
	noise(against_mine, room, 2);
	memcpy(against_theirs, against_mine, room);
}

static void same(const char *what, const unsigned char *p, const unsigned char *q, size_t room)
{
	size_t i = 0;

	if (!memcmp(p, q, room))
		return;
	while (p[i] == q[i])
		i++;
	CHECK(p[i] == q[i], "%s (seed %lu, round %lu): byte %ld is %02x, not %02x", what, seed,
	      against_round, (long)i - AGAINST_MARGIN, p[i], q[i]);
}

void against_check_kept(const char *what, size_t room)
{
	same(what, against_given, against_kept, room);
}

void against_compare(const char *what, size_t room)
{
	same(what, against_mine, against_theirs, room);
}
