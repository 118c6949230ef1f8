/* map.c - softhca.h: mapping on request. */
#include "softhca/object/device.h"
#include "softhca/pages/held.h"
#include "softhca/pages/pinned.h"
#include "softhca/pages/remap.h"
#include "softhca/softhca.h"

HCA_EXPORT int softhca_map(struct ibv_mr *ibv, const void *frame)
{
	struct hca_mr *mr = hca_mr_of(ibv);
	const char *why = "it is not memory of the process";

	if (!hca_context_is_ours(ibv->context))
		return hca_fail(ENODEV, "this registration is not a software device's");
	if (mr->kind == HCA_MR_MEMORY && mr->mapped_end - mr->mapped == mr->length)
		return 0;
	if (mr->kind == HCA_MR_MEMORY)
		why = hca_remap_requested(&mr->moved, mr->base, mr->length, frame);
	return why ? hca_fail(EPERM, "memory at %p is not mapped: %s", (void *)mr->base, why) : 0;
}

HCA_EXPORT int softhca_may_map(void)
{
	const char *why = hca_held_by_process();

	return why ? hca_fail(EPERM, "nothing is mapped: %s", why) : 0;
}

HCA_EXPORT bool softhca_is_mapped(const struct ibv_mr *ibv)
{
	const struct hca_mr *mr = hca_mr_of((struct ibv_mr *)(uintptr_t)ibv);

	return mr->mapped_end > mr->mapped;
}

HCA_EXPORT void softhca_unmap(struct ibv_mr *ibv)
{
	struct hca_mr *mr = hca_mr_of(ibv);

	if (mr->kind == HCA_MR_MEMORY && mr->moved.listed)
		hca_remap_back(mr->base, mr->length);
}

HCA_EXPORT int softhca_keep(const void *addr, size_t bytes)
{
	struct hca_pinned *p = hca_pin(addr, bytes);

	if (!p)
		return hca_fail(ENOMEM, "no memory for the list of kept memory");
	hca_pin_set_owner(p, addr);
	hca_remap_back(addr, bytes);
	return 0;
}

HCA_EXPORT void softhca_unkeep(const void *addr, size_t bytes)
{
	hca_unpin(bytes ? hca_pin_like(addr, addr, bytes) : hca_pin_of(addr));
}
