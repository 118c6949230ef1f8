/* ud.c - datagrams: a queue pair that reaches all peers, before a connection exists. */
#include <errno.h>
#include <string.h>

#include "util/err.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

static int ud_failed(const struct vrb_port *port, const char *what, int rc)
{
	rc = rc > 0 ? -rc : rc < 0 ? rc : -EIO;
	rg_error("%s: cannot %s for datagrams: %s", port->name, what, strerror(-rc));
	return rc;
}

static int ud_refused(const struct vrb_port *port, const char *what, int rc, const char *why)
{
	rg_error("%s: cannot make a %s for datagrams, by which peers connect: %s", port->name, what, why);
	return rc;
}

static int ud_up(struct ibv_qp *qp, const struct vrb_port *port)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port->number,
		.pkey_index = port->pkey_index,
		.qkey = VRB_QKEY,
	};
	int rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			       IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!rc)
		rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!rc)
		rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return rc;
}

int vrb_ud_create(struct vrb_adapter *adapter, const struct vrb_port *port, uint32_t send_wr,
		  uint32_t recv_wr, struct vrb_ud *out)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = send_wr, .max_recv_wr = recv_wr,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	const struct vrb_qp_limits want = {
		.send_wr = send_wr, .recv_wr = recv_wr, .send_sge = 1, .recv_sge = 1,
	};
	struct vrb_ud ud = { 0 };
	char why[160];
	int rc;

	errno = 0;
	ud.cq = ibv_create_cq(adapter->context, (int)(send_wr + recv_wr), NULL, NULL, 0);
	if (!ud.cq) {
		rc = errno ? -errno : -EIO;
		return ud_refused(port, "completion queue", rc, vrb_cq_refused(adapter, send_wr + recv_wr,
				  rc, why, sizeof(why)));
	}
	init.send_cq = init.recv_cq = ud.cq;
	ud.qp = ibv_create_qp(adapter->pd, &init);
	if (!ud.qp) {
		rc = errno ? -errno : -EIO;
		ud_refused(port, "queue pair", rc, vrb_qp_refused(adapter, IBV_QPT_UD, &want, rc, why,
								  sizeof(why)));
		goto undo;
	}
	rc = ud_up(ud.qp, port);
	if (rc) {
		rc = ud_failed(port, "set up a queue pair", rc);
		goto undo;
	}
	*out = ud;
	return 0;
undo:
	vrb_ud_destroy(&ud);
	return rc;
}

void vrb_ud_destroy(struct vrb_ud *ud)
{
	if (ud->qp)
		ibv_destroy_qp(ud->qp);
	if (ud->cq)
		ibv_destroy_cq(ud->cq);
	memset(ud, 0, sizeof(*ud));
}

void vrb_ud_address(const struct vrb_ud *ud, const struct vrb_port *port,
		    struct vrb_ud_address *out)
{
	memset(out, 0, sizeof(*out));
	out->qpn = ud->qp->qp_num;
	out->lid = port->lid;
	out->grh = port->grh;
	memcpy(out->gid, port->gid.raw, sizeof(out->gid));
}

int vrb_ud_way(struct vrb_adapter *adapter, const struct vrb_port *port,
	       const struct vrb_ud_address *theirs, struct ibv_ah **out)
{
	struct ibv_ah_attr path = vrb_path(port, theirs->lid, theirs->gid, theirs->grh);
	struct ibv_ah *ah;

	errno = 0;
	ah = ibv_create_ah(adapter->pd, &path);
	if (!ah)
		return errno ? -errno : -EIO;
	*out = ah;
	return 0;
}

static int reach_lost(const struct vrb_port *port, int reach, const char **why)
{
	switch (reach) {
	case SOFTHCA_CUT:
		*why = port->net ? "its host does not answer there, or refuses connections" :
				   "a port on the way is DOWN, or packets are lost";
		return -ENETUNREACH;
	case SOFTHCA_RESET:
		*why = "the other end has reset it: its process has ended, or has lost the path";
		return -ENETUNREACH;
	case SOFTHCA_LEFT:
		*why = "its process has closed its rails, or ended";
		return -ESHUTDOWN;
	case SOFTHCA_DEAD:
		*why = "its process has ended";
		return -ECONNRESET;
	default:
		return 0;
	}
}

bool vrb_qp_hears_peer(const struct vrb_port *port, const struct vrb_qp *qp)
{
	return port->net && qp->qp && softhca_hears_peer(qp->qp);
}

int vrb_qp_lost(struct vrb_adapter *adapter, const struct vrb_port *port, const struct vrb_qp *qp,
		const char **why)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_ah *ah;
	int rc;

	if (port->kind != VRB_SOFTHCA || !qp->qp ||
	    ibv_query_qp(qp->qp, &attr, IBV_QP_AV | IBV_QP_DEST_QPN, &init))
		return 0;
	ah = ibv_create_ah(adapter->pd, &attr.ah_attr);
	if (!ah)
		return 0;
	rc = reach_lost(port, softhca_query_reach(ah, attr.dest_qp_num), why);
	ibv_destroy_ah(ah);
	return rc;
}

int vrb_ud_lost(struct vrb_adapter *adapter, const struct vrb_port *port,
		const struct vrb_ud_address *theirs, const char **why)
{
	struct ibv_ah *ah;
	int rc = vrb_ud_way(adapter, port, theirs, &ah);

	if (rc) {
		*why = strerror(-rc);
		return -ENETUNREACH;
	}
	if (port->kind == VRB_SOFTHCA) {
		rc = reach_lost(port, softhca_query_reach(ah, theirs->qpn), why);
	} else if (vrb_port_state_now(adapter->context, port) != IBV_PORT_ACTIVE) {
		*why = "the port here is not ACTIVE";
		rc = -ENETUNREACH;
	}
	ibv_destroy_ah(ah);
	return rc;
}

int vrb_ud_send(struct vrb_ud *ud, struct ibv_ah *ah, uint32_t qpn, uint64_t wr_id,
		const void *at, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = bytes, .lkey = lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = VRB_QKEY },
	};

	return -ibv_post_send(ud->qp, &wr, &bad);
}

int vrb_ud_receive(struct vrb_ud *ud, uint64_t wr_id, void *at, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = bytes, .lkey = lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return -ibv_post_recv(ud->qp, &wr, &bad);
}
