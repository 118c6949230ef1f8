/*
 * test_wire_requester.c - requests of this process to a peer that may answer anything: refusals,
 * answers, acknowledgements, farewells; what a hostile answer can reach.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../capture.h"
#include "wire_end.h"

#define SECOND_NS UINT64_C(1000000000)
#define LAST HCA_FRAME_LAST

static void put_answer(struct wire_qp *q, uint32_t sequence, uint32_t bytes, uint32_t total,
		       uint32_t done)
{
	const struct hca_frame f = { .kind = HCA_FRAME_RESPONSE, .bytes = bytes, .total = total,
				     .flags = done + bytes == total ? LAST : 0,
				     .sequence = sequence, .ack = sequence };

	wire_put(q, &f, wire_pattern + done);
}

/* ---- Frames ------------------------------ */

static void test_requests(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	unsigned char bytes[256];
	struct hca_operands o;
	struct hca_frame f;

	memcpy(wire.memory, wire_pattern, 100);
	wire_post(&q, IBV_WR_SEND_WITH_IMM, 1, 0, 100);
	f = wire_expect(&q, HCA_FRAME_SEND, bytes, sizeof(bytes));
	assert_int_equal(f.flags, LAST | HCA_FRAME_IMM | HCA_FRAME_AWAITED);
	assert_int_equal(f.imm, 0x1234);
	assert_int_equal(f.sequence, 0);
	assert_memory_equal(bytes, wire_pattern, 100);
	wire_post(&q, IBV_WR_RDMA_WRITE, 2, 0, 10);
	f = wire_expect(&q, HCA_FRAME_WRITE, bytes, sizeof(bytes));
	assert_int_equal(f.rkey, 0x77);
	assert_int_equal(f.addr, 0x1000);
	assert_int_equal(f.total, 10);
	wire_post(&q, IBV_WR_RDMA_READ, 3, 500, 10);
	f = wire_expect(&q, HCA_FRAME_READ, NULL, 0);
	assert_int_equal(f.total, 10);
	wire_post(&q, IBV_WR_ATOMIC_CMP_AND_SWP, 4, 600, 8);
	f = wire_expect(&q, HCA_FRAME_CMP_SWAP, bytes, sizeof(bytes));
	assert_int_equal(f.sequence, 3);
	hca_operands_read(bytes, &o);
	assert_int_equal(o.compare_add, 5);
	assert_int_equal(o.swap, 6);
	/* All of these are under way; an answer acknowledges all before it. */
	wire_expect_none(&q);
	put_answer(&q, 2, 10, 10, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	wire_completion(&q, 3, IBV_WC_SUCCESS);
	assert_memory_equal(wire.memory + 500, wire_pattern, 10);
	put_answer(&q, 3, 8, 8, 0);
	wire_completion(&q, 4, IBV_WC_SUCCESS);
	assert_memory_equal(wire.memory + 600, wire_pattern, 8);
	wire_qp_close(&q);
}

/* An acknowledgement of several. */
static void test_cumulative(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	uint64_t i;

	for (i = 0; i < 8; i++)
		wire_post(&q, IBV_WR_SEND, i, 0, 1);
	q.ack = 3;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	for (i = 0; i < 3; i++)
		wire_completion(&q, i, IBV_WC_SUCCESS);
	wire_expect_none(&q);
	q.ack = 8;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	for (; i < 8; i++)
		wire_completion(&q, i, IBV_WC_SUCCESS);
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);	/* nothing new */
	wire_expect_none(&q);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* ---- Answers in parts, and between frames of a request of the peer ------------------------------ */

static void test_answers_in_parts(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 5000);

	memset(wire.memory, 0, 200000);
	wire_post(&q, IBV_WR_RDMA_READ, 1, 1000, 100000);
	wire_post(&q, IBV_WR_RDMA_READ, 2, 150000, 7);
	wire_post_recv(&q, 3, 300000, 5000);
	wire_expect(&q, HCA_FRAME_READ, NULL, 0);
	put_answer(&q, 0, 1, 100000, 0);
	f.flags = 0;
	f.bytes = 2000;
	wire_put(&q, &f, wire_pattern);
	put_answer(&q, 0, 60000, 100000, 1);
	f = (struct hca_frame){ .kind = HCA_FRAME_CONT, .flags = LAST, .bytes = 3000, .total = 5000,
				.sequence = f.sequence };
	wire_put(&q, &f, wire_pattern + 2000);
	wire_completion(&q, 3, IBV_WC_SUCCESS);
	put_answer(&q, 0, 39999, 100000, 60001);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	put_answer(&q, 1, 7, 7, 0);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	assert_memory_equal(wire.memory + 1000, wire_pattern, 100000);
	assert_memory_equal(wire.memory + 150000, wire_pattern, 7);
	assert_memory_equal(wire.memory + 300000, wire_pattern, 5000);
	assert_int_equal(wire.memory[999] | wire.memory[101000] | wire.memory[150007], 0);
	wire_qp_close(&q);
}

/* ---- Refusals ------------------------------ */

static void test_nak(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	uint64_t i;

	for (i = 0; i < 4; i++)
		wire_post(&q, IBV_WR_RDMA_WRITE, i, 0, 10);
	q.ack = 1;
	wire_put_plain(&q, HCA_FRAME_NAK, 0, IBV_WC_REM_ACCESS_ERR, 1);
	wire_completion(&q, 0, IBV_WC_SUCCESS);
	wire_completion(&q, 1, IBV_WC_REM_ACCESS_ERR);
	wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
	wire_completion(&q, 3, IBV_WC_WR_FLUSH_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* The reason is read, though the socket has failed before it was: bytes of a request still wait. */
static void test_nak_then_reset(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	uint64_t i;

	for (i = 0; i < 16; i++)
		wire_post(&q, IBV_WR_RDMA_WRITE, i, 0, WIRE_MEMORY);
	wire_settle();
	wire_put_plain(&q, HCA_FRAME_NAK, 0, IBV_WC_REM_ACCESS_ERR, 0);
	close(q.fd);			/* with bytes that were not read: a reset */
	q.fd = -1;
	wire_completion(&q, 0, IBV_WC_REM_ACCESS_ERR);
	for (i = 1; i < 16; i++)
		wire_completion(&q, i, IBV_WC_WR_FLUSH_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* All from the refused one on come again, with the same numbers, after the time. */
static void test_rnr(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	unsigned char byte;
	struct hca_frame f;
	uint32_t i;

	for (i = 0; i < 3; i++)
		wire_post(&q, IBV_WR_SEND, i, 0, 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(wire_expect(&q, HCA_FRAME_SEND, &byte, 1).sequence, i);
	q.ack = 1;
	wire_put_plain(&q, HCA_FRAME_RNR, 0, 0, 1);	/* 655 ms */
	wire_completion(&q, 0, IBV_WC_SUCCESS);
	wire_expect_none(&q);
	assert_int_equal(recv(q.fd, &byte, 1, MSG_DONTWAIT), -1);
	meet_time_pass(SECOND_NS);
	for (i = 1; i < 3; i++) {
		f = wire_expect(&q, HCA_FRAME_SEND, &byte, 1);
		assert_int_equal(f.sequence, i);
	}
	q.ack = 3;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	wire_qp_close(&q);
}

/* While the peer's requests are passed over, its acknowledgements and answers are taken. */
static void test_answers_while_not_ready(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 8);

	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, 8);
	wire_post(&q, IBV_WR_RDMA_READ, 2, 1000, 8);
	wire_expect(&q, HCA_FRAME_WRITE, wire.memory + 2000, 8);
	wire_expect(&q, HCA_FRAME_READ, NULL, 0);
	wire_put(&q, &f, wire_pattern);
	wire_expect(&q, HCA_FRAME_RNR, NULL, 0);
	f = wire_request(&q, HCA_FRAME_SEND, 8);
	wire_put(&q, &f, wire_pattern);
	q.ack = 1;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	f = wire_request(&q, HCA_FRAME_SEND, 8);
	wire_put(&q, &f, wire_pattern);
	put_answer(&q, 1, 8, 8, 0);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	assert_memory_equal(wire.memory + 1000, wire_pattern, 8);
	assert_true(wire_of(&q)->discards);
	wire_qp_close(&q);
}

static void test_rnr_for_ever(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .rnr_retry = 2 });
	unsigned char byte;
	unsigned i;

	wire_post(&q, IBV_WR_SEND, 1, 0, 1);
	wire_post(&q, IBV_WR_SEND, 2, 0, 1);
	for (i = 0; i < 3; i++) {
		assert_int_equal(wire_expect(&q, HCA_FRAME_SEND, &byte, 1).sequence, 0);
		assert_int_equal(wire_expect(&q, HCA_FRAME_SEND, &byte, 1).sequence, 1);
		wire_put_plain(&q, HCA_FRAME_RNR, 0, 1, 0);
		wire_settle();
		meet_time_pass(SECOND_NS);
	}
	wire_completion(&q, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_qp_close(&q);
}

/* A long message is refused while its frames leave: the rest of them does not matter. */
static void test_rnr_within_message(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	static unsigned char bytes[HCA_FRAME_PAYLOAD_MAX];
	struct hca_frame f;
	uint32_t done;

	memcpy(wire.memory, wire_pattern, WIRE_MEMORY);
	wire_post(&q, IBV_WR_SEND, 1, 0, WIRE_MEMORY);
	wire_post(&q, IBV_WR_SEND, 2, 0, 5);
	wire_put_plain(&q, HCA_FRAME_RNR, 0, 0, 0);	/* 655 ms */
	while (wire_of(&q)->sequence != 0)
		wire_pass();
	meet_time_pass(SECOND_NS);
	/* Frames of the first try, then the second one, whole. */
	wire_expect(&q, HCA_FRAME_SEND, bytes, sizeof(bytes));
	do
		assert_true(wire_get(&q, &f, bytes, sizeof(bytes)));
	while (f.kind != HCA_FRAME_SEND || f.sequence != 0);
	for (done = f.bytes; done < WIRE_MEMORY; done += f.bytes) {
		assert_memory_equal(bytes, wire_pattern + done - f.bytes, f.bytes);
		f = wire_expect(&q, HCA_FRAME_CONT, bytes, sizeof(bytes));
	}
	assert_int_equal(wire_expect(&q, HCA_FRAME_SEND, bytes, sizeof(bytes)).sequence, 1);
	q.ack = 2;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	wire_qp_close(&q);
}

/* ---- The end of the stream ------------------------------ */

/* The peer's queue pair has stopped: nothing under way is no error, and requests fail in time. */
static void test_farewell(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });

	wire_put_plain(&q, HCA_FRAME_ACK, LAST, 0, 0);
	wire_expect_end(&q);
	wire_expect_no_event();
	wire_expect_state(&q, IBV_QPS_RTS);
	wire_post(&q, IBV_WR_SEND, 1, 0, 1);
	wire_expect_none(&q);
	meet_time_pass(60 * SECOND_NS);
	wire_completion(&q, 1, IBV_WC_RETRY_EXC_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_qp_close(&q);
}

/* The same with requests under way, of which the farewell acknowledges one. */
static void test_farewell_under_way(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });

	wire_post(&q, IBV_WR_SEND, 1, 0, 1);
	wire_post(&q, IBV_WR_SEND, 2, 0, 1);
	q.ack = 1;
	wire_put_plain(&q, HCA_FRAME_ACK, LAST, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	wire_expect_none(&q);
	meet_time_pass(60 * SECOND_NS);
	wire_completion(&q, 2, IBV_WC_RETRY_EXC_ERR);
	wire_qp_close(&q);
}

/* The peer's process is gone. */
static void test_end_without_farewell(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });

	wire_post(&q, IBV_WR_SEND, 1, 0, 1);
	wire_post(&q, IBV_WR_SEND, 2, 0, 1);
	wire_settle();
	shutdown(q.fd, SHUT_WR);
	wire_completion(&q, 1, IBV_WC_RETRY_EXC_ERR);
	wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* This end's farewell: frames that wait, then one that says so. */
static void test_own_farewell(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f;
	unsigned char byte;

	wire_post(&q, IBV_WR_SEND, 1, 0, 1);
	wire_post(&q, IBV_WR_SEND, 2, 0, 1);
	assert_int_equal(ibv_destroy_qp(q.qp), 0);
	wire_expect(&q, HCA_FRAME_SEND, &byte, 1);
	wire_expect(&q, HCA_FRAME_SEND, &byte, 1);
	f = wire_expect(&q, HCA_FRAME_ACK, NULL, 0);
	assert_int_equal(f.flags, LAST);
	assert_false(wire_get(&q, &f, NULL, 0));
	assert_int_equal(ibv_destroy_cq(q.cq), 0);
	close(q.fd);
}

/* ---- Breaches ------------------------------ */

struct breach {
	const char *what;
	enum ibv_wr_opcode op[3];
	unsigned requests;
	uint32_t bytes;			/* of each request */
	struct hca_frame frames[2];
	unsigned good;			/* requests that have succeeded before */
};

static const struct breach breaches[] = {
	{ "an acknowledgement of one more", { IBV_WR_SEND }, 1, 8,
	  { { HCA_FRAME_ACK, 0, 0, 0, 0, 0, 2, 0, 0, 0 } } },
	{ "of a READ", { IBV_WR_SEND, IBV_WR_RDMA_READ }, 2, 8,
	  { { HCA_FRAME_ACK, 0, 0, 0, 0, 0, 2, 0, 0, 0 } } },
	{ "of one after a READ, by an answer", { IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_RDMA_READ }, 3, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 8, 8, 2, 2, 0, 0, 0 } } },
	{ "a READ's half", { IBV_WR_RDMA_READ }, 1, 8,
	  { { HCA_FRAME_RESPONSE, 0, 0, 4, 8, 0, 0, 0, 0, 0 },
	    { HCA_FRAME_ACK, 0, 0, 0, 0, 0, 1, 0, 0, 0 } } },
	{ "an answer to a SEND", { IBV_WR_SEND }, 1, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } } },
	{ "an answer longer than asked", { IBV_WR_RDMA_READ }, 1, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 9, 9, 0, 0, 0, 0, 0 } } },
	{ "longer in its second frame", { IBV_WR_RDMA_READ }, 1, 8,
	  { { HCA_FRAME_RESPONSE, 0, 0, 4, 8, 0, 0, 0, 0, 0 },
	    { HCA_FRAME_RESPONSE, 0, 0, 5, 8, 0, 0, 0, 0, 0 } } },
	{ "shorter than asked", { IBV_WR_RDMA_READ }, 1, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 4, 4, 0, 0, 0, 0, 0 } } },
	{ "an end too early", { IBV_WR_RDMA_READ }, 1, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 4, 8, 0, 0, 0, 0, 0 } } },
	{ "the second answer first", { IBV_WR_RDMA_READ, IBV_WR_RDMA_READ }, 2, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 8, 8, 1, 1, 0, 0, 0 } } },
	{ "an answer twice", { IBV_WR_RDMA_READ, IBV_WR_RDMA_READ }, 2, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 8, 8, 0, 0, 0, 0, 0 },
	    { HCA_FRAME_RESPONSE, LAST, 0, 8, 8, 0, 0, 0, 0, 0 } }, 1 },
	{ "a word of 4 bytes", { IBV_WR_ATOMIC_FETCH_AND_ADD }, 1, 8,
	  { { HCA_FRAME_RESPONSE, LAST, 0, 4, 4, 0, 0, 0, 0, 0 } } },
	{ "a refusal that is not the oldest's", { IBV_WR_SEND, IBV_WR_SEND }, 2, 8,
	  { { HCA_FRAME_NAK, 0, IBV_WC_REM_OP_ERR, 0, 0, 1, 0, 0, 0, 0 } } },
	{ "not ready for a WRITE", { IBV_WR_RDMA_WRITE }, 1, 8,
	  { { HCA_FRAME_RNR, 0, 1, 0, 0, 0, 0, 0, 0, 0 } } },
	{ "not ready for a READ", { IBV_WR_RDMA_READ }, 1, 8,
	  { { HCA_FRAME_RNR, 0, 1, 0, 0, 0, 0, 0, 0, 0 } } },
};

/* What completes before the breach, if anything, is what was acknowledged; then one fails. */
static void test_breaches(void **state)
{
	unsigned i, r, n;

	for (i = 0; i < sizeof(breaches) / sizeof(*breaches); i++) {
		const struct breach *b = &breaches[i];
		struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
		bool failed = false;
		struct ibv_wc wc;

		print_message("%s\n", b->what);
		memset(wire.memory, 0, 64);
		for (r = 0; r < b->requests; r++)
			wire_post(&q, b->op[r], r, 0, b->bytes);
		wire_settle();
		capture_begin(2);
		for (n = 0; n < 2 && b->frames[n].kind; n++)
			wire_put(&q, &b->frames[n], wire_pattern);
		for (r = 0; r < b->requests; r += (unsigned)n) {
			n = (unsigned)ibv_poll_cq(q.cq, 1, &wc);
			if (!n)
				continue;
			assert_int_equal(wc.wr_id, r);
			assert_int_equal(wc.status, failed ? IBV_WC_WR_FLUSH_ERR :
					 r < b->good ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
			failed = wc.status != IBV_WC_SUCCESS;
		}
		wire_expect_breach(&q, capture_end());
		wire_expect_end(&q);
		assert_int_equal(wire.memory[8], 0);
		wire_qp_close(&q);
	}
	wire_expect_no_event();
}

/* Messages that have left may be acknowledged, the one that leaves may not. */
static void test_breach_while_leaving(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	const int ends[] = { q.fd, wire_of(&q)->stream.fd }, room = 65536;
	const uint64_t left = 3;
	uint64_t i;

	for (i = 0; i < 2; i++) {	/* the kernel has no room for a message */
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	}
	for (i = 0; i < 16; i++)
		wire_post(&q, IBV_WR_SEND, i, 0, i < left ? 10 : WIRE_MEMORY);
	q.ack = (uint32_t)left;
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	for (i = 0; i < left; i++)
		wire_completion(&q, i, IBV_WC_SUCCESS);
	while (!wire_of(&q)->stream.piece_left)
		wire_pass();
	q.ack++;
	capture_begin(2);
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	for (; i < 16; i++)
		wire_completion(&q, i, i == left ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
	wire_expect_breach(&q, capture_end());
	wire_qp_close(&q);
}

static void read_all(int fd)
{
	static char bytes[1 << 16];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* An acknowledgement that is owed while the kernel has no room leaves later, without another frame. */
static void test_ack_while_full(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_fabric *fabric = hca_context_of(wire.ctx)->fabric;
	struct hca_wire_qp *w = wire_of(&q);
	const int ends[] = { q.fd, w->stream.fd }, room = 65536;
	struct hca_frame f;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
		assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	}
	wire_post(&q, IBV_WR_RDMA_WRITE, 1, 0, WIRE_MEMORY);
	while (!w->stream.blocked)
		wire_pass();
	hca_lock(&fabric->life);	/* no pass but this test's */
	f = wire_request(&q, HCA_FRAME_WRITE, 8);
	f.addr = (uint64_t)(uintptr_t)wire.memory;
	f.rkey = wire.mr->rkey;
	wire_put(&q, &f, "12345678");
	while (!w->owes_ack)
		fabric->wire->progress(fabric);
	w->ack_at = hca_wire_pass(w->wire) + 1000;
	while (w->stream.out_at < w->stream.out_end || w->stream.piece_left || w->current) {
		fabric->wire->progress(fabric);
		read_all(q.fd);
	}
	for (int i = 0; i < 2000 && w->owes_ack; i++)
		fabric->wire->progress(fabric);
	assert_false(w->owes_ack);
	hca_unlock(&fabric->life);
	wire_qp_close(&q);
}

/* ---- Calls ------------------------------ */

/* The time passes in steps; each call that is due ends. */
static void let_call(struct wire_qp *q, unsigned steps, uint64_t step_ns)
{
	while (steps--) {
		meet_time_pass(step_ns);
		wire_pass();
		while (wire_of(q)->state == HCA_WIRE_CALLING && !wire_of(q)->again_ns)
			wire_pass();
	}
}

/* A peer that is gone is called less and less often, and reached when it is there again. */
static void test_unreliable_peer_gone(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UC });
	unsigned before, calls;
	unsigned char byte;

	wire.peer.answer = HCA_MEET_UNKNOWN;
	close(q.fd);
	while (wire_of(&q)->state == HCA_WIRE_OPEN)
		wire_pass();
	before = wire.peer.asked;
	let_call(&q, 600, SECOND_NS / 10);
	calls = wire.peer.asked - before;
	assert_in_range(calls, 10, 30);
	wire_post(&q, IBV_WR_SEND, 1, 0, 1);
	wire_completion(&q, 1, IBV_WC_SUCCESS);		/* lost */
	wire.peer.answer = HCA_MEET_MINE;
	meet_time_pass(5 * SECOND_NS);
	q.fd = wire_peer_accept(q.peer_qpn);
	wire_put_plain(&q, HCA_FRAME_ACK, 0, 0, 0);
	while (wire_of(&q)->state != HCA_WIRE_OPEN)
		wire_pass();
	wire_post(&q, IBV_WR_SEND, 2, 0, 1);
	wire_expect(&q, HCA_FRAME_SEND, &byte, 1);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	wire_qp_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_cumulative),
		cmocka_unit_test(test_answers_in_parts),
		cmocka_unit_test(test_nak),
		cmocka_unit_test(test_nak_then_reset),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_answers_while_not_ready),
		cmocka_unit_test(test_rnr_for_ever),
		cmocka_unit_test(test_rnr_within_message),
		cmocka_unit_test(test_farewell),
		cmocka_unit_test(test_farewell_under_way),
		cmocka_unit_test(test_end_without_farewell),
		cmocka_unit_test(test_own_farewell),
		cmocka_unit_test(test_breaches),
		cmocka_unit_test(test_breach_while_leaving),
		cmocka_unit_test(test_ack_while_full),
		cmocka_unit_test(test_unreliable_peer_gone),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
