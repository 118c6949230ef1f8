/* memory.c - reregistration, memory windows, parent domains. */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"

enum { BYTES = 16384, ACCESS_BIND = ACCESS_ALL | IBV_ACCESS_MW_BIND };

static struct ibv_send_wr window_write(const struct buffer *b, struct ibv_sge *sge, uint32_t rkey)
{
	return (struct ibv_send_wr){ .wr_id = 1, .sg_list = sge, .num_sge = 1,
				     .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				     .wr.rdma = { b->addr, rkey } };
}

static void expect_of(struct end *e, const char *what, uint64_t which, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(e->cq);

	if (wc.status != status)
		fail("%s %d: %s; expected: %s", what, (int)which, ibv_wc_status_str(wc.status),
		     ibv_wc_status_str(status));
}

static void expect_status(struct end *e, enum ibv_wc_status status)
{
	expect_of(e, "request", 0, status);
}

/* Side 0 writes pattern `seed` to the other side's address and key; what becomes of it. */
static void try_write(struct side *s, struct end *e, struct buffer *b, uint64_t addr,
		      uint32_t rkey, uint64_t seed, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(b, 0, 1000);
	struct ibv_send_wr wr = window_write(b, &sge, rkey);

	wr.wr.rdma.remote_addr = addr;
	fill(b->at, seed, 1000);
	post(e, wr);
	expect_of(e, "write", seed, status);
}

static void reconnect(struct side *s, struct end *e)
{
	barrier(s);
	require_equal(end_to(e, IBV_QPS_RESET), 0);
	end_connect(s, e);
}

static uint64_t exchange(struct side *s, uint64_t mine)
{
	uint64_t theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	return theirs;
}

/* ---- Re-registration ----------------------------------------------------- */

static void rereg(struct buffer *b, int flags, struct ibv_pd *pd, void *at, size_t bytes,
		  int access)
{
	int rc = ibv_rereg_mr(b->mr, flags, pd, at, bytes, access);

	if (rc == IBV_REREG_MR_ERR_CMD && (errno == EOPNOTSUPP || errno == ENOSYS))
		skip("the device cannot re-register");
	if (rc)
		fail("ibv_rereg_mr: %d, %s", rc, strerror(errno));
}

/* Remote writing is taken away and given back. */
static void test_rereg_access(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	uint32_t rkey;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, b.rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1) {
		check(b.at, 1, 1000, "before");
		rereg(&b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
	}
	rkey = (uint32_t)exchange(s, b.mr->rkey);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, rkey, 2, IBV_WC_REM_ACCESS_ERR);
	reconnect(s, &e);
	if (s->me == 1) {
		check(b.at, 1, 1000, "refused");
		rereg(&b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL);
	}
	rkey = (uint32_t)exchange(s, b.mr->rkey);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, rkey, 3, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1)
		check(b.at, 3, 1000, "allowed again");
	end_free(&e);
	buffer_free(s, &b);
}

/* The registration of another protection domain is nobody's here. */
static void test_rereg_pd(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_pd *other = ibv_alloc_pd(s->ctx);
	struct end e = end_new(s, NULL);
	uint32_t rkey;

	require(other != NULL);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, b.rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1) {
		rereg(&b, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0);
		require(b.mr->pd == other);
		require_equal(ibv_dealloc_pd(other), EBUSY);
	}
	rkey = (uint32_t)exchange(s, b.mr->rkey);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, rkey, 2, IBV_WC_REM_ACCESS_ERR);
	reconnect(s, &e);
	if (s->me == 1) {
		check(b.at, 1, 1000, "refused");
		rereg(&b, IBV_REREG_MR_CHANGE_PD, s->pd, NULL, 0, 0);
	}
	rkey = (uint32_t)exchange(s, b.mr->rkey);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, rkey, 3, IBV_WC_SUCCESS);
	barrier(s);
	require_equal(ibv_dealloc_pd(other), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* Other memory under the same registration: the old is left alone. */
static void test_rereg_translation(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	unsigned char *other = NULL;
	uint64_t addr;
	uint32_t rkey;

	require_equal(posix_memalign((void **)&other, 4096, 2 * BYTES), 0);
	memset(other, 0xdd, 2 * BYTES);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, b.rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1) {
		rereg(&b, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 2 * BYTES, 0);
		require(b.mr->addr == other && b.mr->length == 2 * BYTES);
	}
	rkey = (uint32_t)exchange(s, b.mr->rkey);
	addr = exchange(s, (uintptr_t)other);
	if (s->me == 0)
		try_write(s, &e, &b, addr + BYTES, rkey, 2, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1) {
		check(b.at, 1, 1000, "the old memory");
		check(other + BYTES, 2, 1000, "the new memory");
		check_untouched(other, 0xdd, BYTES, "the new memory");
	}
	barrier(s);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, rkey, 3, IBV_WC_REM_ACCESS_ERR);
	barrier(s);
	if (s->me == 1)
		check(b.at, 1, 1000, "the old memory");
	end_free(&e);
	buffer_free(s, &b);
	free(other);
}

/* What makes no sense is refused, and changes nothing. */
static void test_rereg_bad(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1) {
		require_equal(ibv_rereg_mr(b.mr, 1 << 7, NULL, NULL, 0, 0),
			      IBV_REREG_MR_ERR_INPUT);
		require_equal(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 8, 0),
			      IBV_REREG_MR_ERR_INPUT);
		require_equal(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.at, 0, 0),
			      IBV_REREG_MR_ERR_INPUT);
		require_equal(ibv_rereg_mr(b.mr, 0, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
			      IBV_REREG_MR_ERR_INPUT);
		/* Remote without local writing. */
		require_equal(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					   IBV_ACCESS_REMOTE_WRITE), IBV_REREG_MR_ERR_CMD);
	}
	barrier(s);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, b.rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1)
		check(b.at, 1, 1000, "after what was refused");
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Memory windows ------------------------------------------------------ */

static struct ibv_mw *window_new(struct side *s, enum ibv_mw_type type)
{
	struct ibv_mw *mw;

	if (type == IBV_MW_TYPE_1 ? !(s->dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW) :
	    !(s->dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		skip("the device has no windows of this type");
	mw = ibv_alloc_mw(s->pd, type);
	if (!mw)
		fail("ibv_alloc_mw: %s", strerror(errno));
	return mw;
}

static struct ibv_mw_bind_info part_of(const struct buffer *b, size_t offset, size_t bytes,
				       unsigned access)
{
	return (struct ibv_mw_bind_info){ .mr = b->mr, .addr = (uintptr_t)b->at + offset,
					  .length = bytes, .mw_access_flags = access };
}

static void bind_1(struct end *e, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .wr_id = 3, .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = info };
	struct ibv_wc wc;

	require_equal(ibv_bind_mw(e->qp, mw, &bind), 0);
	wc = wait_ok(e->cq);
	require_equal(wc.opcode, IBV_WC_BIND_MW);
	require_equal(wc.wr_id, 3);
}

static uint32_t post_bind_2(struct end *e, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED };

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = info;
	post(e, wr);
	return wr.bind_mw.rkey;
}

static uint32_t bind_2(struct end *e, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	uint32_t rkey = post_bind_2(e, mw, info);
	struct ibv_wc wc = wait_ok(e->cq);

	require_equal(wc.opcode, IBV_WC_BIND_MW);
	require_equal(wc.wr_id, 4);
	return rkey;
}

/* Only the window can be written through its key, only while it is bound. */
static void test_window_1(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = window_new(s, IBV_MW_TYPE_1);
	struct end e = end_new(s, NULL);
	uint32_t first, second;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		bind_1(&e, mw, part_of(&b, 4096, 4096, IBV_ACCESS_REMOTE_WRITE));
	first = (uint32_t)exchange(s, mw->rkey);
	if (s->me == 0) {
		try_write(s, &e, &b, b.addr + 4096, first, 1, IBV_WC_SUCCESS);
		try_write(s, &e, &b, b.addr + 8192 - 1000, first, 2, IBV_WC_SUCCESS);
		try_write(s, &e, &b, b.addr + 8192 - 999, first, 3, IBV_WC_REM_ACCESS_ERR);
	}
	reconnect(s, &e);
	if (s->me == 1) {
		check(b.at + 4096, 1, 1000, "begin of the window");
		check(b.at + 8192 - 1000, 2, 1000, "end of the window");
		check_untouched(b.at, 0xee, 4096, "before the window");
		check_untouched(b.at + 8192, 0xee, 8192, "behind the window");
		/* Elsewhere: the old key ends. */
		bind_1(&e, mw, part_of(&b, 0, 4096, IBV_ACCESS_REMOTE_WRITE));
	}
	second = (uint32_t)exchange(s, mw->rkey);
	if (s->me == 0) {
		require(first != second);
		try_write(s, &e, &b, b.addr, second, 4, IBV_WC_SUCCESS);
		try_write(s, &e, &b, b.addr + 4096, first, 5, IBV_WC_REM_ACCESS_ERR);
	}
	reconnect(s, &e);
	if (s->me == 1) {
		struct ibv_mw_bind_info none = { 0 };

		check(b.at, 4, 1000, "the second binding");
		check(b.at + 4096, 1, 1000, "the first binding");
		require_equal(ibv_dereg_mr(b.mr), EBUSY);
		bind_1(&e, mw, none);
	}
	barrier(s);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, second, 6, IBV_WC_REM_ACCESS_ERR);
	barrier(s);
	if (s->me == 1)
		check(b.at, 4, 1000, "unbound");
	require_equal(ibv_dealloc_mw(mw), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* Bound by the queue pair, invalidated by it. */
static void test_window_2(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = window_new(s, IBV_MW_TYPE_2);
	struct end e = end_new(s, NULL), other = end_new(s, NULL);
	uint32_t mine = 0, rkey;

	end_connect(s, &e);
	end_connect(s, &other);
	buffer_swap(s, &b);
	if (s->me == 1)
		mine = bind_2(&e, mw, part_of(&b, 100, 5000, IBV_ACCESS_REMOTE_WRITE));
	rkey = (uint32_t)exchange(s, mine);
	if (s->me == 0) {
		try_write(s, &e, &b, b.addr + 4000, rkey, 1, IBV_WC_SUCCESS);
		/* Another queue pair's window is no window. */
		try_write(s, &other, &b, b.addr + 4000, rkey, 2, IBV_WC_REM_ACCESS_ERR);
	} else {
		struct ibv_send_wr inv = { .wr_id = 5, .opcode = IBV_WR_LOCAL_INV,
					   .send_flags = IBV_SEND_SIGNALED };
		struct ibv_wc wc;

		barrier(s);
		check(b.at + 4000, 1, 1000, "the window");
		inv.invalidate_rkey = mine;
		post(&e, inv);
		wc = wait_ok(e.cq);
		require_equal(wc.opcode, IBV_WC_LOCAL_INV);
		barrier(s);
	}
	if (s->me == 0) {
		barrier(s);
		barrier(s);
		try_write(s, &e, &b, b.addr + 4000, rkey, 3, IBV_WC_REM_ACCESS_ERR);
	}
	barrier(s);
	if (s->me == 1)
		check(b.at + 4000, 1, 1000, "invalidated");
	require_equal(ibv_dealloc_mw(mw), 0);
	end_free(&e);
	end_free(&other);
	buffer_free(s, &b);
}

/* The peer gives the window back with its last message. */
static void test_send_with_invalidate(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = window_new(s, IBV_MW_TYPE_2);
	struct ibv_sge sge = sge_of(&b, 8192, 500);
	struct end e = end_new(s, NULL);
	uint32_t rkey = 0;
	struct ibv_wc wc;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1) {
		post_receive(&e, 9, &sge, 1);
		rkey = bind_2(&e, mw, part_of(&b, 0, 5000, IBV_ACCESS_REMOTE_WRITE));
	}
	rkey = s->me ? (uint32_t)(exchange(s, rkey), rkey) : (uint32_t)exchange(s, 0);
	if (s->me == 0) {
		struct ibv_send_wr send = { .wr_id = 6, .sg_list = &sge, .num_sge = 1,
					    .opcode = IBV_WR_SEND_WITH_INV,
					    .send_flags = IBV_SEND_SIGNALED };

		try_write(s, &e, &b, b.addr, rkey, 1, IBV_WC_SUCCESS);
		fill(b.at + 8192, 2, 500);
		send.invalidate_rkey = rkey;
		post(&e, send);
		wc = wait_ok(e.cq);
		require_equal(wc.opcode, IBV_WC_SEND);
		try_write(s, &e, &b, b.addr, rkey, 3, IBV_WC_REM_ACCESS_ERR);
	} else {
		wc = wait_ok(e.cq);
		require_equal(wc.opcode, IBV_WC_RECV);
		require(wc.wc_flags & IBV_WC_WITH_INV);
		require_equal(wc.invalidated_rkey, rkey);
		check(b.at, 1, 1000, "the window");
		check(b.at + 8192, 2, 500, "the message");
		barrier(s);
		/* It is not bound any more. */
		require_equal(ibv_dereg_mr(b.mr), 0);
		b.mr = NULL;
	}
	if (s->me == 0)
		barrier(s);
	require_equal(ibv_dealloc_mw(mw), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* What may not be bound; the queue pair is in error after each. */
static void test_window_errors(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_BIND);
	struct buffer closed = buffer_new(s, BYTES, ACCESS_ALL);
	struct buffer read_only = buffer_new(s, BYTES, IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = window_new(s, IBV_MW_TYPE_2);
	struct end e = end_new(s, NULL);
	struct ibv_mw_bind_info bad[] = {
		part_of(&closed, 0, 4096, IBV_ACCESS_REMOTE_READ),	/* no MW_BIND */
		part_of(&read_only, 0, 4096, IBV_ACCESS_REMOTE_WRITE),	/* not writable */
		part_of(&b, 0, BYTES + 1, IBV_ACCESS_REMOTE_READ),
		part_of(&b, BYTES - 1, 2, IBV_ACCESS_REMOTE_READ),
	};
	struct ibv_send_wr inv = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		end_connect(s, &e);
		post_bind_2(&e, mw, bad[i]);
		expect_status(&e, IBV_WC_MW_BIND_ERR);
		require_equal(end_state(&e), IBV_QPS_ERR);
		require_equal(end_to(&e, IBV_QPS_RESET), 0);
	}
	/* A window that is bound must be invalidated first. */
	end_connect(s, &e);
	bind_2(&e, mw, part_of(&b, 0, 4096, IBV_ACCESS_REMOTE_READ));
	post_bind_2(&e, mw, part_of(&b, 0, 4096, IBV_ACCESS_REMOTE_READ));
	expect_status(&e, IBV_WC_MW_BIND_ERR);
	require_equal(end_to(&e, IBV_QPS_RESET), 0);
	/* Not a window. */
	end_connect(s, &e);
	inv.invalidate_rkey = b.mr->rkey;
	post(&e, inv);
	expect_status(&e, IBV_WC_LOC_QP_OP_ERR);
	barrier(s);
	require_equal(ibv_dealloc_mw(mw), 0);
	end_free(&e);
	buffer_free(s, &read_only);
	buffer_free(s, &closed);
	buffer_free(s, &b);
}

/* A key that is no window's: neither side's message counts. */
static void test_invalidate_nothing(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_BIND);
	struct ibv_mw *mw = window_new(s, IBV_MW_TYPE_2);
	struct ibv_sge sge = sge_of(&b, 0, 500);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		struct ibv_send_wr send = { .wr_id = 6, .sg_list = &sge, .num_sge = 1,
					    .opcode = IBV_WR_SEND_WITH_INV,
					    .send_flags = IBV_SEND_SIGNALED };

		barrier(s);
		send.invalidate_rkey = b.rkey;
		post(&e, send);
		require(wait_wc(e.cq).status != IBV_WC_SUCCESS);
	} else {
		post_receive(&e, 9, &sge, 1);
		barrier(s);
		require(wait_wc(e.cq).status != IBV_WC_SUCCESS);
	}
	barrier(s);
	require_equal(ibv_dealloc_mw(mw), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Domains ------------------------------------------------------------- */

static void test_parent_domain(struct side *s)
{
	struct ibv_parent_domain_init_attr attr = { .pd = s->pd };
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_pd *plain = s->pd;
	struct buffer b;
	struct end e;

	attr.td = ibv_alloc_td(s->ctx, &td_attr);
	if (!attr.td)
		skip("no thread domains");
	s->pd = ibv_alloc_parent_domain(s->ctx, &attr);
	require(s->pd != NULL);
	require_equal(ibv_dealloc_pd(plain), EBUSY);
	require(ibv_dealloc_td(attr.td) != 0);
	e = end_new(s, NULL);
	require_equal(ibv_dealloc_pd(s->pd), EBUSY);
	end_connect(s, &e);
	b = buffer_new(s, BYTES, ACCESS_ALL);
	buffer_swap(s, &b);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, b.rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1)
		check(b.at, 1, 1000, "in a parent domain");
	end_free(&e);
	buffer_free(s, &b);
	require_equal(ibv_dealloc_pd(s->pd), 0);
	require_equal(ibv_dealloc_td(attr.td), 0);
	s->pd = plain;
}

/* Memory of the device, by offsets. */
static void test_device_memory(struct side *s)
{
	struct ibv_alloc_dm_attr attr = { .length = BYTES };
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	struct ibv_device_attr_ex ex;
	unsigned char back[1000];
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint32_t rkey;

	require_equal(ibv_query_device_ex(s->ctx, NULL, &ex), 0);
	dm = ex.max_dm_size >= BYTES ? ibv_alloc_dm(s->ctx, &attr) : NULL;
	if (!dm)
		skip("no device memory");
	require(!ibv_reg_dm_mr(s->pd, dm, 4, BYTES, IBV_ACCESS_ZERO_BASED | ACCESS_ALL));
	require(!ibv_reg_dm_mr(s->pd, dm, 0, BYTES, ACCESS_ALL));
	mr = ibv_reg_dm_mr(s->pd, dm, 4096, 8192, IBV_ACCESS_ZERO_BASED | ACCESS_ALL);
	require(mr != NULL);
	require(ibv_free_dm(dm) != 0);
	end_connect(s, &e);
	rkey = (uint32_t)exchange(s, mr->rkey);
	if (s->me == 0)
		try_write(s, &e, &b, 8192 - 1000, rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1) {
		require_equal(ibv_memcpy_from_dm(back, dm, 4096 + 8192 - 1000, 1000), 0);
		check(back, 1, 1000, "device memory");
		require(ibv_memcpy_from_dm(back, dm, BYTES - 500, 1000) != 0);
		require(ibv_memcpy_to_dm(dm, BYTES, back, 4) != 0);
	}
	barrier(s);
	if (s->me == 0)
		try_write(s, &e, &b, 8192 - 999, rkey, 2, IBV_WC_REM_ACCESS_ERR);
	barrier(s);
	require_equal(ibv_dereg_mr(mr), 0);
	require_equal(ibv_free_dm(dm), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* Memory of another driver: a dma-buf that the kernel makes of a memfd's pages. */
static void test_dmabuf(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), file, dmabuf;
	struct udmabuf_create create = { .size = BYTES };
	unsigned char back[1000];
	struct ibv_mr *mr = NULL;
	uint32_t rkey;
	struct end e;

	if (device < 0)
		skip("/dev/udmabuf: %s", strerror(errno));
	require(!ibv_reg_dmabuf_mr(s->pd, 0, BYTES, 0, s->sock, ACCESS_ALL));	/* no dma-buf */
	file = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	require(file >= 0 && ftruncate(file, BYTES) == 0);
	require_equal(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	create.memfd = (uint32_t)file;
	dmabuf = ioctl(device, UDMABUF_CREATE, &create);
	require(dmabuf >= 0);
	mr = ibv_reg_dmabuf_mr(s->pd, 1000, 8000, 0x5000, dmabuf, ACCESS_ALL);
	if (!mr && (errno == EOPNOTSUPP || errno == ENOSYS))
		skip("the device does not take dma-bufs");
	require(mr != NULL);
	e = end_new(s, NULL);
	end_connect(s, &e);
	rkey = (uint32_t)exchange(s, mr->rkey);
	if (s->me == 0)
		try_write(s, &e, &b, 0x5000 + 7000, rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1) {
		require_equal(pread(file, back, 1000, 8000), 1000);
		check(back, 1, 1000, "the dma-buf");
	}
	barrier(s);
	if (s->me == 0)
		try_write(s, &e, &b, 0x5000 + 7001, rkey, 2, IBV_WC_REM_ACCESS_ERR);
	barrier(s);
	require_equal(ibv_dereg_mr(mr), 0);
	end_free(&e);
	buffer_free(s, &b);
	close(dmabuf);
	close(file);
	close(device);
}

/* A second context of the same file shares its domains and registrations. */
static void test_import(struct side *s)
{
	struct ibv_context *ctx = ibv_import_device(dup(s->ctx->cmd_fd)), *plain = s->ctx;
	struct ibv_pd *pd, *plain_pd = s->pd;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_mr *mr;
	struct end e;

	if (!ctx)
		skip("the device cannot be imported");
	pd = ibv_import_pd(ctx, plain_pd->handle);
	require(pd != NULL);
	mr = ibv_import_mr(pd, b.mr->handle);
	require(mr != NULL);
	require_equal(mr->lkey, b.mr->lkey);
	require_equal(mr->rkey, b.mr->rkey);
	require_equal(mr->length, BYTES);
	s->ctx = ctx;
	s->pd = pd;
	e = end_new(s, NULL);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0)
		try_write(s, &e, &b, b.addr, b.rkey, 1, IBV_WC_SUCCESS);
	barrier(s);
	if (s->me == 1)
		check(b.at, 1, 1000, "by an imported domain");
	end_free(&e);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	require_equal(ibv_close_device(ctx), 0);
	s->ctx = plain;
	s->pd = plain_pd;
	buffer_free(s, &b);
}

const struct test memory_tests[] = {
	{ "rereg_access", test_rereg_access },
	{ "rereg_pd", test_rereg_pd },
	{ "rereg_translation", test_rereg_translation },
	{ "rereg_bad", test_rereg_bad },
	{ "window_type_1", test_window_1 },
	{ "window_type_2", test_window_2 },
	{ "send_with_invalidate", test_send_with_invalidate },
	{ "window_errors", test_window_errors },
	{ "invalidate_nothing", test_invalidate_nothing },
	{ "parent_domain", test_parent_domain },
	{ "device_memory", test_device_memory },
	{ "dmabuf", test_dmabuf },
	{ "import", test_import },
	{ NULL, NULL },
};
