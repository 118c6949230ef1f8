/*
 * shim.c - the libibverbs API: each call on an object of a software device is
 * carried out by libsofthca, on an object of another device it is forwarded.
 *
 * One line per function.  The context of an object identifies its library.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/api/fabric.h"
#include "softhca/api/inherit.h"
#include "softhca/api/open.h"
#include "softhca/api/real.h"
#include "softhca/api/verbs_names.h"
#include "softhca/engine/poll.h"
#include "softhca/engine/post.h"
#include "softhca/engine/qp_states.h"
#include "softhca/engine/wait.h"
#include "softhca/engine/wr.h"
#include "softhca/object/ah.h"
#include "softhca/object/cq.h"
#include "softhca/object/device.h"
#include "softhca/object/dm.h"
#include "softhca/object/mcast.h"
#include "softhca/object/mr.h"
#include "softhca/object/pd.h"
#include "softhca/object/qp.h"
#include "softhca/object/query.h"
#include "softhca/object/srq.h"
#include "softhca/pages/pinned.h"
#include "softhca/pages/remap.h"
#include "softhca/softhca.h"

/* Exported by libibverbs, but not declared in a header. */
struct _compat_ibv_port_attr;
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Call the real function; `none` where there is none. */
#define FORWARD(name, none, args) __extension__ ({			\
	static __typeof__(&name) real;					\
	if (!real)							\
		real = (__typeof__(&name))hca_real(#name);		\
	real ? real args : none;					\
})

/*
 * The answer of a verb that fails with errno `err`, as the manual page of the verb says: in a child
 * of fork, and without a real library.
 */
#define ERRNO(err) (errno = (err))
#define NEGATIVE(err) (-(errno = (err)))
#define MINUS_ONE(err) (errno = (err), -1)
#define ZERO(err) (errno = (err), 0)
#define NO_OBJECT(err) (errno = (err), NULL)

#define ANY_VERB(type, name, context_of, inherited, none, mine, params, args)	\
	HCA_EXPORT type name params					\
	{								\
		if (hca_context_is_ours(context_of))			\
			return hca_context_is_inherited(context_of)	\
				? inherited : mine;			\
		return FORWARD(name, none, args);			\
	}

#define VERB(type, name, context_of, fails, mine, params, args)		\
	ANY_VERB(type, name, context_of, fails(EIO), fails(ENOSYS), mine, params, args)

/* The end of an object: an inherited one is gone already. */
#define END_VERB(name, context_of, mine, params, args)			\
	ANY_VERB(int, name, context_of, 0, ERRNO(ENOSYS), mine, params, args)

#define VOID_VERB(name, context_of, mine, params, args)			\
	HCA_EXPORT void name params					\
	{								\
		if (!hca_context_is_ours(context_of))			\
			FORWARD(name, (void)0, args);			\
		else if (!hca_context_is_inherited(context_of))		\
			mine;						\
	}

/* ---- Devices ------------------------------------------------------------- */

HCA_EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	const struct softhca_config cfg = { .node = -1, .remap = SOFTHCA_REMAP_AUTO };
	struct ibv_device **real, **list;
	struct hca_fabric *f = NULL;
	uint32_t node = 0;
	bool known;
	int rc = 0;

	if (softhca_exposed_node() >= 0)
		rc = hca_fabric_get(&cfg, &f);
	if (!rc && f)
		rc = hca_fabric_node(&cfg, &f->spec, &node);
	if (rc) {
		hca_say("%s", softhca_last_error());
		errno = -rc;
		return NULL;
	}
	real = hca_real_get_device_list();
	/* Without a kernel's support it says ENOSYS; else nothing is known of its devices. */
	known = real || !errno || errno == ENOSYS;
	rc = errno;
	list = known ? hca_list_make(f, node, real, count) : NULL;
	if (!list) {
		if (real)
			hca_real_free_device_list(real);
		if (f)
			hca_fabric_put(f);
		if (!known)
			errno = rc;
	}
	return list;
}

HCA_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	hca_list_free(list);
}

HCA_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

HCA_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	if (hca_device_is_ours(device))
		return -1;	/* the kernel does not know it */
	return FORWARD(ibv_get_device_index, -1, (device));
}

HCA_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	if (hca_device_is_ours(device))
		return htobe64(hca_device_guid((struct hca_device *)(void *)device));
	return FORWARD(ibv_get_device_guid, 0, (device));
}

HCA_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	if (hca_device_is_ours(device))
		return hca_device_open(device);
	return FORWARD(ibv_open_device, NO_OBJECT(ENOSYS), (device));
}

END_VERB(ibv_close_device, c, hca_device_close(c), (struct ibv_context *c), (c))

/* ---- Queries ------------------------------------------------------------- */

/* The exported function takes the old, shorter structure; the inline one calls hca_query_port. */
static int query_port_compat(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *a)
{
	return hca_query_port(c, port, (struct ibv_port_attr *)(void *)a,
			      offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int pkey_index(struct ibv_context *c, uint8_t port, __be16 pkey)
{
	__be16 have;

	return hca_query_pkey(c, port, 0, &have) == 0 && have == pkey ? 0 : -1;
}

VERB(int, ibv_query_device, c, ERRNO, hca_query_device(c, attr),
     (struct ibv_context *c, struct ibv_device_attr *attr), (c, attr))
VERB(int, ibv_query_port, c, ERRNO, query_port_compat(c, port, attr),
     (struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr), (c, port, attr))
VERB(int, ibv_query_gid, c, MINUS_ONE, hca_query_gid(c, port, index, gid),
     (struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid), (c, port, index, gid))
VERB(int, _ibv_query_gid_ex, c, ERRNO, hca_query_gid_ex(c, port, index, entry, flags, size),
     (struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
      uint32_t flags, size_t size), (c, port, index, entry, flags, size))
VERB(ssize_t, _ibv_query_gid_table, c, NEGATIVE, hca_query_gid_table(c, entries, max, flags, size),
     (struct ibv_context *c, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
      size_t size), (c, entries, max, flags, size))
VERB(int, ibv_query_pkey, c, MINUS_ONE, hca_query_pkey(c, port, index, pkey),
     (struct ibv_context *c, uint8_t port, int index, __be16 *pkey), (c, port, index, pkey))
VERB(int, ibv_get_pkey_index, c, MINUS_ONE, pkey_index(c, port, pkey),
     (struct ibv_context *c, uint8_t port, __be16 pkey), (c, port, pkey))

/* ---- Protection domains, memory ------------------------------------------ */

VERB(struct ibv_pd *, ibv_alloc_pd, c, NO_OBJECT, hca_pd_alloc(c), (struct ibv_context *c), (c))
END_VERB(ibv_dealloc_pd, pd->context, hca_pd_dealloc(pd), (struct ibv_pd *pd), (pd))

/* Memory registered with a real device is pinned: its pages are not moved from now on. */
#define MR_VERB(name, mine, params, args)					\
	static struct ibv_mr *real_##name params				\
	{									\
		struct hca_pinned *p = hca_pin(addr, bytes);			\
		struct ibv_mr *mr;						\
										\
		if (!p)								\
			return NULL;						\
		mr = FORWARD(name, NO_OBJECT(ENOSYS), args);				\
		if (mr)								\
			hca_pin_set_owner(p, mr);				\
		else								\
			hca_unpin(p);						\
		return mr;							\
	}									\
	HCA_EXPORT struct ibv_mr *name params					\
	{									\
		if (!hca_context_is_ours(pd->context))				\
			return real_##name args;				\
		return hca_context_is_inherited(pd->context)			\
			? NO_OBJECT(EIO) : mine;			\
	}

static int real_dereg_mr(struct ibv_mr *mr)
{
	struct hca_pinned *p = hca_pin_of(mr);
	int rc = FORWARD(ibv_dereg_mr, ENOSYS, (mr));

	if (!rc)
		hca_unpin(p);
	return rc;
}

/* Both ranges are pinned during the call: the device may have either. */
static int real_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t bytes,
			 int access)
{
	const bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct hca_pinned *before = hca_pin_of(mr), *p = moves ? hca_pin(addr, bytes) : NULL;
	int rc = FORWARD(ibv_rereg_mr, IBV_REREG_MR_ERR_INPUT,
			 (mr, flags, pd, addr, bytes, access));

	if (p && !rc) {
		hca_unpin(before);
		hca_pin_set_owner(p, mr);
	} else {
		hca_unpin(p);
	}
	return rc;
}

MR_VERB(ibv_reg_mr, hca_mr_reg(pd, addr, bytes, (uintptr_t)addr, (unsigned)access),
	(struct ibv_pd *pd, void *addr, size_t bytes, int access), (pd, addr, bytes, access))
MR_VERB(ibv_reg_mr_iova, hca_mr_reg(pd, addr, bytes, iova, (unsigned)access),
	(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova, int access),
	(pd, addr, bytes, iova, access))
MR_VERB(ibv_reg_mr_iova2, hca_mr_reg(pd, addr, bytes, iova, access),
	(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access),
	(pd, addr, bytes, iova, access))
VERB(struct ibv_mr *, ibv_reg_dmabuf_mr, pd->context, NO_OBJECT,
     hca_mr_reg_dmabuf(pd, offset, bytes, iova, fd, (unsigned)access),
     (struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access),
     (pd, offset, bytes, iova, fd, access))

HCA_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			    size_t bytes, int access)
{
	if (!hca_context_is_ours(mr->context))
		return real_rereg_mr(mr, flags, pd, addr, bytes, access);
	if (hca_context_is_inherited(mr->context))
		return errno = EIO, IBV_REREG_MR_ERR_CMD;
	return hca_mr_rereg(mr, flags, pd, addr, bytes, access);
}

HCA_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (!hca_context_is_ours(mr->context))
		return real_dereg_mr(mr);
	return hca_context_is_inherited(mr->context) ? 0 : hca_mr_dereg(mr);
}

VERB(struct ibv_pd *, ibv_import_pd, c, NO_OBJECT, hca_pd_import(c, handle),
     (struct ibv_context *c, uint32_t handle), (c, handle))
VOID_VERB(ibv_unimport_pd, pd->context, hca_pd_unimport(pd), (struct ibv_pd *pd), (pd))
VERB(struct ibv_mr *, ibv_import_mr, pd->context, NO_OBJECT, hca_mr_import(pd, handle),
     (struct ibv_pd *pd, uint32_t handle), (pd, handle))
VOID_VERB(ibv_unimport_mr, mr->context, hca_mr_unimport(mr), (struct ibv_mr *mr), (mr))

VERB(struct ibv_dm *, ibv_import_dm, c, NO_OBJECT, hca_dm_import(c, handle),
     (struct ibv_context *c, uint32_t handle), (c, handle))
VOID_VERB(ibv_unimport_dm, dm->context, hca_dm_unimport(dm), (struct ibv_dm *dm), (dm))

/* ---- Completion queues --------------------------------------------------- */

VERB(struct ibv_cq *, ibv_create_cq, c, NO_OBJECT,
     hca_cq_create(c, entries, cq_context, channel, vector),
     (struct ibv_context *c, int entries, void *cq_context, struct ibv_comp_channel *channel,
      int vector), (c, entries, cq_context, channel, vector))
VERB(int, ibv_resize_cq, cq->context, ERRNO, hca_cq_resize(cq, entries), (struct ibv_cq *cq, int entries),
     (cq, entries))
END_VERB(ibv_destroy_cq, cq->context, hca_cq_destroy(cq), (struct ibv_cq *cq), (cq))
VERB(struct ibv_comp_channel *, ibv_create_comp_channel, c, NO_OBJECT, hca_channel_create(c),
     (struct ibv_context *c), (c))
END_VERB(ibv_destroy_comp_channel, channel->context, hca_channel_destroy(channel),
     (struct ibv_comp_channel *channel), (channel))
VERB(int, ibv_get_cq_event, channel->context, MINUS_ONE, hca_cq_event_get(channel, cq, cq_context),
     (struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context),
     (channel, cq, cq_context))
VOID_VERB(ibv_ack_cq_events, cq->context, hca_cq_events_ack(cq, n), (struct ibv_cq *cq, unsigned n), (cq, n))

/* ---- Queue pairs --------------------------------------------------------- */

VERB(struct ibv_qp *, ibv_create_qp, pd->context, NO_OBJECT, hca_qp_create(pd, init),
     (struct ibv_pd *pd, struct ibv_qp_init_attr *init), (pd, init))
VERB(struct ibv_qp_ex *, ibv_qp_to_qp_ex, qp->context, NO_OBJECT, hca_qp_to_ex(qp),
     (struct ibv_qp *qp), (qp))
VERB(int, ibv_modify_qp, qp->context, ERRNO, hca_qp_modify(qp, attr, mask),
     (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))
VERB(int, ibv_query_qp, qp->context, ERRNO, hca_qp_query(qp, attr, mask, init),
     (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),
     (qp, attr, mask, init))
VERB(int, ibv_query_qp_data_in_order, qp->context, ZERO, hca_qp_data_in_order(qp, op, flags),
     (struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags), (qp, op, flags))
END_VERB(ibv_destroy_qp, qp->context, hca_qp_destroy(qp), (struct ibv_qp *qp), (qp))
VERB(int, ibv_set_ece, qp->context, ERRNO, EOPNOTSUPP, (struct ibv_qp *qp, struct ibv_ece *ece),
     (qp, ece))
VERB(int, ibv_query_ece, qp->context, ERRNO, EOPNOTSUPP,
     (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece))

/* ---- Shared receive queues, addresses, multicast -------------------------- */

VERB(struct ibv_srq *, ibv_create_srq, pd->context, NO_OBJECT, hca_srq_create(pd, init),
     (struct ibv_pd *pd, struct ibv_srq_init_attr *init), (pd, init))
VERB(int, ibv_modify_srq, srq->context, ERRNO, hca_srq_modify(srq, attr, mask),
     (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask), (srq, attr, mask))
VERB(int, ibv_query_srq, srq->context, ERRNO, hca_srq_query(srq, attr),
     (struct ibv_srq *srq, struct ibv_srq_attr *attr), (srq, attr))
END_VERB(ibv_destroy_srq, srq->context, hca_srq_destroy(srq), (struct ibv_srq *srq),
     (srq))
VERB(struct ibv_ah *, ibv_create_ah, pd->context, NO_OBJECT, hca_ah_create(pd, attr),
     (struct ibv_pd *pd, struct ibv_ah_attr *attr), (pd, attr))
VERB(struct ibv_ah *, ibv_create_ah_from_wc, pd->context, NO_OBJECT,
     hca_ah_create_from_wc(pd, wc, grh, port),
     (struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port),
     (pd, wc, grh, port))
VERB(int, ibv_init_ah_from_wc, c, MINUS_ONE, hca_ah_init_from_wc(c, port, wc, grh, attr),
     (struct ibv_context *c, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
      struct ibv_ah_attr *attr), (c, port, wc, grh, attr))
END_VERB(ibv_destroy_ah, ah->context, hca_ah_destroy(ah), (struct ibv_ah *ah), (ah))
VERB(int, ibv_attach_mcast, qp->context, ERRNO, hca_mcast_attach(qp, gid),
     (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid))
END_VERB(ibv_detach_mcast, qp->context, hca_mcast_detach(qp, gid),
     (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid))
VERB(int, ibv_resolve_eth_l2_from_gid, c, ERRNO, hca_ah_resolve_l2(c, attr, mac, vid),
     (struct ibv_context *c, struct ibv_ah_attr *attr, uint8_t mac[ETHERNET_LL_SIZE],
      uint16_t *vid), (c, attr, mac, vid))

/* ---- Asynchronous events ------------------------------------------------- */

VERB(int, ibv_get_async_event, c, MINUS_ONE, hca_event_get(c, event),
     (struct ibv_context *c, struct ibv_async_event *event), (c, event))

HCA_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	const struct ibv_context *c = hca_event_context(event);

	if (c && hca_context_is_ours(c))
		hca_event_ack(event);
	else if (c)
		FORWARD(ibv_ack_async_event, (void)0, (event));
}

/* ---- Functions without an object: the real library's, if there is one ---- */

HCA_EXPORT struct ibv_context *ibv_import_device(int fd)
{
	bool ours;
	struct ibv_context *c = hca_device_import(fd, &ours);

	return ours ? c : FORWARD(ibv_import_device, NO_OBJECT(ENOSYS), (fd));
}

HCA_EXPORT int ibv_fork_init(void)
{
	/* Software devices need none; libibverbs before 51 does harm where kernels need none. */
	if (ibv_is_fork_initialized() == IBV_FORK_UNNEEDED)
		return 0;
	return FORWARD(ibv_fork_init, 0, ());
}

HCA_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	/* A libibverbs without this query needs the call. */
	return FORWARD(ibv_is_fork_initialized,
		       hca_real("ibv_fork_init") ? IBV_FORK_DISABLED : IBV_FORK_UNNEEDED, ());
}

HCA_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return FORWARD(ibv_dontfork_range, 0, (base, size));
}

HCA_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return FORWARD(ibv_dofork_range, 0, (base, size));
}

HCA_EXPORT const char *ibv_get_sysfs_path(void)
{
	return FORWARD(ibv_get_sysfs_path, "/sys", ());
}

HCA_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	return FORWARD(ibv_read_sysfs_file, -1, (dir, file, buf, size));
}
