/*
 * fake_verbs.c - the libibverbs of a machine with one real device, imitated so
 * that forwarding can be tested without a real one.  forward.sh installs it as
 * libibverbs.so.1.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT __attribute__((visibility("default")))

static struct ibv_device fake = { .name = "fake0", .node_type = IBV_NODE_CA };
static struct ibv_context context = { .device = &fake };
static struct ibv_pd pd = { .context = &context, .handle = 4711 };
static struct ibv_mr mr = { .context = &context, .pd = &pd, .lkey = 815 };
static int lists;

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
	if (device != &fake)
		abort();
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

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *p, void *addr, size_t bytes, int access)
{
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
	return p == &pd && bytes == 42 && iova == 0x6000 ? &mr : NULL;
}

EXPORT int ibv_rereg_mr(struct ibv_mr *m, int flags, struct ibv_pd *p, void *addr, size_t bytes,
			int access)
{
	return m == &mr && bytes == 24 ? 0 : IBV_REREG_MR_ERR_CMD;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *m)
{
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
	((struct ibv_port_attr *)(void *)attr)->lid = (uint16_t)(0x100 + port);
	return 0;
}
