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

enum { PSN = 7, EARLIER = 5, STOPPED = 3 };
#define SECOND_NS UINT64_C(1000000000)

/* Calls of this peer (lower) or of peers that accept go to host STOPPED instead; all to its first port. */
static bool replaced[2], one_port;

int __real_connect(int fd, const struct sockaddr *at, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *at, socklen_t bytes);

int __wrap_connect(int fd, const struct sockaddr *at, socklen_t bytes)
{
	const struct sockaddr_storage stopped = meet_host(STOPPED);
	struct sockaddr_in to;
	unsigned lower;

	if (at->sa_family != AF_INET)
		return __real_connect(fd, at, bytes);
	memcpy(&to, at, sizeof(to));
	for (lower = 0; lower < 2; lower++) {
		if (!replaced[lower] || memcmp(&to.sin_addr, wire_gid(lower).raw + 12, sizeof(to.sin_addr)))
			continue;
		to.sin_addr = ((const struct sockaddr_in *)(const void *)&stopped)->sin_addr;
		to.sin_port = one_port ? htons(MEET_FIRST) : to.sin_port;
	}
	return __real_connect(fd, (const struct sockaddr *)(const void *)&to, sizeof(to));
}

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

/* ---- Stopped peers ------------------------------ */

enum { CALLS = 12, CALL_S = 5 };	/* that a stopped process does not answer, before requests fail */

/* A request fails: after how long, and the lines of this. */
static uint64_t fails_after_ns(struct wire_qp *q, const char **lines)
{
	const uint64_t begun = rg_now_ns();
	struct ibv_wc wc;

	capture_begin(STDERR_FILENO);
	wire_post(q, IBV_WR_SEND, 1, 0, 0);
	while (!ibv_poll_cq(q->cq, 1, &wc)) {
		assert_true(rg_now_ns() - begun < 200 * SECOND_NS);
		meet_time_pass(50000000);
		wire_settle();
	}
	*lines = capture_end();
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	return rg_now_ns() - begun;
}

static void expect_patience(struct wire_qp *q)
{
	const char *lines;
	const uint64_t ns = fails_after_ns(q, &lines);

	assert_true(ns > CALLS * CALL_S * SECOND_NS);
	assert_true(ns < 2 * CALLS * CALL_S * SECOND_NS);
	assert_non_null(strstr(lines, "port 18600: the process there does not answer\n"));
	assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1);
}

/* A stopped peer's kernel takes calls. */
static void test_stopped(void **state)
{
	const unsigned host = wire.peer_host;
	const int listener = meet_raw_listen(STOPPED, 64);
	struct wire_qp q;

	wire.peer_host = STOPPED;
	q = wire_qp_open((struct wire_config){ .alone = true });
	wire.peer_host = host;
	expect_patience(&q);
	close(listener);
	wire_qp_close(&q);
}

/* The peer is stopped before it calls, and its kernel takes the questions of this end. */
static void test_stopped_before_it_calls(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .expects = true });
	const int listener = meet_raw_listen(STOPPED, 64);

	replaced[1] = true;
	expect_patience(&q);
	replaced[1] = false;
	close(listener);
	wire_qp_close(&q);
}

/* The peer goes on after 20 s. */
static void test_goes_on_and_calls(void **state)
{
	const struct wire_config c = { .expects = true, .psn = PSN };
	struct wire_qp q = wire_qp_open(c);
	const int listener = meet_raw_listen(STOPPED, 64);
	unsigned i;

	replaced[1] = true;
	wire_post(&q, IBV_WR_SEND, 1, 0, 0);
	for (i = 0; i < 400; i++) {
		meet_time_pass(50000000);
		wire_settle();
	}
	wire_expect_none(&q);
	q.fd = inject(&q, PSN);
	expect_greeting(&q);
	wire_expect(&q, HCA_FRAME_SEND, NULL, 0);
	q.ack++;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	replaced[1] = false;
	close(listener);
	wire_qp_close(&q);
}

/* The peer has proven itself, and is stopped before its first frame. */
static void test_stopped_before_its_first_frame(void **state)
{
	struct wire_qp q = call((struct wire_config){ .alone = true });
	const int listener = meet_raw_listen(STOPPED, 64);

	replaced[0] = true;
	expect_patience(&q);
	replaced[0] = false;
	close(listener);
	wire_qp_close(&q);
}

/* The process lives, and its queue pair is not connected: its time is that of the verbs, 5 s at least. */
static void test_not_connected(void **state)
{
	struct wire_qp q = call((struct wire_config){ .alone = true });
	const char *lines;
	const uint64_t ns = fails_after_ns(&q, &lines);

	assert_true(ns >= CALL_S * SECOND_NS);
	assert_true(ns < 2 * CALL_S * SECOND_NS);
	wire_qp_close(&q);
}

/* The host of the end that should call answers nothing: the kernel drops what the full queue has no room for. */
static void test_silent_host(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .expects = true });
	const int listener = meet_raw_listen(STOPPED, 0);
	const int queued = meet_raw_connect(STOPPED, MEET_FIRST);
	const char *lines;
	uint64_t ns;

	replaced[1] = one_port = true;
	ns = fails_after_ns(&q, &lines);
	replaced[1] = one_port = false;
	assert_true(ns >= CALL_S * SECOND_NS);
	assert_true(ns < 2 * CALL_S * SECOND_NS);
	assert_non_null(strstr(lines, "no connection from host 126.0.0.1"));
	close(queued);
	close(listener);
	wire_qp_close(&q);
}

/* The end that calls is asked. */
static void test_asked(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .alone = true });
	const struct hca_hello h = wire_hello(HCA_MEET_QUESTION, false, q.peer_qpn, q.qp->qp_num);
	const int fd = wire_inject(&h);

	wire_settle();
	assert_true(wire_has_ended(fd));
	close(fd);
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
		cmocka_unit_test(test_stopped_before_it_calls),
		cmocka_unit_test(test_goes_on_and_calls),
		cmocka_unit_test(test_stopped_before_its_first_frame),
		cmocka_unit_test(test_not_connected),
		cmocka_unit_test(test_silent_host),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_both_at_once),
	};

	return cmocka_run_group_tests(tests, setup, wire_host_close);
}
