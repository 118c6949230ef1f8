/*
 * versions.c - names that libibverbs exports under a private version node, which
 * differs from release to release; exported under all of them.  Only in
 * libsofthca.so: programs that embed the core need no version.
 */
#include <infiniband/verbs.h>

#include "softhca/object/device.h"
#include "softhca/api/real.h"
#include "softhca/object/query.h"

/* ibv_devinfo calls it to find out whether a GID is RoCE v2. */
int hca_compat_query_gid_type(struct ibv_context *c, uint8_t port, unsigned index, int *type);
int hca_compat_query_gid_type(struct ibv_context *c, uint8_t port, unsigned index, int *type)
{
	enum { SYSFS_IB_ROCE_V1, SYSFS_ROCE_V2 };
	struct ibv_gid_entry entry;
	int (*real)(struct ibv_context *, uint8_t, unsigned, int *);

	if (!hca_context_is_ours(c)) {
		real = (__typeof__(real))hca_real("ibv_query_gid_type");
		return real ? real(c, port, index, type) : -1;
	}
	errno = hca_context_is_inherited(c) ? EIO :
		hca_query_gid_ex(c, port, index, &entry, 0, sizeof(entry));
	if (errno)
		return -1;
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? SYSFS_ROCE_V2 : SYSFS_IB_ROCE_V1;
	return 0;
}

#define OFFER(n)									\
	extern __typeof__(hca_compat_query_gid_type) hca_compat_query_gid_type_##n	\
		__attribute__((alias("hca_compat_query_gid_type"), visibility("default")));	\
	__asm__(".symver hca_compat_query_gid_type_" #n					\
		", ibv_query_gid_type@IBVERBS_PRIVATE_" #n);
#define OFFER_10(t) OFFER(t##0) OFFER(t##1) OFFER(t##2) OFFER(t##3) OFFER(t##4) \
	OFFER(t##5) OFFER(t##6) OFFER(t##7) OFFER(t##8) OFFER(t##9)

OFFER_10(2)
OFFER_10(3)
OFFER_10(4)
OFFER_10(5)
OFFER_10(6)
