/*
 * peer.h - this process's view of another process of the fabric.
 *
 * The peer's process segment and table are mapped whole; windows of its memory
 * segment are mapped as messages need them, and kept.  This process is a peer of
 * itself (loopback): its addresses are used as they are, under its own table.
 * Another copy of this library in this process is a peer like any other.
 */
#ifndef HCA_PEER_H
#define HCA_PEER_H

#include "softhca/link/memory/descriptors.h"
#include "softhca/link/memory/wakeup_peer.h"
#include "softhca/object/fabric.h"
#include "softhca/object/link.h"

struct hca_view;

enum { HCA_GIVEN_UP = 8 };

struct hca_peer {
	struct hca_fabric *fabric;
	struct hca_shm_process *shm;
	uint64_t heap_bytes;	/* mapped size of shm->heap */
	const struct hca_shm_table *table;
	pid_t pid;
	bool is_self;		/* this process: its addresses are used as they are */
	bool is_far;		/* reached by its address: its pid is not used */
	struct hca_address address;	/* no bytes: it has none */
	uint32_t slot, generation;
	uint64_t start_time;
	int watch;		/* pidfd or -1 */
	_Atomic uint64_t lived_ns;	/* when pid was last seen to be this process: copy.c */
	int memory_fd;
	uint64_t memory_bytes;
	_Atomic bool bounces;	/* the kernel does not copy for it: bounce.h */
	struct hca_lock ask_lock;
	bool asked_for_copies;
	_Atomic bool copy_service_silent;	/* the last request timed out */
	_Atomic uint32_t copies_served;	/* count before that request */
	int references;		/* queue pairs; under fabric.slow */
	enum hca_fate fate;	/* at the last look */
	/* Waits that timed out: queue pair index << 32 | access section. */
	_Atomic uint64_t given_up[HCA_GIVEN_UP];
	struct hca_view *windows;
	uint32_t window_count;
	uint64_t window_bytes;
	struct hca_lock wakeup_lock;
	struct hca_wakeup_cache wakeups;
};

/* The process in a slot; one more reference.  0, or -ENOTCONN: no process (silent). */
int hca_peer_get(struct hca_fabric *f, uint32_t slot, struct hca_peer **out);
void hca_peer_put(struct hca_peer *p);

/* Free all, in spite of references: the fabric is being closed. */
void hca_peers_forget(struct hca_fabric *f);

enum hca_fate hca_peer_fate(const struct hca_peer *p);

/* Update the fate of all peers. */
void hca_peers_look(struct hca_fabric *f);

/* The fate of the process in a slot, which need not be a known peer. */
enum hca_fate hca_slot_fate(struct hca_fabric *f, uint32_t slot);
/* The fate of a claimer (hca_shm_claim): LEFT when another process has its slot by now. */
enum hca_fate hca_claim_fate(struct hca_fabric *f, uint32_t claim);

/*
 * This process's address of [addr, addr + bytes) of the peer's memory segment,
 * or NULL when it cannot be mapped.  The mapping lives as long as the peer.
 */
unsigned char *hca_peer_map(struct hca_peer *p, uint64_t addr, uint64_t bytes);

/*
 * Make the peer check its queue pairs (fault, overflow).  Threads that sleep on an
 * event of this queue pair's context or its queues are woken.
 */
static inline void hca_peer_alert(struct hca_peer *p, const struct hca_shm_qp *theirs)
{
	unsigned i;

	atomic_fetch_add(&p->shm->attention, 1);
	for (i = 0; i < sizeof(theirs->wakeup) / sizeof(*theirs->wakeup); i++) {
		uint32_t wakeup = hca_get(theirs->wakeup[i]);

		if (wakeup)
			hca_wakeup_send_peer(p, wakeup);
	}
}

/* hca_peer_alert without a wake-up, for events that the peer's program learns anyway. */
static inline void hca_peer_note(struct hca_peer *p)
{
	atomic_fetch_add(&p->shm->attention, 1);
}

/*
 * Access sections: a process that works on a peer's memory marks this in its own
 * queue pair, so that the peer can wait until no process uses a thing that the peer has
 * just withdrawn (a registration, a receive ring, a mailbox).  The worker pays two plain
 * stores; the withdrawer pays for the ordering, by membarrier().  membarrier() orders only
 * the stores of processes that have registered for it; if it is denied to any member, the
 * withdrawer waits for a millisecond instead.
 *
 *	worker					withdrawer
 *	hca_access_section_enter(mine)		withdraw (release store)
 *	check that it is valid, use it		hca_quiesce()
 *	hca_access_section_leave(mine)		reuse
 */
static inline void hca_access_section_enter(struct hca_shm_qp *mine)
{
	uint32_t s = atomic_load_explicit(&mine->access_section, memory_order_relaxed);

	atomic_store_explicit(&mine->access_section, s + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void hca_access_section_leave(struct hca_shm_qp *mine)
{
	uint32_t s = atomic_load_explicit(&mine->access_section, memory_order_relaxed);

	atomic_store_explicit(&mine->access_section, s + 1, memory_order_release);
}

/*
 * Is the memory under a key of the peer's being moved, so that it cannot be reached
 * for a moment?  Inside an access section.
 */
static inline bool hca_peer_memory_moving(const struct hca_peer *p, uint32_t key)
{
	return atomic_load_explicit(&p->table->mr[key >> HCA_KEY_GEN_BITS].moving,
				    memory_order_acquire);
}

/* Register this process for membarrier(): 0 or -errno. */
int hca_quiesce_prepare(void);

/*
 * Wait until no peer of `only` (NULL: no peer of any queue pair of this process, nor
 * any thread of this process) is in an access section that it entered before this
 * call.  The wait for a stopped peer lasts a second at most, and a dead one is not
 * waited for; false: a peer may still be inside.  Not from inside an access section.
 */
bool hca_quiesce(struct hca_fabric *f, struct hca_qp *only);

/* Is the peer of this queue pair, whose accept token is cleared, still in an access section? */
bool hca_peer_in_access_section(struct hca_qp *qp);

#endif
