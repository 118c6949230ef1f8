/*
 * test_wire_withdrawn.c - memory whose registration is withdrawn while a message leaves or lands: nothing
 * of it is read or written after ibv_dereg_mr, both ends have the status that an adapter's have, and no
 * end takes the other one for dead.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../capture.h"
#include "wire_end.h"

#define SECOND_NS UINT64_C(1000000000)
enum { BEFORE = 0x33, AFTER = 0x55, NARROW = 16384 };

/* ---- Memory of its own ------------------------------ */

struct memory {
	unsigned char *at;
	size_t bytes;
	struct ibv_mr *mr;
};

static struct memory memory_of(size_t bytes)
{
	struct memory m = { .bytes = bytes };

	m.at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(m.at != MAP_FAILED);
	memset(m.at, BEFORE, bytes);
	m.mr = ibv_reg_mr(wire.pd, m.at, bytes, WIRE_ACCESS);
	assert_non_null(m.mr);
	return m;
}

static void withdraw(struct memory *m)
{
	assert_int_equal(ibv_dereg_mr(m->mr), 0);
	memset(m->at, AFTER, m->bytes);
}

static void post(struct wire_qp *q, enum ibv_wr_opcode op, uint64_t id, const struct memory *m)
{
	struct ibv_sge sge = { (uintptr_t)m->at, (uint32_t)m->bytes, m->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = 0x1000, .rkey = 0x77 } }, *bad;

	assert_int_equal(ibv_post_send(q->qp, &wr, &bad), 0);
}

/* The kernel has no room for a message. */
static void make_narrow(const struct wire_qp *q)
{
	const int ends[] = { q->fd, wire_of(q)->stream.fd }, room = NARROW;
	int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	}
}

static void until_blocked(const struct wire_qp *q)
{
	while (!wire_of(q)->stream.blocked || !wire_of(q)->stream.piece_left)
		wire_pass();
}

/*
 * Frames of a message that breaks off: none is the last one, and what comes after the withdrawal is
 * zero.  Returns the first frame of another kind.
 */
static struct hca_frame frames_until_other(struct wire_qp *q, enum hca_frame_kind first,
					   enum hca_frame_kind next)
{
	static unsigned char seen[HCA_FRAME_PAYLOAD_MAX];
	struct hca_frame f;
	uint32_t i;

	for (;;) {
		assert_true(wire_get(q, &f, seen, sizeof(seen)));
		if (f.kind != first && f.kind != next)
			return f;
		assert_false(f.flags & HCA_FRAME_LAST);
		assert_null(memchr(seen, AFTER, f.bytes));
		for (i = 1; i < f.bytes; i++)
			assert_true(seen[i] == seen[i - 1] || !seen[i]);
	}
}

/* ---- A READ of the peer ------------------------------ */

static void put_read(struct wire_qp *q, const struct memory *m)
{
	struct hca_frame f = wire_request(q, HCA_FRAME_READ, 0);

	f.total = (uint32_t)m->bytes;
	f.rkey = m->mr->rkey;
	f.addr = (uintptr_t)m->at;
	wire_put(q, &f, NULL);
}

/* The key goes away while data leaves: the rest of the frame is zero, and a NAK says why. */
static void read_breaks_off(size_t bytes)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct memory m = memory_of(bytes), other = memory_of(4096);
	struct hca_frame f;

	make_narrow(&q);
	capture_begin(2);
	put_read(&q, &m);
	put_read(&q, &other);
	until_blocked(&q);
	withdraw(&m);
	wire_expect_no_event();		/* the refusal has not left */
	f = frames_until_other(&q, HCA_FRAME_RESPONSE, HCA_FRAME_RESPONSE);
	assert_int_equal(f.kind, HCA_FRAME_NAK);
	assert_int_equal(f.aux, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(f.sequence, 0);
	assert_int_equal(f.ack, 0);
	wire_expect_event(IBV_EVENT_QP_ACCESS_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_end(&q);
	wire_expect_no_event();
	assert_string_equal(capture_end(), "");
	withdraw(&other);
	wire_qp_close(&q);
}

static void test_read_of_many_frames(void **state)
{
	(void)state;
	read_breaks_off(64 << 20);
}

static void test_read_of_one_frame(void **state)
{
	(void)state;
	read_breaks_off(256000);
}

/* The requester goes away before the NAK: the event is the same. */
static void test_read_and_no_reader(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct memory m = memory_of(256000);

	(void)state;
	make_narrow(&q);
	put_read(&q, &m);
	until_blocked(&q);
	withdraw(&m);
	wire_settle();
	close(q.fd);
	q.fd = -1;
	wire_expect_event(IBV_EVENT_QP_ACCESS_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_qp_close(&q);
	wire_expect_no_event();
}

/* The requester's end of it. */
static void test_own_read_is_refused(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f = { .kind = HCA_FRAME_RESPONSE, .bytes = 60000, .total = 100000 };

	(void)state;
	capture_begin(2);
	wire_post(&q, IBV_WR_RDMA_READ, 1, 0, 100000);
	wire_post(&q, IBV_WR_RDMA_READ, 2, 0, 8);
	wire_expect(&q, HCA_FRAME_READ, NULL, 0);
	wire_put(&q, &f, wire_pattern);
	wire_put_plain(&q, HCA_FRAME_NAK, 0, IBV_WC_REM_ACCESS_ERR, 0);
	wire_completion(&q, 1, IBV_WC_REM_ACCESS_ERR);
	wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
	wire_expect_no_event();
	assert_string_equal(capture_end(), "");
	wire_qp_close(&q);
}

/* ---- An own request ------------------------------ */

/* After the requests before it the request fails, and the peer's queue pair learns that this one stops. */
static void request_breaks_off(enum ibv_wr_opcode op, enum hca_frame_kind kind, size_t bytes)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct memory m = memory_of(bytes);
	unsigned char byte[8];
	struct hca_frame f;

	make_narrow(&q);
	capture_begin(2);
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, 8);
	post(&q, op, 2, &m);
	wire_post(&q, IBV_WR_SEND, 3, 0, 8);
	wire_expect(&q, HCA_FRAME_WRITE, byte, sizeof(byte));
	until_blocked(&q);
	withdraw(&m);
	q.ack = 1;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	f = frames_until_other(&q, kind, HCA_FRAME_CONT);
	assert_int_equal(f.kind, HCA_FRAME_ACK);
	assert_int_equal(f.flags, HCA_FRAME_LAST);
	wire_expect_end(&q);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_completion(&q, 2, IBV_WC_LOC_PROT_ERR);
	wire_completion(&q, 3, IBV_WC_WR_FLUSH_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_no_event();
	assert_string_equal(capture_end(), "");
	wire_qp_close(&q);
}

static void test_write(void **state)
{
	(void)state;
	request_breaks_off(IBV_WR_RDMA_WRITE, HCA_FRAME_WRITE, 256000);
}

static void test_send_of_many_frames(void **state)
{
	(void)state;
	request_breaks_off(IBV_WR_SEND, HCA_FRAME_SEND, 3 << 20);
}

/* Requests before it are not complete: it does not fail before them, and no acknowledgement covers it. */
static void test_earlier_ones_first(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct memory m = memory_of(256000);
	unsigned char byte[8];
	uint64_t sent;

	(void)state;
	make_narrow(&q);
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, 8);
	post(&q, IBV_WR_RDMA_WRITE, 2, &m);
	wire_expect(&q, HCA_FRAME_WRITE, byte, sizeof(byte));
	until_blocked(&q);
	withdraw(&m);
	do {
		static unsigned char some[65536];

		sent = wire_of(&q)->stream.out_total;
		while (recv(q.fd, some, sizeof(some), MSG_DONTWAIT) > 0)
			;
		wire_settle();
	} while (wire_of(&q)->stream.piece_left || wire_of(&q)->stream.out_total != sent);
	wire_expect_none(&q);
	assert_int_equal(atomic_load(&wire_state()->owed), 0);	/* no pass is wanted meanwhile */
	q.ack = 1;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_completion(&q, 2, IBV_WC_LOC_PROT_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* The peer has no receive: the request comes again, and fails then. */
static void test_while_refused(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct memory m = memory_of(256000);

	(void)state;
	make_narrow(&q);
	post(&q, IBV_WR_SEND, 1, &m);
	until_blocked(&q);
	wire_put_plain(&q, HCA_FRAME_RNR, 0, 0, 0);	/* 655 ms */
	while (wire_of(&q)->sequence != 0)
		wire_pass();
	withdraw(&m);
	wire_expect_none(&q);
	meet_time_pass(SECOND_NS);
	assert_int_equal(frames_until_other(&q, HCA_FRAME_SEND, HCA_FRAME_CONT).flags, HCA_FRAME_LAST);
	wire_completion(&q, 1, IBV_WC_LOC_PROT_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* Unreliable: the send queue stops, and the next stream has whole messages. */
static void test_unreliable(void **state)
{
	const struct wire_config c = { .type = IBV_QPT_UC };
	struct wire_qp q = wire_qp_open(c);
	struct memory m = memory_of(256000);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };
	unsigned char byte;

	(void)state;
	make_narrow(&q);
	post(&q, IBV_WR_SEND, 1, &m);
	wire_post(&q, IBV_WR_SEND, 2, 0, 1);
	until_blocked(&q);
	withdraw(&m);
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);	/* a pass serves the queue pair */
	wire_completion(&q, 1, IBV_WC_LOC_PROT_ERR);
	wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
	wire_expect_state(&q, IBV_QPS_SQE);
	wire_expect_end(&q);
	close(q.fd);
	assert_int_equal(ibv_modify_qp(q.qp, &a, IBV_QP_STATE), 0);
	meet_time_pass(5 * SECOND_NS);
	q.fd = wire_peer_accept(q.peer_qpn);
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	while (wire_of(&q)->state != HCA_WIRE_OPEN)
		wire_pass();
	wire_post(&q, IBV_WR_SEND, 3, 0, 1);
	assert_int_equal(wire_expect(&q, HCA_FRAME_SEND, &byte, 1).flags & HCA_FRAME_LAST, HCA_FRAME_LAST);
	wire_completion(&q, 3, IBV_WC_SUCCESS);
	wire_qp_close(&q);
}

/* The responder's end of it: no completion, no event, and the receive is the next one's again. */
static void test_request_of_the_peer(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 100000);

	(void)state;
	capture_begin(2);
	wire_post_recv(&q, 1, 0, 100000);
	f.flags = HCA_FRAME_IMM;
	f.bytes = 99992;
	wire_put(&q, &f, wire_pattern);
	wire_put_plain(&q, HCA_FRAME_ACK, HCA_FRAME_LAST, 0, 0);
	wire_expect_end(&q);
	wire_expect_none(&q);
	wire_expect_no_event();
	wire_expect_state(&q, IBV_QPS_RTS);
	assert_string_equal(capture_end(), "");
	wire_qp_close(&q);
}

/* ---- Messages that land ------------------------------ */

/* A byte of a GiB: ibv_dereg_mr returns, and what comes then is refused. */
static void test_key_goes_during_message(void **state)
{
	const uint32_t total = (1u << 30) - 1;
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	unsigned char *at = mmap(NULL, total, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(wire.pd, at, total, WIRE_ACCESS);
	struct hca_frame f = { .kind = HCA_FRAME_WRITE, .bytes = 1 << 18, .total = total };
	unsigned char head[HCA_FRAME_BYTES];

	assert_non_null(mr);
	f.rkey = mr->rkey;
	f.addr = (uintptr_t)at;
	hca_frame_write(head, &f);
	wire_put_bytes(q.fd, head, sizeof(head));
	wire_put_bytes(q.fd, wire_pattern, 1);
	while (at[0] != wire_pattern[0])
		wire_pass();
	assert_int_equal(ibv_dereg_mr(mr), 0);
	wire_put_bytes(q.fd, wire_pattern + 1, 100000);
	assert_int_equal(wire_expect(&q, HCA_FRAME_NAK, NULL, 0).aux, IBV_WC_REM_ACCESS_ERR);
	wire_expect_event(IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(at[1] | at[99999], 0);
	wire_qp_close(&q);
	munmap(at, total);
}

/* The same with the buffer of a receive. */
static void test_buffer_goes_during_message(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	unsigned char *at = calloc(1, 100000);
	struct ibv_mr *mr = ibv_reg_mr(wire.pd, at, 100000, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)at, 100000, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 100000);
	unsigned char head[HCA_FRAME_BYTES];

	assert_int_equal(ibv_post_recv(q.qp, &wr, &bad), 0);
	wire_post_recv(&q, 2, 0, 10);
	hca_frame_write(head, &f);
	wire_put_bytes(q.fd, head, sizeof(head));
	wire_put_bytes(q.fd, wire_pattern, 10);
	while (at[9] != wire_pattern[9])
		wire_pass();
	assert_int_equal(ibv_dereg_mr(mr), 0);
	wire_put_bytes(q.fd, wire_pattern + 10, 50000);
	wire_completion(&q, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wire_expect(&q, HCA_FRAME_NAK, NULL, 0).aux, IBV_WC_REM_OP_ERR);
	wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(at[10] | at[50000], 0);
	wire_qp_close(&q);
	wire_expect_no_event();
	free(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_of_many_frames),
		cmocka_unit_test(test_read_of_one_frame),
		cmocka_unit_test(test_read_and_no_reader),
		cmocka_unit_test(test_own_read_is_refused),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_send_of_many_frames),
		cmocka_unit_test(test_earlier_ones_first),
		cmocka_unit_test(test_while_refused),
		cmocka_unit_test(test_unreliable),
		cmocka_unit_test(test_request_of_the_peer),
		cmocka_unit_test(test_key_goes_during_message),
		cmocka_unit_test(test_buffer_goes_during_message),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
