/*
 * srq.c - shared receive queues: one queue of receives for many queue pairs
 * (IBTA 10.2.9).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "ud.h"

enum { QPS = 4, SLOT = 512, DEPTH = 32 };

static struct ibv_srq *srq_new(struct side *s, struct ibv_pd *pd, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = wr, .max_sge = sge } };
	struct ibv_srq *srq;

	if (!s->dev.max_srq)
		skip("the device has no SRQ");
	want_limit("receives of an SRQ", wr, s->dev.max_srq_wr);
	want_limit("pieces of a receive", sge, s->dev.max_srq_sge);
	srq = ibv_create_srq(pd, &init);
	if (!srq)
		fail("ibv_create_srq: %s", strerror(errno));
	require(init.attr.max_wr >= wr && init.attr.max_sge >= sge);
	return srq;
}

static int srq_post(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = count }, *bad = NULL;
	int rc = ibv_post_srq_recv(srq, &wr, &bad);

	if (rc)
		require(bad == &wr);
	return rc;
}

/* Receive `slot` of a buffer, under that number. */
static void post_slot(struct ibv_srq *srq, struct buffer *b, uint64_t slot)
{
	struct ibv_sge sge = sge_of(b, slot * SLOT, SLOT);

	require_equal(srq_post(srq, slot, &sge, 1), 0);
}

static struct end srq_end(struct side *s, struct ibv_srq *srq, struct ibv_cq *cq,
			  enum ibv_qp_type type)
{
	struct end_config c = end_defaults;

	c.srq = srq;
	c.cq = cq;
	c.type = type;
	return end_new(s, &c);
}

/* ---- Life ---------------------------------------------------------------- */

static void test_life(struct side *s)
{
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 2);
	struct ibv_srq_attr attr = { 0 }, limit = { .srq_limit = 5 };
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_srq_init_attr huge = { .attr = { .max_wr = UINT32_MAX, .max_sge = 1 } };
	struct ibv_recv_wr wr, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp_attr;
	struct ibv_sge sge[64];
	uint32_t i, posted = 0;
	struct end e;

	require(s->dev.max_srq_wr >= DEPTH && s->dev.max_srq_sge >= 2);
	require(!ibv_create_srq(s->pd, &huge));
	require_equal(ibv_query_srq(srq, &attr), 0);
	require(attr.max_wr >= DEPTH && attr.max_sge >= 2);
	require_equal(attr.srq_limit, 0);
	require_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	require_equal(ibv_query_srq(srq, &attr), 0);
	require_equal(attr.srq_limit, 5);
	limit.srq_limit = attr.max_wr + 1;
	require(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) != 0);

	/* As many as it says, and then it says that it is full. */
	for (i = 0; i < 64; i++)
		sge[i] = sge_of(&b, 0, 16);
	if (attr.max_sge < 64)
		require(srq_post(srq, 0, sge, (int)attr.max_sge + 1) != 0);
	while (srq_post(srq, posted, sge, 1) == 0)
		posted++;
	require(posted >= DEPTH && posted <= attr.max_wr);

	/* A queue pair with an SRQ has no receive queue of its own. */
	e = srq_end(s, srq, NULL, IBV_QPT_RC);
	require(e.qp->srq == srq);
	require_equal(ibv_query_qp(e.qp, &qp_attr, IBV_QP_STATE, &init), 0);
	require(init.srq == srq);
	require_equal(end_to_init(s, &e), 0);
	wr = (struct ibv_recv_wr){ .sg_list = sge, .num_sge = 1 };
	require(ibv_post_recv(e.qp, &wr, &bad) != 0);
	require_equal(ibv_destroy_srq(srq), EBUSY);
	end_free(&e);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &b);
}

/* ---- Messages ------------------------------------------------------------ */

static void connect_all(struct side *s, struct end *e, struct ibv_srq *srq, struct ibv_cq *cq,
			enum ibv_qp_type type)
{
	int i;

	for (i = 0; i < QPS; i++) {
		e[i] = srq_end(s, s->me == 1 ? srq : NULL, cq, type);
		end_connect(s, &e[i]);
	}
}

static int end_of(const struct end *e, uint32_t qpn)
{
	int i;

	for (i = 0; i < QPS; i++)
		if (e[i].qp->qp_num == qpn)
			return i;
	fail("a completion of queue pair %u, which is none of ours", qpn);
}

/* Message n of queue pair q: it begins with both numbers. */
static uint32_t make_message(unsigned char *at, uint32_t q, uint32_t n)
{
	uint32_t bytes = 8 + (n * 37 + q * 101) % (SLOT - 8);

	memcpy(at, &q, 4);
	memcpy(at + 4, &n, 4);
	fill(at + 8, (uint64_t)q << 32 | n, bytes - 8);
	return bytes;
}

static void send_all(struct end *e, struct buffer *b, struct ibv_cq *cq, uint32_t count,
		     enum ibv_wr_opcode op)
{
	uint32_t q, n;

	for (n = 0; n < count; n++) {
		for (q = 0; q < QPS; q++) {
			unsigned char *at = b->at + q * SLOT;
			struct ibv_sge sge = sge_of(b, q * SLOT, make_message(at, q, n));
			struct ibv_send_wr wr = send_wr(&sge, q);

			wr.opcode = op;
			wr.imm_data = n;
			post(&e[q], wr);
		}
		for (q = 0; q < QPS; q++)
			wait_ok(cq);
	}
}

/* Receives are given back late and out of order. */
static void receive_all(struct end *e, struct buffer *b, struct ibv_srq *srq, struct ibv_cq *cq,
			uint32_t count, bool imm)
{
	uint32_t next[QPS] = { 0 }, left = QPS * count, kept[DEPTH / 4], keep = 0, q, n;

	while (left--) {
		struct ibv_wc wc = wait_ok(cq);
		const unsigned char *at = b->at + wc.wr_id * SLOT;

		require(wc.wr_id < DEPTH);
		require_equal(wc.opcode, IBV_WC_RECV);
		memcpy(&q, at, 4);
		memcpy(&n, at + 4, 4);
		require_equal(q, end_of(e, wc.qp_num));
		require_equal(n, next[q]++);
		require_equal(wc.byte_len, 8 + (n * 37 + q * 101) % (SLOT - 8));
		check(at + 8, (uint64_t)q << 32 | n, wc.byte_len - 8, "received");
		require_equal(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm);
		if (imm)
			require_equal(wc.imm_data, n);
		kept[keep++] = (uint32_t)wc.wr_id;
		while (keep == DEPTH / 4 || (keep && !left)) {
			memset(b->at + kept[keep - 1] * SLOT, 0xee, SLOT);
			post_slot(srq, b, kept[--keep]);
			if (keep == DEPTH / 8 && left)
				break;
		}
	}
}

static void many(struct side *s, enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	struct buffer b = buffer_new(s, DEPTH * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct ibv_cq *cq = ibv_create_cq(s->ctx, 256, NULL, NULL, 0);
	struct end e[QPS];
	uint64_t i;

	require(cq != NULL);
	connect_all(s, e, srq, cq, type);
	for (i = 0; s->me == 1 && i < DEPTH; i++)
		post_slot(srq, &b, i);
	barrier(s);
	if (s->me == 0)
		send_all(e, &b, cq, 500, op);
	else
		receive_all(e, &b, srq, cq, 500, op == IBV_WR_SEND_WITH_IMM);
	barrier(s);
	for (i = 0; i < QPS; i++)
		end_free(&e[i]);
	require_equal(ibv_destroy_srq(srq), 0);
	require_equal(ibv_destroy_cq(cq), 0);
	buffer_free(s, &b);
}

static void test_send(struct side *s)
{
	many(s, IBV_QPT_RC, IBV_WR_SEND);
}

static void test_send_imm(struct side *s)
{
	many(s, IBV_QPT_RC, IBV_WR_SEND_WITH_IMM);
}

/* The immediate of a write takes a receive of the SRQ, too. */
static void test_write_imm(struct side *s)
{
	struct buffer b = buffer_new(s, DEPTH * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct end e = srq_end(s, srq, NULL, IBV_QPT_RC);
	struct ibv_wc wc;
	uint32_t i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < 100; i++) {
		struct ibv_sge sge = sge_of(&b, SLOT, 1 + i);
		struct ibv_send_wr wr = write_wr(&b, &sge, i);

		if (s->me == 1) {
			require_equal(srq_post(srq, 1000 + i, NULL, 0), 0);
			barrier(s);
			wc = wait_ok(e.cq);
			require_equal(wc.wr_id, 1000 + i);
			require_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
			require_equal(wc.imm_data, i);
			require_equal(wc.byte_len, 1 + i);
			check(b.at, i, 1 + i, "written");
		} else {
			fill(b.at + SLOT, i, 1 + i);
			wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
			wr.imm_data = i;
			barrier(s);
			post(&e, wr);
			wait_ok(e.cq);
		}
		barrier(s);
	}
	end_free(&e);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &b);
}

/* Buffers belong to the SRQ's protection domain, whatever the queue pair's is. */
static void test_other_pd(struct side *s)
{
	struct ibv_pd *own = s->pd, *pd = ibv_alloc_pd(s->ctx);
	struct ibv_srq *srq;
	struct buffer mine, theirs;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct end e;

	require(pd != NULL);
	srq = srq_new(s, pd, DEPTH, 1);
	e = srq_end(s, srq, NULL, IBV_QPT_RC);
	mine = buffer_new(s, SLOT, ACCESS_ALL);
	s->pd = pd;
	theirs = buffer_new(s, SLOT, ACCESS_ALL);
	s->pd = own;
	end_connect(s, &e);
	if (s->me == 1) {
		post_slot(srq, &theirs, 0);
		sge = sge_of(&mine, 0, SLOT);
		require_equal(srq_post(srq, 1, &sge, 1), 0);
		barrier(s);
		wc = wait_ok(e.cq);
		require_equal(wc.wr_id, 0);
		check(theirs.at, 3, 100, "received");
		wc = wait_wc(e.cq);
		require_equal(wc.wr_id, 1);
		require_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	} else {
		sge = sge_of(&mine, 0, 100);
		fill(mine.at, 3, 100);
		barrier(s);
		post(&e, send_wr(&sge, 5));
		expect(e.cq, 5, IBV_WC_SUCCESS);
		post(&e, send_wr(&sge, 6));
		expect(e.cq, 6, IBV_WC_REM_OP_ERR);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &mine);
	buffer_free(s, &theirs);
	require_equal(ibv_dealloc_pd(pd), 0);
}

/* ---- Empty --------------------------------------------------------------- */

static void test_empty(struct side *s)
{
	struct buffer b = buffer_new(s, DEPTH * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct end e = srq_end(s, srq, NULL, IBV_QPT_RC), last;
	struct end_config c = end_defaults;
	struct ibv_sge sge = sge_of(&b, 0, 100);

	c.rnr_retry = 1;
	c.srq = srq;
	last = end_new(s, &c);
	end_connect(s, &e);
	end_connect(s, &last);
	if (s->me == 0) {
		/* For ever patient: it arrives when there is a receive. */
		fill(b.at, 9, 100);
		post(&e, send_wr(&sge, 1));
		expect_nothing(e.cq, 50);
		barrier(s);
		expect(e.cq, 1, IBV_WC_SUCCESS);
		barrier(s);
		post(&last, send_wr(&sge, 2));
		expect(last.cq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
		require_equal(end_state(&last), IBV_QPS_ERR);
	} else {
		barrier(s);
		post_slot(srq, &b, 3);
		require_equal(wait_ok(e.cq).wr_id, 3);
		check(b.at + 3 * SLOT, 9, 100, "received");
		barrier(s);
	}
	barrier(s);
	end_free(&e);
	end_free(&last);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &b);
}

/* The receive is too small: both ends learn it. */
static void test_too_long(struct side *s)
{
	struct buffer b = buffer_new(s, 2 * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct end e = srq_end(s, srq, NULL, IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&b, 0, SLOT + 1);

	end_connect(s, &e);
	if (s->me == 1) {
		post_slot(srq, &b, 0);
		barrier(s);
		expect(e.cq, 0, IBV_WC_LOC_LEN_ERR);
		wait_state(&e, IBV_QPS_ERR);
	} else {
		barrier(s);
		post(&e, send_wr(&sge, 5));
		expect(e.cq, 5, IBV_WC_REM_INV_REQ_ERR);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &b);
}

/* ---- Events -------------------------------------------------------------- */

static bool has_event(struct side *s, int timeout_ms)
{
	return readable(s->ctx->async_fd, timeout_ms);
}

static void test_limit(struct side *s)
{
	struct buffer b = buffer_new(s, DEPTH * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct end e = srq_end(s, srq, NULL, IBV_QPT_RC);
	struct ibv_srq_attr attr = { .srq_limit = 6 };
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct ibv_async_event event;
	uint64_t i;

	end_connect(s, &e);
	if (s->me == 0) {
		for (i = 0; i < 9; i++) {
			barrier(s);
			post(&e, send_wr(&sge, i));
			expect(e.cq, i, IBV_WC_SUCCESS);
		}
		barrier(s);
		goto out;
	}
	for (i = 0; i < 10; i++)
		post_slot(srq, &b, i);
	require_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	for (i = 0; i < 9; i++) {
		barrier(s);
		wait_ok(e.cq);
		/* 9, 8, 7, 6 are left: not yet; at 5, once. */
		require_equal(has_event(s, i == 4 ? patience_ms() : 20), i == 4);
		if (i != 4)
			continue;
		require_equal(ibv_get_async_event(s->ctx, &event), 0);
		require_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
		require(event.element.srq == srq);
		ibv_ack_async_event(&event);
		require_equal(ibv_query_srq(srq, &attr), 0);
		require_equal(attr.srq_limit, 0);
	}
	barrier(s);
out:
	end_free(&e);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &b);
}

/* The queue pair, in the error state, has told its last receive, and completes nothing more. */
static void last_wqe_await(struct side *s, const struct end *bad)
{
	struct ibv_async_event event;

	if (!has_event(s, 3000))
		skip("the device does not say IBV_EVENT_QP_LAST_WQE_REACHED");
	require_equal(ibv_get_async_event(s->ctx, &event), 0);
	require_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	require(event.element.qp == bad->qp);
	ibv_ack_async_event(&event);
	expect_nothing(bad->cq, 20);
}

/* In the error state a queue pair takes no more; what is posted stays for the others. */
static void test_last_wqe(struct side *s)
{
	struct buffer b = buffer_new(s, DEPTH * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct end bad = srq_end(s, srq, NULL, IBV_QPT_RC);
	struct end good = srq_end(s, srq, NULL, IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&b, 0, 100);

	end_connect(s, &bad);
	end_connect(s, &good);
	if (s->me == 1) {
		post_slot(srq, &b, 0);
		post_slot(srq, &b, 1);
		barrier(s);
		require_equal(wait_ok(bad.cq).wr_id, 0);
		require_equal(end_to(&bad, IBV_QPS_ERR), 0);
		last_wqe_await(s, &bad);
		barrier(s);
		require_equal(wait_ok(good.cq).wr_id, 1);
		check(b.at + SLOT, 4, 100, "received");
		require(!has_event(s, 0));
	} else {
		fill(b.at, 4, 100);
		barrier(s);
		post(&bad, send_wr(&sge, 1));
		expect(bad.cq, 1, IBV_WC_SUCCESS);
		barrier(s);
		post(&good, send_wr(&sge, 2));
		expect(good.cq, 2, IBV_WC_SUCCESS);
	}
	barrier(s);
	end_free(&bad);
	end_free(&good);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &b);
}

/* A queue pair for datagrams, too, leaves what is posted to the others. */
static void test_last_wqe_ud(struct side *s)
{
	struct buffer b = buffer_new(s, DEPTH * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct end bad = ud_make(s, NULL, srq), good = ud_make(s, NULL, srq);
	struct peer_address to;
	struct ibv_sge sge;
	struct ibv_ah *ah;

	ud_init(s, &bad, QKEY);
	ud_ready(&bad);
	ud_init(s, &good, QKEY);
	ud_ready(&good);
	to = ud_swap(s, &good);
	ah = ah_to(s, &to);
	if (s->me == 1) {
		post_slot(srq, &b, 0);
		require_equal(end_to(&bad, IBV_QPS_ERR), 0);
		last_wqe_await(s, &bad);
		barrier(s);
		require_equal(wait_ok(good.cq).wr_id, 0);
		check(b.at + GRH, 4, 100, "received");
		require(!has_event(s, 0));
	} else {
		fill(b.at + SLOT, 4, 100);
		sge = sge_of(&b, SLOT, 100);
		barrier(s);
		ud_send(&good, ah, to.qpn, &sge, 1);
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&bad);
	end_free(&good);
	require_equal(ibv_destroy_srq(srq), 0);
	buffer_free(s, &b);
}

/* Queue pairs come and go under load; the receives stay. */
static void test_come_and_go(struct side *s)
{
	struct buffer b = buffer_new(s, DEPTH * SLOT, ACCESS_ALL);
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1);
	struct ibv_cq *cq = ibv_create_cq(s->ctx, 256, NULL, NULL, 0);
	uint64_t i, round, free = 0;

	for (i = 0; s->me == 1 && i < DEPTH; i++)
		post_slot(srq, &b, i);
	for (round = 0; round < 20; round++) {
		struct end e = srq_end(s, s->me == 1 ? srq : NULL, cq, IBV_QPT_RC);
		struct ibv_sge sge = sge_of(&b, 0, 64);
		uint32_t number = e.qp->qp_num;
		struct ibv_wc wc;

		end_connect(s, &e);
		for (i = 0; i < 8 && s->me == 0; i++) {
			fill(b.at, round, 64);
			post(&e, send_wr(&sge, i));
			expect(cq, i, IBV_WC_SUCCESS);
		}
		/* Half of the completions are taken, half may go with the queue pair. */
		for (i = 0; i < 4 && s->me == 1; i++) {
			wc = wait_ok(cq);
			require_equal(wc.qp_num, e.qp->qp_num);
			check(b.at + wc.wr_id * SLOT, round, 64, "received");
		}
		barrier(s);
		end_free(&e);
		while (ibv_poll_cq(cq, 1, &wc) > 0)
			require_equal(wc.qp_num, number);
		/* All eight can be posted again. */
		for (i = 0; i < 8 && s->me == 1; i++)
			post_slot(srq, &b, (free + i) % DEPTH);
		free += 8;
	}
	require_equal(ibv_destroy_srq(srq), 0);
	require_equal(ibv_destroy_cq(cq), 0);
	buffer_free(s, &b);
}

/* A kind that the device lacks is refused; a number is what the device has, or nothing. */
static void test_kinds(struct side *s)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 }, .pd = s->pd, .srq_type = IBV_SRQT_TM,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
	};
	struct ibv_srq *srq = srq_new(s, s->pd, DEPTH, 1), *tags;
	uint32_t number;
	int rc = ibv_get_srq_num(srq, &number);

	require(rc == 0 || rc == EOPNOTSUPP || rc == ENOSYS);
	require_equal(ibv_destroy_srq(srq), 0);
	tags = ibv_create_srq_ex(s->ctx, &init);
	require(tags || errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS);
	require(!tags || ibv_destroy_srq(tags) == 0);
}

const struct test srq_tests[] = {
	{ "srq_life", test_life },
	{ "srq_kinds", test_kinds },
	{ "srq_send", test_send },
	{ "srq_send_imm", test_send_imm },
	{ "srq_write_imm", test_write_imm },
	{ "srq_other_pd", test_other_pd },
	{ "srq_empty", test_empty },
	{ "srq_too_long", test_too_long },
	{ "srq_limit", test_limit },
	{ "srq_last_wqe", test_last_wqe },
	{ "srq_last_wqe_ud", test_last_wqe_ud },
	{ "srq_come_and_go", test_come_and_go },
	{ NULL, NULL },
};
