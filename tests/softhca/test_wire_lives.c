/*
 * test_wire_lives.c - which stream a queue pair has: connections of both ends at once, and those of an
 * earlier life, which PSNs tell from the right one.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../capture.h"
#include "util/clock.h"
#include "wire_end.h"

enum { PSN = 7, EARLIER = 5 };

static struct hca_hello hello_of(const struct wire_qp *q, uint32_t psn)
{
	struct hca_hello h = wire_hello(HCA_MEET_QP, true, q->peer_qpn, q->qp->qp_num);

	h.psn = psn;
	return h;
}

static int inject(const struct wire_qp *q, uint32_t psn)
{
	const struct hca_hello h = hello_of(q, psn);

	return wire_inject(&h);
}

/* The first frame of the end that was called. */
static void greet(struct wire_qp *q, uint32_t psn)
{
	const struct hca_frame f = { .kind = HCA_FRAME_ACK, .imm = psn };

	wire_put(q, &f, NULL);
}

static void expect_greeting(struct wire_qp *q)
{
	const struct hca_frame f = wire_expect(q, HCA_FRAME_ACK, NULL, 0);

	assert_int_equal(f.flags, 0);
	assert_int_equal(f.imm, PSN);
}

/* The queue pair has left the stream since it is of another life. */
static void expect_disowned(struct wire_qp *q)
{
	const struct hca_frame f = wire_expect(q, HCA_FRAME_ACK, NULL, 0);

	assert_int_equal(f.flags, HCA_FRAME_LAST);
	assert_int_equal(f.imm, HCA_FRAME_DISOWNED);
	wire_expect_end(q);
	close(q->fd);
	q->fd = -1;
}

static void expect_exchange(struct wire_qp *q)
{
	struct hca_frame f;

	wire_post(q, IBV_WR_SEND, 1, 0, 0);
	wire_expect(q, HCA_FRAME_SEND, NULL, 0);
	q->ack++;
	wire_put_plain(q, HCA_FRAME_ACK, 0, 0, 0);
	wire_completion(q, 1, IBV_WC_SUCCESS);
	wire_post_recv(q, 2, 0, 8);
	f = wire_request(q, HCA_FRAME_SEND, 0);
	wire_put(q, &f, NULL);
	wire_completion(q, 2, IBV_WC_SUCCESS);
}

/* ---- The end that expects ------------------------------ */

/* Of two parked streams the one of this life is taken, not the newest. */
static void test_parked_lives(void **state)
{
	const struct wire_config c = { .init = true, .expects = true, .psn = PSN };
	struct wire_qp q = wire_qp_open(c), earlier = q;
	unsigned char byte;
	int other;

	q.fd = inject(&q, PSN);
	other = inject(&q, EARLIER);
	earlier.fd = inject(&q, EARLIER);
	wire_qp_connect(&q, c);
	expect_greeting(&earlier);
	expect_disowned(&earlier);
	/* Once the queue pair sends, it does not begin with another one. */
	assert_int_equal(recv(other, &byte, 1, 0), 0);
	close(other);
	expect_greeting(&q);
	expect_exchange(&q);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* A stream of an earlier life comes once the queue pair sends. */
static void test_arriving(void **state)
{
	const struct wire_config c = { .expects = true, .psn = PSN };
	struct wire_qp q = wire_qp_open(c);

	q.fd = inject(&q, EARLIER);
	expect_greeting(&q);
	expect_disowned(&q);
	q.fd = inject(&q, PSN);
	expect_greeting(&q);
	expect_exchange(&q);
	wire_qp_close(&q);
}

/* The caller has ended its stream, with a farewell or without, before the queue pair is connected. */
static void test_parked_ended(void **state)
{
	const struct wire_config c = { .init = true, .expects = true, .psn = PSN };
	unsigned i;

	for (i = 0; i < 4; i++) {
		struct wire_qp q = wire_qp_open(c), dead = q;
		const int right = i / 2 ? inject(&q, PSN) : -1;

		dead.fd = inject(&q, PSN);
		if (i % 2)
			wire_put_plain(&dead, HCA_FRAME_ACK, HCA_FRAME_LAST, 0, 0);
		close(dead.fd);
		wire_qp_connect(&q, c);
		wire_settle();
		wire_expect_no_event();
		wire_expect_state(&q, IBV_QPS_RTS);
		q.fd = i / 2 ? right : inject(&q, PSN);
		expect_greeting(&q);
		expect_exchange(&q);
		wire_qp_close(&q);
	}
}

/* Nothing tells in RTR whose stream it is: its end is not the peer's. */
static void test_ended_in_rtr(void **state)
{
	const struct wire_config c = { .init = true, .rtr = true, .expects = true, .psn = PSN };
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct wire_qp q = wire_qp_open(c);

		q.fd = inject(&q, EARLIER);
		wire_qp_connect(&q, c);
		expect_greeting(&q);
		if (i)
			wire_put_plain(&q, HCA_FRAME_ACK, HCA_FRAME_LAST, 0, 0);
		close(q.fd);
		wire_settle();
		wire_expect_no_event();
		wire_expect_state(&q, IBV_QPS_RTR);
		q.fd = inject(&q, PSN);
		expect_greeting(&q);
		wire_qp_sends(&q, c);
		expect_exchange(&q);
		wire_qp_close(&q);
	}
}

/* What has carried a message is the peer's, in RTR as well. */
static void test_message_in_rtr(void **state)
{
	const struct wire_config c = { .init = true, .rtr = true, .expects = true, .psn = PSN };
	struct wire_qp q = wire_qp_open(c);
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 0);

	q.fd = inject(&q, PSN);
	wire_qp_connect(&q, c);
	wire_post_recv(&q, 2, 0, 8);
	wire_put(&q, &f, NULL);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	close(q.fd);
	q.fd = -1;
	wire_expect_event(IBV_EVENT_COMM_EST);
	wire_expect_event(IBV_EVENT_QP_FATAL);
	wire_qp_close(&q);
}

/* ---- The end that calls ------------------------------ */

static struct wire_qp call(struct wire_config c)
{
	struct wire_qp q;

	c.alone = true;
	c.psn = PSN;
	q = wire_qp_open(c);
	q.fd = wire_peer_accept(q.peer_qpn);
	return q;
}

static void call_again(struct wire_qp *q)
{
	q->fd = wire_peer_accept(q->peer_qpn);
	greet(q, PSN);
	expect_exchange(q);
}

/* The peer is in another life: nothing is sent to it, and the queue pair calls again. */
static void test_called_in_another_life(void **state)
{
	struct wire_qp q = call((struct wire_config){ .alone = true });

	greet(&q, EARLIER);
	expect_disowned(&q);
	call_again(&q);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* The peer says so. */
static void test_disowned(void **state)
{
	const struct hca_frame f = { .kind = HCA_FRAME_ACK, .flags = HCA_FRAME_LAST,
				     .imm = HCA_FRAME_DISOWNED };
	struct wire_qp q = call((struct wire_config){ .alone = true });

	greet(&q, PSN);
	wire_put(&q, &f, NULL);
	wire_expect_end(&q);
	close(q.fd);
	call_again(&q);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* The program has given its ends unlike PSNs: as if nothing arrived, and a line says why. */
static void test_unlike(void **state)
{
	struct wire_qp q = call((struct wire_config){ .alone = true });
	struct ibv_wc wc;
	const char *lines;
	char line[64];

	snprintf(line, sizeof(line), "queue pair %u sends from PSN 7", q.qp->qp_num);
	capture_begin(STDERR_FILENO);
	wire_post(&q, IBV_WR_SEND, 1, 0, 0);
	for (;;) {
		greet(&q, EARLIER);
		expect_disowned(&q);
		meet_time_pass(UINT64_C(1000000000));
		wire_settle();
		if (ibv_poll_cq(q.cq, 1, &wc))
			break;
		q.fd = wire_peer_accept(q.peer_qpn);
	}
	lines = capture_end();
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_non_null(strstr(lines, line));
	wire_qp_close(&q);
}

/* Unreliable queue pairs take the first message, whatever its PSN. */
static void test_unreliable(void **state)
{
	struct wire_qp q = call((struct wire_config){ .alone = true, .type = IBV_QPT_UC });

	greet(&q, EARLIER);
	wire_post(&q, IBV_WR_SEND, 1, 0, 0);
	wire_expect(&q, HCA_FRAME_SEND, NULL, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_qp_close(&q);
}

/* The peer's process is stopped: its kernel takes calls, 12 of which end before requests fail. */
static void test_stopped(void **state)
{
	enum { CALLS = 12, CALL_S = 5 };
	const unsigned host = wire.peer_host;
	const int listener = meet_raw_listen(3, 64);
	struct wire_qp q;
	const char *lines;
	uint64_t begun, ns;
	struct ibv_wc wc;

	wire.peer_host = 3;
	q = wire_qp_open((struct wire_config){ .alone = true });
	wire.peer_host = host;
	capture_begin(STDERR_FILENO);
	begun = rg_now_ns();
	wire_post(&q, IBV_WR_SEND, 1, 0, 0);
	while (!ibv_poll_cq(q.cq, 1, &wc)) {
		assert_true(rg_now_ns() - begun < UINT64_C(200000000000));
		meet_time_pass(UINT64_C(50000000));
		wire_settle();
	}
	lines = capture_end();
	ns = rg_now_ns() - begun;
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_true(ns > CALLS * CALL_S * UINT64_C(1000000000));
	assert_true(ns < 2 * CALLS * CALL_S * UINT64_C(1000000000));
	assert_non_null(strstr(lines, "port 18600: the process there does not answer\n"));
	assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1);
	close(listener);
	wire_qp_close(&q);
}

/* ---- Both ends ------------------------------ */

static void to_rts(struct wire_qp *q, const struct wire_qp *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp->qp_num,
		.ah_attr = { .is_global = 1, .port_num = 1 }, .max_rd_atomic = 1, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7,
	};

	assert_int_equal(ibv_query_gid(wire.ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
		IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
		IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

/* Both are connected at the same time: one calls, by its number here, and takes no call of the other. */
static void test_both_at_once(void **state)
{
	const struct wire_config c = { .init = true };
	struct wire_qp one = wire_qp_open(c), two = wire_qp_open(c);
	struct wire_qp *q[2] = { &one, &two };
	struct hca_hello h = wire_hello(HCA_MEET_QP, false, two.qp->qp_num, one.qp->qp_num);
	const bool one_calls = one.qp->qp_num < two.qp->qp_num;
	int theirs, i;

	to_rts(&one, &two);
	to_rts(&two, &one);
	assert_int_equal(wire_of(&one)->calls, one_calls);
	assert_int_equal(wire_of(&two)->calls, !one_calls);
	if (!one_calls)
		h = wire_hello(HCA_MEET_QP, false, one.qp->qp_num, two.qp->qp_num);
	h.source = h.target;
	theirs = wire_inject(&h);
	for (i = 0; i < 2; i++)
		wire_post_recv(q[i], 2, 0, 8);
	for (i = 0; i < 2; i++)
		wire_post(q[i], IBV_WR_SEND, 1, 0, 8);
	for (i = 0; i < 4; i++) {
		struct wire_qp *at = q[i % 2];
		struct ibv_wc wc;

		while (!ibv_poll_cq(at->cq, 1, &wc))
			wire_pass();
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(wire_of(&one)->state, HCA_WIRE_OPEN);
	assert_int_equal(wire_of(&two)->state, HCA_WIRE_OPEN);
	assert_true(wire_has_ended(theirs));
	close(theirs);
	wire_expect_no_event();
	wire_qp_close(&one);
	wire_qp_close(&two);
}

static int setup(void **state)
{
	setenv("SOFTHCA_LINK", "tcp", 1);
	return wire_host_open(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parked_lives),
		cmocka_unit_test(test_arriving),
		cmocka_unit_test(test_parked_ended),
		cmocka_unit_test(test_ended_in_rtr),
		cmocka_unit_test(test_message_in_rtr),
		cmocka_unit_test(test_called_in_another_life),
		cmocka_unit_test(test_disowned),
		cmocka_unit_test(test_unlike),
		cmocka_unit_test(test_unreliable),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_both_at_once),
	};

	return cmocka_run_group_tests(tests, setup, wire_host_close);
}
