/* pd.h - protection domains, and aliases of them. */
#ifndef HCA_PD_H
#define HCA_PD_H

#include "softhca/object/device.h"

struct ibv_pd *hca_pd_alloc(struct ibv_context *c);
int hca_pd_dealloc(struct ibv_pd *pd);
/* Free the remaining domains of a closing context. */
void hca_pds_drop(struct hca_context *c);
struct ibv_td *hca_td_alloc(struct ibv_context *c, struct ibv_td_init_attr *attr);
int hca_td_dealloc(struct ibv_td *td);
struct ibv_pd *hca_pd_alloc_parent(struct ibv_context *c,
				   struct ibv_parent_domain_init_attr *attr);
/* Import a domain of another context of the same file, by its ibv_pd.handle. */
struct ibv_pd *hca_pd_import(struct ibv_context *c, uint32_t handle);
void hca_pd_unimport(struct ibv_pd *pd);

#endif
