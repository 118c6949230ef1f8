/*
 * two_copies.c - two copies of the library in one process, as when a program
 * that embeds it runs under the softhca command: libsofthca.so, opened here at
 * run time, and the core that this program is linked with.  Each is a separate
 * member of the fabric; a queue pair of one is connected with one of the other.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "softhca/softhca.h"

/* The verbs of one copy.  Inline verbs of verbs.h go through the context. */
struct copy {
	struct ibv_device **(*get_list)(const struct softhca_config *, int *);
	void (*free_list)(struct ibv_device **);
	struct ibv_context *(*open)(struct ibv_device *);
	int (*close)(struct ibv_context *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	int (*dealloc_pd)(struct ibv_pd *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	int (*dereg_mr)(struct ibv_mr *);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *,
				    int);
	int (*destroy_cq)(struct ibv_cq *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int (*destroy_qp)(struct ibv_qp *);
	void *(*arena_alloc)(size_t);

	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *plain;
	unsigned char *at;
	unsigned char here[256];	/* not from an arena */
	struct ibv_port_attr port;
};

static void *find(void *library, const char *name)
{
	void *f = dlsym(library, name);

	if (!f)
		fail("%s: %s", name, dlerror());
	return f;
}

#undef ibv_reg_mr
#define USE(c, from, field, name) \
	((c)->field = (from) ? (__typeof__((c)->field))find(from, #name) : (name))

static void use(struct copy *c, void *from)
{
	USE(c, from, get_list, softhca_get_device_list);
	USE(c, from, free_list, ibv_free_device_list);
	USE(c, from, open, ibv_open_device);
	USE(c, from, close, ibv_close_device);
	USE(c, from, alloc_pd, ibv_alloc_pd);
	USE(c, from, dealloc_pd, ibv_dealloc_pd);
	USE(c, from, reg_mr, ibv_reg_mr);
	USE(c, from, dereg_mr, ibv_dereg_mr);
	USE(c, from, create_cq, ibv_create_cq);
	USE(c, from, destroy_cq, ibv_destroy_cq);
	USE(c, from, create_qp, ibv_create_qp);
	USE(c, from, modify_qp, ibv_modify_qp);
	USE(c, from, destroy_qp, ibv_destroy_qp);
	USE(c, from, arena_alloc, softhca_arena_alloc);
}

static void open_copy(struct copy *c, const struct softhca_config *cfg)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
			 .max_recv_sge = 1 } };
	struct ibv_device **list = c->get_list(cfg, NULL);

	require(list != NULL);
	c->ctx = c->open(list[0]);
	require(c->ctx != NULL);
	c->free_list(list);
	require_equal(ibv_query_port(c->ctx, 1, &c->port), 0);
	c->pd = c->alloc_pd(c->ctx);
	c->cq = c->create_cq(c->ctx, 16, NULL, NULL, 0);
	init.send_cq = init.recv_cq = c->cq;
	c->qp = c->create_qp(c->pd, &init);
	require(c->qp != NULL);
	c->at = c->arena_alloc(8192);
	require(c->at != NULL);
	c->mr = c->reg_mr(c->pd, c->at, 8192, ACCESS_ALL);
	c->plain = c->reg_mr(c->pd, c->here, sizeof(c->here), ACCESS_ALL);
	require(c->mr && c->plain);
}

static void connect_copies(struct copy *c, const struct copy *to)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .qp_access_flags = ACCESS_ALL };

	require_equal(c->modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096,
		.dest_qp_num = to->qp->qp_num, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.ah_attr = { .dlid = to->port.lid, .port_num = 1 } };
	require_equal(c->modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 6,
				  .rnr_retry = 6, .max_rd_atomic = 1 };
	require_equal(c->modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

/* A write, a read and a send, between memory of both kinds. */
static void talk(struct copy *from, struct copy *to, uint64_t seed)
{
	struct ibv_sge sge = { (uintptr_t)from->at, 5000, from->mr->lkey };
	struct ibv_sge in = { (uintptr_t)to->here, 256, to->plain->lkey };
	struct ibv_recv_wr rwr = { .wr_id = 9, .sg_list = &in, .num_sge = 1 }, *rbad;
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)to->at + 1000, to->mr->rkey } }, *bad;

	fill(from->at, seed, 5000);
	require_equal(ibv_post_send(from->qp, &wr, &bad), 0);
	wait_ok(from->cq);
	check(to->at + 1000, seed, 5000, "written");
	wr.opcode = IBV_WR_RDMA_READ;
	sge.length = 256;
	wr.wr.rdma.remote_addr = (uintptr_t)to->here;
	wr.wr.rdma.rkey = to->plain->rkey;
	fill(to->here, seed + 1, 256);
	require_equal(ibv_post_send(from->qp, &wr, &bad), 0);
	wait_ok(from->cq);
	check(from->at, seed + 1, 256, "read");
	wr.opcode = IBV_WR_SEND;
	fill(from->at, seed + 2, 256);
	require_equal(ibv_post_recv(to->qp, &rwr, &rbad), 0);
	require_equal(ibv_post_send(from->qp, &wr, &bad), 0);
	wait_ok(from->cq);
	require_equal(wait_ok(to->cq).wr_id, 9);
	check(to->here, seed + 2, 256, "sent");
}

static void close_copy(struct copy *c)
{
	require_equal(c->destroy_qp(c->qp), 0);
	require_equal(c->dereg_mr(c->mr), 0);
	require_equal(c->dereg_mr(c->plain), 0);
	require_equal(c->destroy_cq(c->cq), 0);
	require_equal(c->dealloc_pd(c->pd), 0);
	require_equal(c->close(c->ctx), 0);
}

int main(void)
{
	void *library = dlopen("./.libs/libsofthca.so.0", RTLD_NOW | RTLD_LOCAL);
	struct copy mine = { 0 }, other = { 0 };
	struct softhca_config cfg = { 0 };
	char name[32], path[64];
	uint64_t round;

	if (!library) {
		fprintf(stderr, "skipped: %s\n", dlerror());
		return 77;
	}
	snprintf(name, sizeof(name), "two.%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), name);
	cfg.fabric = name;
	use(&mine, NULL);
	use(&other, library);
	require(mine.open != other.open);
	open_copy(&mine, &cfg);
	cfg.node = 1;
	open_copy(&other, &cfg);
	require(mine.port.lid != other.port.lid);
	connect_copies(&mine, &other);
	connect_copies(&other, &mine);
	for (round = 0; round < 100; round++) {
		talk(&mine, &other, round);
		talk(&other, &mine, round + 1000);
	}
	/* A copy leaves; the other is still on the fabric. */
	close_copy(&other);
	require(access(path, F_OK) == 0);
	close_copy(&mine);
	require(access(path, F_OK) != 0);
	return 0;
}
