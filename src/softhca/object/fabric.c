/* fabric.c - the tables of objects. */
#include "softhca/object/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "softhca/object/device.h"
#include "softhca/object/net.h"

int hca_fabric_init(struct hca_fabric *f, const char *name, const struct hca_spec *spec,
		    enum softhca_remap remap)
{
	f->self_fd = f->table_fd = f->net_fd = -1;
	f->spec = *spec;
	f->remap = remap;
	strcpy(f->name, name);
	pthread_mutex_init(&f->slow, NULL);
	/* Large and mostly untouched: the kernel gives pages as they are used. */
	f->qp = calloc(HCA_QPS_MAX, sizeof(*f->qp));
	f->mr = calloc(HCA_MRS_MAX, sizeof(*f->mr));
	f->mr_generation = calloc(HCA_MRS_MAX, sizeof(*f->mr_generation));
	f->mr_freed = calloc(HCA_MRS_MAX, sizeof(*f->mr_freed));
	return f->qp && f->mr && f->mr_generation && f->mr_freed ? 0 : -ENOMEM;
}

void hca_fabric_destroy(struct hca_fabric *f)
{
	hca_devices_free(f);
	hca_net_close(f);
	hca_heap_destroy(&f->heap);
	free(f->netif);
	free(f->qp);
	free(f->mr);
	free(f->mr_generation);
	free(f->mr_freed);
	pthread_mutex_destroy(&f->slow);
}
