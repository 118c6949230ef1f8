/* device.h - adapters, opened adapters, protection domains, registrations. */
#ifndef HCA_DEVICE_H
#define HCA_DEVICE_H

#include <infiniband/verbs.h>

#include "fabric.h"

struct hca_device {
	struct ibv_device ibv;		/* first */
	struct hca_device *next;
	struct hca_fabric *fabric;
	uint32_t node, hca;
};

struct hca_context {
	struct hca_device *device;
	struct hca_fabric *fabric;
	struct hca_link *pds, *cqs;	/* under fabric.slow */
	struct verbs_context verbs;	/* last: ends with struct ibv_context */
};

struct hca_pd {
	struct ibv_pd ibv;
	struct hca_fabric *fabric;
	struct hca_link link;
	uint32_t id;			/* unique in this process, not 0 */
	_Atomic int objects;
};

/* A registration of this process; what peers need of it is in the segment. */
struct hca_mr {
	struct ibv_mr ibv;
	struct hca_fabric *fabric;
	uint32_t pd, access;
	uint64_t iova;
	uint64_t mapped, mapped_end;	/* layout.h */
};

static inline struct hca_context *hca_context_of(struct ibv_context *c)
{
	return hca_container(c, struct hca_context, verbs.context);
}

static inline struct hca_pd *hca_pd_of(struct ibv_pd *pd)
{
	return (struct hca_pd *)(void *)pd;
}

static inline struct hca_mr *hca_mr_of(struct ibv_mr *mr)
{
	return (struct hca_mr *)(void *)mr;
}

/* This process's registration behind a key, or NULL. */
static inline const struct hca_mr *hca_mr_find(const struct hca_fabric *f, uint32_t key)
{
	uint32_t index = key >> HCA_KEY_GEN_BITS;
	const struct hca_mr *mr = atomic_load_explicit(&f->mr[index], memory_order_acquire);

	return mr && mr->ibv.lkey == key ? mr : NULL;
}

/*
 * Our own address of [addr, addr + bytes) under a local key, or NULL when the
 * registration does not allow it.
 */
static inline unsigned char *hca_mr_local(const struct hca_fabric *f, uint32_t key, uint32_t pd,
					  unsigned need, uint64_t addr, size_t bytes)
{
	const struct hca_mr *mr = hca_mr_find(f, key);
	uint64_t offset;

	if (!mr || mr->pd != pd || (mr->access & need) != need)
		return NULL;
	offset = addr - mr->iova;
	if (offset > mr->ibv.length || bytes > mr->ibv.length - offset)
		return NULL;
	return (unsigned char *)mr->ibv.addr + offset;
}

/* ---- Devices (device.c) -------------------------------------------------- */

/* The devices of a node of a fabric, made on first use; 0 or -ENOMEM. */
int hca_devices_of_node(struct hca_fabric *f, uint32_t node, struct hca_device **list);
void hca_devices_free(struct hca_fabric *f);

bool hca_device_is_ours(const struct ibv_device *d);
bool hca_context_is_ours(const struct ibv_context *c);

struct ibv_context *hca_device_open(struct ibv_device *d);
/* What the user has not destroyed goes with it, as when the kernel closes a device. */
int hca_device_close(struct ibv_context *c);

/* Lists for ibv_free_device_list: our devices first, then those of the real library. */
struct ibv_device **hca_list_make(struct hca_fabric *f, uint32_t node,
				  struct ibv_device **real, int *count);
void hca_list_free(struct ibv_device **list);

/* ---- What they say of themselves (query.c) ------------------------------- */

uint64_t hca_device_guid(const struct hca_device *d);	/* host byte order */
int hca_query_device(struct ibv_context *c, struct ibv_device_attr *attr);
int hca_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
			struct ibv_device_attr_ex *attr, size_t size);
int hca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size);
int hca_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid);
int hca_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry, uint32_t flags, size_t size);
ssize_t hca_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entries, size_t max,
			    uint32_t flags, size_t size);
int hca_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey);

enum { HCA_GIDS = 2 };		/* per port: link-local, IPv4-mapped; both RoCE v2 */

/* Address of the port that an address handle leads to: 0, or -EHOSTUNREACH. */
int hca_route(const struct hca_fabric *f, const struct ibv_ah_attr *ah, uint32_t *address);

/* ---- Protection domains, registrations (mr.c) ---------------------------- */

struct ibv_pd *hca_pd_alloc(struct ibv_context *c);
int hca_pd_dealloc(struct ibv_pd *pd);
struct ibv_mr *hca_mr_reg(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
			  unsigned access);
int hca_mr_dereg(struct ibv_mr *mr);

#endif
