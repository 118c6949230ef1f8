/*
 * attributes.c - the state machine of each type of queue pair: which attributes
 * each transition needs and takes (IBTA 1.5, table 91), query results in each
 * state, and the states in which the send queue does not proceed.
 */
#include <errno.h>
#include <fcntl.h>

#include "conformance.h"

/* ---- Masks --------------------------------------------------------------- */

struct step {
	enum ibv_qp_state to;
	int need, take;
};

enum {
	INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	LATER = IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CUR_STATE,
	RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	ALL = (IBV_QP_DEST_QPN << 1) - 1,
};

static const struct step rc_steps[] = {
	{ IBV_QPS_INIT, INIT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_RTR, RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC, LATER | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, 0, LATER | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_RTS, 0, LATER | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_RESET, 0, 0 },
};
static const struct step uc_steps[] = {
	{ IBV_QPS_INIT, INIT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_RTR, RTR, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTS, IBV_QP_SQ_PSN, LATER },
	{ IBV_QPS_RTS, 0, LATER },
	{ IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_RTS, 0, LATER },
	{ IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_RESET, 0, 0 },
};
static const struct step ud_steps[] = {
	{ IBV_QPS_INIT, INIT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY | IBV_QP_CUR_STATE },
	{ IBV_QPS_RTS, 0, IBV_QP_QKEY | IBV_QP_CUR_STATE },
	{ IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_RTS, 0, IBV_QP_QKEY | IBV_QP_CUR_STATE },
	{ IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_RESET, 0, 0 },
};

/* Values that are right wherever they are taken. */
static struct ibv_qp_attr good(struct side *s, struct end *e, enum ibv_qp_state from,
			       enum ibv_qp_state to)
{
	struct peer_address self = end_address(s, e);
	struct ibv_qp_attr a = {
		.qp_state = to, .cur_qp_state = from, .port_num = (uint8_t)s->port_num,
		.path_mtu = s->port.active_mtu, .dest_qp_num = self.qpn, .qkey = 0x1111,
		.max_dest_rd_atomic = 1, .max_rd_atomic = 1, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = { .dlid = self.lid, .port_num = (uint8_t)s->port_num },
	};

	if (s->gid_index >= 0) {
		a.ah_attr.is_global = 1;
		a.ah_attr.grh.dgid = self.gid;
		a.ah_attr.grh.sgid_index = (uint8_t)s->gid_index;
		a.ah_attr.grh.hop_limit = 64;
	}
	return a;
}

/* Without one that is needed, with one that is not taken: refused, and nothing changes. */
static void try_wrong_masks(struct side *s, struct end *e, enum ibv_qp_state from,
			    const struct step *step)
{
	/* Paths to migrate to, and what only some devices know, are left out. */
	const int odd = IBV_QP_STATE | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP;
	struct ibv_qp_attr a = good(s, e, from, step->to);
	int bit;

	for (bit = 1; bit < ALL; bit <<= 1) {
		int mask = IBV_QP_STATE | step->need;

		if (bit & odd || (bit & step->take))
			continue;
		mask ^= bit;
		if (ibv_modify_qp(e->qp, &a, mask) == 0)
			fail("from state %d to %d: mask 0x%x was taken (0x%x is %s)", from,
			     step->to, mask, bit, mask & bit ? "too much" : "missing");
		require_equal(end_state(e), from);
	}
}

static void walk(struct side *s, enum ibv_qp_type type, const struct step *steps)
{
	struct end_config c = end_defaults;
	enum ibv_qp_state at = IBV_QPS_RESET;
	struct end e;
	int i;

	c.type = type;
	e = end_new(s, &c);
	for (i = 0; i < 8; i++) {
		struct ibv_qp_attr a = good(s, &e, at, steps[i].to);
		int take = steps[i].take & ~(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), rc;

		try_wrong_masks(s, &e, at, &steps[i]);
		rc = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | steps[i].need | take);
		if (rc)
			fail("from state %d to %d with 0x%x: %d", at, steps[i].to,
			     steps[i].need | take, rc);
		at = steps[i].to;
		require_equal(end_state(&e), at);
	}
	end_free(&e);
}

static void test_masks_rc(struct side *s)
{
	walk(s, IBV_QPT_RC, rc_steps);
}

static void test_masks_uc(struct side *s)
{
	walk(s, IBV_QPT_UC, uc_steps);
}

static void test_masks_ud(struct side *s)
{
	walk(s, IBV_QPT_UD, ud_steps);
}

/* Values out of range, each alone. */
static void test_values(struct side *s)
{
	const int rtr = IBV_QP_STATE | RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct end e = end_new(s, NULL);
	struct ibv_qp_attr a;

	require_equal(end_to_init(s, &e), 0);
	a = good(s, &e, IBV_QPS_INIT, IBV_QPS_RTR);
	a.path_mtu = (enum ibv_mtu)0;
	require(ibv_modify_qp(e.qp, &a, rtr) != 0);
	a = good(s, &e, IBV_QPS_INIT, IBV_QPS_RTR);
	a.max_dest_rd_atomic = (uint8_t)(s->dev.max_qp_rd_atom + 1);
	require(s->dev.max_qp_rd_atom > 254 || ibv_modify_qp(e.qp, &a, rtr) != 0);
	a = good(s, &e, IBV_QPS_INIT, IBV_QPS_RTR);
	a.ah_attr.port_num = (uint8_t)(s->dev.phys_port_cnt + 1);
	require(ibv_modify_qp(e.qp, &a, rtr) != 0);
	a = good(s, &e, IBV_QPS_INIT, IBV_QPS_RTR);
	a.pkey_index = s->port.pkey_tbl_len;
	require(ibv_modify_qp(e.qp, &a, rtr | IBV_QP_PKEY_INDEX) != 0);
	require_equal(end_state(&e), IBV_QPS_INIT);
	a = good(s, &e, IBV_QPS_INIT, IBV_QPS_RTR);
	require_equal(ibv_modify_qp(e.qp, &a, rtr), 0);
	end_free(&e);
}

/* ---- Queries ------------------------------------------------------------- */

static struct ibv_qp_attr query(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	require_equal(ibv_query_qp(e->qp, &a, ALL, &init), 0);
	require_equal(init.sq_sig_all, e->config.signal_all);
	require(init.send_cq == e->cq && init.recv_cq == e->cq && !init.srq);
	require_equal(a.cap.max_send_sge, init.cap.max_send_sge);
	return a;
}

/* A partition key has the index where it is found; the function and the inline one agree on a port. */
static void test_port(struct side *s)
{
	struct ibv_port_attr now, old;
	struct _compat_ibv_port_attr *of_old = (struct _compat_ibv_port_attr *)(void *)&old;
	__be16 pkey;

	memset(&old, 0xee, sizeof(old));
	require_equal(ibv_query_pkey(s->ctx, (uint8_t)s->port_num, 0, &pkey), 0);
	require_equal(ibv_get_pkey_index(s->ctx, (uint8_t)s->port_num, pkey), 0);
	require_equal(ibv_get_pkey_index(s->ctx, (uint8_t)s->port_num, (__be16)(pkey ^ 0x5a5a)), -1);
	require_equal(ibv_query_port(s->ctx, (uint8_t)s->port_num, &now), 0);
	require_equal((ibv_query_port)(s->ctx, (uint8_t)s->port_num, of_old), 0);
	/* The old structure is the beginning of the new one. */
	require(!memcmp(&old, &now, offsetof(struct ibv_port_attr, flags)));
}

/* Each attribute is what it was set to, as soon as it was. */
static void test_query_on_the_way(struct side *s)
{
	struct end_config c = end_defaults;
	struct peer_address self;
	struct ibv_qp_attr a;
	struct end e;

	c.signal_all = true;
	c.access = IBV_ACCESS_REMOTE_READ;
	c.min_rnr_timer = 5;
	c.timeout = 9;
	c.retry_cnt = 4;
	c.rnr_retry = 2;
	e = end_new(s, &c);
	self = end_address(s, &e);
	a = query(&e);
	require_equal(a.qp_state, IBV_QPS_RESET);
	require_equal(end_to_init(s, &e), 0);
	a = query(&e);
	require_equal(a.qp_state, IBV_QPS_INIT);
	require_equal(a.port_num, s->port_num);
	require_equal(a.pkey_index, 0);
	require_equal(a.qp_access_flags & ACCESS_ALL, IBV_ACCESS_REMOTE_READ);
	require_equal(end_to_rtr(s, &e, &self), 0);
	a = query(&e);
	require_equal(a.qp_state, IBV_QPS_RTR);
	require_equal(a.rq_psn, 7);
	require_equal(a.dest_qp_num, self.qpn);
	require_equal(a.path_mtu, s->port.active_mtu);
	require_equal(a.min_rnr_timer, 5);
	require_equal(a.max_dest_rd_atomic, 1);
	require_equal(a.ah_attr.is_global, s->gid_index >= 0);
	require_equal(a.ah_attr.port_num, s->port_num);
	if (s->gid_index >= 0) {
		require(memcmp(&a.ah_attr.grh.dgid, &self.gid, sizeof(self.gid)) == 0);
		require_equal(a.ah_attr.grh.sgid_index, s->gid_index);
	}
	require_equal(end_to_rts(&e), 0);
	a = query(&e);
	require_equal(a.qp_state, IBV_QPS_RTS);
	require_equal(a.sq_psn, 7);
	require_equal(a.timeout, 9);
	require_equal(a.retry_cnt, 4);
	require_equal(a.rnr_retry, 2);
	require_equal(a.max_rd_atomic, 1);
	require_equal(a.sq_draining, 0);
	/* Changed in mid-life. */
	a = (struct ibv_qp_attr){ .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .min_rnr_timer = 3 };
	require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER), 0);
	a = query(&e);
	require_equal(a.qp_state, IBV_QPS_RTS);
	require_equal(a.qp_access_flags & ACCESS_ALL, IBV_ACCESS_REMOTE_WRITE);
	require_equal(a.min_rnr_timer, 3);
	require_equal(end_to(&e, IBV_QPS_ERR), 0);
	require_equal(query(&e).qp_state, IBV_QPS_ERR);
	require_equal(end_to(&e, IBV_QPS_RESET), 0);
	require_equal(query(&e).qp_state, IBV_QPS_RESET);
	end_free(&e);
}

/* What is changed in RTS holds for the messages that come after. */
static void test_access_changed(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_SUCCESS);
	}
	barrier(s);
	if (s->me == 1) {
		struct ibv_qp_attr a = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };

		require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_ACCESS_FLAGS), 0);
	}
	barrier(s);
	if (s->me == 0) {
		struct ibv_send_wr wr = write_wr(&b, &sge, 2);

		wr.opcode = IBV_WR_RDMA_READ;
		post(&e, wr);
		expect(e.cq, 2, IBV_WC_SUCCESS);
		post(&e, write_wr(&b, &sge, 3));
		expect(e.cq, 3, IBV_WC_REM_INV_REQ_ERR);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Send queue drained -------------------------------------------------- */

static int to_sqd(struct end *e, bool notify)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify };

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static bool take_drained(struct side *s, struct end *e, int timeout_ms)
{
	struct ibv_async_event event;

	if (!readable(s->ctx->async_fd, timeout_ms))
		return false;
	require_equal(ibv_get_async_event(s->ctx, &event), 0);
	require_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	require(event.element.qp == e->qp);
	ibv_ack_async_event(&event);
	return true;
}

/* Nothing was on its way: drained at once. */
static void test_sqd_idle(struct side *s)
{
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	require_equal(to_sqd(&e, true), 0);
	require(take_drained(s, &e, patience_ms()));
	require_equal(query(&e).sq_draining, 0);
	require_equal(end_to(&e, IBV_QPS_RTS), 0);
	require_equal(to_sqd(&e, false), 0);
	require(!take_drained(s, &e, 20));
	barrier(s);
	end_free(&e);
}

/*
 * A message that the receiver is not ready for was begun: it is drained when it
 * has arrived.  What is posted behind waits for RTS.
 */
static void test_sqd_drains(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	if (s->me == 0) {
		post(&e, send_wr(&sge, 1));
		expect_nothing(e.cq, 20);
		require_equal(to_sqd(&e, true), 0);
		require_equal(query(&e).sq_draining, 1);
		post(&e, send_wr(&sge, 2));
		expect_nothing(e.cq, 20);
		require(!take_drained(s, &e, 0));
		barrier(s);
		expect(e.cq, 1, IBV_WC_SUCCESS);
		require(take_drained(s, &e, patience_ms()));
		require_equal(query(&e).sq_draining, 0);
		expect_nothing(e.cq, 20);
		barrier(s);
		require_equal(end_to(&e, IBV_QPS_RTS), 0);
		expect(e.cq, 2, IBV_WC_SUCCESS);
	} else {
		barrier(s);
		post_receive(&e, 1, &sge, 1);
		post_receive(&e, 2, &sge, 1);
		expect(e.cq, 1, IBV_WC_SUCCESS);
		expect_nothing(e.cq, 20);
		barrier(s);
		expect(e.cq, 2, IBV_WC_SUCCESS);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* Posted while drained, and then the error state: flushed. */
static void test_sqd_flush(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	require_equal(to_sqd(&e, false), 0);
	post(&e, send_wr(&sge, 1));
	post(&e, send_wr(&sge, 2));
	require_equal(end_to(&e, IBV_QPS_ERR), 0);
	expect(e.cq, 1, IBV_WC_WR_FLUSH_ERR);
	expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* The receive side goes on meanwhile. */
static void test_sqd_receives(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	post_receive(&e, 1, &sge, 1);
	if (s->me == 1)
		require_equal(to_sqd(&e, false), 0);
	barrier(s);
	if (s->me == 0) {
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 2, IBV_WC_SUCCESS);
	} else {
		expect(e.cq, 1, IBV_WC_SUCCESS);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

const struct test attribute_tests[] = {
	{ "masks_rc", test_masks_rc },
	{ "masks_uc", test_masks_uc },
	{ "masks_ud", test_masks_ud },
	{ "values", test_values },
	{ "port", test_port },
	{ "query_on_the_way", test_query_on_the_way },
	{ "access_changed", test_access_changed },
	{ "sqd_idle", test_sqd_idle },
	{ "sqd_drains", test_sqd_drains },
	{ "sqd_flush", test_sqd_flush },
	{ "sqd_receives", test_sqd_receives },
	{ NULL, NULL },
};
