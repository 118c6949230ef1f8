/* deferred.h - what is held back, between two processes (object/deferred.h says why). */
#ifndef HCA_LINK_DEFERRED_H
#define HCA_LINK_DEFERRED_H

#include "object/qp.h"

/* How much of the end of the message that is being carried out to hold back; 0: nothing. */
uint32_t hca_deferred_bytes(const struct hca_qp *qp);

/* Hold back its last `bytes`, an RDMA write's under `key`, until `due_ns`.  Inside a section. */
void hca_deferred_add(struct hca_qp *qp, uint32_t key, uint32_t bytes, uint64_t due_ns);

/*
 * Must any of it wait, whatever depends on it: has it to go to memory that can be reached
 * in no way just now?  Inside a section.
 */
bool hca_deferred_waits(const struct hca_qp *qp);

/* Write what is due.  qp->lock held; not inside a section. */
void hca_deferred_release(struct hca_qp *qp, uint64_t now_ns);

/* Write everything, now.  Inside a section. */
void hca_deferred_settle(struct hca_qp *qp);

/* The same, if the message that is being carried out touches any of it. */
void hca_deferred_avoid(struct hca_qp *qp);

#endif
