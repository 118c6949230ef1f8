/*
 * fake_verbs.c - the libibverbs of a machine with one real device, imitated so
 * that forwarding, and paths of real devices, can be tested without a real one.
 * abi.sh and tests/verbs/real.sh install it as libibverbs.so.1.
 *
 * FAKE_FORK: unset, nothing is kept from children of fork; "split", registered pages
 * are, as by a libibverbs before 51 after ibv_fork_init; "old", the same on a kernel
 * that needs it, until when ibv_fork_init has to be called.
 * FAKE_EVENTS: the descriptor that events are read from.  FAKE_LID, FAKE_STATE: the port's.
 * FAKE_OPEN: the errno with which the device cannot be opened.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT __attribute__((visibility("default")))

static struct ibv_device fake = { .name = "fake0", .node_type = IBV_NODE_CA,
				  .transport_type = IBV_TRANSPORT_IB };
static struct ibv_context context = { .device = &fake };
static struct ibv_pd pd = { .context = &context, .handle = 4711 };
static struct ibv_mr mr = { .context = &context, .pd = &pd, .lkey = 815 };
static struct ibv_mr pages_mr = { .context = &context, .pd = &pd };
static struct ibv_cq cq = { .context = &context };
static struct ibv_qp qp = { .context = &context, .pd = &pd, .qp_num = 99 };
static struct ibv_qp_attr qp_attr;
static int lists;
static bool is_fork_ready;

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	list[0] = &fake;
	if (count)
		*count = 1;
	lists++;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	lists--;
	free(list);
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	const char *events = getenv("FAKE_EVENTS"), *error = getenv("FAKE_OPEN");

	if (device != &fake)
		abort();
	if (error) {
		errno = atoi(error);
		return NULL;
	}
	context.async_fd = events ? atoi(events) : -1;
	return &context;
}

/* The exit code of the test depends on it: every list must have come back. */
EXPORT int ibv_close_device(struct ibv_context *c)
{
	return c == &context ? lists : -1;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return 0x1234;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	return c == &context ? &pd : NULL;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *p)
{
	return p == &pd ? 0 : EINVAL;
}

static bool fork_is(const char *how)
{
	const char *text = getenv("FAKE_FORK");

	return text && strcmp(text, how) == 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	if (!fork_is("old"))
		return IBV_FORK_UNNEEDED;
	return is_fork_ready ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

EXPORT int ibv_fork_init(void)
{
	is_fork_ready = true;
	return 0;
}

/* A registration of whole pages. */
static struct ibv_mr *reg_pages(void *addr, size_t bytes)
{
	pages_mr.addr = addr;
	pages_mr.length = bytes;
	if ((fork_is("split") || fork_is("old")) && madvise(addr, bytes, MADV_DONTFORK))
		return NULL;
	return &pages_mr;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *p, void *addr, size_t bytes, int access)
{
	if (p == &pd && bytes % 4096 == 0)
		return reg_pages(addr, bytes);
	return p == &pd && bytes == 42 ? &mr : NULL;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *p, void *addr, size_t bytes, uint64_t iova,
				      int access)
{
	return p == &pd && bytes == 42 && iova == 0x5000 ? &mr : NULL;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *p, void *addr, size_t bytes, uint64_t iova,
				       unsigned access)
{
	if (p == &pd && bytes % 4096 == 0)
		return reg_pages(addr, bytes);
	return p == &pd && bytes == 42 && iova == 0x6000 ? &mr : NULL;
}

EXPORT int ibv_rereg_mr(struct ibv_mr *m, int flags, struct ibv_pd *p, void *addr, size_t bytes,
			int access)
{
	return m == &mr && bytes == 24 ? 0 : IBV_REREG_MR_ERR_CMD;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *m)
{
	if (m == &pages_mr)
		return madvise(m->addr, m->length, MADV_DOFORK) ? errno : 0;
	return m == &mr ? 77 : EINVAL;
}

/* Exported by libibverbs, but not declared in a header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return base == &mr && size == 42 ? 71 : EINVAL;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return base == &mr && size == 42 ? 72 : EINVAL;
}

EXPORT int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)(void *)attr;
	const char *lid = getenv("FAKE_LID"), *state = getenv("FAKE_STATE");

	a->lid = (uint16_t)(lid ? atoi(lid) : 0x100 + port);
	a->state = state ? (enum ibv_port_state)atoi(state) : IBV_PORT_ACTIVE;
	a->active_mtu = IBV_MTU_2048;
	return 0;
}

EXPORT int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){ .phys_port_cnt = 1, .max_qp = 8 };
	strcpy(attr->fw_ver, "1.2.3");
	return 0;
}

/* Few completions fit, and there are no datagrams. */
EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *c, int entries, void *user,
				    struct ibv_comp_channel *channel, int vector)
{
	errno = ENOMEM;
	return entries <= 64 ? &cq : NULL;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *q)
{
	return q == &cq ? 0 : EINVAL;
}

/* Providers differ in what they say of a type that the device has not, or of a full table. */
EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *init)
{
	switch (init->cap.max_send_wr) {
	case 11:
		errno = EINVAL;
		break;
	case 12:
		errno = EOVERFLOW;
		break;
	case 13:
		errno = ENOSPC;
		break;
	default:
		errno = EOPNOTSUPP;
	}
	return init->qp_type == IBV_QPT_RC ? &qp : NULL;
}

EXPORT int ibv_modify_qp(struct ibv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	if (q != &qp)
		return EINVAL;
	qp_attr.qp_state = attr->qp_state;
	if (mask & IBV_QP_AV)
		qp_attr.ah_attr = attr->ah_attr;
	if (mask & IBV_QP_DEST_QPN)
		qp_attr.dest_qp_num = attr->dest_qp_num;
	return 0;
}

/* Order is known in RTS alone, and SL 1 has adaptive routing. */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *q, enum ibv_wr_opcode op, uint32_t flags)
{
	return op == IBV_WR_RDMA_WRITE && qp_attr.qp_state == IBV_QPS_RTS &&
	       qp_attr.dest_qp_num == qp.qp_num && qp_attr.ah_attr.dlid == 0x101 &&
	       qp_attr.ah_attr.sl != 1;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *q)
{
	return q == &qp ? 0 : EINVAL;
}

EXPORT int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	return read(c->async_fd, event, sizeof(*event)) == sizeof(*event) ? 0 : -1;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	event->event_type = (enum ibv_event_type)-1;
}
