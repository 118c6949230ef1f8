/* mr.h - registrations: creation, change, import, their rows in the table. */
#ifndef HCA_MR_H
#define HCA_MR_H

#include "softhca/object/device.h"

struct ibv_mr *hca_mr_reg(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
			  unsigned access);
struct ibv_mr *hca_mr_reg_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
				 int fd, unsigned access);
/* 0 or enum ibv_rereg_mr_err_code; keys stay.  A failure changes nothing. */
int hca_mr_rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t bytes,
		 int access);
int hca_mr_dereg(struct ibv_mr *mr);
struct ibv_mr *hca_mr_import(struct ibv_pd *pd, uint32_t handle);
void hca_mr_unimport(struct ibv_mr *mr);

/* Rows of the table, also for windows.  0, or ENOMEM. */
int hca_mr_claim_key(struct hca_fabric *f, _Atomic uint32_t *key);
void hca_mr_release_key(struct hca_fabric *f, uint32_t key);
/* Publish the row, with mr's values. */
void hca_mr_publish(struct hca_mr *mr);
/* Clear the row; a peer that is using it may go on for a moment. */
void hca_mr_hide(struct hca_mr *mr);
/* For mr->moved.changed: publish the part that is mapped now. */
void hca_mr_moved(struct hca_moved *m);

#endif
