/*
 * test_link.c - the engine over a link that says later what became of its requests: order, fences,
 * retries, flush, states.  Time is a number here (tests/virtual): nothing happens between two calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "fake_link.h"
#include "softhca/object/device.h"
#include "softhca/object/query.h"
#include "softhca/softhca.h"
#include "util/clock.h"
#include "virtual.h"

#define MS 1000000ull
#define S 1000000000ull

enum { DEPTH = 16, CHUNK = 64, INLINE = 512 };

static char fabric_name[32];

/* ---- A host of another rail ------------------------------------------------ */

static uint32_t routed;			/* in place of the address; 0: none */

int __real_hca_route(const struct hca_fabric *f, const struct ibv_ah_attr *ah, uint32_t *address);
int __wrap_hca_route(const struct hca_fabric *f, const struct ibv_ah_attr *ah, uint32_t *address);
int __wrap_hca_route(const struct hca_fabric *f, const struct ibv_ah_attr *ah, uint32_t *address)
{
	int rc = __real_hca_route(f, ah, address);

	if (!rc && routed)
		*address = routed;
	return rc;
}

/* ---- A queue pair ---------------------------------------------------------- */

struct one {
	struct ibv_device **list;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_qp_attr attr;	/* of its connection */
	unsigned char data[4096];
};

static struct hca_qp *hca(const struct one *o)
{
	return hca_qp_of(o->qp);
}

static const struct ibv_qp_attr usual = {
	.port_num = 1, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 4, .max_rd_atomic = 4,
	.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1, .qkey = 7,
};

static int to_init(struct one *o)
{
	struct ibv_qp_attr a = o->attr;

	a.qp_state = IBV_QPS_INIT;
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	return ibv_modify_qp(o->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (o->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int to_rtr(struct one *o)
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

static int to_rts(struct one *o)
{
	struct ibv_qp_attr a = o->attr;
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	a.qp_state = IBV_QPS_RTS;
	if (o->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(o->qp, &a, mask);
}

static void connect_again(struct one *o)
{
	assert_int_equal(to_init(o), 0);
	assert_int_equal(to_rtr(o), 0);
	assert_int_equal(to_rts(o), 0);
}

static void make_qp(struct one *o, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .qp_type = type, .send_cq = o->cq, .recv_cq = o->cq,
		.sq_sig_all = 1, .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
					  .max_send_sge = 2, .max_recv_sge = 1,
					  .max_inline_data = INLINE } };

	o->qp = ibv_create_qp(o->pd, &init);
	assert_non_null(o->qp);
}

static void open_fabric(struct one *o)
{
	struct softhca_config a = { .fabric = fabric_name, .spec = "" };

	virtual_begin(&(struct virtual_config){ .seed = 1 });
	memset(o, 0, sizeof(*o));
	o->attr = usual;
	o->list = softhca_get_device_list(&a, NULL);
	assert_non_null(o->list);
	o->c = ibv_open_device(o->list[0]);
	assert_non_null(o->c);
}

static void make_objects(struct one *o)
{
	o->pd = ibv_alloc_pd(o->c);
	o->cq = ibv_create_cq(o->c, 4 * DEPTH, NULL, NULL, 0);
	o->mr = ibv_reg_mr(o->pd, o->data, sizeof(o->data),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(o->mr);
}

static void begin(struct one *o, enum ibv_qp_type type)
{
	struct ibv_ah_attr to = { .dlid = 1, .port_num = 1 };

	open_fabric(o);
	fake_install(hca_context_of(o->c)->fabric, true);
	make_objects(o);
	make_qp(o, type);
	connect_again(o);
	if (type == IBV_QPT_UD)
		o->ah = ibv_create_ah(o->pd, &to);
}

static void end(struct one *o)
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

static int try_post(struct one *o, enum ibv_wr_opcode op, uint64_t id, unsigned flags)
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

static void post(struct one *o, enum ibv_wr_opcode op, uint64_t id, unsigned flags)
{
	assert_int_equal(try_post(o, op, id, flags), 0);
}

static void post_sends(struct one *o, uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		post(o, IBV_WR_SEND, from, 0);
}

/* Let the engine and the link have a turn. */
static void turn(struct one *o)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(o->cq, 0, &wc), 0);
}

static void tell(struct one *o, enum fake_what what, int value)
{
	fake_tell(o->qp, what, value);
	turn(o);
}

static void expect(struct one *o, uint64_t id, int status)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(o->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
}

static void expect_range(struct one *o, uint64_t from, uint64_t to, int status)
{
	for (; from <= to; from++)
		expect(o, from, status);
}

static void expect_none(struct one *o)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(o->cq, 1, &wc), 0);
}

static void expect_state(struct one *o, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(o->qp, &a, IBV_QP_STATE, &init), 0);
	assert_int_equal(a.qp_state, state);
}

static bool event_is_there(struct one *o, struct ibv_async_event *e)
{
	return ibv_get_async_event(o->c, e) == 0;
}

static void expect_event(struct one *o, enum ibv_event_type type)
{
	struct ibv_async_event e;

	assert_true(event_is_there(o, &e));
	assert_int_equal(e.event_type, type);
	ibv_ack_async_event(&e);
}

/* The requests from handed[at] on are these; returns the number of all. */
static unsigned handed_are(unsigned at, uint64_t from, uint64_t to)
{
	assert_int_equal(fake.handed_count - at, to - from + 1);
	for (; from <= to; from++)
		assert_int_equal(fake.handed[at++].wr_id, from);
	return at;
}

/* ---- The link of a queue pair ----------------------------------------------- */

static void test_chosen(void **state)
{
	struct hca_fabric *f;
	struct one o;

	open_fabric(&o);
	make_objects(&o);
	f = hca_context_of(o.c)->fabric;
	routed = HCA_ADDRESS_REMOTE;
	make_qp(&o, IBV_QPT_RC);
	assert_int_equal(to_init(&o), 0);
	assert_int_equal(to_rtr(&o), EHOSTUNREACH);	/* no wire */
	assert_int_equal(ibv_destroy_qp(o.qp), 0);

	fake_install(f, false);
	make_qp(&o, IBV_QPT_RC);
	assert_ptr_equal(hca(&o)->link, f->link);
	assert_int_equal(to_init(&o), 0);
	fake.connect_error = ENOTCONN;
	assert_int_equal(to_rtr(&o), ENOTCONN);
	expect_state(&o, IBV_QPS_INIT);
	assert_ptr_equal(hca(&o)->link, f->link);
	fake.connect_error = 0;
	assert_int_equal(to_rtr(&o), 0);
	assert_int_equal(to_rts(&o), 0);
	assert_ptr_equal(hca(&o)->link, f->wire);
	/* A namesake of this host cannot send to it. */
	assert_int_equal(atomic_load(&hca(&o)->shm->accept), 0);
	post(&o, IBV_WR_RDMA_WRITE, 1, IBV_SEND_INLINE);
	handed_are(0, 1, 1);
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	assert_ptr_equal(hca(&o)->link, f->link);

	/* The same queue pair, to an address of this host. */
	routed = 0;
	connect_again(&o);
	assert_ptr_equal(hca(&o)->link, f->link);
	assert_true(atomic_load(&hca(&o)->shm->accept) != 0);
	assert_int_equal(fake.connected, 2);
	end(&o);
	(void)state;
}

/* By the memory link while there is a wire: all is done at once. */
static void test_beside(void **state)
{
	struct ibv_recv_wr recv = { .wr_id = 7 }, *bad;
	struct ibv_sge sge;
	struct one o;

	(void)state;
	open_fabric(&o);
	fake_install(hca_context_of(o.c)->fabric, false);
	make_objects(&o);
	make_qp(&o, IBV_QPT_RC);
	connect_again(&o);
	sge = (struct ibv_sge){ (uintptr_t)o.data + 64, 8, o.mr->lkey };
	recv.sg_list = &sge;
	recv.num_sge = 1;
	memcpy(o.data, "of memory", 8);
	post_sends(&o, 1, 1);			/* it waits for a receive */
	expect_none(&o);
	assert_int_equal(ibv_post_recv(o.qp, &recv, &bad), 0);
	expect(&o, 1, IBV_WC_SUCCESS);
	expect(&o, 7, IBV_WC_SUCCESS);
	assert_memory_equal(o.data + 64, "of memor", 8);
	assert_true(hca(&o)->fast);
	assert_int_equal(fake.handed_count, 0);
	assert_true(fake.progressed > 0);
	end(&o);
}

static void test_datagram_links(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_UD);
	assert_ptr_equal(hca(&o)->link, hca(&o)->fabric->wire);
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	assert_ptr_equal(hca(&o)->link, hca(&o)->fabric->wire);
	end(&o);
}

/* What has no queue pair. */
static void test_both_asked(void **state)
{
	struct ibv_mr *mr;
	unsigned before;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	before = fake.published;
	mr = ibv_reg_mr(o.pd, o.data, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_true(fake.published > before);
	before = fake.quiesced;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_true(fake.quiesced > before && fake.withdrawn > 0);
	before = fake.looked;
	rg_sleep_ns(20 * MS);
	for (int i = 0; i < 200; i++)
		turn(&o);
	assert_true(fake.looked > before);
	end(&o);
}

/* ---- Order ------------------------------------------------------------------- */

static void test_order(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	post_sends(&o, 1, 5);
	handed_are(0, 1, 5);
	expect_none(&o);
	assert_int_equal(hca(&o)->sq.under_way, 5);
	tell(&o, FAKE_ENDED, 2);
	expect_range(&o, 1, 2, IBV_WC_SUCCESS);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 3);
	expect_range(&o, 3, 5, IBV_WC_SUCCESS);
	assert_int_equal(hca(&o)->sq.under_way, 0);
	assert_false(hca(&o)->fast);
	end(&o);
}

/* A slot is free when its completion has been polled, and not before. */
static void test_slots(void **state)
{
	uint64_t id;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	post_sends(&o, 1, DEPTH);
	assert_int_equal(try_post(&o, IBV_WR_SEND, 99, 0), ENOMEM);
	tell(&o, FAKE_ENDED, DEPTH);
	assert_int_equal(try_post(&o, IBV_WR_SEND, 99, 0), ENOMEM);
	expect(&o, 1, IBV_WC_SUCCESS);
	for (id = DEPTH + 1; id < 10 * DEPTH; id++) {
		post(&o, IBV_WR_SEND, id, 0);
		assert_int_equal(try_post(&o, IBV_WR_SEND, 99, 0), ENOMEM);
		tell(&o, FAKE_ENDED, 1);
		expect(&o, id - DEPTH + 1, IBV_WC_SUCCESS);
	}
	end(&o);
}

static void fill(unsigned char *bytes, uint64_t id, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		bytes[i] = (unsigned char)(id * 131 + i);
}

/* Every request under way has its own bytes, though the program has changed its buffer. */
static void check_inline(const struct one *o, unsigned ended)
{
	unsigned char right[INLINE];
	const struct ibv_send_wr *wr;
	unsigned i;

	(void)o;
	for (i = ended; i < fake.handed_count; i++) {
		wr = fake.handed[i].wr;
		assert_int_equal(wr->wr_id, fake.handed[i].wr_id);
		assert_int_equal(wr->num_sge, 1);
		fill(right, wr->wr_id, fake.handed[i].bytes);
		assert_memory_equal((void *)(uintptr_t)wr->sg_list->addr, right,
				    fake.handed[i].bytes);
	}
}

static void test_inline(void **state)
{
	unsigned ended = 0, bytes;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE }, *bad;
	struct ibv_sge sge[2];
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	for (wr.wr_id = 0; wr.wr_id < 600; wr.wr_id++) {
		bytes = 2 + (unsigned)(wr.wr_id * 37 % (INLINE - 1));
		fill(o.data, wr.wr_id, bytes);
		sge[0] = (struct ibv_sge){ (uintptr_t)o.data, bytes / 2, 0 };
		sge[1] = (struct ibv_sge){ (uintptr_t)o.data + bytes / 2, bytes - bytes / 2, 0 };
		wr.sg_list = sge;
		wr.num_sge = 2;
		assert_int_equal(ibv_post_send(o.qp, &wr, &bad), 0);
		memset(o.data, 0, sizeof(o.data));
		check_inline(&o, ended);
		if (hca(&o)->sq.under_way < DEPTH - wr.wr_id % 5)
			continue;
		tell(&o, FAKE_ENDED, 3);
		expect_range(&o, ended, ended + 2, IBV_WC_SUCCESS);
		ended += 3;
		check_inline(&o, ended);
	}
	end(&o);
}

static void test_fence(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	post(&o, IBV_WR_RDMA_READ, 1, 0);
	post(&o, IBV_WR_RDMA_WRITE, 2, 0);
	post(&o, IBV_WR_SEND, 3, IBV_SEND_FENCE);
	post(&o, IBV_WR_RDMA_WRITE, 4, 0);
	handed_are(0, 1, 2);
	tell(&o, FAKE_ENDED, 1);
	handed_are(0, 1, 4);
	/* Writes under way do not hold a fence up. */
	post(&o, IBV_WR_SEND, 5, IBV_SEND_FENCE);
	handed_are(0, 1, 5);
	tell(&o, FAKE_ENDED, 4);
	expect_range(&o, 1, 5, IBV_WC_SUCCESS);
	end(&o);
}

static void test_max_rd_atomic(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	post(&o, IBV_WR_RDMA_READ, 1, 0);
	post(&o, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
	post(&o, IBV_WR_RDMA_READ, 3, 0);
	post(&o, IBV_WR_SEND, 4, 0);
	post(&o, IBV_WR_ATOMIC_CMP_AND_SWP, 5, 0);
	post(&o, IBV_WR_RDMA_READ, 6, 0);
	post(&o, IBV_WR_SEND, 7, 0);
	handed_are(0, 1, 5);
	assert_int_equal(hca(&o)->sq.answers, 4);
	tell(&o, FAKE_ENDED, 1);
	handed_are(0, 1, 7);
	tell(&o, FAKE_ENDED, 6);
	assert_int_equal(hca(&o)->sq.answers, 0);
	expect_range(&o, 1, 7, IBV_WC_SUCCESS);
	end(&o);
}

/* A window is bound when all before it have ended. */
static void test_local(void **state)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_mw *mw;
	uint32_t key;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	mw = ibv_alloc_mw(o.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	key = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = key;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ o.mr, (uintptr_t)o.data, 64,
							  IBV_ACCESS_REMOTE_WRITE };
	post_sends(&o, 1, 1);
	assert_int_equal(ibv_post_send(o.qp, &wr, &bad), 0);
	post_sends(&o, 3, 3);
	handed_are(0, 1, 1);
	tell(&o, FAKE_ENDED, 1);
	expect_range(&o, 1, 2, IBV_WC_SUCCESS);
	handed_are(1, 3, 3);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 3, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	end(&o);
}

/* ---- Errors --------------------------------------------------------------------- */

/* An error of this side comes in its order, too. */
static void test_local_error(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	fake_answer(1, HCA_UNDERWAY);
	fake_answer(3, IBV_WC_LOC_PROT_ERR);
	post_sends(&o, 1, 3);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 1, IBV_WC_SUCCESS);
	expect(&o, 2, IBV_WC_LOC_PROT_ERR);
	expect(&o, 3, IBV_WC_WR_FLUSH_ERR);
	expect_state(&o, IBV_QPS_ERR);
	assert_int_equal(fake.stopped, 1);
	end(&o);
}

/* What the link is not asked: READs without a depth for them. */
static void test_no_depth(void **state)
{
	struct one o;

	(void)state;
	open_fabric(&o);
	fake_install(hca_context_of(o.c)->fabric, true);
	make_objects(&o);
	make_qp(&o, IBV_QPT_RC);
	o.attr.max_rd_atomic = 0;
	connect_again(&o);
	post_sends(&o, 1, 1);
	post(&o, IBV_WR_RDMA_READ, 2, 0);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 1, IBV_WC_SUCCESS);
	expect(&o, 2, IBV_WC_LOC_QP_OP_ERR);
	handed_are(0, 1, 1);
	end(&o);
}

static void post_receive(struct one *o, uint64_t id)
{
	struct ibv_recv_wr recv = { .wr_id = id }, *bad;

	assert_int_equal(ibv_post_recv(o->qp, &recv, &bad), 0);
}

/* Under way and queued: all are flushed, in order. */
static void test_failed(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	post_receive(&o, 50);
	post(&o, IBV_WR_RDMA_WRITE, 1, 0);
	post(&o, IBV_WR_RDMA_READ, 2, 0);
	post(&o, IBV_WR_RDMA_WRITE, 3, 0);
	post(&o, IBV_WR_SEND, 4, IBV_SEND_FENCE);
	post(&o, IBV_WR_SEND, 5, IBV_SEND_INLINE);
	handed_are(0, 1, 3);
	fake_tell(o.qp, FAKE_ENDED, 1);
	tell(&o, FAKE_FAILED, IBV_WC_REM_ACCESS_ERR);
	expect(&o, 1, IBV_WC_SUCCESS);
	expect(&o, 2, IBV_WC_REM_ACCESS_ERR);
	expect_range(&o, 3, 5, IBV_WC_WR_FLUSH_ERR);
	expect(&o, 50, IBV_WC_WR_FLUSH_ERR);
	expect_none(&o);
	expect_state(&o, IBV_QPS_ERR);
	assert_int_equal(fake.stopped, 1);
	assert_int_equal(hca(&o)->sq.answers, 0);
	handed_are(0, 1, 3);
	post_sends(&o, 6, 6);
	expect(&o, 6, IBV_WC_WR_FLUSH_ERR);
	handed_are(0, 1, 3);
	end(&o);
}

/* The program itself asks for the error state. */
static void test_to_error(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	post_sends(&o, 1, 4);
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR },
				       IBV_QP_STATE), 0);
	expect_range(&o, 1, 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(fake.stopped, 1);
	end(&o);
}

static void test_lost(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	assert_int_equal(fcntl(o.c->async_fd, F_SETFL, O_NONBLOCK), 0);
	post_sends(&o, 1, 3);
	tell(&o, FAKE_LOST, 0);
	expect(&o, 1, IBV_WC_RETRY_EXC_ERR);
	expect_range(&o, 2, 3, IBV_WC_WR_FLUSH_ERR);
	expect_state(&o, IBV_QPS_ERR);
	assert_false(event_is_there(&o, &(struct ibv_async_event){ 0 }));
	/* Without a request an event says it. */
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	connect_again(&o);
	tell(&o, FAKE_LOST, 0);
	expect_event(&o, IBV_EVENT_QP_FATAL);
	expect_state(&o, IBV_QPS_ERR);
	end(&o);
}

/* ---- Retries ---------------------------------------------------------------------- */

enum { RNR_CODE = 14, RNR_NS = 1280000 };	/* IBTA's table: 1.28 ms */

static void test_rnr(void **state)
{
	unsigned handed = 2, i;
	struct one o;

	(void)state;
	open_fabric(&o);
	fake_install(hca_context_of(o.c)->fabric, true);
	make_objects(&o);
	make_qp(&o, IBV_QPT_RC);
	o.attr.rnr_retry = 3;
	connect_again(&o);
	fake.rnr_timer = RNR_CODE;
	post_sends(&o, 1, 2);
	for (i = 0; i < 3; i++) {
		/* The answers may take longer than the timer: each ends one try. */
		rg_sleep_ns(i == 1 ? 20 * RNR_NS : 0);
		tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
		rg_sleep_ns(RNR_NS - 1);
		turn(&o);
		assert_int_equal(fake.handed_count, handed);
		post(&o, IBV_WR_SEND, 3 + i, 0);	/* it waits behind them */
		assert_int_equal(fake.handed_count, handed);
		rg_sleep_ns(1);
		turn(&o);
		handed = handed_are(handed, 1, 3 + i);
	}
	expect_none(&o);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	expect(&o, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_range(&o, 2, 5, IBV_WC_WR_FLUSH_ERR);
	expect_state(&o, IBV_QPS_ERR);
	end(&o);
}

/* Each request has tries of its own. */
static void test_rnr_again(void **state)
{
	unsigned i;
	struct one o;

	(void)state;
	open_fabric(&o);
	fake_install(hca_context_of(o.c)->fabric, true);
	make_objects(&o);
	make_qp(&o, IBV_QPT_RC);
	o.attr.rnr_retry = 1;
	connect_again(&o);
	fake.rnr_timer = RNR_CODE;
	for (i = 1; i <= 5; i++) {
		post_sends(&o, i, i);
		tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
		rg_sleep_ns(RNR_NS);
		tell(&o, FAKE_ENDED, 0);
		assert_int_equal(fake.handed_count, 2 * i);
		tell(&o, FAKE_ENDED, 1);
		expect(&o, i, IBV_WC_SUCCESS);
	}
	end(&o);
}

static void test_rnr_limits(void **state)
{
	unsigned i;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);			/* 7: for ever */
	fake.rnr_timer = RNR_CODE;
	post_sends(&o, 1, 1);
	for (i = 0; i < 100; i++) {
		tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
		assert_int_equal(fake.handed_count, i + 1);
		rg_sleep_ns(RNR_NS);
		turn(&o);
		assert_int_equal(fake.handed_count, i + 2);
	}
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	o.attr.rnr_retry = 0;
	connect_again(&o);
	post_sends(&o, 2, 2);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	expect(&o, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	end(&o);
}

/* The time until the request has failed; 0: it has not within a minute. */
static uint64_t time_to_fail(struct one *o, bool by_transfer)
{
	uint64_t began = rg_now_ns();
	struct ibv_wc wc;
	unsigned seen = 0;

	while (rg_now_ns() - began < 60 * S) {
		if (!by_transfer && fake.handed_count > seen)
			tell(o, FAKE_REWOUND, HCA_NO_PEER);
		seen = fake.handed_count;
		if (ibv_poll_cq(o->cq, 1, &wc)) {
			assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
			return rg_now_ns() - began;
		}
		rg_sleep_ns(MS);
	}
	return 0;
}

/* A peer that cannot be reached: the verbs' timeouts, 5 s at least. */
static void test_no_peer(void **state)
{
	static const struct {
		uint8_t timeout, retry_cnt;
		uint64_t ns;
	} cases[] = { { 14, 1, 5 * S }, { 10, 7, 5 * S }, { 22, 1, (2 * 4096ull) << 22 },
		      { 0, 7, 0 } };
	bool by_transfer;
	uint64_t took;
	unsigned i;
	struct one o;

	(void)state;
	for (i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		by_transfer = i & 1;
		open_fabric(&o);
		fake_install(hca_context_of(o.c)->fabric, true);
		make_objects(&o);
		make_qp(&o, IBV_QPT_RC);
		o.attr.timeout = cases[i / 2].timeout;
		o.attr.retry_cnt = cases[i / 2].retry_cnt;
		connect_again(&o);
		fake.usual = by_transfer ? HCA_NO_PEER : HCA_UNDERWAY;
		post_sends(&o, 1, 1);
		took = time_to_fail(&o, by_transfer);
		if (!cases[i / 2].ns)
			assert_int_equal(took, 0);
		else
			assert_in_range(took, cases[i / 2].ns, cases[i / 2].ns + 20 * MS);
		/* Tries are 10 ms apart. */
		assert_in_range(fake.handed_count, 300, 6100);
		end(&o);
	}
}

/* All go back, answers that were asked for included. */
static void test_rewound(void **state)
{
	unsigned i;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	fake.rnr_timer = RNR_CODE;
	for (i = 1; i <= 4; i++)
		post(&o, IBV_WR_RDMA_READ, i, 0);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	assert_int_equal(hca(&o)->sq.under_way, 0);
	rg_sleep_ns(RNR_NS);
	turn(&o);
	handed_are(4, 1, 4);
	assert_int_equal(hca(&o)->sq.answers, 4);
	tell(&o, FAKE_ENDED, 4);
	expect_range(&o, 1, 4, IBV_WC_SUCCESS);
	/* Nothing is under way: nothing has failed to arrive. */
	fake_answer(1, HCA_LATER);
	post_sends(&o, 5, 5);
	tell(&o, FAKE_REWOUND, HCA_NO_PEER);
	handed_are(9, 5, 5);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 5, IBV_WC_SUCCESS);
	end(&o);
}

static void test_later(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	fake_answer(2, HCA_UNDERWAY);
	fake_answer(1, HCA_LATER);
	post_sends(&o, 1, 4);
	handed_are(0, 1, 3);
	turn(&o);
	tell(&o, FAKE_ENDED, 1);
	assert_int_equal(fake.handed_count, 3);
	expect(&o, 1, IBV_WC_SUCCESS);
	tell(&o, FAKE_RESUME, 0);
	handed_are(3, 3, 4);
	tell(&o, FAKE_ENDED, 3);
	expect_range(&o, 2, 4, IBV_WC_SUCCESS);
	end(&o);
}

/* ---- States ------------------------------------------------------------------------- */

static int drain(struct one *o)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	return ibv_modify_qp(o->qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static bool is_draining(struct one *o)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(o->qp, &a, IBV_QP_STATE, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_SQD);
	return a.sq_draining;
}

static void resume_sending(struct one *o)
{
	assert_int_equal(ibv_modify_qp(o->qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
				       IBV_QP_STATE), 0);
}

static void test_drained(void **state)
{
	struct ibv_async_event e;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	assert_int_equal(fcntl(o.c->async_fd, F_SETFL, O_NONBLOCK), 0);
	post(&o, IBV_WR_RDMA_READ, 1, 0);
	post(&o, IBV_WR_SEND, 2, 0);
	post(&o, IBV_WR_SEND, 3, IBV_SEND_FENCE);
	assert_int_equal(drain(&o), 0);
	post_sends(&o, 4, 4);
	handed_are(0, 1, 2);
	tell(&o, FAKE_ENDED, 1);
	assert_true(is_draining(&o));
	assert_false(event_is_there(&o, &e));
	tell(&o, FAKE_ENDED, 1);
	handed_are(0, 1, 2);
	expect_event(&o, IBV_EVENT_SQ_DRAINED);
	assert_false(is_draining(&o));
	resume_sending(&o);
	handed_are(0, 1, 4);
	tell(&o, FAKE_ENDED, 2);
	expect_range(&o, 1, 4, IBV_WC_SUCCESS);
	assert_int_equal(drain(&o), 0);		/* nothing to wait for */
	expect_event(&o, IBV_EVENT_SQ_DRAINED);
	end(&o);
}

/* What was under way when the state was entered ends, tries included; nothing else begins. */
static void test_drained_after_rnr(void **state)
{
	struct ibv_async_event e;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	assert_int_equal(fcntl(o.c->async_fd, F_SETFL, O_NONBLOCK), 0);
	fake.rnr_timer = RNR_CODE;
	post_sends(&o, 1, 2);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	post_sends(&o, 3, 3);
	assert_int_equal(drain(&o), 0);
	turn(&o);
	assert_int_equal(fake.handed_count, 2);
	rg_sleep_ns(RNR_NS);
	turn(&o);
	handed_are(2, 1, 2);
	tell(&o, FAKE_ENDED, 1);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	rg_sleep_ns(RNR_NS);
	turn(&o);
	handed_are(4, 2, 2);
	assert_false(event_is_there(&o, &e));
	tell(&o, FAKE_ENDED, 1);
	expect_event(&o, IBV_EVENT_SQ_DRAINED);
	expect_range(&o, 1, 2, IBV_WC_SUCCESS);
	resume_sending(&o);
	handed_are(5, 3, 3);
	end(&o);
}

static void test_reset(void **state)
{
	unsigned i, handed = 0;
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	for (i = 0; i < 3; i++) {
		fake_answer(3, HCA_UNDERWAY);
		fake_answer(1, HCA_LATER);
		post(&o, IBV_WR_RDMA_READ, 1, 0);
		post(&o, IBV_WR_SEND, 2, IBV_SEND_INLINE);
		post_sends(&o, 3, 6);
		handed = handed_are(handed, 1, 4);
		assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){
						       .qp_state = IBV_QPS_RESET }, IBV_QP_STATE),
				 0);
		assert_int_equal(fake.reset, i + 1);
		assert_int_equal(hca(&o)->sq.under_way, 0);
		assert_int_equal(hca(&o)->sq.answers, 0);
		expect_none(&o);
		connect_again(&o);
	}
	/* All slots are free. */
	post_sends(&o, 1, DEPTH);
	handed_are(handed, 1, DEPTH);
	end(&o);				/* destroyed with all of them under way */
}

/* A retry is not forgotten for the next connection. */
static void test_reset_while_retrying(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_RC);
	fake.rnr_timer = 0;			/* 655 ms */
	post_sends(&o, 1, 1);
	tell(&o, FAKE_REWOUND, HCA_NO_RECEIVE);
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	connect_again(&o);
	post_sends(&o, 2, 2);
	handed_are(1, 2, 2);
	end(&o);
}

/* ---- Unreliable queue pairs ------------------------------------------------------------ */

static void test_send_error(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_UD);
	post_sends(&o, 1, 3);
	tell(&o, FAKE_FAILED, IBV_WC_LOC_PROT_ERR);
	expect(&o, 1, IBV_WC_LOC_PROT_ERR);
	expect_range(&o, 2, 3, IBV_WC_WR_FLUSH_ERR);
	expect_state(&o, IBV_QPS_SQE);
	assert_int_equal(fake.stopped, 1);
	resume_sending(&o);
	post_sends(&o, 4, 4);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 4, IBV_WC_SUCCESS);
	end(&o);
}

/* Some datagrams are over at once, others later: completions come in order. */
static void test_over(void **state)
{
	struct one o;

	(void)state;
	begin(&o, IBV_QPT_UD);
	fake_answer(1, IBV_WC_SUCCESS);
	fake_answer(1, HCA_UNDERWAY);
	fake_answer(2, IBV_WC_SUCCESS);
	fake_answer(1, HCA_UNDERWAY);
	fake_answer(1, IBV_WC_SUCCESS);
	post_sends(&o, 1, 6);
	handed_are(0, 1, 6);
	expect(&o, 1, IBV_WC_SUCCESS);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 1);
	expect_range(&o, 2, 4, IBV_WC_SUCCESS);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 1);
	expect_range(&o, 5, 6, IBV_WC_SUCCESS);
	end(&o);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_datagram_links),
		cmocka_unit_test(test_both_asked),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_max_rd_atomic),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_local_error),
		cmocka_unit_test(test_no_depth),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_to_error),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_again),
		cmocka_unit_test(test_rnr_limits),
		cmocka_unit_test(test_no_peer),
		cmocka_unit_test(test_rewound),
		cmocka_unit_test(test_later),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_drained_after_rnr),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_reset_while_retrying),
		cmocka_unit_test(test_send_error),
		cmocka_unit_test(test_over),
	};

	snprintf(fabric_name, sizeof(fabric_name), "link.%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
