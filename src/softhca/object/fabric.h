/*
 * fabric.h - this process on one fabric.
 *
 * This is the part that objects use.  struct hca_engine (engine.h) begins with it, link_state
 * points to the link's part, and the exported verbs keep the list of all fabrics (api/fabric.h).
 *
 * Lock order; an earlier lock is never acquired while a later one is held:
 *	fabric.life	one thread at a time changes states and moves stalled work (engine.h)
 *	hca_qp.lock	send side and state of a queue pair
 *	hca_qp.rq_lock	receive side
 *	hca_shared.lock	posting to a shared receive queue
 *	hca_channel.lock, hca_cq.lock
 *	fabric.slow	objects, peers, heap: never on the path of a message
 */
#ifndef HCA_FABRIC_H
#define HCA_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>

#include "softhca/base/base.h"
#include "softhca/base/heap.h"
#include "softhca/base/layout.h"
#include "softhca/model/spec.h"
#include "softhca/softhca.h"

struct hca_device;
struct hca_link_operations;
struct hca_link_state;
struct hca_link_upcalls;
struct hca_mr;
struct hca_netif;
struct hca_qp;
struct hca_wire;

struct hca_fabric {
	char name[HCA_NAME_MAX + 1];
	struct hca_spec spec;
	enum softhca_remap remap;
	bool inherited;			/* in a child of fork: api/inherit.h */
	uint32_t slot, generation;	/* this process's, on the fabric */
	uint32_t claim;			/* hca_shm_claim of both */

	/* Shared memory (layout.h); made and mapped by the link. */
	struct hca_shm_fabric *shm;
	struct hca_shm_process *self;
	int self_fd;
	uint64_t self_bytes;		/* mapped */
	struct hca_shm_table *table;
	int table_fd;
	struct hca_heap heap;		/* self->heap's pieces */

	/* Ports that are network interfaces (net.h): spec.nets of them. */
	struct hca_netif *netif;	/* index: port - 1; NULL without nets */
	uint8_t host[16];		/* boot and network namespace, hashed; zero without nets */
	int net_fd;			/* readable when one changes; -1 */

	const struct hca_link_operations *link;
	struct hca_link_state *link_state;	/* private to the link */
	const struct hca_link_upcalls *upcalls;	/* the engine's */
	const struct hca_link_operations *wire;	/* to other hosts; NULL: none */
	struct hca_wire *wire_state;	/* private to the wire */
	bool wire_always;		/* also between processes of this host */

	struct hca_lock life;		/* states of queue pairs, mailboxes of their completions */
	_Atomic uint32_t attention;	/* last value seen in self->attention */
	_Atomic uint32_t faults;	/* errors found under other locks, to be handled */
	_Atomic uint32_t accept_tokens;		/* published so far */
	_Atomic uint32_t changes_seen;	/* changes of the schedule that this process has seen */
	uint32_t changes_told;		/* and of which it has told its events; under life */
	_Atomic uint64_t cq_bytes;	/* that an adapter would lock for its completion queues */

	/* Tables by index; changed under `slow`, read without it. */
	struct hca_qp *_Atomic *qp;
	struct hca_mr *_Atomic *mr;
	_Atomic uint32_t qp_top, mr_top;	/* no index in use at or above */

	pthread_mutex_t slow;
	uint32_t dm_last, pd_last, srq_last, ah_last, shared_last;
	uint16_t *mr_generation;
	_Atomic uint32_t mr_written;	/* rows published so far */
	uint32_t *mr_freed;		/* stack of indices */
	uint32_t mr_freed_count;
	struct hca_device *devices;	/* every node's that was requested so far */
	struct hca_list_node *contexts;	/* hca_context.link */
	struct hca_list_node *channels;	/* hca_channel.fabric_link */
	uint64_t wakeups[HCA_WAKEUPS_MAX / 64];	/* indices of self->wakeup in use */
	struct hca_lock wakeup_lock;
	int32_t wakeup_fd[HCA_WAKEUPS_MAX];	/* their descriptors, + 1 */
};

/* Allocate its tables; the rest is zero.  0 or -ENOMEM. */
int hca_fabric_init(struct hca_fabric *f, const char *name, const struct hca_spec *spec,
		    enum softhca_remap remap);
/* Undo hca_fabric_init, complete or not, and free the devices. */
void hca_fabric_destroy(struct hca_fabric *f);

/* Has a peer or another thread reported something that has not been examined yet? */
static inline bool hca_fabric_told(const struct hca_fabric *f)
{
	return atomic_load(&f->faults) ||
	       atomic_load(&f->self->attention) != atomic_load(&f->attention);
}

/* An error of this process occurred while a lock was held: the next verb handles it. */
static inline void hca_fabric_fault(struct hca_fabric *f)
{
	atomic_store_explicit(&f->faults, 1, memory_order_release);
}

#endif
