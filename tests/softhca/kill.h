/* kill.h - between a process in a seat (member.c) and the process that kills it (kill.c). */
#ifndef KILL_H
#define KILL_H

#include "kit.h"

enum { SEATS = 4, NODES = 3 };

/* The configuration of a fabric. */
struct mode {
	const char *name;
	const char *spec;	/* NULL: ideal */
	const char *remap;	/* SOFTHCA_REMAP */
	bool arena;		/* buffers from the arena */
	const char *copy;	/* SOFTHCA_COPY */
};

/*
 * Commands: make an end for a seat (answered by its address, from member to member);
 * connect it (answered: ready); go.  That seat was killed (answered: dead, when
 * the queue pair to it shows it) or leaves (dead: at once).  Flow: answered when
 * messages of each kind were exchanged with all seats in the mask.  Quit.  Tell (answered):
 * something failed elsewhere; print diagnostics.
 */
enum word_type {
	WORD_MAKE = 'm', WORD_ADDRESS = 'a', WORD_CONNECT = 'c', WORD_READY = 'r', WORD_GO = 'g',
	WORD_KILLED = 'k', WORD_GONE = 'l', WORD_DEAD = 'd', WORD_FLOW = 'f', WORD_QUIT = 'q',
	WORD_TELL = 't',
};

/* The kinds of queue pair between two seats. */
enum kind {
	MAIN,		/* RC: every byte and its order is checked */
	SHARED,		/* RC, its receives from the process's shared receive queue */
	CHANNEL,	/* RC, polled only after an event of its completion channel */
	LOOSE,		/* UC: messages may be lost; writes into memory that comes and goes */
	KINDS,
};

/* Features of the device; in the mask of the first ready. */
enum { HAS_SHARED = 1, HAS_CHANNEL = 2, HAS_UD = 4, HAS_ATOMICS = 8 };

struct address {
	struct peer_address qp[KINDS];
	uint32_t ud_qpn;
	uint32_t incarnation;
	uint64_t in_addr, small_addr, words_addr;
	uint32_t in_rkey, small_rkey, words_rkey;
};

struct word {
	enum word_type type;
	int seat;
	unsigned mask;
	struct address address;
};

void member_run(int seat, int sock, uint32_t incarnation, const struct mode *mode)
	__attribute__((noreturn));

#endif
