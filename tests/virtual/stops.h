/* stops.h - stopping a verb at an instruction (stops_at.c); whom it meets (stops_place.c). */
#ifndef TESTS_STOPS_H
#define TESTS_STOPS_H

#include <stdatomic.h>

#include "../conformance/conformance.h"
#include "virtual.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define STOPS_KNOWN 1
#else
#define STOPS_KNOWN 0
#endif

#define MS_NS 1000000ull

/* ---- stops_at.c ------------------------------------------------------------- */

/*
 * First a verb is single-stepped, nobody else acting, and the instructions of the library that it
 * carries out are noted.  Then, to stop before one of them, a breakpoint is set there, which lets
 * it pass as often as it came before.
 */
extern uint64_t trace_length;
const void *trace_at(uint64_t number);

/* Once; exits with 77 where it cannot be. */
void stops_prepare(void);
void trace_verb(void (*verb)(void));
/*
 * Before instruction `number` `stopped` is called, in which the task may wait.  False: the
 * instruction was not met.
 */
bool stop_verb(void (*verb)(void), uint64_t number, void (*stopped)(void));

/* ---- stops_place.c ---------------------------------------------------------- */

enum { SENDER, OWNER, OTHER, MEMBERS };
enum { OWN, SHARED, LOOSE, UD, KINDS };		/* RC; RC into the SRQ; UC; UD */

enum {
	BYTES = 200, GRH = 40, SLOT = 512,
	OUT = 8,			/* slots of messages that go out, of each kind */
	DEPTH = 4,			/* of each receive queue */
};

struct member {
	struct side s;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct buffer in, out, away;	/* away: memory that is withdrawn */
	struct end e[MEMBERS][KINDS];	/* by who is at the other end; UD: of [me] */
	struct ibv_ah *ah;		/* to the owner */
};
extern struct member member[MEMBERS];

/* What has become of this round's messages. */
extern struct round {
	uint32_t sent[MEMBERS][KINDS], ended[MEMBERS][KINDS], ok[MEMBERS][KINDS];
	uint32_t received[MEMBERS][KINDS], flushed[KINDS];
	uint32_t reposted[MEMBERS][KINDS];	/* of the receives that these took */
	bool reposts;			/* each at once */
	bool closed, gone, withdrawn;	/* the queue pairs to the sender; memory */
	bool refused;			/* a write to that memory closes its queue pair, too */
	bool in_time;			/* the verb went on before anyone lost patience */
} run;

struct message {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct end *end;
};

void members_open(const struct options *options);
void members_close(void);
/* Queues are made, and each way has carried a message. */
void set_up(void);
void tear_down(void);

void post_slot(int from, int kind, uint32_t slot);
struct end *end_to_owner(int from, int kind);
/* The next message, to be posted by ibv_post_send alone. */
void prepare(struct message *to, int from, int kind, bool too_long);
void post_message(struct message *m);
void send_one(int from, int kind);
void all_send(int from);

/* Of one completion of the owner that is a success. */
void take_message(const struct ibv_wc *wc);
/* A completion is taken; false: there is none.  Who lives and what is stuck is looked at, too. */
bool take_any(void);
bool take_sent(int from);
bool all_ended(int from);
bool all_here(int from);
/* Everything that is under way, for so long at most. */
void settle(uint64_t most_ns);
void must_have_all(int from);
/* How many of its messages have taken a receive that was not posted again. */
uint32_t taken_by(int from, int kind);
/* All that is posted there can be used, one by one. */
void use_up(int from, int kind, uint32_t count);

#endif
