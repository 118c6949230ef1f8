/*
 * test_offers.c - rendezvous chosen by the ends: the way that each message takes, and its bytes, if
 * both ends offer at once and if several offers wait.
 */
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

#include "job.h"
#include "rail/rail.h"
#include "rail/peer/peer.h"

/* ---- Offers that meet --------------------------------------------------------------------- */

enum { MET_BYTES = 256 << 10 };

struct met {
	const char *soft;
	enum rail_rendezvous way;
	bool meet;			/* process 1 offers a message as well */
	size_t bytes;
	bool read, both, ring;		/* the expected move of process 0's message */
	uint64_t most;			/* bytes of a request, by adapters of both; 0: as they are */
	bool paired;			/* process 1 offers by `back`; no move is expected */
	enum rail_rendezvous back;
};

static struct rail_op met_in = { .done = job_count_done };
static unsigned char *met_to;

/* An offer that came before this end had made its own, since it was late out of the barrier. */
static struct rail_message met_early;
static bool met_ready;

/* An offer is accepted as it comes: before an answer to this end's offer. */
static void met_accept(void *user, const struct rail_message *msg)
{
	(void)user;
	CHECK(!msg->payload);
	if (!met_ready) {
		met_early = *msg;
		return;
	}
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous,
				&(struct rail_buf){ met_to, msg->bytes, RAIL_MEM_HOST }, &met_in), 0);
}

/* Of one rail: the requests by which the messages of this end moved, whichever end made them. */
static uint64_t met_requests(const struct job *job)
{
	struct rail_ledger ledger;

	CHECK(rail_ledger(job->ctx, 0, &ledger));
	return ledger.tx_chunks;
}

static void met_moves(const struct job *job, const struct met *m, const struct rail_op *out)
{
	struct rail_traced t;

	rail_op_traced(job->rank ? &met_in : out, !job->rank, &t);
	CHECK_EQUAL(t.bytes, m->bytes);
	if (m->paired)
		return;
	CHECK_EQUAL(t.read, m->read);
	CHECK_EQUAL(t.both, m->both);
	CHECK_EQUAL(t.ring, m->ring);
}

static unsigned char *met_memory(size_t bytes)
{
	unsigned char *memory = malloc(bytes);

	CHECK(memory);
	return memory;
}

static void met_body(struct job *job)
{
	const struct met *m = job->arg;
	const struct rail_way way = { .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192,
				      .rendezvous = (uint8_t)(m->paired && job->rank ? m->back : m->way) };
	struct rail_op out = { .done = job_count_done };
	const bool sends = job->rank == 0 || m->meet, receives = job->rank == 1 || m->meet;
	unsigned char *from = met_memory(m->bytes);
	const struct rail_header header = { { 1, 2 } };
	const int other = !job->rank;

	met_to = met_memory(m->bytes);
	job->rail.on_message = met_accept;
	met_ready = !sends && !m->most;
	job_connect(job);
	if (m->most)
		job->peer[other]->chunk_most = m->most;
	for (size_t i = 0; i < m->bytes; i++)
		from[i] = (unsigned char)(i * 7 + i / 251 + (size_t)job->rank);
	if (sends)
		CHECK_EQUAL(rail_send(job->peer[other], &way, &header,
				      &(struct rail_buf){ from, m->bytes, RAIL_MEM_HOST }, 0, &out), 0);
	met_ready = true;
	if (met_early.peer)
		met_accept(NULL, &met_early);
	while (job_seen.done < sends + receives)
		job_progress(job);
	CHECK_EQUAL(job_seen.status, 0);
	for (size_t i = 0; receives && i < m->bytes; i++)
		CHECK_EQUAL(met_to[i], (unsigned char)(i * 7 + i / 251 + (size_t)other));
	met_moves(job, m, &out);
	CHECK(!m->most || !sends || met_requests(job) * m->most >= m->bytes);
	job_close(job);
	free(from);
	free(met_to);
}

/* Offers that meet are read whole if one copy is enough, where processors copy at all. */
static void test_met(void **state)
{
	static const struct met cases[] = {
		{ "ideal", RAIL_BY_AUTO, false, 65536, .both = true },
		{ "ideal", RAIL_BY_AUTO, true, 65536, .read = true },
		{ "ideal,ports=1", RAIL_BY_AUTO, true, 16384, .read = true },
		{ "ideal", RAIL_BY_AUTO, true, MET_BYTES, .read = true },
		{ "ideal", RAIL_BY_AUTO, true, MET_BYTES + 1, .both = true },
		{ "ideal", RAIL_BY_AUTO, true, 9000, .read = true },
		{ "ideal", RAIL_BY_AUTO, false, 9000, .read = true },
		{ "ideal", RAIL_BY_BOTH, false, 9000, .both = true },
		{ "ideal", RAIL_BY_TURNS, false, 9000, .read = true },
		{ "ideal", RAIL_BY_TURNS, true, 65536, .read = true },
		{ "ideal", RAIL_BY_BOTH, true, 65536, .read = true },
		{ "ideal", RAIL_BY_BOTH, true, MET_BYTES + 1, .both = true },
		{ "ports=2,rate=20GB/s,latency=1us", RAIL_BY_AUTO, true, 65536 },
		{ "ideal,ports=1", RAIL_BY_RING, false, 9000, .ring = true },
		{ "ideal,ports=1", RAIL_BY_RING, true, MET_BYTES + 1, .ring = true },
		{ "ideal,ports=1", RAIL_BY_RING_SHORT, true, MET_BYTES + 1, .ring = true },
		{ "ideal,ports=1", RAIL_BY_RING_LONG, false, 9000, .ring = true },
		{ "ideal", RAIL_BY_RING, false, MET_BYTES + 1, .both = true },
		/* Adapters that take short requests only. */
		{ "ideal,ports=1", RAIL_BY_BOTH, false, MET_BYTES + 1, .both = true, .most = 65536 },
		{ "ideal,ports=1", RAIL_BY_AUTO, true, MET_BYTES, .read = true, .most = 65536 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(job_run(&(struct job_config){ .soft = cases[i].soft }, met_body,
					 &cases[i], 0), 0);
}

/* Large messages of both directions, each by a scheme of its own. */
static void test_paired(void **state)
{
	static const char *const softs[] = { "ideal,ports=1", "ideal", "ports=2,rate=20GB/s,latency=1us" };
	enum { WAYS = RAIL_BY_RING + 1, SOFTS = 3, LARGE = (4 << 20) + 1, HUGE_BYTES = 64 << 20 };
	struct met pair = { .meet = true, .paired = true };

	(void)state;
	for (int i = 0; i < SOFTS * WAYS * WAYS; i++) {
		pair.way = (enum rail_rendezvous)(i % WAYS);
		pair.back = (enum rail_rendezvous)(i / WAYS % WAYS);
		pair.soft = softs[i / WAYS / WAYS];
		pair.bytes = pair.soft == softs[0] && pair.back == (pair.way + 1) % WAYS ? HUGE_BYTES : LARGE;
		assert_int_equal(job_run(&(struct job_config){ .soft = pair.soft }, met_body, &pair, 0), 0);
	}
}

/* ---- Several offers one way ----------------------------------------------------------------- */

enum { SEVERAL = 5, TURN_BYTES = 64 << 10 };

struct several {
	const char *soft;
	enum rail_rendezvous way;
	size_t bytes;
	const char *how;		/* each message: half and half, read, written, by slices; '?': half and
					   half, or read because the sender is late with another (late.h) */
};

static struct rail_op several_in[SEVERAL];
static unsigned char several_to[SEVERAL][TURN_BYTES + 1];

static unsigned char several_byte(int message, size_t i)
{
	return (unsigned char)(i * 7 + i / 251 + (size_t)message * 31);
}

static void several_accept(void *user, const struct rail_message *msg)
{
	int n = (int)msg->header->word[0];

	(void)user;
	several_in[n].done = job_count_done;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous,
				&(struct rail_buf){ several_to[n], msg->bytes, RAIL_MEM_HOST },
				&several_in[n]), 0);
}

/* Process 0 offers them all before it can see an answer. */
static void several_send(struct job *job, const struct several *m)
{
	const struct rail_way way = { .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192,
				      .rendezvous = (uint8_t)m->way };
	static unsigned char from[SEVERAL][TURN_BYTES + 1];
	static struct rail_op out[SEVERAL];
	struct rail_traced t;

	for (int n = 0; n < SEVERAL; n++) {
		const struct rail_header header = { { (uint64_t)n, 2 } };

		out[n].done = job_count_done;
		for (size_t i = 0; i < m->bytes; i++)
			from[n][i] = several_byte(n, i);
		CHECK_EQUAL(rail_send(job->peer[1], &way, &header,
				      &(struct rail_buf){ from[n], m->bytes, RAIL_MEM_HOST }, 0,
				      &out[n]), 0);
	}
	while (job_seen.done < SEVERAL)
		job_progress(job);
	for (int n = 0; n < SEVERAL; n++) {
		rail_op_traced(&out[n], true, &t);
		CHECK_EQUAL(t.bytes, m->bytes);
		if (m->how[n] == '?') {
			CHECK(t.both != t.read);
			continue;
		}
		CHECK_EQUAL(t.both, m->how[n] == 'h');
		CHECK_EQUAL(t.read, m->how[n] == 'r');
		CHECK_EQUAL(t.ring, m->how[n] == 's');
	}
}

static void several_body(struct job *job)
{
	const struct several *m = job->arg;

	job->rail.on_message = several_accept;
	job_connect(job);
	if (job->rank == 0) {
		several_send(job, m);
	} else {
		while (job_seen.done < SEVERAL)
			job_progress(job);
		for (int n = 0; n < SEVERAL; n++)
			for (size_t i = 0; i < m->bytes; i++)
				CHECK_EQUAL(several_to[n][i], several_byte(n, i));
	}
	CHECK_EQUAL(job_seen.status, 0);
	job_close(job);
}

/* Where processors copy the ways are as asked for; the receiver that may choose reads at first. */
static void test_several(void **state)
{
	static const struct several cases[] = {
		{ "ideal", RAIL_BY_BOTH, TURN_BYTES, "hhhhh" },
		{ "ideal,ports=1", RAIL_BY_BOTH, 9000, "hhhhh" },
		{ "ideal", RAIL_BY_TURNS, TURN_BYTES, "rwrwr" },
		{ "ideal,ports=1", RAIL_BY_TURNS, 16384, "rwrwr" },
		{ "ideal", RAIL_BY_TURNS, TURN_BYTES + 1, "rwrwr" },
		{ "ideal", RAIL_BY_TURNS, 9000, "rwrwr" },
		{ "ideal", RAIL_BY_READ, 16384, "rrrrr" },
		{ "ideal", RAIL_BY_WRITE, 16384, "wwwww" },
		{ "ports=2,rate=20GB/s,latency=1us", RAIL_BY_TURNS, 65536, "hhhhh" },
		{ "ideal,ports=1", RAIL_BY_RING, TURN_BYTES + 1, "sssss" },
		{ "ideal", RAIL_BY_RING, TURN_BYTES + 1, "hhhhh" },
		{ "ports=1,rate=20GB/s,latency=1us", RAIL_BY_RING, 65536, "hhhhh" },
		{ "ideal", RAIL_BY_AUTO, TURN_BYTES, "h????" },
		{ "ideal", RAIL_BY_AUTO, TURN_BYTES + 1, "h????" },
		{ "ideal", RAIL_BY_AUTO, 9000, "rrrrr" },
		{ "ports=2,rate=20GB/s,latency=1us", RAIL_BY_AUTO, 65536, "wwwww" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(job_run(&(struct job_config){ .soft = cases[i].soft }, several_body,
					 &cases[i], 0), 0);
}

/* ---- Offers without bytes -------------------------------------------------------------------- */

enum { EMPTY = 4, SINGLE = 64, SINGLE_BYTES = 16384 };

static struct rail_op single_in = { .done = job_count_done };
static unsigned char single_to[SINGLE_BYTES];

static void single_accept(void *user, const struct rail_message *msg)
{
	(void)user;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous,
				&(struct rail_buf){ single_to, msg->bytes, RAIL_MEM_HOST }, &single_in), 0);
}

static uint32_t samples_alone(const struct job *job)
{
	struct rail_learned cell;
	uint32_t samples = 0;

	for (unsigned i = 0; rail_learned(job->ctx, i, &cell); i++)
		for (unsigned k = 0; k < cell.schemes && !strcmp(cell.load, "alone"); k++)
			samples += cell.scheme[k].samples;
	return samples;
}

/* Messages one after the other, each waited for. */
static void empty_body(struct job *job)
{
	const struct rail_way way = { .policy = RAIL_STRIPE, .threshold = 8192, .eager = 8192,
				      .rendezvous = RAIL_BY_AUTO };
	const struct rail_header header = { { 1, 2 } };
	static unsigned char from[SINGLE_BYTES];

	job->rail.on_message = single_accept;
	job_connect(job);
	for (int n = 1; n <= EMPTY + SINGLE; n++) {
		struct rail_op out = { .done = job_count_done };
		const size_t bytes = n <= EMPTY ? 0 : SINGLE_BYTES;

		if (job->rank == 0)
			CHECK_EQUAL(rail_send(job->peer[1], &way, &header,
					      &(struct rail_buf){ from, bytes, RAIL_MEM_HOST },
					      RAIL_SEND_SYNC, &out), 0);
		while (job_seen.done < n)
			job_progress(job);
	}
	CHECK_EQUAL(job_seen.status, 0);
	CHECK(job->rank == 0 || samples_alone(job) > 0);
	job_close(job);
}

/* The receiver measures the messages after them. */
static void test_empty(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, empty_body, NULL, 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_met),
		cmocka_unit_test(test_paired),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_empty),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
