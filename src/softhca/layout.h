/*
 * layout.h - the memory that processes of a fabric share.
 *
 * Three kinds of segment, all sealed memfds (nobody can shrink them under
 * another's feet), opened by peers through /proc/<pid>/fd:
 *
 *	fabric	one per fabric: who is there, which queue pair is whose, when
 *		each port and bus is free.  Lives as long as one member.
 *	process	one per member: what peers need to reach its queue pairs:
 *		registrations, receive queues, completion mailboxes.
 *	memory	one per process: its data.  File offset = virtual address.
 *
 * Rules.  No pointers, only offsets.  No lock: every word has one writer at a
 * time or is claimed by compare-and-swap, so that a process may die at any
 * instruction.  A reader checks every index and length it finds and keeps
 * private copies of what it checked: a peer can do harm to data and
 * connections, not to another process.
 *
 * Positions are 32-bit counters that wrap; the slot is position & mask.
 */
#ifndef HCA_LAYOUT_H
#define HCA_LAYOUT_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
	HCA_ABI = 1,			/* of everything in this file and of rendezvous.h */
	HCA_LINE = 64,
	HCA_PAGE = 4096,
	HCA_SPEC_MAX = 256,		/* canonical spec with its NUL */

	HCA_PROCS_MAX = 1024,
	HCA_NODES_MAX = 1024,
	HCA_HCAS_MAX = 8,		/* per node */
	HCA_PORTS_MAX = 8,		/* per adapter */

	HCA_QPN_INDEX_BITS = 18,	/* queue pairs of a fabric ... */
	HCA_QPN_GEN_BITS = 6,		/* ... and how often a number was used */
	HCA_FABRIC_QPS = 1 << HCA_QPN_INDEX_BITS,
	HCA_QPS_MAX = 1 << 16,		/* per process */

	HCA_KEY_INDEX_BITS = 20,	/* registrations of a process ... */
	HCA_KEY_GEN_BITS = 12,		/* ... and how often an index was used */
	HCA_MRS_MAX = 1 << HCA_KEY_INDEX_BITS,

	HCA_SGE_MAX = 32,
};

#define HCA_MEMORY_BYTES	(1ull << 48)	/* sparse; covers every user address */
#define HCA_HEAP_BYTES		(8ull << 30)	/* sparse */
#define HCA_FABRIC_MAGIC	0x6361666863613031ull
#define HCA_PROCESS_MAGIC	0x6f72706863613031ull

/* ---- The fabric segment -------------------------------------------------- */

enum hca_phase {
	HCA_ABSENT,		/* free, or being filled */
	HCA_PRESENT,
	HCA_LEFT,		/* went in good order: not a death */
};

struct hca_shm_slot {
	_Atomic uint32_t generation;	/* changes whenever the slot changes hands */
	_Atomic uint32_t phase;		/* enum hca_phase */
	int32_t pid;
	int32_t process_fd;		/* numbers of its file descriptors */
	int32_t memory_fd;
	uint32_t node;
	uint64_t start_time;		/* of the pid, field 22 of /proc/<pid>/stat */
	char pad[HCA_LINE - 32];
};

/* Busy until (CLOCK_MONOTONIC, ns); advanced by compare-and-swap.  model.h. */
struct hca_shm_server {
	alignas(HCA_LINE) _Atomic uint64_t busy;
};

struct hca_shm_adapter {
	struct hca_shm_server bus_read, bus_write;	/* half duplex: only bus_read */
	struct hca_shm_server cap_tx, cap_rx;
	struct {
		struct hca_shm_server tx, rx;
	} port[HCA_PORTS_MAX];
	char room[2048 - 20 * HCA_LINE];	/* counters, states, faults */
};

struct hca_shm_fabric {
	/* Written before anybody else can look. */
	uint64_t magic;
	uint32_t abi;
	uint32_t pad;
	uint64_t nonce;
	char spec[HCA_SPEC_MAX];

	alignas(HCA_LINE) _Atomic uint32_t qp_cursor;	/* where to look for a free number */

	alignas(HCA_PAGE) struct hca_shm_slot slot[HCA_PROCS_MAX];

	/*
	 * Who owns queue pair number n: entry n >> HCA_QPN_GEN_BITS.
	 * 0, or hca_shm_qp_entry(); the generation stays when the owner goes.
	 */
	alignas(HCA_PAGE) _Atomic uint64_t qp[HCA_FABRIC_QPS];

	alignas(HCA_PAGE) struct hca_shm_adapter adapter[HCA_NODES_MAX * HCA_HCAS_MAX];
};

/* 63..32 index in the owner's table, 31..16 owner's slot + 1 (0: nobody), 15..0 generation */
static inline uint64_t hca_shm_qp_entry(uint32_t index, uint32_t slot, uint32_t generation)
{
	return (uint64_t)index << 32 | (uint64_t)(slot + 1) << 16 | (generation & 0xffff);
}

/* ---- The process segment ------------------------------------------------- */

/*
 * A registration.  key is 0 while the rest changes, and never the same again
 * for another registration until the generations have wrapped.  The part that
 * lies in the owner's memory segment can be mapped; the rest is reached by
 * process_vm_readv/writev.
 */
struct hca_shm_mr {
	_Atomic uint32_t key;
	uint32_t access;	/* enum ibv_access_flags */
	uint32_t pd;
	uint32_t pad0;
	uint64_t iova;		/* what a remote address is relative to */
	uint64_t addr;		/* the owner's address of iova */
	uint64_t length;
	uint64_t mapped, mapped_end;	/* the owner's addresses; equal: nothing */
	char pad[HCA_LINE - 56];
};

/*
 * A receive queue entry: one line for up to 3 SGEs.  state is
 * hca_shm_state(position, HCA_POSTED) from the owner's post until the sender
 * that it is connected to claims it.
 */
struct hca_shm_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct hca_shm_recv {
	alignas(16) _Atomic uint64_t state;
	uint32_t sge_count;
	uint32_t pad;
	struct hca_shm_sge sge[];
};

/*
 * A completion mailbox entry.  A producer claims the slot at the tail
 * (FREE -> CLAIMED), fills it, publishes (CLAIMED -> FULL); the owner of the
 * queue makes it FREE for the next lap.  All-zero memory is an empty mailbox.
 *
 * An owner that finds a claim by somebody who has died makes it FREE; one by
 * somebody who seems to have stopped it makes REVOKED, and everybody passes the
 * slot by, since its claimer may still write to it.  The claimer learns of it
 * when it cannot publish, makes the slot RETURNED, and tries further on; the
 * owner makes it FREE again when it comes by.
 */
struct hca_shm_cqe {
	_Atomic uint64_t state;		/* hca_shm_state(lap, ...) */
	uint64_t visible_ns;		/* 0: at once */
	uint32_t qp_index;		/* in the owner's table */
	uint32_t qpn;
	uint32_t position;		/* of the receive that is complete */
	uint32_t bytes;
	uint32_t imm;
	uint32_t src_qp;
	uint8_t status;			/* enum ibv_wc_status */
	uint8_t opcode;			/* enum ibv_wc_opcode */
	uint8_t flags;			/* enum ibv_wc_flags */
	uint8_t solicited;
	char pad[HCA_LINE - 44];
};

struct hca_shm_mailbox {
	_Atomic uint32_t overflow;	/* somebody found it full */
	alignas(HCA_LINE) _Atomic uint32_t tail;	/* hint: nobody need look before */
	alignas(HCA_LINE) struct hca_shm_cqe slot[];
};

enum hca_state {
	HCA_FREE,
	HCA_POSTED,		/* receive */
	HCA_FULL,		/* completion */
	HCA_CLAIMED,		/* | claimer's slot << 8 */
	HCA_REVOKED,		/* | claimer's slot << 8; completion */
	HCA_RETURNED,		/* completion */
};

static inline uint64_t hca_shm_state(uint32_t count, uint32_t state)
{
	return (uint64_t)count << 32 | state;
}

static inline uint32_t hca_shm_claimed(uint32_t slot)
{
	return HCA_CLAIMED | slot << 8;
}

static inline uint32_t hca_shm_revoked(uint32_t slot)
{
	return HCA_REVOKED | slot << 8;
}

static inline enum hca_state hca_shm_kind(uint64_t state)
{
	return (enum hca_state)(state & 0xff);
}

static inline uint32_t hca_shm_claimer(uint64_t state)
{
	return (uint32_t)state >> 8;
}

/* What a peer must know of a queue pair. */
struct hca_shm_qp {
	/* Written by the owner at state changes, read by the peer per message. */
	_Atomic uint64_t gate;		/* epoch << 32 | the qpn that may send; 0: nobody */
	_Atomic uint32_t access;	/* enum ibv_access_flags */
	_Atomic uint32_t rnr_timer;
	uint32_t qpn;
	uint32_t pd;
	uint32_t address;		/* of its port: fabric.h */
	uint32_t rq_line;		/* receive ring, in lines of the heap */
	uint32_t rq_count;		/* a power of two */
	uint32_t rq_stride;		/* bytes */
	uint32_t cq_line;		/* mailbox of its receive completions */
	uint32_t cq_count;		/* a power of two */
	uint32_t reads;			/* RDMA reads that it answers at a time */
	char pad0[HCA_LINE - 52];

	/* Written by the peer. */
	_Atomic uint32_t rq_head;	/* position of the next receive to claim */
	_Atomic uint32_t fault;		/* enum ibv_event_type + 1: go to the error state */
	char pad1[HCA_LINE - 8];

	/* Written by the owner while it works on others' memory; see peer.h. */
	_Atomic uint32_t section;	/* odd: inside */
	char pad2[2 * HCA_LINE - 4];
};

struct hca_shm_process {
	uint64_t magic;
	uint32_t abi;
	uint32_t slot;
	uint64_t nonce;			/* of the fabric */
	uint32_t generation;		/* of the slot */

	/* Raised by peers that have changed something the owner should look at. */
	alignas(HCA_LINE) _Atomic uint32_t attention;

	alignas(HCA_PAGE) struct hca_shm_mr mr[HCA_MRS_MAX];
	alignas(HCA_PAGE) struct hca_shm_qp qp[HCA_QPS_MAX];
	alignas(HCA_PAGE) unsigned char heap[];	/* HCA_HEAP_BYTES */
};

#define HCA_PROCESS_BYTES (sizeof(struct hca_shm_process) + HCA_HEAP_BYTES)

static_assert(sizeof(struct hca_shm_slot) == HCA_LINE, "one line each");
static_assert(sizeof(struct hca_shm_mr) == HCA_LINE, "one line each");
static_assert(sizeof(struct hca_shm_cqe) == HCA_LINE, "one line each");
static_assert(sizeof(struct hca_shm_qp) == 4 * HCA_LINE, "readers and writers apart");
static_assert(sizeof(struct hca_shm_recv) == 16, "room for 3 SGEs in a line");
static_assert(sizeof(struct hca_shm_adapter) == 2048, "servers keep their lines");

#endif
