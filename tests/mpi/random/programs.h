/*
 * programs.h - random MPI programs, each judged by its plan.
 *
 * A *plan* follows from a seed, a number and the number of ranks; all ranks draw the same.  It has
 * messages, receives, collectives and more, and one order of *events*: every rank does its own
 * events in that order.  An event that waits is placed after the events of other ranks that it
 * depends on, so no rank waits for ever, whatever the library buffers: of all ranks that wait, the
 * one with the earliest event waits for events that other ranks have had.
 *
 * The bytes that are received follow from the plan alone: byte i of a message is a function of the
 * key of the message and of i.  Which message a receive gets depends on the communicator's
 * style in this program:
 *
 * STYLE_TAGGED, STYLE_NAMED: receives name their source (NAMED: some have MPI_ANY_TAG).  By
 *	the order of messages between two ranks there is one outcome, which the plan has.
 * STYLE_WILD: a *class* is all messages to one rank in one epoch.  Its receives take the
 *	narrower patterns first, (source, tag), then one of both, then anything, so that in
 *	every legal outcome each gets a message.  After the last one the outcome, as the
 *	statuses tell it, is held against the order of messages.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RANKS_MAX = 8,
	COMMS_MAX = 6,
	MESSAGES_MAX = 160,
	OTHERS_MAX = 48,
	EVENTS_MAX = 2000,
	EPOCHS_MAX = 4,
	BLOCK = 20, /* number of programs that share their communicators */
	BYTES_MAX = 8 << 20,
	GUARD = 64, /* bytes in front of the part that MPI gets, and after it */
};

/*
 * MPICH 4.0.2 with UCX does not pass these programs natively: messages of one rank overtake each
 * other, are cut off, or crash UCX.  Its own messages are left out of programs over rails.
 */
#ifdef MPICH_VERSION
enum { LIBRARY_LOSES_ORDER = 1 };
#else
enum { LIBRARY_LOSES_ORDER = 0 };
#endif

/* ---- Numbers ---------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

struct draw {
	uint64_t state;
};

/* 0 to n - 1. */
static inline unsigned draw(struct draw *d, unsigned n)
{
	d->state += 0x9e3779b97f4a7c15u;
	return (unsigned)((mix(d->state) >> 32) % n);
}

static inline bool draw_chance(struct draw *d, unsigned percent)
{
	return draw(d, 100) < percent;
}

/* Bytes that no other key gives. */
void pattern(unsigned char *to, size_t bytes, uint64_t key);

/* ---- Types: types.c ------------------------------------------------------------------------ */

/*
 * A message is a sequence of *units*, each one or several of MPI's basic types.  Sender and
 * receiver lay units out in memory in their own ways: only the sequence is the same.
 */
enum { UNITS = 10, FIRST_MIXED = 7 };
extern const struct unit {
	const char *name;
	unsigned fields, bytes, align;
	unsigned char field[4]; /* basic types: indices into the first seven */
} units[UNITS];

enum layout_kind {
	LAYOUT_PLAIN,
	LAYOUT_CONTIGUOUS,
	LAYOUT_VECTOR,
	LAYOUT_HVECTOR,
	LAYOUT_INDEXED,
	LAYOUT_HINDEXED,
	LAYOUT_INDEXED_BLOCK,
	LAYOUT_STRUCT,
	LAYOUT_SUBARRAY,
	LAYOUT_RESIZED,
	LAYOUT_DUP,
	LAYOUT_COLUMNS,
	LAYOUT_KINDS
};
extern const char *const layout_names[LAYOUT_KINDS];

struct shape {
	unsigned char outer, inner; /* enum layout_kind: one of the other, of grains */
	unsigned grain;             /* adjacent units */
	unsigned columns;           /* LAYOUT_COLUMNS: elements that fit into one another */
	uint64_t seed;
};

enum { PIECES_MAX = 512 };
struct layout {
	MPI_Datatype type;
	unsigned units;              /* units of an element of type */
	ptrdiff_t lb, ub, low, high; /* with markers of bounds, and without */
	unsigned pieces;
	struct piece {
		ptrdiff_t at;
		unsigned bytes;
	} piece[PIECES_MAX]; /* in the order sent */
};

/* The type of a unit of one field. */
MPI_Datatype basic(int unit);
/* A committed type as well, if typed. */
void layout_make(struct layout *l, const struct shape *shape, int unit, bool typed);
/* The beginning and end of count elements, relative to the address that MPI is given. */
void layout_span(const struct layout *l, size_t count, ptrdiff_t *low, ptrdiff_t *high);
/* Bring the first bytes of data to where elements at `at` have them. */
void layout_scatter(const struct layout *l, unsigned char *at, const unsigned char *data,
		    size_t bytes);

/* ---- Buffers: buffers.c ------------------------------------------------------------------------
 */

enum origin {
	ORIGIN_MALLOC,
	ORIGIN_CALLOC,
	ORIGIN_REALLOC,
	ORIGIN_MIDDLE,
	ORIGIN_STATIC,
	ORIGIN_STACK,
	ORIGIN_MMAP,
	ORIGIN_SHARED,
	ORIGIN_MEMFD,
	ORIGIN_STRADDLE,
	ORIGIN_SAME,
	ORIGIN_MOVED,
	ORIGIN_ALLOC_MEM,
	ORIGINS
};
extern const char *const origin_names[ORIGINS];

struct buffer {
	enum origin origin;
	unsigned char *mem; /* GUARD bytes, room bytes, GUARD bytes */
	size_t room;
	void *own;
	size_t own_bytes;
	uint64_t key; /* seed of the bytes that are no message's */
};

/* Room for bytes at a multiple of align, which the draw moves; not a page's start in general. */
void buffer_get(struct buffer *b, enum origin origin, size_t bytes, unsigned align, uint64_t key);
void buffer_put(struct buffer *b);
/* The program's frame lends its stack. */
void buffers_stack(unsigned char *mem, size_t bytes);
unsigned char *scratch(int which, size_t bytes); /* 0 to 2; until the next of this number */

/* ---- The plan ----------------------------------------------------------------------------------
 */

enum comm_maker {
	COMM_BASE,
	COMM_DUP,
	COMM_DUP_INFO,
	COMM_SPLIT,
	COMM_CREATE,
	COMM_CREATE_GROUP,
	COMM_CART,
	COMM_IDUP,
	COMM_INTER,
	COMM_MAKERS
};
enum style { STYLE_TAGGED, STYLE_NAMED, STYLE_WILD };
struct comm_plan {
	enum comm_maker maker;
	int parent;                  /* a communicator with all members */
	int size, member[RANKS_MAX]; /* numbers of the ranks in the world */
	int left;                    /* COMM_INTER: so many of them are the one group */
	enum style style;            /* style of the program */
};

enum mode { MODE_STANDARD, MODE_BUFFERED, MODE_SYNCHRONOUS, MODE_READY, MODES };
enum how { HOW_BLOCKING, HOW_NONBLOCKING, HOW_PERSISTENT };
enum receive_how {
	RECEIVE_BLOCKING,
	RECEIVE_PROBE,
	RECEIVE_IPROBE,
	RECEIVE_MPROBE,
	RECEIVE_IMPROBE, /* wait */
	RECEIVE_NONBLOCKING,
	RECEIVE_PERSISTENT,
	RECEIVE_HOWS
};

/* An end of a message. */
struct side {
	struct shape shape;
	enum origin origin;
	bool type_freed; /* freed as soon as the message is under way */
};

struct message {
	int comm, from, to; /* members of it, by index */
	int tag, unit, epoch;
	size_t units;
	uint64_t key;
	enum mode mode;
	enum how how;
	bool request_freed; /* without a wait for its end */
	int chain;          /* starts the request of this one again; -1 */
	int receive;        /* receive that gets it; -1 in STYLE_WILD */
	int before;         /* the message before it between the two; -1 */
	struct side side;
};

struct receive {
	int comm, to, source, tag; /* a member or MPI_ANY_SOURCE; a tag or MPI_ANY_TAG */
	int unit, epoch;
	size_t units; /* room, in units */
	enum receive_how how;
	int chain, message, before; /* the same as above; before: posted by the same rank */
	int ordinal;                /* STYLE_WILD: that many messages of its pattern suffice */
	struct side side;
};

enum other_kind {
	OTHER_BARRIER,
	OTHER_BCAST,
	OTHER_GATHER,
	OTHER_SCATTER,
	OTHER_ALLGATHER,
	OTHER_ALLTOALL,
	OTHER_REDUCE,
	OTHER_ALLREDUCE,
	OTHER_SCAN,
	OTHER_EXSCAN,
	OTHER_REDUCE_SCATTER,
	OTHER_REDUCE_SCATTER_BLOCK,
	OTHER_SENDRECV,
	OTHER_SENDRECV_REPLACE,
	OTHER_ISENDRECV,
	OTHER_ISENDRECV_REPLACE,
	OTHER_DUP,
	OTHER_NULL,
	OTHER_NONE,
	OTHER_CANCEL_RECEIVE,
	OTHER_CANCEL_SEND,
	OTHERS
};
extern const char *const other_names[OTHERS];
enum {
	COLLECTIVES = OTHER_SENDRECV,
	TAG_RING = 1000,
	TAG_NONE, /* STYLE_TAGGED alone has these */
	TAG_TOLD,
	TAG_CANCELLED /* and a tag for each: the next may be sent while the last is awaited */
};

/* An act other than a message between two ranks.  All members take part, or `from` and `to`. */
struct other {
	enum other_kind kind;
	int comm, root, from, to, unit;
	int shift;                          /* OTHER_SENDRECV and the like: to rank + shift */
	bool wraps;                         /* ... round; else to MPI_PROC_NULL */
	bool nonblocking, in_place, vector; /* for collectives; vector: Gatherv for Gather */
	unsigned op;                        /* for reductions */
	size_t units;
	uint64_t key;
	enum origin origin;
	struct shape shape;
};

static inline bool is_collective(const struct other *o)
{
	return o->kind < OTHER_SENDRECV;
}

enum event_kind { EVENT_SEND, EVENT_RECEIVE, EVENT_WAIT, EVENT_OTHER, EVENT_CLOSE };
enum wait_style {
	WAIT_ONE,
	WAIT_TEST,
	WAIT_GET_STATUS, /* for one request */
	WAIT_ALL,
	WAIT_ANY,
	WAIT_SOME,
	WAIT_TESTALL,
	WAIT_TESTANY,
	WAIT_TESTSOME,
	WAIT_STYLES
};
enum item_kind { ITEM_SEND, ITEM_RECEIVE, ITEM_OTHER };
struct item {
	enum item_kind kind;
	int index;
};
struct event {
	enum event_kind kind;
	int rank;  /* in the world; -1: all members, or all ranks */
	int index; /* index of the message, receive, other; of the epoch that ends */
	enum wait_style style;
	int first, items; /* EVENT_WAIT: for these */
};

struct plan {
	uint64_t seed;
	unsigned long number;
	int ranks;
	uint64_t key;
	int comms, messages, receives, others, epochs, events, items;
	struct comm_plan comm[COMMS_MAX];
	struct message message[MESSAGES_MAX];
	struct receive receive[MESSAGES_MAX];
	struct other other[OTHERS_MAX];
	struct event event[EVENTS_MAX];
	struct item item[MESSAGES_MAX * 2 + OTHERS_MAX * RANKS_MAX];
};

/* plan.c, receives.c, order.c */
void plan_comms(struct plan *p, uint64_t seed, unsigned long block, int ranks);
void plan_draw(struct plan *p, uint64_t seed, unsigned long number, int ranks);
void plan_receives(struct plan *p, struct draw *d);
void plan_order(struct plan *p, struct draw *d);
void shape_draw(struct draw *d, struct shape *shape, int unit, size_t bytes);
void side_draw(struct draw *d, struct side *side, int unit, size_t bytes);

static inline bool is_blocking(enum receive_how how)
{
	return how < RECEIVE_NONBLOCKING;
}

static inline bool accepts(const struct receive *r, const struct message *m)
{
	return r->comm == m->comm && r->to == m->to &&
	       (r->source == MPI_ANY_SOURCE || r->source == m->from) &&
	       (r->tag == MPI_ANY_TAG || r->tag == m->tag);
}

static inline int world_of(const struct plan *p, int comm, int member)
{
	return p->comm[comm].member[member];
}

/* The rank of a member, as the other end names it. */
static inline int rank_of(const struct plan *p, int comm, int member)
{
	const struct comm_plan *c = &p->comm[comm];

	return c->maker == COMM_INTER && member >= c->left ? member - c->left : member;
}

/* The member that this rank of the world is, or -1. */
int member_of(const struct plan *p, int comm, int world);

/* text.c: one line, without its end; the plan of all ranks. */
void event_text(const struct plan *p, const struct event *e, char *to, size_t bytes);
void plan_print(const struct plan *p);

/* ---- Running a plan -------------------------------------------------------------------------- */

/* An end of a message under way, or a collective. */
struct half {
	bool open;
	MPI_Request q;
	MPI_Status st;
	struct buffer b, b2;
	struct layout l;
	int count;
	uint64_t key;
	size_t bytes;
};

extern const struct plan *running;
extern int world_rank;
extern const char *running_way;
extern MPI_Comm comm_of[COMMS_MAX]; /* MPI_COMM_NULL where this rank is no member */
extern bool routed[COMMS_MAX];      /* true: messages go over rails */
extern struct half sending[MESSAGES_MAX], receiving[MESSAGES_MAX], between[OTHERS_MAX];

void comms_make(const struct plan *p, MPI_Comm base, bool native);
/* Another way than the parent's, where there are rails. */
MPI_Comm dup_with_info(MPI_Comm parent, const char *way);
void comms_free(const struct plan *p);

void program_run(const struct plan *p); /* run.c */
void send_start(int index);             /* sends.c */
void send_finish(int index);
void receive_start(int index); /* arrivals.c */
void receive_finish(int index);
void receives_close(int epoch);
void wait_for(const struct event *e); /* wait.c */
void item_finish(const struct item *item);
void collective_start(int index); /* collective.c, reduction.c */
void collective_finish(int index);
void reduction_start(int index);
void reduction_finish(int index);
void other_run(int index); /* other.c */
void other_finish(int index);

/* A buffer for count elements, with the bytes that are no message's; where MPI is to begin. */
void half_get(struct half *h, const struct shape *shape, int unit, size_t units, enum origin origin,
	      uint64_t key);
void *half_at(const struct half *h);
void half_fill(struct half *h, uint64_t key, size_t bytes);
/* True: the buffer holds this message's first bytes, and nothing else was written. */
void half_check(const struct half *h, uint64_t key, size_t bytes, const char *what);
void half_put(struct half *h);
/* The same of plain bytes. */
void bytes_check(const unsigned char *is, const unsigned char *should, size_t bytes,
		 const char *what);

/* Prints where it was, and how to repeat it; ends the job. */
void failed(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			failed(__VA_ARGS__);                                                       \
	} while (0)
/* Every call's result is looked at. */
void call_failed(const char *call, int rc) __attribute__((noreturn));
#define DO(call)                                                                                   \
	do {                                                                                       \
		int rc_of_call = (call);                                                           \
		if (rc_of_call != MPI_SUCCESS)                                                     \
			call_failed(#call, rc_of_call);                                            \
	} while (0)

#endif
