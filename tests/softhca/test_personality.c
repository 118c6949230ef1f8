/*
 * test_personality.c - what a program meets of each key of a personality, by public verbs: the
 * devices of nodes 0 and 1 of a fabric, and queue pairs between them.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "softhca/softhca.h"

enum { BYTES = 4096, QKEY = 5 };

static char fabric_name[32];

/* ---- A device of a node --------------------------------------------------- */

struct end {
	struct ibv_device **list;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_device_attr device;
	struct ibv_port_attr port[2];
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char *data;
};

static struct end end_open(const char *spec, int node)
{
	const struct softhca_config cfg = { .fabric = fabric_name, .spec = spec, .node = node };
	struct end e = { .list = softhca_get_device_list(&cfg, NULL) };

	if (!e.list)
		fail_msg("%s: %s", spec, softhca_last_error());
	e.c = ibv_open_device(e.list[0]);
	e.pd = ibv_alloc_pd(e.c);
	e.cq = ibv_create_cq(e.c, 16, NULL, NULL, 0);
	assert_non_null(e.cq);
	assert_int_equal(ibv_query_device(e.c, &e.device), 0);
	for (uint8_t port = 1; port <= 2; port++)
		assert_int_equal(ibv_query_port(e.c, port, &e.port[port - 1]), 0);
	e.data = softhca_arena_alloc(2 * BYTES);
	e.mr = ibv_reg_mr(e.pd, e.data, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE |
			  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_non_null(e.mr);
	return e;
}

static void end_close(struct end *e)
{
	if (e->qp)
		assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	softhca_arena_free(e->data);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	assert_int_equal(ibv_close_device(e->c), 0);
	ibv_free_device_list(e->list);
}

static struct ibv_qp_init_attr qp_wish(const struct end *e, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){ .qp_type = type, .send_cq = e->cq, .recv_cq = e->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
}

/* The errno value of a creation; 0: it succeeds, and is undone. */
static int qp_tried(const struct end *e, struct ibv_qp_init_attr wish)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(e->pd, &wish);
	if (!qp)
		return errno;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return 0;
}

static int qp_init(struct end *e, enum ibv_qp_type type, uint8_t port, uint16_t pkey_index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = port, .qkey = QKEY,
		.pkey_index = pkey_index, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_init_attr wish = qp_wish(e, type);

	e->qp = ibv_create_qp(e->pd, &wish);
	assert_non_null(e->qp);
	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int qp_rtr(struct end *e, const struct ibv_ah_attr *ah, uint32_t qpn, uint8_t reads)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn, .ah_attr = *ah, .max_dest_rd_atomic = reads };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER);
}

static int qp_rts(struct end *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1 };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static enum ibv_wc_status await(struct end *e)
{
	const time_t end = time(NULL) + 60;
	struct ibv_wc wc = { 0 };

	while (ibv_poll_cq(e->cq, 1, &wc) == 0)
		assert_true(time(NULL) < end);
	return wc.status;
}

/* Write a byte to the peer: its completion's status. */
static enum ibv_wc_status write_to(struct end *from, const struct end *to)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from->data, .length = 1, .lkey = from->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { .rkey = to->mr->rkey,
		.remote_addr = (uintptr_t)to->data + 1 } }, *bad;

	assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
	return await(from);
}

/* Address of a port: by its LID, or by an index of its GID table. */
static struct ibv_ah_attr by_lid(const struct end *to, uint8_t port)
{
	return (struct ibv_ah_attr){ .dlid = to->port[port - 1].lid, .port_num = port };
}

static struct ibv_ah_attr by_gid(const struct end *to, uint8_t port, int own, int theirs)
{
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = port,
		.grh = { .sgid_index = (uint8_t)own, .hop_limit = 1 } };

	assert_int_equal(ibv_query_gid(to->c, port, theirs, &ah.grh.dgid), 0);
	return ah;
}

/*
 * Queue pairs of both ends on a port, with P_Keys of these indices, and a write: its status.
 * by: GID index at both ends, -1: LIDs.
 */
static enum ibv_wc_status written(const char *spec, uint8_t port, uint16_t a_key, uint16_t b_key,
				  int by)
{
	struct end a = end_open(spec, 0), b = end_open(spec, 1);
	struct ibv_ah_attr to_b = by < 0 ? by_lid(&b, port) : by_gid(&b, port, by, by);
	struct ibv_ah_attr to_a = by < 0 ? by_lid(&a, port) : by_gid(&a, port, by, by);
	enum ibv_wc_status status;

	assert_int_equal(qp_init(&a, IBV_QPT_RC, port, a_key), 0);
	assert_int_equal(qp_init(&b, IBV_QPT_RC, port, b_key), 0);
	assert_int_equal(qp_rtr(&a, &to_b, b.qp->qp_num, 1), 0);
	assert_int_equal(qp_rtr(&b, &to_a, a.qp->qp_num, 1), 0);
	assert_int_equal(qp_rts(&a), 0);
	status = write_to(&a, &b);
	end_close(&a);
	end_close(&b);
	return status;
}

/* ---- Limits and services -------------------------------------------------- */

static void test_services(void **state)
{
	struct end e = end_open("ud=no,uc=no,atomics=no,srq=0", 0);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };

	assert_int_equal(qp_tried(&e, qp_wish(&e, IBV_QPT_UD)), EOPNOTSUPP);
	assert_int_equal(qp_tried(&e, qp_wish(&e, IBV_QPT_UC)), EOPNOTSUPP);
	assert_int_equal(qp_tried(&e, qp_wish(&e, IBV_QPT_RC)), 0);
	assert_int_equal(e.device.atomic_cap, IBV_ATOMIC_NONE);
	assert_int_equal(e.device.max_srq, 0);
	assert_null(ibv_create_srq(e.pd, &srq));
	assert_int_equal(errno, EOPNOTSUPP);
	end_close(&e);
}

static void test_atomics(void **state)
{
	struct end e = end_open("atomics=no", 0);
	struct ibv_sge sge = { .addr = (uintptr_t)e.data, .length = 8, .lkey = e.mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge,
				  .num_sge = 1 }, *bad;
	struct ibv_ah_attr self = by_lid(&e, 1);

	assert_int_equal(qp_init(&e, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&e, &self, e.qp->qp_num, 1), 0);
	assert_int_equal(qp_rts(&e), 0);
	assert_int_equal(ibv_post_send(e.qp, &wr, &bad), EINVAL);
	end_close(&e);
}

static void test_limits(void **state)
{
	struct end e = end_open("maxwr=100,maxsge=3,inline=64,qps=2,maxcqe=50,srq=1,srqwr=10", 0);
	struct ibv_srq_init_attr asked = { .attr = { .max_wr = 10, .max_sge = 3 } };
	struct ibv_qp_init_attr wish = qp_wish(&e, IBV_QPT_RC);
	struct ibv_srq *srq = ibv_create_srq(e.pd, &asked);
	struct ibv_qp *qp[2];

	assert_int_equal(e.device.max_qp_wr, 100);
	assert_int_equal(e.device.max_sge, 3);
	assert_int_equal(e.device.max_qp, 2);
	assert_int_equal(e.device.max_cqe, 50);
	assert_int_equal(e.device.max_srq, 1);
	assert_int_equal(e.device.max_srq_wr, 10);
	wish.cap.max_send_wr = 101;
	assert_int_equal(qp_tried(&e, wish), EINVAL);
	wish.cap = (struct ibv_qp_cap){ .max_recv_wr = 101 };
	assert_int_equal(qp_tried(&e, wish), EINVAL);
	wish.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_send_sge = 4 };
	assert_int_equal(qp_tried(&e, wish), EINVAL);
	wish.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_inline_data = 65 };
	assert_int_equal(qp_tried(&e, wish), EINVAL);
	wish.cap = (struct ibv_qp_cap){ .max_send_wr = 100, .max_recv_wr = 100, .max_send_sge = 3,
					.max_recv_sge = 3, .max_inline_data = 64 };
	qp[0] = ibv_create_qp(e.pd, &wish);
	assert_non_null(qp[0]);
	assert_int_equal(wish.cap.max_send_wr, 100);	/* no more than the device has */
	assert_int_equal(wish.cap.max_recv_sge, 3);
	assert_int_equal(wish.cap.max_inline_data, 64);
	wish.cap.max_inline_data = 0;
	qp[1] = ibv_create_qp(e.pd, &wish);
	assert_int_equal(wish.cap.max_inline_data, 0);
	assert_int_equal(qp_tried(&e, wish), ENOMEM);
	assert_int_equal(ibv_destroy_qp(qp[0]), 0);
	assert_int_equal(qp_tried(&e, wish), 0);
	assert_int_equal(ibv_destroy_qp(qp[1]), 0);
	assert_non_null(srq);
	assert_int_equal(asked.attr.max_wr, 10);
	assert_null(ibv_create_srq(e.pd, &asked));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	asked.attr.max_wr = 11;
	assert_null(ibv_create_srq(e.pd, &asked));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(e.c, 51, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	end_close(&e);
}

/* A queue pair with ibv_wr_* that asks for no inline data has none, and is made all the same. */
static void test_no_inline(void **state)
{
	struct end e = end_open("like=mlx5-ib", 0);
	struct ibv_qp_init_attr_ex wish = {
		.send_cq = e.cq, .recv_cq = e.cq, .qp_type = IBV_QPT_RC, .pd = e.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e.c, &wish);

	(void)state;
	assert_non_null(qp);
	assert_int_equal(wish.cap.max_inline_data, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	end_close(&e);
}

/* 15 entries and the unusable one are 1 KiB, the 16 of the end's queue 2 KiB.  A resize needs both. */
static void test_cq_memory(void **state)
{
	struct end e = end_open("cqmem=4096", 0);
	struct ibv_cq *cq[2];

	cq[0] = ibv_create_cq(e.c, 15, NULL, NULL, 0);
	assert_non_null(cq[0]);
	cq[1] = ibv_create_cq(e.c, 15, NULL, NULL, 0);
	assert_null(ibv_create_cq(e.c, 1, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_destroy_cq(cq[1]), 0);
	assert_int_equal(ibv_resize_cq(cq[0], 16), ENOMEM);
	assert_int_equal(ibv_resize_cq(cq[0], 7), 0);
	cq[1] = ibv_create_cq(e.c, 15, NULL, NULL, 0);
	assert_non_null(cq[1]);
	assert_int_equal(ibv_destroy_cq(cq[1]), 0);
	assert_int_equal(ibv_destroy_cq(cq[0]), 0);
	end_close(&e);
}

static void test_reads(void **state)
{
	static const char *const sets[] = { "like=mlx5-ib", "like=mlx5-vf", "like=mlx4", "like=irdma-e810",
					    "like=bnxt_re", "like=hns-hip08" };
	struct end e = end_open("reads=8,rdatom=3", 0);
	struct ibv_ah_attr self = by_lid(&e, 1);

	assert_int_equal(e.device.max_qp_rd_atom, 3);
	assert_int_equal(e.device.max_qp_init_rd_atom, 8);
	assert_int_equal(qp_init(&e, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&e, &self, e.qp->qp_num, 4), EINVAL);
	assert_int_equal(qp_rtr(&e, &self, e.qp->qp_num, 3), 0);
	end_close(&e);
	e = end_open("reads=8,rdinit=100", 0);
	assert_int_equal(e.device.max_qp_rd_atom, 8);
	assert_int_equal(e.device.max_qp_init_rd_atom, 100);
	end_close(&e);
	/* perftest asks as many READs as max_qp_rd_atom says. */
	for (unsigned i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		e = end_open(sets[i], 0);
		assert_true(e.device.max_qp_init_rd_atom >= e.device.max_qp_rd_atom);
		end_close(&e);
	}
}

/* ---- Order ----------------------------------------------------------------- */

#if defined(__x86_64__) || defined(__i386__)
static void order_of(const char *spec, int init, int rts)
{
	struct end e = end_open(spec, 0);
	struct ibv_ah_attr self = by_lid(&e, 1);

	assert_int_equal(qp_init(&e, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(ibv_query_qp_data_in_order(e.qp, IBV_WR_RDMA_WRITE, 0), init);
	assert_int_equal(qp_rtr(&e, &self, e.qp->qp_num, 1), 0);
	assert_int_equal(ibv_query_qp_data_in_order(e.qp, IBV_WR_RDMA_WRITE, 0), init);
	assert_int_equal(qp_rts(&e), 0);
	assert_int_equal(ibv_query_qp_data_in_order(e.qp, IBV_WR_RDMA_WRITE, 0), rts);
	end_close(&e);
}

static void test_order(void **state)
{
	order_of("", 1, 1);
	order_of("order=rts", 0, 1);
	order_of("order=never", 0, 0);
	order_of("place=late", 0, 0);
	order_of("latency=1us", 0, 0);
	order_of("latency=1us,order=timed", 1, 1);
	order_of("latency=1us,order=rts", 0, 0);
	order_of("latency=1us,order=timed,place=late", 0, 0);
}
#endif

/*
 * A write onto its own source, half of it further down: if the end lands first, the begin that is
 * copied afterwards is the end.
 */
static unsigned char first_after(const char *spec, uint32_t flags, uint32_t bytes)
{
	struct end e = end_open(spec, 0);
	struct ibv_ah_attr self = by_lid(&e, 1);
	unsigned char *from = e.data + bytes / 2, first;
	struct ibv_sge sge = { .addr = (uintptr_t)from, .length = bytes, .lkey = e.mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED | flags, .wr.rdma = { .rkey = e.mr->rkey,
		.remote_addr = (uintptr_t)e.data } }, *bad;

	memset(from, 'b', bytes / 2);
	memset(from + bytes / 2, 'e', bytes / 2);
	assert_int_equal(qp_init(&e, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&e, &self, e.qp->qp_num, 1), 0);
	assert_int_equal(qp_rts(&e), 0);
	assert_int_equal(ibv_post_send(e.qp, &wr, &bad), 0);
	assert_int_equal(await(&e), IBV_WC_SUCCESS);
	first = e.data[0];
	assert_int_equal(e.data[bytes / 2], 'e');
	end_close(&e);
	return first;
}

static void test_late(void **state)
{
	static const uint32_t sizes[] = { 8, 64, 1000, BYTES };

	for (int i = 0; i < 4; i++) {
		assert_int_equal(first_after("", 0, sizes[i]), 'b');
		assert_int_equal(first_after("place=late", 0, sizes[i]), 'e');
		assert_int_equal(first_after("place=late/order", 0, sizes[i]), 'e');
		assert_int_equal(first_after("place=order/late", 0, sizes[i]), 'b');
		assert_int_equal(first_after("rate=1GB/s,place=late", 0, sizes[i]), 'e');
	}
	assert_int_equal(first_after("place=late", IBV_SEND_INLINE, 64), 'e');
}

/* ---- Ports ------------------------------------------------------------------ */

static void test_links(void **state)
{
	const char *spec = "link=ib+eth,lid=100,prefix=fec0000000000001,grh=required+optional";
	struct end a = end_open(spec, 0), b = end_open(spec, 1);
	struct ibv_ah_attr lid = by_lid(&b, 1);
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	struct ibv_ah *ah;

	assert_int_equal(a.port[0].link_layer, IBV_LINK_LAYER_INFINIBAND);
	assert_int_equal(a.port[1].link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(a.port[0].lid, 100);
	assert_int_equal(b.port[0].lid, 102);
	assert_int_equal(b.port[1].lid, 0);
	assert_int_equal(a.port[0].flags & IBV_QPF_GRH_REQUIRED, IBV_QPF_GRH_REQUIRED);
	assert_int_equal(a.port[1].flags & IBV_QPF_GRH_REQUIRED, 0);
	assert_int_equal(ibv_query_gid(a.c, 1, 0, &gid), 0);
	assert_int_equal(be64toh(gid.global.subnet_prefix), 0xfec0000000000001);
	assert_int_equal(ibv_query_gid_ex(a.c, 1, 0, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_IB);
	assert_int_equal(ibv_query_gid_ex(a.c, 1, 1, &entry, 0), ENODATA);
	/* No path without a GRH, on either port. */
	assert_int_equal(qp_init(&a, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&a, &lid, 1, 1), EINVAL);
	assert_null(ibv_create_ah(a.pd, &lid));
	assert_int_equal(errno, EINVAL);
	lid.port_num = 2;
	assert_null(ibv_create_ah(a.pd, &lid));
	assert_int_equal(errno, EINVAL);
	lid = by_gid(&b, 1, 0, 0);
	lid.dlid = b.port[0].lid;
	ah = ibv_create_ah(a.pd, &lid);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	end_close(&a);
	end_close(&b);
	assert_int_equal(written("link=ib", 1, 0, 0, -1), IBV_WC_SUCCESS);
	assert_int_equal(written("link=ib,lid=7", 2, 0, 0, -1), IBV_WC_SUCCESS);
	assert_int_equal(written("link=ib,lid=0,grh=required", 2, 0, 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(written("link=eth", 2, 0, 0, 1), IBV_WC_SUCCESS);
}

/* No path without a GRH leads to a port that requires one, from a port that does not. */
static void test_grh_of_peer(void **state)
{
	const char *spec = "link=ib,grh=optional/required";
	struct end a = end_open(spec, 0), b = end_open(spec, 1);
	struct ibv_ah_attr ah = by_lid(&b, 1);

	assert_int_equal(qp_init(&a, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&a, &ah, 1, 1), EHOSTUNREACH);
	assert_null(ibv_create_ah(a.pd, &ah));
	assert_int_equal(errno, EHOSTUNREACH);
	ah = by_gid(&b, 1, 0, 0);
	ah.dlid = b.port[0].lid;
	assert_int_equal(qp_rtr(&a, &ah, 1, 1), 0);
	end_close(&a);
	end_close(&b);
}

/* A LID is a subnet's; ports of another one are not reached, whatever their GID. */
static void test_prefixes(void **state)
{
	assert_int_equal(written("link=ib,prefix=1/2", 1, 0, 0, -1), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(written("link=ib,prefix=1/2", 1, 0, 0, 0), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(written("link=ib,prefix=1+2", 2, 0, 0, 0), IBV_WC_SUCCESS);
}

static void test_reach(void **state)
{
	const char *spec = "reach=0/soft0:1-1/soft0:1";

	assert_int_equal(written(spec, 1, 0, 0, 1), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(written(spec, 2, 0, 0, 1), IBV_WC_SUCCESS);
	assert_int_equal(written("rate=1GB/s,reach=0/soft0:1-1/soft0:1", 1, 0, 0, 1),
			 IBV_WC_RETRY_EXC_ERR);
}

/* A table of keys; a packet arrives in one partition, if one end is a full member. */
static void test_pkeys(void **state)
{
	const char *spec = "pkeys=7fff:8001+ffff/8001:0001";
	struct end a = end_open(spec, 0);
	__be16 key;

	assert_int_equal(a.port[0].pkey_tbl_len, 2);
	assert_int_equal(a.port[1].pkey_tbl_len, 1);
	assert_int_equal(ibv_query_pkey(a.c, 1, 1, &key), 0);
	assert_int_equal(be16toh(key), 0x8001);
	assert_int_equal(ibv_query_pkey(a.c, 1, 2, &key), -1);
	assert_int_equal(qp_init(&a, IBV_QPT_RC, 1, 2), EINVAL);
	end_close(&a);
	assert_int_equal(written(spec, 1, 1, 0, 1), IBV_WC_SUCCESS);	/* 8001 and 8001 */
	assert_int_equal(written(spec, 1, 1, 1, 1), IBV_WC_SUCCESS);	/* 8001 and 0001 */
	assert_int_equal(written(spec, 1, 0, 0, 1), IBV_WC_RETRY_EXC_ERR);	/* 7fff and 8001 */
	assert_int_equal(written("pkeys=0001", 1, 0, 0, 1), IBV_WC_RETRY_EXC_ERR);
}

/* Gaps, versions, several addresses, an entry that makes no address handle. */
static void test_gids(void **state)
{
	const char *spec = "link=eth,gids=gap:ll.v1:ip4.v1:ip4.v2:alt4.v2:ip6.v2!/ip4.v2:ll.v1:ip6.v2";
	struct end a = end_open(spec, 0), b = end_open(spec, 1);
	struct ibv_gid_entry entry, table[64];
	struct ibv_ah_attr to;
	struct ibv_ah *ah;

	assert_int_equal(ibv_query_gid_ex(a.c, 1, 0, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(a.c, 1, 1, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V1);
	assert_int_equal(ibv_query_gid_ex(a.c, 1, 3, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.gid.raw[12], 10);
	assert_int_equal(ibv_query_gid_ex(a.c, 2, 4, &entry, 0), 0);
	assert_int_equal(entry.gid.raw[13], 0x81);
	assert_int_equal(ibv_query_gid_table(a.c, table, 64, 0), 10);
	to = by_gid(&b, 1, 3, 0);		/* both v2 */
	ah = ibv_create_ah(a.pd, &to);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	to.grh.sgid_index = 0;			/* a gap */
	assert_null(ibv_create_ah(a.pd, &to));
	assert_int_equal(errno, EINVAL);
	to.grh.sgid_index = 2;			/* v1, and the peer has that address as v2 */
	assert_null(ibv_create_ah(a.pd, &to));
	assert_int_equal(errno, EHOSTUNREACH);
	to.grh.sgid_index = 1;			/* link-local to IPv4 */
	assert_null(ibv_create_ah(a.pd, &to));
	to = by_gid(&b, 1, 5, 2);		/* IPv6, and ! */
	assert_null(ibv_create_ah(a.pd, &to));
	assert_int_equal(errno, EHOSTUNREACH);
	assert_int_equal(qp_init(&a, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&a, &to, 1, 1), EHOSTUNREACH);
	to = by_gid(&a, 1, 2, 5);		/* the other way */
	ah = ibv_create_ah(b.pd, &to);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	end_close(&a);
	end_close(&b);
	assert_int_equal(written("gids=ip6.v2", 1, 0, 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(written("gids=gap:alt4.v1", 1, 0, 0, 1), IBV_WC_SUCCESS);
	assert_int_equal(written("gids=gap:same4.v2", 1, 0, 0, 1), IBV_WC_SUCCESS);
}

/* ---- Events ------------------------------------------------------------------ */

static void event_is(struct end *e, enum ibv_event_type type, int port)
{
	struct pollfd fd = { .fd = e->c->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(ibv_get_async_event(e->c, &event), 0);
	assert_int_equal(event.event_type, type);
	if (port)
		assert_int_equal(event.element.port_num, port);
	ibv_ack_async_event(&event);
}

static void test_events(void **state)
{
	struct end e = end_open("event=sm:0/soft0:2@1ms+gid:0/soft0:1@2ms+lid:1/soft0:1@2ms+"
				"pkey:0/soft0:1@3ms+client:0/soft0:1@4ms+lid:0/soft0:1@5ms,"
				"fatal=0/soft0:1@6ms", 0);
	struct ibv_ah_attr self = by_lid(&e, 1);
	struct ibv_port_attr port;

	assert_int_equal(qp_init(&e, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&e, &self, e.qp->qp_num, 1), 0);
	assert_int_equal(qp_rts(&e), 0);
	event_is(&e, IBV_EVENT_SM_CHANGE, 2);
	event_is(&e, IBV_EVENT_GID_CHANGE, 1);
	event_is(&e, IBV_EVENT_PKEY_CHANGE, 1);
	event_is(&e, IBV_EVENT_CLIENT_REREGISTER, 1);
	event_is(&e, IBV_EVENT_LID_CHANGE, 1);
	event_is(&e, IBV_EVENT_DEVICE_FATAL, 0);
	for (uint8_t p = 1; p <= 2; p++) {
		assert_int_equal(ibv_query_port(e.c, p, &port), 0);
		assert_int_equal(port.state, IBV_PORT_DOWN);
	}
	assert_int_equal(write_to(&e, &e), IBV_WC_RETRY_EXC_ERR);
	end_close(&e);
}

static uint16_t lid_now(const struct end *e, uint8_t port)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(e->c, port, &attr), 0);
	return attr.lid;
}

/* An event after which the port has another LID, other GIDs. */
static void test_moves(void **state)
{
	struct end e = end_open("link=ib+eth,event=lid:0/soft0:1@1ms+newlid:0/soft0:1@2ms+newgid:0/soft0:2@3ms", 0);
	const uint16_t lid = lid_now(&e, 1);
	struct ibv_ah_attr self = by_lid(&e, 1);
	union ibv_gid gid[2], now;

	for (uint8_t p = 1; p <= 2; p++)
		assert_int_equal(ibv_query_gid(e.c, p, 0, &gid[p - 1]), 0);
	assert_int_equal(qp_init(&e, IBV_QPT_RC, 1, 0), 0);
	assert_int_equal(qp_rtr(&e, &self, e.qp->qp_num, 1), 0);
	assert_int_equal(qp_rts(&e), 0);
	event_is(&e, IBV_EVENT_LID_CHANGE, 1);
	event_is(&e, IBV_EVENT_LID_CHANGE, 1);
	assert_int_not_equal(lid_now(&e, 1), lid);
	event_is(&e, IBV_EVENT_GID_CHANGE, 2);
	assert_int_equal(ibv_query_gid(e.c, 1, 0, &now), 0);
	assert_memory_equal(&now, &gid[0], sizeof(now));
	assert_int_equal(ibv_query_gid(e.c, 2, 0, &now), 0);
	assert_memory_not_equal(&now, &gid[1], sizeof(now));
	end_close(&e);
}

/* A test that fails leaves its fabric behind. */
static int new_fabric(void **state)
{
	static int number;

	(void)state;
	snprintf(fabric_name, sizeof(fabric_name), "personality-%d-%d", (int)getpid(), number++);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup(f, new_fabric)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_services),
		TEST(test_atomics),
		TEST(test_limits),
		TEST(test_no_inline),
		TEST(test_cq_memory),
		TEST(test_reads),
#if defined(__x86_64__) || defined(__i386__)
		TEST(test_order),
#endif
		TEST(test_late),
		TEST(test_links),
		TEST(test_grh_of_peer),
		TEST(test_prefixes),
		TEST(test_reach),
		TEST(test_pkeys),
		TEST(test_gids),
		TEST(test_events),
		TEST(test_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
