/* connect.h - resolving a queue pair number to another process's memory. */
#ifndef HCA_CONNECT_H
#define HCA_CONNECT_H

#include "softhca/object/qp.h"

/*
 * Find the queue pair c->qpn at c->address and resolve c.  0; -ENOTCONN: absent, or
 * not ready for this queue pair; -ECONNRESET: its process has died.  qp->lock held.
 */
int hca_conn_resolve(struct hca_qp *qp, struct hca_conn *c);
/* Resolve the current place of the peer's mailbox: 0, or -ENOTCONN. */
int hca_conn_mailbox(struct hca_conn *c, const struct hca_shm_qp *theirs);
void hca_conn_drop(struct hca_conn *c);

/*
 * The peer's registration of a key, from its table; NULL: none, or another PD's.  A cache keeps it:
 * `known`, or its entry m.
 */
const struct hca_remote_mr *hca_conn_mr_look_up(struct hca_conn *c, struct hca_remote_mr *m,
						uint32_t pd, uint32_t key);

/* The registration from the cache alone; NULL: it may be in the table. */
static inline const struct hca_remote_mr *hca_conn_mr_known(const struct hca_remote_mr *known,
							    uint32_t key)
{
	const struct hca_remote_mr *m = &known[(key >> HCA_KEY_GEN_BITS) % HCA_KEYS];

	return likely(m->key == key && key &&
			  atomic_load_explicit(m->live, memory_order_acquire) == m->stamp)
		       ? m : NULL;
}

static inline const struct hca_remote_mr *hca_conn_mr_of(struct hca_conn *c,
							 struct hca_remote_mr *known,
							 uint32_t pd, uint32_t key)
{
	const struct hca_remote_mr *m = hca_conn_mr_known(known, key);

	return likely(m) ? m : hca_conn_mr_look_up(c, &known[(key >> HCA_KEY_GEN_BITS) %
								 HCA_KEYS], pd, key);
}

static inline const struct hca_remote_mr *hca_conn_mr(struct hca_conn *c, uint32_t key)
{
	return hca_conn_mr_of(c, c->mr, c->pd, key);
}

/* hca_conn_mr for the buffers of the peer's receives. */
static inline const struct hca_remote_mr *hca_conn_rq_mr(struct hca_conn *c, uint32_t key)
{
	return hca_conn_mr_of(c, c->rq_mr, c->rq_pd, key);
}

/* SEND with invalidate, at the sender: is `rkey` a window of the peer's queue pair? */
bool hca_mw_is_theirs(const struct hca_conn *c, uint32_t rkey);
/* Invalidate such a window. */
void hca_mw_invalidate_theirs(const struct hca_conn *c, uint32_t rkey);

#endif
