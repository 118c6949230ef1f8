/*
 * random_suite.c - random programs.  All ranks draw the same plan of a round
 * (who sends what to whom) from one seed, each rank its own way of doing it.
 *
 * What is proved of every receive: the bytes are those of the message that the
 * status names, and messages of one (source, tag) come in the order sent.
 *
 * SUITE_SEED starts elsewhere, SUITE_ROUNDS runs longer; a failure prints both.
 */
#include "suite.h"

enum { TAGS = 4, MESSAGES = 48, ROOM = 200000 };

static uint64_t plan_state, mine_state;

static unsigned draw(uint64_t *state, unsigned n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((*state >> 33) % n);
}

struct message { int from, to, tag, id; size_t bytes; };

static struct message plan[MESSAGES];
static int planned;
static unsigned long seed, round_number;

/* Most messages are short, some are around the limits, a few are long. */
static size_t draw_size(void)
{
	switch (draw(&plan_state, 8)) {
	case 0: return suite_sizes[draw(&plan_state, 20)];
	case 1: return 8193 + draw(&plan_state, ROOM - 8300);
	case 2: return 8000 + draw(&plan_state, 400);
	case 3: return draw(&plan_state, 5000);
	default: return draw(&plan_state, 100);
	}
}

static void draw_plan(void)
{
	int i;

	planned = 1 + (int)draw(&plan_state, MESSAGES);
	for (i = 0; i < planned; i++) {
		plan[i].from = (int)draw(&plan_state, (unsigned)suite_size);
		plan[i].to = (int)draw(&plan_state, (unsigned)suite_size);
		plan[i].tag = (int)draw(&plan_state, TAGS);
		plan[i].id = i;
		plan[i].bytes = draw_size();
		if (plan[i].bytes > ROOM - 64)
			plan[i].bytes = ROOM - 64;
	}
}

/* The first message of this envelope that has not come yet. */
static int next_of(const bool *come, int source, int tag)
{
	int i;

	for (i = 0; i < planned; i++)
		if (!come[i] && plan[i].from == source && plan[i].to == suite_rank && plan[i].tag == tag)
			return i;
	return -1;
}

static void verify(bool *come, const unsigned char *buf, const MPI_Status *st)
{
	int i = next_of(come, st->MPI_SOURCE, st->MPI_TAG);

	CHECK(i >= 0, "seed %lu round %lu: a message nobody sent: source %d tag %d", seed, round_number,
	      st->MPI_SOURCE, st->MPI_TAG);
	suite_status(st, plan[i].from, plan[i].tag, plan[i].bytes);
	suite_verify(buf, plan[i].bytes, plan[i].bytes + 32, plan[i].from,
		     (unsigned)(round_number * 1000 + (unsigned)plan[i].id));
	come[i] = true;
}

static void send_one(const struct message *m, unsigned char *buf, MPI_Comm comm, MPI_Request *q)
{
	suite_fill(buf, m->bytes, suite_rank, (unsigned)(round_number * 1000 + (unsigned)m->id));
	switch (draw(&mine_state, 4)) {
	case 0:
		MPI_Issend(buf, (int)m->bytes, MPI_BYTE, m->to, m->tag, comm, q);
		break;
	case 1:
		MPI_Send_init(buf, (int)m->bytes, MPI_BYTE, m->to, m->tag, comm, q);
		MPI_Start(q);
		break;
	default:
		MPI_Isend(buf, (int)m->bytes, MPI_BYTE, m->to, m->tag, comm, q);
	}
}

/* One round: each rank receives all of its messages in one style, sends woven in between. */
static void run_round(MPI_Comm comm, unsigned char *out, unsigned char *in)
{
	bool come[MESSAGES] = {false}, any_source = draw(&mine_state, 2), any_tag = draw(&mine_state, 2);
	bool probe = draw(&mine_state, 4) == 0;
	MPI_Request sq[MESSAGES], rq[MESSAGES];
	int i, sends = 0, recvs = 0, at = 0, index;
	int expected[MESSAGES];
	MPI_Status st;

	for (i = 0; i < planned; i++)
		if (plan[i].to == suite_rank)
			expected[recvs++] = i;
	/* Receives that name their message are posted in the order sent; others in any. */
	for (i = 0; i < planned || at < recvs;) {
		if (i < planned && (at >= recvs || draw(&mine_state, 2))) {
			if (plan[i].from == suite_rank) {
				send_one(&plan[i], out + (size_t)i * ROOM, comm, &sq[sends]);
				sends++;
			}
			i++;
		} else if (probe) {
			at = recvs;	/* received below */
		} else {
			const struct message *m = &plan[expected[at]];

			suite_blank(in + (size_t)at * ROOM, any_source || any_tag ? ROOM : m->bytes + 64);
			MPI_Irecv(in + (size_t)at * ROOM, ROOM, MPI_BYTE, any_source ? MPI_ANY_SOURCE : m->from,
				  any_tag ? MPI_ANY_TAG : m->tag, comm, &rq[at]);
			at++;
		}
	}
	if (probe)
		for (i = 0; i < recvs; i++) {
			MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &st);
			suite_blank(in, ROOM);
			MPI_Recv(in, ROOM, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, comm, &st);
			verify(come, in, &st);
		}
	else
		/*
		 * Receives of one envelope complete in any order but were matched
		 * in post order, so verify in post order.
		 */
		switch (draw(&mine_state, 3)) {
		case 0: {
			MPI_Status all[MESSAGES];

			MPI_Waitall(recvs, rq, all);
			for (i = 0; i < recvs; i++)
				verify(come, in + (size_t)i * ROOM, &all[i]);
			break;
		}
		case 1:
			for (i = 0; i < recvs; i++) {
				MPI_Wait(&rq[i], &st);
				verify(come, in + (size_t)i * ROOM, &st);
			}
			break;
		default: {
			MPI_Status all[MESSAGES];

			for (i = 0; i < recvs; i++) {
				MPI_Waitany(recvs, rq, &index, &st);
				CHECK(index != MPI_UNDEFINED);
				all[index] = st;
			}
			for (i = 0; i < recvs; i++)
				verify(come, in + (size_t)i * ROOM, &all[i]);
		}
		}
	MPI_Waitall(sends, sq, MPI_STATUSES_IGNORE);
	for (i = 0; i < sends; i++)
		if (sq[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&sq[i]);
}

static void random_programs(MPI_Comm comm)
{
	unsigned long rounds = getenv("SUITE_ROUNDS") ? strtoul(getenv("SUITE_ROUNDS"), NULL, 10) : 150;
	unsigned char *out = malloc((size_t)MESSAGES * ROOM), *in = malloc((size_t)MESSAGES * ROOM);

	CHECK(out && in);
	seed = getenv("SUITE_SEED") ? strtoul(getenv("SUITE_SEED"), NULL, 10) : 1;
	for (round_number = 0; round_number < rounds; round_number++) {
		plan_state = seed * 0x9e3779b97f4a7c15u + round_number * 0xda942042e4dd58b5u;
		mine_state = plan_state ^ ((uint64_t)suite_rank + 1) * 0xbf58476d1ce4e5b9u;
		draw_plan();
		run_round(comm, out, in);
		/* Without it wildcards of one round would take messages of the next. */
		MPI_Barrier(comm);
	}
	free(out);
	free(in);
}

static const struct suite_case cases[] = {
	{.name = "random_programs", .run = random_programs, .min_ranks = 1},
	{0},
};

int main(int argc, char **argv)
{
	return suite_main(argc, argv, MPI_THREAD_SINGLE, cases);
}
