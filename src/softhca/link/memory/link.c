/* link.c - the memory link's side of the contract (object/link.h). */
#include <stdlib.h>

#include "softhca/link/memory/bounce.h"
#include "softhca/link/memory/connect.h"
#include "softhca/link/memory/deferred.h"
#include "softhca/link/memory/join.h"
#include "softhca/link/memory/numbers.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/steps.h"
#include "softhca/link/memory/transfer.h"
#include "softhca/link/memory/ud.h"

static int conn_qp_make(struct hca_qp *qp)
{
	if (qp->fabric->spec.timed) {
		qp->deferred = calloc(1, sizeof(*qp->deferred));
		if (!qp->deferred)
			return ENOMEM;
	}
	return qp->datagram ? hca_ud_make(qp) : 0;
}

static void qp_free(struct hca_qp *qp)
{
	hca_ud_free(qp);
	free(qp->deferred);
	qp->deferred = NULL;
}

static void qp_reset(struct hca_qp *qp)
{
	hca_transfer_drop(qp);
	hca_conn_drop(&qp->conn);
	hca_ud_reset(qp);
}

/*
 * A process that leaves in good order clears its accept tokens.  So a token that is
 * still valid after its process is gone means death, even if another process has the
 * slot by now.
 */
static bool conn_died(const struct hca_conn *c)
{
	if (c->peer->fate == HCA_FATE_ALIVE)
		return false;
	return c->peer->fate == HCA_FATE_DEAD ||
	       (c->shm && atomic_load_explicit(&c->shm->accept, memory_order_relaxed) == c->accept);
}

static enum hca_fate number_fate(struct hca_fabric *f, uint32_t qpn)
{
	uint32_t slot, index;

	return hca_number_find(f, qpn, &slot, &index) ? HCA_FATE_LEFT : hca_slot_fate(f, slot);
}

static bool number_owner(struct hca_fabric *f, uint32_t qpn, uint32_t *slot, uint32_t *index)
{
	return !hca_number_find(f, qpn, slot, index);
}

/* A peer that was never seen alive: its queue pair's number names its slot. */
static bool died_unseen(const struct hca_qp *qp)
{
	return number_fate(qp->fabric, qp->conn.qpn) == HCA_FATE_DEAD;
}

static bool conn_peer_lost(struct hca_qp *qp)
{
	if (!qp->conn.peer) {
		hca_conn_resolve(qp, &qp->conn);
		/* Nothing was sent yet: the first message resolves again and raises COMM_EST. */
		qp->conn.shm = NULL;
	}
	return qp->conn.peer ? conn_died(&qp->conn) : died_unseen(qp);
}

/* The first message resolves the connection. */
static int conn_qp_connect(struct hca_qp *qp)
{
	(void)qp;
	return 0;
}

/* Nothing is under way after an operation. */
static void conn_qp_stop(struct hca_qp *qp)
{
	(void)qp;
}

static uint32_t conn_rnr_timer(const struct hca_qp *qp)
{
	return atomic_load_explicit(&qp->conn.shm->rnr_timer, memory_order_relaxed);
}

const struct hca_link_operations hca_memory_link = {
	.slot_fate = hca_slot_fate,
	.claim_fate = hca_claim_fate,
	.number_fate = number_fate,
	.look = hca_peers_look,
	.quiesce = hca_quiesce,
	.peer_in_access_section = hca_peer_in_access_section,
	.mr_published = hca_copy_service_need,
	.mr_withdrawn = hca_copy_service_quiesce,
	.number_claim = hca_number_claim,
	.number_release = hca_number_release,
	.number_owner = number_owner,
	.qp_make = conn_qp_make,
	.qp_free = qp_free,
	.qp_connect = conn_qp_connect,
	.qp_stop = conn_qp_stop,
	.qp_reset = qp_reset,
	.qp_look = hca_ud_look,
	.peer_lost = conn_peer_lost,
	.rnr_timer = conn_rnr_timer,
	.write_short = hca_write_short,
	.transfer_whole = hca_transfer_whole,
	.transfer_begin = hca_transfer_begin,
	.transfer_copy = hca_transfer_copy,
	.transfer_defer = hca_transfer_defer,
	.transfer_end = hca_transfer_end,
	.transfer_drop = hca_transfer_drop,
	.release_deferred = hca_deferred_release,
	.wait_for_receiver = hca_wait_for_receiver,
};
