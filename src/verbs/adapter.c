/* adapter.c - opening a device: one PD, its promises about order, registrations; its counters. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/err.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

/* Promises of a software HCA. */
static void adapter_ask_model(struct vrb_adapter *a, const struct vrb_port *port)
{
	struct softhca_model model;
	bool known = softhca_query_model(port->device, &model) == 0;

	a->net = known && model.net;
	/* The sender's CPU writes it in memory, in program order; a model withholds the end. */
	a->copies = known && !model.timed && !model.net;
	a->withholds = known && model.timed;
	a->ends_last = known && model.ends_last;
	a->in_order = a->in_order_writes = known && model.ordered && !model.net;
}

/*
 * The manual promises order within a write, not among several.  Providers know it in RTS alone, and
 * adaptive routing of the port's SL takes it away: the queue pair is connected to itself.
 */
static bool order_of(struct vrb_adapter *a, struct vrb_qp *qp, const struct vrb_port *port)
{
	return !vrb_qp_connect_self(a, qp, port) &&
	       ibv_query_qp_data_in_order(qp->qp, IBV_WR_RDMA_WRITE, 0) > 0;
}

/* A queue pair that answers questions about a port. */
struct asked {
	struct vrb_qp qp;
	struct ibv_cq *cq;
};

static int asked_make(struct vrb_adapter *a, const struct vrb_port *port, struct asked *out)
{
	const struct vrb_qp_limits want = {
		.send_wr = 1, .recv_wr = 1, .send_sge = 1, .recv_sge = 1, .inline_bytes = 256,
	};
	enum { entries = 2 };
	char why[192];
	int rc;

	out->cq = ibv_create_cq(a->context, entries, NULL, NULL, 0);
	if (!out->cq) {
		rc = errno ? -errno : -EIO;
		rg_error("%s: cannot make a completion queue: %s", port->name,
			 vrb_cq_refused(a, entries, rc, why, sizeof(why)));
		return rc;
	}
	rc = vrb_qp_create(a, port, out->cq, NULL, &want, &out->qp);
	if (rc)
		ibv_destroy_cq(out->cq);
	return rc;
}

static void asked_destroy(struct asked *asked)
{
	vrb_qp_destroy(&asked->qp);
	ibv_destroy_cq(asked->cq);
}

int vrb_adapter_ask_order(struct vrb_adapter *a, const struct vrb_port *port)
{
	struct asked asked;
	int rc;

	/* The model is of all ports. */
	if (a->kind == VRB_SOFTHCA || !a->in_order)
		return 0;
	rc = asked_make(a, port, &asked);
	if (rc)
		return rc;
	a->ends_last = a->in_order = order_of(a, &asked.qp, port);
	asked_destroy(&asked);
	return 0;
}

/* Inline space, and the order of writes, on which polling relies. */
static int adapter_ask(struct vrb_adapter *a, const struct vrb_port *port)
{
	struct asked asked;
	int rc = asked_make(a, port, &asked);

	if (rc)
		return rc;
	if (a->kind == VRB_SOFTHCA)
		adapter_ask_model(a, port);
	else
		a->ends_last = a->in_order = order_of(a, &asked.qp, port);
	a->inline_bytes = asked.qp.granted.inline_bytes;
	asked_destroy(&asked);
	return 0;
}

int vrb_adapter_open(struct vrb_adapter *adapter, const struct vrb_port *port)
{
	const char *name = ibv_get_device_name(port->device);
	struct vrb_adapter a = { .kind = port->kind };
	const char *what = "open";
	int rc;

	a.context = ibv_open_device(port->device);
	if (!a.context)
		goto fail;
	what = "query";
	if (ibv_query_device(a.context, &a.attr))
		goto fail;
	what = "make a protection domain on";
	a.pd = ibv_alloc_pd(a.context);
	if (!a.pd)
		goto fail;
	rc = adapter_ask(&a, port);
	if (rc)
		goto undo;
	a.undo_fork = a.kind != VRB_SOFTHCA && vrb_fork_must_undo(a.pd);
	*adapter = a;
	return 0;
fail:
	rc = errno ? -errno : -EIO;
	rg_error("%s: cannot %s it: %s", name, what, strerror(-rc));
undo:
	vrb_adapter_close(&a);
	return rc;
}

void vrb_adapter_close(struct vrb_adapter *adapter)
{
	if (adapter->pd)
		ibv_dealloc_pd(adapter->pd);
	if (adapter->context)
		ibv_close_device(adapter->context);
	memset(adapter, 0, sizeof(*adapter));
}

/*
 * Memory that the device cannot have: kernels say EOPNOTSUPP of files on persistent memory;
 * libibverbs, where it keeps pages from children, EINVAL of a part of a huge page.
 */
static int register_error(const struct vrb_adapter *adapter)
{
	if (errno == EOPNOTSUPP || (errno == EINVAL && adapter->undo_fork))
		return -EFAULT;
	return errno ? -errno : -ENOMEM;
}

int vrb_mr_register(struct vrb_adapter *adapter, void *addr, size_t bytes, enum vrb_mr_use use,
		    struct ibv_mr **out)
{
	unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ;
	struct ibv_mr *mr;

	if (use == VRB_MR_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	/* Lets a root complex reorder: worth much on hardware, nothing elsewhere. */
	if (use == VRB_MR_BULK && adapter->kind == VRB_HARDWARE)
		access |= IBV_ACCESS_RELAXED_ORDERING;
	if (adapter->undo_fork)
		vrb_fork_prepare(addr, bytes);
	errno = 0;
	mr = ibv_reg_mr(adapter->pd, addr, bytes, access);
	if (!mr)
		return register_error(adapter);
	if (adapter->undo_fork)
		vrb_fork_undo(addr, bytes);
	*out = mr;
	return 0;
}

void vrb_mr_deregister(struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
}

int vrb_port_counters_read(const struct vrb_port *port, vrb_counter_fn *each, void *user)
{
	char dir[PATH_MAX];

	if (port->net)
		return *port->netdev ? vrb_netdev_counters_read(port->netdev, each, user) : 0;
	if (port->kind == VRB_SOFTHCA)
		return 0;
	snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s/ports/%u",
		 ibv_get_device_name(port->device), (unsigned)port->number);
	return vrb_counters_read(dir, each, user);
}

int vrb_port_retries(struct ibv_context *context, const struct vrb_port *port, uint64_t *retries)
{
	return softhca_query_retries(context, port->number, retries);
}
