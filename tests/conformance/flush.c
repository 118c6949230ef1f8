/*
 * flush.c - the error state: requests that were begun, requests that were not, and
 * the order in which all of them complete.
 */
#include "conformance.h"

enum { BYTES = 4096 };

static void test_flush(struct side *s)
{
	enum { COUNT = 10 };
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);
	int i, receives = 0, sends = 0;

	end_connect(s, &e);
	if (s->me == 0) {
		/* Receives that nobody fills, sends that nobody receives (mostly unsignaled). */
		for (i = 0; i < COUNT; i++)
			post_receive(&e, 100 + (uint64_t)i, &sge, 1);
		for (i = 0; i < COUNT; i++) {
			struct ibv_send_wr wr = send_wr(&sge, (uint64_t)i);

			wr.send_flags = i == 3 ? IBV_SEND_SIGNALED : 0;
			post(&e, wr);
		}
		require_equal(end_to(&e, IBV_QPS_ERR), 0);
		for (i = 0; i < 2 * COUNT; i++) {
			struct ibv_wc wc = wait_wc(e.cq);

			require_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
			if (wc.wr_id >= 100)
				require_equal(wc.wr_id, 100 + receives++);
			else
				require_equal(wc.wr_id, sends++);
		}
		expect_nothing(e.cq, 5);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* What is posted to a queue pair in error is flushed at once. */
static void post_in_error(struct side *s, bool receive)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);
	uint64_t i;

	end_connect(s, &e);
	require_equal(end_to(&e, IBV_QPS_ERR), 0);
	for (i = 0; i < 3; i++) {
		if (receive)
			post_receive(&e, i, &sge, 1);
		else
			post(&e, send_wr(&sge, i));
		expect(e.cq, i, IBV_WC_WR_FLUSH_ERR);
	}
	expect_nothing(e.cq, 5);
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_send_in_error(struct side *s)
{
	post_in_error(s, false);
}

static void test_receive_in_error(struct side *s)
{
	post_in_error(s, true);
}

/* Completions of successes come before the flush of the rest. */
static void test_flush_after_success(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);
	int i;

	end_connect(s, &e);
	if (s->me == 1) {
		for (i = 0; i < 6; i++)
			post_receive(&e, (uint64_t)i, &sge, 1);
		barrier(s);
		barrier(s);
		require_equal(end_to(&e, IBV_QPS_ERR), 0);
		for (i = 0; i < 6; i++)
			expect(e.cq, (uint64_t)i, i < 3 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	} else {
		barrier(s);
		for (i = 0; i < 3; i++) {
			post(&e, send_wr(&sge, (uint64_t)i));
			expect(e.cq, (uint64_t)i, IBV_WC_SUCCESS);
		}
		barrier(s);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* More completions than the queue holds: the queue pairs on it stop. */
static void test_cq_overflow(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	uint64_t end = patience_end();
	struct end e;
	int i;

	c.cqe = 8;
	c.send_wr = 256;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		struct ibv_send_wr wr = write_wr(&b, &sge, 0), *bad;

		for (i = 0; i < 200 && end_state(&e) != IBV_QPS_ERR; i++) {
			wr.wr_id = (uint64_t)i;
			if (ibv_post_send(e.qp, &wr, &bad))
				break;
		}
		require(i > e.cq->cqe);
		while (end_state(&e) != IBV_QPS_ERR && goes_on(end))
			ibv_post_send(e.qp, &wr, &bad);
		require_equal(end_state(&e), IBV_QPS_ERR);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* Requests without a completion of their own, and then one that fails. */
static void fail_behind(struct side *s, bool signal_all)
{
	enum { BEFORE = 5, BEHIND = 5 };
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e;
	uint64_t i;

	c.signal_all = signal_all;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		for (i = 0; i < BEFORE + 1 + BEHIND; i++) {
			struct ibv_send_wr wr = write_wr(&b, &sge, i);

			wr.send_flags = 0;
			if (i == BEFORE)
				wr.wr.rdma.rkey += 0x01010101;
			post(&e, wr);
		}
		for (i = signal_all ? 0 : BEFORE; i < BEFORE + 1 + BEHIND; i++)
			expect(e.cq, i, i < BEFORE ? IBV_WC_SUCCESS :
			       i == BEFORE ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
		expect_nothing(e.cq, 10);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_unsignaled_before_error(struct side *s)
{
	fail_behind(s, false);
}

static void test_signal_all_before_error(struct side *s)
{
	fail_behind(s, true);
}

/* One of each kind, behind one that waits for ever. */
static void test_flush_all_kinds(struct side *s)
{
	static const enum ibv_wr_opcode kinds[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	unsigned count = sizeof(kinds) / sizeof(*kinds), i;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct end e = end_new(s, NULL);

	if (s->dev.atomic_cap == IBV_ATOMIC_NONE)
		count -= 2;
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		for (i = 0; i < count; i++) {
			struct ibv_send_wr wr = write_wr(&b, &sge, i);

			wr.opcode = kinds[i];
			if (i >= 6) {
				wr.wr.atomic.remote_addr = b.addr;
				wr.wr.atomic.rkey = b.rkey;
				wr.wr.atomic.compare_add = 1;
			}
			post(&e, wr);
		}
		expect_nothing(e.cq, 10);
		require_equal(end_to(&e, IBV_QPS_ERR), 0);
		for (i = 0; i < count; i++)
			expect(e.cq, i, IBV_WC_WR_FLUSH_ERR);
	}
	barrier(s);
	if (s->me == 1)
		check_untouched(b.at, 0xee, BYTES, "what was flushed");
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* A fault at the responder flushes its own sends too, behind the receive that tells. */
static void test_flush_at_responder(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge small = sge_of(&b, 0, 8), sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);
	uint64_t sends = 0, receives = 0, i;

	end_connect(s, &e);
	if (s->me == 1) {
		for (i = 0; i < 3; i++)
			post_receive(&e, 100 + i, &small, 1);
		for (i = 0; i < 3; i++)
			post(&e, send_wr(&sge, i));
		barrier(s);
		for (i = 0; i < 6; i++) {
			struct ibv_wc wc = wait_wc(e.cq);

			if (wc.wr_id < 100) {
				require_equal(wc.wr_id, sends++);
				require_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
				continue;
			}
			require_equal(wc.wr_id, 100 + receives);
			require_equal(wc.status, receives ? IBV_WC_WR_FLUSH_ERR
							  : IBV_WC_LOC_LEN_ERR);
			receives++;
		}
		require_equal(receives, 3);
	} else {
		barrier(s);
		post(&e, send_wr(&sge, 1));
		expect(e.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* Flushed, reset and connected anew: whole again. */
static void test_after_flush(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);
	int round;

	for (round = 0; round < 3; round++) {
		end_connect(s, &e);
		buffer_swap(s, &b);
		if (s->me == 0) {
			struct ibv_send_wr wr = write_wr(&b, &sge, 1);

			wr.wr.rdma.rkey += 0x01010101;
			post(&e, wr);
			post(&e, send_wr(&sge, 2));
			expect(e.cq, 1, IBV_WC_REM_ACCESS_ERR);
			expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		}
		wait_state(&e, IBV_QPS_ERR);
		barrier(s);
		require_equal(end_to(&e, IBV_QPS_RESET), 0);
		barrier(s);
		end_connect(s, &e);
		fill(b.at, (uint64_t)(10 * round + s->me), 64);
		barrier(s);
		if (s->me == 0) {
			post(&e, write_wr(&b, &sge, 3));
			expect(e.cq, 3, IBV_WC_SUCCESS);
		}
		barrier(s);
		check(b.at, (uint64_t)(10 * round), 64, "after the reset");
		require_equal(end_to(&e, IBV_QPS_RESET), 0);
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

const struct test flush_tests[] = {
	{ "flush", test_flush },
	{ "flush_all_kinds", test_flush_all_kinds },
	{ "flush_at_responder", test_flush_at_responder },
	{ "send_in_error", test_send_in_error },
	{ "receive_in_error", test_receive_in_error },
	{ "flush_after_success", test_flush_after_success },
	{ "unsignaled_before_error", test_unsignaled_before_error },
	{ "signal_all_before_error", test_signal_all_before_error },
	{ "after_flush", test_after_flush },
	{ "cq_overflow", test_cq_overflow },
	{ NULL, NULL },
};
