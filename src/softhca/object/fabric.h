/*
 * fabric.h - this process on one fabric.
 *
 * A fabric is held while somebody holds a reference: each device list that
 * was handed out and each open context.  The last one to go leaves the fabric.
 *
 * Locks, from the outside in; nobody takes an earlier one while holding a later:
 *	engine.lock	one thread at a time moves stalled work (engine.h)
 *	hca_qp.lock	send side and state of a queue pair
 *	hca_qp.rq_lock	receive side
 *	hca_shared.lock	posting receives that many take
 *	hca_channel.lock, hca_cq.lock
 *	fabric.slow	objects, peers, heap: never on the path of a message
 */
#ifndef HCA_FABRIC_H
#define HCA_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/attend.h"
#include "base/base.h"
#include "link/memory/bounce.h"
#include "base/heap.h"
#include "base/layout.h"
#include "link/memory/rendezvous.h"
#include "softhca.h"
#include "model/spec.h"

struct hca_device;
struct hca_mr;
struct hca_peer;
struct hca_qp;

/* Queue pairs with work that could not be done when it was posted. */
struct hca_engine {
	struct hca_lock lock;		/* held while running */
	struct hca_lock list_lock;
	struct hca_qp *first, *last;
	_Atomic uint32_t pending;	/* length of the list; one look per verb */
	_Atomic uint32_t runs;		/* how often somebody went through it */
	_Atomic bool sharing;		/* several have their turns just now */
	_Atomic uint32_t attention;	/* last seen in self->attention */
	_Atomic uint32_t faults;	/* errors found while polling, to be acted upon */
	_Atomic uint64_t looked_ns;	/* when the peers were last looked at */
	_Atomic uint64_t polled_ns;	/* timed: when a queue was last polled */
};

struct hca_fabric {
	struct hca_fabric *next;
	unsigned member;
	char name[HCA_NAME_MAX + 1];
	struct hca_spec spec;
	enum softhca_remap remap;
	enum hca_copy_way copy;
	_Atomic bool kernel_asked, kernel_copies;	/* bounce.c */
	int references;			/* under the registry's lock */
	bool inherited;			/* by a child of fork: inherit.h */
	_Atomic bool left;		/* goodbye was said */
	uint64_t nonce;
	uint32_t slot, generation;	/* this process on the fabric */
	uint32_t claim;			/* hca_shm_claim of both */

	struct hca_shm_fabric *shm;
	int shm_fd;
	struct hca_shm_process *self;
	int self_fd;
	struct hca_shm_table *table;
	int table_fd;
	unsigned table_guards;		/* what this kernel has of enum hca_guards */

	struct hca_engine engine;
	_Atomic uint32_t gates;		/* opened so far */
	_Atomic uint32_t changes_seen;	/* of the spec's schedule */
	struct hca_attendant attendant;
	struct hca_porter porter;

	/* By index; entries come and go under `slow`, are read without. */
	struct hca_qp *_Atomic *qp;
	struct hca_mr *_Atomic *mr;
	_Atomic uint32_t qp_top, mr_top;	/* no index in use at or above */

	pthread_mutex_t slow;
	uint32_t dm_last, pd_last, srq_last, ah_last, shared_last;
	uint16_t *mr_generation;
	_Atomic uint32_t mr_written;	/* rows published so far */
	uint32_t *mr_freed;		/* stack of indices */
	uint32_t mr_freed_count;
	struct hca_heap heap;		/* of self->heap */
	struct hca_peer *peer[HCA_PROCS_MAX];
	struct hca_device *devices;	/* of every node asked for */
	struct hca_link *contexts;	/* hca_context.link */
	struct hca_link *channels;	/* hca_channel.fabric_link */
	uint64_t bells[HCA_BELLS_MAX / 64];	/* indices of self->bell in use */
};

/*
 * A process is one member of a fabric, number 0, unless a test says which of several it is just
 * now: each has its own slot, table and engine, as if it were a process of its own.
 */
extern unsigned hca_fabric_member;

/*
 * Find or join the fabric that cfg (NULL: the environment) names; one more
 * reference.  0, or -errno with the line set.
 */
int hca_fabric_get(const struct softhca_config *cfg, struct hca_fabric **out);
void hca_fabric_ref(struct hca_fabric *f);
void hca_fabric_put(struct hca_fabric *f);

/* Node number of cfg or of the environment: 0, or -errno with the line set. */
int hca_fabric_node(const struct softhca_config *cfg, const struct hca_spec *spec,
		    uint32_t *node);

/*
 * A number for queue pair `index` of this process, unique on the fabric.
 * 0 when the fabric is full.
 */
uint32_t hca_fabric_take_qpn(struct hca_fabric *f, uint32_t index);
void hca_fabric_give_qpn(struct hca_fabric *f, uint32_t qpn);

/* Who owns a number: 0, or -ENOENT. */
int hca_fabric_find_qpn(const struct hca_fabric *f, uint32_t qpn, uint32_t *slot,
			uint32_t *index);

#endif
