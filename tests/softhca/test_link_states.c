/*
 * test_link_states.c - the engine over a link that says later what became of its requests: retries,
 * draining, reset, unreliable queue pairs.
 */
#include <fcntl.h>

#include "one_qp.h"
#include "util/clock.h"

/* ---- Retries ---------------------------------------------------------------------- */

static void test_rnr(void **state)
{
	unsigned handed = 2, i;
	struct one o;

	(void)state;
	one_make(&o, IBV_QPT_RC);
	o.attr.rnr_retry = 3;
	connect_again(&o);
	fake.rnr_timer = RNR_CODE;
	post_sends(&o, 1, 2);
	for (i = 0; i < 3; i++) {
		/* The answers may take longer than the timer: each ends one try. */
		rg_sleep_ns(i == 1 ? 20 * RNR_NS : 0);
		tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
		rg_sleep_ns(RNR_NS - 1);
		turn(&o);
		assert_int_equal(fake.handed_count, handed);
		post(&o, IBV_WR_SEND, 3 + i, 0);	/* it waits behind them */
		assert_int_equal(fake.handed_count, handed);
		rg_sleep_ns(1);
		turn(&o);
		handed = handed_are(handed, 1, 3 + i);
	}
	expect_none(&o);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	expect(&o, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_range(&o, 2, 5, IBV_WC_WR_FLUSH_ERR);
	expect_state(&o, IBV_QPS_ERR);
	one_end(&o);
}

/* Each request has tries of its own. */
static void test_rnr_again(void **state)
{
	unsigned i;
	struct one o;

	(void)state;
	one_make(&o, IBV_QPT_RC);
	o.attr.rnr_retry = 1;
	connect_again(&o);
	fake.rnr_timer = RNR_CODE;
	for (i = 1; i <= 5; i++) {
		post_sends(&o, i, i);
		tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
		rg_sleep_ns(RNR_NS);
		tell(&o, FAKE_ENDED, 0);
		assert_int_equal(fake.handed_count, 2 * i);
		tell(&o, FAKE_ENDED, 1);
		expect(&o, i, IBV_WC_SUCCESS);
	}
	one_end(&o);
}

static void test_rnr_limits(void **state)
{
	unsigned i;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);			/* 7: for ever */
	fake.rnr_timer = RNR_CODE;
	post_sends(&o, 1, 1);
	for (i = 0; i < 100; i++) {
		tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
		assert_int_equal(fake.handed_count, i + 1);
		rg_sleep_ns(RNR_NS);
		turn(&o);
		assert_int_equal(fake.handed_count, i + 2);
	}
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	o.attr.rnr_retry = 0;
	connect_again(&o);
	post_sends(&o, 2, 2);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	expect(&o, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	one_end(&o);
}

/* The time until the request has failed; 0: it has not within a minute. */
static uint64_t time_to_fail(struct one *o, bool by_transfer)
{
	uint64_t began = rg_now_ns();
	struct ibv_wc wc;
	unsigned seen = 0;

	while (rg_now_ns() - began < 60 * S) {
		if (!by_transfer && fake.handed_count > seen)
			tell(o, FAKE_REWOUND, HCA_NO_PEER);
		seen = fake.handed_count;
		if (ibv_poll_cq(o->cq, 1, &wc)) {
			assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
			return rg_now_ns() - began;
		}
		rg_sleep_ns(MS);
	}
	return 0;
}

/* A peer that cannot be reached: the verbs' timeouts, 5 s at least. */
static void test_no_peer(void **state)
{
	static const struct {
		uint8_t timeout, retry_cnt;
		uint64_t ns;
	} cases[] = { { 14, 1, 5 * S }, { 10, 7, 5 * S }, { 22, 1, (2 * 4096ull) << 22 },
		      { 0, 7, 0 } };
	bool by_transfer;
	uint64_t took;
	unsigned i;
	struct one o;

	(void)state;
	for (i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		by_transfer = i & 1;
		one_make(&o, IBV_QPT_RC);
		o.attr.timeout = cases[i / 2].timeout;
		o.attr.retry_cnt = cases[i / 2].retry_cnt;
		connect_again(&o);
		fake.usual = by_transfer ? HCA_NO_PEER : HCA_UNDERWAY;
		post_sends(&o, 1, 1);
		took = time_to_fail(&o, by_transfer);
		if (!cases[i / 2].ns)
			assert_int_equal(took, 0);
		else
			assert_in_range(took, cases[i / 2].ns, cases[i / 2].ns + 20 * MS);
		/* Tries are 10 ms apart. */
		assert_in_range(fake.handed_count, 300, 6100);
		one_end(&o);
	}
}

/* All go back, answers that were asked for included. */
static void test_rewound(void **state)
{
	unsigned i;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
	fake.rnr_timer = RNR_CODE;
	for (i = 1; i <= 4; i++)
		post(&o, IBV_WR_RDMA_READ, i, 0);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	assert_int_equal(hca(&o)->sq.under_way, 0);
	rg_sleep_ns(RNR_NS);
	turn(&o);
	handed_are(4, 1, 4);
	assert_int_equal(hca(&o)->sq.answers, 4);
	tell(&o, FAKE_ENDED, 4);
	expect_range(&o, 1, 4, IBV_WC_SUCCESS);
	/* Nothing is under way: nothing has failed to arrive. */
	fake_answer(1, HCA_LATER);
	post_sends(&o, 5, 5);
	tell(&o, FAKE_REWOUND, HCA_NO_PEER);
	handed_are(9, 5, 5);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 5, IBV_WC_SUCCESS);
	one_end(&o);
}

static void test_later(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
	fake_answer(2, HCA_UNDERWAY);
	fake_answer(1, HCA_LATER);
	post_sends(&o, 1, 4);
	handed_are(0, 1, 3);
	turn(&o);
	tell(&o, FAKE_ENDED, 1);
	assert_int_equal(fake.handed_count, 3);
	expect(&o, 1, IBV_WC_SUCCESS);
	tell(&o, FAKE_RESUME, 0);
	handed_are(3, 3, 4);
	tell(&o, FAKE_ENDED, 3);
	expect_range(&o, 2, 4, IBV_WC_SUCCESS);
	one_end(&o);
}

/* ---- States ------------------------------------------------------------------------- */

static int drain(struct one *o)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	return ibv_modify_qp(o->qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static bool is_draining(struct one *o)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(o->qp, &a, IBV_QP_STATE, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_SQD);
	return a.sq_draining;
}

static void resume_sending(struct one *o)
{
	assert_int_equal(ibv_modify_qp(o->qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
				       IBV_QP_STATE), 0);
}

static void test_drained(void **state)
{
	struct ibv_async_event e;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
	assert_int_equal(fcntl(o.c->async_fd, F_SETFL, O_NONBLOCK), 0);
	post(&o, IBV_WR_RDMA_READ, 1, 0);
	post(&o, IBV_WR_SEND, 2, 0);
	post(&o, IBV_WR_SEND, 3, IBV_SEND_FENCE);
	assert_int_equal(drain(&o), 0);
	post_sends(&o, 4, 4);
	handed_are(0, 1, 2);
	tell(&o, FAKE_ENDED, 1);
	assert_true(is_draining(&o));
	assert_false(event_is_there(&o, &e));
	tell(&o, FAKE_ENDED, 1);
	handed_are(0, 1, 2);
	expect_event(&o, IBV_EVENT_SQ_DRAINED);
	assert_false(is_draining(&o));
	resume_sending(&o);
	handed_are(0, 1, 4);
	tell(&o, FAKE_ENDED, 2);
	expect_range(&o, 1, 4, IBV_WC_SUCCESS);
	assert_int_equal(drain(&o), 0);		/* nothing to wait for */
	expect_event(&o, IBV_EVENT_SQ_DRAINED);
	one_end(&o);
}

/* What was under way when the state was entered ends, tries included; nothing else begins. */
static void test_drained_after_rnr(void **state)
{
	struct ibv_async_event e;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
	assert_int_equal(fcntl(o.c->async_fd, F_SETFL, O_NONBLOCK), 0);
	fake.rnr_timer = RNR_CODE;
	post_sends(&o, 1, 2);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	post_sends(&o, 3, 3);
	assert_int_equal(drain(&o), 0);
	turn(&o);
	assert_int_equal(fake.handed_count, 2);
	rg_sleep_ns(RNR_NS);
	turn(&o);
	handed_are(2, 1, 2);
	tell(&o, FAKE_ENDED, 1);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	rg_sleep_ns(RNR_NS);
	turn(&o);
	handed_are(4, 2, 2);
	assert_false(event_is_there(&o, &e));
	tell(&o, FAKE_ENDED, 1);
	expect_event(&o, IBV_EVENT_SQ_DRAINED);
	expect_range(&o, 1, 2, IBV_WC_SUCCESS);
	resume_sending(&o);
	handed_are(5, 3, 3);
	one_end(&o);
}

static void test_reset(void **state)
{
	unsigned i, handed = 0;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
	for (i = 0; i < 3; i++) {
		fake_answer(3, HCA_UNDERWAY);
		fake_answer(1, HCA_LATER);
		post(&o, IBV_WR_RDMA_READ, 1, 0);
		post(&o, IBV_WR_SEND, 2, IBV_SEND_INLINE);
		post_sends(&o, 3, 6);
		handed = handed_are(handed, 1, 4);
		assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){
						       .qp_state = IBV_QPS_RESET }, IBV_QP_STATE),
				 0);
		assert_int_equal(fake.reset, i + 1);
		assert_int_equal(hca(&o)->sq.under_way, 0);
		assert_int_equal(hca(&o)->sq.answers, 0);
		expect_none(&o);
		connect_again(&o);
	}
	/* All slots are free. */
	post_sends(&o, 1, DEPTH);
	handed_are(handed, 1, DEPTH);
	one_end(&o);				/* destroyed with all of them under way */
}

/* A retry is not forgotten for the next connection. */
static void test_reset_while_retrying(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
	fake.rnr_timer = 0;			/* 655 ms */
	post_sends(&o, 1, 1);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	connect_again(&o);
	post_sends(&o, 2, 2);
	handed_are(1, 2, 2);
	one_end(&o);
}

/* ---- Unreliable queue pairs ------------------------------------------------------------ */

static void test_send_error(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_UD);
	post_sends(&o, 1, 3);
	tell(&o, FAKE_FAILED, IBV_WC_LOC_PROT_ERR);
	expect(&o, 1, IBV_WC_LOC_PROT_ERR);
	expect_range(&o, 2, 3, IBV_WC_WR_FLUSH_ERR);
	expect_state(&o, IBV_QPS_SQE);
	assert_int_equal(fake.stopped, 1);
	resume_sending(&o);
	post_sends(&o, 4, 4);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 4, IBV_WC_SUCCESS);
	one_end(&o);
}

/* Some datagrams are over at once, others later: completions come in order. */
static void test_over(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_UD);
	fake_answer(1, IBV_WC_SUCCESS);
	fake_answer(1, HCA_UNDERWAY);
	fake_answer(2, IBV_WC_SUCCESS);
	fake_answer(1, HCA_UNDERWAY);
	fake_answer(1, IBV_WC_SUCCESS);
	post_sends(&o, 1, 6);
	handed_are(0, 1, 6);
	expect(&o, 1, IBV_WC_SUCCESS);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 1);
	expect_range(&o, 2, 4, IBV_WC_SUCCESS);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 1);
	expect_range(&o, 5, 6, IBV_WC_SUCCESS);
	one_end(&o);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_again),
		cmocka_unit_test(test_rnr_limits),
		cmocka_unit_test(test_no_peer),
		cmocka_unit_test(test_rewound),
		cmocka_unit_test(test_later),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_drained_after_rnr),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_reset_while_retrying),
		cmocka_unit_test(test_send_error),
		cmocka_unit_test(test_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
