/*
 * layout.h - the memory that processes of a fabric share.
 *
 * Four kinds of segment, all sealed memfds (a mapped one cannot shrink), opened by
 * peers through /proc/<pid>/fd or, where that is denied, received from their owner
 * over a socket (descriptors.h):
 *
 *	fabric	one per fabric: its members, the owner of each queue pair, when
 *		each port and bus is free.  Exists as long as one member does.
 *	process	one per member: the state of its queue pairs that peers use, receive
 *		queues, completion mailboxes.
 *	table	one per member: its registrations.  Peers read it; no mapping but
 *		the member's own is writable (mr_table.h).
 *	memory	one per process: its data.  File offset = virtual address.
 *
 * Rules.  Offsets instead of pointers.  No lock: every word has one writer at a
 * time or is claimed by compare-and-swap, so that a process may die at any
 * instruction.  A reader checks every index and length that it reads and keeps
 * private copies of the checked values: a peer can corrupt data and connections, not
 * another process.  ORDER.md lists the words that publish, and what they publish.  Words
 * that another process may read while they change are atomic, and set and read by hca_put
 * and hca_get (base.h).
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
	HCA_ABI = 8,			/* version of this file and of registry.h */
	HCA_LINE = 64,
	HCA_PAGE = 4096,
	HCA_SPEC_MAX = 896,		/* canonical spec with its NUL */

	HCA_NAME_MAX = 64,		/* characters of a fabric's name */

	HCA_PROCS_MAX = 1024,
	HCA_NODES_MAX = 1024,
	HCA_HCAS_MAX = 8,		/* per node */
	HCA_PORTS_MAX = 8,		/* per adapter */

	HCA_QPN_INDEX_BITS = 18,	/* queue pairs of a fabric ... */
	HCA_QPN_GEN_BITS = 6,		/* ... and uses of a number so far */
	HCA_FABRIC_QPS = 1 << HCA_QPN_INDEX_BITS,
	HCA_QPS_MAX = 1 << 16,		/* per process */

	HCA_KEY_INDEX_BITS = 20,	/* registrations of a process ... */
	HCA_KEY_GEN_BITS = 12,		/* ... and uses of an index so far */
	HCA_MRS_MAX = 1 << HCA_KEY_INDEX_BITS,

	HCA_SGE_MAX = 32,
	HCA_WR_MAX = 1 << 15,		/* per queue */
	HCA_INLINE_MAX = 65536,
	HCA_CQE_MAX = 1 << 22,
	HCA_SRQS_MAX = 1 << 16,
	HCA_MEMBERS_MAX = 4096,		/* all multicast groups of a fabric together */

	HCA_WAKEUPS_MAX = 4096,		/* per process: open adapters and completion channels */
};

#define HCA_WAKEUP_CHANNEL	UINT32_MAX
#define HCA_MEMORY_BYTES	(1ull << 48)	/* sparse; covers every user address */
#define HCA_HEAP_BYTES		(8ull << 30)	/* sparse */
#define HCA_HEAP_CHECKED_BYTES	(1ull << 28)	/* under valgrind */
#define HCA_FABRIC_MAGIC	0x6361666863613031ull
#define HCA_PROCESS_MAGIC	0x6f72706863613031ull
#define HCA_TABLE_MAGIC		0x6261746863613031ull

/* ---- The fabric segment -------------------------------------------------- */

enum hca_phase {
	HCA_ABSENT,		/* free, or being filled */
	HCA_PRESENT,
	HCA_LEFT,		/* left in good order: not a death */
};

struct hca_shm_slot {
	_Atomic uint32_t generation;	/* changes with each owner of the slot */
	_Atomic uint32_t phase;		/* enum hca_phase */
	_Atomic int32_t pid;
	_Atomic int32_t process_fd;	/* numbers of its file descriptors */
	_Atomic int32_t memory_fd;
	_Atomic uint32_t node;
	_Atomic uint64_t start_time;		/* the pid's: field 22 of /proc/<pid>/stat */
	_Atomic int32_t table_fd;
	_Atomic uint32_t pid_ns;	/* the pid counts there; 0: unknown */
	_Atomic uint64_t net_ns;	/* the network namespace of the socket */
	_Atomic uint32_t address;	/* the socket's: enum hca_address_kind */
	_Atomic uint32_t memory_bits;	/* the memory segment has 1 << this bytes */
	_Atomic uint32_t wire_port;	/* TCP port on which it meets other hosts; 0: none.  If it shares */
					/* the port: | (hca_meet_shared + 1) << 16 */
	char pad[HCA_LINE - 60];
};

/*
 * A port's state is one word, so that it changes atomically and no change back
 * goes unnoticed: time of the change (CLOCK_MONOTONIC, ns) << 1 | down.
 * model/loss.h.
 */
struct hca_shm_port {
	_Atomic uint64_t state;
	_Atomic uint32_t loss_ppb;	/* share of its packets, in both directions */
	uint32_t pad;
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
	alignas(HCA_LINE) _Atomic uint64_t atomics;	/* holder of the lock: atomic.h */
	alignas(HCA_LINE) struct hca_shm_port fault[HCA_PORTS_MAX];
	char room[2048 - 23 * HCA_LINE];	/* for counters */
};

/* A queue pair that is attached to a multicast GID (mcast.c). */
struct hca_shm_member {
	_Atomic uint64_t owner;		/* generation << 32 | claimer << 8 | state; 0: free */
	_Atomic uint32_t address;	/* address of the queue pair's port */
	_Atomic uint32_t qpn;
	_Atomic uint64_t gid[2];	/* its bytes */
};

struct hca_shm_fabric {
	/* Written before another process can open the segment. */
	uint64_t magic;
	uint32_t abi;
	uint32_t pad;
	uint64_t nonce;
	uint64_t id, place;		/* parts of addresses: descriptors.h */
	char spec[HCA_SPEC_MAX];
	char name[HCA_NAME_MAX + 1];

	/* Rarely written. */
	alignas(HCA_LINE) _Atomic uint64_t started_ns;	/* first queue pair ready; 0: none yet */
	_Atomic uint32_t changes_done;	/* changes of the schedule that are carried out */
	_Atomic uint32_t faulty;	/* a port was down or has lost packets at some time */
	_Atomic uint32_t unfenced;	/* some member may not use membarrier: peer.h */

	alignas(HCA_LINE) _Atomic uint32_t qp_cursor;	/* start of the search for a number */

	/* Multicast: changes with each attachment; entries in use are below the top. */
	alignas(HCA_LINE) _Atomic uint32_t member_epoch;
	_Atomic uint32_t member_top;

	alignas(HCA_PAGE) struct hca_shm_slot slot[HCA_PROCS_MAX];

	/*
	 * The owner of queue pair number n: entry n >> HCA_QPN_GEN_BITS.
	 * 0, or hca_shm_qp_entry(); the generation stays when the owner leaves.
	 */
	alignas(HCA_PAGE) _Atomic uint64_t qp[HCA_FABRIC_QPS];

	alignas(HCA_PAGE) struct hca_shm_member member[HCA_MEMBERS_MAX];

	alignas(HCA_PAGE) struct hca_shm_adapter adapter[HCA_NODES_MAX * HCA_HCAS_MAX];
};

/* 63..32 index in the owner's table, 31..16 owner's slot + 1 (0: no owner), 15..0 generation */
static inline uint64_t hca_shm_qp_entry(uint32_t index, uint32_t slot, uint32_t generation)
{
	return (uint64_t)index << 32 | (uint64_t)(slot + 1) << 16 | (generation & 0xffff);
}

/* ---- The table of registrations ------------------------------------------ */

/*
 * A registration or a memory window.  stamp is 0 while the rest changes; else
 * its key (31..0) and the count of writes to the table (63..32), so that a stamp
 * never recurs, although a key may.  The mapped part is in the owner's memory
 * segment; the methods of copy.h reach the rest.  The mapped part may shrink: one
 * store changes one of its ends, then the stamp becomes another with the same key.
 */
struct hca_shm_mr {
	_Atomic uint64_t stamp;
	_Atomic uint32_t access;	/* enum ibv_access_flags */
	_Atomic uint32_t pd;
	_Atomic uint32_t qpn;	/* not 0: only the peer connected to this queue pair may use */
				/* and invalidate it: hca_shm_process.invalidated */
	_Atomic uint32_t moving;	/* temporarily not to be copied to or from by address */
	_Atomic uint64_t iova;	/* base of remote addresses */
	_Atomic uint64_t addr;	/* the owner's address of iova */
	_Atomic uint64_t length;
	_Atomic uint64_t mapped, mapped_end;	/* the owner's addresses; equal: nothing */
};

struct hca_shm_table {
	/* The owner; written before another process can open the segment. */
	uint64_t magic;
	uint32_t abi;
	uint32_t slot;
	uint64_t nonce;			/* the fabric's */
	uint32_t generation;		/* the slot's */
	int32_t pid;
	uint64_t start_time;

	alignas(HCA_PAGE) struct hca_shm_mr mr[HCA_MRS_MAX];
};

/* ---- The process segment ------------------------------------------------- */

/*
 * A receive queue entry: one line for up to 3 SGEs.  state is
 * hca_shm_state(position, HCA_POSTED) from the owner's post until the connected
 * sender claims it.
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
 * A receive queue with many senders (an SRQ, or that of a UD queue pair): its
 * entries are completed in any order, so positions and entries are separate.
 * order[position & mask] is the entry that was posted at a position; it is written
 * after the entry is POSTED.  A sender searches from `head` on for an entry that
 * is POSTED at its position, and one compare-and-swap claims it.  Once its
 * completion is in the mailbox the entry becomes DONE; if the message failed, it
 * becomes POSTED again and the head moves back.  The owner posts anew the entries
 * that senders nevertheless pass by, and the entries claimed by dead processes.
 */
struct hca_shm_shared {
	_Atomic uint32_t head;		/* hint: no POSTED entry before it */
	_Atomic uint32_t first;		/* position of the first entry */
	alignas(HCA_LINE) _Atomic uint32_t limit;	/* fewer left: one event; 0: none */
	_Atomic uint32_t limit_reached;
	_Atomic uint32_t returned;	/* an entry before the head was posted again */
	alignas(HCA_LINE) _Atomic uint32_t posted;	/* position of the next */
	alignas(HCA_LINE) _Atomic uint64_t order[];	/* position << 32 | entry */
};

/*
 * A completion mailbox entry.  A producer claims the slot at the tail
 * (FREE -> CLAIMED), fills it, publishes (CLAIMED -> FULL); the owner of the
 * queue makes it FREE for the next lap.  All-zero memory is an empty mailbox.
 *
 * If a claimer is dead, the owner makes its slot FREE; if it seems to be stopped, REVOKED.
 * Every process skips a REVOKED slot, since its claimer may still write to it.  The
 * claimer fails to publish a REVOKED slot, makes it RETURNED, and claims a later one;
 * the owner makes a RETURNED slot FREE on its next pass.
 */
struct hca_shm_cqe {
	_Atomic uint64_t state;		/* hca_shm_state(lap, ...) */
	uint64_t visible_ns;		/* 0: at once */
	uint32_t qp_index;		/* in the owner's table */
	uint32_t qpn;
	uint32_t position;		/* the complete receive's */
	uint32_t entry;			/* the shared receive queue's */
	uint32_t bytes;
	uint32_t imm;
	uint32_t src_qp;
	uint8_t status;			/* enum ibv_wc_status */
	uint8_t opcode;			/* enum ibv_wc_opcode */
	uint8_t flags;			/* enum ibv_wc_flags */
	uint8_t solicited;
	uint16_t slid;
	uint8_t sl;
	char pad[HCA_LINE - 51];
};

struct hca_shm_mailbox {
	_Atomic uint32_t overflow;	/* a producer found it full */
	alignas(HCA_LINE) _Atomic uint32_t tail;	/* hint: no free slot before it */
	uint32_t wakeup;			/* the completion channel's: index + 1; 0: none */
	_Atomic uint64_t armed;		/* generation << 3 | enum hca_armed */
	uint32_t stamped;		/* entries need the time of their creation */
	alignas(HCA_LINE) struct hca_shm_cqe slot[];
};

/*
 * Does the owner want to be woken?  A producer that has published an entry fires
 * an armed queue (ARMED_* -> FIRED), sends a wake-up, and notes that (FIRED -> RUNG).
 * A producer that finds FIRED sends a wake-up, too: the producer that fired may have
 * died before it sent one.  Only the owner returns to IDLE, when it hands out the
 * event, and arms again, each time in a new generation.
 */
enum hca_armed {
	HCA_IDLE,
	HCA_ARMED_ANY,
	HCA_ARMED_SOLICITED,	/* only for entries that are solicited or errors */
	HCA_FIRED,
	HCA_RUNG,
};

/* Must a producer fire or send a wake-up?  Checked once per entry. */
static inline int hca_shm_wakes(uint64_t armed)
{
	return (armed & 3) != 0;
}

static inline enum hca_armed hca_shm_armed(uint64_t armed)
{
	return (enum hca_armed)(armed & 7);
}

enum hca_state {
	HCA_FREE,
	HCA_POSTED,		/* receive */
	HCA_FULL,		/* completion */
	HCA_CLAIMED,		/* | claimer << 8 */
	HCA_REVOKED,		/* | claimer << 8; completion */
	HCA_RETURNED,		/* completion */
	HCA_DONE,		/* shared receive queue: its completion is in the mailbox */
};

/* A claimer: its slot and the low bits of the slot's generation, 24 bits together. */
static inline uint32_t hca_shm_claim(uint32_t slot, uint32_t generation)
{
	return (slot & (HCA_PROCS_MAX - 1)) | (generation * HCA_PROCS_MAX & 0xffffff);
}

static inline uint64_t hca_shm_state(uint32_t count, uint32_t state)
{
	return (uint64_t)count << 32 | state;
}

static inline uint32_t hca_shm_claimed(uint32_t claim)
{
	return HCA_CLAIMED | claim << 8;
}

static inline uint32_t hca_shm_revoked(uint32_t claim)
{
	return HCA_REVOKED | claim << 8;
}

static inline enum hca_state hca_shm_kind(uint64_t state)
{
	return (enum hca_state)(state & 0xff);
}

static inline uint32_t hca_shm_claimer(uint64_t state)
{
	return (uint32_t)state >> 8;
}

/*
 * A wake-up: a pipe of its owner (object/wakeup.h).  The number of its descriptor,
 * and its inode, which peers verify.  0: there is none.
 */
struct hca_shm_wakeup {
	_Atomic uint64_t ino;
	_Atomic int32_t fd;
	_Atomic uint32_t adapter;	/* the source of announced events; or HCA_WAKEUP_CHANNEL */
};

/* A fault that a completion of the queue pair reports already: no event. */
#define HCA_FAULT_TOLD	UINT32_MAX

/* The first message to a queue pair in RTR is an event (COMM_EST). */
enum hca_first {
	HCA_FIRST_IGNORED,
	HCA_FIRST_EXPECTED,
	HCA_FIRST_ARRIVED,
};

/* The part of a queue pair that peers use. */
struct hca_shm_qp {
	/* Written by the owner at state changes, read by the peer per message. */
	_Atomic uint64_t accept;	/* token: epoch << 32 | the qpn that may send; 0: none */
	_Atomic uint32_t access;	/* enum ibv_access_flags */
	_Atomic uint32_t rnr_timer;
	_Atomic uint32_t qkey;
	alignas(8) _Atomic uint64_t cq;	/* mailbox of its receive completions: line << 32 | count */
	char pad0[HCA_LINE - 32];

	/* The same, read once per connection. */
	_Atomic uint32_t qpn;
	_Atomic uint32_t pd;
	_Atomic uint32_t address;	/* the port's: fabric.h */
	_Atomic uint32_t rq_line;	/* receive ring, in lines of the heap */
	_Atomic uint32_t rq_count;	/* a power of two */
	_Atomic uint32_t rq_stride;	/* bytes */
	_Atomic uint32_t rq_pd;
	_Atomic uint32_t shared_line;	/* struct hca_shm_shared of the ring; 0: not shared */
	_Atomic uint32_t reads;		/* limit of RDMA reads that it answers at a time */
	_Atomic uint32_t wakeup[3];	/* they announce errors: its context's, its queues' */
					/* channels'; index + 1; 0: none */
	_Atomic uint32_t pkey;
	char pad1[HCA_LINE - 52];

	/* Written by the peer. */
	_Atomic uint32_t rq_head;	/* position of the next receive to claim */
	_Atomic uint32_t fault;		/* enum ibv_event_type + 1: go to the error state */
	_Atomic uint32_t first;		/* enum hca_first; made EXPECTED by the owner */
	char pad2[HCA_LINE - 12];

	/* Written by the owner around its accesses to peers' memory; see peer.h. */
	_Atomic uint32_t access_section;	/* odd: inside */
	char pad3[HCA_LINE - 4];
};

/* A request to the owner's copy service; bounce.h. */
enum { HCA_BOUNCES = 16, HCA_BOUNCE_BYTES = 1 << 16 };

struct hca_shm_bounce {
	alignas(HCA_LINE) _Atomic uint32_t state;
	uint32_t key, bytes, to_owner;
	uint64_t addr;
	int32_t result;
	alignas(HCA_LINE) unsigned char data[HCA_BOUNCE_BYTES];
};

enum hca_copy_service_state {
	HCA_COPY_SERVICE_NONE,
	HCA_COPY_SERVICE_AWAKE,
	HCA_COPY_SERVICE_ASLEEP,
};

struct hca_shm_process {
	uint64_t magic;
	uint32_t abi;
	uint32_t slot;
	uint64_t nonce;			/* the fabric's */
	uint32_t generation;		/* the slot's */
	uint64_t heap_bytes;		/* size of the heap, as its owner uses and peers map it */

	/* Incremented by peers after a change that the owner must examine. */
	alignas(HCA_LINE) _Atomic uint32_t attention;

	alignas(HCA_PAGE) struct hca_shm_wakeup wakeup[HCA_WAKEUPS_MAX];
	alignas(HCA_LINE) _Atomic uint32_t copy_service;	/* enum hca_copy_service_state */
	_Atomic uint32_t copies_served;			/* requests so far */
	_Atomic uint32_t copy_wakeup;			/* a futex: counts requests */

	/* Stamps of windows that peers invalidated (SEND with invalidate), by row of the table. */
	alignas(HCA_PAGE) _Atomic uint64_t invalidated[HCA_MRS_MAX];
	alignas(HCA_PAGE) struct hca_shm_qp qp[HCA_QPS_MAX];
	alignas(HCA_PAGE) struct hca_shm_bounce bounce[HCA_BOUNCES];
	alignas(HCA_PAGE) unsigned char heap[];	/* HCA_HEAP_BYTES; heap_bytes are mapped */
};

#define HCA_PROCESS_BYTES (sizeof(struct hca_shm_process) + HCA_HEAP_BYTES)

static_assert(sizeof(struct hca_shm_slot) == HCA_LINE, "one line each");
static_assert(sizeof(struct hca_shm_mr) == HCA_LINE, "one line each");
static_assert(sizeof(struct hca_shm_cqe) == HCA_LINE, "one line each");
static_assert(sizeof(struct hca_shm_wakeup) == 16, "several in a line");
static_assert(sizeof(struct hca_shm_qp) == 4 * HCA_LINE, "readers and writers apart");
static_assert(sizeof(struct hca_shm_recv) == 16, "room for 3 SGEs in a line");
static_assert(sizeof(struct hca_shm_adapter) == 2048, "servers keep their lines");

#endif
