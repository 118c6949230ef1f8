/* deferred.h - deferred ends of RDMA writes between two processes (why: object/deferred.h). */
#ifndef HCA_LINK_DEFERRED_H
#define HCA_LINK_DEFERRED_H

#include "softhca/object/qp.h"

/* Bytes to defer at the end of the message that is being carried out; 0: none. */
uint32_t hca_deferred_bytes(const struct hca_qp *qp);

/* Room for one more, in the access section that copies the message: no end has to wait. */
void hca_deferred_make_room(struct hca_qp *qp);

/* Defer the last `bytes` of an RDMA write under `key` until `due_ns`.  In an access section. */
void hca_deferred_add(struct hca_qp *qp, uint32_t key, uint32_t bytes, uint64_t due_ns);

/*
 * Must a deferred end wait, even if other work depends on it, because its memory cannot be
 * reached at the moment?  Inside an access section.
 */
bool hca_deferred_waits(const struct hca_qp *qp);

/*
 * Write the due ends, or hold the queue pair's completions until they can be written.  qp->lock
 * held; not inside an access section.
 */
void hca_deferred_release(struct hca_qp *qp, uint64_t now_ns);

/* Write all ends now.  Inside an access section. */
void hca_deferred_settle(struct hca_qp *qp);

/* Write all ends if the message that is being carried out touches any of their bytes. */
void hca_deferred_avoid(struct hca_qp *qp);

#endif
