/* device.h - adapters, opened adapters, protection domains, registrations. */
#ifndef HCA_DEVICE_H
#define HCA_DEVICE_H

#include <infiniband/verbs.h>

#include "softhca/object/event.h"
#include "softhca/object/fabric.h"
#include "softhca/pages/remap.h"

struct hca_device {
	struct ibv_device ibv;		/* first */
	struct hca_device *next;
	struct hca_fabric *fabric;
	uint32_t node, hca;
	uint64_t port_seen[HCA_PORTS_MAX];	/* state at the last check; under fabric.life */
	uint32_t qps, srqs;		/* of this process; under fabric.slow */
};

struct hca_context {
	struct hca_device *device;
	struct hca_fabric *fabric;
	struct hca_list_node link;		/* under fabric.slow, as are */
	struct hca_list_node *pds, *cqs, *srqs, *ahs, *mws, *dms, *channels;
	struct hca_events events;
	_Atomic uint64_t retries[HCA_PORTS_MAX];	/* index: port - 1; hca_qp_retried */
	struct hca_list_node opened;		/* list of all contexts of this process (device.c) */
	uint64_t file;			/* identity of cmd_fd: shared by imported contexts */
	struct verbs_context verbs;	/* last: ends with struct ibv_context */
};

/* A protection domain, or an alias of `parent`: a parent domain, an imported domain. */
struct hca_pd {
	struct ibv_pd ibv;
	struct hca_fabric *fabric;
	struct hca_list_node link;
	struct hca_pd *parent;		/* this domain is one of its objects; NULL: none */
	struct hca_td *td;		/* NULL */
	uint32_t id;			/* unique in this process, not 0 */
	_Atomic int objects;
	bool unimported;		/* kept only by its objects */
};

struct hca_td {
	struct ibv_td ibv;
	_Atomic int objects;
};

enum hca_mr_kind {
	HCA_MR_MEMORY,
	HCA_MR_DMABUF,		/* base is a mapping of it in this process */
	HCA_MR_DM,		/* device memory: dm.h */
	HCA_MR_IMPORTED,	/* alias of a registration: no row of its own */
	HCA_MR_WINDOW,		/* part of a struct hca_mw: no ibv_mr */
};

/* A registration of this process; its row in the table is for peers. */
struct hca_mr {
	struct ibv_mr ibv;
	struct hca_fabric *fabric;
	enum hca_mr_kind kind;
	_Atomic uint32_t key;		/* a window's changes while others look for it */
	uint32_t pd;			/* domain where the local key is valid; 0: none */
	uint32_t remote_pd, qpn;	/* where the remote key is valid (layout.h) */
	uint32_t access;
	uint64_t iova, length;
	unsigned char *base;		/* local address of iova */
	_Atomic uint64_t mapped, mapped_end;	/* layout.h */
	struct hca_moved moved;		/* the mapped part of memory outside the arena */
	bool published;			/* the row is published; under remap.h's lock, if moved */
	_Atomic int windows;		/* bound to it */
	struct hca_dm *dm;		/* NULL */
};

static inline struct hca_context *hca_context_of(struct ibv_context *c)
{
	return hca_container(c, struct hca_context, verbs.context);
}

static inline const struct hca_personality *hca_context_personality(const struct ibv_context *c)
{
	const struct hca_device *d = hca_context_of((struct ibv_context *)(uintptr_t)c)->device;

	return hca_personality_of(&d->fabric->spec, d->node);
}

/* Can objects of one context be used with those of the other? */
static inline bool hca_same_file(struct ibv_context *a, struct ibv_context *b)
{
	return hca_context_of(a)->file == hca_context_of(b)->file;
}

static inline struct hca_pd *hca_pd_of(struct ibv_pd *pd)
{
	return (struct hca_pd *)(void *)pd;
}

static inline struct hca_mr *hca_mr_of(struct ibv_mr *mr)
{
	return (struct hca_mr *)(void *)mr;
}

/* Return this process's registration of a key, or NULL. */
static inline const struct hca_mr *hca_mr_find(const struct hca_fabric *f, uint32_t key)
{
	uint32_t index = key >> HCA_KEY_GEN_BITS;
	const struct hca_mr *mr = atomic_load_explicit(&f->mr[index], memory_order_acquire);

	return mr && hca_get(mr->key) == key ? mr : NULL;
}

/* Is its row still valid?  The peer may have invalidated a window. */
static inline bool hca_mr_is_valid(const struct hca_mr *mr)
{
	const struct hca_fabric *f = mr->fabric;
	uint32_t index = mr->key >> HCA_KEY_GEN_BITS;
	uint64_t stamp = atomic_load(&f->table->mr[index].stamp);

	return (uint32_t)stamp == mr->key &&
	       (!mr->qpn || atomic_load(&f->self->invalidated[index]) != stamp);
}

/*
 * The address in this process of [addr, addr + bytes) under a local key, or NULL
 * when the registration does not allow it.
 */
static inline unsigned char *hca_mr_local(const struct hca_fabric *f, uint32_t key, uint32_t pd,
					  unsigned need, uint64_t addr, size_t bytes)
{
	const struct hca_mr *mr = hca_mr_find(f, key);
	uint64_t offset;

	if (!mr || mr->pd != pd || (mr->access & need) != need)
		return NULL;
	offset = addr - mr->iova;
	if (offset > mr->length || bytes > mr->length - offset)
		return NULL;
	return mr->base + offset;
}

/* ---- Devices (device.c) -------------------------------------------------- */

/* The devices of a node of a fabric, made on first use: HCA_HCAS_MAX at most.  0 or -ENOMEM. */
int hca_devices_of_node(struct hca_fabric *f, uint32_t node, struct hca_device **list);
void hca_devices_free(struct hca_fabric *f);
/* The current word of a port (hca_shm_port.state). */
uint64_t hca_device_port_word(const struct hca_device *d, uint32_t port);

bool hca_device_is_ours(const struct ibv_device *d);
bool hca_context_is_ours(const struct ibv_context *c);
/* Inherited by a child of fork: not to be touched (inherit.h). */
bool hca_context_is_inherited(struct ibv_context *c);

/* Iterate over the contexts of this process with `file`; the lock is held meanwhile. */
void hca_contexts_lock(void);
void hca_contexts_unlock(void);
void hca_contexts_forget(void);
void hca_contexts_add(struct hca_context *c);
void hca_contexts_remove(struct hca_context *c);
struct hca_context *hca_context_next(uint64_t file, struct hca_context *after);

#endif
