/*
 * link.h - the contract between queue pairs and the transport of their work to a peer.
 *
 * A link carries out the work requests of a fabric's queue pairs: link/memory between processes of
 * one host.  The engine, which like a link is above objects, decides about order, time, retries,
 * fences and flushing, and calls a link only through struct hca_link_operations.  Objects call it
 * where the lifetime of things that peers use begins or ends.  Only the exported verbs (api) name a
 * link.
 *
 * The parts of a queue pair that a link may use are in qp.h: its connection and the message being
 * carried out.  A link finds queue pairs, claims receives, checks keys and adds completions by the
 * functions of object/.  No operation blocks longer than documented.  None allocates or makes a
 * system call for a message to mapped memory over an established connection.
 */
#ifndef HCA_LINK_H
#define HCA_LINK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct hca_fabric;
struct hca_mr;
struct hca_qp;

enum hca_fate {
	HCA_FATE_ALIVE,
	HCA_FATE_LEFT,		/* left in good order, or its slot has another owner */
	HCA_FATE_DEAD,		/* ended without leaving */
};

/*
 * Result of a transfer: IBV_WC_SUCCESS; another enum ibv_wc_status: a permanent failure; or one
 * of these.  On an unreliable queue pair, a message that meets an obstacle is lost and its request
 * succeeds: no negative result and no remote status.
 */
enum {
	HCA_NO_RECEIVE = -1,		/* the peer has posted none */
	HCA_NO_PEER = -2,		/* the peer cannot be reached */
	HCA_PEER_DIED = -3,
	HCA_BUSY = -4,			/* in use by another process: no reason to give up */
};

struct hca_link_operations {
	/* ---- The processes of the fabric ---- */

	/* The fate of the process in a slot; of a claimer (hca_shm_claim): LEFT if its slot was reused. */
	enum hca_fate (*slot_fate)(struct hca_fabric *f, uint32_t slot);
	enum hca_fate (*claim_fate)(struct hca_fabric *f, uint32_t claim);
	/* The fate of the process that has this queue pair number; LEFT if none has. */
	enum hca_fate (*number_fate)(struct hca_fabric *f, uint32_t qpn);
	/* Check all peers once, for peer_lost. */
	void (*look)(struct hca_fabric *f);

	/* ---- Withdrawing things that peers use ---- */

	/*
	 * Wait until no peer of `only` (NULL: no peer of any queue pair of this process, nor a
	 * thread of this process) uses anything that was withdrawn before this call.  The wait for
	 * a stopped peer is a second at most, for a dead one none; false: a peer may still use it.
	 */
	bool (*quiesce)(struct hca_fabric *f, struct hca_qp *only);
	/* The queue pair accepts nothing now: is its peer still in an access section? */
	bool (*peer_in_access_section)(struct hca_qp *qp);
	/* A registration that peers may need copied for them is published; one is withdrawn. */
	void (*mr_published)(struct hca_fabric *f, const struct hca_mr *mr);
	void (*mr_withdrawn)(struct hca_fabric *f);

	/* ---- Life of a queue pair ---- */

	/* Claim a number, unique on the fabric, for an index; 0: the fabric is full. */
	uint32_t (*number_claim)(struct hca_fabric *f, uint32_t index);
	void (*number_release)(struct hca_fabric *f, uint32_t qpn);
	/* The link's data of a queue pair: 0 or ENOMEM.  qp_free also frees a partial one. */
	int (*qp_make)(struct hca_qp *qp);
	void (*qp_free)(struct hca_qp *qp);
	/* Drop every connection and the message in progress.  qp->lock held. */
	void (*qp_reset)(struct hca_qp *qp);
	/* Datagrams: drop the destinations whose processes have gone.  qp->lock held. */
	void (*qp_look)(struct hca_qp *qp);
	/* Has the process of the connected peer ended without leaving?  qp->lock held. */
	bool (*peer_lost)(struct hca_qp *qp);

	/* ---- Work requests; qp->lock held, qp in a state that sends ---- */

	/*
	 * Carry out a request as far as possible now.  The peer's completion, if any, has then been
	 * delivered; the local one is the caller's task.
	 */
	int (*transfer_whole)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
	/*
	 * The commonest request, carried out at once: an RDMA write of one piece, 1 to
	 * HCA_MESSAGE_MAX bytes, over a path that loses nothing.  False: the request is another
	 * one, and nothing was done.
	 */
	bool (*write_short)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
	/* transfer_whole in steps, for messages that take time. */
	int (*transfer_begin)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
	/* *deferred: bytes deferred at the end (deferred.h); NULL: nothing is deferred. */
	int (*transfer_copy)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
			     uint32_t *deferred);
	void (*transfer_defer)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t deferred,
			       uint64_t due_ns);
	int (*transfer_end)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns);
	/* Abandon the message in progress, if any, and release its claims. */
	void (*transfer_drop)(struct hca_qp *qp);
	/* Write the deferred ends that are due. */
	void (*release_deferred)(struct hca_qp *qp, uint64_t now_ns);
	/*
	 * An unreliable message that found no receive waits for a lagging receiver, a second at
	 * most; false: this message has waited long enough.
	 */
	bool (*wait_for_receiver)(struct hca_qp *qp);
};

#endif
