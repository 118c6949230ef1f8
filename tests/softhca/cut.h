/* cut.h - between the killing process (cut.c) and a process with its queues (cut_place.c). */
#ifndef CUT_H
#define CUT_H

#include <stdatomic.h>

#include "kit.h"

enum { SURVIVOR, OTHER, VICTIM, ROLES };
enum { OWN, SHARED, KINDS };

enum {
	BYTES = 300,
	OWN_DEPTH = 8, SHARED_DEPTH = 16,
	SHARED_SLOTS = 2 * SHARED_DEPTH,	/* lost receives may occupy some */
	SLOTS = ROLES * OWN_DEPTH + SHARED_SLOTS,
	MESSAGES = 3,			/* per kind, during a cut */
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

/* The state of each process. */
struct place {
	int me;
	struct side s;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct buffer in, out;
	struct link link[ROLES];
	bool keeps;		/* receives of the shared queue are not posted again */
	uint32_t kept[SHARED_SLOTS], kept_count;
	bool busy[SHARED_SLOTS];
};

/* Completions that the victim got before it was killed; in shared memory. */
struct told {
	_Atomic uint32_t sent[KINDS];
};
extern struct told *told;

/* ---- Commands to the other processes; each is sent back when it is done ---- */

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

/* Check one completion, if there is one. */
bool take(struct place *p);
void wait_received(struct place *p, int from, int kind, uint32_t count);
/* Wait until a queue pair to the dead process fails, if none has before. */
void learn(struct place *p, int dead);
void obey(struct place *p, struct word *w);
/* A process that carries out commands. */
void member(int me, int sock) __attribute__((noreturn));

#endif
