/*
 * test_rails.c - librail on a modelled fabric and a virtual clock: messages take the time of the
 * model, and rails carry shares in proportion to their rates, from any initial estimate.
 *
 * Times are exact: the header of librail and its RTS and CTS are bytes on the wire like others.
 */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "../rail/traffic.h"
#include "counted.h"
#include "rail/rail.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/rate_estimate.h"

/* ---- One message there, one back ------------------------------------------ */

#define SPEC "ports=2,rate=1GB/s,latency=2us"

/* A byte takes 1 ns.  A record goes with a message; an RTS or a CTS is a whole slot. */
enum {
	LATENCY_NS = 2000, LARGE = 4 << 20, ROUNDS = 5,
	RECORD = sizeof(struct rail_record), SLOT = sizeof(struct rail_slot),
};

struct message {
	const char *soft;
	struct rail_way way;
	size_t bytes;
	uint64_t ns;			/* in one direction */
};

struct player {
	unsigned char *data;
	enum rail_mem_kind kind;		/* of data */
	struct counted in, out;
};

static struct player player[2];

static void on_message(void *user, const struct rail_message *msg)
{
	struct player *p = &player[((struct job *)user)->rank];
	struct rail_buf buf = { p->data, msg->bytes, p->kind };

	if (msg->payload) {
		memcpy(p->data, msg->payload, msg->bytes);
		p->in.count++;
		return;
	}
	p->in.op.done = counted_done;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous, &buf, &p->in.op), 0);
}

static void send_and_wait(struct job *job, const struct message *m)
{
	const struct rail_header header = { { 0 } };
	struct player *p = &player[job->rank];
	struct rail_buf buf = { p->data + (p->kind == RAIL_MEM_ARENA ? LARGE : 0), m->bytes, p->kind };

	p->out.op = (struct rail_op){ .done = counted_done };
	p->out.count = rail_send(job->peer[!job->rank], &m->way, &header, &buf, 0, &p->out.op);
	CHECK(p->out.count >= 0);
	while (!p->out.count)
		job_progress(job);
}

static void ping_body(struct job *job)
{
	const struct message *m = job->arg;
	struct player *p = &player[job->rank];

	*p = (struct player){ .kind = RAIL_MEM_ARENA };
	job->rail.on_message = on_message;
	job_connect(job);
	p->data = rail_alloc(job->ctx, 2 * LARGE);
	CHECK(p->data != NULL);
	job_barrier(job);
	for (int round = 1; round <= ROUNDS; round++) {
		uint64_t begin = rg_now_ns(), took;

		if (job->rank == 0)
			send_and_wait(job, m);
		while (p->in.count < round)
			job_progress(job);
		took = rg_now_ns() - begin;
		if (job->rank == 1)
			send_and_wait(job, m);
		else if (round > 1)
			CHECK_EQUAL(took, 2 * m->ns);
		job_barrier(job);
	}
	while (rail_busy(job->ctx))
		job_progress(job);
	rail_free(job->ctx, p->data);
	job_close(job);
}

static void check_message(struct message m)
{
	assert_int_equal(job_run(&(struct job_config){ .soft = m.soft }, ping_body, &m, 0), 0);
}

static void test_small(void **state)
{
	(void)state;
	for (size_t bytes = 8; bytes <= 1024; bytes *= 128)
		for (int w = 0; w < 3; w++)
			check_message((struct message){ SPEC, traffic_ways[w], bytes,
							LATENCY_NS + RECORD + bytes });
}

static void test_large(void **state)
{
	(void)state;
	for (int w = 0; w < 3; w++) {
		int rails = traffic_ways[w].policy == RAIL_STRIPE ? 2 : 1;

		check_message((struct message){ SPEC, traffic_ways[w], LARGE,
						3 * LATENCY_NS + 2 * SLOT + LARGE / rails });
	}
}

/* A slot is polled where the model promises order: no completion, whatever that costs. */
static void test_ring(void **state)
{
	(void)state;
	for (size_t bytes = 8; bytes <= 1024; bytes *= 128)
		check_message((struct message){ SPEC ",cqe=1us,order=timed", traffic_ways[0], bytes,
						LATENCY_NS + SLOT + (bytes > 32 ? bytes : 0) });
	check_message((struct message){ SPEC ",cqe=1us", traffic_ways[0], 8,
					LATENCY_NS + RECORD + 8 + 1000 });
}

/*
 * Figure 12 of P1: a byte takes the port's 1 ns and its packet 29 ns; the paper's MPI needs some
 * 0.3 us at both ends, which the virtual clock has not.
 */
static void test_paper(void **state)
{
	(void)state;
	check_message((struct message){ "mt25208-pcie", traffic_ways[0], 1, 3763 + 29 + SLOT });
	check_message((struct message){ "mt23108-pcix", traffic_ways[0], 1, 4763 + 29 + SLOT });
}

/* ---- Rails of 3:1 ---------------------------------------------------------- */

#define UNEQUAL "ports=2,rate=7.5GB/s+2.5GB/s,latency=2us"

enum { BYTES = 1 << 20, WINDOW = 8, MESSAGES = 32, WARM_UP = 128 };

/* The initial estimate; NULL: the ports' own rates. */
static const uint64_t even[] = { 1, 1 }, inverse[] = { 1, 1000 }, nothing[] = { 1, 100000 };

struct target {
	struct rail_way way;
	const uint64_t *start;
	double share, off;		/* the first rail's */
	const char *soft;
	double rate;			/* bytes per ns, to 1 %; 0: not judged */
};

struct stream {
	unsigned char *data;
	struct rail_op out[WINDOW], in[WINDOW];
	bool in_used[WINDOW];
	int posted, done, landed;
	uint32_t deepest;		/* most chunks on a lane that any lane could have taken */
};

static struct stream stream[2];

static void stream_sent(struct rail_op *op, int status)
{
	CHECK_EQUAL(status, 0);
	op->done = NULL;
	stream[0].done++;
}

static void stream_landed(struct rail_op *op, int status)
{
	CHECK_EQUAL(status, 0);
	stream[1].in_used[op - stream[1].in] = false;
	stream[1].landed++;
}

static void stream_message(void *user, const struct rail_message *msg)
{
	struct rail_buf buf = { .bytes = BYTES, .kind = RAIL_MEM_ARENA };
	struct stream *s = &stream[((struct job *)user)->rank];
	int i = 0;

	while (s->in_used[i])
		i++;
	CHECK(i < WINDOW && msg->rendezvous);
	s->in_used[i] = true;
	s->in[i].done = stream_landed;
	buf.addr = s->data + (size_t)i * BYTES;
	CHECK_EQUAL(rail_accept(msg->peer, msg->rendezvous, &buf, &s->in[i]), 0);
}

static void send_all(struct job *job, const struct rail_way *way, int messages)
{
	const struct rail_header header = { { 0 } };
	struct stream *s = &stream[0];

	for (s->posted = s->done = 0; s->done < messages; ) {
		for (int i = 0; i < WINDOW && s->posted < messages; i++) {
			struct rail_buf buf = { s->data + (size_t)i * BYTES, BYTES,
						RAIL_MEM_ARENA };

			if (s->out[i].done)
				continue;
			s->out[i].done = stream_sent;
			s->posted++;
			CHECK_EQUAL(rail_send(job->peer[1], way, &header, &buf, 0, &s->out[i]), 0);
		}
		job_progress(job);
		for (int k = 0; k < 2; k++)
			if (peer_bulk(job->peer[1], k, 0)->pulled > s->deepest)
				s->deepest = peer_bulk(job->peer[1], k, 0)->pulled;
	}
}

/* Send `messages` from 0 to 1; returns the first rail's share of this process's bytes. */
static double share_of(struct job *job, const struct rail_way *way, int messages)
{
	uint64_t bytes[2];
	struct rail_ledger before[2], after;

	for (int r = 0; r < 2; r++)
		rail_ledger(job->ctx, r, &before[r]);
	stream[job->rank].landed = 0;
	job_barrier(job);
	if (job->rank == 0)
		send_all(job, way, messages);
	while (job->rank == 1 && stream[1].landed < messages)
		job_progress(job);
	job_barrier(job);
	for (int r = 0; r < 2; r++) {
		rail_ledger(job->ctx, r, &after);
		bytes[r] = after.tx_bytes + after.rx_bytes - before[r].tx_bytes - before[r].rx_bytes;
	}
	CHECK_EQUAL(bytes[0] + bytes[1], (uint64_t)messages * BYTES);
	return (double)bytes[0] / (double)(bytes[0] + bytes[1]);
}

static void share_body(struct job *job)
{
	const struct target *t = job->arg;
	struct stream *s = &stream[job->rank];
	uint64_t begin;
	double share;

	*s = (struct stream){ 0 };
	job->rail.on_message = stream_message;
	job_connect(job);
	for (int p = 0; p < 2 && t->start; p++) {
		rail_estimate_init(&job->peer[p]->writing, 2, t->start);
		rail_estimate_init(&job->peer[p]->reading, 2, t->start);
	}
	s->data = rail_alloc(job->ctx, (size_t)WINDOW * BYTES);
	CHECK(s->data != NULL);
	memset(s->data, 1, (size_t)WINDOW * BYTES);
	share_of(job, &t->way, WARM_UP);
	begin = rg_now_ns();
	share = share_of(job, &t->way, MESSAGES);
	if (job->rank == 0 && t->rate > 0) {
		double rate = (double)MESSAGES * BYTES / (double)(rg_now_ns() - begin);

		if (rate < t->rate * 0.99 || rate > t->rate * 1.01)
			job_fail(__FILE__, __LINE__, "%s, policy %d: %.3f bytes per ns, should be "
				 "%.3f", t->soft, t->way.policy, rate, t->rate);
	}
	printf("# policy %d, %s, process %d: %.4f on the first rail\n", t->way.policy,
	       t->way.rendezvous ? "read" : "write", job->rank, share);
	if (share < t->share - t->off || share > t->share + t->off)
		job_fail(__FILE__, __LINE__, "policy %d, %s: %.4f of the bytes on the first rail, "
			 "should be %.4f", t->way.policy, t->way.rendezvous ? "read" : "write",
			 share, t->share);
	/* While many chunks wait, a lane holds more than two, or a long wire would run dry. */
	if (job->rank == 0 && t->way.policy == RAIL_PULL && !t->way.rendezvous)
		CHECK(s->deepest > 2 && s->deepest < MESSAGES);
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	rail_free(job->ctx, s->data);
	job_close(job);
}

static void check_share(enum rail_policy policy, const uint64_t *start, double share, double off)
{
	for (int how = 0; how < 2; how++) {
		struct target t = {
			.way = { .policy = policy, .threshold = 8192, .eager = 8192,
				 .rendezvous = how ? RAIL_BY_READ : RAIL_BY_WRITE },
			.start = start, .share = share, .off = off,
		};

		assert_int_equal(job_run(&(struct job_config){ .soft = UNEQUAL }, share_body, &t,
					 0), 0);
	}
}

static void test_stripe(void **state)
{
	(void)state;
	check_share(RAIL_STRIPE, NULL, 0.5, 0);
}

/* A weight has 255 parts, and each rail is tried now and then. */
static void test_weighted(void **state)
{
	(void)state;
	check_share(RAIL_WEIGHTED, NULL, 0.75, 0.01);
	check_share(RAIL_WEIGHTED, even, 0.75, 0.01);
	check_share(RAIL_WEIGHTED, inverse, 0.75, 0.01);
	check_share(RAIL_WEIGHTED, nothing, 0.75, 0.01);
}

/* The rate of two rails: their sum, or the limit of a bus or an adapter. */
static void test_sums(void **state)
{
	static const struct target targets[] = {
		{ .way.policy = RAIL_SINGLE, .share = 1, .rate = 8,
		  .soft = "ports=2,rate=8GB/s,latency=2us" },
		{ .way.policy = RAIL_STRIPE, .share = 0.5, .rate = 16,
		  .soft = "ports=2,rate=8GB/s,latency=2us" },
		{ .way.policy = RAIL_STRIPE, .share = 0.5, .rate = 12,
		  .soft = "ports=2,rate=8GB/s,bus=12GB/s/12GB/s:full,latency=2us" },
		{ .way.policy = RAIL_STRIPE, .share = 0.5, .rate = 12,
		  .soft = "ports=2,rate=8GB/s,cap=12GB/s,latency=2us" },
		/* The slower rail decides: 2 * 2 */
		{ .way.policy = RAIL_STRIPE, .share = 0.5, .rate = 4,
		  .soft = "ports=2,rate=6GB/s+2GB/s,latency=2us" },
		{ .way.policy = RAIL_PULL, .share = 0.75, .off = 0.01, .rate = 8,
		  .soft = "ports=2,rate=6GB/s+2GB/s,latency=2us" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		struct target t = targets[i];

		t.way.threshold = t.way.eager = 8192;
		assert_int_equal(job_run(&(struct job_config){ .soft = t.soft }, share_body, &t, 0),
				 0);
	}
}

static void test_pull(void **state)
{
	(void)state;
	check_share(RAIL_PULL, NULL, 0.75, 0.01);
}

/* ---- A sender that computes ------------------------------------------------ */

/*
 * Rank 0 offers a message and computes for COMPUTE_NS before it calls again; the scheme needs it.  A wait as
 * long makes the receiver read as long, then 4, 16 and 64 times so: of these messages it waits for LATE.
 */
enum { COMPUTE_NS = 5000000, OFFERED = 256 << 10, OFFERS = 1 + 1 + 1 + 4 + 1 + 16 + 1 + 64 + 1, LATE = 5 };

/* Memory that no end has mapped: schemes of other memory are not learned. */
static unsigned char late_data[2][OFFERED];

/* The cells have this scheme by given costs, as with --costs. */
static void settle_on(struct rail_ctx *ctx, uint64_t bytes, enum rail_scheme scheme, uint32_t read_ns)
{
	const uint32_t cost_ns[RAIL_SCHEMES] = { read_ns, 3, 2, 1 };

	for (unsigned place = 0; place < RAIL_PLACES; place++)
		CHECK(rail_scheme_give(rail_scheme_cell(&ctx->schemes, bytes, rail_load_at(place, LOAD_ALONE)),
				       scheme, cost_ns));
}

static void compute_and_wait(struct job *job, const struct rail_way *way, uint64_t compute_ns)
{
	const struct rail_header header = { { 0 } };
	struct player *p = &player[job->rank];
	struct rail_buf buf = { p->data, OFFERED, p->kind };

	p->out.op = (struct rail_op){ .done = counted_done };
	p->out.count = 0;
	CHECK_EQUAL(rail_send(job->peer[1], way, &header, &buf, 0, &p->out.op), 0);
	rg_sleep_ns(compute_ns);
	while (!p->out.count)
		job_progress(job);
}

static void late_body(struct job *job)
{
	const enum rail_scheme *scheme = job->arg;
	const struct rail_way way = { .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192,
				      .rendezvous = RAIL_BY_AUTO };
	struct player *p = &player[job->rank];
	struct rail_traced how;
	int waited = 0;

	*p = (struct player){ .data = late_data[job->rank], .kind = RAIL_MEM_HOST };
	job->rail.on_message = on_message;
	job_connect(job);
	settle_on(job->ctx, OFFERED, *scheme, 4);
	for (int round = 1; round <= OFFERS; round++) {
		uint64_t begin;

		job_barrier(job);
		begin = rg_now_ns();
		if (job->rank == 0)
			compute_and_wait(job, &way, COMPUTE_NS);
		while (job->rank == 1 && p->in.count < round)
			job_progress(job);
		waited += rg_now_ns() - begin >= COMPUTE_NS;
		rail_op_traced(job->rank ? &p->in.op : &p->out.op, !job->rank, &how);
		CHECK(round > 1 || (how.ring == (*scheme == SCHEME_RING) && how.both == (*scheme == SCHEME_HALVES)));
		CHECK(round != 2 || how.read);
	}
	CHECK_EQUAL(waited, job->rank ? LATE : OFFERS);
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	job_close(job);
}

static void test_late(void **state)
{
	static enum rail_scheme needs_sender[] = { SCHEME_HALVES, SCHEME_RING };

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, late_body,
					 &needs_sender[i], 0), 0);
}

/*
 * Where a read takes long, as measured, a sender that answers before is in time; so is one that moves the pages of
 * some buffers before (4 ns a byte until a move is measured): each message keeps its scheme.
 */
struct patience {
	bool maps;
	uint32_t read_ns;
	uint64_t compute_ns;
};

static void patience_body(struct job *job)
{
	const struct patience *patience = job->arg;
	const struct rail_way way = { .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192,
				      .rendezvous = RAIL_BY_AUTO };
	struct player *p = &player[job->rank];
	struct rail_traced how;

	*p = (struct player){ .data = late_data[job->rank], .kind = RAIL_MEM_HOST };
	job->rail.on_message = on_message;
	job->settings.map_buffers = patience->maps;
	job_connect(job);
	settle_on(job->ctx, OFFERED, SCHEME_HALVES, patience->read_ns);
	for (int round = 1; round <= 3; round++) {
		job_barrier(job);
		if (job->rank == 0)
			compute_and_wait(job, &way, patience->compute_ns);
		while (job->rank == 1 && p->in.count < round)
			job_progress(job);
		rail_op_traced(job->rank ? &p->in.op : &p->out.op, !job->rank, &how);
		CHECK(how.both);
	}
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	job_close(job);
}

static void test_patience(void **state)
{
	static struct patience patiences[] = {
		{ .read_ns = COMPUTE_NS, .compute_ns = COMPUTE_NS },
		{ .maps = true, .read_ns = 4, .compute_ns = 16 * OFFERED },
	};

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(job_run(&(struct job_config){ .soft = "ideal" }, patience_body, &patiences[i], 0), 0);
}

/* ---- A receiver that computes ---------------------------------------------- */

/*
 * The sender measures an offered message, and the receiver computes after it has asked for slices: the
 * sample ends when they are taken, though the sender was done long before.
 */
enum { SAMPLED = 64 << 10 };

static void sampled_send(struct job *job)
{
	const struct rail_way way = { .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192,
				      .rendezvous = RAIL_BY_AUTO, .eager_auto = true };
	const struct rail_row row = { .peer_place = job->peer[1]->row.peer_place };
	struct rail_eager_cell *cell = rail_eager_cell(&job->ctx->eager_choice, SAMPLED, &row);
	struct message m = { .way = way, .bytes = SAMPLED };

	cell->seen = cell->passed = UINT8_MAX;
	send_and_wait(job, &m);
	CHECK_EQUAL(cell->samples[EAGER_OFFERED], 0);
	while (!cell->samples[EAGER_OFFERED])
		job_progress(job);
	CHECK_EQUAL(cell->sample_ns[EAGER_OFFERED][0], COMPUTE_NS);
}

static void sampled_body(struct job *job)
{
	struct player *p = &player[job->rank];

	*p = (struct player){ .data = late_data[job->rank], .kind = RAIL_MEM_HOST };
	job->settings.eager = RAIL_AUTO;
	job->rail.on_message = on_message;
	job_connect(job);
	settle_on(job->ctx, SAMPLED, SCHEME_RING, 4);
	job_barrier(job);
	if (job->rank == 0) {
		sampled_send(job);
	} else {
		while (!p->in.op.done)
			job_progress(job);
		rg_sleep_ns(COMPUTE_NS);
		while (!p->in.count)
			job_progress(job);
	}
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	job_close(job);
}

static void test_sample_of_slices(void **state)
{
	(void)state;
	assert_int_equal(job_run(&(struct job_config){ .soft = "ideal,ports=1" }, sampled_body, NULL, 0), 0);
}

/* ---- Lengths of slices ------------------------------------------------------- */

/* The receiver asks for slices of the length that given costs choose; a sender whose way has one takes its own. */
static const struct slices {
	enum rail_scheme scheme;
	enum rail_rendezvous way;
	uint64_t slices;		/* of OFFERED bytes */
} slices[] = {
	{ SCHEME_RING, RAIL_BY_AUTO, 8 },
	{ SCHEME_RING_SHORT, RAIL_BY_AUTO, 16 },
	{ SCHEME_RING_LONG, RAIL_BY_AUTO, 4 },
	{ SCHEME_READ, RAIL_BY_RING, 8 },
	{ SCHEME_RING_LONG, RAIL_BY_RING, 8 },
	{ SCHEME_READ, RAIL_BY_RING_SHORT, 16 },
	{ SCHEME_RING_SHORT, RAIL_BY_RING_LONG, 4 },
};

static void slices_body(struct job *job)
{
	const struct slices *s = job->arg;
	const struct rail_way way = { .policy = RAIL_SINGLE, .threshold = 8192, .eager = 8192,
				      .rendezvous = (uint8_t)s->way };
	struct player *p = &player[job->rank];
	struct rail_ledger *ledger;

	*p = (struct player){ .data = late_data[job->rank], .kind = RAIL_MEM_HOST };
	job->rail.on_message = on_message;
	job_connect(job);
	settle_on(job->ctx, OFFERED, s->scheme, 4);
	for (size_t i = 0; i < OFFERED && job->rank == 0; i++)
		p->data[i] = (unsigned char)(i * 7 + i / 251);
	job_barrier(job);
	if (job->rank == 0)
		compute_and_wait(job, &way, 0);
	while (job->rank == 1 && !p->in.count)
		job_progress(job);
	ledger = &job->ctx->rail[0].ledger;
	CHECK_EQUAL(job->rank ? ledger->rx_chunks : ledger->tx_chunks, s->slices);
	CHECK_EQUAL(job->rank ? ledger->rx_bytes : ledger->tx_bytes, OFFERED);
	for (size_t i = 0; i < OFFERED; i++)
		CHECK_EQUAL(p->data[i], (unsigned char)(i * 7 + i / 251));
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	job_close(job);
}

static void test_lengths_of_slices(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(slices) / sizeof(*slices); i++)
		assert_int_equal(job_run(&(struct job_config){ .soft = "ideal,ports=1" }, slices_body, &slices[i], 0),
				 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_paper),
		cmocka_unit_test(test_stripe),
		cmocka_unit_test(test_weighted),
		cmocka_unit_test(test_pull),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_sample_of_slices),
		cmocka_unit_test(test_lengths_of_slices),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
