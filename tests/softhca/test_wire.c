/*
 * test_wire.c - requests of a peer that has proven itself: what it may ask, in every order and in
 * pieces of every size; what is left when a message breaks off.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../capture.h"
#include "wire_end.h"

static struct hca_frame at_address(struct hca_frame f, size_t at)
{
	f.rkey = wire.mr->rkey;
	f.addr = (uintptr_t)wire.memory + at;
	return f;
}

static void put_write(struct wire_qp *q, size_t at, uint32_t bytes)
{
	const struct hca_frame f = at_address(wire_request(q, HCA_FRAME_WRITE, bytes), at);

	wire_put(q, &f, wire_pattern);
}

/* A message in frames of `part` bytes. */
static void put_in_parts(struct wire_qp *q, struct hca_frame f, uint32_t part)
{
	const uint32_t total = f.total;
	const uint8_t flags = f.flags & (uint8_t)~HCA_FRAME_LAST;
	uint32_t done;

	f.flags = flags;
	for (done = 0; done < total; done += f.bytes) {
		f.bytes = part < total - done ? part : total - done;
		if (f.bytes == total - done)
			f.flags |= HCA_FRAME_LAST;
		wire_put(q, &f, wire_pattern + done);
		f = (struct hca_frame){ .kind = HCA_FRAME_CONT, .bytes = f.bytes, .total = total,
					.sequence = f.sequence, .ack = f.ack };
	}
}

/* ---- Order ------------------------------ */

static void test_messages_in_order(void **state)
{
	static const uint32_t bytes[] = { 0, 1, 39, 4096, 40000, 262144 };
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < 6; i++)
		wire_post_recv(&q, i, 300000 * (i % 3), 262144);
	for (i = 0; i < 6; i++) {
		f = wire_request(&q, HCA_FRAME_SEND, bytes[i]);
		f.flags |= HCA_FRAME_IMM | HCA_FRAME_SOLICITED;
		f.imm = i;
		if (bytes[i] > 1000)
			put_in_parts(&q, f, bytes[i] / 3);
		else
			wire_put(&q, &f, wire_pattern);
		wc = wire_completion(&q, i, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, bytes[i]);
		assert_int_equal(be32toh(wc.imm_data), i);
		assert_memory_equal(wire.memory + 300000 * (i % 3), wire_pattern, bytes[i]);
	}
	wire_expect_ack(&q, 6);
	put_write(&q, 17, 100000);
	wire_expect_ack(&q, 7);
	assert_memory_equal(wire.memory + 17, wire_pattern, 100000);
	f = at_address(wire_request(&q, HCA_FRAME_WRITE, 0), 0);
	f.flags |= HCA_FRAME_IMM;
	wire_post_recv(&q, 9, 0, 1);
	wire_put(&q, &f, NULL);
	wc = wire_completion(&q, 9, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	wire_expect_ack(&q, 8);
	wire_qp_close(&q);
}

/* A program that sleeps with entries left is woken (hca_channel_left): all its polls are counted. */
static void test_polls_are_counted(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	const struct hca_cq *cq = hca_cq_of(q.cq);
	struct hca_frame f;
	struct ibv_wc wc;
	uint32_t before;
	int i;

	for (i = 0; i < 2; i++)
		wire_post_recv(&q, (uint64_t)i, 0, 8);
	for (i = 0; i < 2; i++) {
		f = wire_request(&q, HCA_FRAME_SEND, 8);
		wire_put(&q, &f, wire_pattern);
	}
	while (cq->count < 2)
		wire_pass();
	for (i = 0; i < 2; i++) {
		before = cq->polls;
		assert_int_equal(ibv_poll_cq(q.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(cq->polls, before + 1);
	}
	wire_expect_ack(&q, 2);
	wire_qp_close(&q);
}

/* Bytes arrive one by one, each of them after the queue pair has looked. */
static void test_one_byte_at_a_time(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f = at_address(wire_request(&q, HCA_FRAME_WRITE, 50), 7);
	unsigned char all[2 * HCA_FRAME_BYTES + 50 + 30];
	size_t i;

	memset(wire.memory, 0, 200);
	wire_post_recv(&q, 1, 100, 30);
	hca_frame_write(all, &f);
	memcpy(all + HCA_FRAME_BYTES, wire_pattern, 50);
	f = wire_request(&q, HCA_FRAME_SEND, 30);
	hca_frame_write(all + HCA_FRAME_BYTES + 50, &f);
	memcpy(all + 2 * HCA_FRAME_BYTES + 50, wire_pattern + 50, 30);
	for (i = 0; i < sizeof(all); i++) {
		wire_put_bytes(q.fd, all + i, 1);
		wire_pass();
	}
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	assert_memory_equal(wire.memory + 7, wire_pattern, 50);
	assert_memory_equal(wire.memory + 100, wire_pattern + 50, 30);
	assert_int_equal(wire.memory[6] | wire.memory[57] | wire.memory[130], 0);
	wire_expect_ack(&q, 2);
	wire_qp_close(&q);
}

/* The last 8 bytes of a write appear together, after all others. */
static void test_last_bytes_last(void **state)
{
	static const uint32_t sizes[] = { 1, 5, 8, 9, 64, 1000, 100000 };
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	unsigned i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const uint32_t n = sizes[i], before = n < 8 ? 0 : n - 8;
		const struct hca_frame f = at_address(wire_request(&q, HCA_FRAME_WRITE, n), 0);
		unsigned char head[HCA_FRAME_BYTES];
		static const unsigned char none[8];

		memset(wire.memory, 0, n + 1);
		hca_frame_write(head, &f);
		wire_put_bytes(q.fd, head, sizeof(head));
		wire_put_bytes(q.fd, wire_pattern, n - 1);
		while (before && wire.memory[before - 1] != wire_pattern[before - 1])
			wire_pass();
		wire_settle();
		assert_memory_equal(wire.memory, wire_pattern, before);
		assert_memory_equal(wire.memory + before, none, n - before);
		wire_put_bytes(q.fd, wire_pattern + n - 1, 1);
		wire_expect_ack(&q, i + 1);
		assert_memory_equal(wire.memory, wire_pattern, n);
		assert_int_equal(wire.memory[n], 0);
	}
	wire_qp_close(&q);
}

/* ---- Refusals ------------------------------ */

/* All after the refused message is passed over, until it comes again. */
static void test_receiver_not_ready(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 10), refusal;

	memset(wire.memory, 0, 100);
	wire_put(&q, &f, wire_pattern);
	f = wire_request(&q, HCA_FRAME_SEND, 3000);
	put_in_parts(&q, f, 1000);
	put_write(&q, 0, 10);
	refusal = wire_expect(&q, HCA_FRAME_RNR, NULL, 0);
	assert_int_equal(refusal.aux, WIRE_RNR_TIMER);
	assert_int_equal(refusal.sequence, 0);
	assert_int_equal(refusal.ack, 0);
	wire_post_recv(&q, 1, 50, 10);
	put_write(&q, 0, 10);
	wire_expect_none(&q);
	assert_int_equal(wire.memory[0], 0);
	/* Again, and the next one finds no receive. */
	q.sequence = 0;
	f = wire_request(&q, HCA_FRAME_SEND, 10);
	wire_put(&q, &f, wire_pattern);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	f = wire_request(&q, HCA_FRAME_SEND, 3000);
	put_in_parts(&q, f, 1000);
	refusal = wire_expect(&q, HCA_FRAME_RNR, NULL, 0);
	assert_int_equal(refusal.sequence, 1);
	assert_int_equal(refusal.ack, 1);
	wire_post_recv(&q, 2, 1000, 3000);
	put_in_parts(&q, f, 700);
	wire_completion(&q, 2, IBV_WC_SUCCESS);
	assert_memory_equal(wire.memory + 1000, wire_pattern, 3000);
	put_write(&q, 0, 10);
	wire_expect_ack(&q, 3);
	assert_memory_equal(wire.memory, wire_pattern, 10);
	wire_expect_no_event();
	wire_qp_close(&q);
}

/* A request that is not allowed: NAK, then the error state, and nothing after it is done. */
static void refused(struct hca_frame f, uint32_t bytes, int status, enum ibv_event_type event)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_frame nak;

	memset(wire.memory, 0, 100);
	put_write(&q, 0, 8);
	wire_expect_ack(&q, 1);
	f.sequence = q.sequence++;
	f.flags = HCA_FRAME_LAST;
	f.bytes = bytes;
	wire_put(&q, &f, wire_pattern);
	put_write(&q, 50, 8);
	q.sequence = 1;
	put_write(&q, 50, 8);
	nak = wire_expect(&q, HCA_FRAME_NAK, NULL, 0);
	assert_int_equal(nak.aux, status);
	assert_int_equal(nak.sequence, 1);
	assert_int_equal(nak.ack, 1);
	wire_expect_event(event);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_end(&q);
	assert_int_equal(wire.memory[50], 0);
	wire_qp_close(&q);
	wire_expect_no_event();
}

static void test_not_allowed(void **state)
{
	struct hca_frame f = at_address((struct hca_frame){ .kind = HCA_FRAME_WRITE, .total = 8 }, 50);

	f.rkey ^= 1;
	refused(f, 8, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	f = at_address(f, WIRE_MEMORY - 7);
	refused(f, 8, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	f.addr = UINT64_MAX;
	refused(f, 8, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	f = at_address((struct hca_frame){ .kind = HCA_FRAME_READ, .total = HCA_MESSAGE_MAX }, 0);
	refused(f, 0, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	f = at_address((struct hca_frame){ .kind = HCA_FRAME_FETCH_ADD, .total = 16 }, 4);
	refused(f, 16, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

/* The receive's completion tells, and the next receive is flushed. */
static void test_receive_too_short(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	const struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 20);

	wire_post_recv(&q, 1, 0, 19);
	wire_post_recv(&q, 2, 0, 100);
	wire_put(&q, &f, wire_pattern);
	wire_completion(&q, 1, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(wire_expect(&q, HCA_FRAME_NAK, NULL, 0).aux, IBV_WC_REM_INV_REQ_ERR);
	wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_no_event();
	wire_qp_close(&q);
}

static void put_read(struct wire_qp *q, size_t at, uint32_t bytes)
{
	struct hca_frame f = at_address(wire_request(q, HCA_FRAME_READ, bytes), at);

	f.bytes = 0;
	wire_put(q, &f, NULL);
}

static void test_more_reads_than_agreed(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	unsigned char all[(WIRE_READS + 1) * HCA_FRAME_BYTES];
	static unsigned char data[WIRE_MEMORY];
	struct hca_frame f;
	uint32_t i;

	for (i = 0; i < WIRE_READS + 1; i++) {
		f = at_address(wire_request(&q, HCA_FRAME_READ, WIRE_MEMORY), 0);

		f.bytes = 0;
		hca_frame_write(all + i * HCA_FRAME_BYTES, &f);
	}
	wire_put_bytes(q.fd, all, sizeof(all));		/* before any answer */
	do
		assert_true(wire_get(&q, &f, data, sizeof(data)));
	while (f.kind == HCA_FRAME_RESPONSE);
	assert_int_equal(f.kind, HCA_FRAME_NAK);
	assert_int_equal(f.sequence, WIRE_READS);
	wire_expect_event(IBV_EVENT_QP_REQ_ERR);
	wire_expect_state(&q, IBV_QPS_ERR);
	wire_expect_end(&q);
	wire_qp_close(&q);
}

/* ---- Answers ------------------------------ */

/* Data of a READ, in frames in order. */
static void expect_data(struct wire_qp *q, uint32_t sequence, size_t at, uint32_t total)
{
	static unsigned char data[WIRE_MEMORY];
	struct hca_frame f;
	uint32_t done = 0;

	do {
		f = wire_expect(q, HCA_FRAME_RESPONSE, data, sizeof(data));
		assert_int_equal(f.sequence, sequence);
		assert_int_equal(f.ack, sequence);
		assert_int_equal(f.total, total);
		assert_memory_equal(data, wire.memory + at + done, f.bytes);
		done += f.bytes;
		assert_int_equal(!!(f.flags & HCA_FRAME_LAST), done == total);
	} while (done < total);
}

/* Answers are in the order of their requests, between frames of a message of the other direction. */
static void test_answers_between_frames(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_operands operands = { 5, 0 };
	unsigned char words[HCA_OPERANDS_BYTES];
	uint64_t before = 37, word = 0;
	struct hca_frame f;

	memcpy(wire.memory, wire_pattern, WIRE_MEMORY);
	memcpy(wire.memory + 800000, &before, 8);
	wire_post_recv(&q, 1, 900000, 90000);
	put_read(&q, 3, 700000);
	f = at_address(wire_request(&q, HCA_FRAME_FETCH_ADD, sizeof(words)), 800000);
	hca_operands_write(words, &operands);
	wire_put(&q, &f, words);
	put_in_parts(&q, wire_request(&q, HCA_FRAME_SEND, 90000), 20000);
	put_read(&q, 0, 0);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	expect_data(&q, 0, 3, 700000);
	f = wire_expect(&q, HCA_FRAME_RESPONSE, &word, 8);
	assert_int_equal(f.sequence, 1);
	assert_int_equal(word, 37);
	memcpy(&word, wire.memory + 800000, 8);
	assert_int_equal(word, 42);
	expect_data(&q, 3, 0, 0);
	put_write(&q, 0, 8);
	wire_expect_ack(&q, 5);
	wire_qp_close(&q);
}

/* ---- Acknowledgements ------------------------------ */

/* Data that leaves carries them; alone they leave when nothing else does. */
static void test_acknowledgements_ride(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_fabric *fabric = hca_context_of(wire.ctx)->fabric;
	unsigned char bytes[16];
	struct hca_frame f;
	uint32_t i;

	for (i = 0; i < 3; i++)
		put_write(&q, i, 1);
	hca_lock(&fabric->life);	/* no pass, which might send one alone */
	while (wire_of(&q)->expected != 3)
		hca_wire_serve_active(wire_of(&q)->wire);
	wire_post(&q, IBV_WR_SEND, 1, 0, 10);
	hca_unlock(&fabric->life);
	assert_true(wire_get(&q, &f, bytes, sizeof(bytes)));
	assert_int_equal(f.kind, HCA_FRAME_SEND);
	assert_int_equal(f.ack, 3);
	wire_settle();
	assert_int_equal(recv(q.fd, bytes, 1, MSG_DONTWAIT), -1);
	/* The peer's request acknowledges this one, and is acknowledged alone. */
	q.ack = 1;
	put_write(&q, 0, 1);
	wire_completion(&q, 1, IBV_WC_SUCCESS);
	assert_true(wire_get(&q, &f, NULL, 0));
	assert_int_equal(f.kind, HCA_FRAME_ACK);
	assert_int_equal(f.ack, 4);
	wire_qp_close(&q);
}

/* Passes of the library until an acknowledgement leaves, at most `most`. */
static unsigned passes_until_ack(struct wire_qp *q, uint8_t flags, unsigned most)
{
	struct hca_fabric *fabric = hca_context_of(wire.ctx)->fabric;
	struct hca_frame f = at_address(wire_request(q, HCA_FRAME_WRITE, 8), 0);
	struct hca_wire_qp *w = wire_of(q);
	const uint32_t expected = w->expected + 1;
	const uint64_t sent = w->stream.out_total;
	unsigned n;

	f.flags |= flags;
	wire_put(q, &f, wire_pattern);
	while (w->expected != expected)
		fabric->wire->progress(fabric);
	for (n = 0; n < most && w->stream.out_total == sent; n++)
		fabric->wire->progress(fabric);
	return n;
}

/* An acknowledgement that completes nothing waits longer for a frame that carries it. */
static void test_acknowledgements_that_none_awaits(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
	struct hca_fabric *fabric = hca_context_of(wire.ctx)->fabric;

	wire_settle();
	hca_lock(&fabric->life);	/* no pass but this test's */
	assert_in_range(passes_until_ack(&q, HCA_FRAME_AWAITED, 1000), 1, 4);
	assert_in_range(passes_until_ack(&q, 0, 1000), 32, 128);
	assert_int_equal(passes_until_ack(&q, 0, 20), 20);
	/* An acknowledgement that is awaited covers the messages before it. */
	assert_in_range(passes_until_ack(&q, HCA_FRAME_AWAITED, 1000), 1, 4);
	hca_unlock(&fabric->life);
	wire_expect_ack(&q, 4);
	wire_qp_close(&q);
}

/* ---- Messages that break off ------------------------------ */

static void test_half_a_frame(void **state)
{
	static const size_t parts[] = { 1, HCA_FRAME_BYTES - 1, HCA_FRAME_BYTES, HCA_FRAME_BYTES + 5 };
	unsigned i;

	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct wire_qp q = wire_qp_open((struct wire_config){ 0 });
		const struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 10);
		unsigned char bytes[HCA_FRAME_BYTES + 10] = { 0 };

		wire_post_recv(&q, 1, 0, 10);
		wire_post_recv(&q, 2, 0, 10);
		hca_frame_write(bytes, &f);
		wire_put_bytes(q.fd, bytes, parts[i]);
		wire_settle();
		shutdown(q.fd, SHUT_WR);
		wire_completion(&q, 1, IBV_WC_WR_FLUSH_ERR);
		wire_completion(&q, 2, IBV_WC_WR_FLUSH_ERR);
		wire_expect_event(IBV_EVENT_QP_FATAL);
		wire_expect_state(&q, IBV_QPS_ERR);
		wire_qp_close(&q);
	}
}

/* A receive of an SRQ that was claimed is the next one again, for any queue pair. */
static void test_shared_receive_returns(void **state)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(wire.pd, &init);
	struct wire_qp a = wire_qp_open((struct wire_config){ .srq = srq });
	struct wire_qp b = wire_qp_open((struct wire_config){ .srq = srq });
	struct hca_frame f = wire_request(&a, HCA_FRAME_SEND, 100);
	uint64_t i;

	for (i = 1; i < 3; i++)
		wire_post_srq(srq, i, i * 1000, 100);
	f.bytes = 50;
	f.flags = 0;
	wire_put(&a, &f, wire_pattern);
	while (!wire_of(&a)->request.receive.claimed)
		wire_pass();
	/* The other one gets the second, meanwhile. */
	f = wire_request(&b, HCA_FRAME_SEND, 100);
	wire_put(&b, &f, wire_pattern);
	wire_completion(&b, 2, IBV_WC_SUCCESS);
	close(a.fd);
	a.fd = -1;
	wire_expect_event(IBV_EVENT_QP_FATAL);
	wire_expect_event(IBV_EVENT_QP_LAST_WQE_REACHED);
	f = wire_request(&b, HCA_FRAME_SEND, 100);
	wire_put(&b, &f, wire_pattern);
	wire_completion(&b, 1, IBV_WC_SUCCESS);
	assert_memory_equal(wire.memory + 1000, wire_pattern, 100);
	wire_expect_none(&a);
	wire_qp_close(&a);
	wire_qp_close(&b);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* ---- Unreliable connections ------------------------------ */

/* A message that its peer may not send is lost, and the next one arrives. */
static void test_uc_losses(void **state)
{
	struct wire_qp q = wire_qp_open((struct wire_config){ .type = IBV_QPT_UC });
	struct hca_frame f = wire_request(&q, HCA_FRAME_SEND, 3000);

	put_in_parts(&q, f, 1000);			/* no receive */
	f = at_address(wire_request(&q, HCA_FRAME_WRITE, 3000), 0);
	f.rkey ^= 1;
	put_in_parts(&q, f, 1000);
	put_read(&q, 0, 10);
	put_write(&q, 7, 3000);
	while (wire_of(&q)->expected < 4)
		wire_pass();
	wire_post_recv(&q, 1, 5000, 3000);
	f = wire_request(&q, HCA_FRAME_SEND, 3001);
	put_in_parts(&q, f, 1000);			/* too long: dropped, the receive stays */
	f = wire_request(&q, HCA_FRAME_SEND, 2999);
	put_in_parts(&q, f, 1000);
	assert_int_equal(wire_completion(&q, 1, IBV_WC_SUCCESS).byte_len, 2999);
	assert_memory_equal(wire.memory + 7, wire_pattern, 3000);
	assert_memory_equal(wire.memory + 5000, wire_pattern, 2999);
	wire_settle();
	assert_int_equal(recv(q.fd, &f, 1, MSG_DONTWAIT), -1);	/* and no frame came back */
	wire_expect_no_event();
	wire_qp_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_in_order),
		cmocka_unit_test(test_polls_are_counted),
		cmocka_unit_test(test_one_byte_at_a_time),
		cmocka_unit_test(test_last_bytes_last),
		cmocka_unit_test(test_receiver_not_ready),
		cmocka_unit_test(test_not_allowed),
		cmocka_unit_test(test_receive_too_short),
		cmocka_unit_test(test_more_reads_than_agreed),
		cmocka_unit_test(test_answers_between_frames),
		cmocka_unit_test(test_acknowledgements_ride),
		cmocka_unit_test(test_acknowledgements_that_none_awaits),
		cmocka_unit_test(test_half_a_frame),
		cmocka_unit_test(test_shared_receive_returns),
		cmocka_unit_test(test_uc_losses),
	};

	return cmocka_run_group_tests(tests, wire_host_open, wire_host_close);
}
