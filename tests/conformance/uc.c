/*
 * uc.c - unreliable connections: messages that arrive are whole and in order; a
 * message that meets an error is lost, without a report to its sender (IBTA 9.8,
 * 9.9.3).
 */
#include "conformance.h"

enum { BYTES = 4096 };

static struct end uc_new(struct side *s, unsigned access)
{
	struct end_config c = end_defaults;

	c.type = IBV_QPT_UC;
	c.access = access;
	return end_new(s, &c);
}

/* A message from side 0 to side 1, which has posted receive `wr_id` for it: all is well. */
static void passes(struct side *s, struct end *e, struct buffer *b, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(b, 0, 10);

	if (s->me == 0) {
		post(e, send_wr(&sge, wr_id));
		expect(e->cq, wr_id, IBV_WC_SUCCESS);
	} else {
		expect(e->cq, wr_id, IBV_WC_SUCCESS);
	}
	require_equal(end_state(e), IBV_QPS_RTS);
	barrier(s);
}

/* Writes that the message behind them tells of. */
static void test_write(struct side *s)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 100, 1023, 1024, 1025, 5000, 300000 };
	struct buffer b = buffer_new(s, 300064, ACCESS_ALL);
	struct end e = uc_new(s, ACCESS_ALL);
	size_t i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct ibv_sge sge = sge_of(&b, 16, sizes[i]), none = sge_of(&b, 0, 0);

		if (s->me == 0) {
			struct ibv_send_wr wr = write_wr(&b, &sge, 1);

			wr.wr.rdma.remote_addr += 16;
			fill(b.at + 16, i, sizes[i]);
			barrier(s);
			post(&e, wr);
			expect(e.cq, 1, IBV_WC_SUCCESS);
			post(&e, send_wr(&none, 2));
			expect(e.cq, 2, IBV_WC_SUCCESS);
		} else {
			memset(b.at, 0xee, b.bytes);
			post_receive(&e, i, NULL, 0);
			barrier(s);
			expect(e.cq, i, IBV_WC_SUCCESS);
			check(b.at + 16, i, sizes[i], "written");
			check_untouched(b.at, 0xee, 16, "before");
			check_untouched(b.at + 16 + sizes[i], 0xee, 32, "behind");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* Nobody waits for a receiver; the next message finds the receive that is there by then. */
static void test_no_receive(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = uc_new(s, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 10);
	uint64_t i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		for (i = 0; i < 5; i++) {
			struct ibv_send_wr wr = write_wr(&b, &sge, i);

			wr.opcode = i == 3 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND;
			post(&e, wr);
			expect(e.cq, i, IBV_WC_SUCCESS);
		}
		expect_nothing(e.cq, 10);
	}
	barrier(s);
	if (s->me == 1)
		expect_nothing(e.cq, 10);
	if (s->me == 1)
		post_receive(&e, 7, &sge, 1);
	barrier(s);
	passes(s, &e, &b, 7);
	end_free(&e);
	buffer_free(s, &b);
}

/* The peer is not ready, or not there any more. */
static void test_no_peer(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = uc_new(s, ACCESS_ALL);
	struct peer_address mine = end_address(s, &e), theirs;
	struct ibv_sge sge = sge_of(&b, 0, 10);

	buffer_swap(s, &b);
	swap(s, &mine, &theirs, sizeof(mine));
	if (s->me == 0) {
		require_equal(end_to_init(s, &e), 0);
		require_equal(end_to_rtr(s, &e, &theirs), 0);
		require_equal(end_to_rts(&e), 0);
		post(&e, send_wr(&sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
		post(&e, write_wr(&b, &sge, 2));
		expect(e.cq, 2, IBV_WC_SUCCESS);
	}
	barrier(s);
	if (s->me == 1)
		end_free(&e);
	barrier(s);
	if (s->me == 0) {
		post(&e, send_wr(&sge, 3));
		expect(e.cq, 3, IBV_WC_SUCCESS);
		expect_nothing(e.cq, 10);
		require_equal(end_state(&e), IBV_QPS_RTS);
		end_free(&e);
	}
	barrier(s);
	buffer_free(s, &b);
}

static void test_peer_dies(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = uc_new(s, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 10);
	uint64_t i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	side_dies(s, 1);
	for (i = 0; i < 200; i++) {
		post(&e, i % 2 ? write_wr(&b, &sge, i) : send_wr(&sge, i));
		expect(e.cq, i, IBV_WC_SUCCESS);
		expect_nothing(e.cq, i < 20 ? 2 : 0);
	}
	require_equal(end_state(&e), IBV_QPS_RTS);
	end_free(&e);
	buffer_free(s, &b);
	side_is_alone(s);
}

/* What the responder does not allow it drops; the connection stays. */
static void write_refused(struct side *s, enum ibv_wr_opcode op, int mr_access,
			  unsigned qp_access, uint64_t offset, uint32_t key_change)
{
	struct buffer target = buffer_new(s, BYTES, mr_access);
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = uc_new(s, qp_access);

	end_connect(s, &e);
	buffer_swap(s, &target);
	if (s->me == 1)
		post_receive(&e, 5, &sge, 1);
	barrier(s);
	if (s->me == 0) {
		struct ibv_send_wr wr = write_wr(&target, &sge, 1);

		wr.opcode = op;
		wr.wr.rdma.remote_addr += offset;
		wr.wr.rdma.rkey += key_change;
		post(&e, wr);
		expect(e.cq, 1, IBV_WC_SUCCESS);
	} else {
		expect_nothing(e.cq, 10);
	}
	barrier(s);
	passes(s, &e, &b, 5);
	check_untouched(target.at, 0xee, BYTES, "the target");
	end_free(&e);
	buffer_free(s, &b);
	buffer_free(s, &target);
}

static void test_bad_key(struct side *s)
{
	write_refused(s, IBV_WR_RDMA_WRITE, ACCESS_ALL, ACCESS_ALL, 0, 0x01010101);
}

static void test_bad_key_imm(struct side *s)
{
	write_refused(s, IBV_WR_RDMA_WRITE_WITH_IMM, ACCESS_ALL, ACCESS_ALL, 0, 0x01010101);
}

static void test_beyond(struct side *s)
{
	write_refused(s, IBV_WR_RDMA_WRITE, ACCESS_ALL, ACCESS_ALL, BYTES - 63, 0);
}

static void test_not_allowed_by_mr(struct side *s)
{
	write_refused(s, IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE, ACCESS_ALL, 0, 0);
}

static void test_not_allowed_by_qp(struct side *s)
{
	write_refused(s, IBV_WR_RDMA_WRITE, ACCESS_ALL, 0, 0, 0);
}

/* A message that does not fit is dropped, and the receive is the next one's (class D). */
static void test_too_short(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64), small = sge_of(&b, 0, 10);
	struct end e = uc_new(s, ACCESS_ALL);

	end_connect(s, &e);
	if (s->me == 1)
		post_receive(&e, 3, &small, 1);
	barrier(s);
	if (s->me == 0) {
		post(&e, send_wr(&sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
	} else {
		expect_nothing(e.cq, 10);
	}
	barrier(s);
	passes(s, &e, &b, 3);
	end_free(&e);
	buffer_free(s, &b);
}

/* A receive that cannot be used is the receiver's own fault (class A). */
static void test_receive_bad_key(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = uc_new(s, ACCESS_ALL);

	end_connect(s, &e);
	if (s->me == 1) {
		struct ibv_sge bad = sge;

		bad.lkey += 0x00ff00ff;
		post_receive(&e, 1, &bad, 1);
		post_receive(&e, 2, &sge, 1);
		barrier(s);
		expect(e.cq, 1, IBV_WC_LOC_PROT_ERR);
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		wait_state(&e, IBV_QPS_ERR);
	} else {
		barrier(s);
		post(&e, send_wr(&sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
		require_equal(end_state(&e), IBV_QPS_RTS);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/*
 * A request that fails on its own side stops the send queue (SQE); receives go
 * on, and so does the send queue when it is told to.
 */
static void sends_stop(struct side *s, struct ibv_send_wr wr, enum ibv_wc_status status)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = uc_new(s, ACCESS_ALL);

	end_connect(s, &e);
	buffer_swap(s, &b);
	wr.wr.rdma.remote_addr = b.addr;
	wr.wr.rdma.rkey = b.rkey;
	post_receive(&e, 100, &sge, 1);
	post_receive(&e, 101, &sge, 1);
	barrier(s);
	if (s->me == 0) {
		post(&e, wr);
		expect(e.cq, wr.wr_id, status);
		wait_state(&e, IBV_QPS_SQE);
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		barrier(s);
		expect(e.cq, 100, IBV_WC_SUCCESS);
		require_equal(end_to(&e, IBV_QPS_RTS), 0);
		post(&e, send_wr(&sge, 3));
		expect(e.cq, 3, IBV_WC_SUCCESS);
		require_equal(end_state(&e), IBV_QPS_RTS);
	} else {
		barrier(s);
		post(&e, send_wr(&sge, 3));
		expect(e.cq, 3, IBV_WC_SUCCESS);
		expect(e.cq, 100, IBV_WC_SUCCESS);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_local_bad_key(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);

	sge.lkey ^= 0x00ff00ff;
	sends_stop(s, send_wr(&sge, 1), IBV_WC_LOC_PROT_ERR);
	buffer_free(s, &b);
}

/* There are no reads. */
static void test_read(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct ibv_send_wr wr = send_wr(&sge, 1);

	wr.opcode = IBV_WR_RDMA_READ;
	sends_stop(s, wr, IBV_WC_LOC_QP_OP_ERR);
	buffer_free(s, &b);
}

const struct test uc_tests[] = {
	{ "uc_write", test_write },
	{ "uc_no_receive", test_no_receive },
	{ "uc_no_peer", test_no_peer },
	{ "uc_peer_dies", test_peer_dies },
	{ "uc_bad_key", test_bad_key },
	{ "uc_bad_key_imm", test_bad_key_imm },
	{ "uc_beyond", test_beyond },
	{ "uc_not_allowed_by_mr", test_not_allowed_by_mr },
	{ "uc_not_allowed_by_qp", test_not_allowed_by_qp },
	{ "uc_too_short", test_too_short },
	{ "uc_receive_bad_key", test_receive_bad_key },
	{ "uc_local_bad_key", test_local_bad_key },
	{ "uc_read", test_read },
	{ NULL, NULL },
};
