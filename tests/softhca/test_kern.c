/* test_kern.c - attributes of the kernel and those of verbs: each field arrives, and nothing else changes. */
#include <string.h>

#include "cmocka_all.h"
#include "softhca/api/kern.h"

/* The values of fields are numbers of their own, so that no two are taken for each other. */
static const struct ib_uverbs_ah_attr paths[2] = {
	{
		.grh = { .dgid = { 1, 2, 3, [15] = 4 }, .flow_label = 0x12345, .sgid_index = 5, .hop_limit = 6,
			 .traffic_class = 7 },
		.dlid = 0x809, .sl = 10, .src_path_bits = 11, .static_rate = 12, .is_global = 1, .port_num = 13,
	},
	{
		.grh = { .dgid = { 21, [14] = 22 }, .flow_label = 0x54321, .sgid_index = 25, .hop_limit = 26,
			 .traffic_class = 27 },
		.dlid = 0x1819, .sl = 30, .src_path_bits = 31, .static_rate = 32, .is_global = 0, .port_num = 33,
	},
};

static void path_expect(const struct ibv_ah_attr *to, const struct ib_uverbs_ah_attr *from)
{
	assert_memory_equal(to->grh.dgid.raw, from->grh.dgid, 16);
	assert_int_equal(to->grh.flow_label, from->grh.flow_label);
	assert_int_equal(to->grh.sgid_index, from->grh.sgid_index);
	assert_int_equal(to->grh.hop_limit, from->grh.hop_limit);
	assert_int_equal(to->grh.traffic_class, from->grh.traffic_class);
	assert_int_equal(to->dlid, from->dlid);
	assert_int_equal(to->sl, from->sl);
	assert_int_equal(to->src_path_bits, from->src_path_bits);
	assert_int_equal(to->static_rate, from->static_rate);
	assert_int_equal(to->is_global, from->is_global);
	assert_int_equal(to->port_num, from->port_num);
}

static void test_path(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ib_uverbs_ah_attr from = paths[i];
		struct ibv_ah_attr to;

		memset(&to, 0xee, sizeof(to));
		ibv_copy_ah_attr_from_kern(&to, &from);
		path_expect(&to, &paths[i]);
	}
}

static struct ib_uverbs_qp_attr queue_pair(void)
{
	return (struct ib_uverbs_qp_attr){
		.qp_attr_mask = 0x7fffff, .qp_state = IBV_QPS_RTR, .cur_qp_state = IBV_QPS_INIT,
		.path_mtu = IBV_MTU_2048, .path_mig_state = IBV_MIG_REARM, .qkey = 0x80010000, .rq_psn = 41,
		.sq_psn = 42, .dest_qp_num = 43, .qp_access_flags = 44, .ah_attr = paths[0],
		.alt_ah_attr = paths[1], .max_send_wr = 45, .max_recv_wr = 46, .max_send_sge = 47,
		.max_recv_sge = 48, .max_inline_data = 49, .pkey_index = 50, .alt_pkey_index = 51,
		.en_sqd_async_notify = 52, .sq_draining = 53, .max_rd_atomic = 54, .max_dest_rd_atomic = 55,
		.min_rnr_timer = 56, .port_num = 57, .timeout = 58, .retry_cnt = 59, .rnr_retry = 60,
		.alt_port_num = 61, .alt_timeout = 62,
	};
}

static void test_queue_pair(void **state)
{
	struct ib_uverbs_qp_attr from = queue_pair();
	struct ibv_qp_attr to;

	(void)state;
	memset(&to, 0xee, sizeof(to));
	to.qp_state = IBV_QPS_SQD;
	to.rate_limit = 99;
	ibv_copy_qp_attr_from_kern(&to, &from);
	assert_int_equal(to.qp_state, IBV_QPS_SQD);
	assert_int_equal(to.cur_qp_state, IBV_QPS_INIT);
	assert_int_equal(to.path_mtu, IBV_MTU_2048);
	assert_int_equal(to.path_mig_state, IBV_MIG_REARM);
	assert_int_equal(to.qkey, 0x80010000);
	assert_int_equal(to.rq_psn, 41);
	assert_int_equal(to.sq_psn, 42);
	assert_int_equal(to.dest_qp_num, 43);
	assert_int_equal(to.qp_access_flags, 44);
	assert_int_equal(to.cap.max_send_wr, 45);
	assert_int_equal(to.cap.max_recv_wr, 46);
	assert_int_equal(to.cap.max_send_sge, 47);
	assert_int_equal(to.cap.max_recv_sge, 48);
	assert_int_equal(to.cap.max_inline_data, 49);
	path_expect(&to.ah_attr, &paths[0]);
	path_expect(&to.alt_ah_attr, &paths[1]);
	assert_int_equal(to.pkey_index, 50);
	assert_int_equal(to.alt_pkey_index, 51);
	assert_int_equal(to.en_sqd_async_notify, 52);
	assert_int_equal(to.sq_draining, 53);
	assert_int_equal(to.max_rd_atomic, 54);
	assert_int_equal(to.max_dest_rd_atomic, 55);
	assert_int_equal(to.min_rnr_timer, 56);
	assert_int_equal(to.port_num, 57);
	assert_int_equal(to.timeout, 58);
	assert_int_equal(to.retry_cnt, 59);
	assert_int_equal(to.rnr_retry, 60);
	assert_int_equal(to.alt_port_num, 61);
	assert_int_equal(to.alt_timeout, 62);
	assert_int_equal(to.rate_limit, 99);
}

static void test_path_record(void **state)
{
	const struct ib_user_path_rec kern = {
		.dgid = { 1, [15] = 2 }, .sgid = { 3, [15] = 4 }, .dlid = 0x0506, .slid = 0x0708, .raw_traffic = 1,
		.flow_label = 0x090a0b, .reversible = 12, .mtu = 13, .pkey = 0x800e, .hop_limit = 15,
		.traffic_class = 16, .numb_path = 17, .sl = 18, .mtu_selector = 19, .rate_selector = 20, .rate = 21,
		.packet_life_time_selector = 22, .packet_life_time = 23, .preference = 24,
	};
	struct ib_user_path_rec from = kern, back;
	struct ibv_sa_path_rec to;

	(void)state;
	memset(&to, 0xee, sizeof(to));
	ibv_copy_path_rec_from_kern(&to, &from);
	assert_memory_equal(to.dgid.raw, kern.dgid, 16);
	assert_memory_equal(to.sgid.raw, kern.sgid, 16);
	assert_int_equal(to.dlid, 0x0506);
	assert_int_equal(to.slid, 0x0708);
	assert_int_equal(to.raw_traffic, 1);
	assert_int_equal(to.flow_label, 0x090a0b);
	assert_int_equal(to.hop_limit, 15);
	assert_int_equal(to.traffic_class, 16);
	assert_int_equal(to.reversible, 12);
	assert_int_equal(to.numb_path, 17);
	assert_int_equal(to.pkey, 0x800e);
	assert_int_equal(to.sl, 18);
	assert_int_equal(to.mtu_selector, 19);
	assert_int_equal(to.mtu, 13);
	assert_int_equal(to.rate_selector, 20);
	assert_int_equal(to.rate, 21);
	assert_int_equal(to.packet_life_time_selector, 22);
	assert_int_equal(to.packet_life_time, 23);
	assert_int_equal(to.preference, 24);
	memset(&back, 0xee, sizeof(back));
	ibv_copy_path_rec_to_kern(&back, &to);
	assert_memory_equal(&back, &kern, sizeof(kern));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_queue_pair),
		cmocka_unit_test(test_path_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
