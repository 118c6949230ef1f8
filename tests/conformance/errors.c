/*
 * errors.c - errors are reported as the specification requires (IBTA 1.5, 9.9,
 * 10.10, 11.6.2).  The statuses that a request can end with, and the cases that
 * show them (RC, unless they are named uc_ or ud_):
 *
 *	SUCCESS			data.c
 *	LOC_LEN_ERR		too_long; receive_too_short (at the receiver); atomic_too_short
 *	LOC_QP_OP_ERR		read_none_asked, atomic_none_asked, uc_read
 *	LOC_PROT_ERR		local_*, read_into_read_only, receive_bad_key, uc_local_bad_key
 *	WR_FLUSH_ERR		flush.c
 *	MW_BIND_ERR		memory.c
 *	LOC_ACCESS_ERR		none: only RD and vendors' devices
 *	BAD_RESP_ERR		none: responses are not packets that could be wrong
 *	REM_INV_REQ_ERR		receive_too_short, *_not_allowed_by_qp, *_none_answered,
 *				atomic_misaligned
 *	REM_ACCESS_ERR		write_*, read_*, stale_key, other_pd, atomic_*
 *	REM_OP_ERR		receive_bad_key
 *	RETRY_EXC_ERR		retries.c, flush.c
 *	RNR_RETRY_EXC_ERR	retries.c
 *	REM_ABORT_ERR, LOC_EEC_OP_ERR, LOC_RDD_VIOL_ERR, REM_INV_RD_REQ_ERR,
 *	INV_EECN_ERR, INV_EEC_STATE_ERR		none: reliable datagrams
 *	FATAL_ERR, RESP_TIMEOUT_ERR, GENERAL_ERR	none: a failing device, ib_mad, vendors
 *	TM_ERR, TM_RNDV_INCOMPLETE	none: tag matching
 *
 * Unreliable transports have SUCCESS, the LOC_ ones and WR_FLUSH_ERR (uc.c, ud.c).
 */
#include <errno.h>

#include "conformance.h"

enum { BYTES = 4096 };

/* ---- Access -------------------------------------------------------------- */

struct access_case {
	enum ibv_wr_opcode op;
	int mr_access;			/* of the target */
	unsigned qp_access;
	int64_t offset;			/* from its begin */
	uint32_t bytes;
	uint32_t key_change;		/* added to the rkey */
	enum ibv_wc_status status;	/* 0: REM_ACCESS_ERR */
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
		expect(e.cq, 1, a->status ? a->status : IBV_WC_REM_ACCESS_ERR);
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
					  8, 0, IBV_WC_REM_INV_REQ_ERR });
}

static void test_read_not_allowed_by_qp(struct side *s)
{
	refused(s, &(struct access_case){ IBV_WR_RDMA_READ, ACCESS_ALL, IBV_ACCESS_REMOTE_WRITE, 0,
					  8, 0, IBV_WC_REM_INV_REQ_ERR });
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

/* Reads that the responder's queue pair has no room for, or ours. */
static void read_refused(struct side *s, int answers, int asks, enum ibv_wc_status status)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e;

	c.answers = answers;
	c.asks = asks;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		struct ibv_send_wr wr = write_wr(&b, &sge, 1);

		/* What needs no answer is not concerned. */
		post(&e, wr);
		expect(e.cq, 1, IBV_WC_SUCCESS);
		wr.wr_id = 2;
		wr.opcode = IBV_WR_RDMA_READ;
		post(&e, wr);
		expect(e.cq, 2, status);
		wait_state(&e, IBV_QPS_ERR);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_read_none_answered(struct side *s)
{
	read_refused(s, -1, 1, IBV_WC_REM_INV_REQ_ERR);
}

static void test_read_none_asked(struct side *s)
{
	read_refused(s, 1, -1, IBV_WC_LOC_QP_OP_ERR);
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
		wait_state(&e, IBV_QPS_ERR);
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

/* The second of two pieces is as bad as the first. */
static void test_local_second_piece(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge[2] = { sge_of(&b, 0, 64), sge_of(&b, BYTES - 1, 2) };
	struct end e;

	c.send_sge = 2;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		struct ibv_send_wr wr = write_wr(&b, sge, 1);

		wr.num_sge = 2;
		post(&e, wr);
		expect(e.cq, 1, IBV_WC_LOC_PROT_ERR);
		wait_state(&e, IBV_QPS_ERR);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_local_other_pd(struct side *s)
{
	struct ibv_pd *other = ibv_alloc_pd(s->ctx), *own = s->pd;
	struct buffer b;

	require(other != NULL);
	s->pd = other;
	b = buffer_new(s, BYTES, ACCESS_ALL);
	s->pd = own;
	local_refused(s, IBV_WR_SEND, sge_of(&b, 0, 64));
	buffer_free(s, &b);
	require_equal(ibv_dealloc_pd(other), 0);
}

static void test_local_stale_key(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);

	require_equal(ibv_dereg_mr(b.mr), 0);
	b.mr = NULL;
	local_refused(s, IBV_WR_RDMA_WRITE, sge);
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
	wait_state(&e, IBV_QPS_ERR);
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

const struct test error_tests[] = {
	{ "write_bad_key", test_write_bad_key },
	{ "write_beyond", test_write_beyond },
	{ "write_before", test_write_before },
	{ "write_too_long", test_write_too_long },
	{ "write_not_allowed_by_mr", test_write_not_allowed_by_mr },
	{ "write_not_allowed_by_qp", test_write_not_allowed_by_qp },
	{ "read_not_allowed_by_mr", test_read_not_allowed_by_mr },
	{ "read_not_allowed_by_qp", test_read_not_allowed_by_qp },
	{ "read_beyond", test_read_beyond },
	{ "read_none_answered", test_read_none_answered },
	{ "read_none_asked", test_read_none_asked },
	{ "stale_key", test_stale_key },
	{ "other_pd", test_other_pd },
	{ "empty_write", test_empty_write },
	{ "local_bad_key", test_local_bad_key },
	{ "local_beyond", test_local_beyond },
	{ "local_second_piece", test_local_second_piece },
	{ "local_other_pd", test_local_other_pd },
	{ "local_stale_key", test_local_stale_key },
	{ "read_into_read_only", test_read_into_read_only },
	{ "receive_too_short", test_receive_too_short },
	{ "receive_bad_key", test_receive_bad_key },
	{ NULL, NULL },
};
