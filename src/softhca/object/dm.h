/*
 * dm.h - device memory: memory that belongs to the device and is addressed by
 * offset.  Device memory is allocated from the arena, so that peers can map it.  As on known
 * devices, copies to and from it are aligned to 4 bytes.
 */
#ifndef HCA_DM_H
#define HCA_DM_H

#include "softhca/object/device.h"

enum { HCA_DM_MAX = 16 << 20, HCA_DM_ALIGN = 4 };

struct hca_dm {
	struct ibv_dm ibv;		/* first */
	struct hca_list_node link;
	struct hca_dm *of;		/* imported: the original, which counts this one */
	unsigned char *at;
	size_t bytes;
	bool inherited;			/* in a child of fork: the parent's memory */
	_Atomic int objects;
};

struct ibv_dm *hca_dm_alloc(struct ibv_context *c, struct ibv_alloc_dm_attr *attr);
int hca_dm_free(struct ibv_dm *dm);
/* Zero-based only; EINVAL: out of bounds. */
struct ibv_mr *hca_dm_reg(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t bytes,
			  unsigned access);
struct ibv_dm *hca_dm_import(struct ibv_context *c, uint32_t handle);
void hca_dm_unimport(struct ibv_dm *dm);

/* Free the remaining device memory of a closing context. */
void hca_dms_drop(struct hca_context *c);

#endif
