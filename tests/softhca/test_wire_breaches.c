/*
 * test_wire_breaches.c - frames that no peer sends, from a peer that has proven itself: the queue pair
 * ends with a line, and its receives are flushed.
 */
#include "../capture.h"
#include "wire_end.h"

static const unsigned char payload[100];

struct breach {
	const char *what;
	struct hca_frame frames[3];	/* up to the first of kind 0; one receive of 100 bytes is posted */
};

#define LAST HCA_FRAME_LAST
static const struct breach breaches[] = {
	{ "a sequence that is not the next", { { HCA_FRAME_SEND, LAST, 0, 8, 8, 1, 0, 0, 0, 0 } } },
	{ "a sequence twice", { { HCA_FRAME_SEND, LAST, 0, 8, 8, 0, 0, 0, 0, 0 },
				{ HCA_FRAME_SEND, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } } },
	{ "a part of no message", { { HCA_FRAME_CONT, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } } },
	{ "a part of a message that is complete", { { HCA_FRAME_SEND, LAST, 0, 8, 8, 0, 0, 0, 0, 0 },
						    { HCA_FRAME_CONT, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } } },
	{ "a part of another message", { { HCA_FRAME_SEND, 0, 0, 8, 16, 0, 0, 0, 0, 0 },
					 { HCA_FRAME_CONT, LAST, 0, 8, 16, 1, 0, 0, 0, 0 } } },
	{ "another total", { { HCA_FRAME_SEND, 0, 0, 8, 16, 0, 0, 0, 0, 0 },
			     { HCA_FRAME_CONT, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } } },
	{ "the end too early", { { HCA_FRAME_SEND, 0, 0, 8, 24, 0, 0, 0, 0, 0 },
				 { HCA_FRAME_CONT, LAST, 0, 8, 24, 0, 0, 0, 0, 0 } } },
	{ "more than announced", { { HCA_FRAME_SEND, 0, 0, 8, 16, 0, 0, 0, 0, 0 },
				   { HCA_FRAME_CONT, 0, 0, 9, 16, 0, 0, 0, 0, 0 } } },
	{ "no end", { { HCA_FRAME_SEND, 0, 0, 8, 16, 0, 0, 0, 0, 0 },
		      { HCA_FRAME_CONT, 0, 0, 8, 16, 0, 0, 0, 0, 0 } } },
	{ "a message within a message", { { HCA_FRAME_SEND, 0, 0, 8, 16, 0, 0, 0, 0, 0 },
					  { HCA_FRAME_SEND, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } } },
	{ "an acknowledgement of nothing", { { HCA_FRAME_ACK, 0, 0, 0, 0, 0, 1, 0, 0, 0 } } },
	{ "one of the past", { { HCA_FRAME_ACK, 0, 0, 0, 0, 0, UINT32_MAX, 0, 0, 0 } } },
	{ "one on a request", { { HCA_FRAME_SEND, LAST, 0, 8, 8, 0, 7, 0, 0, 0 } } },
	{ "a refusal of nothing", { { HCA_FRAME_NAK, 0, IBV_WC_REM_OP_ERR, 0, 0, 0, 0, 0, 0, 0 } } },
	{ "not ready for nothing", { { HCA_FRAME_RNR, 0, 1, 0, 0, 0, 0, 0, 0, 0 } } },
	{ "an answer to nothing", { { HCA_FRAME_RESPONSE, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } } },
	{ "a datagram", { { HCA_FRAME_DATAGRAM, LAST, 0, 48, 0, 0, 0, 0, 0, 0 } } },
	{ "an unknown kind", { { 77, 0, 0, 0, 0, 0, 0, 0, 0, 0 } } },
};

static void put_breach(struct wire_qp *q, const struct breach *b)
{
	unsigned i;

	for (i = 0; i < 3 && b->frames[i].kind; i++)
		wire_put(q, &b->frames[i], payload);
}

static void test_breaches(void **state)
{
	unsigned i;

	for (i = 0; i < sizeof(breaches) / sizeof(*breaches); i++) {
		struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
		struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
		unsigned receives = 0;

		print_message("%s\n", breaches[i].what);
		wire_post_recv(&q, 1, 0, 100);
		wire_post_recv(&q, 2, 0, 100);
		capture_begin(2);
		put_breach(&q, &breaches[i]);
		wire_expect_end(&q);
		wire_expect_breach(&q, capture_end());
		wire_expect_event(IBV_EVENT_QP_FATAL);
		while (receives < 2) {
			const int n = ibv_poll_cq(q.cq, 1, &wc);

			receives += (unsigned)n;
			if (n)
				assert_int_equal(wc.wr_id, receives);
		}
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		wire_expect_none(&q);
		wire_qp_close(&q);
	}
}

/* The peer of an unreliable connection refuses nothing and answers nothing. */
static void test_breaches_of_uc(void **state)
{
	static const struct hca_frame frames[] = {
		{ HCA_FRAME_NAK, 0, IBV_WC_REM_OP_ERR, 0, 0, 0, 0, 0, 0, 0 },
		{ HCA_FRAME_RNR, 0, 1, 0, 0, 0, 0, 0, 0, 0 },
		{ HCA_FRAME_RESPONSE, LAST, 0, 8, 8, 0, 0, 0, 0, 0 },
	};
	unsigned i;

	for (i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UC });
		const char *lines;

		wire_post(&q, IBV_WR_SEND, 1, 0, 10);
		wire_completion(&q, 1, IBV_WC_SUCCESS);
		capture_begin(2);
		wire_put(&q, &frames[i], payload);
		wire_expect_end(&q);
		lines = capture_end();
		assert_non_null(strstr(lines, "bytes that no peer sends"));
		/* Messages are lost then. */
		wire_post(&q, IBV_WR_SEND, 2, 0, 10);
		wire_completion(&q, 2, IBV_WC_SUCCESS);
		wire_expect_no_event();
		wire_qp_close(&q);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_breaches),
		cmocka_unit_test(test_breaches_of_uc),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
