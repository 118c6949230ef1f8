/*
 * layer.h - the internal interface of librailmpi.
 *
 * The path of a message:  p2p.c (the MPI call) -> comm_lookup (is the communicator
 * routed?) -> send.c / match.c -> rail.h;  back: rail.h -> match.c (on_message)
 * -> request.c (complete) -> wait.c (the MPI call that waits).
 *
 * Rules that hold everywhere in this room:
 *  - Whether a message goes over rails depends on its communicator only, never
 *    on anything that can differ between two ranks.
 *  - The MPI library is called through `native`, never by name.
 *  - Between layer_enter and layer_leave there is one thread at a time.
 */
#ifndef RAILMPI_LAYER_H
#define RAILMPI_LAYER_H

#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/abi/abi.h"
#include "mpi/watch/call_count.h"
#include "mpi/abi/native.h"
#include "rail/rail.h"
#include "mpi/railmpi.h"
#include "mpi/type/strides.h"

/* Told to the compiler, too: addresses and calls need no table of the loader. */
#pragma GCC visibility push(hidden)

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Found without a call: the library is linked or preloaded, not loaded later. */
#define FAST_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* ---- Communicators (comm.c, record.c) --------------------------------------- */

struct req;
struct unexpected;
struct persistent;

/* Doubly linked, embedded in the member as `links[which]`; see queue.h. */
struct link { struct link *next, *prev; };

/* The queues of one source rank of a communicator. */
struct source {
	struct link posted;		/* receives from this source by name, in post order */
	struct link unexpected;		/* unmatched messages, in order of arrival */
};

/* A buffer that the program has attached, or not; the room that buffered sends have in it. */
struct attached {
	bool here;
	size_t capacity, used;
	unsigned sends;			/* in flight */
};

/* Of a context: messages of collectives.  World ranks, in the upper half, do not reach it. */
#define COMM_COLLECTIVE_CONTEXT (UINT64_C(1) << 63)

struct comm {
	MPI_Comm handle;
	uint64_t context;		/* the same on all ranks; see comm.c */
	struct rail_way way;
	int rank, size;
	int refs;			/* the communicator itself, and each operation on it */
	struct rail_peer **peer;	/* by rank */
	struct source *source;		/* by rank */
	struct link posted_any;		/* receives from MPI_ANY_SOURCE, in post order */
	struct link unexpected_any;	/* every unmatched message, in order of arrival */
	uint64_t stamp;			/* next post-order stamp */
	int probed;			/* see lost_probed; MPI_PROC_NULL: nothing since the last watch */
	int lost;			/* the error of a rank that is lost; 0: none is */
	uint64_t lost_until_ns;		/* then: until when collectives wait for others */
	struct comm *next;		/* same hash bucket */
	struct attached attached;	/* before that of the process: MPI_Comm_attach_buffer */
	/*
	 * Messages of collectives have a record of their own with a context of its own, so that
	 * they never match receives of the program (coll.h).  NULL in such a record.
	 */
	struct comm *collective;
	unsigned collectives;		/* in such a record: collectives begun */
	unsigned withdrawn;		/* ... the number behind the last one that was not waited for */
};

/*
 * Each thread caches two handles, that of the last routed communicator and that of the
 * last native one.  The cache is invalid once any communicator has been freed or routed,
 * because handles are reused.
 */
struct comm_cache {
	MPI_Comm routed_handle;
	struct comm *routed;
	MPI_Comm native_handle;
	unsigned epoch;
};
extern _Atomic unsigned comm_epoch;
extern FAST_THREAD_LOCAL struct comm_cache comm_cache;

struct comm *comm_lookup_slow(MPI_Comm handle, enum call call);

static inline bool comm_cache_holds(const struct comm_cache *k)
{
	return k->epoch == atomic_load_explicit(&comm_epoch, memory_order_relaxed);
}

/*
 * The record of a routed communicator, NULL for any other handle, valid or not.  `call` is the
 * function that the program has called; see call_count.h.
 */
static inline struct comm *comm_lookup_of(MPI_Comm handle, enum call call)
{
	const struct comm_cache *k = &comm_cache;

	if (likely(comm_cache_holds(k))) {
		if (handle == k->native_handle)
			return NULL;
		if (handle == k->routed_handle)
			return k->routed;
	}
	return comm_lookup_slow(handle, call);
}

/* The same for what is not counted. */
static inline struct comm *comm_lookup(MPI_Comm handle)
{
	return comm_lookup_of(handle, CALL_NONE);
}

struct comm *comm_by_context_slow(uint64_t context);
extern struct comm *comm_last_found;		/* by its context; inside layer_enter */

/* NULL: not known (yet). */
static inline struct comm *comm_by_context(uint64_t context)
{
	struct comm *c = comm_last_found;

	return likely(c && c->context == context) ? c : comm_by_context_slow(context);
}

/* Is the test true of any routed communicator?  Stops at the first, which test may change. */
bool comm_some(bool (*test)(struct comm *c, uint64_t arg), uint64_t arg);

/* Collective over `handle`: route it in this way.  0 or -errno, the same on all its ranks. */
int comm_adopt(MPI_Comm handle, const struct rail_way *way);
void comm_unref_last(struct comm *c);		/* the last reference is gone */
int comm_start(void);
void comm_stop(void);
/* "stripe,threshold=16K" -> way; *native when it says native.  0 or -EINVAL with why. */
int comm_parse_way(const char *text, bool *native_way, struct rail_way *way, char *why,
		   size_t why_size);

/* ---- Datatypes (dtype.c, strides.c) ------------------------------------------------------ */

struct dtype {
	size_t size;		/* bytes of data per element */
	MPI_Aint extent;
	MPI_Aint true_lb;	/* where the data of an element begins */
	MPI_Aint true_extent;	/* from there to its end */
	_Atomic uint32_t reduces;	/* which operations the library has for it: coll_types.c */
	bool predefined;
	bool contiguous;	/* element i's data is at true_lb + i * size, in order */
	bool solid;		/* the data of one element is in one piece */
	_Atomic int refs;	/* the type itself, and each operation that packs later */
	struct dtype *next_dead;
	struct strides strides;	/* if size is not zero */
	size_t skip;		/* of dtype_range: bytes in front of its first */
};

/*
 * Each thread caches its last type; the cache is invalid once any type has been freed.  It holds none
 * of which INT_MAX elements could be more bytes than can be counted.
 */
struct dtype_cache {
	MPI_Datatype handle;
	struct dtype *type;
	unsigned epoch;
};
extern _Atomic unsigned dtype_epoch;
extern FAST_THREAD_LOCAL struct dtype_cache dtype_cache;

/* Not inside layer_enter: callbacks of the library's attributes may wait for layer_enter. */
struct dtype *dtype_lookup_slow(MPI_Datatype handle);

/* From this thread's cache alone; NULL: dtype_lookup knows. */
static inline struct dtype *dtype_cached(MPI_Datatype handle)
{
	const struct dtype_cache *k = &dtype_cache;

	return likely(k->handle == handle &&
		      k->epoch == atomic_load_explicit(&dtype_epoch, memory_order_relaxed))
		       ? k->type : NULL;
}

/* NULL: the library would refuse this type, and is to report the error. */
static inline struct dtype *dtype_lookup(MPI_Datatype handle)
{
	struct dtype *t = dtype_cached(handle);

	return likely(t) ? t : dtype_lookup_slow(handle);
}

/*
 * Of so many elements, as many as have DTYPE_BYTES_MAX bytes, and one more: send_start refuses what
 * has more, and a receive that has room for more has room for all there is.
 */
#define DTYPE_BYTES_MAX ((size_t)INT64_MAX)

static inline size_t dtype_elements(const struct dtype *t, MPI_Count count)
{
	const size_t most = t->size ? DTYPE_BYTES_MAX / t->size + 1 : DTYPE_BYTES_MAX;

	return (size_t)count < most ? (size_t)count : most;
}

/* So many elements are in one piece, from true_lb on. */
static inline bool dtype_is_plain(const struct dtype *t, size_t count)
{
	return likely(t->contiguous) || (t->solid && count <= 1);
}

/*
 * What is left of a message behind so many bytes, as a type of bytes, so many elements as are wanted:
 * for what `of` describes from the same address.  Only while `of` is held, and never released.
 */
struct dtype dtype_range(const struct dtype *of, size_t from);

int dtype_start(void);
void dtype_stop(void);
void dtype_release(struct dtype *t);	/* calls no MPI */
/* Bytes [from, from + bytes) of the data of elements that follow each other; neither calls MPI. */
void dtype_pack(const struct dtype *t, const void *buf, size_t from, void *packed, size_t bytes);
void dtype_unpack(const struct dtype *t, const void *packed, size_t bytes, void *buf, size_t from);

/* ---- Requests (request.c) -------------------------------------------------------- */

enum req_kind { REQ_FREE, REQ_SEND, REQ_RECV, REQ_MESSAGE };
/* A ready send is a standard send. */
enum req_mode { MODE_STANDARD, MODE_SYNC, MODE_BUFFERED };

struct req {
	struct rail_op op;		/* first: op's address is the request's */
	struct link link;		/* in a posted queue */
	struct comm *comm;		/* holds a reference while set */
	struct dtype *type;		/* holds a reference while set: buf is not in one piece */
	void *buf;
	const void *frame;		/* of a receive: where its caller's stack was */
	void *packed;			/* a copy: not contiguous, or not registrable; request.h */
	size_t bytes;			/* capacity as posted; the message's length when done */
	uint64_t stamp;
	int source, tag;		/* as posted; of the message when done */
	int error;			/* MPI error code when done */
	unsigned char kind;		/* enum req_kind */
	bool done;
	bool posted;			/* in a posted queue */
	bool cancelled;
	bool detached;			/* freed when done; a part of `whole`, if set */
	bool active;			/* persistent: started and not yet waited for */
	unsigned char parts;		/* of a whole: parts not complete */
	struct persistent *persistent;	/* how to start it again, or NULL */
	struct req *whole;		/* the request that this one is a part of; isendrecv.c */
	union {
		struct unexpected *unexpected;	/* REQ_MESSAGE: what MPI_Mprobe took out */
		struct req *other;	/* of a part: the other one, as long as both go on */
	};
	struct req *next_free;
	uint64_t serial;		/* of the slot: operations that have ended; request.h */
};
_Static_assert(sizeof(struct req) <= SLAB_FORTRAN, "a request must fit its slot");

int req_start(void);
void req_stop(void);
/* fortran.c (Open MPI): the index of a slot; bytes from a native request to its own, or -1. */
MPI_Fint fortran_of(const void *slot);
int fortran_distance(void);
void req_discard(struct req *r);		/* its references and its slot */
struct req *req_pending(const struct comm *c);	/* one of the program's that is not complete, or NULL */
/* Of librail (on_part): bytes of r->buf, by r->type or in one piece, to or from memory of librail's. */
void req_on_part(void *user, struct rail_op *op, uint64_t from, void *part, size_t bytes,
		 bool gather);
void req_part_done(struct req *part);		/* part is complete: update its whole */
void req_status_empty(MPI_Status *status);
void req_status_proc_null(MPI_Status *status);
/* Raise the error of a completed operation on the communicator that MPI names; returns it. */
int req_raise_error(MPI_Comm handle, int error);

static inline int req_raise(MPI_Comm handle, int error)
{
	return likely(error == MPI_SUCCESS) ? error : req_raise_error(handle, error);
}

/* ---- Sending and matching (send.c, match.c) ------------------------------------------ */

struct message_args {
	void *buf;
	size_t count;
	struct dtype *type;
	int rank;	/* destination or source; MPI_ANY_SOURCE allowed for receives */
	int tag;
};

/* The arguments of MPI_Send_init and its like. */
struct persistent {
	struct comm *comm;		/* holds a reference */
	struct message_args args;	/* args.type holds a reference */
	enum req_kind kind;
	enum req_mode mode;
};

/* The ends of operations of librail: pointers, so that trace.c can stand before them. */
extern void (*send_done)(struct rail_op *op, int status);
extern void (*recv_done)(struct rail_op *op, int status);

/* r is initialised by the call.  Return: 1 complete (r not in use), 0 in flight, or -errno. */
int send_start(struct comm *c, struct req *r, const struct message_args *m, enum req_mode mode);
/* The end of it, with what rail_send of a message of eager size has returned. */
int send_begun(struct comm *c, struct req *r, const struct message_args *m, int rc);
/* A nonblocking send is in flight: may poll, so that earlier messages make progress. */
void send_look(const struct comm *c, const struct message_args *m);
/* Receive a message that MPI_Mprobe removed from the queues. */
void recv_unexpected(struct comm *c, struct req *r, const struct message_args *m,
		     struct unexpected *u);
/* recv_start (match.h): r is initialised and meets u, the answer of match_receive. */
void recv_waiting(struct req *r, struct unexpected *u);
/* A message, else the notice of a rank that is lost (u->lost), else NULL; still queued. */
struct unexpected *match_probe(struct comm *c, int source, int tag);
void match_unexpected_status(const struct unexpected *u, MPI_Status *status);
void match_unpost(struct req *r);
/* Complete r, which is in no queue, with the error of a rank that is lost. */
void recv_lost(struct req *r, int source, int error);
void match_on_message(void *user, const struct rail_message *msg);
bool match_on_cancel(void *user, uint64_t rendezvous);
/* Match the messages that arrived before their communicator's constructor returned. */
void match_replay_early(struct comm *c);
void match_comm_init(struct comm *c);

/* ---- Progress (progress.c) --------------------------------------------------------------- */

extern struct layer {
	struct rail_ctx *rails;		/* NULL: nothing is routed */
	bool multiple;			/* MPI_THREAD_MULTIPLE: mutex instead of biased lock */
	_Atomic unsigned busy;		/* a thread is inside; see layer_enter */
	_Atomic unsigned progress_thread_wants;
	_Atomic unsigned progress_thread_sleeps;
	_Atomic uint64_t polls;		/* grows whenever the program polls the transport */
	_Atomic unsigned pending;	/* operations in flight, posted receives, open offers */
	_Atomic unsigned events;	/* of rails; messages are among them */
	_Atomic unsigned caught_up;	/* events that the MPI library has had its turn behind */
	_Atomic bool collected;		/* a collective has ended since */
	unsigned looks;			/* calls in a row that polled once and found nothing */
	unsigned large;			/* nonblocking sends above eager size since the last poll */
	bool oversubscribed;
	bool transport_only;		/* progress thread, or inside the library: no MPI calls */
	struct call_count *call;	/* whose bytes are counted; see call_count.h */
	pthread_mutex_t mutex;
	int world_rank, world_size;
	int tag_ub;
	unsigned nodes;
	MPI_Request sentinel;		/* never matched: PMPI_Test on it drives the library */
	MPI_Comm self;			/* dup of MPI_COMM_SELF */
} layer;

/* At rails, for the ledger; inside layer_enter. */
extern struct layer_looks {
	uint64_t library;		/* in the MPI library's progress */
	uint64_t thread;		/* by the progress thread */
} layer_looks;

void layer_enter_slow(void);
void layer_leave_slow(void);
void layer_wake_progress_thread(void);

/* One thread at a time writes, the progress thread reads: no locked instruction. */
static inline unsigned layer_pending(void)
{
	return atomic_load_explicit(&layer.pending, memory_order_relaxed);
}
static inline void layer_pending_add(int n)
{
	atomic_store_explicit(&layer.pending, layer_pending() + (unsigned)n, memory_order_relaxed);
}
static inline uint64_t layer_polls(void)
{
	return atomic_load_explicit(&layer.polls, memory_order_relaxed);
}

/*
 * Exclude the progress thread and, under MPI_THREAD_MULTIPLE, other threads.
 * Without MPI_THREAD_MULTIPLE the lock is biased: the progress thread executes a
 * membarrier, so that two plain stores are enough here.
 */
static inline void layer_enter(void)
{
	if (unlikely(layer.multiple)) {
		layer_enter_slow();
		return;
	}
	atomic_store_explicit(&layer.busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(atomic_load_explicit(&layer.progress_thread_wants, memory_order_acquire)))
		layer_enter_slow();
}

/*
 * The same without a call; false: nothing is entered, layer_enter has to wait or to lock.  What
 * is entered may be entered once more.
 */
static inline bool layer_enter_straight(void)
{
	if (unlikely(layer.multiple))
		return false;
	atomic_store_explicit(&layer.busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return likely(!atomic_load_explicit(&layer.progress_thread_wants, memory_order_acquire));
}

static inline void layer_leave(void)
{
	if (unlikely(layer.multiple)) {
		layer_leave_slow();
		return;
	}
	if (unlikely(atomic_load_explicit(&layer.progress_thread_sleeps, memory_order_relaxed) &&
		     layer_pending()))
		layer_wake_progress_thread();
	atomic_store_explicit(&layer.busy, 0, memory_order_release);
}

/* Inside layer_enter: a call that has no communicator to look up; see call_count.h. */
static inline void layer_count(enum call call)
{
	struct call_count *k = &calls[call];

	layer.call = k;
	atomic_store_explicit(&k->routed, atomic_load_explicit(&k->routed, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static inline void layer_events_add(int n)
{
	const unsigned before = atomic_load_explicit(&layer.events, memory_order_relaxed);

	atomic_store_explicit(&layer.events, before + (unsigned)n, memory_order_relaxed);
}

/* Progress of messages over rails.  Returns the number of events. */
static inline int layer_progress(void)
{
	int events;

	layer.large = 0;
	atomic_store_explicit(&layer.polls, layer_polls() + 1, memory_order_relaxed);
	events = rail_progress(layer.rails);
	layer_events_add(events);
	return events;
}

/* One round of a waiting loop: progress, or yield.  *idle counts rounds without an event. */
void layer_poll(unsigned *idle);
/*
 * A turn of the MPI library, whose own messages want its help.  Under MPI_THREAD_MULTIPLE at the
 * next layer_leave: the library may hold a lock of its own while it calls the program.
 */
void layer_drive_native(void);

enum {
	/* Rounds between turns of the library, whatever happens; a power of two. */
	DRIVE_NATIVE_ROUNDS = 256,
	/* Calls in a row that find nothing, after which each gives the library a turn. */
	DRIVE_NATIVE_LOOKS = 16,
};

static inline bool layer_owes_turn(void)
{
	return layer_polls() % DRIVE_NATIVE_ROUNDS == 0;
}

void layer_look_on(void);

/*
 * In a call that returns whatever has happened, as MPI_Test: a loop of them is a wait.  What has
 * come before, however much of it, is seen.
 */
static inline void layer_look(void)
{
	const int events = layer_progress();

	if (events > 0)
		layer.looks = 0;
	else
		layer.looks++;
	if (unlikely(events >= RAIL_BATCH))
		layer_look_on();
	if (unlikely(layer.looks >= DRIVE_NATIVE_LOOKS || layer_owes_turn()))
		layer_drive_native();
}

void layer_catch_up_slow(unsigned events);	/* catch_up.c */

/*
 * Before a call asks the MPI library whether something has come, outside layer_enter.  Natively what
 * was sent before a message that has been received would be there.
 */
static inline void layer_catch_up(void)
{
	const unsigned events = atomic_load_explicit(&layer.events, memory_order_relaxed);

	if (unlikely(events != atomic_load_explicit(&layer.caught_up, memory_order_relaxed)))
		layer_catch_up_slow(events);
}

/* Poll until r is done. */
void layer_wait(struct req *r);
int layer_start_progress(void);
void layer_stop_progress(void);

/* ---- Start and end (world.c) ----------------------------------------------------------- */

int world_start(void);		/* after the native MPI_Init: options, MPI_COMM_WORLD */
void world_stop(void);		/* before the native MPI_Finalize */

#pragma GCC visibility pop

#endif
