/*
 * test_atomic.c - the lock under which memory that cannot be mapped is changed: a
 * dead holder loses it at once, a stopped one after a second, a running one after
 * five, and counts are right after any process is killed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "cmocka_all.h"
#include "softhca/object/device.h"
#include "softhca/object/qp.h"
#include "softhca/softhca.h"

enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

static char name[32];

/* A queue pair that is connected with itself; [0] the word, [1] its old value. */
struct self {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t words[2];
};

static void connect_to_self(struct self *s)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .qp_access_flags = ALL };
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(s->ctx, 1, &port), 0);
	assert_int_equal(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), 0);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = s->qp->qp_num;
	a.max_dest_rd_atomic = 1;
	a.ah_attr = (struct ibv_ah_attr){ .dlid = port.lid, .port_num = 1 };
	assert_int_equal(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
				       IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	a.qp_state = IBV_QPS_RTS;
	a.max_rd_atomic = 1;
	a.timeout = 11;			/* 8.4 ms */
	a.retry_cnt = 1;
	assert_int_equal(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void self_make(struct self *s)
{
	const struct softhca_config c = { .fabric = name, .spec = "ideal", .node = 0,
					  .remap = SOFTHCA_REMAP_NEVER };
	struct ibv_device **list = softhca_get_device_list(&c, NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 } };

	assert_non_null(list);
	memset(s, 0, sizeof(*s));
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	s->pd = ibv_alloc_pd(s->ctx);
	init.send_cq = init.recv_cq = s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
	s->qp = ibv_create_qp(s->pd, &init);
	s->mr = ibv_reg_mr(s->pd, s->words, sizeof(s->words), ALL);
	assert_non_null(s->mr);
	connect_to_self(s);
}

static void self_free(struct self *s)
{
	assert_int_equal(ibv_destroy_qp(s->qp), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	assert_int_equal(ibv_dealloc_pd(s->pd), 0);
	assert_int_equal(ibv_close_device(s->ctx), 0);
}

static enum ibv_wc_status add(struct self *s, uint64_t n)
{
	struct ibv_sge sge = { (uintptr_t)&s->words[1], 8, s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = (uintptr_t)&s->words[0], .rkey = s->mr->rkey,
			       .compare_add = n } }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(s->qp, &wr, &bad), 0);
	while (ibv_poll_cq(s->cq, 1, &wc) == 0)
		rg_yield();
	return wc.status;
}

static struct hca_fabric *fabric_of(const struct self *s)
{
	return hca_context_of(s->ctx)->fabric;
}

static _Atomic uint64_t *lock_of(const struct self *s)
{
	return &fabric_of(s)->shm->adapter[0].atomics;
}

static uint64_t holder(uint32_t slot, uint32_t generation)
{
	return (uint64_t)generation << 32 | (slot + 1);
}

/* ---- Cases --------------------------------------------------------------- */

__attribute__((unused)) static void test_free_after(void **state)
{
	struct self s;

	self_make(&s);
	assert_int_equal(add(&s, 5), IBV_WC_SUCCESS);
	assert_int_equal(add(&s, 6), IBV_WC_SUCCESS);
	assert_int_equal(s.words[0], 11);
	assert_int_equal(s.words[1], 5);
	assert_int_equal(atomic_load(lock_of(&s)), 0);
	self_free(&s);
}

/* The lock is held by no process, by one that left, by one whose slot is another's, by nonsense. */
__attribute__((unused)) static void test_taken_over(void **state)
{
	struct self s;
	unsigned i;

	self_make(&s);
	for (i = 0; i < 4; i++) {
		uint64_t words[] = { holder(7, 1), holder(fabric_of(&s)->slot, 12345),
				     UINT64_MAX, holder(HCA_PROCS_MAX + 3, 0) };

		atomic_store(lock_of(&s), words[i]);
		assert_int_equal(add(&s, 1), IBV_WC_SUCCESS);
		assert_int_equal(s.words[0], i + 1);
		assert_int_equal(atomic_load(lock_of(&s)), 0);
	}
	self_free(&s);
}

/* The time of an add while a living process has the lock. */
static uint64_t held_ns(struct self *s, uint64_t by)
{
	uint64_t began = rg_now_ns();

	s->words[0] = 7;
	atomic_store(lock_of(s), by);
	assert_int_equal(add(s, 1), IBV_WC_SUCCESS);
	assert_int_equal(s->words[0], 8);
	assert_int_equal(atomic_load(lock_of(s)), 0);
	return rg_now_ns() - began;
}

static void join_and_stop(int tell)
{
	struct self mine;
	uint64_t word;

	self_make(&mine);
	word = holder(fabric_of(&mine)->slot, fabric_of(&mine)->generation);
	if (write(tell, &word, sizeof(word)) != sizeof(word))
		_exit(1);
	for (;;)
		raise(SIGSTOP);
}

/* A stopped holder loses the lock after a second, a running one after five. */
static void test_kept(void **state)
{
	uint64_t stopped, running, word;
	struct self s;
	int way[2];
	pid_t pid;

	assert_int_equal(pipe(way), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		join_and_stop(way[1]);
	assert_int_equal(read(way[0], &word, sizeof(word)), sizeof(word));
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	self_make(&s);
	stopped = held_ns(&s, word);
	running = held_ns(&s, holder(fabric_of(&s)->slot, fabric_of(&s)->generation));
#ifdef VIRTUAL_CLOCK
	/* The holder of the lock is checked now and then. */
	assert_in_range(stopped, 1000000000, 1000300000);
	assert_in_range(running, 5000000000, 5000300000);
#else
	assert_true(stopped >= 1000000000);
	assert_true(running >= 5000000000u);
#endif
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(way[0]);
	close(way[1]);
	self_free(&s);
}

/*
 * Children add to a word of their own, through the lock that all share, and are
 * killed at it; the others always continue.
 */
__attribute__((unused)) static void test_killed(void **state)
{
	enum { CHILDREN = 20 };
	struct self s;
	int i;

	self_make(&s);
	for (i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		int k;

		assert_true(pid >= 0);
		if (pid == 0) {
			struct self mine;

			self_make(&mine);
			for (;;)
				add(&mine, 1);
		}
		usleep(5000 + (useconds_t)i * 700);
		for (k = 0; k < 200; k++)
			assert_int_equal(add(&s, 1), IBV_WC_SUCCESS);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(add(&s, 1), IBV_WC_SUCCESS);
	}
	assert_int_equal(s.words[0], CHILDREN * 201);
	self_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifndef VIRTUAL_CLOCK
		/* Several processes, each of which takes its time. */
		cmocka_unit_test(test_free_after),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_killed),
#endif
		cmocka_unit_test(test_kept),
	};

	unsetenv("SOFTHCA_REMAP");
	snprintf(name, sizeof(name), "atomic.%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
