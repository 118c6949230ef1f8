/* deferred.h - deferred ends of RDMA writes between two processes (why: object/deferred.h). */
#ifndef HCA_LINK_DEFERRED_H
#define HCA_LINK_DEFERRED_H

#include "softhca/object/qp.h"

/* How many bytes of the end of the message that is being carried out to defer; 0: none. */
uint32_t hca_deferred_bytes(const struct hca_qp *qp);

/* For one more, in the access section in which the message is copied: nothing has to wait. */
void hca_deferred_make_room(struct hca_qp *qp);

/* Defer its last `bytes`, of an RDMA write under `key`, until `due_ns`.  In an access section. */
void hca_deferred_add(struct hca_qp *qp, uint32_t key, uint32_t bytes, uint64_t due_ns);

/*
 * Must a deferred end wait, whatever depends on it, because its memory cannot be reached
 * at the moment?  Inside an access section.
 */
bool hca_deferred_waits(const struct hca_qp *qp);

/*
 * Write what is due, or hold the queue pair's completions until that can be done.  qp->lock held;
 * not inside an access section.
 */
void hca_deferred_release(struct hca_qp *qp, uint64_t now_ns);

/* Write everything, now.  Inside an access section. */
void hca_deferred_settle(struct hca_qp *qp);

/* The same, if the message that is being carried out touches any deferred bytes. */
void hca_deferred_avoid(struct hca_qp *qp);

#endif
