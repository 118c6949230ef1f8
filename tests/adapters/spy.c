/*
 * spy.c - as libibverbs.so.1 before the software HCA, which the loader finds behind it: a line for the path of each
 * connection that is made, of RC, and of each address handle.  "spy: RC to another, class 106".  The device that
 * SPY_CLOSED names may not be opened.
 */
#include "config.h"		/* _GNU_SOURCE */

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/softhca.h"

/* A name of the software HCA has the linker note it as needed. */
extern int (*const spy_needs)(void);
int (*const spy_needs)(void) = softhca_exposed_node;

static void tell(const char *what, const struct ibv_ah_attr *path)
{
	fprintf(stderr, "spy: %s, class %u\n", what, path->grh.traffic_class);
}

/* RTLD_NEXT would ask the program's libraries. */
static void *behind(const char *name)
{
	void *library = dlopen("libsofthca.so.0", RTLD_LAZY | RTLD_NOLOAD);

	return library ? dlsym(library, name) : NULL;
}

__attribute__((visibility("default")))
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*next)(struct ibv_qp *, struct ibv_qp_attr *, int);

	*(void **)&next = behind("ibv_modify_qp");
	if (mask & IBV_QP_AV && qp->qp_type == IBV_QPT_RC)
		tell(attr->dest_qp_num == qp->qp_num ? "RC to itself" : "RC to another", &attr->ah_attr);
	return next(qp, attr, mask);
}

__attribute__((visibility("default")))
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *path)
{
	struct ibv_ah *(*next)(struct ibv_pd *, struct ibv_ah_attr *);

	*(void **)&next = behind("ibv_create_ah");
	tell("UD", path);
	return next(pd, path);
}

__attribute__((visibility("default")))
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*next)(struct ibv_device *);
	const char *closed = getenv("SPY_CLOSED");

	*(void **)&next = behind("ibv_open_device");
	if (!closed || strcmp(ibv_get_device_name(device), closed))
		return next(device);
	errno = EACCES;
	return NULL;
}
