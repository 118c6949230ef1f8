/* retries.c - receivers that are not ready, peers that do not answer: counters and timers of RC. */
#include <errno.h>

#include "conformance.h"

enum { BYTES = 4096 };

/* ---- Receiver not ready -------------------------------------------------- */

/* Until it gave up: not less, and where nothing else takes time, no more than a message's. */
static void took_about(uint64_t took_ns, uint64_t model_ns)
{
	if (took_ns < model_ns || (time_is_exact && took_ns > model_ns + 20000))
		fail("gave up after %llu ns, not %llu", (unsigned long long)took_ns,
		     (unsigned long long)model_ns);
}

static void rnr_exhausted(struct side *s, int retries)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	uint64_t start, took;
	struct end e;

	c.rnr_retry = retries;
	c.min_rnr_timer = 17;		/* 3.84 ms */
	e = end_new(s, &c);
	end_connect(s, &e);
	if (s->me == 0) {
		struct ibv_sge sge = sge_of(&b, 0, 100);

		start = now_ns();
		post(&e, send_wr(&sge, 1));
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		took = now_ns() - start;
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		wait_state(&e, IBV_QPS_ERR);
		took_about(took, (uint64_t)retries * 3840000);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_rnr_no_retry(struct side *s)
{
	rnr_exhausted(s, 0);
}

static void test_rnr_retries(struct side *s)
{
	rnr_exhausted(s, 3);
}

/* The time between tries is the receiver's, by the table (IBTA 9.7.5.2.8). */
static void test_rnr_timers(struct side *s)
{
	static const struct {
		int timer;
		uint64_t us;
	} rows[] = { { 1, 10 }, { 8, 160 }, { 13, 960 }, { 18, 5120 }, { 22, 20480 },
		     { 25, 61440 } };
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 100);
	unsigned i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct end_config c = end_defaults;
		uint64_t start, took;
		struct end e;

		c.min_rnr_timer = rows[i].timer;
		c.rnr_retry = 2;
		e = end_new(s, &c);
		end_connect(s, &e);
		if (s->me == 0) {
			start = now_ns();
			post(&e, send_wr(&sge, 1));
			expect(e.cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
			took = now_ns() - start;
			took_about(took, 2 * 1000 * rows[i].us);
		}
		barrier(s);
		end_free(&e);
	}
	buffer_free(s, &b);
}

/* The time without an answer is 4.096 us * 2^timeout, retry_cnt times and once (9.7.6.1.3). */
static void test_timeouts(struct side *s)
{
	static const struct {
		int timeout, retries;
	} rows[] = { { 1, 0 }, { 6, 6 }, { 10, 0 }, { 10, 3 }, { 13, 1 } };
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 100);
	unsigned i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct end_config c = end_defaults;
		struct peer_address mine, theirs;
		uint64_t start, took;
		struct end e;

		c.timeout = rows[i].timeout;
		c.retry_cnt = rows[i].retries;
		e = end_new(s, &c);
		mine = end_address(s, &e);
		swap(s, &mine, &theirs, sizeof(mine));
		if (s->me == 0) {
			require_equal(end_to_init(s, &e), 0);
			require_equal(end_to_rtr(s, &e, &theirs), 0);
			require_equal(end_to_rts(&e), 0);
			start = now_ns();
			post(&e, send_wr(&sge, 1));
			expect(e.cq, 1, IBV_WC_RETRY_EXC_ERR);
			took = now_ns() - start;
			took_about(took, ((uint64_t)rows[i].retries + 1) *
					 (4096u << rows[i].timeout));
		}
		barrier(s);
		end_free(&e);
	}
	buffer_free(s, &b);
}

/* Seven means for ever: a receive that is posted late is found. */
static void test_rnr_for_ever(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 1000);
	struct end e;

	c.min_rnr_timer = 12;		/* 0.64 ms */
	e = end_new(s, &c);
	end_connect(s, &e);
	if (s->me == 0) {
		fill(b.at, 4, 1000);
		post(&e, send_wr(&sge, 1));
		post(&e, send_wr(&sge, 2));
		expect_nothing(e.cq, 100);
		barrier(s);
		expect(e.cq, 1, IBV_WC_SUCCESS);
		expect(e.cq, 2, IBV_WC_SUCCESS);
	} else {
		barrier(s);
		post_receive(&e, 7, &sge, 1);
		post_receive(&e, 8, &sge, 1);
		expect(e.cq, 7, IBV_WC_SUCCESS);
		expect(e.cq, 8, IBV_WC_SUCCESS);
		check(b.at, 4, 1000, "sent before it was awaited");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Nobody answers ------------------------------------------------------ */

/* The other side's queue pair is in `state` and stays there. */
static void no_answer(struct side *s, enum ibv_qp_state state)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct peer_address mine, theirs;
	uint64_t start, took;
	struct end e;

	c.timeout = 10;			/* 4.2 ms */
	c.retry_cnt = 2;
	e = end_new(s, &c);
	mine = end_address(s, &e);
	swap(s, &mine, &theirs, sizeof(mine));
	if (s->me == 0) {
		struct ibv_sge sge = sge_of(&b, 0, 100);

		require_equal(end_to_init(s, &e), 0);
		require_equal(end_to_rtr(s, &e, &theirs), 0);
		require_equal(end_to_rts(&e), 0);
		barrier(s);
		start = now_ns();
		post(&e, send_wr(&sge, 1));
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 1, IBV_WC_RETRY_EXC_ERR);
		took = now_ns() - start;
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		took_about(took, 3 * 4096u * 1024);
	} else {
		if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
			require_equal(end_to_init(s, &e), 0);
		if (state == IBV_QPS_ERR)
			require_equal(end_to(&e, IBV_QPS_ERR), 0);
		barrier(s);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_peer_in_reset(struct side *s)
{
	no_answer(s, IBV_QPS_RESET);
}

static void test_peer_in_init(struct side *s)
{
	no_answer(s, IBV_QPS_INIT);
}

static void test_peer_in_error(struct side *s)
{
	no_answer(s, IBV_QPS_ERR);
}

/* On a wire the library's thread may have learned it before the first request: then an event tells. */
static void expect_unanswered(struct side *s, struct end *e, uint64_t wr_id)
{
	const struct ibv_wc wc = wait_wc(e->cq);
	struct ibv_async_event event;

	require_equal(wc.wr_id, wr_id);
	if (wc.status == IBV_WC_RETRY_EXC_ERR)
		return;
	require(s->options->wire && wc.status == IBV_WC_WR_FLUSH_ERR);
	require_equal(ibv_get_async_event(s->ctx, &event), 0);
	require_equal(event.event_type, IBV_EVENT_QP_FATAL);
	ibv_ack_async_event(&event);
}

/* The peer's process ends: no answer any more, and the queue pair learns it. */
static void peer_dies(struct side *s, bool sending)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 100);
	struct end e;

	c.timeout = 8;			/* 1 ms */
	c.retry_cnt = 1;
	c.rnr_retry = 7;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0 && sending) {
		post(&e, send_wr(&sge, 1));	/* there is no receive for it */
		expect_nothing(e.cq, 5);
	}
	side_dies(s, 1);
	if (!sending)
		post(&e, send_wr(&sge, 1));
	post(&e, send_wr(&sge, 2));
	expect_unanswered(s, &e, 1);
	expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
	wait_state(&e, IBV_QPS_ERR);
	end_free(&e);
	buffer_free(s, &b);
	side_is_alone(s);
}

static void test_peer_dies(struct side *s)
{
	peer_dies(s, false);
}

static void test_peer_dies_before_receiving(struct side *s)
{
	peer_dies(s, true);
}

static void test_peer_destroyed(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 100);
	struct end e;

	c.timeout = 16;			/* 0.27 s: the first one must arrive */
	c.retry_cnt = 1;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
	}
	barrier(s);
	if (s->me == 1)
		end_free(&e);
	barrier(s);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 2));
		expect(e.cq, 2, IBV_WC_RETRY_EXC_ERR);
		end_free(&e);
	}
	barrier(s);
	buffer_free(s, &b);
}

const struct test retry_tests[] = {
	{ "rnr_no_retry", test_rnr_no_retry },
	{ "rnr_retries", test_rnr_retries },
	{ "rnr_for_ever", test_rnr_for_ever },
	{ "rnr_timers", test_rnr_timers },
	{ "timeouts", test_timeouts },
	{ "peer_in_reset", test_peer_in_reset },
	{ "peer_in_init", test_peer_in_init },
	{ "peer_in_error", test_peer_in_error },
	{ "peer_destroyed", test_peer_destroyed },
	{ "peer_dies", test_peer_dies },
	{ "peer_dies_before_receiving", test_peer_dies_before_receiving },
	{ NULL, NULL },
};
