/* wr.c - posting with ibv_wr_*. */
#include <errno.h>

#include "ud.h"

enum { DEPTH = 16, INLINE = 32 };

static struct ibv_qp *wr_try(struct side *s, struct ibv_cq *cq, enum ibv_qp_type type,
			     uint64_t operations, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type, .pd = s->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = operations,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2,
			 .max_recv_sge = 1, .max_inline_data = INLINE },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(s->ctx, &init);

	*cap = init.cap;
	return qp;
}

static struct end wr_new(struct side *s, enum ibv_qp_type type, uint64_t operations)
{
	struct end e = { .own_cq = true, .config = end_defaults };

	e.config.type = type;
	e.config.access = ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC;
	e.cq = ibv_create_cq(s->ctx, 64, NULL, NULL, 0);
	require(e.cq != NULL);
	want_limit("requests", DEPTH, s->dev.max_qp_wr);
	want_limit("pieces of a request", 2, s->dev.max_sge);
	want_inline(s, INLINE);
	e.qp = wr_try(s, e.cq, type, operations, &e.cap);
	if (!e.qp && (errno == EOPNOTSUPP || errno == ENOSYS)) {
		require_equal(ibv_destroy_cq(e.cq), 0);
		skip("ibv_create_qp_ex with send operations 0x%llx",
		     (unsigned long long)operations);
	}
	require(e.qp != NULL);
	return e;
}

static void wr_case(struct side *s, bool pieces, bool inlined)
{
	struct end e = wr_new(s, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE |
			      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e.qp);
	struct buffer b = buffer_new(s, 8192, ACCESS_ALL);
	struct ibv_sge in = sge_of(&b, 4096, 100), out[2];
	struct ibv_cq *cq = e.cq;
	unsigned char small[64];

	require(ex != NULL);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1) {
		post_receive(&e, 7, &in, 1);
		barrier(s);
		require_equal(wait_ok(cq).imm_data, 0x1234);
		check(b.at + 4096, 6, 30, "sent");
		check(b.at, 5, 200, "written");
		barrier(s);
	} else {
		fill(b.at + 1000, 5, 200);
		out[0] = sge_of(&b, 1000, 50);
		out[1] = sge_of(&b, 1050, 150);
		barrier(s);
		/* Aborted: nothing happens. */
		ibv_wr_start(ex);
		ex->wr_id = 99;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, b.rkey, b.addr);
		ibv_wr_set_sge(ex, out[0].lkey, out[0].addr, out[0].length);
		ibv_wr_abort(ex);
		expect_nothing(cq, 1);

		ibv_wr_start(ex);
		ex->wr_id = 1;
		ex->wr_flags = 0;
		ibv_wr_rdma_write(ex, b.rkey, b.addr);
		if (pieces)
			ibv_wr_set_sge_list(ex, 2, out);
		else
			ibv_wr_set_sge(ex, out[0].lkey, out[0].addr, 200);
		ex->wr_id = 2;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send_imm(ex, 0x1234);
		if (inlined) {
			fill(small, 6, 30);
			ibv_wr_set_inline_data(ex, small, 30);
			memset(small, 0, sizeof(small));
		} else {
			fill(b.at + 2000, 6, 30);
			ibv_wr_set_sge(ex, out[0].lkey, (uintptr_t)b.at + 2000, 30);
		}
		ex->wr_id = 3;
		ibv_wr_rdma_read(ex, b.rkey, b.addr);
		ibv_wr_set_sge(ex, out[0].lkey, (uintptr_t)b.at + 3000, 200);
		require_equal(ibv_wr_complete(ex), 0);
		require_equal(wait_ok(cq).wr_id, 2);
		require_equal(wait_ok(cq).wr_id, 3);
		check(b.at + 3000, 5, 200, "read back");
		barrier(s);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_wr_api(struct side *s)
{
	wr_case(s, false, false);
}

static void test_wr_pieces(struct side *s)
{
	wr_case(s, true, false);
}

static void test_wr_inline(struct side *s)
{
	wr_case(s, false, true);
}

static void test_wr_atomics(struct side *s)
{
	struct end e = wr_new(s, IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e.qp);
	uint64_t *words = (uint64_t *)(void *)b.at;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		words[0] = 5;
	barrier(s);
	if (s->me == 0) {
		ibv_wr_start(ex);
		ex->wr_id = 1;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_fetch_add(ex, b.rkey, b.addr, 10);
		ibv_wr_set_sge(ex, b.mr->lkey, (uintptr_t)&words[1], 8);
		ex->wr_id = 2;
		ibv_wr_atomic_cmp_swp(ex, b.rkey, b.addr, 15, 100);
		ibv_wr_set_sge(ex, b.mr->lkey, (uintptr_t)&words[2], 8);
		require_equal(ibv_wr_complete(ex), 0);
		require_equal(wait_ok(e.cq).opcode, IBV_WC_FETCH_ADD);
		require_equal(wait_ok(e.cq).opcode, IBV_WC_COMP_SWAP);
		require_equal(words[1], 5);
		require_equal(words[2], 15);
	}
	barrier(s);
	if (s->me == 1)
		require_equal(words[0], 100);
	end_free(&e);
	buffer_free(s, &b);
}

/* Unreliable: a write with immediate, and a send in two pieces. */
static void test_wr_uc(struct side *s)
{
	struct end e = wr_new(s, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			      IBV_QP_EX_WITH_SEND);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e.qp);
	struct buffer b = buffer_new(s, 8192, ACCESS_ALL);
	struct ibv_sge in = sge_of(&b, 4096, 100);
	struct ibv_wc wc;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1) {
		post_receive(&e, 7, NULL, 0);
		post_receive(&e, 8, &in, 1);
	}
	barrier(s);
	if (s->me == 0) {
		fill(b.at + 1000, 3, 300);
		ibv_wr_start(ex);
		ex->wr_id = 1;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write_imm(ex, b.rkey, b.addr, 0x55);
		ibv_wr_set_sge(ex, b.mr->lkey, (uintptr_t)b.at + 1000, 300);
		ex->wr_id = 2;
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, b.mr->lkey, (uintptr_t)b.at + 1000, 100);
		require_equal(ibv_wr_complete(ex), 0);
		require_equal(wait_ok(e.cq).wr_id, 1);
		require_equal(wait_ok(e.cq).wr_id, 2);
	} else {
		wc = wait_ok(e.cq);
		require_equal(wc.wr_id, 7);
		require_equal(wc.imm_data, 0x55);
		check(b.at, 3, 300, "written");
		require_equal(wait_ok(e.cq).byte_len, 100);
		check(b.at + 4096, 3, 100, "sent");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* A queue pair is not made with operations that its type does not have. */
static void test_wr_operations(struct side *s)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t not;
	} cases[] = {
		{ IBV_QPT_RC, 1ull << 40 },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	};
	struct end e = wr_new(s, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ibv_qp_cap cap;

		errno = 0;
		require(wr_try(s, e.cq, cases[i].type, IBV_QP_EX_WITH_SEND | cases[i].not,
			       &cap) == NULL);
		require(errno == EOPNOTSUPP || errno == EINVAL);
	}
	end_free(&e);
}

/* What cannot be posted is found at the end, and then nothing of it is. */
static void test_wr_refused(struct side *s)
{
	struct end e = wr_new(s, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e.qp);
	struct ibv_sge sge[64];
	uint32_t i;

	for (i = 0; i < 64; i++)
		sge[i] = sge_of(&b, 0, 1);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 1, 1);
	ibv_wr_set_sge(ex, sge[0].lkey, sge[0].addr, 1);
	require(ibv_wr_complete(ex) != 0);	/* too early */
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		uint32_t room = end_granted(&e).max_send_wr;

		require(e.cap.max_send_sge < 64);
		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, b.rkey, b.addr);
		ibv_wr_set_sge(ex, sge[0].lkey, sge[0].addr, 1);
		ibv_wr_rdma_write(ex, b.rkey, b.addr);
		ibv_wr_set_sge_list(ex, e.cap.max_send_sge + 1, sge);
		require(ibv_wr_complete(ex) != 0);
		expect_nothing(e.cq, 5);
		ibv_wr_start(ex);
		for (i = 0; i <= room; i++) {
			ibv_wr_rdma_write(ex, b.rkey, b.addr);
			ibv_wr_set_sge(ex, sge[0].lkey, sge[0].addr, 1);
		}
		require(ibv_wr_complete(ex) != 0);
		expect_nothing(e.cq, 5);
		/* And after all that it works. */
		ibv_wr_start(ex);
		ex->wr_id = 9;
		ibv_wr_rdma_write(ex, b.rkey, b.addr);
		ibv_wr_set_sge(ex, sge[0].lkey, sge[0].addr, 1);
		require_equal(ibv_wr_complete(ex), 0);
		require_equal(wait_ok(e.cq).wr_id, 9);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* While a batch is open, completions of another queue pair are waited for. */
static void test_wr_two(struct side *s)
{
	enum { ROUNDS = 20, BYTES = 65536 };
	struct end e[2] = { wr_new(s, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE),
			    wr_new(s, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE) };
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, BYTES);
	int i, k;

	for (i = 0; i < 2; i++)
		end_connect(s, &e[i]);
	buffer_swap(s, &b);
	for (k = 0; s->me == 0 && k < ROUNDS; k++)
		for (i = 0; i < 2; i++) {
			struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e[i].qp);

			ibv_wr_start(ex);
			ex->wr_id = (uint64_t)k;
			ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_rdma_write(ex, b.rkey, b.addr);
			ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
			if (k)
				expect(e[!i].cq, (uint64_t)k - 1, IBV_WC_SUCCESS);
			require_equal(ibv_wr_complete(ex), 0);
		}
	for (i = 0; s->me == 0 && i < 2; i++)
		expect(e[i].cq, ROUNDS - 1, IBV_WC_SUCCESS);
	barrier(s);
	for (i = 0; i < 2; i++)
		end_free(&e[i]);
	buffer_free(s, &b);
}

/* Wait for the entry of a request, or of the only receive. */
static void wr_end(struct ibv_qp_ex *ex, struct ibv_cq *cq, enum ibv_wc_opcode opcode)
{
	require_equal(ibv_wr_complete(ex), 0);
	require_equal(wait_ok(cq).opcode, opcode);
}

/* A window of type 2 that its queue pair binds; then its owner invalidates the key, or the peer. */
static void wr_window(struct side *s, bool by_peer)
{
	struct end e = wr_new(s, IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
			      IBV_QP_EX_WITH_SEND_WITH_INV);
	struct buffer b = buffer_new(s, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	const struct ibv_mw_bind_info info = { .mr = b.mr, .addr = (uintptr_t)b.at, .length = 4096,
					       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_sge sge = sge_of(&b, 4096, 100);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e.qp);
	struct ibv_mw *mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
	uint32_t rkey, given;
	struct ibv_wc wc;

	if (!mw)
		skip("no memory window of type 2");
	rkey = ibv_inc_rkey(mw->rkey);
	end_connect(s, &e);
	if (s->me == 1) {
		post_receive(&e, 7, &sge, 1);
		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_bind_mw(ex, mw, rkey, &info);
		wr_end(ex, e.cq, IBV_WC_BIND_MW);
		require(!by_peer || ibv_dereg_mr(b.mr) != 0);	/* bound */
		if (!by_peer) {
			ibv_wr_start(ex);
			ibv_wr_local_inv(ex, rkey);
			wr_end(ex, e.cq, IBV_WC_LOCAL_INV);
		}
	}
	swap(s, &rkey, &given, sizeof(rkey));
	if (by_peer && s->me == 0) {
		fill(b.at + 4096, 8, 100);
		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send_inv(ex, given);
		ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
		wr_end(ex, e.cq, IBV_WC_SEND);
	} else if (by_peer) {
		wc = wait_ok(e.cq);
		require(wc.wc_flags & IBV_WC_WITH_INV);
		require_equal(wc.invalidated_rkey, rkey);
		check(b.at + 4096, 8, 100, "the message");
	}
	/* Memory whose window is unbound can go before the window. */
	require_equal(ibv_dereg_mr(b.mr), 0);
	b.mr = NULL;
	barrier(s);
	require_equal(ibv_dealloc_mw(mw), 0);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_wr_local_invalidate(struct side *s)
{
	wr_window(s, false);
}

static void test_wr_send_invalidate(struct side *s)
{
	wr_window(s, true);
}

/* Each datagram has its address. */
static void test_wr_datagram(struct side *s)
{
	struct end e = wr_new(s, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e.qp);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge in = sge_of(&b, 0, GRH + 100), out = sge_of(&b, 2048, 100);
	struct peer_address to;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	ud_init(s, &e, QKEY);
	ud_ready(&e);
	to = ud_swap(s, &e);
	ah = ah_to(s, &to);
	if (s->me == 1)
		post_receive(&e, 7, &in, 1);
	barrier(s);
	if (s->me == 0) {
		fill(b.at + 2048, 4, 100);
		ibv_wr_start(ex);
		ex->wr_id = 5;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		ibv_wr_set_ud_addr(ex, ah, to.qpn, QKEY);
		ibv_wr_set_sge(ex, out.lkey, out.addr, out.length);
		wr_end(ex, e.cq, IBV_WC_SEND);
	} else {
		wc = wait_ok(e.cq);
		require_equal(wc.byte_len, GRH + 100);
		require_equal(wc.src_qp, to.qpn);
		check(b.at + GRH, 4, 100, "the datagram");
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

const struct test wr_tests[] = {
	{ "wr_api", test_wr_api },
	{ "wr_pieces", test_wr_pieces },
	{ "wr_inline", test_wr_inline },
	{ "wr_atomics", test_wr_atomics },
	{ "wr_uc", test_wr_uc },
	{ "wr_operations", test_wr_operations },
	{ "wr_refused", test_wr_refused },
	{ "wr_two", test_wr_two },
	{ "wr_local_invalidate", test_wr_local_invalidate },
	{ "wr_send_invalidate", test_wr_send_invalidate },
	{ "wr_datagram", test_wr_datagram },
	{ NULL, NULL },
};
