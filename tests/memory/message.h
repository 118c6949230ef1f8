/* message.h - messages between lives (memory.h), every byte checked. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <mpi.h>

#include "memory.h"

enum how { HOW_SEND, HOW_ISEND, HOW_BCAST, HOW_SENDRECV };

struct message {
	unsigned number;	/* no two are the same */
	int from;		/* rank 0 or 1 */
	enum how how;		/* HOW_SENDRECV: both send */
	size_t at, bytes;	/* where in either's buffer */
	const char *peer;	/* the kind of the other rank's buffer */
};

/* The bytes of a buffer that a message needs, and the bytes for messages up to max. */
size_t message_need(const struct message *m);
size_t message_limit(size_t max);

/* NULL, or why there is no such memory here.  limit: of message_limit. */
const char *life_begin(struct life *l, const struct kind *kind, size_t limit, uint64_t seed);
void life_end(struct life *l);

/*
 * 1 after a fault, with one line on stderr (the first of each life), else 0.  life_check copies
 * the contents to the shadow, so that one fault counts once.
 */
int life_check(struct life *l, const char *when);
int life_change(struct life *l, const struct message *m);
/* Both ranks call it; which of the two lives is received into says how. */
int message_pass(const struct message *m, struct life *l, uint64_t seed, MPI_Comm comm);

/* The program: of main.c, or of a module that another program loads. */
__attribute__((visibility("default"))) int lifecycle_main(int argc, char **argv);

#endif
