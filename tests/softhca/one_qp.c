/* one_qp.c - see one_qp.h. */
#include "one_qp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "virtual.h"

/* ---- A queue pair ---------------------------------------------------------- */

static const struct ibv_qp_attr usual = {
	.port_num = 1, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 4, .max_rd_atomic = 4,
	.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1, .qkey = 7,
};

int to_init(struct one *o)
{
	struct ibv_qp_attr a = o->attr;

	a.qp_state = IBV_QPS_INIT;
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	return ibv_modify_qp(o->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (o->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int to_rtr(struct one *o)
{
	struct ibv_qp_attr a = o->attr;
	int mask = IBV_QP_STATE;

	a.qp_state = IBV_QPS_RTR;
	a.dest_qp_num = o->qp->qp_num;
	a.ah_attr = (struct ibv_ah_attr){ .dlid = 1, .port_num = 1 };
	if (o->qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (o->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(o->qp, &a, mask);
}

int to_rts(struct one *o)
{
	struct ibv_qp_attr a = o->attr;
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	a.qp_state = IBV_QPS_RTS;
	if (o->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(o->qp, &a, mask);
}

void connect_again(struct one *o)
{
	assert_int_equal(to_init(o), 0);
	assert_int_equal(to_rtr(o), 0);
	assert_int_equal(to_rts(o), 0);
}

void make_qp(struct one *o, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .qp_type = type, .send_cq = o->cq, .recv_cq = o->cq,
		.sq_sig_all = 1, .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
					  .max_send_sge = 2, .max_recv_sge = 1,
					  .max_inline_data = INLINE } };

	o->qp = ibv_create_qp(o->pd, &init);
	assert_non_null(o->qp);
}

void open_fabric(struct one *o)
{
	char name[32];
	struct softhca_config a = { .fabric = name, .spec = "" };

	snprintf(name, sizeof(name), "link.%d", (int)getpid());
	virtual_begin(&(struct virtual_config){ .seed = 1 });
	memset(o, 0, sizeof(*o));
	o->attr = usual;
	o->list = softhca_get_device_list(&a, NULL);
	assert_non_null(o->list);
	o->c = ibv_open_device(o->list[0]);
	assert_non_null(o->c);
}

void make_objects(struct one *o)
{
	o->pd = ibv_alloc_pd(o->c);
	o->cq = ibv_create_cq(o->c, 4 * DEPTH, NULL, NULL, 0);
	o->mr = ibv_reg_mr(o->pd, o->data, sizeof(o->data),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(o->mr);
}

void one_make(struct one *o, enum ibv_qp_type type)
{
	open_fabric(o);
	fake_install(hca_context_of(o->c)->fabric, true);
	make_objects(o);
	make_qp(o, type);
}

void one_begin(struct one *o, enum ibv_qp_type type)
{
	struct ibv_ah_attr to = { .dlid = 1, .port_num = 1 };

	one_make(o, type);
	connect_again(o);
	if (type == IBV_QPT_UD)
		o->ah = ibv_create_ah(o->pd, &to);
}

void one_end(struct one *o)
{
	if (o->ah)
		assert_int_equal(ibv_destroy_ah(o->ah), 0);
	if (o->qp)
		assert_int_equal(ibv_destroy_qp(o->qp), 0);
	assert_int_equal(ibv_dereg_mr(o->mr), 0);
	assert_int_equal(ibv_destroy_cq(o->cq), 0);
	assert_int_equal(ibv_dealloc_pd(o->pd), 0);
	assert_int_equal(fake.made, fake.freed);
	assert_int_equal(ibv_close_device(o->c), 0);
	ibv_free_device_list(o->list);
	fake_remove();
}

/* ---- Requests and completions ---------------------------------------------- */

int try_post(struct one *o, enum ibv_wr_opcode op, uint64_t id, unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)o->data, 8, o->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .opcode = op, .sg_list = &sge, .num_sge = 1,
				  .send_flags = flags }, *bad;

	if (o->ah) {
		wr.wr.ud.ah = o->ah;
		wr.wr.ud.remote_qpn = o->qp->qp_num;
		wr.wr.ud.remote_qkey = 7;
	}
	return ibv_post_send(o->qp, &wr, &bad);
}

void post(struct one *o, enum ibv_wr_opcode op, uint64_t id, unsigned flags)
{
	assert_int_equal(try_post(o, op, id, flags), 0);
}

void post_sends(struct one *o, uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		post(o, IBV_WR_SEND, from, 0);
}

void turn(struct one *o)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(o->cq, 0, &wc), 0);
}

void tell(struct one *o, enum fake_what what, int value)
{
	fake_tell(o->qp, what, value);
	turn(o);
}

void expect(struct one *o, uint64_t id, int status)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(o->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
}

void expect_range(struct one *o, uint64_t from, uint64_t to, int status)
{
	for (; from <= to; from++)
		expect(o, from, status);
}

void expect_none(struct one *o)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(o->cq, 1, &wc), 0);
}

void expect_state(struct one *o, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(o->qp, &a, IBV_QP_STATE, &init), 0);
	assert_int_equal(a.qp_state, state);
}

bool event_is_there(struct one *o, struct ibv_async_event *e)
{
	return ibv_get_async_event(o->c, e) == 0;
}

void expect_event(struct one *o, enum ibv_event_type type)
{
	struct ibv_async_event e;

	assert_true(event_is_there(o, &e));
	assert_int_equal(e.event_type, type);
	ibv_ack_async_event(&e);
}

unsigned handed_are(unsigned at, uint64_t from, uint64_t to)
{
	assert_int_equal(fake.handed_count - at, to - from + 1);
	for (; from <= to; from++)
		assert_int_equal(fake.handed[at++].wr_id, from);
	return at;
}
