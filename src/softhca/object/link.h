/*
 * link.h - the contract between queue pairs and the transport of their work to a peer.
 *
 * A link carries out the work requests of queue pairs: link/memory between processes of one host
 * (fabric->link), and a wire to other hosts, if the fabric has one (fabric->wire).  qp->link is the
 * queue pair's: fabric->link from its creation on, chosen again when it is connected; of UD on a
 * fabric with a wire always the wire, which hands datagrams to local addresses to fabric->link.
 * The engine, which like a link is above objects, decides about order, time, retries, fences and
 * flushing, and calls a link only through struct hca_link_operations.  Objects call it where the
 * lifetime of things that peers use begins or ends.  Only the exported verbs (api) name a link.
 *
 * Requests under way.  A wire accepts a request (HCA_UNDERWAY) and tells later how it ended, by
 * struct hca_link_upcalls.  Requests under way are the oldest of the send queue: positions
 * [sq.next - sq.under_way, sq.next).  They end in order.  Their work requests, inline data
 * included, stay valid and in place until then.
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
	HCA_FATE_UNREACHED,	/* of another host: the last call reached no process of the fabric there */
	HCA_FATE_RESET,		/* of another host: it has reset a connection */
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
	/* A wire's. */
	HCA_UNDERWAY = -5,		/* accepted: ended, failed or rewound follows */
	HCA_LATER = -6,			/* not now: resume follows */
};

/*
 * Calls by which a link tells of a queue pair: fabric->upcalls, the engine's.  qp->lock and fabric.life held;
 * not from within an operation on the same queue pair.  None calls the link except for qp_stop,
 * which failed, lost and a rewound that exhausts the retries call: requests are handed over when the
 * engine has its next turn, in hca_engine_run right after `progress`.
 */
struct hca_link_upcalls {
	/* The oldest `count` requests under way succeeded. */
	void (*ended)(struct hca_qp *qp, uint32_t count);
	/* The oldest one under way ended with this status, an enum ibv_wc_status: error state, or SQE. */
	void (*failed)(struct hca_qp *qp, int status);
	/*
	 * All under way go back into the queue and are handed over again, by the rules of retries
	 * for the oldest.  HCA_NO_RECEIVE: its answer was RNR (link->rnr_timer); HCA_NO_PEER:
	 * nothing of it arrived.
	 */
	void (*rewound)(struct hca_qp *qp, int why);
	/* Requests are accepted again after HCA_LATER. */
	void (*resume)(struct hca_qp *qp);
	/*
	 * RC: the peer's process has ended.  The oldest request fails with IBV_WC_RETRY_EXC_ERR; if
	 * there is none, IBV_EVENT_QP_FATAL is raised.  Error state.
	 */
	void (*lost)(struct hca_qp *qp);
};

/*
 * An operation that is not marked is every link's.  [memory]: asked of fabric->link alone, NULL in a
 * wire; [wire]: asked of fabric->wire alone, NULL in memory.
 */

struct hca_link_operations {
	/* ---- The processes of the fabric; [memory] but look ---- */

	/* The fate of the process in a slot; of a claimer (hca_shm_claim): LEFT if its slot was reused. */
	enum hca_fate (*slot_fate)(struct hca_fabric *f, uint32_t slot);
	enum hca_fate (*claim_fate)(struct hca_fabric *f, uint32_t claim);
	/* The fate of the process that has this queue pair number; LEFT if none has. */
	enum hca_fate (*number_fate)(struct hca_fabric *f, uint32_t qpn);
	/* Check all peers once, for peer_lost.  Every link's. */
	void (*look)(struct hca_fabric *f);

	/* ---- Withdrawing things that peers use: asked of both links (hca_links_*) ---- */

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

	/* Claim a number, unique on the fabric, for an index; 0: the fabric is full.  [memory] */
	uint32_t (*number_claim)(struct hca_fabric *f, uint32_t index);
	void (*number_release)(struct hca_fabric *f, uint32_t qpn);	/* [memory] */
	/* The process of this host that has a number, and the index there; false: none.  [memory] */
	bool (*number_owner)(struct hca_fabric *f, uint32_t qpn, uint32_t *slot, uint32_t *index);
	/*
	 * The link's data of a queue pair, of both links: 0 or ENOMEM.  qp_free also frees a partial
	 * one, or none.
	 */
	int (*qp_make)(struct hca_qp *qp);
	void (*qp_free)(struct hca_qp *qp);
	/*
	 * INIT -> RTR, its attributes applied, qp->link chosen: 0, or an errno value, and the queue
	 * pair stays in INIT.  qp->lock and fabric.life held.
	 */
	int (*qp_connect)(struct hca_qp *qp);
	/* RTR -> RTS, or back to RTS: sq_psn is set.  qp->lock and fabric.life held.  [wire] */
	void (*qp_sends)(struct hca_qp *qp);
	/*
	 * The queue pair enters ERR or SQE: drop what is under way, release the receives claimed for
	 * it (ERR).  No upcall follows.  qp->lock held, fabric.life only perhaps; may come from
	 * within an upcall.
	 */
	void (*qp_stop)(struct hca_qp *qp);
	/*
	 * Drop every connection and the message in progress, of both links.  No upcall follows.
	 * qp->lock and fabric.life held.
	 */
	void (*qp_reset)(struct hca_qp *qp);
	/* Datagrams: drop the destinations whose processes have gone.  qp->lock held.  [memory] */
	void (*qp_look)(struct hca_qp *qp);
	/* Has the process of the connected peer ended without leaving?  qp->lock held. */
	bool (*peer_lost)(struct hca_qp *qp);
	/* The peer's RNR timer field, of its last RNR answer.  qp->lock held. */
	uint32_t (*rnr_timer)(const struct hca_qp *qp);

	/* ---- Work requests; qp->lock held, qp in a state that sends ---- */

	/*
	 * Carry out a request as far as possible now.  The peer's completion, if any, has then been
	 * delivered; the local one is the caller's task.
	 * A wire: `wr` is in its slot of the send queue.  A verb that posts calls without
	 * fabric.life, while another thread may be in `progress`.  Fences, max_rd_atomic, windows, and of
	 * connected queue pairs the operation and length have been checked; keys have not.  A status
	 * other than success means that nothing was sent: with other requests under way the engine
	 * calls again when they have ended.
	 */
	int (*transfer_whole)(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes);
	/*
	 * The commonest request, carried out at once: an RDMA write of one piece, 1 to
	 * HCA_MESSAGE_MAX bytes, over a path that loses nothing.  False: the request is another
	 * one, and nothing was done.  [memory], like all that
	 * follow up to wait_for_receiver.
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

	/* ---- Streams; [wire] ---- */

	/*
	 * The fate of a process of another host that datagrams go to, by the last call of it: ALIVE
	 * before one has failed, and of a stopped process.  LEFT: its host has no queue pair `qpn`.
	 */
	enum hca_fate (*datagram_fate)(struct hca_fabric *f, uint32_t port, const union ibv_gid *gid,
				       uint32_t qpn);
	/*
	 * Has the host of a connected peer shown lately that it is there, by itself?  Any thread, without a
	 * system call.
	 */
	bool (*hears_peer)(const struct hca_qp *qp);

	/*
	 * Serve them: receive, send, upcalls.  By one thread at a time, in every verb that polls or
	 * posts; fabric.life held, no qp->lock.
	 */
	uint64_t (*progress)(struct hca_fabric *f);
	/* A descriptor that is readable when progress has work, the same always; -1: none. */
	int (*wait_fd)(struct hca_fabric *f);
	/*
	 * Around each wait for the descriptor, by any number of threads: meanwhile it tells all.  At
	 * other times progress may be needed to find what has arrived.
	 */
	void (*sleep_begins)(struct hca_fabric *f);
	void (*sleep_ends)(struct hca_fabric *f);
	/*
	 * The time of the next need that no descriptor announces; UINT64_MAX: none.  Asked after
	 * progress and the turns that follow it, fabric.life held.  A need that arises in a verb
	 * after that may be served 0.1 s late.
	 */
	uint64_t (*next_ns)(struct hca_fabric *f);
};

/* ---- link.c: what concerns no queue pair, or any, is asked of both links ---- */

bool hca_links_quiesce(struct hca_fabric *f, struct hca_qp *only);
void hca_links_mr_published(struct hca_fabric *f, const struct hca_mr *mr);
void hca_links_mr_withdrawn(struct hca_fabric *f);
void hca_links_look(struct hca_fabric *f);
/* 0 or ENOMEM. */
int hca_links_qp_make(struct hca_qp *qp);
void hca_links_qp_free(struct hca_qp *qp);
void hca_links_qp_reset(struct hca_qp *qp);

#endif
