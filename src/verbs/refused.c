/* refused.c - why a device refuses an object: its limits, with the numbers; errors that are held. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "util/err.h"
#include "verbs/vrb.h"

/* "ulimit -l: 64KiB" */
static const char *locked_limit(char *buf, size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return "";
	if (limit.rlim_cur == RLIM_INFINITY)
		snprintf(buf, size, ", ulimit -l: unlimited");
	else
		snprintf(buf, size, ", ulimit -l: %llu KiB", (unsigned long long)limit.rlim_cur / 1024);
	return buf;
}

/* The first number that is beyond what the device has, which 0 does not tell; false: none is. */
static bool beyond(const struct vrb_adapter *a, const struct vrb_qp_limits *want, char *buf,
		   size_t size)
{
	const struct {
		const char *what;
		uint32_t want;
		int has;
	} limit[] = {
		{ "send requests", want->send_wr, a->attr.max_qp_wr },
		{ "receive requests", want->recv_wr, a->attr.max_qp_wr },
		{ "pieces of a request", want->send_sge, a->attr.max_sge },
		{ "pieces of a receive", want->recv_sge, a->attr.max_sge },
	};

	for (size_t i = 0; i < sizeof(limit) / sizeof(*limit); i++)
		if (limit[i].has > 0 && limit[i].want > (uint32_t)limit[i].has) {
			snprintf(buf, size, "%u %s needed, the device has %d", limit[i].want,
				 limit[i].what, limit[i].has);
			return true;
		}
	return false;
}

/* "..., rdma.max: mlx5_0 hca_handle=2 hca_object=10 of /job" */
static const char *group_limit(const struct vrb_adapter *a, char *buf, size_t size)
{
	char limit[128];

	vrb_cgroup_limit(ibv_get_device_name(a->context->device), "", limit, sizeof(limit));
	snprintf(buf, size, "%s%s", *limit ? ", the control group's rdma.max: " : "", limit);
	return buf;
}

const char *vrb_qp_refused(const struct vrb_adapter *adapter, enum ibv_qp_type type,
			   const struct vrb_qp_limits *want, int rc, char *buf, size_t size)
{
	char memory[48], group[176];

	/* bnxt_re says EINVAL of UC, hns of UD. */
	if (rc == -EOPNOTSUPP || rc == -ENOSYS ||
	    (rc == -EINVAL && type != IBV_QPT_RC && !beyond(adapter, want, buf, size)))
		snprintf(buf, size, "the device has none of type %s (%s)",
			 type == IBV_QPT_UD ? "UD" : type == IBV_QPT_UC ? "UC" : "RC", strerror(-rc));
	else if (!beyond(adapter, want, buf, size)) {
		/* irdma says EOVERFLOW of a full table, hns ENOSPC. */
		if (rc == -ENOMEM || rc == -EOVERFLOW || rc == -ENOSPC)
			snprintf(buf, size, "%s (the device has %d queue pairs%s)", strerror(-rc),
				 adapter->attr.max_qp, locked_limit(memory, sizeof(memory)));
		else
			snprintf(buf, size, "%s%s", strerror(-rc), group_limit(adapter, group, sizeof(group)));
	}
	return buf;
}

const char *vrb_cq_refused(const struct vrb_adapter *adapter, uint32_t entries, int rc, char *buf,
			   size_t size)
{
	enum { ENTRY_BYTES = 64 };
	uint64_t room = 1;
	char memory[48], group[176];

	while (room < (uint64_t)entries + 1)
		room *= 2;
	if (adapter->attr.max_cqe > 0 && entries > (uint32_t)adapter->attr.max_cqe)
		snprintf(buf, size, "%u entries needed, the device has %d", entries,
			 adapter->attr.max_cqe);
	else if (rc == -ENOMEM)
		snprintf(buf, size, "%s (%llu entries of %d bytes are %llu KiB of locked memory%s)",
			 strerror(-rc), (unsigned long long)room, ENTRY_BYTES,
			 (unsigned long long)((room * ENTRY_BYTES + 1023) / 1024),
			 locked_limit(memory, sizeof(memory)));
	else
		snprintf(buf, size, "%s%s", strerror(-rc), group_limit(adapter, group, sizeof(group)));
	return buf;
}

void vrb_errors_hold(void)
{
	rg_errors_hold();
}

bool vrb_errors_take(char *text, size_t size)
{
	return rg_errors_take(text, size);
}
