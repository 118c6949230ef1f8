/* forward.c - a real device next to software ones: each verb reaches the right library. */
#include <stdlib.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "softhca/softhca.h"

/* Exported by libibverbs, but not declared in a header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

static void use_real(struct ibv_device *device)
{
	struct ibv_context *c = ibv_open_device(device);
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char bytes[42];

	require(c != NULL && c->device == device);
	require(!softhca_is_device(device));
	require_equal(ibv_get_device_guid(device), 0x1234);
	pd = ibv_alloc_pd(c);
	require(pd != NULL && pd->handle == 4711);
	mr = ibv_reg_mr(pd, bytes, 42, 0);
	require(mr != NULL && mr->lkey == 815);
	require_equal(ibv_dereg_mr(mr), 77);
	require(ibv_reg_mr_iova(pd, bytes, 42, 0x5000, 0) == mr);
	require(ibv_reg_mr_iova2(pd, bytes, 42, 0x6000, 0) == mr);
	require(ibv_reg_mr_iova2(pd, bytes, 42, 0x5000, 0) == NULL);
	require_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, bytes, 24, 0), 0);
	require_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, bytes, 25, 0),
		      IBV_REREG_MR_ERR_CMD);
	require_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 24, 0), 0);
	require_equal(ibv_dontfork_range(mr, 42), 71);
	require_equal(ibv_dofork_range(mr, 42), 72);
	require_equal(ibv_query_port(c, 3, &port), 0);
	require_equal(port.lid, 0x103);
	/* A function that the real library lacks is refused, not jumped to. */
	errno = 0;
	require(ibv_create_comp_channel(c) == NULL);
	require_equal(errno, ENOSYS);
	require_equal(ibv_dealloc_pd(pd), 0);
	require_equal(ibv_close_device(c), 0);	/* counts lists that are still out */
}

static void use_soft(struct ibv_device *device)
{
	struct ibv_context *c = ibv_open_device(device);
	struct ibv_port_attr port;
	struct ibv_pd *pd = ibv_alloc_pd(c);

	require(softhca_is_device(device));
	require(pd != NULL && pd->handle != 4711);
	require_equal(ibv_query_port(c, 1, &port), 0);
	require_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	require_equal(ibv_dealloc_pd(pd), 0);
	require_equal(ibv_close_device(c), 0);
}

int main(int argc, char **argv)
{
	int count = 0, soft = argc > 1 ? atoi(argv[1]) : 0, real = argc > 2 ? atoi(argv[2]) : 0, i;
	struct ibv_device **list = ibv_get_device_list(&count), *first = NULL;

	require(list != NULL);
	require_equal(count, soft + real);
	require(list[count] == NULL);
	for (i = 0; i < count; i++)
		require_equal(softhca_is_device(list[i]), i < soft);
	if (real)
		first = list[soft];
	if (soft)
		use_soft(list[0]);
	if (!real)		/* without a libibverbs, nothing has to be kept from children */
		require(!ibv_dontfork_range(&count, 42) && !ibv_dofork_range(&count, 42));
	ibv_free_device_list(list);
	if (real)
		use_real(first);
	return 0;
}
