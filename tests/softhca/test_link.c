/*
 * test_link.c - the engine over a link that says later what became of its requests: which link, order,
 * fences, errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "one_qp.h"
#include "softhca/object/query.h"
#include "util/clock.h"

/* ---- A host of another rail ------------------------------------------------ */

static uint32_t routed;			/* in place of the address; 0: none */

int __real_hca_route(const struct ibv_context *c, const struct ibv_ah_attr *ah, uint32_t *address);
int __wrap_hca_route(const struct ibv_context *c, const struct ibv_ah_attr *ah, uint32_t *address);
int __wrap_hca_route(const struct ibv_context *c, const struct ibv_ah_attr *ah, uint32_t *address)
{
	int rc = __real_hca_route(c, ah, address);

	if (!rc && routed)
		*address = routed;
	return rc;
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
	one_end(&o);
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
	one_end(&o);
}

static void test_datagram_links(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_UD);
	assert_ptr_equal(hca(&o)->link, hca(&o)->fabric->wire);
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				       IBV_QP_STATE), 0);
	assert_ptr_equal(hca(&o)->link, hca(&o)->fabric->wire);
	one_end(&o);
}

/* What has no queue pair. */
static void test_both_asked(void **state)
{
	struct ibv_mr *mr;
	unsigned before;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

/* ---- Order ------------------------------------------------------------------- */

static void test_order(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

/* A slot is free when its completion has been polled, and not before. */
static void test_slots(void **state)
{
	uint64_t id;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
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
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

static void test_fence(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

static void test_max_rd_atomic(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

/* A window is bound when all before it have ended. */
static void test_local(void **state)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_mw *mw;
	uint32_t key;
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

/* ---- Errors --------------------------------------------------------------------- */

/* An error of this side comes in its order, too. */
static void test_local_error(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

/* What the link is not asked: READs without a depth for them. */
static void test_no_depth(void **state)
{
	struct one o;

	(void)state;
	one_make(&o, IBV_QPT_RC);
	o.attr.max_rd_atomic = 0;
	connect_again(&o);
	post_sends(&o, 1, 1);
	post(&o, IBV_WR_RDMA_READ, 2, 0);
	expect_none(&o);
	tell(&o, FAKE_ENDED, 1);
	expect(&o, 1, IBV_WC_SUCCESS);
	expect(&o, 2, IBV_WC_LOC_QP_OP_ERR);
	handed_are(0, 1, 1);
	one_end(&o);
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
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
}

/* The program itself asks for the error state. */
static void test_to_error(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
	post_sends(&o, 1, 4);
	assert_int_equal(ibv_modify_qp(o.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR },
				       IBV_QP_STATE), 0);
	expect_range(&o, 1, 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(fake.stopped, 1);
	one_end(&o);
}

static void test_lost(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, IBV_QPT_RC);
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
	one_end(&o);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
