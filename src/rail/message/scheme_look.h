/*
 * scheme_look.h - looks: first short measurements of schemes whose messages queue, for scheme.c.
 *
 * A receiver takes all offers that are there, and the other end does its parts later.  So messages end long
 * after others have been taken, and several looks, each of another scheme, are under way at once.  A copy by
 * the kernel shows its cost by the time until the next message is taken, since this end's part is done
 * by then.  Messages through the ring are taken without any work, and show their cost by the times between
 * their ends.
 */
#ifndef RAIL_SCHEME_LOOK_H
#define RAIL_SCHEME_LOOK_H

#include "rail/message/scheme.h"

enum {
	LOOK_MESSAGES = 2, LOOK_RING = 4,	/* of a look; of one through the ring */
	LOOK_ENDS = 3,				/* the least number of ends that show a cost */
};

/* A message of the present scheme is taken: of a batch that has the number of the cell's. */
void rail_look_take(struct rail_scheme_cell *cell, uint32_t pieces, uint64_t now_ns);
/* Is a look of the present scheme open, and has it enough messages? */
bool rail_look_is_open(const struct rail_scheme_cell *cell);
bool rail_look_is_full(const struct rail_scheme_cell *cell);
/* No more messages of the present scheme; the next one is taken at now_ns, 0: the burst is over. */
void rail_look_close(struct rail_scheme_cell *cell, uint64_t now_ns);
/* A message has ended; true: a look has, which may change what is best. */
bool rail_look_done(struct rail_scheme_cell *cell, uint8_t batch, uint32_t pieces, uint64_t now_ns);
/* Looks under way are given up. */
void rail_look_forget(struct rail_scheme_cell *cell);

#endif
