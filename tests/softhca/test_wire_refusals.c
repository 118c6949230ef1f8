/*
 * test_wire_refusals.c - a peer that does not read: a NAK or RNR that the kernel has no room for leaves
 * later, and the error state waits for the NAK.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "wire_end.h"

enum { NARROW = 16384, ANSWER = 256000, OWN = 8 << 20 };

static unsigned char payload[HCA_FRAME_PAYLOAD_MAX], own[OWN];

static void post_own(const struct wire_qp *q, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)own, OWN, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;

	assert_int_equal(ibv_post_send(q->qp, &wr, &bad), 0);
}

/* A queue pair whose kernel has no room: a request of its own leaves, from this memory, or else it answers a READ. */
static struct wire_qp open_full(const struct ibv_mr *own_mr)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	const int ends[] = { q.fd, wire_of(&q)->stream.fd }, room = NARROW;
	struct hca_frame f;
	int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	}
	if (!own_mr) {
		f = wire_request(&q, HCA_FRAME_READ, 0);
		f.total = ANSWER;
		f.rkey = wire.mr->rkey;
		f.addr = (uintptr_t)wire.memory;
		wire_put(&q, &f, NULL);
	} else {
		post_own(&q, own_mr);
	}
	while (!wire_of(&q)->stream.blocked || !wire_of(&q)->stream.piece_left)
		wire_pass();
	return q;
}

/* The frames before the refusal are those of the answer or of the own request. */
static struct hca_frame expect_refusal(struct wire_qp *q, enum hca_frame_kind kind)
{
	struct hca_frame f;

	do
		assert_true(wire_get(q, &f, payload, sizeof(payload)));
	while (f.kind == HCA_FRAME_RESPONSE || f.kind == HCA_FRAME_WRITE || f.kind == HCA_FRAME_CONT);
	assert_int_equal(f.kind, kind);
	return f;
}

static void nak_leaves(const struct ibv_mr *own_mr)
{
	struct wire_qp q = open_full(own_mr);
	struct hca_frame f = wire_request(&q, HCA_FRAME_WRITE, 8);

	f.rkey = ~wire.mr->rkey;
	f.addr = (uintptr_t)wire.memory;
	wire_put(&q, &f, wire_pattern);
	wire_settle();
	assert_int_equal(expect_refusal(&q, HCA_FRAME_NAK).aux, IBV_WC_REM_ACCESS_ERR);
	wire_expect_event(IBV_EVENT_QP_ACCESS_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_end(&q);
	wire_expect_no_event();
	wire_qp_close(&q);
}

static void test_nak_after_answers(void **state)
{
	nak_leaves(NULL);
}

/* No further frame of the own request leaves: the peer reads the NAK, and no more. */
static void test_nak_within_request(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(wire.pd, own, OWN, 0);

	nak_leaves(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* The receive tells the error at once, which is no event. */
static void test_nak_of_receive(void **state)
{
	struct wire_qp q = open_full(NULL);
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 16);

	wire_post_recv(&q, 2, 0, 8);
	wire_put(&q, &f, wire_pattern);
	wire_completion(&q, 2, IBV_WC_LOC_LEN_ERR);
	wire_settle();
	assert_int_equal(expect_refusal(&q, HCA_FRAME_NAK).aux, IBV_WC_REM_INV_REQ_ERR);
	wire_expect_end(&q);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* The requester goes away before the NAK: the event is the same. */
static void test_nak_and_no_reader(void **state)
{
	struct wire_qp q = open_full(NULL);
	struct hca_frame f = wire_request(&q, HCA_FRAME_WRITE, 8);

	f.rkey = ~wire.mr->rkey;
	wire_put(&q, &f, wire_pattern);
	wire_settle();
	close(q.fd);
	q.fd = -1;
	wire_expect_event(IBV_EVENT_QP_ACCESS_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* Requests after the refused one cause no second RNR, however many they are. */
static void rnr_leaves(const struct ibv_mr *own_mr)
{
	struct wire_qp q = open_full(own_mr);
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 8), next;
	const uint32_t refused = f.sequence;
	unsigned i;

	wire_put(&q, &f, wire_pattern);
	for (i = 0; i < 100; i++) {
		next = wire_request(&q, HCA_FRAME_SEND, 8);
		wire_put(&q, &next, wire_pattern);
	}
	wire_settle();
	assert_int_equal(expect_refusal(&q, HCA_FRAME_RNR).sequence, refused);
	wire_post_recv(&q, 2, 0, 8);
	wire_put(&q, &f, wire_pattern);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	wire_expect_state(&q, IBV_QPS_RTS);
	wire_qp_close(&q);
}

static void test_rnr_after_answers(void **state)
{
	rnr_leaves(NULL);
}

static void test_rnr_within_request(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(wire.pd, own, OWN, 0);

	rnr_leaves(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nak_after_answers),
		cmocka_unit_test(test_nak_within_request),
		cmocka_unit_test(test_nak_of_receive),
		cmocka_unit_test(test_nak_and_no_reader),
		cmocka_unit_test(test_rnr_after_answers),
		cmocka_unit_test(test_rnr_within_request),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
