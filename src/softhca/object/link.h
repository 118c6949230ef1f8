/*
 * link.h - the contract between queue pairs and how their work reaches a peer.
 *
 * A link carries out the work requests of a fabric's queue pairs: link/memory between processes of
 * one host.  The engine, above objects as a link is, decides about order, time, retries, fences and
 * flushing, and calls a link through struct hca_link_operations alone; objects call it where the
 * life of what peers use begins or ends.  Only the exported verbs (api) name a link.
 *
 * What a link may use of a queue pair is in qp.h: its connection, the message that is being carried
 * out.  It finds queue pairs, claims receives, checks keys and adds completions by the functions of
 * object.  No operation blocks longer than it says; none allocates or makes a system call for a
 * message to mapped memory over a connection that stands.
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
	HCA_FATE_LEFT,		/* went in good order, or its slot is another's by now */
	HCA_FATE_DEAD,		/* ended without a word */
};

/*
 * What a transfer returns: IBV_WC_SUCCESS; another enum ibv_wc_status: it failed for good; or one
 * of these.  Of a queue pair that is not reliable, what meets an obstacle on its way is lost, and
 * the request a success: none of the negative results, and no remote status.
 */
enum {
	HCA_NO_RECEIVE = -1,		/* the peer has posted none */
	HCA_NO_PEER = -2,		/* nothing answers */
	HCA_PEER_DIED = -3,
	HCA_BUSY = -4,			/* another process is at it: no reason to give up */
};

struct hca_link_operations {
	/* ---- The processes of the fabric ---- */

	/* Of the process in a slot; of a claimer (hca_shm_claim): LEFT when another has its slot. */
	enum hca_fate (*slot_fate)(struct hca_fabric *f, uint32_t slot);
	enum hca_fate (*claim_fate)(struct hca_fabric *f, uint32_t claim);
	/* Look at all peers once, for peer_lost. */
	void (*look)(struct hca_fabric *f);

	/* ---- What peers use, and is withdrawn ---- */

	/*
	 * Wait until no peer of `only` (NULL: of any queue pair of this process, nor a thread of
	 * this process) uses what was withdrawn before this call.  A peer that is stopped is waited
	 * for a second at most, a dead one not at all; false: it may still be at it.
	 */
	bool (*quiesce)(struct hca_fabric *f, struct hca_qp *only);
	/* Is the peer of this queue pair, which takes nothing any more, still at it? */
	bool (*peer_inside)(struct hca_qp *qp);
	/* A registration is there, which peers may want copied for them; one is not any more. */
	void (*mr_shown)(struct hca_fabric *f, const struct hca_mr *mr);
	void (*mr_hidden)(struct hca_fabric *f);

	/* ---- Life of a queue pair ---- */

	/* A number for the one with this index, unique on the fabric; 0: the fabric is full. */
	uint32_t (*number_claim)(struct hca_fabric *f, uint32_t index);
	void (*number_release)(struct hca_fabric *f, uint32_t qpn);
	/* What the link keeps of it: 0 or ENOMEM.  Free also what was made in part. */
	int (*qp_make)(struct hca_qp *qp);
	void (*qp_free)(struct hca_qp *qp);
	/* Every connection and the message that was begun are forgotten.  qp->lock held. */
	void (*qp_reset)(struct hca_qp *qp);
	/* Datagrams: forget the ways to processes that have gone.  qp->lock held. */
	void (*qp_look)(struct hca_qp *qp);
	/* Has the process of the connected peer ended without a word?  qp->lock held. */
	bool (*peer_lost)(struct hca_qp *qp);

	/* ---- Work requests; qp->lock held, qp in a state that sends ---- */

	/*
	 * Carry one out as far as it goes now; the peer's completion, if any, has been delivered,
	 * ours is the caller's business.  transfer has a short cut for short writes, which knows no
	 * loss; transfer_whole has none.
	 */
	int (*transfer)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
	int (*transfer_whole)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
	/* The same in steps, for messages that take their time. */
	int (*transfer_begin)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
	/* `deferred` (may be NULL): the end is held back (deferred.h); how many of the bytes. */
	int (*transfer_copy)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes,
			     uint32_t *deferred);
	void (*transfer_defer)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t deferred,
			       uint64_t due_ns);
	int (*transfer_end)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint64_t visible_ns);
	/* The message that was begun, if any, is not going to end: what it has claimed goes back. */
	void (*transfer_drop)(struct hca_qp *qp);
	/* Write what was held back and is due. */
	void (*release_deferred)(struct hca_qp *qp, uint64_t now_ns);
	/*
	 * What is not reliable and found no receive waits for a receiver that lags behind, a second
	 * at most; false: this message has waited long enough.
	 */
	bool (*lag_waits)(struct hca_qp *qp);
};

#endif
