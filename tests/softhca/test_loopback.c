/* test_loopback.c - a queue pair that is connected to itself: claimers that do not come back, dmabuf. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "softhca/base/proc.h"
#include "softhca/object/fabric.h"
#include "softhca/object/qp.h"
#include "softhca/softhca.h"

static char fabric_name[32];

/* ---- A queue pair and itself ------------------------------------------------- */

struct loop {
	struct ibv_device **list;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct loop loop_new(int cqe)
{
	struct softhca_config a = { .fabric = fabric_name, .spec = "ports=2" };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct loop l;

	l.list = softhca_get_device_list(&a, NULL);
	l.c = ibv_open_device(l.list[0]);
	l.pd = ibv_alloc_pd(l.c);
	l.cq = ibv_create_cq(l.c, cqe, NULL, NULL, 0);
	init.send_cq = init.recv_cq = l.cq;
	l.qp = ibv_create_qp(l.pd, &init);
	assert_non_null(l.qp);
	assert_int_equal(ibv_modify_qp(l.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096,
		.dest_qp_num = l.qp->qp_num, .ah_attr = { .dlid = 1, .port_num = 1 } };
	assert_int_equal(ibv_modify_qp(l.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				     .rnr_retry = 7 };
	assert_int_equal(ibv_modify_qp(l.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC), 0);
	return l;
}

static void loop_free(struct loop *l)
{
	assert_int_equal(ibv_destroy_qp(l->qp), 0);
	assert_int_equal(ibv_destroy_cq(l->cq), 0);
	assert_int_equal(ibv_dealloc_pd(l->pd), 0);
	assert_int_equal(ibv_close_device(l->c), 0);
	ibv_free_device_list(l->list);
}

static void loop_await(struct loop *l, uint64_t id)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(l->cq, 1, &wc);

		assert_true(n >= 0 && time(NULL) < end);
		if (!n)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode & IBV_WC_RECV)
			break;
	}
	assert_int_equal(wc.wr_id, id);
}

/* An empty message to ourselves arrives, in time. */
static void loop_send(struct loop *l, uint64_t id)
{
	struct ibv_recv_wr rwr = { .wr_id = id }, *rbad;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	wr.send_flags = id % 16 == 0 ? IBV_SEND_SIGNALED : 0;
	assert_int_equal(ibv_post_recv(l->qp, &rwr, &rbad), 0);
	assert_int_equal(ibv_post_send(l->qp, &wr, &bad), 0);
	loop_await(l, id);
}

/* ---- A claimer that does not come back --------------------------------------- */

/*
 * A process claimed the next entry and has stopped: messages of others come
 * through all the same.  The slot is not used until the process wakes up and
 * gives it back, or dies.
 */
static void test_stopped_claimer(void **state)
{
	struct loop l = loop_new(16);
	struct hca_cq *cq = hca_cq_of(l.cq);
	struct hca_fabric *f = cq->fabric;
	struct hca_shm_cqe *e = &cq->mailbox.shm->slot[0];
	uint64_t claimed = hca_shm_state(0, hca_shm_claimed(f->slot)), revoked;
	uint64_t id = 0;

	atomic_store(&e->state, claimed);
	e->position = 1000;		/* a late write there does no harm */
	for (id = 1; id < 100; id++)
		loop_send(&l, id);
	revoked = atomic_load(&e->state);
	assert_int_equal(hca_shm_kind(revoked), HCA_REVOKED);
	/* The claimer wakes up, and cannot publish. */
	assert_false(atomic_compare_exchange_strong(&e->state, &claimed,
						    hca_shm_state(0, HCA_FULL)));
	atomic_store(&e->state, hca_shm_state(0, HCA_RETURNED));
	for (; id < 200; id++)
		loop_send(&l, id);
	assert_true(hca_shm_kind(atomic_load(&e->state)) != HCA_RETURNED);
	/* The same with a claimer that has died: slot 500 is free. */
	e = &cq->mailbox.shm->slot[cq->head & cq->mailbox.mask];
	atomic_store(&e->state, hca_shm_state(cq->head >> cq->mailbox.shift,
					      hca_shm_claimed(500)));
	for (; id < 300; id++)
		loop_send(&l, id);
	assert_true(hca_shm_kind(atomic_load(&e->state)) < HCA_REVOKED);
	loop_free(&l);
}

/* ---- Memory that a device driver exports ------------------------------------ */

/* Files of this name are such memory to the library: no driver here exports any. */
#define EXPORTED "dmabuf"

ssize_t __real_hca_proc_link(const char *path, char *text, size_t size);
ssize_t __wrap_hca_proc_link(const char *path, char *text, size_t size);
ssize_t __wrap_hca_proc_link(const char *path, char *text, size_t size)
{
	ssize_t n = __real_hca_proc_link(path, text, size);

	if (n > 8 && memcmp(text, "/memfd:dm", 9) == 0)
		memcpy(text, "/dmabuf:", 8);
	return n;
}

static unsigned mappings_of(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, name) != NULL;
	fclose(maps);
	return count;
}

/* A registration of such memory is written through its offset, and maps the memory while it is. */
static void test_dmabuf(void **state)
{
	enum { OFFSET = 4096 + 100, BYTES = 5000 };
	const int access = IBV_ACCESS_LOCAL_WRITE;
	unsigned char from[BYTES], got[BYTES];
	int fd = memfd_create(EXPORTED, MFD_CLOEXEC), other = memfd_create("other", MFD_CLOEXEC);
	struct loop l = loop_new(16);
	struct ibv_mr *source, *mr;
	struct ibv_sge to = { 0x5000, BYTES, 0 }, sge = { (uintptr_t)from, BYTES, 0 };
	struct ibv_recv_wr receive = { .wr_id = 3, .sg_list = &to, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad_send;

	assert_int_equal(ftruncate(fd, 4 * 4096) | ftruncate(other, 4 * 4096), 0);
	source = ibv_reg_mr(l.pd, from, BYTES, 0);
	assert_non_null(source);
	for (unsigned i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	mr = ibv_reg_dmabuf_mr(l.pd, OFFSET, BYTES, 0x5000, fd, access);
	assert_non_null(mr);
	assert_int_equal(mr->length, BYTES);
	assert_int_equal(mappings_of(EXPORTED), 1);
	to.lkey = mr->lkey;
	sge.lkey = source->lkey;
	assert_int_equal(ibv_post_recv(l.qp, &receive, &bad_receive), 0);
	assert_int_equal(ibv_post_send(l.qp, &send, &bad_send), 0);
	loop_await(&l, 3);
	assert_int_equal(pread(fd, got, BYTES, OFFSET), BYTES);
	assert_memory_equal(got, from, BYTES);
	assert_int_equal(pread(fd, got, 100, OFFSET - 100), 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(got[i], 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mappings_of(EXPORTED), 0);
	/* Refused: an ordinary file, none, nothing of it, an offset that no file has, unknown access. */
	errno = 0;
	assert_true(!ibv_reg_dmabuf_mr(l.pd, 0, 4096, 0, other, access) && errno == EINVAL);
	assert_true(!ibv_reg_dmabuf_mr(l.pd, 0, 4096, 0, -1, access) && errno == EBADF);
	assert_true(!ibv_reg_dmabuf_mr(l.pd, 0, 0, 0, fd, access) && errno == EINVAL);
	assert_true(!ibv_reg_dmabuf_mr(l.pd, 1ull << 63, 4096, 0, fd, access) && errno == EINVAL);
	assert_true(!ibv_reg_dmabuf_mr(l.pd, 0, 4096, 0, fd, IBV_ACCESS_REMOTE_WRITE) &&
		    errno == EINVAL);
	assert_int_equal(ibv_dereg_mr(source), 0);
	loop_free(&l);
	close(fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped_claimer), cmocka_unit_test(test_dmabuf),
	};

	snprintf(fabric_name, sizeof(fabric_name), "unit.%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
