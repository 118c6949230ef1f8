/*
 * peer.h - another process of the fabric, as this one sees it.
 *
 * Its process segment is mapped whole; of its memory segment windows are
 * mapped as messages need them and kept.  This process is a peer of its own
 * (loopback): its addresses are used as they are, under its private records.
 * Another copy of this library in this process is a peer like any other.
 */
#ifndef HCA_PEER_H
#define HCA_PEER_H

#include "fabric.h"

struct hca_window;

enum hca_fate {
	HCA_FATE_ALIVE,
	HCA_FATE_LEFT,		/* went in good order, or its slot is another's by now */
	HCA_FATE_DEAD,		/* ended without a word */
};

struct hca_peer {
	struct hca_fabric *fabric;
	struct hca_shm_process *shm;
	pid_t pid;
	bool here;		/* ourselves: its addresses are ours */
	uint32_t slot, generation;
	uint64_t start_time;
	int watch;		/* pidfd or -1 */
	int memory_fd;
	int references;		/* queue pairs; under fabric.slow */
	enum hca_fate fate;	/* at the last look */
	struct hca_window *windows;
};

/* The process in a slot; one more reference.  0, or -ENOTCONN: nobody (silent). */
int hca_peer_get(struct hca_fabric *f, uint32_t slot, struct hca_peer **out);
void hca_peer_put(struct hca_peer *p);

/* All of them, whatever the references: the fabric goes. */
void hca_peers_forget(struct hca_fabric *f);

enum hca_fate hca_peer_fate(const struct hca_peer *p);

/* Look at all of them once. */
void hca_peers_look(struct hca_fabric *f);

/* The same of a slot that need not be anybody's we know. */
enum hca_fate hca_slot_fate(struct hca_fabric *f, uint32_t slot);

/*
 * This process's address of [addr, addr + bytes) of the peer's memory segment,
 * or NULL when it cannot be mapped.  The mapping lives as long as the peer.
 */
unsigned char *hca_peer_map(struct hca_peer *p, uint64_t addr, uint64_t bytes);

/* Tell the peer to look at its queue pairs (fault, overflow). */
static inline void hca_peer_alert(struct hca_peer *p)
{
	atomic_fetch_add_explicit(&p->shm->attention, 1, memory_order_release);
}

/*
 * Sections: who works on a peer's memory says so in its own queue pair, so that
 * the peer can wait until nobody can be using what it has just withdrawn (a
 * registration, a receive ring, a mailbox).  The worker pays two plain stores;
 * the one who waits pays for the ordering, by membarrier().
 *
 *	worker				withdrawer
 *	hca_section_enter(mine)		withdraw (release store)
 *	check that it is there, use	hca_quiesce()
 *	hca_section_leave(mine)		reuse
 */
static inline void hca_section_enter(struct hca_shm_qp *mine)
{
	uint32_t s = atomic_load_explicit(&mine->section, memory_order_relaxed);

	atomic_store_explicit(&mine->section, s + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void hca_section_leave(struct hca_shm_qp *mine)
{
	uint32_t s = atomic_load_explicit(&mine->section, memory_order_relaxed);

	atomic_store_explicit(&mine->section, s + 1, memory_order_release);
}

void hca_quiesce_prepare(void);

/*
 * Wait until no peer of `only` (NULL: of any queue pair of this process) is in
 * a section that it entered before this call.  A peer that is stopped is waited
 * for a second at most, a dead one not at all.  The caller holds engine.lock, so
 * that no queue pair goes away meanwhile.
 */
void hca_quiesce(struct hca_fabric *f, struct hca_qp *only);

#endif
