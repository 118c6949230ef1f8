/* stops.h - stopping a verb at an instruction (stops_at.c); its members (stops_place.c). */
#ifndef TESTS_STOPS_H
#define TESTS_STOPS_H

#include <stdatomic.h>

#include "../softhca/kit.h"
#include "virtual.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define STOPS_KNOWN 1
#else
#define STOPS_KNOWN 0
#endif

#define MS_NS 1000000ull

/* ---- stops_at.c ------------------------------------------------------------- */

/*
 * First a verb is single-stepped while no other member acts, and the instructions of the library
 * that it carries out are noted.  Then a breakpoint stops the verb before one of them, after it has
 * let the verb pass as often as the trace has the same address before.
 */
extern uint64_t trace_length;
const void *trace_at(uint64_t number);

/* Call it once; it exits with 77 where stopping is impossible. */
void stops_prepare(void);
void trace_verb(void (*verb)(void));
/*
 * `stopped` is called before instruction `number`; the task may wait in it.  False: the
 * instruction was not met.
 */
bool stop_verb(void (*verb)(void), uint64_t number, void (*stopped)(void));

/* ---- stops_place.c ---------------------------------------------------------- */

enum { SENDER, OWNER, OTHER, MEMBERS };
enum { OWN, SHARED, LOOSE, UD, KINDS };		/* RC; RC into the SRQ; UC; UD */

enum {
	BYTES = 200, GRH = 40, SLOT = 512,
	OUT = 8,			/* slots of outgoing messages per kind */
	DEPTH = 4,			/* receives per queue */
};

struct member {
	struct side s;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct buffer in, out, away;	/* away: memory that is withdrawn */
	struct end e[MEMBERS][KINDS];	/* index: member at the other end; UD: [me] */
	struct ibv_ah *ah;		/* to the owner */
};
extern struct member member[MEMBERS];

/* The fate of this round's messages. */
extern struct round {
	uint32_t sent[MEMBERS][KINDS], ended[MEMBERS][KINDS], ok[MEMBERS][KINDS];
	uint32_t received[MEMBERS][KINDS], flushed[KINDS];
	uint32_t reposted[MEMBERS][KINDS];	/* receives posted again */
	bool reposts;			/* each at once */
	bool closed, gone, withdrawn;	/* the queue pairs to the sender; memory */
	bool refused;			/* a write to that memory closes its queue pair, too */
	bool in_time;			/* the verb went on before any wait timed out */
} run;

struct message {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct end *end;
};

void members_open(void);
void members_close(void);
/* Make the queues, and send a message of each kind. */
void set_up(void);
void tear_down(void);

void post_slot(int from, int kind, uint32_t slot);
struct end *end_to_owner(int from, int kind);
/* The next message, to be posted by ibv_post_send alone. */
void prepare(struct message *to, int from, int kind, bool too_long);
void post_message(struct message *m);
void send_one(int from, int kind);
void all_send(int from);

/* Note a successful completion of the owner. */
void take_message(const struct ibv_wc *wc);
/* Take a completion; false: none.  Also checks for dead peers and stuck entries. */
bool take_any(void);
bool take_sent(int from);
bool all_ended(int from);
bool all_here(int from);
/* Wait for all messages under way, for `most_ns` at most. */
void settle(uint64_t most_ns);
void must_have_all(int from);
/* The count of its messages that have taken a receive not posted again. */
uint32_t taken_by(int from, int kind);
/* Check that all posted receives can be used, one by one. */
void use_up(int from, int kind, uint32_t count);

#endif
