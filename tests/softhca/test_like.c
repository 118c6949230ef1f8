/* test_like.c - the sets of like=, by public verbs: PERSONALITIES.md has the source of each number. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "softhca/softhca.h"

static const struct {
	const char *spec;
	int wr, sge, cqe, qps, srqs, srq_wr, answers, asks;
	uint32_t inline_bytes;
	int ud, uc;			/* errno values of a creation */
	enum ibv_atomic_cap atomics;
} sets[] = {
	{ "like=mlx5-ib", 32768, 30, 4194303, 65536, 65536, 32767, 16, 16, 828, 0, 0, IBV_ATOMIC_HCA },
	{ "like=mlx5-roce", 32768, 30, 4194303, 65536, 65536, 32767, 16, 16, 828, 0, 0, IBV_ATOMIC_HCA },
	{ "like=mlx5-vf", 32768, 30, 4194303, 4096, 65536, 32767, 16, 16, 828, 0, 0, IBV_ATOMIC_HCA },
	{ "like=mlx4", 16351, 32, 4194303, 65536, 65472, 16383, 16, 128, 928, 0, 0, IBV_ATOMIC_HCA },
	{ "like=irdma-e810", 4063, 13, 1048574, 65536, 0, 0, 127, 128, 101, 0, EOPNOTSUPP, IBV_ATOMIC_NONE },
	{ "like=bnxt_re", 32768, 6, 4194304, 65536, 65536, 32768, 126, 126, 96, 0, EOPNOTSUPP, IBV_ATOMIC_NONE },
	{ "like=hns-hip08", 32768, 32, 4194304, 4096, 65536, 32768, 128, 128, 32, EOPNOTSUPP, EOPNOTSUPP,
	  IBV_ATOMIC_HCA },
};

static int tried(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr wish = { .qp_type = type, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = inline_bytes } };
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(pd, &wish);
	if (!qp)
		return errno;
	assert_true(wish.cap.max_inline_data >= inline_bytes);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return 0;
}

static void check_set(size_t i)
{
	char fabric[32];
	const struct softhca_config cfg = { .fabric = fabric, .spec = sets[i].spec };
	struct ibv_device_attr has;
	struct ibv_device **list;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	snprintf(fabric, sizeof(fabric), "like-%d-%zu", (int)getpid(), i);
	list = softhca_get_device_list(&cfg, NULL);
	assert_non_null(list);
	c = ibv_open_device(list[0]);
	pd = ibv_alloc_pd(c);
	cq = ibv_create_cq(c, 16, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_query_device(c, &has), 0);
	print_message("%s\n", sets[i].spec);
	assert_int_equal(has.max_qp_wr, sets[i].wr);
	assert_int_equal(has.max_sge, sets[i].sge);
	assert_int_equal(has.max_cqe, sets[i].cqe);
	assert_int_equal(has.max_qp, sets[i].qps);
	assert_int_equal(has.max_srq, sets[i].srqs);
	assert_int_equal(has.max_srq_wr, sets[i].srq_wr);
	assert_int_equal(has.max_qp_rd_atom, sets[i].answers);
	assert_int_equal(has.max_qp_init_rd_atom, sets[i].asks);
	assert_int_equal(has.atomic_cap, sets[i].atomics);
	assert_int_equal(tried(pd, cq, IBV_QPT_RC, sets[i].inline_bytes), 0);
	assert_int_equal(tried(pd, cq, IBV_QPT_RC, sets[i].inline_bytes + 1), EINVAL);
	assert_int_equal(tried(pd, cq, IBV_QPT_UD, 0), sets[i].ud);
	assert_int_equal(tried(pd, cq, IBV_QPT_UC, 0), sets[i].uc);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(c), 0);
	ibv_free_device_list(list);
}

static void test_sets(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		check_set(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sets) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
