/* errors.c - what goes wrong goes wrong as the specification says. */
#include <errno.h>

#include "conformance.h"

enum { BYTES = 4096 };

static struct ibv_send_wr write_wr(const struct buffer *b, struct ibv_sge *sge, uint64_t wr_id)
{
	return (struct ibv_send_wr){ .wr_id = wr_id, .sg_list = sge, .num_sge = 1,
				     .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				     .wr.rdma = { b->addr, b->rkey } };
}

static struct ibv_send_wr send_wr(struct ibv_sge *sge, uint64_t wr_id)
{
	return (struct ibv_send_wr){ .wr_id = wr_id, .sg_list = sge, .num_sge = 1,
				     .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
}

/* The queue pair reaches the error state, polled as a program would. */
static void wait_error_state(struct end *e)
{
	uint64_t end = now_ns() + 5000000000u;
	struct ibv_wc wc;

	while (end_state(e) != IBV_QPS_ERR && now_ns() < end)
		require_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
	require_equal(end_state(e), IBV_QPS_ERR);
}

static void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(cq);

	if (wc.status != status || wc.wr_id != wr_id)
		fail("wr_id %llu: %s; expected wr_id %llu: %s", (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status), (unsigned long long)wr_id,
		     ibv_wc_status_str(status));
}

/* ---- Receiver not ready -------------------------------------------------- */

static void rnr_exhausted(struct side *s, int retries)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	uint64_t start, took;
	struct end e;

	c.rnr_retry = retries;
	c.min_rnr_timer = 17;		/* 3.84 ms */
	e = end_new(s, &c);
	end_connect(s, &e);
	if (s->me == 0) {
		struct ibv_sge sge = sge_of(&b, 0, 100);

		start = now_ns();
		post(&e, send_wr(&sge, 1));
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		took = now_ns() - start;
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		wait_error_state(&e);
		if (took < (uint64_t)retries * 3840000)
			fail("gave up after %llu ns, before %d retries",
			     (unsigned long long)took, retries);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_rnr_no_retry(struct side *s)
{
	rnr_exhausted(s, 0);
}

static void test_rnr_retries(struct side *s)
{
	rnr_exhausted(s, 3);
}

/* Seven means for ever: a receive that is posted late is found. */
static void test_rnr_for_ever(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 1000);
	struct end e;

	c.min_rnr_timer = 12;		/* 0.64 ms */
	e = end_new(s, &c);
	end_connect(s, &e);
	if (s->me == 0) {
		fill(b.at, 4, 1000);
		post(&e, send_wr(&sge, 1));
		post(&e, send_wr(&sge, 2));
		expect_nothing(e.cq, 100);
		barrier(s);
		expect(e.cq, 1, IBV_WC_SUCCESS);
		expect(e.cq, 2, IBV_WC_SUCCESS);
	} else {
		barrier(s);
		post_receive(&e, 7, &sge, 1);
		post_receive(&e, 8, &sge, 1);
		expect(e.cq, 7, IBV_WC_SUCCESS);
		expect(e.cq, 8, IBV_WC_SUCCESS);
		check(b.at, 4, 1000, "sent before it was awaited");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Nobody answers ------------------------------------------------------ */

/* The other side's queue pair is in `state` and stays there. */
static void no_answer(struct side *s, enum ibv_qp_state state)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct peer_address mine, theirs;
	uint64_t start, took;
	struct end e;

	c.timeout = 10;			/* 4.2 ms */
	c.retry_cnt = 2;
	e = end_new(s, &c);
	mine = end_address(s, &e);
	swap(s, &mine, &theirs, sizeof(mine));
	if (s->me == 0) {
		struct ibv_sge sge = sge_of(&b, 0, 100);

		require_equal(end_to_init(s, &e), 0);
		require_equal(end_to_rtr(s, &e, &theirs), 0);
		require_equal(end_to_rts(&e), 0);
		barrier(s);
		start = now_ns();
		post(&e, send_wr(&sge, 1));
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 1, IBV_WC_RETRY_EXC_ERR);
		took = now_ns() - start;
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		if (took < 3 * 4096u * 1024)
			fail("gave up after %llu ns, before the timeouts",
			     (unsigned long long)took);
	} else {
		if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
			require_equal(end_to_init(s, &e), 0);
		if (state == IBV_QPS_ERR)
			require_equal(end_to(&e, IBV_QPS_ERR), 0);
		barrier(s);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_peer_in_reset(struct side *s)
{
	no_answer(s, IBV_QPS_RESET);
}

static void test_peer_in_init(struct side *s)
{
	no_answer(s, IBV_QPS_INIT);
}

static void test_peer_in_error(struct side *s)
{
	no_answer(s, IBV_QPS_ERR);
}

static void test_peer_destroyed(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 100);
	struct end e;

	c.timeout = 8;			/* 1 ms */
	c.retry_cnt = 1;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
	}
	barrier(s);
	if (s->me == 1)
		end_free(&e);
	barrier(s);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 2));
		expect(e.cq, 2, IBV_WC_RETRY_EXC_ERR);
		end_free(&e);
	}
	barrier(s);
	buffer_free(s, &b);
}

/* ---- Access -------------------------------------------------------------- */

struct access_case {
	enum ibv_wr_opcode op;
	int mr_access;			/* of the target */
	unsigned qp_access;
	int64_t offset;			/* from its begin */
	uint32_t bytes;
	uint32_t key_change;		/* added to the rkey */
};

/* Refused at the responder: nothing is touched, both queue pairs are in error. */
static void refused(struct side *s, const struct access_case *a)
{
	struct end_config c = end_defaults;
	struct buffer target = buffer_new(s, BYTES, a->mr_access);
	struct buffer b = buffer_new(s, 2 * BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, a->bytes);
	struct end e;

	c.access = a->qp_access;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &target);
	if (s->me == 1)
		post_receive(&e, 5, &sge, 1);
	barrier(s);
	if (s->me == 0) {
		post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
			.opcode = a->op,	/* unsignaled: errors complete all the same */
			.wr.rdma = { target.addr + (uint64_t)a->offset,
				     target.rkey + a->key_change } });
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 1, IBV_WC_REM_ACCESS_ERR);
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		check_untouched(b.at, 0xee, b.bytes, "the requester's buffer");
	} else {
		expect(e.cq, 5, IBV_WC_WR_FLUSH_ERR);
	}
	require_equal(end_state(&e), IBV_QPS_ERR);
	barrier(s);
	check_untouched(target.at, 0xee, BYTES, "the target");
	end_free(&e);
	buffer_free(s, &b);
	buffer_free(s, &target);
}

static void test_write_bad_key(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_WRITE, ACCESS_ALL, ACCESS_ALL, 0, 8,
					  0x01010101 });
}

static void test_write_beyond(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_WRITE, ACCESS_ALL, ACCESS_ALL, BYTES - 7, 8,
					  0 });
}

static void test_write_before(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_WRITE, ACCESS_ALL, ACCESS_ALL, -1, 8, 0 });
}

static void test_write_too_long(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_WRITE, ACCESS_ALL, ACCESS_ALL, 0, BYTES + 1,
					  0 });
}

static void test_write_not_allowed_by_mr(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_WRITE,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
					  ACCESS_ALL, 0, 8, 0 });
}

static void test_write_not_allowed_by_qp(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_WRITE, ACCESS_ALL, IBV_ACCESS_REMOTE_READ, 0,
					  8, 0 });
}

static void test_read_not_allowed_by_mr(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_READ,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
					  ACCESS_ALL, 0, 8, 0 });
}

static void test_read_beyond(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_READ, ACCESS_ALL, ACCESS_ALL, 0, BYTES + 1,
					  0 });
}

/* A key is dead once its registration is gone; a new one does not revive it. */
static void test_stale_key(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct buffer again = { .mr = NULL };
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		fill(b.at, 1, 64);
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
	}
	barrier(s);
	if (s->me == 1) {
		check(b.at, 1, 64, "while it was registered");
		require_equal(ibv_dereg_mr(b.mr), 0);
		memset(b.at, 0xee, b.bytes);
		again = b;
		again.mr = ibv_reg_mr(s->pd, b.at, b.bytes, ACCESS_ALL);
		require(again.mr != NULL);
		b.mr = NULL;
	}
	barrier(s);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 2));
		expect(e.cq, 2, IBV_WC_REM_ACCESS_ERR);
	}
	barrier(s);
	if (s->me == 1) {
		check_untouched(b.at, 0xee, b.bytes, "under the new registration");
		require_equal(ibv_dereg_mr(again.mr), 0);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* The key of a registration in another protection domain. */
static void test_other_pd(struct side *s)
{
	struct ibv_pd *other = ibv_alloc_pd(s->ctx), *own = s->pd;
	struct ibv_sge sge;
	struct buffer b, target;
	struct end e;

	require(other != NULL);
	s->pd = other;
	target = buffer_new(s, BYTES, ACCESS_ALL);
	s->pd = own;
	b = buffer_new(s, BYTES, ACCESS_ALL);
	sge = sge_of(&b, 0, 64);
	e = end_new(s, NULL);
	end_connect(s, &e);
	buffer_swap(s, &target);
	if (s->me == 0) {
		post(&e, write_wr(&target, &sge, 1));
		expect(e.cq, 1, IBV_WC_REM_ACCESS_ERR);
	}
	barrier(s);
	check_untouched(target.at, 0xee, BYTES, "in another protection domain");
	end_free(&e);
	buffer_free(s, &b);
	buffer_free(s, &target);
	require_equal(ibv_dealloc_pd(other), 0);
}

/* An empty RDMA write is not checked (C9-88), and does nothing. */
static void test_empty_write(struct side *s)
{
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	if (s->me == 0) {
		post(&e, (struct ibv_send_wr){ .wr_id = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { 0x1234, 0x55 } });
		expect(e.cq, 1, IBV_WC_SUCCESS);
	}
	barrier(s);
	end_free(&e);
}

/* ---- Our own memory ------------------------------------------------------ */

static void local_refused(struct side *s, enum ibv_wr_opcode op, struct ibv_sge sge)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge good = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		post_receive(&e, 9, &good, 1);
	barrier(s);
	if (s->me == 0) {
		post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
			.opcode = op, .wr.rdma = { b.addr, b.rkey } });
		post(&e, send_wr(&good, 2));
		expect(e.cq, 1, IBV_WC_LOC_PROT_ERR);
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		wait_error_state(&e);
	} else {
		expect_nothing(e.cq, 20);	/* the other side never knew */
		check_untouched(b.at, 0xee, BYTES, "the target");
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
	local_refused(s, IBV_WR_SEND, sge);
	buffer_free(s, &b);
}

static void test_local_beyond(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);

	local_refused(s, IBV_WR_RDMA_WRITE, sge_of(&b, BYTES - 63, 64));
	buffer_free(s, &b);
}

/* A read writes here: the registration must allow it. */
static void test_read_into_read_only(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, 0);

	local_refused(s, IBV_WR_RDMA_READ, sge_of(&b, 0, 64));
	buffer_free(s, &b);
}

/* ---- Receives ------------------------------------------------------------ */

static void receive_fails(struct side *s, size_t room, uint32_t key_change,
			  enum ibv_wc_status receiver, enum ibv_wc_status sender)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	if (s->me == 1) {
		struct ibv_sge bad = sge_of(&b, 0, room);

		bad.lkey += key_change;
		post_receive(&e, 1, &bad, 1);
		post_receive(&e, 2, &sge, 1);
		barrier(s);
		expect(e.cq, 1, receiver);
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
	} else {
		barrier(s);
		post(&e, send_wr(&sge, 1));
		expect(e.cq, 1, sender);
	}
	wait_error_state(&e);
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_receive_too_short(struct side *s)
{
	receive_fails(s, 63, 0, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
}

static void test_receive_bad_key(struct side *s)
{
	receive_fails(s, 64, 0x00ff00ff, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}

/* ---- Flushing ------------------------------------------------------------ */

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
		/* What is posted now is flushed at once. */
		post(&e, send_wr(&sge, 50));
		expect(e.cq, 50, IBV_WC_WR_FLUSH_ERR);
		post_receive(&e, 51, &sge, 1);
		expect(e.cq, 51, IBV_WC_WR_FLUSH_ERR);
		expect_nothing(e.cq, 5);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
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
	uint64_t end = now_ns() + 5000000000u;
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
		while (end_state(&e) != IBV_QPS_ERR && now_ns() < end)
			ibv_post_send(e.qp, &wr, &bad);
		require_equal(end_state(&e), IBV_QPS_ERR);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

const struct test error_tests[] = {
	{ "rnr_no_retry", test_rnr_no_retry },
	{ "rnr_retries", test_rnr_retries },
	{ "rnr_for_ever", test_rnr_for_ever },
	{ "peer_in_reset", test_peer_in_reset },
	{ "peer_in_init", test_peer_in_init },
	{ "peer_in_error", test_peer_in_error },
	{ "peer_destroyed", test_peer_destroyed },
	{ "write_bad_key", test_write_bad_key },
	{ "write_beyond", test_write_beyond },
	{ "write_before", test_write_before },
	{ "write_too_long", test_write_too_long },
	{ "write_not_allowed_by_mr", test_write_not_allowed_by_mr },
	{ "write_not_allowed_by_qp", test_write_not_allowed_by_qp },
	{ "read_not_allowed_by_mr", test_read_not_allowed_by_mr },
	{ "read_beyond", test_read_beyond },
	{ "stale_key", test_stale_key },
	{ "other_pd", test_other_pd },
	{ "empty_write", test_empty_write },
	{ "local_bad_key", test_local_bad_key },
	{ "local_beyond", test_local_beyond },
	{ "read_into_read_only", test_read_into_read_only },
	{ "receive_too_short", test_receive_too_short },
	{ "receive_bad_key", test_receive_bad_key },
	{ "flush", test_flush },
	{ "flush_after_success", test_flush_after_success },
	{ "cq_overflow", test_cq_overflow },
	{ NULL, NULL },
};
