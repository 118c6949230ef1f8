/*
 * test_responder.c - messages that arrive for queue pairs of this process: receives, keys, windows,
 * atomic operations next to those of other processes, events.
 */
#include <errno.h>
#include <fcntl.h>

#include "responder.h"
#include "util/clock.h"

static char name[32];

/* ---- Receives ------------------------------------------------------------ */

/* Receives have up to three pieces of PIECE bytes, in memory of their own. */
enum { PIECE = 100, ROOM = 3 * PIECE, RECEIVES = 4 };

struct buffers {
	unsigned char at[RECEIVES][ROOM + 1];
	struct ibv_mr *mr;
};

static struct buffers *buffers_make(struct own *o)
{
	struct buffers *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->mr = ibv_reg_mr(o->pd, b->at, sizeof(b->at), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(b->mr);
	return b;
}

static void buffers_free(struct buffers *b)
{
	assert_int_equal(ibv_dereg_mr(b->mr), 0);
	free(b);
}

/* The pieces are in reverse order in memory. */
static struct ibv_recv_wr receive_of(struct buffers *b, uint64_t id, struct ibv_sge *sge)
{
	unsigned char *at = b->at[id % RECEIVES];
	int i;

	for (i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)at + (size_t)(2 - i) * PIECE, PIECE,
					   b->mr->lkey };
	return (struct ibv_recv_wr){ .wr_id = id, .sg_list = sge, .num_sge = 3 };
}

static void post(struct own *o, struct buffers *b, uint64_t id)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = receive_of(b, id, sge), *bad;

	assert_int_equal(ibv_post_recv(o->qp, &wr, &bad), 0);
}

static void poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	assert_int_equal(ibv_poll_cq(cq, 1, wc), 1);
}

/* Claim, fill `bytes` with `value` and complete. */
static int arrive(struct ibv_qp *ibv, uint32_t bytes, int value, uint32_t imm)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	struct hca_arrival_wc wc = { .opcode = IBV_WC_RECV, .bytes = bytes, .imm = imm,
				     .flags = IBV_WC_WITH_IMM, .src_qp = 5 };
	struct hca_arrival a = { 0 };
	int rc, theirs = -1;
	unsigned i;

	hca_lock(&qp->lock);
	rc = hca_arrival_claim(qp, &a);
	if (!rc) {
		hca_landing_begin(qp->fabric);
		assert_int_equal(hca_arrival_buffers(qp, &a, bytes, &theirs), IBV_WC_SUCCESS);
		for (i = 0; i < a.count; i++)
			memset(a.to[i].iov_base, value, a.to[i].iov_len);
		hca_landing_end(qp->fabric);
		rc = hca_arrival_complete(qp, &a, &wc);
		assert_false(a.claimed);
	}
	hca_unlock(&qp->lock);
	return rc;
}

/* The first bytes of the pieces in their order have the value, the others are zero. */
static void expect_bytes(const unsigned char *at, uint32_t bytes, int value)
{
	uint32_t i;

	for (i = 0; i < ROOM; i++)
		assert_int_equal(at[(2 - i / PIECE) * PIECE + i % PIECE], i < bytes ? value : 0);
	assert_int_equal(at[ROOM], 0);
}

/* In the order in which they were posted, over many laps of the queue. */
static void test_in_order(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name });
	struct buffers *b = buffers_make(&o);
	uint64_t id, done = 0;
	struct ibv_wc wc;

	assert_int_equal(arrive(o.qp, 1, 1, 0), HCA_NO_RECEIVE);
	for (id = 0; id < 50; id++) {
		uint32_t bytes = (uint32_t)(id * 37 % (ROOM + 1));

		memset(b->at[id % RECEIVES], 0, ROOM);
		post(&o, b, id);
		assert_int_equal(arrive(o.qp, bytes, (int)id + 1, (uint32_t)id), 0);
		expect_bytes(b->at[id % RECEIVES], bytes, (int)id + 1);
		/* Up to two wait in the completion queue. */
		for (; done + id % 3 <= id; done++) {
			poll_one(o.cq, &wc);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, done);
			assert_int_equal(wc.opcode, IBV_WC_RECV);
			assert_int_equal(wc.byte_len, done * 37 % (ROOM + 1));
			assert_int_equal(wc.imm_data, done);
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
			assert_int_equal(wc.qp_num, o.qp->qp_num);
			assert_int_equal(wc.src_qp, 5);
		}
	}
	buffers_free(b);
	own_free(&o);
}

/* A receive that is released is claimed again; in the error state it is flushed at once. */
static void test_released(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name });
	struct buffers *b = buffers_make(&o);
	struct hca_qp *qp = hca_qp_of(o.qp);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct hca_arrival a = { 0 };
	struct ibv_wc wc;
	uint64_t i;

	for (i = 0; i < 3; i++)
		post(&o, b, i);
	for (i = 0; i < 3; i++) {
		assert_int_equal(hca_arrival_claim(qp, &a), 0);
		assert_true(a.claimed);
		hca_arrival_release(qp, &a);
		assert_false(a.claimed);
	}
	assert_int_equal(arrive(o.qp, ROOM, 9, 0), 0);
	poll_one(o.cq, &wc);
	assert_int_equal(wc.wr_id, 0);
	assert_int_equal(hca_arrival_claim(qp, &a), 0);
	hca_arrival_release(qp, &a);
	assert_int_equal(ibv_modify_qp(o.qp, &error, IBV_QP_STATE), 0);
	for (i = 1; i < 3; i++) {
		poll_one(o.cq, &wc);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc.wr_id, i);
	}
	buffers_free(b);
	own_free(&o);
}

/* Too short; a key of nothing; one that becomes invalid between two parts of the message. */
static void test_bad_receives(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name });
	struct buffers *b = buffers_make(&o);
	struct hca_qp *qp = hca_qp_of(o.qp);
	struct hca_arrival a = { 0 };
	struct ibv_wc wc;
	int theirs = -1;

	post(&o, b, 0);
	assert_int_equal(hca_arrival_claim(qp, &a), 0);
	assert_int_equal(hca_arrival_buffers(qp, &a, ROOM + 1, &theirs), IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(theirs, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(hca_arrival_buffers(qp, &a, ROOM, &theirs), IBV_WC_SUCCESS);
	assert_int_equal(a.count, 3);
	assert_int_equal(hca_arrival_buffers(qp, &a, PIECE + 1, &theirs), IBV_WC_SUCCESS);
	assert_int_equal(a.count, 2);
	assert_int_equal(a.to[1].iov_len, 1);
	assert_int_equal(hca_arrival_buffers(qp, &a, 0, &theirs), IBV_WC_SUCCESS);
	assert_int_equal(a.count, 0);
	assert_int_equal(ibv_dereg_mr(b->mr), 0);
	assert_int_equal(hca_arrival_buffers(qp, &a, 1, &theirs), IBV_WC_REM_OP_ERR);
	assert_int_equal(theirs, IBV_WC_LOC_PROT_ERR);
	/* Only read is allowed. */
	b->mr = ibv_reg_mr(o.pd, b->at, sizeof(b->at), 0);
	hca_arrival_release(qp, &a);
	assert_int_equal(hca_arrival_claim(qp, &a), 0);
	assert_int_equal(hca_arrival_buffers(qp, &a, 1, &theirs), IBV_WC_REM_OP_ERR);
	assert_int_equal(hca_arrival_complete(qp, &a, &(struct hca_arrival_wc){
			.status = IBV_WC_LOC_PROT_ERR, .opcode = IBV_WC_RECV }), 0);
	hca_qp_report(qp, HCA_FAULT_TOLD);
	poll_one(o.cq, &wc);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(hca_qp_state(qp), IBV_QPS_ERR);
	buffers_free(b);
	own_free(&o);
}

/* ---- Shared receives ----------------------------------------------------- */

static void expect_event(struct own *o, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(o->ctx, &event), 0);
	assert_int_equal(event.event_type, type);
	ibv_ack_async_event(&event);
}

static void expect_no_event(struct own *o)
{
	struct ibv_async_event event;
	int flags = fcntl(o->ctx->async_fd, F_GETFL);

	assert_int_equal(fcntl(o->ctx->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(ibv_get_async_event(o->ctx, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(o->ctx->async_fd, F_SETFL, flags), 0);
}

/* Two queue pairs share receives in the order of their messages; few left: one event. */
static void test_srq(void **state)
{
	const struct own_config c = { .fabric = name, .without_qp = true };
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 3 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct own o = own_make(c);
	struct buffers *b = buffers_make(&o);
	struct ibv_srq *srq = ibv_create_srq(o.pd, &init);
	struct ibv_qp *qp[2];
	struct hca_arrival a = { 0 };
	struct ibv_wc wc;
	uint64_t id;

	for (id = 0; id < 2; id++) {
		qp[id] = own_qp(&o, &c, srq);
		own_receive(&o, qp[id], &c);
	}
	assert_int_equal(arrive(qp[0], 0, 0, 0), HCA_NO_RECEIVE);
	for (id = 0; id < 4; id++) {
		struct ibv_sge sge[3];
		struct ibv_recv_wr wr = receive_of(b, id, sge), *bad;

		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	}
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	for (id = 0; id < 3; id++) {
		/* A claim of the other queue pair leads to nothing. */
		assert_int_equal(hca_arrival_claim(hca_qp_of(qp[(id + 1) % 2]), &a), 0);
		hca_arrival_release(hca_qp_of(qp[(id + 1) % 2]), &a);
		assert_int_equal(arrive(qp[id % 2], PIECE, (int)id + 1, 0), 0);
		poll_one(o.cq, &wc);
		assert_int_equal(wc.wr_id, id);
		assert_int_equal(wc.qp_num, qp[id % 2]->qp_num);
		expect_bytes(b->at[id], PIECE, (int)id + 1);
	}
	expect_event(&o, IBV_EVENT_SRQ_LIMIT_REACHED);
	expect_no_event(&o);
	assert_int_equal(arrive(qp[0], PIECE, 4, 0), 0);
	assert_int_equal(arrive(qp[0], PIECE, 5, 0), HCA_NO_RECEIVE);
	poll_one(o.cq, &wc);
	assert_int_equal(wc.wr_id, 3);
	for (id = 0; id < 2; id++)
		assert_int_equal(ibv_destroy_qp(qp[id]), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	buffers_free(b);
	own_free(&o);
}

/* A datagram has the fields of its sender. */
static void test_datagram(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name, .type = IBV_QPT_UD });
	struct buffers *b = buffers_make(&o);
	struct hca_qp *qp = hca_qp_of(o.qp);
	struct hca_arrival a = { 0 };
	struct ibv_wc wc;

	post(&o, b, 1);
	assert_int_equal(hca_arrival_claim(qp, &a), 0);
	assert_int_equal(hca_arrival_complete(qp, &a, &(struct hca_arrival_wc){
			.opcode = IBV_WC_RECV, .bytes = 40 + 8, .src_qp = 1234, .slid = 77, .sl = 3,
			.flags = IBV_WC_GRH }), 0);
	poll_one(o.cq, &wc);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.byte_len, 48);
	assert_int_equal(wc.src_qp, 1234);
	assert_int_equal(wc.slid, 77);
	assert_int_equal(wc.sl, 3);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);
	buffers_free(b);
	own_free(&o);
}

/* ---- Keys ---------------------------------------------------------------- */

static void test_keys(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name });
	struct ibv_pd *other = ibv_alloc_pd(o.ctx);
	static unsigned char memory[1000];
	const uint64_t base = (uintptr_t)memory;
	struct ibv_mr *all = ibv_reg_mr(o.pd, memory, sizeof(memory), ALL_ACCESS);
	struct ibv_mr *readable = ibv_reg_mr(o.pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *foreign = ibv_reg_mr(other, memory, sizeof(memory), ALL_ACCESS);
	struct ibv_mr *shifted = ibv_reg_mr_iova(o.pd, memory + 100, 100, 0x5000, ALL_ACCESS);
	const struct {
		uint32_t key;
		uint64_t addr;
		uint32_t bytes;
		unsigned need;
		int status;
		unsigned char *at;
	} rows[] = {
		{ all->rkey, base, 1000, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS, memory },
		{ all->rkey, base + 999, 1, IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS, memory + 999 },
		{ all->rkey, base + 8, 8, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_SUCCESS, memory + 8 },
		{ shifted->rkey, 0x5010, 84, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS, memory + 116 },
		{ readable->rkey, base, 10, IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS, memory },
		{ all->rkey, base + 1, 1000, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR, NULL },
		{ all->rkey, base - 1, 1, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR, NULL },
		{ all->rkey, base + 1001, 1, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR, NULL },
		{ all->rkey, UINT64_MAX, 2, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR, NULL },
		{ all->rkey, base + 4, 8, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_INV_REQ_ERR, NULL },
		{ shifted->rkey, 0x4fff, 1, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR, NULL },
		{ readable->rkey, base, 10, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR, NULL },
		{ readable->rkey, base, 8, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR, NULL },
		{ foreign->rkey, base, 10, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR, NULL },
		{ 0, base, 10, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR, NULL },
		{ UINT32_MAX, base, 10, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR, NULL },
		{ all->rkey + 1, base, 10, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR, NULL },
	};
	unsigned char *at;
	unsigned i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(own_address(o.qp, rows[i].key, rows[i].addr, rows[i].bytes,
					     rows[i].need, &at), rows[i].status);
		assert_ptr_equal(at, rows[i].at);
	}
	/* Without bytes no key is needed. */
	assert_int_equal(own_address(o.qp, 0, 3, 0, IBV_ACCESS_REMOTE_WRITE, &at), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(all), 0);
	assert_int_equal(own_address(o.qp, rows[0].key, base, 1, IBV_ACCESS_REMOTE_READ, &at),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(readable) | ibv_dereg_mr(foreign) | ibv_dereg_mr(shifted), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	own_free(&o);
}

/* What the queue pair does not allow or never answers is an invalid request. */
static void test_queue_pair_refuses(void **state)
{
	static unsigned char memory[64];
	const unsigned writable = IBV_ACCESS_REMOTE_WRITE;
	struct own o = own_make((struct own_config){ .fabric = name, .access = writable });
	struct own silent = own_make((struct own_config){ .fabric = name, .silent = true });
	struct ibv_mr *mr = ibv_reg_mr(o.pd, memory, sizeof(memory), ALL_ACCESS);
	const uint64_t base = (uintptr_t)memory;
	unsigned char *at;
	uint64_t old;

	assert_int_equal(own_address(o.qp, mr->rkey, base, 8, writable, &at), IBV_WC_SUCCESS);
	assert_int_equal(own_address(o.qp, mr->rkey, base, 8, IBV_ACCESS_REMOTE_READ, &at),
			 IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(hca_remote_atomic(hca_qp_of(o.qp), IBV_WR_ATOMIC_FETCH_AND_ADD, mr->rkey,
					   base, 1, 0, &old), IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(own_address(silent.qp, 1, base, 0, writable, &at), IBV_WC_SUCCESS);
	assert_int_equal(own_address(silent.qp, 1, base, 0, IBV_ACCESS_REMOTE_READ, &at),
			 IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(memory[0], 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	own_free(&silent);
	own_free(&o);
}

/* ---- Windows ------------------------------------------------------------- */

static uint32_t bind_window(struct own *o, struct ibv_mw *mw, struct ibv_mr *mr, size_t offset,
			    size_t bytes)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = { mr, (uintptr_t)mr->addr + offset, bytes,
					    IBV_ACCESS_REMOTE_WRITE } } }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(o->qp, &wr, &bad), 0);
	poll_one(o->cq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return wr.bind_mw.rkey;
}

static int write_at(struct ibv_qp *qp, uint32_t key, const unsigned char *addr, uint32_t bytes)
{
	unsigned char *at;

	return own_address(qp, key, (uintptr_t)addr, bytes, IBV_ACCESS_REMOTE_WRITE, &at);
}

/* Type 2: of one queue pair, until its peer invalidates it; then it is bound again. */
static void test_window(void **state)
{
	const struct own_config c = { .fabric = name };
	struct own o = own_make(c);
	struct ibv_qp *other = own_qp(&o, &c, NULL);
	static unsigned char memory[256];
	struct ibv_mr *mr = ibv_reg_mr(o.pd, memory, sizeof(memory), ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(o.pd, IBV_MW_TYPE_2);
	uint32_t key, last = 0;
	int i;

	own_receive(&o, other, &c);
	own_send(o.qp);
	for (i = 0; i < 3; i++) {
		key = bind_window(&o, mw, mr, 64, 64);
		assert_int_equal(write_at(o.qp, key, memory + 64, 64), IBV_WC_SUCCESS);
		assert_int_equal(write_at(o.qp, key, memory + 63, 2), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(write_at(o.qp, key, memory + 127, 2), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(write_at(other, key, memory + 64, 64), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(write_at(o.qp, last, memory + 64, 64), IBV_WC_REM_ACCESS_ERR);
		assert_true(hca_window_is_peers(hca_qp_of(o.qp), key));
		assert_false(hca_window_is_peers(hca_qp_of(other), key));
		assert_false(hca_window_is_peers(hca_qp_of(o.qp), last));
		assert_false(hca_window_is_peers(hca_qp_of(o.qp), mr->rkey));
		assert_int_equal(ibv_dereg_mr(mr), EBUSY);
		hca_window_invalidate(hca_qp_of(o.qp), key);
		assert_false(hca_window_is_peers(hca_qp_of(o.qp), key));
		assert_int_equal(write_at(o.qp, key, memory + 64, 64), IBV_WC_REM_ACCESS_ERR);
		last = key;
	}
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_false(hca_window_is_peers(hca_qp_of(o.qp), key));
	assert_int_equal(ibv_destroy_qp(other), 0);
	own_free(&o);
}

/* Type 1: of all queue pairs of its domain; no peer invalidates it. */
static void test_window_of_domain(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name });
	static unsigned char memory[256];
	struct ibv_mr *mr = ibv_reg_mr(o.pd, memory, sizeof(memory), ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(o.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)memory, 64, IBV_ACCESS_REMOTE_WRITE } };
	struct ibv_wc wc;

	own_send(o.qp);
	assert_int_equal(ibv_bind_mw(o.qp, mw, &bind), 0);
	poll_one(o.cq, &wc);
	assert_int_equal(write_at(o.qp, mw->rkey, memory, 64), IBV_WC_SUCCESS);
	assert_int_equal(write_at(o.qp, mw->rkey, memory, 65), IBV_WC_REM_ACCESS_ERR);
	assert_false(hca_window_is_peers(hca_qp_of(o.qp), mw->rkey));
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	own_free(&o);
}

/* ---- Events -------------------------------------------------------------- */

/* A full completion queue: the receive stays posted, queue and queue pair fail. */
static void test_overflow(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name, .cqe = 2 });
	struct buffers *b = buffers_make(&o);
	struct ibv_wc wc;
	uint64_t id;

	for (id = 0; id < 3; id++)
		post(&o, b, id);
	assert_int_equal(arrive(o.qp, 1, 1, 0), 0);
	assert_int_equal(arrive(o.qp, 1, 1, 0), 0);
	assert_int_equal(arrive(o.qp, 1, 1, 0), -ENOSPC);
	hca_qp_report(hca_qp_of(o.qp), IBV_EVENT_CQ_ERR + 1);
	expect_event(&o, IBV_EVENT_CQ_ERR);
	expect_event(&o, IBV_EVENT_QP_FATAL);
	expect_no_event(&o);
	assert_int_equal(hca_qp_state(hca_qp_of(o.qp)), IBV_QPS_ERR);
	for (id = 0; id < 2; id++) {
		poll_one(o.cq, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, id);
	}
	buffers_free(b);
	own_free(&o);
}

static void *wait_for_established(void *arg)
{
	expect_event(arg, IBV_EVENT_COMM_EST);
	return NULL;
}

/* The first message in RTR wakes a thread that sleeps; later ones are none. */
static void test_established(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name });
	pthread_t waiter;

	expect_no_event(&o);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_established, &o), 0);
	rg_sleep_ns(10000000);
	hca_qp_first_arrived(hca_qp_of(o.qp));
	assert_int_equal(pthread_join(waiter, NULL), 0);
	hca_qp_first_arrived(hca_qp_of(o.qp));
	expect_no_event(&o);
	own_send(o.qp);
	hca_qp_first_arrived(hca_qp_of(o.qp));
	expect_no_event(&o);
	hca_qp_report(hca_qp_of(o.qp), IBV_EVENT_QP_ACCESS_ERR + 1);
	expect_event(&o, IBV_EVENT_QP_ACCESS_ERR);
	own_free(&o);
}

/* Armed for solicited completions, a channel is silent until one comes. */
static void test_solicited(void **state)
{
	struct own o = own_make((struct own_config){ .fabric = name });
	struct buffers *b = buffers_make(&o);
	struct hca_qp *qp = hca_qp_of(o.qp);
	struct hca_arrival a = { 0 };
	struct ibv_cq *cq;
	void *context;
	int i, flags = fcntl(o.channel->fd, F_GETFL);

	assert_int_equal(fcntl(o.channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(ibv_req_notify_cq(o.cq, 1), 0);
	for (i = 0; i < 2; i++) {
		post(&o, b, (uint64_t)i);
		assert_int_equal(hca_arrival_claim(qp, &a), 0);
		assert_int_equal(hca_arrival_complete(qp, &a, &(struct hca_arrival_wc){
				.opcode = IBV_WC_RECV, .solicited = i == 1 }), 0);
		assert_int_equal(ibv_get_cq_event(o.channel, &cq, &context), i == 1 ? 0 : -1);
	}
	assert_ptr_equal(cq, o.cq);
	ibv_ack_cq_events(o.cq, 1);
	buffers_free(b);
	own_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_released),
		cmocka_unit_test(test_bad_receives),
		cmocka_unit_test(test_srq),
		cmocka_unit_test(test_datagram),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_queue_pair_refuses),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_window_of_domain),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_established),
		cmocka_unit_test(test_solicited),
	};

	alarm(60);
	snprintf(name, sizeof(name), "responder.%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
