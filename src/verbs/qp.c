/* qp.c - queue pairs: creation, connection, draining, destruction. */
#include <errno.h>
#include <string.h>

#include "util/err.h"
#include "util/random.h"
#include "verbs/vrb.h"

enum {
	/*
	 * 4.096 us x 2^18 = 1.07 s for each of 1 + 6 tries: congestion is not a dead peer, and TCP
	 * needs 5 s in all.
	 */
	QP_TIMEOUT = 18,
	/* 0.27 s: nothing is lost by congestion, and the longest modelled wire is 0.16 s. */
	QP_TIMEOUT_MEMORY = 16,
	QP_TIMEOUT_BRIEF = 15,		/* 0.13 s: 0.9 s in all */
	QP_RETRIES = 6,			/* 7 means for ever on rxe */
	QP_RNR_RETRIES = 6,		/* 7 means for ever everywhere */
	QP_RNR_RETRIES_EVER = 7,
	QP_RNR_TIMER = 12,		/* 0.64 ms */
	QP_RNR_TIMER_SHORT = 1,		/* 0.01 ms: for a receiver that is only late */
	QP_READS = 16,			/* outstanding RDMA reads at most; a byte of the address */
	QP_HOPS = 64,
};

/* Request inline space, then half of it and so on: a device refuses more than it has. */
static struct ibv_qp *qp_make_inline(struct vrb_adapter *a, const struct vrb_service *service,
			      const struct vrb_qp_limits *want, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;
	uint32_t bytes = want->inline_bytes;

	do {
		*init = (struct ibv_qp_init_attr){
			.send_cq = service->send_cq,
			.recv_cq = service->recv_cq,
			.srq = service->srq,
			.qp_type = service->type,
			.cap = {
				.max_send_wr = want->send_wr,
				.max_recv_wr = want->recv_wr,
				.max_send_sge = want->send_sge,
				.max_recv_sge = want->recv_sge,
				.max_inline_data = bytes,
			},
		};
		errno = 0;
		qp = ibv_create_qp(a->pd, init);
		bytes = bytes > 32 ? bytes / 2 : 0;
	} while (!qp && init->cap.max_inline_data);
	return qp;
}

static int qp_to_init(struct ibv_qp *qp, const struct vrb_port *port, bool atomics)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port->number,
		.pkey_index = port->pkey_index,
		.qkey = VRB_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (qp->qp_type == IBV_QPT_RC)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (atomics)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int vrb_qp_create_of(struct vrb_adapter *adapter, const struct vrb_port *port,
		     const struct vrb_service *service, const struct vrb_qp_limits *want,
		     struct vrb_qp *out)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = qp_make_inline(adapter, service, want, &init);
	char why[160];
	int rc;

	if (!qp) {
		rc = errno ? -errno : -EIO;
		rg_error("%s: cannot make a queue pair (%u send, %u receive requests): %s", port->name,
			 want->send_wr, want->recv_wr,
			 vrb_qp_refused(adapter, service->type, want, rc, why, sizeof(why)));
		return rc;
	}
	rc = qp_to_init(qp, port, service->atomics);
	if (rc) {
		rc = rc > 0 ? -rc : -EIO;
		rg_error("%s: cannot set up a queue pair: %s", port->name, strerror(-rc));
		ibv_destroy_qp(qp);
		return rc;
	}
	*out = (struct vrb_qp){
		.qp = qp,
		.psn = rg_random() & 0xffffff,		/* has 24 bits */
		.patient = service->patient,
		.brief = service->brief,
		.atomics = service->atomics,
		.granted = {
			.send_wr = init.cap.max_send_wr,
			.recv_wr = init.cap.max_recv_wr,
			.send_sge = init.cap.max_send_sge,
			.recv_sge = init.cap.max_recv_sge,
			.inline_bytes = init.cap.max_inline_data,
		},
	};
	return 0;
}

int vrb_qp_create(struct vrb_adapter *adapter, const struct vrb_port *port, struct ibv_cq *cq,
		  struct ibv_srq *srq, const struct vrb_qp_limits *want, struct vrb_qp *out)
{
	const struct vrb_service service = {
		.type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .srq = srq,
	};

	return vrb_qp_create_of(adapter, port, &service, want, out);
}

int vrb_qp_reset(struct vrb_qp *qp, const struct vrb_port *port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int rc = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

	if (!rc)
		rc = qp_to_init(qp->qp, port, qp->atomics);
	if (!rc) {
		qp->stopped = false;
		return 0;
	}
	rc = rc > 0 ? -rc : -EIO;
	rg_error("%s: cannot set a queue pair back: %s", port->name, strerror(-rc));
	return rc;
}

static uint8_t reads_of_device(int device)
{
	return (uint8_t)(device < QP_READS ? device : QP_READS);
}

void vrb_qp_address(const struct vrb_adapter *adapter, const struct vrb_qp *qp,
		    const struct vrb_port *port, struct vrb_address *out)
{
	memset(out, 0, sizeof(*out));
	out->qpn = qp->qp->qp_num;
	out->psn = qp->psn;
	out->lid = port->lid;
	out->mtu = (uint8_t)port->mtu;
	out->link_layer = port->link_layer;
	out->grh = port->grh;
	out->reads_in = reads_of_device(adapter->attr.max_qp_rd_atom);
	out->reads_out = reads_of_device(adapter->attr.max_qp_init_rd_atom);
	memcpy(out->gid, port->gid.raw, sizeof(out->gid));
}

static uint8_t reads_agreed(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

struct ibv_ah_attr vrb_path(const struct vrb_port *port, uint16_t lid,
			    const unsigned char gid[VRB_GID_BYTES], bool grh)
{
	struct ibv_ah_attr path = { .dlid = lid, .port_num = port->number, .sl = port->sl };
	const bool no_lid = !lid || !port->lid;

	if (port->link_layer == IBV_LINK_LAYER_ETHERNET || port->grh || grh || no_lid) {
		path.is_global = 1;
		memcpy(path.grh.dgid.raw, gid, sizeof(path.grh.dgid.raw));
		path.grh.sgid_index = (uint8_t)port->gid_index;
		path.grh.hop_limit = QP_HOPS;
		path.grh.traffic_class = port->tclass;
	}
	return path;
}

static int qp_to_rtr(struct vrb_adapter *a, struct vrb_qp *qp, const struct vrb_port *port,
		     const struct vrb_address *theirs)
{
	int mask = IBV_QP_STATE;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = theirs->mtu < port->mtu ? theirs->mtu : port->mtu,
		.dest_qp_num = theirs->qpn,
		.rq_psn = theirs->psn,
		.max_dest_rd_atomic = reads_agreed(reads_of_device(a->attr.max_qp_rd_atom), theirs->reads_out),
		.min_rnr_timer = qp->patient ? QP_RNR_TIMER_SHORT : QP_RNR_TIMER,
		.ah_attr = vrb_path(port, theirs->lid, theirs->gid, theirs->grh),
	};

	if (qp->qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp->qp, &attr, mask);
}

static bool is_memory(const struct vrb_adapter *a)
{
	return a->kind == VRB_SOFTHCA && !a->net;
}

static int qp_to_rts(struct vrb_adapter *a, struct vrb_qp *qp, const struct vrb_address *theirs)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = qp->brief ? QP_TIMEOUT_BRIEF :
			   is_memory(a) ? QP_TIMEOUT_MEMORY : QP_TIMEOUT,
		.retry_cnt = QP_RETRIES,
		.rnr_retry = qp->patient ? QP_RNR_RETRIES_EVER :
			     is_memory(a) ? 0 : QP_RNR_RETRIES,
		.sq_psn = qp->psn,
		.max_rd_atomic = reads_agreed(reads_of_device(a->attr.max_qp_init_rd_atom), theirs->reads_in),
	};

	if (qp->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp->qp, &attr, mask);
}

/* The request of a datagram names the peer; the queue pair itself is unconnected. */
static int qp_way(struct vrb_adapter *a, struct vrb_qp *qp, const struct vrb_port *port,
		  const struct vrb_address *theirs)
{
	struct ibv_ah_attr path = vrb_path(port, theirs->lid, theirs->gid, theirs->grh);

	if (qp->qp->qp_type != IBV_QPT_UD || qp->ah)
		return 0;
	errno = 0;
	qp->ah = ibv_create_ah(a->pd, &path);
	qp->peer_qpn = theirs->qpn;
	return qp->ah ? 0 : errno ? errno : EIO;
}

/* *state, on failure: the one that the queue pair cannot go to.  0 or -errno, silent. */
static int qp_connect(struct vrb_adapter *a, struct vrb_qp *qp, const struct vrb_port *port,
		      const struct vrb_address *theirs, const char **state)
{
	int rc;

	*state = "RTR";
	rc = qp_to_rtr(a, qp, port, theirs);
	if (!rc) {
		*state = "RTS";
		rc = qp_to_rts(a, qp, theirs);
	}
	if (!rc)
		rc = qp_way(a, qp, port, theirs);
	return rc > 0 ? -rc : rc ? -EIO : 0;
}

static bool has_address(const struct vrb_port *port)
{
	return port->link_layer != IBV_LINK_LAYER_ETHERNET || port->gid_index >= 0;
}

int vrb_qp_connect(struct vrb_adapter *adapter, struct vrb_qp *qp, const struct vrb_port *port,
		   const struct vrb_address *theirs)
{
	const char *state;
	int rc;

	if (!has_address(port)) {
		rg_error("%s: this port has no GID: give its network interface an address",
			 port->name);
		return -EADDRNOTAVAIL;
	}
	rc = qp_connect(adapter, qp, port, theirs, &state);
	if (rc)
		rg_error("%s: queue pair 0x%x cannot go to %s: %s", port->name, qp->qp->qp_num,
			 state, strerror(-rc));
	return rc;
}

int vrb_qp_connect_self(struct vrb_adapter *adapter, struct vrb_qp *qp, const struct vrb_port *port)
{
	struct vrb_address own;
	const char *state;

	if (!has_address(port))
		return -EADDRNOTAVAIL;
	vrb_qp_address(adapter, qp, port, &own);
	return qp_connect(adapter, qp, port, &own, &state);
}

void vrb_qp_stop(struct vrb_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (qp->qp && !qp->stopped)
		ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
	qp->stopped = true;
}

int vrb_qp_stop_marked(struct vrb_qp *qp, uint64_t wr_id)
{
	struct ibv_send_wr send = {
		.wr_id = wr_id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = wr_id }, *bad_recv;
	int markers = 0;

	if (!qp->qp)
		return 0;
	if (qp->qp->qp_type == IBV_QPT_UD) {
		send.wr.ud.ah = qp->ah;
		send.wr.ud.remote_qpn = qp->peer_qpn;
		send.wr.ud.remote_qkey = VRB_QKEY;
	}
	if (!qp->stopped && !qp->qp->srq)
		markers += ibv_post_recv(qp->qp, &recv, &bad_recv) == 0;
	vrb_qp_stop(qp);
	/* Some devices check the address of a datagram, even of one that stays here. */
	if (qp->qp->qp_type != IBV_QPT_UD || qp->ah)
		markers += ibv_post_send(qp->qp, &send, &bad_send) == 0;
	return markers;
}

void vrb_qp_destroy(struct vrb_qp *qp)
{
	if (qp->ah)
		ibv_destroy_ah(qp->ah);
	if (qp->qp)
		ibv_destroy_qp(qp->qp);
	qp->ah = NULL;
	qp->qp = NULL;
}
