/*
 * responder.h - a queue pair whose messages arrive by the functions of object/responder.h: the test
 * is the link.
 */
#ifndef TESTS_RESPONDER_H
#define TESTS_RESPONDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "softhca/object/device.h"
#include "softhca/object/responder.h"
#include "softhca/softhca.h"

enum { ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND };

struct own {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_port_attr port;
};

struct own_config {
	const char *fabric;
	enum softhca_remap remap;
	int cqe;			/* 0: 64 */
	enum ibv_qp_type type;		/* 0: RC */
	unsigned access;		/* the queue pair's; 0: ALL_ACCESS */
	bool silent;			/* answers no READ and no atomic operation */
	bool without_qp;		/* the test makes its own */
	uint32_t dest_qpn;		/* 0: its own */
};

static inline struct ibv_qp *own_qp(struct own *o, const struct own_config *c, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .qp_type = c->type ? c->type : IBV_QPT_RC, .srq = srq,
		.send_cq = o->cq, .recv_cq = o->cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 3 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7,
				 .qp_access_flags = c->access ? c->access : ALL_ACCESS };
	struct ibv_qp *qp = ibv_create_qp(o->pd, &init);

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		(init.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), 0);
	return qp;
}

static inline void own_receive(struct own *o, struct ibv_qp *qp, const struct own_config *c)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = c->dest_qpn ? c->dest_qpn : qp->qp_num,
		.max_dest_rd_atomic = !c->silent,
		.ah_attr = { .dlid = o->port.lid, .port_num = 1 } };

	assert_int_equal(ibv_modify_qp(qp, &a, qp->qp_type == IBV_QPT_UD ? IBV_QP_STATE :
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
}

static inline void own_send(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .max_rd_atomic = 1, .timeout = 14,
				 .retry_cnt = 7, .rnr_retry = 7 };

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

/* A queue pair in RTR on node 0 (without_qp: none). */
static inline struct own own_make(struct own_config c)
{
	const struct softhca_config config = { .fabric = c.fabric, .spec = "ideal", .node = 0,
					       .remap = c.remap };
	struct ibv_device **list = softhca_get_device_list(&config, NULL);
	struct own o = { .qp = NULL };

	assert_non_null(list);
	o.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(o.ctx);
	assert_int_equal(ibv_query_port(o.ctx, 1, &o.port), 0);
	o.pd = ibv_alloc_pd(o.ctx);
	o.channel = ibv_create_comp_channel(o.ctx);
	o.cq = ibv_create_cq(o.ctx, c.cqe ? c.cqe : 64, NULL, o.channel, 0);
	assert_non_null(o.cq);
	if (!c.without_qp) {
		o.qp = own_qp(&o, &c, NULL);
		own_receive(&o, o.qp, &c);
	}
	return o;
}

static inline void own_free(struct own *o)
{
	if (o->qp)
		assert_int_equal(ibv_destroy_qp(o->qp), 0);
	assert_int_equal(ibv_destroy_cq(o->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(o->channel), 0);
	assert_int_equal(ibv_dealloc_pd(o->pd), 0);
	assert_int_equal(ibv_close_device(o->ctx), 0);
}

static inline struct hca_fabric *own_fabric(const struct own *o)
{
	return hca_context_of(o->ctx)->fabric;
}

/* hca_remote_address in a landing: the status, and *at. */
static inline int own_address(struct ibv_qp *qp, uint32_t rkey, uint64_t addr, uint32_t bytes,
			      unsigned need, unsigned char **at)
{
	int status = IBV_WC_GENERAL_ERR;

	hca_landing_begin(hca_qp_of(qp)->fabric);
	*at = hca_remote_address(hca_qp_of(qp), rkey, addr, bytes, need, &status);
	hca_landing_end(hca_qp_of(qp)->fabric);
	return *at ? IBV_WC_SUCCESS : status;
}

#endif
