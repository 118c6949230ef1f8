/* cut.h - a process that is cut off, or goes on: its queues (cut_place.c), who cuts (cut.c). */
#ifndef CUT_H
#define CUT_H

#include <stdatomic.h>

#include "../conformance/conformance.h"

enum { SURVIVOR, OTHER, VICTIM, ROLES };
enum { OWN, SHARED, KINDS };

enum {
	BYTES = 300,
	OWN_DEPTH = 8, SHARED_DEPTH = 16,
	SHARED_SLOTS = 2 * SHARED_DEPTH,	/* what is lost may be in some */
	SLOTS = ROLES * OWN_DEPTH + SHARED_SLOTS,
	MESSAGES = 3,			/* of each kind, while it is cut */
	SENT = 1 << 24, PROBE = 1 << 25,	/* in a wr_id */
	PATIENCE_S = 60,
};

struct header {
	uint32_t from, seq;
};

struct link {
	struct end e[KINDS];
	uint32_t sent[KINDS], received[KINDS], flushed[KINDS];
	uint32_t waiting;		/* sends that are not complete */
	bool failed;
};

/* What each process has. */
struct place {
	int me;
	struct side s;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct buffer in, out;
	struct link link[ROLES];
	bool keeps;		/* what the shared queue gives is not posted again */
	uint32_t kept[SHARED_SLOTS], kept_count;
	bool busy[SHARED_SLOTS];
};

/* What the victim was told before it was killed; in memory that is shared. */
struct told {
	_Atomic uint32_t sent[KINDS];
};
extern struct told *told;

/* ---- What the others are told to do: by a word, which comes back when it is done ---- */

enum word_type { MAKE, CONNECT, SEND, POST, STEP, ACT_SEND, ACT_RECEIVE, LEARN };

struct word {
	enum word_type type;
	int peer, kind;
	uint32_t count;
	struct peer_address address[KINDS];
};

void open_place(struct place *p, int me, int sock);
void drop_link(struct place *p, int to);
/* False: the shared queue is full. */
bool post_shared(struct place *p, uint32_t slot);

/* One completion, if there is one, is judged. */
bool take(struct place *p);
void wait_received(struct place *p, int from, int kind, uint32_t count);
/* A queue pair to the dead shows it, if nothing has before. */
void learn(struct place *p, int dead);
void obey(struct place *p, struct word *w);
/* A process that does what it is told. */
void member(int me, int sock) __attribute__((noreturn));

#endif
